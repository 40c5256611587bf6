/*
 * steps.h - the set-up steps by number and name, in the order in which init takes them. Messages
 * from init name a step by its number, and the host prints its name.
 */
#ifndef HUTCH_PLAN_STEPS_H
#define HUTCH_PLAN_STEPS_H

/* In init, before the program exists. */
#define PLAN_INIT_STEPS(X)                                                                         \
    X(close_fds)                                                                                   \
    X(self_map)                                                                                    \
    X(time_namespace)                                                                              \
    X(cgroup_namespace)                                                                            \
    X(oom_score)                                                                                   \
    X(private_mounts)                                                                              \
    X(open_sources)                                                                                \
    X(become_user)                                                                                 \
    X(non_dumpable)                                                                                \
    X(scratch)                                                                                     \
    X(make_tree)                                                                                   \
    X(mount_root)                                                                                  \
    X(fill_root)                                                                                   \
    X(no_user_namespaces)                                                                          \
    X(socket_buffers)                                                                              \
    X(mask)                                                                                        \
    X(pivot)                                                                                       \
    X(detach_old_root)                                                                             \
    X(loopback)                                                                                    \
    X(host_name)

/* In the program's process. */
#define PLAN_PROGRAM_STEPS(X)                                                                      \
    X(signals)                                                                                     \
    X(session)                                                                                     \
    X(schedule)                                                                                    \
    X(workdir)                                                                                     \
    X(drop_bounding)                                                                               \
    X(lock_securebits)                                                                             \
    X(drop_capabilities)                                                                           \
    X(no_new_privs)                                                                                \
    X(landlock)                                                                                    \
    X(rlimits)                                                                                     \
    X(exec_fd)                                                                                     \
    X(program_fds)                                                                                 \
    X(seccomp)

/* In init again, on itself, as soon as the program is executed: init has to keep its rights until
 * then, because a filter would be the program's too. */
#define PLAN_GUARD_STEPS(X)                                                                        \
    X(guard_capabilities)                                                                          \
    X(guard_filter)

#define PLAN_STEP_ENUM(name) PLAN_STEP_##name,
enum plan_step {
    PLAN_INIT_STEPS(PLAN_STEP_ENUM) PLAN_PROGRAM_STEPS(PLAN_STEP_ENUM)
        PLAN_GUARD_STEPS(PLAN_STEP_ENUM) PLAN_STEP_read_plan,
    PLAN_STEP_fork,
    PLAN_STEP_COUNT,
};

/* "mask"; "unknown" for a number that is none. In steps.c, host side. */
const char *plan_step_name(unsigned step);

#endif
