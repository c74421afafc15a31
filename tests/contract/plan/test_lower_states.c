/*
 * Parameters, gradients and optimizer state under ZeRO, against the bytes per
 * parameter that the papers give: with half precision and Adam 2 + 4 + 12
 * (weight; gradient summed in float32; master copy and two moments), of which
 * ZeRO 1 shares the 12, ZeRO 2 the 4 too, ZeRO 3 all (Rajbhandari et al. 2020,
 * arXiv 1910.02054, section 3; Megatron-LM's distributed optimizer: 6 + 12/d).
 */
#include "program/lower/step/lower.h"
#include "tests/check.h"

#include <stdlib.h>

static fr_model small_model(bool is_tied)
{
    fr_model model;
    fr_model_init(&model);
    model.kind = FR_MODEL_DECODER;
    model.n_layers = 8;
    model.hidden = 256;
    model.n_heads = model.n_kv_heads = 8;
    model.head_dim = 32;
    model.ffn_hidden = 704;
    model.vocab = 1024; /* a multiple of 64 tp: no padding */
    model.max_seq = 64;
    model.is_gated_mlp = model.is_rms_norm = model.is_rope = true;
    model.activation = FR_ACTIVATION_SILU;
    model.is_tied = is_tied;
    model.norm_eps = 1e-5;
    model.rope_theta = 1e4;
    return model;
}

static fr_job small_job(int64_t global_batch)
{
    fr_job job;
    fr_job_init(&job);
    job.global_batch = global_batch;
    job.seq = 32;
    job.optimizer = FR_OPTIMIZER_ADAMW;
    return job;
}

/* Most bytes of a kind at once, persistent or not. */
static double peak_of(const fr_rank_program *rank_program, fr_memory_kind kind,
                      bool is_persistent)
{
    uint64_t peak = 0;
    for (uint32_t call = 0; call < rank_program->n_calls; call++) {
        uint64_t live = 0;
        for (uint32_t b = 0; b < rank_program->n_blocks; b++) {
            const fr_block *block = &rank_program->blocks[b];
            if (block->kind == kind && block->is_persistent == is_persistent &&
                block->first_call <= call && call <= block->last_call)
                live += block->n_bytes;
        }
        peak = live > peak ? live : peak;
    }
    return (double)peak;
}

static fr_program *lower(const fr_model *model, const fr_job *job,
                         const fr_plan *plan)
{
    fr_program *program = NULL;
    fr_err err = {0};
    if (!CHECK_OK(fr_lower(model, job, plan, NULL, &program, &err), &err))
        return NULL;
    CHECK_OK(fr_program_check(program, NULL, &err), &err);
    return program;
}

typedef struct widths {
    double weight, grad, state; /* bytes per parameter */
} widths;

/* Half precision where layers have it. */
static widths choose_precision(fr_plan *plan, const fr_model *model,
                               const fr_job *job)
{
    fr_err err = {0};
    plan->precision = FR_DTYPE_BF16;
    if (fr_plan_check_lowerable(plan, model, job, &err) == FR_OK)
        return (widths){2, 4, 12};
    plan->precision = FR_DTYPE_F32;
    return (widths){4, 4, 8};
}

