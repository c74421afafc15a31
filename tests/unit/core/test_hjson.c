/* test_hjson.c: Hjson as the JSON that its page (hjson.github.io/syntax.html)
 * says it stands for, and what is no Hjson. */
#include "core/document/hjson.h"
#include "tests/check.h"

#include <string.h>

static fr_err err;

static void check_same(const char *hjson, const char *json)
{
    fr_buffer out;
    fr_buffer_init(&out);
    if (CHECK_OK(fr_hjson_to_json("a", hjson, strlen(hjson), &out, &err), &err))
        CHECK_STR(fr_buffer_text(&out), json);
    fr_buffer_release(&out);
}

static void check_refused(const char *hjson, const char *why)
{
    fr_buffer out;
    fr_buffer_init(&out);
    CHECK_FAILS(fr_hjson_to_json("a", hjson, strlen(hjson), &out, &err),
                FR_INPUT, &err);
    CHECK_HAS(err.text, why);
    fr_buffer_release(&out);
}

static void test_all(void)
{
    check_same("{\"a\": 1, \"b\": [true, null]}",
               "{\"a\":1,\"b\":[true,null]}");
    check_same("{\"a\": 1, // of mine\n \"b\": [1, 2,], # two\n}",
               "{\"a\":1\n,\"b\":[1,2]\n}");
    check_same("/* a\n b */ {a: 5e8 /* c */, b: 'it\\'s \"x\"'}",
               "\n{\"a\":5e8,\"b\":\"it's \\\"x\\\"\"}");
    check_same("a: 1\nb: false # no\nc: some words, and 2\n",
               "{\"a\":1\n,\"b\":false\n,\"c\":\"some words, and 2\"\n}");
    check_same("{a: 012, b: -1.5\n}", "{\"a\":\"012, b: -1.5\"\n}");
    check_same("{a: '''x\ny'''}", "{\"a\":\"x\\u000ay\"\n}");
    check_same("{url: http://x\n path: a#b\n}",
               "{\"url\":\"http://x\"\n,\"path\":\"a#b\"\n}");
    check_same("", "{}");
    check_refused("{\"a\": 1", "a:1: the text ends inside brackets");
    check_refused("{\n\"a\" 1}", "a:2: ':' should follow a key");
    check_refused("{\"a\": 1}}", "a:1: the text should end here");
    check_refused("{\"a\": }", "a:1: a value should stand here");
    check_refused("{\"a: 1}", "a:1: the string never ends");
    check_refused("{,}", "a:1: a key should stand here");
}

CHECK_MAIN({"all", test_all})
