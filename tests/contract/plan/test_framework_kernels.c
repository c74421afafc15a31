/*
 * Bytes that the kernels of frameworks move beyond the operations of a layer,
 * against sums made by hand from the operators that they run.
 */
#include "program/lower/step/lower.h"
#include "tests/check.h"
#include "tests/contract/plan/layer_models.h"

#include <string.h>

/* Bytes and kernels of ELEMENTWISE in one segment. */
typedef struct overhead {
    double bytes;
    int n_kernels;
} overhead;

static overhead overhead_of(const fr_program *program, const char *name)
{
    overhead sum = {0.0, 0};
    for (uint32_t s = 0; s < program->n_segments; s++) {
        const fr_segment *segment = &program->segments[s];
        if (strcmp(segment->name, name) != 0)
            continue;
        for (uint32_t i = 0; i < segment->n_instrs; i++) {
            const fr_instr *instr = &program->instrs[segment->first_instr + i];
            if (instr->op != FR_OP_ELEMENTWISE)
                continue;
            sum.bytes += (double)instr->dim[0];
            sum.n_kernels += (int)instr->dim[1];
        }
    }
    return sum;
}

/* The job's 8 micro-batches, or one. */
static overhead sum_over(const fr_model *m, const fr_plan *plan, double dropout,
                         const char *name, bool is_one)
{
    fr_job job = layer_small_job();
    job.dropout = dropout;
    if (is_one)
        job.global_batch = plan->micro_batch * plan->dp;
    fr_program *program = layer_lower(m, &job, plan);
    overhead sum = overhead_of(program, name);
    fr_program_destroy(program);
    return sum;
}

static overhead lower_and_sum(const fr_model *m, const fr_plan *plan,
                              double dropout, const char *name)
{
    return sum_over(m, plan, dropout, name, true);
}

/* 256 rows of 256; q 320, k and v 160 each; gate and up 704 each. */
enum { R = 256, H = 256, Q = 320, KV = 320, F = 704 };

static void test_eager_llama(void)
{
    fr_model m = layer_model_llama();
    fr_plan plan = layer_bf16_plan();
    plan.execution.kernels = FR_KERNELS_EAGER;
    plan.execution.flash_kind = FR_FLASH_2;
    /* RMSNorm: to f32 6, pow 8, mean 4, mul 8, to bf16 6, weight 4. */
    double norm = R * H * (6 + 8 + 4 + 8 + 6 + 4 - 4.0);
    /* Rotation of q and k: to f32 6, complex product 8, back 6. */
    double rotation = R * (Q + 160) * (6 + 8 + 6 - 4.0);
    /* k and v read, written for eight heads. */
    double repeated = R * (KV + 640) * 2.0;
    overhead fwd = lower_and_sum(&m, &plan, 0.0, "layer_fwd");
    CHECK_NEAR(fwd.bytes, 2 * norm + rotation + repeated + R * F * (10 - 6.0),
               1e-12);
    /* weight: 4 + 6 + 2; casts 12; x r: 8, 12, 4; mean 4, pow 8 8 12; both
     * gradients of x 12; then the residual's, which NORM_BWD has as 4. */
    norm = R * H * (12 + 12 + 24 + 32 + 12 - 6 + 6 - 2.0);
    overhead bwd = lower_and_sum(&m, &plan, 0.0, "layer_bwd");
    CHECK_NEAR(bwd.bytes,
               2 * norm + rotation + repeated + R * F * (18 - 10.0) +
                   R * H * (12 + 6.0),
               1e-12);
    CHECK(fwd.n_kernels > 20 && bwd.n_kernels > 30);
}

static void test_compiled_llama(void)
{
    fr_model m = layer_model_llama();
    fr_plan plan = layer_bf16_plan();
    plan.execution.kernels = FR_KERNELS_COMPILED;
    plan.execution.flash_kind = FR_FLASH_2;
    double rotation = R * (Q + 160) * 16.0, repeated = R * (KV + 640) * 2.0;
    CHECK_NEAR(lower_and_sum(&m, &plan, 0.0, "layer_fwd").bytes,
               rotation + repeated, 1e-12);
    CHECK_NEAR(lower_and_sum(&m, &plan, 0.0, "layer_bwd").bytes,
               2 * R * H * 4.0 + rotation + repeated + R * H * (4 + 2.0),
               1e-12);
}