static void test_bytes_per_parameter(void)
{
    fr_model model = small_model(false);
    const double n = (double)fr_model_parameters(&model);
    const double layer = 4.0 * 256 * 256 + 3.0 * 256 * 704 + 2 * 256;
    const double head = 1024.0 * 256 + 256;
    for (int d = 2; d <= 8; d *= 2)
        for (int zero = 0; zero <= 3; zero++) {
            fr_job job = small_job(d);
            fr_plan plan;
            fr_plan_init(&plan);
            plan.dp = d;
            plan.zero_stage = zero;
            widths w = choose_precision(&plan, &model, &job);
            fr_program *program = lower(&model, &job, &plan);
            if (!program)
                continue;
            const fr_rank_program *rank_program = &program->rank_programs[0];
            CHECK_NEAR(peak_of(rank_program, FR_MEMORY_PARAMETERS, true),
                       w.weight * n / (zero == 3 ? d : 1), 0.004);
            CHECK_NEAR(peak_of(rank_program, FR_MEMORY_OPTIMIZER, true),
                       w.state * n / (zero >= 1 ? d : 1), 0.004);
            CHECK_NEAR(peak_of(rank_program, FR_MEMORY_GRADIENTS, true),
                       zero >= 2 ? 0 : w.grad * n, 0.004);
            double whole = peak_of(rank_program, FR_MEMORY_PARAMETERS, false);
            double grads = peak_of(rank_program, FR_MEMORY_GRADIENTS, false);
            /* In use and prefetched: two layers, or the head and a layer. */
            double two = fmax(2 * layer, layer + head);
            if (zero < 3)
                CHECK(whole <= 0);
            else
                CHECK(whole >= 0.99 * w.weight * two &&
                      whole <= 1.01 * w.weight * (two + layer));
            /* Shards of all, and up to two sets on their way. */
            if (zero >= 2)
                CHECK(grads >= 0.99 * w.grad * n / d &&
                      grads <= 1.01 * w.grad * (n / d + two));
            fr_program_destroy(program);
        }
}

/* Bytes that one rank's collectives of an op carry in a step, whole. */
static double carried(const fr_program *program, uint32_t i_stage, fr_op op,
                      fr_axis axis, int lane)
{
    const fr_rank_program *rank_program = &program->rank_programs[i_stage];
    double sum = 0;
    for (uint32_t i = 0; i < rank_program->n_calls; i++) {
        const fr_segment *segment =
            &program->segments[rank_program->calls[i].i_segment];
        for (uint32_t k = 0; k < segment->n_instrs; k++) {
            const fr_instr *instr = &program->instrs[segment->first_instr + k];
            if (instr->op == op && instr->axis == axis &&
                (lane < 0 || segment->lane == lane))
                sum += (double)instr->dim[0] *
                       (double)fr_dtype_bytes((fr_dtype)instr->dtype);
        }
    }
    return sum;
}

/*
 * FSDP: every layer is gathered before forward and before backward, gradients
 * are reduced once per micro-batch (Zhao et al. 2023, section 3).
 */
static void test_traffic(void)
{
    fr_model model = small_model(false);
    const double n = (double)fr_model_parameters(&model);
    const double embed = 1024.0 * 256, head = embed + 256;
    const double layers = n - embed - head;
    const double last = layers / 8;
    for (int n_micro = 1; n_micro <= 3; n_micro++)
        for (int is_resharded = 0; is_resharded < 2; is_resharded++) {
            fr_job job = small_job(4 * n_micro);
            fr_plan plan;
            fr_plan_init(&plan);
            plan.dp = 4;
            plan.zero_stage = 3;
            plan.is_resharded = is_resharded;
            widths w = choose_precision(&plan, &model, &job);
            fr_program *program = lower(&model, &job, &plan);
            if (!program)
                continue;
            double gathered = carried(program, 0, FR_OP_ALL_GATHER, FR_AXIS_DP,
                                      FR_LANE_GATHER);
            /* The last layer is used again at once: it stays. */
            double expected =
                is_resharded ? n + layers - last : embed + head + layers;
            CHECK_NEAR(gathered, n_micro * w.weight * expected, 0.004);
            CHECK_NEAR(carried(program, 0, FR_OP_REDUCE_SCATTER, FR_AXIS_DP,
                               FR_LANE_DP),
                       n_micro * w.grad * n, 0.004);
            fr_program_destroy(program);
        }
}

