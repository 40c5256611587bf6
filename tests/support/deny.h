/* deny.h - a host whose kernel (or container) answers some system calls with an error. */
#ifndef HUTCH_TESTS_DENY_H
#define HUTCH_TESTS_DENY_H

#define DENY_MAX 16

struct deny {
    long numbers[DENY_MAX]; /* ended by 0 (read: never denied here) */
    int error;
    unsigned clone_flags; /* clone with any of these is denied as well, with clone_error */
    int clone_error;
};

/* For struct spawn's `child`, with a struct deny as its `arg`: a seccomp filter that stays on for
 * the command and all below it. Sets no_new_privs. */
void child_deny(void *arg);

#endif
