/*
 * units.c: see units.h.  A quantity's unit is a prefix (k, M, Gi ...) and one
 * of the words in its table; the table says what one of them is worth.
 */
#include "core/base/units.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct unit_word {
    const char *word; /* after the prefix */
    double worth;
    bool has_prefix; /* k, M, G ... may stand before it */
    bool is_simgrid; /* only where the reader asked for SimGrid's */
} unit_word;

#define UNIT_WORDS_MAX 16

typedef struct quantity_row {
    const char *expected;
    bool is_zero_refused;
    bool has_binary;   /* Ki, Mi, Gi ... */
    bool has_small;    /* m, u, n, p (milli ...) */
    bool is_bare_fine; /* a number without a unit is one of it */
    bool is_whole;
    bool is_bare_simgrid; /* SimGrid writes it without a unit */
    unit_word words[UNIT_WORDS_MAX];
} quantity_row;

static const quantity_row rows[FR_QUANTITY_N] = {
    [FR_QUANTITY_BYTES] = {.expected =
                               "an amount of bytes such as 80GiB or 25MB",
                           .has_binary = true,
                           .is_whole = true,
                           .is_bare_simgrid = true,
                           .words = {{"B", 1, true, false},
                                     {"b", 0.125, true, false}}},
    [FR_QUANTITY_BPS] = {.expected =
                             "a rate such as 25GB/s (bytes) or 200Gb/s (bits)",
                         .is_zero_refused = true,
                         .has_binary = true,
                         .is_bare_simgrid = true,
                         .words = {{"B/s", 1, true, false},
                                   {"Bps", 1, true, false},
                                   {"b/s", 0.125, true, false},
                                   {"bps", 0.125, true, false},
                                   {"bit/s", 0.125, true, false}}},
    [FR_QUANTITY_S] = {.expected =
                           "a time such as 3us, 2.5ms, 10s, 1h or 60 days",
                       .has_small = true,
                       .is_bare_simgrid = true,
                       .words = {{"s", 1, true, false},
                                 {"min", 60, false, false},
                                 {"h", 3600, false, false},
                                 {"d", 86400, false, false},
                                 {"sec", 1, false, false},
                                 {"seconds", 1, false, false},
                                 {"minutes", 60, false, false},
                                 {"hour", 3600, false, false},
                                 {"hours", 3600, false, false},
                                 {"day", 86400, false, false},
                                 {"days", 86400, false, false},
                                 {"years", 31557600, false, false},
                                 {"week", 604800, false, false},
                                 {"weeks", 604800, false, false},
                                 {"m", 60, false, true},
                                 {"w", 604800, false, true}}},
    [FR_QUANTITY_FLOPS] = {.expected = "a rate such as 312TFLOP/s",
                           .is_zero_refused = true,
                           .is_bare_simgrid = true,
                           .words = {{"FLOP/s", 1, true, false},
                                     {"FLOPS", 1, true, false},
                                     {"FLOPs", 1, true, false},
                                     {"Flop/s", 1, true, false},
                                     {"Flops", 1, true, false},
                                     {"flop/s", 1, true, false},
                                     {"flops", 1, true, false},
                                     {"f", 1, true, false}}},
    [FR_QUANTITY_W] = {.expected = "a power such as 700W or 1.2kW",
                       .has_small = true,
                       .words = {{"W", 1, true, false}}},
    [FR_QUANTITY_USD_PER_H] = {.expected = "a price such as 2.5USD/h",
                               .words = {{"USD/h", 1, false, false},
                                         {"$/h", 1, false, false}}},
    [FR_QUANTITY_COUNT] = {.expected = "a count such as 42, 8k, 7B or 1.5M",
                           .is_bare_fine = true,
                           .is_whole = true,
                           .words = {{"k", 1e3, false, false},
                                     {"K", 1e3, false, false},
                                     {"M", 1e6, false, false},
                                     {"B", 1e9, false, false},
                                     {"G", 1e9, false, false},
                                     {"T", 1e12, false, false},
                                     {"Ki", 1024, false, false},
                                     {"Mi", 1048576, false, false},
                                     {"Gi", 1073741824, false, false}}},
    [FR_QUANTITY_FRAC] = {.expected = "a share such as 25% or 0.25",
                          .is_bare_fine = true,
                          .words = {{"%", 0.01, false, false}}},
    [FR_QUANTITY_HZ] = {.expected = "a frequency such as 2.4GHz",
                        .is_zero_refused = true,
                        .words = {{"Hz", 1, true, false}}},
};