/* Hybrid sharding: whole in each group, shards summed over the groups. */
static void test_hybrid(void)
{
    fr_model model = small_model(false);
    const double n = (double)fr_model_parameters(&model);
    for (int zero = 1; zero <= 3; zero++) {
        fr_job job = small_job(8);
        fr_plan plan;
        fr_plan_init(&plan);
        plan.dp = 8;
        plan.zero_stage = zero;
        plan.zero_group = 2;
        widths w = choose_precision(&plan, &model, &job);
        fr_program *program = lower(&model, &job, &plan);
        if (!program)
            continue;
        CHECK_NEAR(carried(program, 0, FR_OP_REDUCE_SCATTER, FR_AXIS_SHARD, -1),
                   w.grad * n, 0.004);
        CHECK_NEAR(carried(program, 0, FR_OP_ALL_REDUCE, FR_AXIS_REPLICA, -1),
                   w.grad * n / 2, 0.004);
        CHECK(carried(program, 0, FR_OP_ALL_REDUCE, FR_AXIS_DP, -1) <= 0);
        CHECK_NEAR(
            peak_of(&program->rank_programs[0], FR_MEMORY_OPTIMIZER, true),
            w.state * n / 2, 0.004);
        fr_program_destroy(program);
    }
}

/*
 * Experts: each rank holds E / ep of them, 1 / etp of each, and shares their
 * optimizer state with those that hold the same; all the rest as ever.
 */
static void test_experts(void)
{
    static const int grids[][5] = {
        /* tp dp ep etp zero */
        {1, 8, 4, 1, 1}, {1, 8, 8, 1, 1}, {2, 4, 4, 1, 1}, {2, 4, 2, 2, 0},
        {1, 8, 2, 1, 3}, {4, 2, 8, 1, 2}, {1, 4, 1, 1, 3}, {2, 8, 8, 1, 3},
    };
    fr_model model = small_model(false);
    model.n_experts = 8;
    model.n_experts_per_token = 2;
    model.expert_ffn_hidden = 640;
    for (size_t g = 0; g < sizeof grids / sizeof grids[0]; g++) {
        const int tp = grids[g][0], dp = grids[g][1], ep = grids[g][2];
        const int etp = grids[g][3], zero = grids[g][4];
        const double routers = 8.0 * (8 * 256), norms = 256.0 * 17;
        const double experts = 8.0 * 8 * 3 * 256 * 640;
        const double split =
            (double)fr_model_parameters(&model) - experts - routers - norms;
        const double dense = split / tp + routers + norms;
        const double mine = experts / (ep * etp);
        const double n_edp = (double)tp * dp / (ep * etp);
        fr_job job = small_job(dp);
        fr_plan plan;
        fr_err err = {0};
        fr_plan_init(&plan);
        plan.tp = tp;
        plan.dp = dp;
        plan.ep = ep;
        plan.etp = etp;
        plan.zero_stage = zero;
        plan.is_sequence_parallel = tp > 1;
        widths w = choose_precision(&plan, &model, &job);
        fr_program *program = NULL;
        if (!CHECK_OK(fr_lower(&model, &job, &plan, NULL, &program, &err),
                      &err))
            continue;
        const fr_rank_program *rank_program = &program->rank_programs[0];
        CHECK_NEAR(peak_of(rank_program, FR_MEMORY_PARAMETERS, true),
                   w.weight *
                       (zero == 3 ? dense / dp + mine / n_edp : dense + mine),
                   0.006);
        CHECK_NEAR(peak_of(rank_program, FR_MEMORY_OPTIMIZER, true),
                   w.state * (zero ? dense / dp + mine / n_edp : dense + mine),
                   0.006);
        double reduced =
            carried(program, 0, zero ? FR_OP_REDUCE_SCATTER : FR_OP_ALL_REDUCE,
                    FR_AXIS_EDP, -1);
        if (n_edp > 1)
            CHECK_NEAR(reduced, w.grad * mine, 0.006);
        else
            CHECK(reduced <= 0);
        CHECK_NEAR(carried(program, 0,
                           zero ? FR_OP_REDUCE_SCATTER : FR_OP_ALL_REDUCE,
                           FR_AXIS_DP, -1),
                   w.grad * dense, 0.006);
        fr_program_destroy(program);
    }
}

