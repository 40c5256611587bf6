/*
 * limits.c - every limit with its unit, range and default. There is no way to say "unlimited":
 * a limit is the default or a number in its range.
 */
#include <string.h>

#include "base/error.h"
#include "base/num.h"
#include "request/internal.h"

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)
#define TIB ((uint64_t)1 << 40)
#define DAY_MS ((uint64_t)86400000)
#define AT(member) offsetof(struct limits, member)

/* option, JSON member, unit, shift, where, least, most, {run's default, exec's} */
const struct limit_info LIMITS[] = {
    {"timeout", "timeout_s", LIMIT_SECONDS, 0, AT(timeout_ms), 1, DAY_MS, {30000, 5000}},
    {"memory", "memory_mb", LIMIT_BYTES, 20, AT(memory_bytes), MIB, TIB, {512 * MIB, 128 * MIB}},
    {"cpus", "cpus", LIMIT_CPUS, 0, AT(cpus_milli), 10, 1024000, {1000, 1000}},
    {"cpu-time", "cpu_time_s", LIMIT_SECONDS, 0, AT(cpu_time_ms), 1, DAY_MS, {0, 0}},
    {"pids", "pids", LIMIT_COUNT, 0, AT(pids), 1, 32768, {64, 64}},
    {"disk", "disk_bytes", LIMIT_BYTES, 0, AT(disk_bytes), 64 * KIB, TIB, {64 * MIB, 64 * MIB}},
    {"max-output",
     "max_output_bytes",
     LIMIT_BYTES,
     0,
     AT(max_output_bytes),
     0,
     GIB,
     {64000, 64000}},
};
const size_t LIMITS_LEN = ARRAY_LEN(LIMITS);

uint64_t *limit_slot(struct limits *limits, const struct limit_info *info)
{
    return (uint64_t *)(void *)((char *)limits + info->offset);
}

void limits_defaults(struct limits *limits, enum hutch_verb verb)
{
    for (size_t i = 0; i < LIMITS_LEN; i++)
        *limit_slot(limits, &LIMITS[i]) = LIMITS[i].defaults[verb];
}

static int parse(const struct limit_info *info, const char *field, const char *value,
                 uint64_t *ret_value, struct hutch_error *err)
{
    switch (info->unit) {
    case LIMIT_SECONDS:
    case LIMIT_CPUS:
        return num_milli(field, value, info->min, info->max, ret_value, err);
    case LIMIT_BYTES:
        return num_bytes(field, value, info->min, info->max, ret_value, err);
    default:
        return num_u64(field, value, info->min, info->max, ret_value, err);
    }
}

int limit_set(struct limits *limits, const char *option, const char *field, const char *value,
              struct hutch_error *err)
{
    for (size_t i = 0; i < LIMITS_LEN; i++) {
        if (strcmp(LIMITS[i].option, option) == 0)
            return parse(&LIMITS[i], field, value, limit_slot(limits, &LIMITS[i]), err);
    }
    return error_request(err, "%s: there is no such limit", field);
}

void limits_lower(struct limits *limits, const struct limits *before)
{
    struct limits old = *before;
    for (size_t i = 0; i < LIMITS_LEN; i++) {
        uint64_t *now = limit_slot(limits, &LIMITS[i]);
        uint64_t was = *limit_slot(&old, &LIMITS[i]);
        bool was_none = was == 0 && LIMITS[i].min > 0;
        if (!was_none && *now > was)
            *now = was;
    }
}
