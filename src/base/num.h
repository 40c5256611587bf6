/* num.h - strict numbers: whole text, in range, no overflow, or an error that names the field. */
#ifndef HUTCH_BASE_NUM_H
#define HUTCH_BASE_NUM_H

#include <stdint.h>

#include "hutch.h"

/* `field` is the name that the caller knows the number by ("--memory", "timeout_s"); the errors
 * are HUTCH_STAGE_REQUEST. Only digits (and one point, or one suffix where said): no sign, no
 * blank, no exponent, no hexadecimal. Exception: the fixed-point parser takes a JSON number's
 * exponent too, because JSON writers use it for small values. */
int num_u64(const char *field, const char *text, uint64_t min, uint64_t max, uint64_t *ret_value,
            struct hutch_error *err);
/* Bytes: digits, then K, M, G or T (either case, powers of 1024) or nothing. */
int num_bytes(const char *field, const char *text, uint64_t min, uint64_t max, uint64_t *ret_bytes,
              struct hutch_error *err);
/* A decimal such as 0.5 or .5, scaled by 1000 and rounded up ("0.0015" s is 2 ms). min and max are
 * in thousandths, and the text's exact value must be in that range ("0.0001" is below 1). */
int num_milli(const char *field, const char *text, uint64_t min, uint64_t max, uint64_t *ret_milli,
              struct hutch_error *err);

#endif
