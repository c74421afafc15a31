/*
 * test_report_timeline.c: parts, trace and picture of a timeline made by
 * hand: two pipeline stages, one micro-batch, times chosen so that each part
 * can be read off with a pencil.
 */
#include "core/document/json.h"
#include "core/system/fileio.h"
#include "program/ir/step_breakdown.h"
#include "report/timeline/gantt.h"
#include "report/timeline/trace_json.h"
#include "tests/check.h"
#include "tests/rendered.h"

#include <stdlib.h>
#include <unistd.h>

/* Instructions and segments of the little program, one instruction each. */
enum { FWD, SEND_F, RECV_F, BWD, SEND_B, RECV_B, STEP, N_INSTRS };

typedef struct little {
    fr_program program;
    fr_instr instrs[N_INSTRS];
    fr_segment segments[N_INSTRS];
    fr_rank_program rank_programs[2];
    fr_call calls[2][5];
    uint32_t deps[2][4];
    fr_timeline timeline;
} little;

static void set_instr(little *l, int i, fr_op op, int peer, uint32_t tag,
                      const char *name, fr_lane lane)
{
    l->instrs[i].op = (uint8_t)op;
    l->instrs[i].axis = FR_AXIS_PP;
    l->instrs[i].peer = (int16_t)peer;
    l->instrs[i].tag = tag;
    l->instrs[i].dim[0] = 1000;
    l->segments[i].first_instr = (uint32_t)i;
    l->segments[i].n_instrs = 1;
    l->segments[i].lane = (uint8_t)lane;
    snprintf(l->segments[i].name, sizeof l->segments[i].name, "%s", name);
}

static void set_call(little *l, int stage, int i, int i_segment, int dep)
{
    fr_call *call = &l->calls[stage][i];
    call->i_segment = (uint32_t)i_segment;
    call->layer = stage;
    call->micro_batch = 0;
    call->chunk = -1;
    if (dep < 0)
        return;
    call->first_dep = l->rank_programs[stage].n_deps;
    call->n_deps = 1;
    l->deps[stage][l->rank_programs[stage].n_deps++] = (uint32_t)dep;
}

static void add_span(little *l, int rank, int i_call, double begin_us,
                     double end_us)
{
    fr_err err;
    const fr_call *call = &l->calls[rank][i_call];
    const fr_segment *segment = &l->segments[call->i_segment];
    fr_span span = {.rank = rank,
                    .lane = segment->lane,
                    .op = l->instrs[segment->first_instr].op,
                    .i_call = (uint32_t)i_call,
                    .i_instr = segment->first_instr,
                    .step = 7,
                    .begin_ps = (int64_t)(begin_us * 1e6),
                    .end_ps = (int64_t)(end_us * 1e6)};
    CHECK_OK(fr_timeline_add(&l->timeline, span, &err), &err);
}

/*
 * rank 0: fwd 0-10, send 10.5-13.5, recv posted at 13.5, peer sends at 31.25,
 *         arrives at 33.25; bwd 34-50.125; optimizer 51-55
 * rank 1: recv 0-13.5, fwd+bwd 14-31, send 31.25-33.25, optimizer 33.5-37
 */
static little *make_little(void)
{
    little *l = calloc(1, sizeof *l);
    fr_program *p = &l->program;
    fr_plan_init(&p->plan);
    p->plan.pp = 2;
    p->n_instrs = p->n_segments = N_INSTRS;
    p->instrs = l->instrs;
    p->segments = l->segments;
    p->n_rank_programs = 2;
    p->rank_programs = l->rank_programs;
    set_instr(l, FWD, FR_OP_GELU_FWD, 0, 0, "layer_fwd", FR_LANE_COMPUTE);
    l->segments[FWD].role = FR_SEGMENT_FORWARD;
    set_instr(l, SEND_F, FR_OP_SEND, 1, 3, "send", FR_LANE_PP_SEND);
    set_instr(l, RECV_F, FR_OP_RECV, 0, 3, "recv", FR_LANE_PP_RECV);
    set_instr(l, BWD, FR_OP_GELU_BWD, 0, 0, "layer_bwd", FR_LANE_COMPUTE);
    l->segments[BWD].role = FR_SEGMENT_BACKWARD;
    set_instr(l, SEND_B, FR_OP_SEND, 0, 5, "send", FR_LANE_PP_SEND);
    set_instr(l, RECV_B, FR_OP_RECV, 1, 5, "recv", FR_LANE_PP_RECV);
    set_instr(l, STEP, FR_OP_OPT_STEP, 0, 0, "update", FR_LANE_COMPUTE);
    for (int s = 0; s < 2; s++) {
        l->rank_programs[s].pp = s;
        l->rank_programs[s].calls = l->calls[s];
        l->rank_programs[s].deps = l->deps[s];
    }
    set_call(l, 0, 0, FWD, -1);
    set_call(l, 0, 1, SEND_F, 0);
    set_call(l, 0, 2, RECV_B, 1);
    set_call(l, 0, 3, BWD, 2);
    set_call(l, 0, 4, STEP, 3);
    l->rank_programs[0].n_calls = 5;
    set_call(l, 1, 0, RECV_F, -1);
    set_call(l, 1, 1, BWD, 0);
    set_call(l, 1, 2, SEND_B, 1);
    set_call(l, 1, 3, STEP, 1);
    l->rank_programs[1].n_calls = 4;
    fr_timeline_init(&l->timeline);
    l->timeline.n_ranks = 2;
    add_span(l, 0, 0, 0, 10);
    add_span(l, 0, 1, 10.5, 13.5);
    add_span(l, 0, 2, 13.5, 33.25);
    add_span(l, 0, 3, 34, 50.125);
    add_span(l, 0, 4, 51, 55);
    add_span(l, 1, 0, 0, 13.5);
    add_span(l, 1, 1, 14, 31);
    add_span(l, 1, 2, 31.25, 33.25);
    add_span(l, 1, 3, 33.5, 37);
    return l;
}

