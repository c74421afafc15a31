/*
 * Combined 1F1B: each micro-batch does what it does without it, in the same
 * order, and another one computes only while its tokens are on their way.
 */
#include "program/lower/step/lower.h"
#include "tests/check.h"
#include "tests/contract/plan/layer_models.h"

#include <stdlib.h>
#include <string.h>

/* The calls of a rank program for one micro-batch of one chunk. */
typedef struct chain {
    int n, cap;
    fr_instr *at;
} chain;

static void add(chain *c, const fr_instr *instr)
{
    if (c->n == c->cap) {
        c->cap = 2 * c->cap + 64;
        c->at = realloc(c->at, (size_t)c->cap * sizeof *c->at);
    }
    c->at[c->n++] = *instr;
}

static chain chain_of(const fr_program *program,
                      const fr_rank_program *rank_program, int micro_batch,
                      int chunk)
{
    chain out = {0};
    for (uint32_t i = 0; i < rank_program->n_calls; i++) {
        const fr_call *call = &rank_program->calls[i];
        const fr_segment *s = &program->segments[call->i_segment];
        if (call->micro_batch != micro_batch || call->chunk != chunk ||
            (s->lane != FR_LANE_COMPUTE && s->lane != FR_LANE_EP))
            continue;
        for (uint32_t k = 0; k < s->n_instrs; k++)
            add(&out, &program->instrs[s->first_instr + k]);
    }
    return out;
}

static void compare(const fr_program *plain, const fr_program *combined)
{
    CHECK_INT(plain->n_rank_programs, combined->n_rank_programs);
    for (uint32_t c = 0; c < plain->n_rank_programs; c++)
        for (int m = 0; m < plain->n_micro_batches; m++)
            for (int v = 0; v < plain->plan.vpp; v++) {
                chain a = chain_of(plain, &plain->rank_programs[c], m, v);
                chain b = chain_of(combined, &combined->rank_programs[c], m, v);
                CHECK_INT(a.n, b.n);
                CHECK(a.n > 0);
                for (int i = 0; i < a.n && a.n == b.n; i++)
                    CHECK(a.at[i].op == b.at[i].op &&
                          a.at[i].axis == b.at[i].axis &&
                          memcmp(a.at[i].dim, b.at[i].dim,
                                 sizeof a.at[i].dim) == 0);
                free(a.at);
                free(b.at);
            }
}

/* Exchanges on each lane, and those beside which another micro-batch has the
 * next call of the compute lane. */
typedef struct exchanges {
    int n_on_compute, n_beside, n_covered;
} exchanges;

static exchanges count(const fr_program *program)
{
    exchanges n = {0};
    for (uint32_t c = 0; c < program->n_rank_programs; c++) {
        const fr_rank_program *rank_program = &program->rank_programs[c];
        for (uint32_t i = 0; i < rank_program->n_calls; i++) {
            const fr_call *call = &rank_program->calls[i];
            const fr_segment *s = &program->segments[call->i_segment];
            uint32_t next = i + 1;
            for (uint32_t k = 0; k < s->n_instrs; k++) {
                const fr_instr *instr = &program->instrs[s->first_instr + k];
                bool is_exchange =
                    instr->op == FR_OP_ALL_TO_ALL && instr->axis == FR_AXIS_EP;
                n.n_on_compute += is_exchange && s->lane == FR_LANE_COMPUTE;
                n.n_beside += is_exchange && s->lane == FR_LANE_EP;
            }
            while (
                next < rank_program->n_calls &&
                program->segments[rank_program->calls[next].i_segment].lane !=
                    FR_LANE_COMPUTE)
                next++;
            n.n_covered +=
                s->lane == FR_LANE_EP && next < rank_program->n_calls &&
                rank_program->calls[next].micro_batch != call->micro_batch;
        }
    }
    return n;
}

