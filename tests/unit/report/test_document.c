/*
 * test_document.c: every kind of node as every renderer shows it, and a
 * renderer that the list does not have.
 */
#include "core/base/text.h"
#include "report/document/renderer.h"
#include "tests/rendered.h"

#include <stdlib.h>

/* A table that is data too, of which two rows differ in what is known. */
static void add_records(fr_document *document, bool is_main)
{
    static const fr_column columns[] = {
        {"stage", "name"},   {">time", "took_s"}, {">memory", "peak_bytes"},
        {">share", "share"}, {"", NULL},          {NULL, "is_last"},
        {">cost", "usd"},    {">n", "n"}};
    fr_table *table =
        fr_document_records(document, "stages", columns, FR_LENGTH(columns));
    table->is_main = is_main;
    fr_table_text(table, "a|b, *c*");
    fr_table_s(table, 2.3851);
    fr_table_bytes(table, 3221225472.0);
    fr_table_share(table, 0.37519);
    fr_table_bar(table, 0.25, FR_BAR_CELLS);
    fr_table_bool(table, false);
    fr_table_usd(table, 1234.5);
    fr_table_count(table, 17);
    fr_table_text(table, "second");
    fr_table_s(table, NAN);
    fr_table_blank(table, 1);
    fr_table_likely(table, 0.9971);
    fr_table_bar(table, 1, FR_BAR_CELLS);
    fr_table_bool(table, true);
    fr_table_usd(table, NAN);
    fr_table_count(table, -3);
}

static fr_plot *make_plot(void)
{
    fr_plot *plot = calloc(1, sizeof *plot);
    if (plot == NULL)
        return NULL;
    plot->points = calloc(2, sizeof *plot->points);
    plot->n = 2;
    plot->x_title = "ranks";
    plot->y_title = "tokens/s";
    plot->ideal_slope = 100;
    plot->points[0].x = 1;
    plot->points[0].y = 100;
    plot->points[1].x = 8;
    plot->points[1].y = 700;
    plot->points[1].is_marked = true;
    return plot;
}

static fr_lanes *make_lanes(void)
{
    fr_lanes *lanes = calloc(1, sizeof *lanes);
    if (lanes == NULL)
        return NULL;
    lanes->rows = calloc(1, sizeof *lanes->rows);
    lanes->n = 1;
    lanes->end_ps = 1000000;
    lanes->n_others = 5;
    lanes->rows[0].rank = 3;
    lanes->rows[0].name = "compute";
    const fr_lane_span spans[] = {{0, 500000, FR_USE_FORWARD},
                                  {500000, 1000000, FR_USE_BACKWARD}};
    for (int i = 0; i < 2; i++)
        CHECK(fr_vec_push(&lanes->rows[0].spans, spans[i]) == FR_OK);
    return lanes;
}

/* All kinds of nodes; the line that is last has no end. */
static void build(fr_document *document, bool is_main)
{
    fr_json_writer *data = &document->data;
    fr_document_init(document, "forerun.test/1");
    fr_document_heading(document, "model on <%s>", "cluster");
    fr_json_put_double(data, "step_s", 0.31731);
    fr_document_printf(document, "one %d", 1);
    fr_json_open_object(data, "memory");
    fr_document_puts(document, ", the same line\n\n  an item: [x]\n");
    fr_json_put_u64(data, "peak_bytes", UINT64_C(9007199254740993));
    fr_json_put_bool(data, "fits", true);
    fr_json_put_null(data, "why");
    fr_json_end_object(data);
    add_records(document, is_main);
    fr_json_put_doubles(data, "loss", (const double[]){5.5, 4.25}, 2);
    fr_json_open_array(data, "names");
    fr_json_string(data, "comma, \"quote\"");
    fr_json_end_array(data);
    fr_document_hanging(document, "habits: first; second", 2);
    fr_document_verbatim(document, "  as it\n    is\n");
    fr_document_puts(document, "# no heading\nthe end");
}

