/*
 * Communicators of a program: every rank makes the same list of splits, a
 * group's split holds the plan's group, a pair is a sender and its receiver,
 * and both carry the same transfers in the same order.
 */
#include "plan/decide/grid.h"
#include "program/lower/step/lower.h"
#include "runtime/gpu_comm/gpu_groups.h"
#include "tests/check.h"

#include <stdlib.h>

enum { MAX_RANKS = 16 };

static const char model_text[] =
    "{\"model_type\": \"gpt2\", \"n_layer\": 8, \"n_embd\": 48, "
    "\"n_head\": 4, \"n_inner\": 176, \"n_positions\": 40, "
    "\"vocab_size\": 259, \"layer_norm_epsilon\": 1e-5, "
    "\"activation_function\": \"gelu_new\"}";

typedef struct grid {
    int32_t dp, tp, pp, vpp;
    int32_t zero;
    fr_rank_order order;
} grid;

static const grid grids[] = {
    {2, 1, 1, 1, 0, FR_RANK_ORDER_TP_DP_PP},
    {2, 2, 2, 1, 1, FR_RANK_ORDER_TP_DP_PP},
    {2, 2, 4, 1, 1, FR_RANK_ORDER_PP_DP_TP},
    {1, 1, 8, 1, 0, FR_RANK_ORDER_TP_DP_PP},
    {2, 1, 2, 2, 0, FR_RANK_ORDER_DP_PP_TP},
    {1, 2, 2, 4, 0, FR_RANK_ORDER_PP_TP_DP},
    {1, 1, 4, 2, 0, FR_RANK_ORDER_TP_DP_PP},
};

static fr_program *lower(const grid *g)
{
    fr_model model;
    fr_job job;
    fr_plan plan;
    fr_program *program = NULL;
    fr_err err = {0};

    fr_job_init(&job);
    job.global_batch = 16;
    job.seq = 16;
    job.clip_norm = 1;
    fr_plan_init(&plan);
    plan.dp = g->dp;
    plan.tp = g->tp;
    plan.pp = g->pp;
    plan.vpp = g->vpp;
    plan.zero_stage = g->zero;
    plan.rank_order = g->order;
    plan.is_sequence_parallel = g->tp > 1;
    if (g->vpp > 1)
        plan.schedule = FR_SCHEDULE_INTERLEAVED;
    if (!CHECK_OK(fr_model_parse("tiny", model_text, sizeof model_text - 1,
                                 &model, &err),
                  &err))
        return NULL;
    CHECK_OK(fr_lower(&model, &job, &plan, NULL, &program, &err), &err);
    fr_model_release(&model);
    return program;
}

/* The ranks of a colour, by key. */
static int members(const fr_gpu_groups *all, int world, uint32_t i,
                   int32_t colour, int64_t out[MAX_RANKS])
{
    int n = 0;

    for (int32_t key = 0; key < world; key++)
        for (int r = 0; r < world; r++)
            if (all[r].splits[i].colour == colour &&
                all[r].splits[i].key == key)
                out[n++] = r;
    return n;
}

static void check_split(const fr_program *program, const fr_gpu_groups *all,
                        int world, int rank, uint32_t i)
{
    const fr_gpu_split *split = &all[rank].splits[i];
    int64_t ranks[MAX_RANKS], group[MAX_RANKS], position = 0;

    CHECK_INT(split->is_pair, all[0].splits[i].is_pair);
    CHECK_INT(split->axis, all[0].splits[i].axis);
    if (split->colour < 0)
        return;
    int n = members(all, world, i, split->colour, ranks);
    int64_t n_group = fr_plan_group(&program->plan, rank, (fr_axis)split->axis,
                                    group, &position);
    if (split->is_pair) {
        CHECK_INT(n, 2);
        CHECK(all[ranks[0]].splits[i].lane == FR_LANE_PP_SEND);
        CHECK(all[ranks[1]].splits[i].lane == FR_LANE_PP_RECV);
        return;
    }
    CHECK_INT(n, n_group);
    CHECK_INT(split->lane, all[0].splits[i].lane);
    for (int k = 0; k < n && k < n_group; k++)
        CHECK_INT(ranks[k], group[k]);
}

/* Tags in the order in which a rank meets them on a split. */
static int tags_of(const fr_program *program, const fr_gpu_groups *groups,
                   int64_t rank, uint32_t i, uint32_t *out, int n_max)
{
    const fr_rank_program *rank_program = fr_program_of_rank(program, rank);
    int n = 0;

    for (uint32_t c = 0; c < rank_program->n_calls; c++) {
        const fr_segment *segment =
            &program->segments[rank_program->calls[c].i_segment];
        for (uint32_t k = 0; k < segment->n_instrs; k++) {
            uint32_t i_instr = segment->first_instr + k;
            const fr_instr *instr = &program->instrs[i_instr];
            bool is_transfer =
                instr->op == FR_OP_SEND || instr->op == FR_OP_RECV;
            if (is_transfer && groups->routes[i_instr].i_split == (int)i &&
                n < n_max)
                out[n++] =
                    instr->tag + (uint32_t)rank_program->calls[c].micro_batch;
        }
    }
    return n;
}

static int check_order(const fr_program *program, const fr_gpu_groups *all,
                       int world, int rank, uint32_t i)
{
    const fr_gpu_split *split = &all[rank].splits[i];
    uint32_t sent[256], received[256];
    int64_t ranks[MAX_RANKS];

    if (!split->is_pair || split->colour < 0 || split->key != 0 ||
        members(all, world, i, split->colour, ranks) != 2)
        return 0;
    int n = tags_of(program, &all[ranks[0]], ranks[0], i, sent, 256);
    int m = tags_of(program, &all[ranks[1]], ranks[1], i, received, 256);
    CHECK(n > 0);
    if (CHECK_INT(n, m))
        CHECK(memcmp(sent, received, (size_t)n * sizeof *sent) == 0);
    return n;
}

static void check_grid(const grid *g)
{
    fr_program *program = lower(g);
    int world = g->dp * g->tp * g->pp, n_transfers = 0, n_sends = 0;
    fr_gpu_groups all[MAX_RANKS] = {{0}};
    fr_err err = {0};
    bool is_ok = program != NULL;

    for (int r = 0; is_ok && r < world; r++)
        is_ok = CHECK_OK(fr_gpu_groups_init(program, r, &all[r], &err), &err) &&
                CHECK_INT(all[r].n_splits, all[0].n_splits);
    for (int r = 0; is_ok && r < world; r++)
        for (uint32_t i = 0; i < all[r].n_splits; i++) {
            check_split(program, all, world, r, i);
            n_transfers += check_order(program, all, world, r, i);
        }
    for (int r = 0; is_ok && r < world; r++) {
        const fr_rank_program *rank_program = fr_program_of_rank(program, r);
        for (uint32_t c = 0; c < rank_program->n_calls; c++) {
            uint32_t i_instr =
                program->segments[rank_program->calls[c].i_segment].first_instr;
            n_sends += program->instrs[i_instr].op == FR_OP_SEND;
        }
    }
    CHECK_INT(n_transfers, n_sends);
    for (int r = 0; r < world; r++)
        fr_gpu_groups_release(&all[r]);
    fr_program_destroy(program);
}

static void test_grids(void)
{
    for (size_t i = 0; i < sizeof grids / sizeof *grids; i++)
        check_grid(&grids[i]);
}

CHECK_MAIN({"grids", test_grids})