/* MPT: packed projection, LayerNorm, sequences without padding. */
static void test_eager_gpt(void)
{
    fr_model m = layer_model_gpt();
    fr_plan plan = layer_bf16_plan();
    plan.execution.kernels = FR_KERNELS_EAGER;
    plan.execution.flash_kind = FR_FLASH_1;
    CHECK_NEAR(lower_and_sum(&m, &plan, 0.0, "layer_fwd").bytes,
               R * H * (3 * 4 + 6.0), 1e-12);
    CHECK_NEAR(lower_and_sum(&m, &plan, 0.0, "layer_bwd").bytes,
               2 * R * H * (4 + 4.0) + R * H * (3 * 6 + 4 + 3 * 4.0), 1e-12);
}

/* Attention of operators: 2 x 8 heads of 128 x 128 pairs a micro-batch; per
 * pair a division 4, a mask 4, softmax to f32 6, a cast 6 for 4; backward casts
 * 12, softmax 12, the division 4 for 6.  Dropout of two sums. */
static void test_eager_unfused(void)
{
    fr_model m = layer_model_gpt();
    fr_plan plan = layer_bf16_plan();
    double pairs = 2 * 8 * 128 * 128;
    plan.execution.kernels = FR_KERNELS_EAGER;
    plan.is_flash = false;
    CHECK_NEAR(lower_and_sum(&m, &plan, 0.1, "layer_fwd").bytes,
               pairs * (20 - 4.0) + 2 * R * H * 4.0, 1e-12);
    CHECK_NEAR(lower_and_sum(&m, &plan, 0.1, "layer_bwd").bytes,
               pairs * (28 - 6.0) + 2 * R * H * (4 + 4.0) + R * H * 3 * 4.0,
               1e-12);
}

/* Megatron-LM with products and softmax apart, and with fused attention. */
static void test_fused(void)
{
    fr_model m = layer_model_gpt();
    fr_plan plan = layer_bf16_plan();
    CHECK_NEAR(lower_and_sum(&m, &plan, 0.0, "layer_fwd").bytes, 0.0, 0.0);
    CHECK_NEAR(lower_and_sum(&m, &plan, 0.0, "layer_bwd").bytes,
               2 * R * H * 4.0, 1e-12);
    plan.is_flash = false;
    CHECK_NEAR(lower_and_sum(&m, &plan, 0.1, "layer_fwd").bytes, R * H * 4.0,
               1e-12);
    CHECK_NEAR(lower_and_sum(&m, &plan, 0.1, "layer_bwd").bytes,
               2 * R * H * 4.0 + R * H * 3 * 4.0, 1e-12);
}

/* Gradients of a layer's parameters: side by side and cast for FSDP, added to
 * what is there without it. */
static void test_gradients(void)
{
    fr_model m = layer_model_gpt();
    fr_plan plan = layer_bf16_plan();
    double n = 4.0 * H * H + 8.0 * H * H + 4 * H + 5 * H + 4 * H;
    double plain = lower_and_sum(&m, &plan, 0.0, "layer_bwd").bytes;
    plan.execution.is_grad_added_apart = true;
    CHECK_NEAR(lower_and_sum(&m, &plan, 0.0, "layer_bwd").bytes - plain, n * 4,
               1e-12);
    plan.execution.is_grad_added_apart = false;
    plan.execution.kernels = FR_KERNELS_EAGER;
    plain = lower_and_sum(&m, &plan, 0.0, "layer_bwd").bytes;
    CHECK_NEAR(sum_over(&m, &plan, 0.0, "layer_bwd", false).bytes - plain,
               n * 4, 1e-12);
    plan.dp = 2;
    plan.zero_stage = 3;
    CHECK_NEAR(lower_and_sum(&m, &plan, 0.0, "layer_bwd").bytes - plain,
               n * (4 + 6.0), 1e-12);
}

/* Bytes that all kernels of the loss move per logit; 1024 x 256 of them. */
static double loss_bytes(const fr_plan *plan)
{
    fr_model m = layer_model_gpt();
    fr_job job = layer_small_job();
    fr_program *program = layer_lower(&m, &job, plan);
    double sum = 0.0;
    for (uint32_t s = 0; s < program->n_segments; s++) {
        const fr_segment *segment = &program->segments[s];
        if (strcmp(segment->name, "head") != 0)
            continue;
        for (uint32_t i = 0; i < segment->n_instrs; i++) {
            const fr_instr *instr = &program->instrs[segment->first_instr + i];
            double bytes = (double)fr_instr_moved_bytes(instr, 1);
            if (instr->op == FR_OP_XENT) /* a second look at the row */
                sum += bytes * 1.5;
            if (instr->op == FR_OP_CAST ||
                (instr->op == FR_OP_ELEMENTWISE && instr->dim[0] > 1 << 20))
                sum += bytes;
        }
    }
    fr_program_destroy(program);
    return sum / (R * 1024.0);
}

