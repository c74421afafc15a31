/*
 * test_sim_replay.c: what a replay must keep whatever the costs are (lanes in
 * order, dependencies before calls, members together, parts that add up), and
 * times that can be said by hand: alone, on shared cores, on a shared link,
 * behind a slow node.
 */
#include "program/ir/micro_program.h"
#include "program/ir/step_breakdown.h"
#include "program/lower/step/lower.h"
#include "sim/predict/simulate.h"
#include "sim/replay/replay.h"
#include "tests/check.h"
#include "tests/unit/sim/whole_replay.h"
#include "tests/unit/small_model.h"

#include <stdlib.h>

static const char cluster_xml[] =
    "<cluster name=\"hosts\">\n"
    "  <device id=\"core\" kind=\"cpu\" cores=\"%d\" memory=\"8GiB\"\n"
    "          memory-bandwidth=\"100GB/s\">\n"
    "    <peak dtype=\"fp32\" rate=\"100GFLOP/s\"/>\n"
    "  </device>\n"
    "  <node-type id=\"host\" device=\"core\">\n"
    "    <intra kind=\"shared-memory\" bandwidth=\"8GB/s\" latency=\"1us\"/>\n"
    "    <nic bandwidth=\"10Gb/s\" latency=\"20us\"/>\n"
    "  </node-type>\n"
    "  <group id=\"host\" node-type=\"host\" count=\"2\"/>\n"
    "  <fabric kind=\"switch\"/>\n"
    "%s"
    "</cluster>\n";

typedef struct fixture {
    fr_cluster cluster;
    fr_cost_model *costs;
    fr_model model;
    fr_job job;
    fr_plan plan;
    fr_program *program;
    fr_replay replay;
    int32_t node_of_rank[8];
} fixture;

static bool setup(fixture *f, int n_cores, const char *more)
{
    char xml[2048];
    fr_err err;
    memset(f, 0, sizeof *f);
    snprintf(xml, sizeof xml, cluster_xml, n_cores, more);
    if (!CHECK_OK(
            fr_cluster_parse("hosts.xml", xml, strlen(xml), &f->cluster, &err),
            &err))
        return false;
    small_model(&f->model, 4, 4, 16, 256, 64);
    fr_job_init(&f->job);
    f->job.global_batch = 8;
    f->job.seq = 32;
    fr_plan_init(&f->plan);
    return CHECK_OK(fr_cost_model_create(NULL, &f->cluster, &f->costs, &err),
                    &err);
}

static void teardown(fixture *f)
{
    fr_replay_release(&f->replay);
    fr_program_destroy(f->program);
    fr_cost_model_destroy(f->costs);
    fr_cluster_release(&f->cluster);
}

static bool replay_plan(fixture *f)
{
    fr_err err;
    fr_placement placement = {.n_ranks = fr_plan_world(&f->plan),
                              .node_of_rank = f->node_of_rank};
    return CHECK_OK(fr_lower(&f->model, &f->job, &f->plan, &placement,
                             &f->program, &err),
                    &err) &&
           CHECK_OK(replay_with(&whole_replay, f->program, f->costs,
                                &f->cluster, f->node_of_rank, &f->replay, &err),
                    &err);
}

/* ---- alone --------------------------------------------------------------- */

/*
 * One rank waits for nobody: its compute lane takes the sum of its
 * instructions; what the data lane does beside it may at most be added.
 */
static void test_alone(void)
{
    fixture f;
    fr_err err;
    if (!setup(&f, 2, ""))
        return;
    f.plan.micro_batch = 4;
    if (replay_plan(&f)) {
        const fr_rank_program *rank_program = &f.program->rank_programs[0];
        double compute_s = 0, io_s = 0, taken_s = 0;
        for (uint32_t i = 0; i < rank_program->n_calls; i++) {
            const fr_segment *s =
                &f.program->segments[rank_program->calls[i].i_segment];
            for (uint32_t k = 0; k < s->n_instrs; k++) {
                fr_cost cost;
                CHECK_OK(fr_cost_compute(f.costs,
                                         &f.program->instrs[s->first_instr + k],
                                         1, 0, &cost, &err),
                         &err);
                *(s->lane == FR_LANE_COMPUTE ? &compute_s : &io_s) +=
                    cost.latency_s + cost.work_s;
            }
        }
        for (size_t i = 0; i < f.replay.records.n; i++) {
            const fr_replay_record *r = &f.replay.records.items[i];
            if (r->lane == FR_LANE_COMPUTE)
                taken_s += 1e-12 * (double)(r->end_ps - r->start_ps);
        }
        double step_s = 1e-12 * (double)f.replay.makespan_ps;
        CHECK_NEAR(taken_s, compute_s, 1e-6);
        CHECK(step_s >= compute_s * (1 - 1e-6) &&
              step_s <= (compute_s + io_s) * (1 + 1e-6));
    }
    teardown(&f);
}