static void free_little(little *l)
{
    fr_timeline_release(&l->timeline);
    free(l);
}

static void test_breakdown(void)
{
    little *l = make_little();
    fr_err err;
    double parts_s[FR_PART_N], step_s, sum_s = 0;
    CHECK_OK(
        fr_step_breakdown(&l->program, &l->timeline, 7, parts_s, &step_s, &err),
        &err);
    for (int i = 0; i < FR_PART_N; i++)
        sum_s += parts_s[i];
    CHECK_NEAR(step_s, 55e-6, 1e-12);
    CHECK_NEAR(sum_s, step_s, 1e-12);
    CHECK_NEAR(parts_s[FR_PART_COMPUTE], (10 + 16.125) * 1e-6, 1e-9);
    CHECK_NEAR(parts_s[FR_PART_OPTIMIZER], 4e-6, 1e-9);
    /* sends 3 us, then the transfer that comes back, 2 us */
    CHECK_NEAR(parts_s[FR_PART_EXPOSED_PP], 5e-6, 1e-9);
    CHECK_NEAR(parts_s[FR_PART_BUBBLE], (31.25 - 13.5) * 1e-6, 1e-9);
    CHECK_NEAR(parts_s[FR_PART_HOST], (0.5 + 0.75 + 0.875) * 1e-6, 1e-9);
    CHECK_FAILS(
        fr_step_breakdown(&l->program, &l->timeline, 6, parts_s, &step_s, &err),
        FR_INPUT, &err);
    free_little(l);
}

static void test_mean_is_scaled(void)
{
    little *l = make_little();
    fr_err err;
    double parts_s[FR_PART_N], sum_s = 0;
    add_span(l, 0, 0, 0, 20);
    l->timeline.at[l->timeline.n - 1].step = 8;
    CHECK_INT(fr_step_median(&l->timeline), 8); /* the shorter of two */
    CHECK_OK(fr_step_breakdown_mean(&l->program, &l->timeline, 0.0375, parts_s,
                                    &err),
             &err);
    for (int i = 0; i < FR_PART_N; i++)
        sum_s += parts_s[i];
    CHECK_NEAR(sum_s, 0.0375, 1e-12);
    CHECK_NEAR(parts_s[FR_PART_OPTIMIZER] / sum_s, 4.0 / 75.0, 1e-9);
    free_little(l);
}

static void test_foreign_timeline(void)
{
    little *l = make_little();
    fr_err err;
    double parts_s[FR_PART_N], step_s;
    l->timeline.at[0].i_call = 99;
    CHECK_FAILS(
        fr_step_breakdown(&l->program, &l->timeline, 7, parts_s, &step_s, &err),
        FR_INPUT, &err);
    l->timeline.at[0].i_call = 0;
    l->timeline.at[0].rank = 2;
    CHECK_FAILS(
        fr_step_breakdown(&l->program, &l->timeline, 7, parts_s, &step_s, &err),
        FR_INPUT, &err);
    free_little(l);
}

static size_t count(const fr_json_value *events, const char *key,
                    const char *text)
{
    size_t n = 0;
    const char *value;
    fr_err err;
    for (size_t i = 0; i < fr_json_n(events); i++)
        n += fr_json_get_string_or(fr_json_at(events, i), key, "", &value,
                                   &err) == FR_OK &&
             strcmp(value, text) == 0;
    return n;
}

static void write_text(const char *path, const char *text)
{
    fr_err err;
    CHECK_OK(fr_file_write(path, text, strlen(text), &err), &err);
}