static void try_plan(fr_model model, fr_plan plan)
{
    fr_job job = layer_small_job();
    fr_err err = {0};
    plan.ep = 2;
    plan.dp = 2;
    plan.micro_batch = 1;
    fr_program *plain = layer_lower(&model, &job, &plan);
    plan.is_ep_overlap = true;
    fr_program *combined = layer_lower(&model, &job, &plan);
    if (!plain || !combined)
        return;
    CHECK_OK(fr_program_check(combined, NULL, &err), &err);
    compare(plain, combined);
    exchanges a = count(plain), b = count(combined);
    CHECK(a.n_beside == 0 && b.n_on_compute == 0 && b.n_beside > 0);
    CHECK_INT(a.n_on_compute, b.n_beside);
    /* 8 micro-batches: all forwards but the first few and all backwards but
     * the last few of each rank are in pairs. */
    CHECK(2 * b.n_covered > b.n_beside);
    fr_program_destroy(plain);
    fr_program_destroy(combined);
}

static void test_without_pipeline(void)
{
    fr_plan plan = layer_bf16_plan();
    try_plan(layer_model_mixtral(), plan);
    try_plan(layer_model_deepseek(), plan);
    plan.recompute = FR_RECOMPUTE_SELECTIVE;
    plan.recompute_parts =
        FR_RECOMPUTE_PART_LATENT | FR_RECOMPUTE_PART_ACTIVATION;
    try_plan(layer_model_deepseek_mtp(), plan);
}

static void test_pipeline(void)
{
    fr_plan plan = layer_bf16_plan();
    plan.pp = 2;
    plan.vpp = 2;
    plan.schedule = FR_SCHEDULE_INTERLEAVED;
    try_plan(layer_model_mixtral(), plan);
    try_plan(layer_model_qwen_moe(), plan);
}

/* Memory: of two micro-batches more is there at once. */
static void test_memory(void)
{
    fr_model model = layer_model_mixtral();
    fr_job job = layer_small_job();
    fr_plan plan = layer_bf16_plan();
    uint64_t kinds[FR_MEMORY_N], peak[2] = {0};
    fr_err err;
    plan.ep = plan.dp = 2;
    plan.micro_batch = 1;
    for (int k = 0; k < 2; k++) {
        plan.is_ep_overlap = k > 0;
        fr_program *program = layer_lower(&model, &job, &plan);
        if (!program)
            return;
        CHECK_OK(fr_rank_program_peak(&program->rank_programs[0], kinds,
                                      &peak[k], &err),
                 &err);
        fr_program_destroy(program);
    }
    CHECK(peak[1] > peak[0]);
}

/* Refusals say why, and what to choose. */
static void test_refusals(void)
{
    static const struct {
        int ep, pp;
        fr_recompute recompute;
        int zero;
        const char *why;
    } rows[] = {
        {1, 1, FR_RECOMPUTE_NONE, 0, "no exchange to hide"},
        {2, 2, FR_RECOMPUTE_NONE, 0, "choose schedule interleaved"},
        {2, 1, FR_RECOMPUTE_FULL, 0, "send their tokens again"},
        {2, 1, FR_RECOMPUTE_NONE, 2, "choose zero 0 or 1"},
    };
    fr_model model = layer_model_mixtral();
    fr_job job = layer_small_job();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        fr_plan plan = layer_bf16_plan();
        fr_err err = {0};
        plan.dp = 2;
        plan.ep = rows[i].ep;
        plan.pp = rows[i].pp;
        plan.recompute = rows[i].recompute;
        plan.zero_stage = rows[i].zero;
        plan.is_ep_overlap = true;
        CHECK(fr_plan_check_lowerable(&plan, &model, &job, &err) == FR_INPUT);
        CHECK(strstr(err.text, rows[i].why) != NULL);
    }
}

CHECK_MAIN({"without a pipeline", test_without_pipeline},
           {"pipeline", test_pipeline}, {"memory", test_memory},
           {"refusals", test_refusals})
