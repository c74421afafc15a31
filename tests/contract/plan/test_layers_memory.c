/*
 * Bytes that the forward pass of a layer keeps, against the formulas of
 * papers.
 */
#include "program/lower/step/lower.h"
#include "tests/check.h"
#include "tests/contract/plan/layer_models.h"

/* Bytes that one more layer adds to the activations at the peak. */
static double layer_bytes(fr_model model, const fr_plan *plan, double dropout)
{
    double bytes[2] = {0, 0};
    fr_job job = layer_small_job();
    job.dropout = dropout;
    for (int i = 0; i < 2; i++) {
        fr_err err = {0};
        uint64_t kinds[FR_MEMORY_N], peak;
        model.n_layers = 6 + i;
        fr_program *program = layer_lower(&model, &job, plan);
        if (!program)
            return 0;
        CHECK_OK(fr_rank_program_peak(&program->rank_programs[0], kinds, &peak,
                                      &err),
                 &err);
        bytes[i] = (double)kinds[FR_MEMORY_ACTIVATIONS];
        fr_program_destroy(program);
    }
    return bytes[1] - bytes[0];
}

/* Korthikanti et al. 2022, arXiv 2205.05198, table 2. */
static void test_korthikanti(void)
{
    const double s = 128, b = 2, h = 256, a = 8, sbh = s * b * h;
    /* Statistics of two norms, and of attention where it is fused. */
    const double stats = 16 * s * b, lse = 4 * a * s * b;
    fr_model m = layer_model_gpt();
    fr_plan plan = layer_bf16_plan();
    plan.is_flash = false;
    CHECK_NEAR(layer_bytes(m, &plan, 0.1), sbh * (34 + 5 * a * s / h) + stats,
               1e-9);
    /* Without dropout: neither its masks nor what is left of probabilities. */
    CHECK_NEAR(layer_bytes(m, &plan, 0), sbh * (32 + 2 * a * s / h) + stats,
               1e-9);
    plan.recompute = FR_RECOMPUTE_SELECTIVE;
    CHECK_NEAR(layer_bytes(m, &plan, 0.1), sbh * 34 + stats, 1e-9);
    plan.recompute = FR_RECOMPUTE_FULL;
    CHECK_NEAR(layer_bytes(m, &plan, 0.1), sbh * 2, 1e-9);
    plan.recompute = FR_RECOMPUTE_NONE;
    plan.is_flash = true;
    CHECK_NEAR(layer_bytes(m, &plan, 0.1), sbh * 34 + stats + lse, 1e-9);

    const double t = 4;
    plan = layer_bf16_plan();
    plan.is_flash = false;
    plan.tp = 4;
    CHECK_NEAR(layer_bytes(m, &plan, 0.1),
               sbh * (10 + 24 / t + 5 * a * s / (h * t)) + stats, 1e-9);
    plan.is_sequence_parallel = true;
    CHECK_NEAR(layer_bytes(m, &plan, 0.1),
               sbh * (34 + 5 * a * s / h) / t + stats / t, 1e-9);
    plan.recompute = FR_RECOMPUTE_SELECTIVE;
    CHECK_NEAR(layer_bytes(m, &plan, 0.1), sbh * 34 / t + stats / t, 1e-9);
}

/* Each part of selective recompute saves its bytes. */
static void test_parts(void)
{
    const double rows = 256;
    fr_model m = layer_model_llama();
    fr_plan plan = layer_bf16_plan();
    double all = layer_bytes(m, &plan, 0);
    plan.recompute = FR_RECOMPUTE_SELECTIVE;
    plan.recompute_parts = FR_RECOMPUTE_PART_NORM;
    CHECK_NEAR(all - layer_bytes(m, &plan, 0), 2 * 2 * rows * 256, 1e-9);
    plan.recompute_parts = FR_RECOMPUTE_PART_ACTIVATION;
    CHECK_NEAR(all - layer_bytes(m, &plan, 0), 2 * rows * 704, 1e-9);
    plan.recompute_parts = FR_RECOMPUTE_PART_MLP;
    CHECK_NEAR(all - layer_bytes(m, &plan, 0), 2 * rows * 704 * 3, 1e-9);
    m = layer_model_mixtral();
    plan.recompute_parts = 0;
    all = layer_bytes(m, &plan, 0);
    plan.recompute_parts = FR_RECOMPUTE_PART_EXPERTS;
    /* Two copies of each token: hidden, both halves and their product; the
     * router's scores, weights and numbers. */
    CHECK_NEAR(all - layer_bytes(m, &plan, 0),
               rows * 2 * 2 * (256 + 3 * 448) + rows * (2 * 8 + 8 * 2), 1e-9);
    /* 8 bits: operands of products shrink, attention's output is there twice,
     * what goes into the activation stays. */
    m = layer_model_llama();
    plan = layer_bf16_plan();
    all = layer_bytes(m, &plan, 0);
    plan.precision = FR_DTYPE_FP8;
    CHECK_NEAR(all - layer_bytes(m, &plan, 0),
               rows * (256 + 256 + 704) - rows * 320, 1e-9);
}

CHECK_MAIN({"korthikanti", test_korthikanti}, {"parts", test_parts})