static void test_losses(void)
{
    fr_plan plan = layer_bf16_plan();
    /* to f32 6, max 4, -= 8, exp 8, sum 4, div_ 8, mul_ 8, back 6 */
    CHECK_NEAR(loss_bytes(&plan), 52.0, 1e-2);
    plan.execution.kernels = FR_KERNELS_EAGER;
    /* to f32 6, log_softmax 16, zeros 4, its backward 16, back 6 */
    CHECK_NEAR(loss_bytes(&plan), 48.0, 1e-2);
    plan.execution.is_loss_fused = true;
    CHECK_NEAR(loss_bytes(&plan), 6.0, 1e-2);
    plan.execution.n_loss_metrics = 2; /* each: to f32 6, log_softmax 16 */
    CHECK_NEAR(loss_bytes(&plan), 50.0, 1e-2);
}

/* Kernels before the casts of operands, against delayed scales. */
static void check_scaling(fr_plan plan, double per_element, double per_weight,
                          int n_kernels)
{
    static const char *const names[3] = {"layer_fwd", "layer_bwd",
                                         "weight_cast"};
    const double n[3] = {
        (double)R * (H + Q + H + F), (double)R * (H + 2 * F + H + Q + KV),
        (double)H * (Q + KV + Q + 2 * F + F + 2)}; /* and norms */
    fr_model m = layer_model_llama();
    fr_plan plain = plan;
    plain.precision = FR_DTYPE_FP8;
    plain.execution.scaling = FR_SCALING_DELAYED;
    for (int i = 0; i < 3; i++) {
        overhead with = lower_and_sum(&m, &plan, 0.0, names[i]);
        overhead without = lower_and_sum(&m, &plain, 0.0, names[i]);
        double per = i < 2 ? per_element : per_weight;
        CHECK_NEAR(with.bytes - without.bytes, per * n[i], 1e-6);
        if (i < 2)
            CHECK_INT(with.n_kernels - without.n_kernels, n_kernels);
    }
}

static void test_scaling(void)
{
    fr_plan plan = layer_bf16_plan();
    plan.precision = FR_DTYPE_FP8;
    plan.execution.scaling = FR_SCALING_CURRENT;
    check_scaling(plan, 2.0, 2.0, 8);
    plan.execution.scaling = FR_SCALING_BLOCK;
    check_scaling(plan, 4.0 / 32.0, 0.0, 8);
    plan.precision = FR_DTYPE_FP4;
    check_scaling(plan, 2.0 + 2.0 * (2.0 + 0.5625) - 4.0, 2.0, 8);
}

/* Operands stay in 16 bits until their product.  Forward reads and writes 3
 * bytes of each; backward 3 of dy, 7 of what it reads by columns, and 4 of each
 * result. */
static void test_row_scaling(void)
{
    const double x = (double)R * (2 * H + Q + F), /* inputs, then outputs */
        y = (double)R * (Q + KV + H + 2 * F + H),
                 w = (double)H * (Q + KV + Q + 2 * F + F);
    const double bytes[2] = {3 * (x + w),
                             3 * y + 7 * w + 4 * x + 7 * (y + x) + 4 * w};
    static const char *const names[2] = {"layer_fwd", "layer_bwd"};
    fr_model m = layer_model_llama();
    fr_plan plan = layer_bf16_plan(), wide = plan;
    plan.precision = FR_DTYPE_FP8;
    plan.execution.scaling = FR_SCALING_ROW;
    for (int i = 0; i < 2; i++) {
        overhead with = lower_and_sum(&m, &plan, 0.0, names[i]);
        overhead without = lower_and_sum(&m, &wide, 0.0, names[i]);
        CHECK_NEAR(with.bytes - without.bytes, bytes[i], 1e-6);
    }
}

