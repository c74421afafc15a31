/* test_units.c: quantities, and what is refused. */
#include "core/base/units.h"
#include "tests/check.h"

typedef struct good_row {
    fr_quantity quantity;
    const char *text;
    double value;
} good_row;

static const good_row good[] = {
    {FR_QUANTITY_BYTES, "80GiB", 85899345920.0},
    {FR_QUANTITY_BYTES, "25MB", 25e6},
    {FR_QUANTITY_BYTES, "1.5 KiB", 1536},
    {FR_QUANTITY_BYTES, "512B", 512},
    {FR_QUANTITY_BYTES, "0B", 0},
    {FR_QUANTITY_BYTES, "64kb", 8000},
    {FR_QUANTITY_BYTES, "64Kib", 8192},
    {FR_QUANTITY_BYTES, "2.385TB", 2385e9},
    {FR_QUANTITY_BYTES, "1.1MB", 1100000},
    {FR_QUANTITY_BPS, "25GB/s", 25e9},
    {FR_QUANTITY_BPS, "25GBps", 25e9},
    {FR_QUANTITY_BPS, "200Gb/s", 25e9},
    {FR_QUANTITY_BPS, "200Gbps", 25e9},
    {FR_QUANTITY_BPS, "1MiBps", 1048576},
    {FR_QUANTITY_BPS, "1Mibps", 131072},
    {FR_QUANTITY_BPS, "0.5kB/s", 500},
    {FR_QUANTITY_BPS, " 125 MB/s ", 125e6},
    {FR_QUANTITY_BPS, "8bit/s", 1},
    {FR_QUANTITY_S, "3us", 3e-6},
    {FR_QUANTITY_S, "3\xc2\xb5s", 3e-6},
    {FR_QUANTITY_S, "2.5ms", 2.5e-3},
    {FR_QUANTITY_S, "1h", 3600},
    {FR_QUANTITY_S, "90min", 5400},
    {FR_QUANTITY_S, "2d", 172800},
    {FR_QUANTITY_S, "700ps", 7e-10},
    {FR_QUANTITY_S, "0s", 0},
    {FR_QUANTITY_S, "1e-3s", 1e-3},
    {FR_QUANTITY_FLOPS, "312TFLOP/s", 312e12},
    {FR_QUANTITY_FLOPS, "312TFLOPS", 312e12},
    {FR_QUANTITY_FLOPS, "1Gf", 1e9},
    {FR_QUANTITY_W, "700W", 700},
    {FR_QUANTITY_W, "1.2kW", 1200},
    {FR_QUANTITY_W, "350mW", 0.35},
    {FR_QUANTITY_USD_PER_H, "2.5USD/h", 2.5},
    {FR_QUANTITY_USD_PER_H, "$2.5/h", 2.5},
    {FR_QUANTITY_COUNT, "7B", 7e9},
    {FR_QUANTITY_COUNT, "8k", 8000},
    {FR_QUANTITY_COUNT, "8Ki", 8192},
    {FR_QUANTITY_COUNT, "1.5M", 1500000},
    {FR_QUANTITY_COUNT, "42", 42},
    {FR_QUANTITY_FRAC, "25%", 0.25},
    {FR_QUANTITY_FRAC, "0.25", 0.25},
    {FR_QUANTITY_HZ, "2.4GHz", 2.4e9},
};

static void test_good(void)
{
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        double value = -1;
        fr_err err = {FR_OK, "untouched"};
        CHECK_OK(
            fr_parse_quantity(good[i].quantity, good[i].text, 0, &value, &err),
            &err);
        check_that(value == good[i].value, __FILE__, __LINE__, "%s gives %.17g",
                   good[i].text, value);
        CHECK_STR(err.text, "untouched");
    }
}