/* ---- what every replay keeps --------------------------------------------- */

static const fr_call *call_of(const fixture *f, const fr_replay_record *r)
{
    return &fr_program_of_rank(f->program, r->rank)->calls[r->i_call];
}

/* Per rank and lane: one instruction after the other, in the order of calls. */
static void check_lanes(const fixture *f)
{
    const fr_replay_record *last[8][FR_LANE_N] = {{0}};
    int64_t end_ps = 0;
    size_t n_wanted = 0;
    for (size_t i = 0; i < f->replay.records.n; i++) {
        const fr_replay_record *r = &f->replay.records.items[i];
        const fr_replay_record *before = last[r->rank][r->lane];
        CHECK(r->ready_ps <= r->start_ps && r->start_ps <= r->end_ps);
        if (before) {
            CHECK(before->end_ps <= r->ready_ps);
            CHECK(before->i_call < r->i_call ||
                  (before->i_call == r->i_call &&
                   before->i_instr + 1 == r->i_instr));
        }
        last[r->rank][r->lane] = r;
        end_ps = r->end_ps > end_ps ? r->end_ps : end_ps;
    }
    CHECK_INT(end_ps, f->replay.makespan_ps);
    for (int64_t rank = 0; rank < fr_plan_world(&f->plan); rank++) {
        const fr_rank_program *rank_program =
            fr_program_of_rank(f->program, rank);
        for (uint32_t i = 0; i < rank_program->n_calls; i++)
            n_wanted +=
                f->program->segments[rank_program->calls[i].i_segment].n_instrs;
    }
    CHECK_INT(f->replay.records.n, n_wanted);
}

/* No call begins before what it waits for has ended. */
static void check_dependencies(const fixture *f)
{
    enum { MAX_CALLS = 4096 };
    static int64_t end_ps[8][MAX_CALLS];
    memset(end_ps, 0, sizeof end_ps);
    for (size_t i = 0; i < f->replay.records.n; i++) {
        const fr_replay_record *r = &f->replay.records.items[i];
        if (CHECK(r->i_call < MAX_CALLS) &&
            r->end_ps > end_ps[r->rank][r->i_call])
            end_ps[r->rank][r->i_call] = r->end_ps;
    }
    for (size_t i = 0; i < f->replay.records.n; i++) {
        const fr_replay_record *r = &f->replay.records.items[i];
        const fr_rank_program *rank_program =
            fr_program_of_rank(f->program, r->rank);
        const fr_call *call = call_of(f, r);
        for (uint32_t d = 0; d < call->n_deps; d++)
            CHECK(end_ps[r->rank][rank_program->deps[call->first_dep + d]] <=
                  r->ready_ps);
    }
}

/* Members of a collective, sender and receiver: together from start to end,
 * and not before the last of them was ready. */
static void check_members(const fixture *f)
{
    const fr_replay_record *items = f->replay.records.items;
    for (size_t i = 0; i < f->replay.records.n; i++) {
        if (items[i].next_member == FR_REPLAY_NONE)
            continue;
        const fr_replay_record *a = &items[i], *b = &items[a->next_member];
        CHECK_INT(a->start_ps, b->start_ps);
        CHECK_INT(a->end_ps, b->end_ps);
        CHECK(b->ready_ps <= a->start_ps && a->rank != b->rank);
    }
}

static void check_parts(const fixture *f)
{
    fr_err err;
    fr_prediction prediction;
    fr_placement placement = {.n_ranks = fr_plan_world(&f->plan),
                              .node_of_rank = f->node_of_rank};
    double sum_s = 0;
    if (!CHECK_OK(fr_simulate(f->program, f->costs, &f->cluster, &placement,
                              NULL, &prediction, &err),
                  &err))
        return;
    for (int part = 0; part < FR_PART_N; part++) {
        CHECK(prediction.breakdown_s[part] >= 0);
        sum_s += prediction.breakdown_s[part];
    }
    CHECK_NEAR(sum_s, prediction.step_s, 1e-9);
    CHECK_NEAR(prediction.step_s, 1e-12 * (double)f->replay.makespan_ps, 1e-12);
    CHECK(prediction.step_s_p5 <= prediction.expected_step_s &&
          prediction.expected_step_s <= prediction.step_s_p95);
    CHECK(prediction.step_s <= prediction.expected_step_s);
}

