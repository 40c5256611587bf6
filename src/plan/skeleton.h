/* skeleton.h - the files that every box gets in its root (rootfs/skeleton), built in. */
#ifndef HUTCH_PLAN_SKELETON_H
#define HUTCH_PLAN_SKELETON_H

#include <stddef.h>

struct skeleton_file {
    const char *path; /* below the root: "etc/passwd" */
    const unsigned char *data;
    size_t len;
};
extern const struct skeleton_file SKELETON_FILES[];
extern const size_t SKELETON_FILES_LEN;

#endif
