/* units_format.c: quantities for people; see units.h. */
#include "core/base/units.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct step {
    double worth;
    const char *word;
} step;

/* Three to four significant digits without an exponent, no trailing ".00". */
static void write_number(char *out, size_t n, double value, const char *word)
{
    double size = fabs(value);
    int n_decimals = size >= 99.95 ? 1 : size >= 9.995 ? 1 : 2;

    if (size >= 1e6)
        snprintf(out, n, "%.3g%s%s", value, *word ? " " : "", word);
    else if (value == floor(value))
        snprintf(out, n, "%.0f%s%s", value, *word ? " " : "", word);
    else
        snprintf(out, n, "%.*f%s%s", n_decimals, value, *word ? " " : "", word);
}

/* The largest step that the value, as rounded, reaches; else the last. */
static char *format_steps(char *out, size_t n, double value, const step *steps,
                          size_t n_steps)
{
    size_t i = 0;

    if (n == 0)
        return out;
    if (isnan(value)) {
        snprintf(out, n, "-");
        return out;
    }
    if (isinf(value)) {
        snprintf(out, n, value > 0 ? "inf" : "-inf");
        return out;
    }
    if (value == 0) {
        /* Zero of the unit itself, not of its smallest part. */
        while (i + 1 < n_steps && steps[i].worth != 1)
            i++;
        write_number(out, n, 0, steps[i].word);
        return out;
    }
    while (i + 1 < n_steps && fabs(value) < 0.9995 * steps[i].worth)
        i++;
    write_number(out, n, value / steps[i].worth, steps[i].word);
    return out;
}

#define FORMAT(steps) format_steps(out, n, value, steps, FR_LENGTH(steps))

char *fr_format_bytes(char *out, size_t n, double value)
{
    static const step steps[] = {
        {0x1p60, "EiB"}, {0x1p50, "PiB"}, {0x1p40, "TiB"}, {0x1p30, "GiB"},
        {0x1p20, "MiB"}, {0x1p10, "KiB"}, {1, "B"}};

    return FORMAT(steps);
}

char *fr_format_s(char *out, size_t n, double value)
{
    static const step steps[] = {
        {31557600, "years"}, {86400, "d"}, {3600, "h"}, {60, "min"}, {1, "s"},
        {1e-3, "ms"},        {1e-6, "us"}, {1e-9, "ns"}};

    /* Step times of 60 to 120 s are read as seconds. */
    if (fabs(value) < 120)
        return format_steps(out, n, value, steps + 4, 4);
    return FORMAT(steps);
}

char *fr_format_Bps(char *out, size_t n, double value)
{
    static const step steps[] = {{1e15, "PB/s"}, {1e12, "TB/s"}, {1e9, "GB/s"},
                                 {1e6, "MB/s"},  {1e3, "kB/s"},  {1, "B/s"}};

    return FORMAT(steps);
}

char *fr_format_flops(char *out, size_t n, double value)
{
    static const step steps[] = {{1e18, "EFLOP/s"}, {1e15, "PFLOP/s"},
                                 {1e12, "TFLOP/s"}, {1e9, "GFLOP/s"},
                                 {1e6, "MFLOP/s"},  {1e3, "kFLOP/s"},
                                 {1, "FLOP/s"}};

    return FORMAT(steps);
}

char *fr_format_count(char *out, size_t n, double value)
{
    static const step steps[] = {
        {1e12, "T"}, {1e9, "B"}, {1e6, "M"}, {1e3, "k"}, {1, ""}};

    return FORMAT(steps);
}

char *fr_format_usd(char *out, size_t n, double value)
{
    static const step steps[] = {{1e12, "T USD"},
                                 {1e9, "B USD"},
                                 {1e6, "M USD"},
                                 {1e3, "k USD"},
                                 {1, "USD"}};

    return FORMAT(steps);
}

char *fr_format_kwh(char *out, size_t n, double value)
{
    static const step steps[] = {
        {1e9, "TWh"}, {1e6, "GWh"}, {1e3, "MWh"}, {1, "kWh"}, {1e-3, "Wh"}};

    return FORMAT(steps);
}

char *fr_format_u64(char *out, size_t n, uint64_t value)
{
    char digits[24];
    size_t n_written = 0;
    int n_digits =
        snprintf(digits, sizeof digits, "%llu", (unsigned long long)value);

    for (int i = 0; i < n_digits && n_written + 1 < n; i++) {
        if (i && (n_digits - i) % 3 == 0)
            out[n_written++] = ',';
        if (n_written + 1 < n)
            out[n_written++] = digits[i];
    }
    if (n)
        out[n_written] = '\0';
    return out;
}
