/*
 * test_fields.c: a struct by its table: every kind of member written, read back
 * and refused where it does not fit.
 */
#include "core/document/fields.h"
#include "tests/check.h"

#include <stdlib.h>
#include <string.h>

typedef enum colour { RED, GREEN, BLUE } colour;

typedef struct inner {
    uint64_t wide;
    double ratio;
} inner;

typedef struct outer {
    int32_t small;
    int64_t large;
    uint32_t mask;
    bool is_on, is_rare;
    colour paint;
    double share;
    char text[8];
    const char *source;
    int32_t n_list;
    int32_t list[3];
    double parts[3];
    inner within;
} outer;

static const char *colour_at(int i)
{
    static const char *const names[] = {"red", "green", "blue"};
    return i < 3 ? names[i] : NULL;
}

static const fr_names by_function = {.at = colour_at};
static const char *const part_names[] = {"first", "second", "third"};
static const fr_names by_list = FR_NAMES(part_names);

static const fr_field inner_fields[] = {
    {"wide", FR_MEMBER(inner, wide)},
    {"ratio", FR_MEMBER(inner, ratio)},
};

static const fr_field fields[] = {
    {"small", FR_MEMBER(outer, small), .initial = -17},
    {"large", FR_MEMBER(outer, large)},
    {"mask", FR_MEMBER(outer, mask)},
    {"on", FR_MEMBER(outer, is_on)},
    {"rare", FR_MEMBER(outer, is_rare), .is_optional = true},
    {"paint", FR_MEMBER(outer, paint), .names = &by_function},
    {"share", FR_MEMBER(outer, share)},
    {"text", FR_MEMBER(outer, text)},
    {"source", FR_MEMBER(outer, source), .names = &by_list},
    {"list", FR_MEMBER(outer, list), .count_offset = offsetof(outer, n_list)},
    {"parts", FR_MEMBER(outer, parts), .names = &by_list},
    {"within", FR_MEMBER(outer, within), .members = inner_fields,
     .n_members = 2},
};
enum { N = sizeof fields / sizeof fields[0] };

static const outer sample = {
    .small = -2385,
    .large = -9007199254740993,
    .mask = 4000000007u,
    .is_on = true,
    .paint = BLUE,
    .share = 0.1 + 0.2,
    .text = "a\"b",
    .source = "second",
    .n_list = 2,
    .list = {7, -13},
    .parts = {0.25, 1e-300, 3},
    .within = {18446744073709551557ull, 1.0 / 3.0},
};

static void test_round_trip(void)
{
    fr_buffer buffer;
    fr_json_writer writer;
    fr_json *json;
    fr_err err = {0};
    outer back;
    memset(&back, 0, sizeof back);
    back.is_rare = true;
    fr_buffer_init(&buffer);
    fr_json_writer_init(&writer, &buffer);
    fr_fields_write(fields, N, &sample, &writer);
    CHECK(strstr(fr_buffer_text(&buffer), "rare") == NULL);
    CHECK_OK(fr_json_parse("f", buffer.data, buffer.n, &json, &err), &err);
    CHECK_OK(fr_fields_read(fr_json_root(json), fields, N, &back, &err), &err);
    CHECK(back.is_rare); /* what is left out stays */
    CHECK_INT(back.small, sample.small);
    CHECK(back.large == sample.large);
    CHECK(back.mask == sample.mask);
    CHECK(back.is_on && back.paint == BLUE && back.share == sample.share);
    CHECK_STR(back.text, "a\"b");
    CHECK_STR(back.source, "second");
    CHECK(back.source == part_names[1]);
    CHECK_INT(back.n_list, 2);
    CHECK(memcmp(back.list, sample.list, sizeof back.list) == 0);
    CHECK(memcmp(back.parts, sample.parts, sizeof back.parts) == 0);
    CHECK(back.within.wide == sample.within.wide &&
          back.within.ratio == sample.within.ratio);
    fr_json_destroy(json);
    fr_buffer_release(&buffer);
}

static void test_refused(void)
{
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"[]", "must be an object, not an array"},
        {"{\"smal\": 1}", "did you mean 'small'"},
        {"{\"small\": 2147483648}", "small is 2147483648: out of range"},
        {"{\"small\": 1.5}", "whole number"},
        {"{\"mask\": 4294967296}", "mask is 4294967296: out of range"},
        {"{\"paint\": \"grey\"}",
         "unknown paint 'grey'; choose from red, green, blue"},
        {"{\"source\": \"fourth\"}",
         "unknown source 'fourth'; choose from first, second, third"},
        {"{\"text\": \"12345678\"}", "text is longer than 7 bytes"},
        {"{\"list\": 3}", "list must be an array"},
        {"{\"list\": [1, 2, 3, 4]}", "list has 4 values; at most 3"},
        {"{\"parts\": {\"fourth\": 1}}", "unknown key 'fourth'"},
        {"{\"within\": 1}", "within must be an object, not a number"},
        {"{\"within\": {\"other\": 1}}", "unknown key 'other'"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        fr_json *json;
        fr_err err = {0};
        outer out = sample;
        CHECK_OK(
            fr_json_parse("f", bad[i].text, strlen(bad[i].text), &json, &err),
            &err);
        CHECK_FAILS(fr_fields_read(fr_json_root(json), fields, N, &out, &err),
                    FR_INPUT, &err);
        CHECK_HAS(err.text, bad[i].says);
        fr_json_destroy(json);
    }
}

static void test_numbers(void)
{
    outer out = sample;
    for (int i = 0; i < N; i++) {
        const fr_field *f = &fields[i];
        if (f->kind == FR_FIELD_BOOL || f->kind <= FR_FIELD_U32 ||
            f->kind == FR_FIELD_DOUBLE) {
            fr_field_set(f, 1, &out);
            CHECK(fr_field_get(f, &out) == 1);
        }
    }
    CHECK(out.is_rare && out.paint == GREEN && out.large == 1);
    fr_field_set(&fields[0], fields[0].initial, &out);
    CHECK_INT(out.small, -17);
}

static void test_names(void)
{
    CHECK_INT(fr_name_find(&by_function, "blue"), BLUE);
    CHECK_INT(fr_name_find(&by_list, "Third"), -1);
    CHECK_STR(fr_name_of(&by_list, 2), "third");
    CHECK_STR(fr_name_of(&by_list, 3), "unknown");
    CHECK_STR(fr_name_of(&by_function, -1), "unknown");
    CHECK(fr_name_at(&by_function, 3) == NULL);
}

CHECK_MAIN({"round_trip", test_round_trip}, {"refused", test_refused},
           {"numbers", test_numbers}, {"names", test_names})