/* ZeRO 1 that the runtime cannot execute gathers at the begin, on its lane. */
static void test_gather_lane(void)
{
    fr_model model = small_model(true);
    const double n = (double)fr_model_parameters(&model);
    const fr_job job = small_job(4);
    fr_plan plan;
    fr_plan_init(&plan);
    plan.dp = 4;
    plan.zero_stage = 1;
    for (int is_early = 0; is_early < 2; is_early++) {
        /* Nothing of ours runs such positions: lowered as frameworks do it. */
        model.has_rope_scaling = is_early;
        model.rope_factor = 0;
        fr_program *program = lower(&model, &job, &plan);
        if (!program)
            continue;
        CHECK_NEAR(carried(program, 0, FR_OP_ALL_GATHER, FR_AXIS_DP,
                           is_early ? FR_LANE_GATHER : FR_LANE_DP),
                   4 * n, 0.004);
        fr_program_destroy(program);
    }
}

/* Returns the number of calls of segments whose name begins so. */
static int count_calls(const fr_program *program, const char *name)
{
    const fr_rank_program *rank_program = &program->rank_programs[0];
    int n = 0;
    for (uint32_t i = 0; i < rank_program->n_calls; i++)
        n += strncmp(program->segments[rank_program->calls[i].i_segment].name,
                     name, strlen(name)) == 0;
    return n;
}

/* Returns the bytes that the first call that offloads takes away. */
static double offloaded_bytes(const fr_program *program)
{
    double sum = 0;
    for (uint32_t i = 0; i < program->n_segments && sum <= 0; i++) {
        const fr_segment *segment = &program->segments[i];
        for (uint32_t k = 0; k < segment->n_instrs; k++) {
            const fr_instr *instr = &program->instrs[segment->first_instr + k];
            if (instr->op == FR_OP_HOST_COPY)
                sum += (double)instr->copy.n_bytes;
        }
    }
    return sum;
}

static void test_offload(void)
{
    fr_model model = small_model(false);
    const double n = (double)fr_model_parameters(&model);
    fr_job job = small_job(8);
    fr_plan plan;
    fr_plan_init(&plan);
    plan.dp = 2;
    plan.zero_stage = 1;
    plan.is_optimizer_offloaded = true;
    fr_program *program = lower(&model, &job, &plan);
    if (program) {
        CHECK(peak_of(&program->rank_programs[0], FR_MEMORY_OPTIMIZER, true) <=
              0);
        double moved = 0;
        for (uint32_t i = 0; i < program->n_instrs; i++)
            if (program->instrs[i].op == FR_OP_HOST_COPY)
                moved += (double)program->instrs[i].dim[0];
        CHECK_NEAR(moved, (4 + 4) * n / 2, 0.004);
        /* Gradients, two moments, and the parameters that are stepped. */
        CHECK_NEAR((double)program->rank_programs[0].host_bytes,
                   (4 + 8 + 4) * n / 2, 0.004);
        fr_program_destroy(program);
    }
    fr_plan_init(&plan);
    plan.dp = 2;
    plan.activation_offload_frac = 0.75;
    program = lower(&model, &job, &plan);
    if (!program)
        return;
    /* 4 micro-batches x 8 layers. */
    CHECK_INT(count_calls(program, "offload"), 24);
    CHECK_INT(count_calls(program, "fetch"), 24);
    /* Six layers of a micro-batch are away at once. */
    CHECK_NEAR((double)program->rank_programs[0].host_bytes,
               6.0 * offloaded_bytes(program), 0.01);
    double kept =
        peak_of(&program->rank_programs[0], FR_MEMORY_ACTIVATIONS, false);
    fr_program_destroy(program);
    plan.activation_offload_frac = 0;
    program = lower(&model, &job, &plan);
    if (!program)
        return;
    double all =
        peak_of(&program->rank_programs[0], FR_MEMORY_ACTIVATIONS, false);
    printf("# offload of 3/4: activations %.3f of what they were\n",
           kept / all);
    /* A quarter stays, two layers go and two come: (2 + 2) / 8. */
    CHECK(kept < 0.65 * all);
    fr_program_destroy(program);
}