/* Flop of products that are made again, and what a layer keeps. */
static void again(const fr_plan *plan, double *flop, uint64_t *saved)
{
    fr_model m = layer_model_llama();
    fr_job job = layer_small_job();
    fr_program *program = layer_lower(&m, &job, plan);
    const fr_rank_program *rank_program = &program->rank_programs[0];
    uint64_t kinds[FR_MEMORY_N], peak;
    fr_err err = {0};
    *flop = 0.0;
    for (uint32_t c = 0; c < rank_program->n_calls; c++) {
        const fr_segment *s =
            &program->segments[rank_program->calls[c].i_segment];
        for (uint32_t i = 0; i < s->n_instrs; i++) {
            const fr_instr *instr = &program->instrs[s->first_instr + i];
            if (instr->op == FR_OP_LINEAR_FWD &&
                (s->role == FR_SEGMENT_RECOMPUTE ||
                 instr->flags & FR_INSTR_RECOMPUTED))
                *flop += (double)fr_instr_flop(instr);
        }
    }
    CHECK_OK(fr_program_check(program, NULL, &err), &err);
    CHECK_OK(fr_rank_program_peak(rank_program, kinds, &peak, &err), &err);
    *saved = kinds[FR_MEMORY_ACTIVATIONS];
    fr_program_destroy(program);
}

static void test_every_second_product(void)
{
    fr_plan plan = layer_bf16_plan();
    double none, every_second, low;
    uint64_t kept_all, kept_half, kept_none;
    plan.execution.kernels = FR_KERNELS_EAGER;
    again(&plan, &none, &kept_all);
    CHECK_NEAR(none, 0.0, 0.0);
    plan.recompute = FR_RECOMPUTE_SELECTIVE;
    plan.recompute_parts = FR_RECOMPUTE_PART_PRODUCTS;
    again(&plan, &every_second, &kept_half);
    /* 16 x 128 tokens, 4 layers: k, attention's last, up. */
    CHECK_NEAR(every_second, 2.0 * 2048 * 4 * (H * 160 + Q * H + H * F), 1e-12);
    plan.precision = FR_DTYPE_FP8;
    again(&plan, &low, &kept_none);
    CHECK_NEAR(low, 2.0 * 2048 * 4 * (H * (Q + KV) + Q * H + H * 2 * F), 1e-12);
    plan.precision = FR_DTYPE_BF16;
    plan.recompute = FR_RECOMPUTE_FULL;
    again(&plan, &none, &kept_none);
    CHECK(kept_none < kept_half && kept_half < kept_all);
}

/* Schedules that run the gradients of weights apart. */
static void test_split(void)
{
    static const uint32_t parts[] = {FR_RECOMPUTE_PART_PRODUCTS,
                                     FR_RECOMPUTE_PART_NORM};
    fr_model m = layer_model_llama();
    fr_job job = layer_small_job();
    for (int i = 0; i < 2 * FR_KERNELS_N; i++) {
        fr_plan plan = layer_bf16_plan();
        fr_err err = {0};
        plan.pp = 2;
        plan.schedule = FR_SCHEDULE_ZB_H1;
        plan.execution.kernels = (fr_kernel_set)(i / 2);
        plan.recompute = FR_RECOMPUTE_SELECTIVE;
        plan.recompute_parts = parts[i % 2];
        fr_program *program = layer_lower(&m, &job, &plan);
        if (program)
            CHECK_OK(fr_program_check(program, NULL, &err), &err);
        fr_program_destroy(program);
    }
}

/* The CPU runtime's own plans have none of it. */
static void test_executable(void)
{
    fr_model m = layer_model_llama();
    fr_plan plan;
    fr_plan_init(&plan);
    plan.micro_batch = 2;
    for (int k = 0; k < FR_KERNELS_N; k++) {
        plan.execution.kernels = (fr_kernel_set)k;
        CHECK_NEAR(lower_and_sum(&m, &plan, 0.0, "layer_fwd").bytes, 0.0, 0.0);
        CHECK_NEAR(lower_and_sum(&m, &plan, 0.0, "layer_bwd").bytes, 0.0, 0.0);
    }
}

CHECK_MAIN({"eager_llama", test_eager_llama},
           {"compiled_llama", test_compiled_llama},
           {"eager_gpt", test_eager_gpt}, {"eager_unfused", test_eager_unfused},
           {"fused", test_fused}, {"gradients", test_gradients},
           {"losses", test_losses},
           {"every_second_product", test_every_second_product},
           {"scaling", test_scaling}, {"row_scaling", test_row_scaling},
           {"split", test_split}, {"executable", test_executable})
