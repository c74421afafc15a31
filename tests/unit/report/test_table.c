/* test_table.c: texts that are alone in their row of a table. */
#include "core/base/layout.h"
#include "core/base/text.h"
#include "report/document/table.h"
#include "tests/check.h"

#define REASON                                                                 \
    "global_batch 16 is not a multiple of dp 16 x micro_batch 2; choose "      \
    "micro_batch from 1"

/* A row that can be, and one that says why it cannot. */
static void print(int n_wide, const char *note, fr_buffer *out)
{
    static const char *const headings[] = {">batch",    ">ranks", ">step",
                                           ">tokens/s", "",       NULL};
    static fr_layout layout;
    fr_table table;
    fr_err err;
    layout = (fr_layout){.n_wide = n_wide};
    fr_buffer_init(out);
    out->layout = &layout;
    fr_table_init(&table, headings);
    const char *const cells[] = {"1", "16", "779.4 ms", "168177", note,
                                 "2", "16", "",         "",       REASON};
    for (size_t i = 0; i < FR_LENGTH(cells); i++)
        fr_table_text(&table, cells[i]);
    CHECK_OK(fr_table_finish(&table, out, &err), &err);
}

static void test_alone(void)
{
    fr_buffer text;
    /* Beside what the row has, in all that is left of the line. */
    print(72, "best", &text);
    CHECK_STR(fr_buffer_text(&text),
              "batch  ranks      step  tokens/s\n"
              "    1     16  779.4 ms    168177  best\n"
              "    2     16  global_batch 16 is not a multiple of dp 16 x "
              "micro_batch\n"
              "                2; choose micro_batch from 1\n");
    fr_buffer_release(&text);
    /* Below it where little is left; nothing else moves. */
    print(50, "", &text);
    CHECK_STR(fr_buffer_text(&text),
              "batch  ranks      step  tokens/s\n"
              "    1     16  779.4 ms    168177\n"
              "    2     16\n"
              "       global_batch 16 is not a multiple of dp\n"
              "       16 x micro_batch 2; choose micro_batch from\n"
              "       1\n");
    fr_buffer_release(&text);
    /* Wide enough for all: the column is its own. */
    print(140, "best", &text);
    CHECK_HAS(fr_buffer_text(&text),
              "    2     16                      " REASON "\n");
    fr_buffer_release(&text);
}

CHECK_MAIN({"alone", test_alone})