static const struct {
    fr_quantity quantity;
    const char *text;
    const char *says;
} bad[] = {
    {FR_QUANTITY_BYTES, "80", "has no unit: expected an amount of bytes"},
    {FR_QUANTITY_BYTES, "", "is no number"},
    {FR_QUANTITY_BYTES, "GiB", "is no number"},
    {FR_QUANTITY_BYTES, "80gib", "unknown unit 'gib'"},
    {FR_QUANTITY_BYTES, "80GiBs", "unknown unit"},
    {FR_QUANTITY_BYTES, "80GiB x", "unknown unit"},
    {FR_QUANTITY_BYTES, "-1B", "negative"},
    {FR_QUANTITY_BYTES, "0.5B", "not whole"},
    {FR_QUANTITY_BYTES, "1e999B", "too large"},
    {FR_QUANTITY_BYTES, "nanB", "is no number"},
    {FR_QUANTITY_BYTES, "infB", "is no number"},
    {FR_QUANTITY_BYTES, "0x10B", "unknown unit 'x10B'"},
    {FR_QUANTITY_BYTES, "1,5GB", "unknown unit"},
    {FR_QUANTITY_BPS, "25", "has no unit: expected a rate such as 25GB/s"},
    {FR_QUANTITY_BPS, "25GB", "unknown unit 'GB'"},
    {FR_QUANTITY_BPS, "0GB/s", "is zero"},
    {FR_QUANTITY_BPS, "-25GB/s", "negative"},
    {FR_QUANTITY_BPS, "25 G B/s", "unknown unit"},
    {FR_QUANTITY_BPS, "25mB/s", "unknown unit"},
    {FR_QUANTITY_S, "3", "has no unit"},
    {FR_QUANTITY_S, "3m", "unknown unit 'm'"},
    {FR_QUANTITY_S, "3Ms ", NULL},
    {FR_QUANTITY_S, "-3us", "negative"},
    {FR_QUANTITY_FLOPS, "312T", "unknown unit 'T'"},
    {FR_QUANTITY_FLOPS, "0TFLOP/s", "is zero"},
    {FR_QUANTITY_W, "700", "has no unit"},
    {FR_QUANTITY_USD_PER_H, "2.5", "has no unit"},
    {FR_QUANTITY_USD_PER_H, "2.5USD", "unknown unit"},
    {FR_QUANTITY_USD_PER_H, "$2.5", "has no unit"},
    {FR_QUANTITY_COUNT, "7.5", "not whole"},
    {FR_QUANTITY_COUNT, "7x", "unknown unit 'x'"},
    {FR_QUANTITY_COUNT, "-7", "negative"},
    {FR_QUANTITY_FRAC, "101%", "above 100%"},
    {FR_QUANTITY_FRAC, "1.5", "above 100%"},
};

static void test_bad(void)
{
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        double value = 2.385;
        fr_err err;
        fr_status status =
            fr_parse_quantity(bad[i].quantity, bad[i].text, 0, &value, &err);
        if (!bad[i].says) {
            CHECK_OK(status, &err);
            continue;
        }
        check_that(status == FR_INPUT, __FILE__, __LINE__, "%s passes as %g",
                   bad[i].text, value);
        CHECK(value == 2.385);
        if (status != FR_OK)
            CHECK_HAS(err.text, bad[i].says);
    }
}

static void test_flags(void)
{
    double value = 0;
    fr_err err;

    CHECK_OK(fr_parse_quantity(FR_QUANTITY_BPS, "125e6", FR_UNIT_SIMGRID,
                               &value, &err),
             &err);
    CHECK(value == 125e6);
    CHECK_OK(
        fr_parse_quantity(FR_QUANTITY_S, "2m", FR_UNIT_SIMGRID, &value, &err),
        &err);
    CHECK(value == 120);
    CHECK_FAILS(
        fr_parse_quantity(FR_QUANTITY_W, "7", FR_UNIT_SIMGRID, &value, &err),
        FR_INPUT, &err);
    CHECK_FAILS(fr_parse_quantity(FR_QUANTITY_BPS, "0B/s", FR_UNIT_SIMGRID,
                                  &value, &err),
                FR_INPUT, &err);
    CHECK_OK(fr_parse_quantity(FR_QUANTITY_BPS, "0B/s", FR_ZERO_IS_FINE, &value,
                               &err),
             &err);
    CHECK(value == 0);
}

