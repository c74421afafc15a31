/*
 * units.h: quantities with their unit, as files and the command line write
 * them.  "25GB/s", "200Gb/s", "25GBps", "80GiB", "3us", "312TFLOP/s", "700W",
 * "2.5USD/h", "7B".  A missing unit is an error that says what was expected;
 * nothing is guessed.  Bits (b) and bytes (B) are told apart; k and K are
 * 1000, Ki is 1024.  Blanks between number and unit are allowed.  NaN,
 * infinity, overflow and signs that make no sense are refused.
 */
#ifndef FR_CORE_BASE_UNITS_H
#define FR_CORE_BASE_UNITS_H

#include "core/base/err.h"

typedef enum fr_quantity {
    FR_QUANTITY_BYTES,     /* "80GiB" "25MB" "512B"; whole, < 2^64 */
    FR_QUANTITY_BPS,       /* bytes per second, > 0 */
    FR_QUANTITY_S,         /* "3us" "2.5ms" "1h" "2min" "3d", >= 0 */
    FR_QUANTITY_FLOPS,     /* "312TFLOP/s" "312TFLOPS" "1Gf", > 0 */
    FR_QUANTITY_W,         /* "700W" "1.2kW", >= 0 */
    FR_QUANTITY_USD_PER_H, /* "2.5USD/h" "$2.5/h", >= 0 */
    FR_QUANTITY_COUNT,     /* "7B" "8k" "1.5M" "42": whole, < 2^64 */
    FR_QUANTITY_FRAC,      /* "25%" or "0.25"; 0..1 */
    FR_QUANTITY_HZ,        /* "2.4GHz", > 0 */
    FR_QUANTITY_N
} fr_quantity;

/* Flags of fr_parse_quantity. */
enum {
    /*
     * SimGrid: a bare number is bytes, bytes/s, seconds, flop/s; and "m" is
     * a minute, "w" a week.
     */
    FR_UNIT_SIMGRID = 1,
    FR_ZERO_IS_FINE = 2 /* also where a zero is refused otherwise */
};

/*
 * The whole text must be one quantity.  FR_INPUT with e.g.
 * "'25' has no unit: expected a rate such as 25GB/s or 200Gb/s".
 */
FR_CHECKED fr_status fr_parse_quantity(fr_quantity quantity, const char *text,
                                       unsigned flags, double *out,
                                       fr_err *err);

FR_CHECKED fr_status fr_parse_bytes(const char *text, uint64_t *out,
                                    fr_err *err);
FR_CHECKED fr_status fr_parse_s(const char *text, double *out, fr_err *err);
FR_CHECKED fr_status fr_parse_count(const char *text, uint64_t *out,
                                    fr_err *err);
FR_CHECKED fr_status fr_parse_frac(const char *text, double *out, fr_err *err);

/* Plain numbers without a unit: the whole text, finite, in range. */
FR_CHECKED fr_status fr_parse_double(const char *text, double *out,
                                     fr_err *err);
FR_CHECKED fr_status fr_parse_i64(const char *text, int64_t *out, fr_err *err);
FR_CHECKED fr_status fr_parse_u64(const char *text, uint64_t *out, fr_err *err);
/* "true" "false" "yes" "no" "on" "off" "1" "0". */
FR_CHECKED fr_status fr_parse_bool(const char *text, bool *out, fr_err *err);

/*
 * For people: three or four significant digits, "1.23 GiB", "45.6 us",
 * "12.5 GB/s", "312 TFLOP/s", "124.4 M".  Each writes at most n bytes with
 * the NUL and returns `out`; 32 bytes are always enough.  NaN gives "-".
 */
enum { FR_FORMAT_MAX = 32 };
char *fr_format_bytes(char *out, size_t n, double value);
char *fr_format_s(char *out, size_t n, double value);
char *fr_format_Bps(char *out, size_t n, double value);
char *fr_format_flops(char *out, size_t n, double value);
char *fr_format_count(char *out, size_t n, double value);
/* "24.1 M USD", "1.68 MWh" (of kWh). */
char *fr_format_usd(char *out, size_t n, double value);
char *fr_format_kwh(char *out, size_t n, double value);
/* Whole numbers with separators: "124,439,808". */
char *fr_format_u64(char *out, size_t n, uint64_t value);

#endif