static void test_text(void)
{
    fr_layout layout = {.n_wide = 60, .is_ascii = true};
    fr_document document;
    fr_buffer text;
    build(&document, false);
    CHECK_STR(check_rendered(&document, &fr_render_text, &layout, &text),
              "model on <cluster>\n"
              "one 1, the same line\n"
              "\n"
              "  an item: [x]\n"
              "stage       time  memory   share\n"
              "a|b, *c*  2.39 s   3 GiB  37.5 %  ██████\n"
              "second         -           >99 %  ████████████████████████\n"
              "\n"
              "stage           cost   n\n"
              "a|b, *c*  1.23 k USD  17\n"
              "second             -  -3\n"
              "habits: first; second\n"
              "  as it\n    is\n"
              "# no heading\nthe end\n");
    fr_buffer_release(&text);
}

static void test_json(void)
{
    fr_document document;
    fr_buffer text;
    build(&document, false);
    CHECK_STR(check_rendered(&document, &fr_render_json, NULL, &text),
              "{\n"
              "  \"schema\": \"forerun.test/1\",\n"
              "  \"step_s\": 0.31731,\n"
              "  \"memory\": {\n"
              "    \"peak_bytes\": 9007199254740993,\n"
              "    \"fits\": true,\n"
              "    \"why\": null\n"
              "  },\n"
              "  \"stages\": [\n"
              "    {\n"
              "      \"name\": \"a|b, *c*\",\n"
              "      \"took_s\": 2.3851,\n"
              "      \"peak_bytes\": 3221225472,\n"
              "      \"share\": 0.37519,\n"
              "      \"is_last\": false,\n"
              "      \"usd\": 1234.5,\n"
              "      \"n\": 17\n"
              "    },\n"
              "    {\n"
              "      \"name\": \"second\",\n"
              "      \"took_s\": null,\n"
              "      \"peak_bytes\": null,\n"
              "      \"share\": 0.9971,\n"
              "      \"is_last\": true,\n"
              "      \"usd\": null,\n"
              "      \"n\": -3\n"
              "    }\n"
              "  ],\n"
              "  \"loss\": [5.5, 4.25],\n"
              "  \"names\": [\n"
              "    \"comma, \\\"quote\\\"\"\n"
              "  ]\n"
              "}\n\n");
    fr_buffer_release(&text);
}

static void test_csv(void)
{
    fr_document document;
    fr_buffer text;
    build(&document, true);
    CHECK_STR(check_rendered(&document, &fr_render_csv, NULL, &text),
              "name,took_s,peak_bytes,share,is_last,usd,n\n"
              "\"a|b, *c*\",2.3851,3221225472,0.37519,0,1234.5,17\n"
              "second,,,0.9971,1,,-3\n");
    fr_buffer_release(&text);
    /* Without a main table it is all values, by their paths. */
    build(&document, false);
    CHECK_STR(check_rendered(&document, &fr_render_csv, NULL, &text),
              "key,value\n"
              "schema,forerun.test/1\n"
              "step_s,0.31731\n"
              "memory.peak_bytes,9007199254740993\n"
              "memory.fits,true\n"
              "memory.why,\n"
              "stages.0.name,\"a|b, *c*\"\n"
              "stages.0.took_s,2.3851\n"
              "stages.0.peak_bytes,3221225472\n"
              "stages.0.share,0.37519\n"
              "stages.0.is_last,0\n"
              "stages.0.usd,1234.5\n"
              "stages.0.n,17\n"
              "stages.1.name,second\n"
              "stages.1.took_s,\n"
              "stages.1.peak_bytes,\n"
              "stages.1.share,0.9971\n"
              "stages.1.is_last,1\n"
              "stages.1.usd,\n"
              "stages.1.n,-3\n"
              "loss.0,5.5\n"
              "loss.1,4.25\n"
              "names.0,\"comma, \"\"quote\"\"\"\n");
    fr_buffer_release(&text);
}

