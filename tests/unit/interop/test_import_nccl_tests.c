/* test_import_nccl_tests.c: output of nccl-tests as launchers label it, and
 * --test. */
#include "core/system/fileio.h"
#include "interop/import/import.h"
#include "tests/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static fr_err err;

static fr_status parse(const char *text, const char *test, fr_import *out)
{
    fr_import_options options = {.test = test};
    int kind = fr_import_kind_find("nccl-tests");
    return fr_import_parse(kind, "out.txt", text, strlen(text), &options, out,
                           &err);
}

/* A file of the fixtures with a label before each line. */
static char *labelled(const char *name, const char *label)
{
    char path[128], *text = NULL;
    fr_buffer out;
    snprintf(path, sizeof path, "tests/golden/fixtures/import/%s", name);
    if (!CHECK_OK(fr_file_read(path, 0, &text, NULL, &err), &err))
        return NULL;
    fr_buffer_init(&out);
    for (char *at = text; *at != '\0';) {
        size_t n = strcspn(at, "\n");
        fr_buffer_printf(&out, "%s%.*s\n", label, (int)n, at);
        at += n + (at[n] != '\0');
    }
    free(text);
    return out.data;
}

static void test_labels(void)
{
    static const char *const labels[] = {"",
                                         "[1,0]<stdout>:",
                                         "[1,0]<stdout>: ",
                                         "[12345,0]<stdout>:",
                                         "[0] ",
                                         "[default0]:",
                                         "0: ",
                                         " 0: ",
                                         "000: ",
                                         "node-1.x: "};
    fr_import a;
    double first_s = 0;
    for (size_t i = 0; i < FR_LENGTH(labels); i++) {
        char *text = labelled("all_reduce.txt", labels[i]);
        if (text != NULL &&
            CHECK_OK(parse(text, "all_reduce_perf", &a), &err)) {
            CHECK_STR(a.profile.comm[0].op, "all_reduce");
            if (i == 0)
                first_s = a.profile.comm[0].sample.median_s;
            CHECK(first_s > 0 && a.profile.comm[0].sample.median_s == first_s);
            fr_import_release(&a);
        }
        free(text);
    }
}

/* Older versions do not name the test. */
static void test_named(void)
{
    char *text = labelled("old_style.txt", "[1,0]<stdout>:");
    fr_import a;
    if (text == NULL)
        return;
    CHECK_FAILS(parse(text, NULL, &a), FR_INPUT, &err);
    CHECK_HAS(err.text, "give --test all_reduce");
    CHECK_FAILS(parse(text, "all_redcue", &a), FR_USAGE, &err);
    if (CHECK_OK(parse(text, "all_gather_perf", &a), &err)) {
        CHECK_STR(a.profile.comm[0].op, "all_gather");
        CHECK_INT(a.profile.comm[0].n_group, 2);
        fr_import_release(&a);
    }
    free(text);
    text = labelled("all_reduce.txt", "");
    fr_buffer whole;
    fr_buffer_init(&whole);
    fr_buffer_printf(&whole, "%s# Collective test concluded: all_reduce_perf\n",
                     text);
    CHECK_FAILS(parse(fr_buffer_text(&whole), "alltoall", &a), FR_INPUT, &err);
    fr_buffer_release(&whole);
    CHECK_HAS(err.text, "the file is of all_reduce, and --test says alltoall");
    free(text);
    CHECK_FAILS(parse("", NULL, &a), FR_INPUT, &err);
    CHECK_HAS(err.text, "out.txt:1: which test it was");
}

CHECK_MAIN({"labels", test_labels}, {"named", test_named})