static void test_trace(void)
{
    little *l = make_little();
    fr_trace_part parts[2] = {{&l->timeline, "predicted", 7},
                              {&l->timeline, "measured", 7}};
    fr_buffer text;
    fr_err err;
    fr_json *json = NULL;
    char path[CHECK_PATH_BYTES];
    check_tmp_path(path, "forerun-trace-%d", (int)getpid());
    fr_buffer_init(&text);
    CHECK_OK(fr_trace_json(&l->program, parts, 2, &text, &err), &err);
    CHECK_OK(fr_json_parse("trace", text.data, text.n, &json, &err), &err);
    const fr_json_value *events =
        fr_json_find(fr_json_root(json), "traceEvents");
    /* a call and its instruction for each of 9 spans, twice */
    CHECK_INT(count(events, "ph", "X"), 36);
    CHECK_INT(count(events, "ph", "s"), 4);
    CHECK_INT(count(events, "ph", "f"), 4);
    CHECK_INT(count(events, "name", "process_name"), 4);
    CHECK_HAS(text.data, "\"name\":\"rank 1 measured\"");
    CHECK_HAS(text.data, "\"ts\":31.250000,\"dur\":2.000000");
    CHECK_HAS(text.data, "\"bytes\":4000");
    write_text(path, text.data);
    size_t n = 0;
    CHECK_OK(fr_trace_check(path, &n, &err), &err);
    CHECK_INT(n, 36);
    fr_json_destroy(json);
    fr_buffer_release(&text);
    unlink(path);
    free_little(l);
}

static void test_trace_check_refuses(void)
{
    fr_err err;
    char path[CHECK_PATH_BYTES];
    check_tmp_path(path, "forerun-trace-%d", (int)getpid());
    write_text(path,
               "{\"traceEvents\":[\n"
               "{\"ph\":\"X\",\"pid\":0,\"tid\":1,\"ts\":1,\"dur\":2.5},\n"
               "{\"ph\":\"X\",\"pid\":0,\"tid\":2,\"ts\":2,\"dur\":4},\n"
               "{\"ph\":\"X\",\"pid\":0,\"tid\":1,\"ts\":3,\"dur\":1}]}");
    CHECK_FAILS(fr_trace_check(path, NULL, &err), FR_CHECK, &err);
    CHECK_HAS(err.text, ":4:");
    write_text(path,
               "{\"traceEvents\":[\n"
               "{\"ph\":\"X\",\"pid\":0,\"tid\":1,\"ts\":1,\"dur\":2.5},\n"
               "{\"ph\":\"X\",\"pid\":0,\"tid\":1,\"ts\":1,\"dur\":1},\n"
               "{\"ph\":\"X\",\"pid\":0,\"tid\":1,\"ts\":3.5,\"dur\":1}]}");
    CHECK_OK(fr_trace_check(path, NULL, &err), &err);
    write_text(path, "{\"traceEvents\":[{\"ph\":\"X\",\"pid\":0}]}");
    CHECK_FAILS(fr_trace_check(path, NULL, &err), FR_INPUT, &err);
    unlink(path);
}

static void test_overlap_is_refused(void)
{
    little *l = make_little();
    fr_trace_part part = {&l->timeline, "predicted", 7};
    fr_buffer text;
    fr_err err;
    fr_buffer_init(&text);
    add_span(l, 0, 0, 9.5, 12);
    CHECK_FAILS(fr_trace_json(&l->program, &part, 1, &text, &err), FR_CHECK,
                &err);
    fr_buffer_release(&text);
    free_little(l);
}

static void test_gantt(void)
{
    little *l = make_little();
    fr_layout layout = {.n_wide = 14 + 55, .is_ascii = true};
    fr_document answer;
    fr_buffer text;
    fr_err err;
    fr_document_init(&answer, NULL);
    CHECK_FAILS(fr_report_gantt(&l->program, &l->timeline, 3, &answer, &err),
                FR_INPUT, &err);
    CHECK_OK(fr_report_gantt(&l->program, &l->timeline, 7, &answer, &err),
             &err);
    check_rendered(&answer, &fr_render_text, &layout, &text);
    /* one cell is one microsecond */
    CHECK_HAS(fr_buffer_text(&text),
              " ffffffffff........................bbbbbbbbbbbbbbbb.oooo\n");
    CHECK_HAS(fr_buffer_text(&text), "f forward");
    /* posted at 13.5, the peer begins to send at 31.25, it is there at 33.25 */
    CHECK_HAS(fr_buffer_text(&text),
              " .............------------------==......................\n");
    CHECK_HAS(fr_buffer_text(&text), "- waiting for another rank");
    fr_buffer_release(&text);
    free_little(l);
}

CHECK_MAIN({"breakdown", test_breakdown}, {"mean", test_mean_is_scaled},
           {"foreign", test_foreign_timeline}, {"trace", test_trace},
           {"trace_check", test_trace_check_refuses},
           {"overlap", test_overlap_is_refused}, {"gantt", test_gantt})