static void test_markdown(void)
{
    fr_document document;
    fr_buffer text;
    build(&document, false);
    CHECK_STR(
        check_rendered(&document, &fr_render_markdown, NULL, &text),
        "## model on \\<cluster>\n"
        "\n"
        "one 1, the same line\n"
        "\n"
        "- an item: \\[x]\n"
        "\n"
        "| stage | time | memory | share |  | cost | n |\n"
        "| --- | ---: | ---: | ---: | --- | ---: | ---: |\n"
        "| a\\|b, \\*c\\* | 2.39 s | 3 GiB | 37.5 % | ██████ | 1.23 k USD "
        "| 17 |\n"
        "| second | - |  | >99 % | ████████████████████████ | - | -3 "
        "|\n"
        "\n"
        "habits: first; second\n"
        "\n"
        "```\n  as it\n    is\n```\n"
        "\n"
        "\\# no heading\n"
        "\n"
        "the end\n");
    fr_buffer_release(&text);
}

static void build_charts(fr_document *document)
{
    fr_document_init(document, NULL);
    fr_document_plot(document, make_plot());
    fr_document_lanes(document, make_lanes());
}

static void test_charts(void)
{
    fr_layout layout = {.n_wide = 24, .is_ascii = true};
    fr_document document;
    fr_buffer text;
    build_charts(&document);
    check_rendered(&document, &fr_render_text, &layout, &text);
    CHECK_HAS(fr_buffer_text(&text), "   800.0 |      ");
    CHECK_HAS(fr_buffer_text(&text), "K\n");
    CHECK_HAS(fr_buffer_text(&text), "   100.0 |o");
    CHECK_HAS(fr_buffer_text(&text), "8 ranks\n");
    CHECK_HAS(fr_buffer_text(&text), "   3 compute  fffffbbbbb\n"
                                     "... and 5 ranks more\n");
    fr_buffer_release(&text);
    build_charts(&document);
    check_rendered(&document, &fr_render_markdown, &layout, &text);
    CHECK_HAS(fr_buffer_text(&text), "```\n   800.0 |");
    CHECK_HAS(fr_buffer_text(&text), "              f forward\n"
                                     "              b backward\n```\n");
    fr_buffer_release(&text);
    build_charts(&document);
    CHECK_STR(check_rendered(&document, &fr_render_json, NULL, &text),
              "{}\n\n");
    fr_buffer_release(&text);
    build_charts(&document);
    CHECK_STR(check_rendered(&document, &fr_render_csv, NULL, &text),
              "key,value\n");
    fr_buffer_release(&text);
}

/* The lane has every use, each in its cell, so the legend explains them all:
 * no line is wider than the layout, however many lines that takes. */
static void test_legend(void)
{
    static const int widths[] = {60, 80, 100, 103, 104, 200};
    for (size_t i = 0; i < FR_LENGTH(widths); i++) {
        fr_layout layout = {.n_wide = widths[i], .is_ascii = i % 2 == 0};
        fr_document document;
        fr_buffer text;
        fr_lanes *lanes = make_lanes();
        CHECK(lanes != NULL);
        if (lanes == NULL)
            return;
        lanes->n_others = 0;
        lanes->rows[0].spans.n = 0;
        for (int k = 0; k < FR_USE_N; k++) {
            const int64_t end_ps = lanes->end_ps;
            const fr_lane_span span = {k * end_ps / FR_USE_N,
                                       (k + 1) * end_ps / FR_USE_N,
                                       (fr_lane_use)k};
            CHECK(fr_vec_push(&lanes->rows[0].spans, span) == FR_OK);
        }
        fr_document_init(&document, NULL);
        fr_document_lanes(&document, lanes);
        char *line = NULL, *rest = NULL;
        check_rendered(&document, &fr_render_text, &layout, &text);
        CHECK_HAS(fr_buffer_text(&text), " waiting for another rank");
        CHECK_HAS(fr_buffer_text(&text), " other\n");
        for (line = strtok_r(text.data, "\n", &rest); line != NULL;
             line = strtok_r(NULL, "\n", &rest))
            CHECK(fr_text_width(line, strlen(line)) <= (size_t)widths[i]);
        fr_buffer_release(&text);
    }
}