static const struct {
    char letter;
    double decimal, binary;
} large_prefixes[] = {
    {'k', 1e3, 0x1p10},  {'K', 1e3, 0x1p10},  {'M', 1e6, 0x1p20},
    {'G', 1e9, 0x1p30},  {'T', 1e12, 0x1p40}, {'P', 1e15, 0x1p50},
    {'E', 1e18, 0x1p60}, {'Z', 1e21, 0x1p70},
};

static const struct {
    const char *text;
    double worth;
} small_prefixes[] = {
    {"m", 1e-3},        {"u", 1e-6}, {"\xc2\xb5", 1e-6},
    {"\xce\xbc", 1e-6}, {"n", 1e-9}, {"p", 1e-12},
};

static const char *skip_blanks(const char *text)
{
    while (*text == ' ' || *text == '\t')
        text++;
    return text;
}

static size_t n_digits(const char *text)
{
    size_t n = 0;

    while (text[n] >= '0' && text[n] <= '9')
        n++;
    return n;
}

/*
 * The length of a decimal number at `text`: sign, digits, fraction, exponent;
 * no hexadecimal, no "inf", as strtod would take.  0 when there is none.
 */
static size_t number_length(const char *text)
{
    size_t n = *text == '-' || *text == '+' ? 1 : 0;
    size_t n_whole = n_digits(text + n), n_fraction = 0, n_sign;

    n += n_whole;
    if (text[n] == '.') {
        n_fraction = n_digits(text + n + 1);
        n += 1 + n_fraction;
    }
    if (n_whole + n_fraction == 0)
        return 0;
    if (text[n] == 'e' || text[n] == 'E') {
        n_sign = text[n + 1] == '-' || text[n + 1] == '+' ? 1 : 0;
        if (n_digits(text + n + 1 + n_sign))
            n += 1 + n_sign + n_digits(text + n + 1 + n_sign);
    }
    return n;
}

/* strtod follows LC_NUMERIC; nothing here ever calls setlocale. */
static bool read_number(const char *text, double *out, const char **rest)
{
    size_t n = number_length(text);
    char digits[128];
    char *end;

    if (n == 0 || n >= sizeof digits)
        return false;
    memcpy(digits, text, n);
    digits[n] = '\0';
    *out = strtod(digits, &end);
    *rest = text + n;
    return *end == '\0';
}

/* Returns the factor of the unit at `unit`; 0 if it is not a unit of the
 * row. */
static double unit_worth(const quantity_row *row, const char *unit,
                         bool is_simgrid)
{
    for (int i = 0; i < UNIT_WORDS_MAX && row->words[i].word; i++) {
        const unit_word *word = &row->words[i];
        if (word->is_simgrid && !is_simgrid)
            continue;
        if (strcmp(unit, word->word) == 0)
            return word->worth;
    }
    for (int i = 0; i < UNIT_WORDS_MAX && row->words[i].word; i++) {
        const unit_word *word = &row->words[i];
        if (!word->has_prefix)
            continue;
        for (size_t k = 0; k < FR_LENGTH(large_prefixes); k++) {
            if (unit[0] != large_prefixes[k].letter)
                continue;
            if (strcmp(unit + 1, word->word) == 0)
                return word->worth * large_prefixes[k].decimal;
            if (row->has_binary && unit[1] == 'i' &&
                strcmp(unit + 2, word->word) == 0)
                return word->worth * large_prefixes[k].binary;
        }
        for (size_t k = 0; row->has_small && k < FR_LENGTH(small_prefixes);
             k++) {
            size_t n = strlen(small_prefixes[k].text);
            if (strncmp(unit, small_prefixes[k].text, n) == 0 &&
                strcmp(unit + n, word->word) == 0)
                return word->worth * small_prefixes[k].worth;
        }
    }
    return 0;
}

