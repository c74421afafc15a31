/* test_json.c: strict reading, exact numbers, lines, writing. */
#include "core/document/json.h"
#include "tests/check.h"

#include <stdlib.h>

static fr_status parse(const char *text, fr_json **out, fr_err *err)
{
    return fr_json_parse("t.json", text, strlen(text), out, err);
}

static const struct {
    const char *text;
    const char *says;
} bad[] = {
    {"", "t.json:1: is empty"},
    {"  \n\n ", "t.json:3: is empty"},
    {"{\"a\":1} x", "t.json:1: found 'x' instead of the end"},
    {"{\"a\":1}\n{}", "t.json:2: found '{'"},
    {"{\"a\":1,\n\"a\":2}", "t.json:2: duplicate key 'a', first on line 1"},
    {"{\"a\":{\"b\":1,\n\"c\":2,\n\"b\":3}}", "t.json:3: duplicate key 'b'"},
    {"{\"\\u0061\":1,\"a\":2}", "duplicate key 'a'"},
    {"01", "must not begin with 0"},
    {"-01", "must not begin with 0"},
    {"[1.]", "digit after the point"},
    {"[.5]", "found '.' instead of a value"},
    {"[1e]", "digit of the exponent"},
    {"[+1]", "found '+'"},
    {"[-]", "a digit"},
    {"[1e999]", "too large"},
    {"[0x10]", "found 'x' instead of the end of the number"},
    {"[NaN]", "found 'N'"},
    {"[Infinity]", "found 'I'"},
    {"[1,]", "found ']' instead of a value"},
    {"{\"a\":1,}", "found '}' instead of a key"},
    {"{a:1}", "a key in double quotes"},
    {"{'a':1}", "a key in double quotes"},
    {"{\"a\" 1}", "':' after a key"},
    {"[1 2]", "',' or ']'"},
    {"[1,\n\n2", "t.json:3: the text ends"},
    {"{\"a\":", "the text ends where a value"},
    {"\"abc", "the string never ends"},
    {"\"a\nb\"", "line break inside a string"},
    {"\"a\tb\"", "control character"},
    {"\"\\x\"", "unknown escape"},
    {"\"\\u12g4\"", "four hexadecimal digits"},
    {"\"\\u0000\"", "\\u0000"},
    {"\"\\ud800\"", "high surrogate"},
    {"\"\\ud800\\u0041\"", "high surrogate"},
    {"\"\\udc00\"", "low surrogate"},
    {"\"\xff\"", "broken UTF-8"},
    {"[1,\n\"\xc3\"]", "t.json:2: broken UTF-8"},
    {"\xef\xbb\xbf{}", "byte order mark"},
    {"tru", "found 't' instead of a value"},
    {"nulll", "found 'l' instead of the end"},
    {"// c\n1", "found '/'"},
    {"[1]]", "found ']' instead of the end"},
};

static void test_bad(void)
{
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        fr_json *json = NULL;
        fr_err err = {FR_OK, ""};
        fr_status status = parse(bad[i].text, &json, &err);
        check_that(status == FR_INPUT && !json, __FILE__, __LINE__,
                   "passes: %s", bad[i].text);
        CHECK_HAS(err.text, bad[i].says);
        if (status == FR_OK)
            fr_json_destroy(json);
    }
}

static void test_nul_and_depth(void)
{
    char nested[140];
    fr_json *json;
    fr_err err;

    CHECK_FAILS(fr_json_parse("t", "[1\0]", 4, &json, &err), FR_INPUT, &err);
    CHECK_HAS(err.text, "NUL");
    memset(nested, '[', 64);
    memset(nested + 64, ']', 64);
    CHECK_OK(fr_json_parse("t", nested, 128, &json, &err), &err);
    fr_json_destroy(json);
    memset(nested, '[', 65);
    memset(nested + 65, ']', 65);
    CHECK_FAILS(fr_json_parse("t", nested, 130, &json, &err), FR_INPUT, &err);
    CHECK_HAS(err.text, "nested deeper than 64");
}