static void test_whole(void)
{
    uint64_t n = 0;
    int64_t i = 0;
    bool truth = false;
    double x;
    fr_err err;

    CHECK_OK(fr_parse_bytes("18446744073709551615B", &n, &err), &err);
    CHECK(n == UINT64_MAX);
    CHECK_OK(fr_parse_count("9007199254740993", &n, &err), &err);
    CHECK(n == 9007199254740993u);
    CHECK_OK(fr_parse_bytes("9007199254740993KiB", &n, &err), &err);
    CHECK(n == 9007199254740993u * 1024);
    CHECK_OK(fr_parse_bytes("007kB", &n, &err), &err);
    CHECK(n == 7000);
    CHECK_FAILS(fr_parse_bytes("18446744073709551616B", &n, &err), FR_INPUT,
                &err);
    CHECK_FAILS(fr_parse_bytes("16EiB", &n, &err), FR_INPUT, &err);
    CHECK_OK(fr_parse_i64("-9223372036854775808", &i, &err), &err);
    CHECK(i == INT64_MIN);
    CHECK_FAILS(fr_parse_i64("9223372036854775808", &i, &err), FR_INPUT, &err);
    CHECK_FAILS(fr_parse_i64("12a", &i, &err), FR_INPUT, &err);
    CHECK_FAILS(fr_parse_i64(" 12", &i, &err), FR_INPUT, &err);
    CHECK_FAILS(fr_parse_i64("", &i, &err), FR_INPUT, &err);
    CHECK_OK(fr_parse_u64("18446744073709551615", &n, &err), &err);
    CHECK_FAILS(fr_parse_u64("-1", &n, &err), FR_INPUT, &err);
    CHECK_FAILS(fr_parse_u64("1.0", &n, &err), FR_INPUT, &err);
    CHECK_OK(fr_parse_double("-2.385e-3", &x, &err), &err);
    CHECK(x == -2.385e-3);
    CHECK_FAILS(fr_parse_double("1e999", &x, &err), FR_INPUT, &err);
    CHECK_FAILS(fr_parse_double("nan", &x, &err), FR_INPUT, &err);
    CHECK_FAILS(fr_parse_double("1 ", &x, &err), FR_INPUT, &err);
    CHECK_OK(fr_parse_bool("yes", &truth, &err), &err);
    CHECK(truth);
    CHECK_FAILS(fr_parse_bool("maybe", &truth, &err), FR_INPUT, &err);
}

static void test_format(void)
{
    char text[FR_FORMAT_MAX], tiny[4];

    CHECK_STR(fr_format_bytes(text, sizeof text, 85899345920.0), "80 GiB");
    CHECK_STR(fr_format_bytes(text, sizeof text, 1536), "1.50 KiB");
    CHECK_STR(fr_format_bytes(text, sizeof text, 0), "0 B");
    CHECK_STR(fr_format_s(text, sizeof text, 45.6e-6), "45.6 us");
    CHECK_STR(fr_format_s(text, sizeof text, 0.12345), "123.5 ms");
    CHECK_STR(fr_format_s(text, sizeof text, 0), "0 s");
    CHECK_STR(fr_format_s(text, sizeof text, 7200), "2 h");
    CHECK_STR(fr_format_s(text, sizeof text, 61.5), "61.5 s");
    CHECK_STR(fr_format_Bps(text, sizeof text, 12.5e9), "12.5 GB/s");
    CHECK_STR(fr_format_flops(text, sizeof text, 312e12), "312 TFLOP/s");
    CHECK_STR(fr_format_count(text, sizeof text, 124439808), "124.4 M");
    CHECK_STR(fr_format_count(text, sizeof text, 999999), "1.00 M");
    CHECK_STR(fr_format_count(text, sizeof text, NAN), "-");
    CHECK_STR(fr_format_u64(text, sizeof text, 124439808), "124,439,808");
    CHECK_STR(fr_format_u64(text, sizeof text, 999), "999");
    CHECK_STR(fr_format_u64(text, sizeof text, UINT64_MAX),
              "18,446,744,073,709,551,615");
    CHECK_STR(fr_format_u64(tiny, sizeof tiny, 1234567), "1,2");
    fr_format_bytes(text, sizeof text, -1.7e308);
    CHECK(strlen(text) < FR_FORMAT_MAX);
}

/* A value that is written reads back within its digits. */
static void test_round_trip(void)
{
    for (double rate = 1.2385; rate < 1e15; rate *= 7.31) {
        char text[FR_FORMAT_MAX];
        double back = 0;
        fr_err err;
        fr_format_Bps(text, sizeof text, rate);
        CHECK_OK(fr_parse_quantity(FR_QUANTITY_BPS, text, 0, &back, &err),
                 &err);
        CHECK_NEAR(back, rate, 6e-3);
        fr_format_s(text, sizeof text, rate / 1e9);
        CHECK_OK(fr_parse_s(text, &back, &err), &err);
        CHECK_NEAR(back, rate / 1e9, 6e-3);
    }
}

CHECK_MAIN({"good", test_good}, {"bad", test_bad}, {"flags", test_flags},
           {"whole", test_whole}, {"format", test_format},
           {"round_trip", test_round_trip})