/* A part for one audience is not shown to the other. */
static void test_audience(void)
{
    fr_document document;
    fr_buffer text;
    for (int i = 0; i < 2; i++) {
        fr_document_init(&document, NULL);
        document.audience = i == 0 ? FR_FOR_DATA : FR_FOR_READERS;
        fr_document_heading(&document, "title");
        fr_json_put_i64(&document.data, "n", 7);
        add_records(&document, false);
        document.audience = FR_FOR_ALL;
        check_rendered(&document, i == 0 ? &fr_render_text : &fr_render_json,
                       NULL, &text);
        CHECK_STR(fr_buffer_text(&text), i == 0 ? "" : "{}\n\n");
        fr_buffer_release(&text);
    }
}

/* Records of which there are none are an empty array, and no table. */
static void test_no_records(void)
{
    static const fr_column columns[] = {{"name", "name"}};
    const fr_renderer *const renderers[] = {&fr_render_text, &fr_render_json,
                                            &fr_render_markdown};
    static const char *const expected[] = {"", "{\n  \"all\": []\n}\n\n", ""};
    for (size_t i = 0; i < FR_LENGTH(renderers); i++) {
        fr_document document;
        fr_buffer text;
        fr_document_init(&document, NULL);
        fr_document_records(&document, "all", columns, 1);
        CHECK_STR(check_rendered(&document, renderers[i], NULL, &text),
                  expected[i]);
        fr_buffer_release(&text);
    }
}

/* ---- a renderer of one's own -------------------------------------------- */

typedef struct count_state {
    int n[FR_NODE_CLOSE + 1];
} count_state;

static void count(fr_rendering *r, const fr_node *node)
{
    ((count_state *)r->state)->n[node->kind]++;
}

static void print_counts(fr_rendering *r)
{
    const count_state *state = r->state;
    for (size_t i = 0; i < FR_LENGTH(state->n); i++)
        fr_buffer_printf(r->out, "%d ", state->n[i]);
}

static void test_plugged(void)
{
    static const fr_renderer counter = {.name = "count",
                                        .ending = ".count",
                                        .state_bytes = sizeof(count_state),
                                        .show = {[FR_NODE_HEADING] = count,
                                                 [FR_NODE_LINE] = count,
                                                 [FR_NODE_TABLE] = count,
                                                 [FR_NODE_OPEN] = count,
                                                 [FR_NODE_VALUE] = count,
                                                 [FR_NODE_CLOSE] = count},
                                        .end = print_counts};
    fr_document document;
    fr_buffer text;
    build(&document, false);
    /* heading, line, verbatim, table, plot, lanes, open, value, close */
    CHECK_STR(check_rendered(&document, &counter, NULL, &text),
              "1 6 0 1 0 0 4 8 3 ");
    fr_buffer_release(&text);
}

/* Names of formats are those of the list, files say theirs by the ending. */
static void test_names(void)
{
    const fr_renderer *found = NULL;
    fr_err err;
    for (int i = 0; fr_renderer_at(i) != NULL; i++) {
        char path[40];
        CHECK_STR(fr_name_at(&fr_renderer_names, i), fr_renderer_at(i)->name);
        snprintf(path, sizeof path, "a.b/report%s", fr_renderer_at(i)->ending);
        CHECK_OK(fr_renderer_of_file(path, &found, &err), &err);
        CHECK(found == fr_renderer_at(i));
    }
    CHECK(fr_renderer_at(-1) == NULL);
    CHECK_FAILS(fr_renderer_of_file("page.html", &found, &err), FR_USAGE, &err);
    CHECK_HAS(err.text, ".txt, .json, .csv, .md");
}

CHECK_MAIN({"text", test_text}, {"json", test_json}, {"csv", test_csv},
           {"markdown", test_markdown}, {"charts", test_charts},
           {"legend", test_legend}, {"audience", test_audience},
           {"no_records", test_no_records}, {"plugged", test_plugged},
           {"names", test_names})
