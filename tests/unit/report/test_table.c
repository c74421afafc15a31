/* test_table.c: tables that are as wide as the terminal, or wider. */
#include "core/base/text.h"
#include "tests/check.h"
#include "tests/rendered.h"

#define REASON                                                                 \
    "global_batch 16 is not a multiple of dp 16 x micro_batch 2; choose "      \
    "micro_batch from 1"

static const char *laid_out(fr_layout *layout, const char *const *headings,
                            const char *const *cells, size_t n, fr_buffer *text)
{
    fr_document document;
    fr_document_init(&document, NULL);
    fr_table *table = fr_document_table(&document, headings);
    for (size_t i = 0; i < n; i++)
        fr_table_text(table, cells[i]);
    return check_rendered(&document, &fr_render_text, layout, text);
}

/* A row that can be, and one that says why it cannot. */
static void print(int n_wide, const char *note, fr_buffer *out)
{
    static const char *const headings[] = {">batch",    ">ranks", ">step",
                                           ">tokens/s", "",       NULL};
    const char *const cells[] = {"1", "16", "779.4 ms", "168177", note,
                                 "2", "16", "",         "",       REASON};
    fr_layout layout = {.n_wide = n_wide};
    laid_out(&layout, headings, cells, FR_LENGTH(cells), out);
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

static void test_table(void)
{
    static const char *const headings[] = {"name", ">n", "", NULL};
    static const char *const cells[] = {"µs", "12", "x", "longer", "3.25", ""};
    fr_buffer text;
    CHECK_STR(laid_out(NULL, headings, cells, 6, &text), "name       n\n"
                                                         "µs        12  x\n"
                                                         "longer  3.25\n");
    fr_buffer_release(&text);
}

/* Too wide: texts are wrapped, then columns move below. */
static void test_table_fits(void)
{
    static const char *const headings[] = {"", "plan", ">step", "why", NULL};
    static const char *const cells[] = {
        "best",   "dp16 tp1 pp1 zero1 bucket 160 MB bf16 flash",
        "1.41 s", "",
        "2",      "dp8 tp2 pp1 flash",
        "1.44 s", "µ 2 % compute, 57.4 GiB less"};
    fr_layout layout = {.n_wide = 64};
    fr_buffer text;
    CHECK_STR(laid_out(&layout, headings, cells, 8, &text),
              "      plan                    step  why\n"
              "best  dp16 tp1 pp1 zero1    1.41 s\n"
              "        bucket 160 MB bf16\n"
              "        flash\n"
              "2     dp8 tp2 pp1 flash     1.44 s  µ 2 % compute, 57.4 GiB\n"
              "                                      less\n");
    fr_buffer_release(&text);
    layout.n_wide = 50;
    CHECK_STR(laid_out(&layout, headings, cells, 8, &text),
              "      plan                                step\n"
              "best  dp16 tp1 pp1 zero1 bucket 160 MB  1.41 s\n"
              "        bf16 flash\n"
              "2     dp8 tp2 pp1 flash                 1.44 s\n"
              "\n"
              "      why\n"
              "2     µ 2 % compute, 57.4 GiB less\n");
    fr_buffer_release(&text);
}

/* A word that is wider than a line is cut, at a character. */
static void test_table_cuts(void)
{
    static const char *const headings[] = {"file", NULL};
    char word[301] = "";
    const char *const cells[] = {word};
    fr_layout layout = {.n_wide = 41};
    fr_buffer text;
    for (int i = 0; i < 150; i++)
        strcat(word, "µ");
    const char *at = laid_out(&layout, headings, cells, 1, &text);
    for (; *at != '\0'; at += strcspn(at, "\n") + 1) {
        size_t n = strcspn(at, "\n");
        CHECK(fr_text_width(at, n) <= 41);
        CHECK(fr_text_utf8_valid(at, n) == n);
    }
    fr_buffer_release(&text);
}

static void test_table_columns(void)
{
    static const char *const headings[] = {"nodes", ">step", ">per rank", NULL};
    static const char *const cells[] = {"1", "2.81 s", "11645"};
    fr_layout layout = {.columns = "Per-Rank,x"};
    fr_buffer text;
    CHECK_STR(laid_out(&layout, headings, cells, 3, &text),
              "nodes  per rank\n"
              "1         11645\n");
    CHECK(layout.found == 1);
    CHECK_STR(layout.known, "nodes, step, per rank");
    fr_buffer_release(&text);
}

CHECK_MAIN({"alone", test_alone}, {"table", test_table},
           {"table_fits", test_table_fits}, {"table_cuts", test_table_cuts},
           {"table_columns", test_table_columns})