/* The value of number and unit; everything but its range. */
static fr_status read_quantity(const quantity_row *row, const char *text,
                               unsigned flags, double *out, fr_err *err)
{
    const char *start = skip_blanks(text), *unit;
    bool is_simgrid = (flags & FR_UNIT_SIMGRID) != 0;
    char unit_text[24];
    double number, worth;
    size_t n;

    /* "$2.5/h" */
    bool is_dollar = row == &rows[FR_QUANTITY_USD_PER_H] && *start == '$';
    if (is_dollar)
        start++;
    if (!read_number(start, &number, &unit))
        return fr_fail(err, FR_INPUT, "'%.60s' is no number: expected %s", text,
                       row->expected);
    unit = skip_blanks(unit);
    n = strlen(unit);
    while (n > 0 && (unit[n - 1] == ' ' || unit[n - 1] == '\t'))
        n--;
    if (n == 0) {
        if (!row->is_bare_fine && !(is_simgrid && row->is_bare_simgrid))
            return fr_fail(err, FR_INPUT, "'%.60s' has no unit: expected %s",
                           text, row->expected);
        *out = number;
        return FR_OK;
    }
    snprintf(unit_text, sizeof unit_text, "%.*s", (int)(n < 23 ? n : 23), unit);
    if (is_dollar)
        worth = strcmp(unit_text, "/h") == 0 ? 1 : 0;
    else
        worth = n < 23 ? unit_worth(row, unit_text, is_simgrid) : 0;
    if (worth == 0)
        return fr_fail(err, FR_INPUT, "'%.60s': unknown unit '%s': expected %s",
                       text, unit_text, row->expected);
    /* 1e-12 is no binary fraction, 1e12 is exact: divide. */
    *out = worth < 1 ? number / nearbyint(1 / worth) : number * worth;
    return FR_OK;
}

fr_status fr_parse_quantity(fr_quantity quantity, const char *text,
                            unsigned flags, double *out, fr_err *err)
{
    const quantity_row *row = &rows[quantity];
    double value = 0, nearest;

    FR_TRY(read_quantity(row, text, flags, &value, err));
    if (!isfinite(value))
        return fr_fail(err, FR_INPUT, "'%.60s' is too large: expected %s", text,
                       row->expected);
    if (value < 0)
        return fr_fail(err, FR_INPUT, "'%.60s' is negative: expected %s", text,
                       row->expected);
    if (value == 0 && row->is_zero_refused && !(flags & FR_ZERO_IS_FINE))
        return fr_fail(err, FR_INPUT, "'%.60s' is zero: expected %s", text,
                       row->expected);
    if (quantity == FR_QUANTITY_FRAC && value > 1)
        return fr_fail(err, FR_INPUT, "'%.60s' is above 100%%: expected %s",
                       text, row->expected);
    if (row->is_whole) {
        nearest = nearbyint(value);
        /* 1.1MB = 1100000.0000000001 is whole to the eye. */
        if (fabs(value - nearest) > 1e-15 * value * 4)
            return fr_fail(err, FR_INPUT, "'%.60s' is not whole: expected %s",
                           text, row->expected);
        value = nearest;
    }
    *out = value;
    return FR_OK;
}