static const char sample[] = "{\n"
                             "  \"name\": \"caf\\u00e9 \\ud83d\\ude00\\n\",\n"
                             "  \"big\": 18446744073709551615,\n"
                             "  \"least\": -9223372036854775808,\n"
                             "  \"over\": 18446744073709551616,\n"
                             "  \"odd\": 9007199254740993,\n"
                             "  \"pi\": 3.141592653589793,\n"
                             "  \"thousand\": 1e3,\n"
                             "  \"yes\": true,\n"
                             "  \"nothing\": null,\n"
                             "  \"Name\": \"other case\",\n"
                             "  \"list\": [1, \"two\",\n"
                             "    3.5],\n"
                             "  \"empty\": {}\n"
                             "}\n";

static void test_values(void)
{
    fr_json *json;
    const fr_json_value *root, *list;
    const char *text = NULL;
    uint64_t u64 = 0;
    int64_t i64 = 0;
    double x = 0;
    bool truth = false;
    fr_err err;

    if (!CHECK_OK(parse(sample, &json, &err), &err))
        return;
    root = fr_json_root(json);
    CHECK_INT(fr_json_n(root), 12);
    CHECK_STR(fr_json_key_at(root, 3), "over");
    CHECK_STR(fr_json_key_at(root, 12), NULL);
    CHECK_OK(fr_json_get_string(root, "name", &text, &err), &err);
    CHECK_STR(text, "caf\xc3\xa9 \xf0\x9f\x98\x80\n");
    CHECK_OK(fr_json_get_string(root, "Name", &text, &err), &err);
    CHECK_STR(text, "other case");
    CHECK_OK(fr_json_get_u64(root, "big", &u64, &err), &err);
    CHECK(u64 == UINT64_MAX);
    CHECK_OK(fr_json_get_i64(root, "least", &i64, &err), &err);
    CHECK(i64 == INT64_MIN);
    CHECK_OK(fr_json_get_i64(root, "odd", &i64, &err), &err);
    CHECK(i64 == 9007199254740993);
    CHECK_OK(fr_json_get_double(root, "pi", &x, &err), &err);
    CHECK(x == 3.141592653589793);
    CHECK_OK(fr_json_get_bool(root, "yes", &truth, &err), &err);
    CHECK(truth);
    CHECK(fr_json_find(root, "nothing") == NULL);
    CHECK(fr_json_find(root, "NAME") == NULL);
    CHECK_FAILS(fr_json_get_i64(root, "thousand", &i64, &err), FR_INPUT, &err);
    CHECK_FAILS(fr_json_get_u64(root, "over", &u64, &err), FR_INPUT, &err);
    CHECK_OK(fr_json_get_array(root, "list", &list, &err), &err);
    CHECK_INT(fr_json_line(fr_json_at(list, 1)), 12);
    CHECK_INT(fr_json_line(fr_json_at(list, 2)), 13);
    CHECK(fr_json_at(list, 3) == NULL);
    CHECK_OK(fr_json_get_i64_or(root, "absent", 2385, &i64, &err), &err);
    CHECK_INT(i64, 2385);
    CHECK_OK(fr_json_get_string_or(root, "nothing", "dflt", &text, &err), &err);
    CHECK_STR(text, "dflt");
    fr_json_destroy(json);
}

#define CHECK_SAYS(call, says)                                                 \
    do {                                                                       \
        CHECK_FAILS(call, FR_INPUT, &err);                                     \
        CHECK_STR(err.text, says);                                             \
    } while (0)