static void check_same_again(fixture *f)
{
    fr_err err;
    fr_replay again;
    if (!CHECK_OK(replay_with(&whole_replay, f->program, f->costs, &f->cluster,
                              f->node_of_rank, &again, &err),
                  &err))
        return;
    CHECK_INT(again.makespan_ps, f->replay.makespan_ps);
    if (CHECK_INT(again.records.n, f->replay.records.n))
        for (size_t i = 0; i < again.records.n; i++) {
            const fr_replay_record *a = &again.records.items[i];
            const fr_replay_record *b = &f->replay.records.items[i];
            CHECK(a->rank == b->rank && a->i_call == b->i_call &&
                  a->i_instr == b->i_instr && a->start_ps == b->start_ps &&
                  a->end_ps == b->end_ps && a->cause == b->cause);
        }
    fr_replay_release(&again);
}

static void test_laws(void)
{
    static const struct {
        int dp, tp, pp, vpp, zero;
        bool is_sp;
        fr_schedule_kind schedule;
        fr_compressor_kind compressor;
    } cases[] = {
        {.dp = 2, .tp = 1, .pp = 1, .vpp = 1},
        {.dp = 2, .tp = 1, .pp = 1, .vpp = 1, .zero = 1},
        {.dp = 2, .tp = 1, .pp = 1, .vpp = 1, .compressor = FR_COMPRESSOR_INT8},
        {.dp = 1, .tp = 2, .pp = 1, .vpp = 1},
        {.dp = 1, .tp = 4, .pp = 1, .vpp = 1, .is_sp = true},
        {.dp = 1, .tp = 1, .pp = 2, .vpp = 1, .schedule = FR_SCHEDULE_GPIPE},
        {.dp = 1, .tp = 1, .pp = 4, .vpp = 1, .schedule = FR_SCHEDULE_1F1B},
        {.dp = 1,
         .tp = 1,
         .pp = 2,
         .vpp = 2,
         .schedule = FR_SCHEDULE_INTERLEAVED},
        {.dp = 2, .tp = 2, .pp = 2, .vpp = 1, .schedule = FR_SCHEDULE_1F1B},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fixture f;
        if (!setup(&f, 4, ""))
            return;
        f.plan.dp = cases[i].dp;
        f.plan.tp = cases[i].tp;
        f.plan.pp = cases[i].pp;
        f.plan.vpp = cases[i].vpp;
        f.plan.zero_stage = cases[i].zero;
        f.plan.is_sequence_parallel = cases[i].is_sp;
        f.plan.schedule = cases[i].schedule;
        f.plan.compressor = cases[i].compressor;
        f.plan.micro_batch = 1;
        for (int rank = 4; rank < 8; rank++)
            f.node_of_rank[rank] = 1;
        if (replay_plan(&f)) {
            check_lanes(&f);
            check_dependencies(&f);
            check_members(&f);
            check_parts(&f);
            check_same_again(&f);
        }
        teardown(&f);
    }
}

/* ---- sharing ------------------------------------------------------------- */

/* A matrix product that needs next to no memory bandwidth. */
static fr_instr product(void)
{
    fr_instr instr = {
        .op = FR_OP_LINEAR_FWD, .dtype = FR_DTYPE_F32, .dim = {512, 512, 512}};
    return instr;
}

/* n ranks on node 0, each with one product; seconds until all are done. */
static double products_s(fixture *f, int n)
{
    fr_err err;
    fr_micro *micro;
    fr_instr instr = product();
    f->plan.dp = n;
    if (!CHECK_OK(fr_micro_create(&f->plan, &micro, &err), &err))
        return 0;
    uint32_t segment =
        fr_micro_segment(micro, FR_LANE_COMPUTE, "product", &instr, 1);
    (void)fr_micro_call(micro, 0, segment, UINT32_MAX);
    if (!CHECK_OK(fr_micro_finish(micro, 4096, &f->program, &err), &err) ||
        !CHECK_OK(replay_with(&whole_replay, f->program, f->costs, &f->cluster,
                              f->node_of_rank, &f->replay, &err),
                  &err))
        return 0;
    return 1e-12 * (double)f->replay.makespan_ps;
}

static void test_shared_cores(void)
{
    static const struct {
        int n_cores, n_ranks;
        double times;
    } cases[] = {{1, 1, 1}, {2, 2, 1}, {1, 2, 2}, {2, 3, 1.5}, {2, 8, 4}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fixture f;
        if (!setup(&f, cases[i].n_cores, ""))
            return;
        fr_instr instr = product();
        fr_cost cost = {0};
        fr_err err;
        CHECK_OK(fr_cost_compute(f.costs, &instr, 1, 0, &cost, &err), &err);
        CHECK_NEAR(products_s(&f, cases[i].n_ranks),
                   cost.latency_s + cases[i].times * cost.work_s, 1e-6);
        teardown(&f);
    }
}

