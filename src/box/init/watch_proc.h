/*
 * watch_proc.h - what /proc says about one process, as the watchdog reads it.
 *
 * Two threads read at once, each through an fd of /proc of its own: an fd's place in the list is
 * shared by all who use it. Nothing here waits for anybody, but for what watch_exact.c asks for.
 */
#ifndef HUTCH_BOX_INIT_WATCH_PROC_H
#define HUTCH_BOX_INIT_WATCH_PROC_H

#include <stddef.h>
#include <stdint.h>

#define PROC_TID_TEXT 12
#define PROC_STATUS_TEXT 8192

/* What one process's memory is read from: its status, and the name in /proc that it stands
 * under. */
struct proc_entry {
    char tid[PROC_TID_TEXT];
    char status[PROC_STATUS_TEXT];
};

/* Calls visit for every process but init. */
void proc_each(int dir, void (*visit)(void *arg, const char *pid), void *arg);
/* False if it has ended meanwhile. Takes the thread that shows the process's memory. */
int proc_find(int dir, const char *pid, struct proc_entry *ret_entry);
/* Its memory by the numbers that are cheap: what it shares with others counts in full. The status
 * may be overwritten. */
uint64_t proc_rough_bytes(int dir, struct proc_entry *entry);
/* utime and stime, its own and of the children that it has waited for. */
uint64_t proc_cpu_us(int dir, const char *pid);
/* How often it had a page put in, and how long it has run. */
uint64_t proc_faults(int dir, const char *pid);
uint64_t proc_run_ns(uint64_t pid);
void proc_renice(int dir, const char *pid, unsigned nice);

/* /proc/PID/FILE; negative errno. */
long proc_open(int dir, const char *pid, const char *file);
/* The start of it, NUL-terminated; the length or a negative errno. */
long proc_read(int dir, const char *pid, const char *file, char *buf, size_t cap);
/* The number after `key` at the start of a line; 0 if there is none. */
uint64_t proc_field(const char *text, const char *key);
uint64_t proc_number(const char *text);

#endif