static void test_getter_errors(void)
{
    static const char *const known[] = {"big",  "least", "over",     "odd",
                                        "pie",  "yes",   "thousand", "names",
                                        "list", "empty"};
    fr_json *json;
    const fr_json_value *root, *value;
    const char *text = "kept";
    uint64_t u64 = 7;
    int64_t i64 = 7;
    double x = 7;
    fr_err err;

    if (!CHECK_OK(parse(sample, &json, &err), &err))
        return;
    root = fr_json_root(json);
    CHECK_SAYS(fr_json_get_string(root, "title", &text, &err),
               "t.json:1: 'title' is missing");
    CHECK_SAYS(fr_json_get_string(root, "nothing", &text, &err),
               "t.json:1: 'nothing' is missing");
    CHECK_SAYS(fr_json_get_string(root, "pi", &text, &err),
               "t.json:7: 'pi' must be a string, is 3.141592653589793");
    CHECK_SAYS(fr_json_get_double(root, "Name", &x, &err),
               "t.json:11: 'Name' must be a number, is the string "
               "\"other case\"");
    CHECK_SAYS(fr_json_get_i64(root, "thousand", &i64, &err),
               "t.json:8: 'thousand' must be a whole number, is 1e3");
    CHECK_SAYS(fr_json_get_i64(root, "big", &i64, &err),
               "t.json:3: 'big' must be a whole number, is "
               "18446744073709551615");
    CHECK_SAYS(fr_json_get_u64(root, "least", &u64, &err),
               "t.json:4: 'least' must be a whole number, 0 or more, is "
               "-9223372036854775808");
    CHECK_SAYS(fr_json_get_i64_or(root, "yes", 1, &i64, &err),
               "t.json:9: 'yes' must be a whole number, is true or false");
    CHECK_SAYS(fr_json_get_array(root, "empty", &value, &err),
               "t.json:14: 'empty' must be an array, is an object");
    CHECK_SAYS(fr_json_get_object(root, "list", &value, &err),
               "t.json:12: 'list' must be an object, is an array");
    value = fr_json_at(fr_json_find(root, "list"), 1);
    CHECK_SAYS(fr_json_as_double(value, &x, &err),
               "t.json:12: expected a number, found the string \"two\"");
    CHECK_SAYS(fr_json_get_double(value, "x", &x, &err),
               "t.json:12: expected an object, found the string \"two\"");
    CHECK_SAYS(fr_json_check_keys(root, known, 10, &err),
               "t.json:2: unknown key 'name': did you mean 'names'?");
    CHECK_SAYS(fr_json_check_keys(root, known, 4, &err),
               "t.json:2: unknown key 'name'");
    CHECK_STR(text, "kept");
    CHECK(u64 == 7 && i64 == 7 && x == 7);
    fr_json_destroy(json);
}

static void test_writer(void)
{
    static const double row[] = {0.1, 1e300, -0.0, 5, NAN, INFINITY};
    fr_buffer buffer;
    fr_json_writer w;

    fr_buffer_init(&buffer);
    fr_json_writer_init(&w, &buffer);
    fr_json_begin_object(&w);
    fr_json_put_string(&w, "text", "a\"b\\c\n\x01\x7f\xff\xc3\xa9");
    fr_json_put_string(&w, "none", NULL);
    fr_json_put_u64(&w, "u", UINT64_MAX);
    fr_json_put_i64(&w, "i", INT64_MIN);
    fr_json_put_bool(&w, "b", false);
    fr_json_put_null(&w, "n");
    fr_json_put_doubles(&w, "row", row, 6);
    fr_json_key(&w, "list");
    fr_json_begin_array(&w);
    fr_json_begin_object(&w);
    fr_json_end_object(&w);
    fr_json_begin_array(&w);
    fr_json_end_array(&w);
    fr_json_double(&w, 2.385);
    fr_json_end_array(&w);
    fr_json_end_object(&w);
    CHECK_STR(fr_buffer_text(&buffer),
              "{\n"
              "  \"text\": \"a\\\"b\\\\c\\n\\u0001\\u007f?\xc3\xa9"
              "\",\n"
              "  \"none\": null,\n"
              "  \"u\": 18446744073709551615,\n"
              "  \"i\": -9223372036854775808,\n"
              "  \"b\": false,\n"
              "  \"n\": null,\n"
              "  \"row\": [0.1, 1e+300, -0, 5, null, null],\n"
              "  \"list\": [\n"
              "    {},\n"
              "    [],\n"
              "    2.385\n"
              "  ]\n"
              "}\n");
    fr_buffer_release(&buffer);
}