static double flop_of(const fr_program *program)
{
    double sum = 0;
    for (uint32_t c = 0; c < program->n_rank_programs; c++) {
        const fr_rank_program *rank_program = &program->rank_programs[c];
        for (uint32_t i = 0; i < rank_program->n_calls; i++) {
            const fr_segment *segment =
                &program->segments[rank_program->calls[i].i_segment];
            for (uint32_t k = 0; k < segment->n_instrs; k++)
                sum += (double)fr_instr_flop(
                    &program->instrs[segment->first_instr + k]);
        }
    }
    return sum;
}

static double worst_activations(const fr_program *program)
{
    double worst = 0;
    for (uint32_t c = 0; c < program->n_rank_programs; c++)
        worst = fmax(worst, peak_of(&program->rank_programs[c],
                                    FR_MEMORY_ACTIVATIONS, false));
    return worst;
}

/* A backward in two parts does the same work, whoever holds which stage. */
static void test_split_backward(void)
{
    static const fr_schedule_kind kinds[] = {FR_SCHEDULE_ZB_H1,
                                             FR_SCHEDULE_ZB_V};
    for (int i = 0; i < 8; i++) {
        fr_model model = small_model(i & 1);
        fr_job job = small_job(8);
        fr_plan plan;
        fr_plan_init(&plan);
        plan.pp = 4;
        plan.tp = 1 + (i >> 1 & 1);
        plan.precision = i & 1 ? FR_DTYPE_BF16 : FR_DTYPE_F32;
        plan.is_flash = true;
        plan.is_sequence_parallel = plan.tp > 1;
        fr_program *whole = lower(&model, &job, &plan);
        plan.schedule = kinds[i >> 2];
        plan.vpp = 1 + (i >> 2);
        fr_program *parts = lower(&model, &job, &plan);
        if (whole && parts) {
            /* A tied matrix is held, and summed for the norm, once. */
            CHECK_NEAR(flop_of(parts), flop_of(whole),
                       model.is_tied ? 1e-4 : 1e-9);
            /* Qi et al.: as much memory as 1F1B's first rank, and what the
             * second part of backward waits with. */
            CHECK(worst_activations(parts) < 1.35 * worst_activations(whole));
            CHECK_INT(count_calls(parts, "layer_bwd_input"), 8 * 2);
            CHECK_INT(count_calls(parts, "layer_bwd_weights"), 8 * 2);
            /* In V shape both ends are rank 0's, which shares what is tied. */
            CHECK_INT(count_calls(parts, "tied_grad_reduce"),
                      model.is_tied && plan.vpp == 1);
            CHECK_INT(count_calls(parts, "head") > 0, plan.vpp == 2);
        }
        fr_program_destroy(whole);
        fr_program_destroy(parts);
    }
}

/* Full recompute of the first layers of each chunk. */
static void test_recompute_layers(void)
{
    fr_model model = small_model(false);
    fr_job job = small_job(4);
    fr_plan plan;
    fr_plan_init(&plan);
    plan.pp = 2;
    plan.recompute = FR_RECOMPUTE_FULL;
    for (int layers = 0; layers <= 4; layers++) {
        plan.recompute_layers = layers;
        fr_program *program = lower(&model, &job, &plan);
        if (!program)
            continue;
        CHECK_INT(count_calls(program, "layer_recompute"),
                  4 * (layers ? layers : 4));
        fr_program_destroy(program);
    }
}

CHECK_MAIN({"bytes_per_parameter", test_bytes_per_parameter},
           {"traffic", test_traffic}, {"hybrid", test_hybrid},
           {"experts", test_experts}, {"gather_lane", test_gather_lane},
           {"offload", test_offload}, {"split_backward", test_split_backward},
           {"recompute_layers", test_recompute_layers})
