/*
 * landlock.c - the second fence around the file tree (landlock(7)).
 *
 * Rights that this kernel's ABI doesn't know are left out; what is handled and not allowed by a
 * rule is denied. From ABI 6 on the box's signals and abstract sockets end at its border too.
 */
#include "kernel/step/step.h"
#include "kernel/step/sys.h"

#include <linux/fcntl.h>
#include <linux/landlock.h>

#define SYS_ENOENT 2

/* The kernel's struct grew; older headers lack the later members. */
struct ruleset_attr {
    uint64_t handled_access_fs, handled_access_net, scoped;
};
#define SCOPE_ABSTRACT_UNIX_SOCKET (1ULL << 0)
#define SCOPE_SIGNAL (1ULL << 1)

#define RIGHTS_ABI_1 ((1ULL << 13) - 1) /* EXECUTE .. MAKE_SYM */
#define RIGHT_REFER (1ULL << 13)        /* ABI 2 */
#define RIGHT_TRUNCATE (1ULL << 14)     /* ABI 3 */
#define RIGHT_IOCTL_DEV (1ULL << 15)    /* ABI 5 */

static uint64_t known_rights(long abi)
{
    return RIGHTS_ABI_1 | (abi >= 2 ? RIGHT_REFER : 0) | (abi >= 3 ? RIGHT_TRUNCATE : 0) |
           (abi >= 5 ? RIGHT_IOCTL_DEV : 0);
}

static uint64_t wanted_rights(uint32_t access)
{
    const uint64_t read =
        LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;

    const uint64_t file = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE |
                          RIGHT_TRUNCATE | RIGHT_IOCTL_DEV;

    if (access == PLAN_ACCESS_WRITE)
        return RIGHTS_ABI_1 | RIGHT_REFER | RIGHT_TRUNCATE;
    if (access == PLAN_ACCESS_DEVICES)
        return file | LANDLOCK_ACCESS_FS_READ_DIR;
    return access == PLAN_ACCESS_FILE ? file : read;
}

static int add_rule(struct step_state *s, int ruleset, const struct plan_access_rule *rule,
                    uint64_t known)
{
    struct landlock_path_beneath_attr beneath = {0};
    long fd, r;

    s->object = plan_text(s, rule->path);
    fd = step_call(__NR_openat, AT_FDCWD, s->object, O_PATH | O_CLOEXEC, 0);
    if (fd < 0)
        return (int)fd;
    beneath.allowed_access = wanted_rights(rule->access) & known;
    beneath.parent_fd = (int)fd;
    r = step_call(__NR_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &beneath, 0);
    sys_close((int)fd);
    return (int)r;
}

static int restrict_self(struct step_state *s, int ruleset, uint64_t known)
{
    const struct plan_access_rule *rules = plan_at(s, s->plan->access.offset);

    for (uint32_t i = 0; i < s->plan->access.count; i++) {
        int r = add_rule(s, ruleset, &rules[i], known);
        if (r < 0)
            return r;
    }
    s->object = "landlock_restrict_self";
    return (int)step_call(__NR_landlock_restrict_self, ruleset, 0);
}

static int landlock(struct step_state *s)
{
    struct ruleset_attr attr = {0};
    long abi, ruleset;
    int r;

    s->object = "Landlock";
    abi = step_call(__NR_landlock_create_ruleset, 0, 0, LANDLOCK_CREATE_RULESET_VERSION);
    if (abi < 0)
        return (int)abi;
    attr.handled_access_fs = known_rights(abi);
    attr.scoped = abi >= 6 ? SCOPE_ABSTRACT_UNIX_SOCKET | SCOPE_SIGNAL : 0;
    ruleset = step_call(__NR_landlock_create_ruleset, &attr,
                        abi >= 6 ? sizeof(attr) : sizeof(attr.handled_access_fs), 0);
    if (ruleset < 0)
        return (int)ruleset;
    r = restrict_self(s, (int)ruleset, attr.handled_access_fs);
    sys_close((int)ruleset);
    return r;
}

/* Must: come after no_new_privs. Mustn't: be the only wall (it is wanted, not required). */
int step_landlock(struct step_state *s)
{
    if (!plan_has(s, LAYER_LANDLOCK))
        return 0;
    return step_optional(s, LAYER_LANDLOCK, landlock(s));
}