/* Any double comes back with the same bits. */
static void test_round_trip(void)
{
    uint64_t state = 0x2545f4914f6cdd1du;

    for (int i = 0; i < 20000; i++) {
        double value, back = 0;
        fr_buffer buffer;
        fr_json_writer w;
        fr_json *json;
        fr_err err;

        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        memcpy(&value, &state, sizeof value);
        if (!isfinite(value))
            continue;
        fr_buffer_init(&buffer);
        fr_json_writer_init(&w, &buffer);
        fr_json_double(&w, value);
        if (CHECK_OK(fr_json_parse("t", buffer.data, buffer.n, &json, &err),
                     &err)) {
            CHECK_OK(fr_json_as_double(fr_json_root(json), &back, &err), &err);
            CHECK(memcmp(&value, &back, sizeof value) == 0);
            fr_json_destroy(json);
        }
        fr_buffer_release(&buffer);
    }
}

static void test_load(void)
{
    fr_json *json;
    fr_err err;

    CHECK_FAILS(fr_json_load("/nonexistent/x.json", &json, &err), FR_IO, &err);
    CHECK_STR(err.text, "/nonexistent/x.json: No such file or directory");
    CHECK_FAILS(fr_json_load("/", &json, &err), FR_IO, &err);
}

/* A large object: duplicates are found without a quadratic search. */
static void test_large(void)
{
    fr_buffer buffer;
    fr_json *json;
    fr_err err;

    fr_buffer_init(&buffer);
    fr_buffer_puts(&buffer, "{");
    for (int i = 0; i < 200000; i++)
        fr_buffer_printf(&buffer, "\"k%d\":%d,\n", i, i);
    fr_buffer_puts(&buffer, "\"k777\":1}");
    CHECK_FAILS(fr_json_parse("t", buffer.data, buffer.n, &json, &err),
                FR_INPUT, &err);
    CHECK_STR(err.text, "t:200001: duplicate key 'k777', first on line 778");
    fr_buffer_release(&buffer);
}

/* ---- sinks --------------------------------------------------------------- */

static void put_key(void *context, const char *key)
{
    fr_buffer_printf(context, "%s:", key);
}

static void put_begin(void *context, char container)
{
    fr_buffer_putc(context, container);
}

static void put_end(void *context)
{
    fr_buffer_putc(context, ';');
}

static void put_plain(void *context, const char *text)
{
    fr_buffer_printf(context, "%s ", text);
}

static void put_string(void *context, const char *text)
{
    fr_buffer_printf(context, "'%s' ", text);
}

/* A writer hands on what it is given, in order, and writes nothing itself. */
static void test_sink(void)
{
    static const fr_json_sink sink = {put_key, put_begin, put_end, put_plain,
                                      put_string};
    fr_json_writer w;
    fr_buffer seen;
    fr_buffer_init(&seen);
    fr_json_writer_init_sink(&w, &sink, &seen);
    fr_json_begin_object(&w);
    fr_json_put_double(&w, "x", 2.385);
    fr_json_put_string(&w, "none", NULL);
    fr_json_open_array(&w, "list");
    fr_json_string(&w, "a \"b\"");
    fr_json_bool(&w, true);
    fr_json_end_array(&w);
    fr_json_put_doubles(&w, "row", (const double[]){1, 0.5}, 2);
    fr_json_end_object(&w);
    CHECK_STR(fr_buffer_text(&seen),
              "{x:2.385 none:null list:['a \"b\"' true ;row:r1 0.5 ;;");
    fr_buffer_release(&seen);
}

CHECK_MAIN({"sink", test_sink}, {"bad", test_bad},
           {"nul_and_depth", test_nul_and_depth}, {"values", test_values},
           {"getter_errors", test_getter_errors}, {"writer", test_writer},
           {"round_trip", test_round_trip}, {"load", test_load},
           {"large", test_large})