/* "18446744073709551615B": more digits than a double holds, times a unit. */
static bool read_exact(const char *text, double value, uint64_t *out)
{
    size_t n = n_digits(text);
    uint64_t number = 0, worth;

    if (n == 0 || text[n] == '.' || text[n] == 'e' || text[n] == 'E')
        return false;
    for (size_t i = 0; i < n; i++)
        if (__builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, (uint64_t)(text[i] - '0'), &number))
            return false;
    if (number == 0 || value / (double)number >= 0x1p63)
        return false;
    worth = (uint64_t)nearbyint(value / (double)number);
    return worth > 0 && (double)number * (double)worth == value &&
           !__builtin_mul_overflow(number, worth, out);
}

static fr_status parse_whole(fr_quantity quantity, const char *text,
                             uint64_t *out, fr_err *err)
{
    double value = 0;
    uint64_t exact;

    FR_TRY(fr_parse_quantity(quantity, text, 0, &value, err));
    if (read_exact(text, value, &exact)) {
        *out = exact;
        return FR_OK;
    }
    if (value >= 0x1p64)
        return fr_fail(err, FR_INPUT, "'%.60s' is too large: expected %s", text,
                       rows[quantity].expected);
    *out = (uint64_t)value;
    return FR_OK;
}

fr_status fr_parse_bytes(const char *text, uint64_t *out, fr_err *err)
{
    return parse_whole(FR_QUANTITY_BYTES, text, out, err);
}

fr_status fr_parse_count(const char *text, uint64_t *out, fr_err *err)
{
    return parse_whole(FR_QUANTITY_COUNT, text, out, err);
}

fr_status fr_parse_s(const char *text, double *out, fr_err *err)
{
    return fr_parse_quantity(FR_QUANTITY_S, text, 0, out, err);
}

fr_status fr_parse_frac(const char *text, double *out, fr_err *err)
{
    return fr_parse_quantity(FR_QUANTITY_FRAC, text, 0, out, err);
}

fr_status fr_parse_double(const char *text, double *out, fr_err *err)
{
    const char *rest;
    double value;

    if (!read_number(text, &value, &rest) || *rest)
        return fr_fail(err, FR_INPUT, "'%.60s' is no number", text);
    if (!isfinite(value))
        return fr_fail(err, FR_INPUT, "'%.60s' is too large", text);
    *out = value;
    return FR_OK;
}

fr_status fr_parse_i64(const char *text, int64_t *out, fr_err *err)
{
    size_t n_sign = *text == '-' ? 1 : 0;
    size_t n = n_digits(text + n_sign);
    long long value;

    if (n == 0 || text[n_sign + n] != '\0')
        return fr_fail(err, FR_INPUT, "'%.60s' is no whole number", text);
    errno = 0;
    value = strtoll(text, NULL, 10);
    if (errno == ERANGE)
        return fr_fail(err, FR_INPUT, "'%.60s' is out of range", text);
    *out = value;
    return FR_OK;
}

fr_status fr_parse_u64(const char *text, uint64_t *out, fr_err *err)
{
    size_t n = n_digits(text);
    unsigned long long value;

    if (n == 0 || text[n] != '\0')
        return fr_fail(err, FR_INPUT,
                       "'%.60s' is no whole number that is not negative", text);
    errno = 0;
    value = strtoull(text, NULL, 10);
    if (errno == ERANGE)
        return fr_fail(err, FR_INPUT, "'%.60s' is out of range", text);
    *out = value;
    return FR_OK;
}

fr_status fr_parse_bool(const char *text, bool *out, fr_err *err)
{
    static const char *const words[2][4] = {{"false", "no", "off", "0"},
                                            {"true", "yes", "on", "1"}};

    for (int value = 0; value < 2; value++) {
        for (int i = 0; i < 4; i++) {
            if (strcmp(text, words[value][i]) == 0) {
                *out = value != 0;
                return FR_OK;
            }
        }
    }
    return fr_fail(err, FR_INPUT, "'%.60s': expected true or false", text);
}