static void test_slow_node(void)
{
    fixture f;
    if (!setup(&f, 2, "  <slow node=\"host-0\" compute=\"0.5\"/>\n"))
        return;
    fr_instr instr = product();
    fr_cost cost = {0};
    fr_err err;
    CHECK_OK(fr_cost_compute(f.costs, &instr, 1, 0, &cost, &err), &err);
    CHECK_NEAR(products_s(&f, 1), cost.latency_s + 2 * cost.work_s, 1e-6);
    teardown(&f);
}

/* Transfers i -> n + i at once; the last end in seconds. */
static double transfers_s(fixture *f, int n, uint64_t n_floats)
{
    fr_err err;
    fr_micro *micro;
    f->plan.pp = 2 * n;
    if (!CHECK_OK(fr_micro_create(&f->plan, &micro, &err), &err))
        return 0;
    for (int i = 0; i < 2 * n; i++) {
        bool is_sender = i < n;
        fr_instr instr = fr_micro_communicate(
            is_sender ? FR_OP_SEND : FR_OP_RECV, FR_AXIS_PP, FR_COLLECTIVE_AUTO,
            n_floats, 0, 4096);
        instr.peer = (int16_t)(is_sender ? i + n : i - n);
        instr.tag = (uint32_t)(is_sender ? i : i - n);
        uint32_t segment = fr_micro_segment(
            micro, is_sender ? FR_LANE_PP_SEND : FR_LANE_PP_RECV, "transfer",
            &instr, 1);
        (void)fr_micro_call(micro, (uint32_t)i, segment, UINT32_MAX);
        f->node_of_rank[i] = is_sender ? 0 : 1;
    }
    if (!CHECK_OK(fr_micro_finish(micro, 1 << 26, &f->program, &err), &err) ||
        !CHECK_OK(replay_with(&whole_replay, f->program, f->costs, &f->cluster,
                              f->node_of_rank, &f->replay, &err),
                  &err))
        return 0;
    return 1e-12 * (double)f->replay.makespan_ps;
}

/* Through one network card: n transfers share its rate. */
static void test_shared_link(void)
{
    enum { N_FLOATS = 1 << 20 };
    for (int n = 1; n <= 4; n++) {
        fixture f;
        fr_err err;
        fr_cost cost = {0};
        fr_comm_scope scope = {.n_group = 2, .n_nodes = 2, .ranks_on_node = 1};
        if (!setup(&f, 8, ""))
            return;
        fr_instr send = fr_micro_communicate(
            FR_OP_SEND, FR_AXIS_PP, FR_COLLECTIVE_AUTO, N_FLOATS, 0, 4096);
        CHECK_OK(fr_cost_communicate(f.costs, &send, &scope, true, &cost, &err),
                 &err);
        double share = cost.link_bytes / cost.work_s / 1.25e9;
        double times = fmax(1.0, n * share);
        CHECK(share > 0.5 && share <= 1.0 + 1e-9);
        CHECK_NEAR(transfers_s(&f, n, N_FLOATS),
                   cost.latency_s + times * cost.work_s, 1e-6);
        teardown(&f);
    }
}

/* ---- programs that cannot end -------------------------------------------- */

/* Both receive before they send. */
static void test_deadlock(void)
{
    fixture f;
    fr_err err;
    fr_micro *micro;
    if (!setup(&f, 2, ""))
        return;
    f.plan.pp = 2;
    if (CHECK_OK(fr_micro_create(&f.plan, &micro, &err), &err)) {
        for (uint32_t i = 0; i < 2; i++) {
            fr_instr instrs[2] = {
                fr_micro_communicate(FR_OP_RECV, FR_AXIS_PP, FR_COLLECTIVE_AUTO,
                                     16, 0, 4096),
                fr_micro_communicate(FR_OP_SEND, FR_AXIS_PP, FR_COLLECTIVE_AUTO,
                                     16, 0, 4096)};
            instrs[0].peer = instrs[1].peer = (int16_t)(1 - i);
            uint32_t segment =
                fr_micro_segment(micro, FR_LANE_PP_RECV, "both", instrs, 2);
            (void)fr_micro_call(micro, i, segment, UINT32_MAX);
        }
        CHECK_OK(fr_micro_finish(micro, 1 << 16, &f.program, &err), &err);
        CHECK_FAILS(replay_with(&whole_replay, f.program, f.costs, &f.cluster,
                                f.node_of_rank, &f.replay, &err),
                    FR_CHECK, &err);
        CHECK_HAS(err.text, "deadlocks: rank 0");
    }
    teardown(&f);
}

CHECK_MAIN({"alone", test_alone}, {"laws", test_laws},
           {"shared cores", test_shared_cores}, {"slow node", test_slow_node},
           {"shared link", test_shared_link}, {"deadlock", test_deadlock})
