/* test_yaml.c: YAML as the tree of JSON, and what is refused of it. */
#include "core/document/yaml.h"
#include "tests/check.h"

#include <string.h>

static fr_json *parse(const char *text)
{
    fr_json *json = NULL;
    fr_err err = {0};
    if (!CHECK_OK(fr_yaml_parse("a.yaml", text, strlen(text), &json, &err),
                  &err))
        printf("# %s\n", err.text);
    return json;
}

/* The result as JSON on one line. */
static void check_same(const char *yaml, const char *json)
{
    fr_json *is = parse(yaml);
    fr_json_writer writer;
    fr_buffer text;
    size_t n = 0;
    if (is == NULL)
        return;
    fr_buffer_init(&text);
    fr_json_writer_init(&writer, &text);
    fr_json_copy(&writer, fr_json_root(is));
    for (size_t i = 0; i < text.n; i++)
        if (text.data[i] != '\n' && text.data[i] != ' ')
            text.data[n++] = text.data[i];
    text.n = n;
    fr_buffer_putc(&text, '\0');
    if (!CHECK(strcmp(text.data, json) == 0))
        printf("# '%s' is %s, not %s\n", yaml, text.data, json);
    fr_buffer_release(&text);
    fr_json_destroy(is);
}

static void test_scalars(void)
{
    check_same("a: 1", "{\"a\":1}");
    check_same("[+2385, -23.85, .5, 5., 1e5, 0x2385, 1_000, 5e-05]",
               "[2385,-23.85,0.5,5.0,1e5,9093,1000,5e-05]");
    check_same("[true, True, TRUE, yes, On, false, No, OFF]",
               "[true,true,true,true,true,false,false,false]");
    check_same("[~, null, Null, ]", "[null,null,null]");
    check_same("{a: , b}", "{\"a\":null,\"b\":null}");
    check_same("['no', \"1\", !!str 1, nO, 1.2.3, 10.0.0.1, a:b]",
               "[\"no\",\"1\",\"1\",\"nO\",\"1.2.3\",\"10.0.0.1\",\"a:b\"]");
    check_same("[!!int '3', !!float 2.5, !!bool yes, !!null ~]",
               "[3,2.5,true,null]");
    check_same("a: |\n  x\n  \"y\\\nb: >-\n  p\n  q\n",
               "{\"a\":\"x\\n\\\"y\\\\\\n\",\"b\":\"pq\"}");
}

static void test_nodes(void)
{
    check_same("- 1\n- - 2\n  - {c: [3]}\n", "[1,[2,{\"c\":[3]}]]");
    check_same("%YAML 1.1\n---\na: 1\n...\n", "{\"a\":1}");
    check_same("a: &x\n  p: 1\n  q: [2]\nb: *x\nc: [*x, *x]\n",
               "{\"a\":{\"p\":1,\"q\":[2]},\"b\":{\"p\":1,\"q\":[2]},"
               "\"c\":[{\"p\":1,\"q\":[2]},{\"p\":1,\"q\":[2]}]}");
    check_same("[&x 1, *x, &x 2, *x]", "[1,1,2,2]");
    check_same("{true: 1, 2: 2}", "{\"true\":1,\"2\":2}");
}

static void test_lines(void)
{
    fr_json *json = parse("# a comment\n\na: 1\nb:\n  c: &x\n    - 5\n\n  d: "
                          "6\ne: *x\nf: 7\n");
    if (json == NULL)
        return;
    const fr_json_value *root = fr_json_root(json);
    CHECK(fr_json_line(fr_json_find(root, "a")) == 3);
    const fr_json_value *b = fr_json_find(root, "b");
    CHECK(fr_json_line(fr_json_at(fr_json_find(b, "c"), 0)) == 6);
    CHECK(fr_json_line(fr_json_find(b, "d")) == 8);
    CHECK(fr_json_line(fr_json_find(root, "e")) == 9);
    CHECK(fr_json_line(fr_json_find(root, "f")) == 10);
    fr_json_destroy(json);
}

static void check_refused(const char *text, size_t n, const char *why)
{
    fr_json *json = NULL;
    fr_err err = {0};
    fr_status status = fr_yaml_parse("a.yaml", text, n, &json, &err);
    CHECK(status == FR_INPUT);
    if (!CHECK(strstr(err.text, why) != NULL))
        printf("# '%.60s': %s\n", text, err.text);
    if (status == FR_OK)
        fr_json_destroy(json);
}

static void test_refusals(void)
{
    static const struct {
        const char *text, *why;
    } rows[] = {
        {"", "a.yaml:1: there is no document"},
        {"# nothing\n", "there is no document"},
        {"a: 1\n---\nb: 2\n", "a.yaml:2: a second document"},
        {"a: 1\nb: 2\na: 3\n", "a.yaml:3: "},
        {"a: 1\n b: 2\n", "a.yaml:2: mapping values are not allowed"},
        {"a: [1, 2\nb: 3\n", "a.yaml:2: "},
        {"a: .inf", "a.yaml:1: .inf: give a finite number"},
        {"a: -.Inf", "give a finite number"},
        {"a: .NaN", "give a finite number"},
        {"a: 010", "a.yaml:1: 010 begins with 0"},
        {"a: 1e999", "a.yaml:1: "},
        {"a: !!python/object:os.system x", "a.yaml:1: the tag "},
        {"a: !own {b: 1}", "a.yaml:1: the tag !own is not read"},
        {"a: !!set {b}", "a.yaml:1: the tag "},
        {"a: !!int x", "'x' is not what its tag says"},
        {"a: {<<: {b: 1}}", "merge keys"},
        {"? [a, b]\n: 1\n", "a key that is no plain text"},
        {"a: *x", "a.yaml:1: *x: nothing before has this anchor"},
        {"a: &x [1, *x]", "*x stands within what it is the name of"},
        {"a: \"\\0\"", "a string with a NUL"},
        {"a: \"\xff\"", "a.yaml:1: "},
        {"a: @x", "a.yaml:1: "},
    };
    for (size_t i = 0; i < FR_LENGTH(rows); i++)
        check_refused(rows[i].text, strlen(rows[i].text), rows[i].why);
}

/* Nine anchors, each of nine aliases of the one before: 9^9 numbers. */
static void test_bounds(void)
{
    fr_buffer text;
    fr_buffer_init(&text);
    fr_buffer_puts(&text, "a0: &a0 [1]\n");
    for (int i = 1; i <= 9; i++) {
        fr_buffer_printf(&text, "a%d: &a%d [", i, i);
        for (int k = 0; k < 9; k++)
            fr_buffer_printf(&text, "%s*a%d", k > 0 ? ", " : "", i - 1);
        fr_buffer_puts(&text, "]\n");
    }
    check_refused(text.data, text.n, "aliases come to more than");
    text.n = 0;
    fr_buffer_fill(&text, '[', 100000);
    check_refused(text.data, text.n, "nested deeper");
    text.n = 0;
    for (int i = 0; i < 300; i++)
        fr_buffer_printf(&text, "- &b%d 1\n", i);
    check_refused(text.data, text.n, "more than 256 anchors");
    fr_buffer_release(&text);
}

CHECK_MAIN({"scalars", test_scalars}, {"nodes", test_nodes},
           {"lines", test_lines}, {"refusals", test_refusals},
           {"bounds", test_bounds})
