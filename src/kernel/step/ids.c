/*
 * ids.c - who the box is.
 *
 * Self-map mode: init itself maps 1000 to the caller's id, which is the only map that needs no
 * privilege; setgroups must be denied first (user_namespaces(7)). Root mode: the host has
 * written both maps before it sent the go-ahead.
 */
#include "kernel/step/step.h"
#include "kernel/step/sys.h"

#include <linux/fcntl.h>

static int write_map(const char *path, uint32_t inside, uint32_t outside)
{
    char line[64];
    size_t len = 0;

    text_add_number(line, sizeof(line), &len, inside);
    text_add(line, sizeof(line), &len, " ");
    text_add_number(line, sizeof(line), &len, outside);
    text_add(line, sizeof(line), &len, " 1\n");
    return text_write_file(AT_FDCWD, path, line);
}

/* Must: leave exactly one id mapped. Mustn't: run in root mode, where the host did it. */
int step_self_map(struct step_state *s)
{
    int r;

    if (s->plan->mode != PLAN_MODE_SELF)
        return 0;
    s->object = "/proc/self/setgroups";
    r = text_write_file(AT_FDCWD, "/proc/self/setgroups", "deny");
    if (r < 0)
        return r;
    s->object = "/proc/self/uid_map";
    r = write_map("/proc/self/uid_map", s->plan->uid, s->plan->outside_uid);
    if (r < 0)
        return r;
    s->object = "/proc/self/gid_map";
    return write_map("/proc/self/gid_map", s->plan->gid, s->plan->outside_gid);
}

/* Must: leave no id and no group of the host's but the mapped one. In self-map mode the kernel
 * doesn't let the supplementary groups go (setgroups is denied): the receipt says so. */
int step_become_user(struct step_state *s)
{
    const struct plan_header *p = s->plan;
    long r;

    if (p->mode == PLAN_MODE_ROOT) {
        s->object = "supplementary groups";
        r = step_call(__NR_setgroups, 0, 0);
        if (r < 0)
            return (int)r;
    }
    s->object = "group id";
    r = step_call(__NR_setresgid, p->gid, p->gid, p->gid);
    if (r < 0)
        return (int)r;
    s->object = "user id";
    return (int)step_call(__NR_setresuid, p->uid, p->uid, p->uid);
}
