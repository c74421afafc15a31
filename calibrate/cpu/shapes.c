/* shapes.c: see shapes.h. */
#include "calibrate/cpu/shapes.h"

#include "core/numbers/rng.h"
#include "kernels/cpu/kernels_cpu.h"
#include "plan/codec/compressor.h"
#include "plan/schedule/schedule.h"
#include "program/ir/reuse.h"
#include "program/lower/step/lower.h"

#include <stdlib.h>
#include <string.h>

void fr_shapes_init(fr_shapes *shapes)
{
    memset(shapes, 0, sizeof *shapes);
}

void fr_shapes_release(fr_shapes *shapes)
{
    for (size_t i = 0; i < shapes->programs.n; i++)
        fr_program_destroy(shapes->programs.items[i]);
    fr_vec_release(&shapes->programs);
    fr_vec_release(&shapes->list);
}

static fr_shape *find_shape(const fr_shapes *shapes,
                            const fr_compute_point *key, uint64_t hash)
{
    for (size_t i = 0; i < shapes->list.n; i++)
        if (shapes->list.items[i].hash == hash &&
            shapes->list.items[i].key.n_threads == key->n_threads &&
            fr_compute_key_equal(&shapes->list.items[i].key, key))
            return &shapes->list.items[i];
    return NULL;
}

static fr_status push_shape(fr_shapes *shapes, const fr_shape *shape,
                            fr_err *err)
{
    FR_TRY_PUSH(&shapes->list, *shape, err);
    return FR_OK;
}

fr_status fr_shapes_add(fr_shapes *shapes, fr_shape *shape, fr_err *err)
{
    shape->hash = fr_compute_key_hash(&shape->key);
    return find_shape(shapes, &shape->key, shape->hash) != NULL
               ? FR_OK
               : push_shape(shapes, shape, err);
}

static fr_status add_instr(fr_shapes *shapes, const fr_program *program,
                           uint32_t i_stage, const fr_instr *instr,
                           const fr_fingerprint *machine, fr_err *err)
{
    fr_shape shape = {
        .instr = *instr, .program = program, .i_stage = i_stage, .n_uses = 1};
    fr_shape *known;

    /* To the host's memory and back is a copy like others (compute_key.c). */
    if (instr->op == FR_OP_HOST_COPY) {
        shape.instr.op = FR_OP_COPY;
        shape.instr.copy.is_to_host = 0;
    } else if (fr_op_class_of((fr_op)instr->op) != FR_OP_CLASS_COMPUTE) {
        return FR_OK;
    }
    fr_compute_key(instr, machine, program->plan.n_threads, &shape.key);
    shape.hash = fr_compute_key_hash(&shape.key);
    known = find_shape(shapes, &shape.key, shape.hash);
    if (known != NULL) {
        known->n_uses++;
        return FR_OK;
    }
    return push_shape(shapes, &shape, err);
}

/* Adds every instruction of a rank program once. */
static fr_status add_rank_program(fr_shapes *shapes, const fr_program *program,
                                  uint32_t i_stage, bool *is_seen,
                                  const fr_fingerprint *machine, fr_err *err)
{
    fr_instr_walk at = {.program = program,
                        .rank_program = &program->rank_programs[i_stage]};

    while (fr_instr_walk_next(&at)) {
        if (is_seen[at.i_instr])
            continue;
        is_seen[at.i_instr] = true;
        FR_TRY(add_instr(shapes, program, i_stage, at.instr, machine, err));
    }
    return FR_OK;
}

fr_status fr_shapes_add_program(fr_shapes *shapes, fr_program *program,
                                const fr_fingerprint *machine, fr_err *err)
{
    fr_status status = FR_OK;
    bool *is_seen;

    if (fr_vec_push(&shapes->programs, program) != FR_OK) {
        fr_program_destroy(program);
        return fr_fail_no_memory(err);
    }
    if (machine->gpu.name[0] == '\0') /* a GPU's L2 keeps operands by size */
        FR_TRY(fr_program_mark_reuse(program, err));
    FR_TRY_CALLOC(is_seen, program->n_instrs + 1, err);
    for (uint32_t c = 0; status == FR_OK && c < program->n_rank_programs; c++)
        status = add_rank_program(shapes, program, c, is_seen, machine, err);
    free(is_seen);
    return status;
}

/* ---- candidate plans ----------------------------------------------------- */

static fr_status add_plan(fr_shapes *shapes, const fr_candidates *wanted,
                          const fr_job *job, const fr_plan *plan,
                          const fr_fingerprint *machine, fr_err *err)
{
    fr_program *program;
    fr_placement placement = {.n_ranks = fr_plan_world(plan)};

    if (fr_plan_check(plan, wanted->model, job, NULL) != FR_OK ||
        fr_plan_check_executable(plan, wanted->model, job, NULL) != FR_OK)
        return FR_OK;
    FR_TRY(fr_lower(wanted->model, job, plan, &placement, &program, err));
    return fr_shapes_add_program(shapes, program, machine, err);
}

/* ---- other ways, one at a time; false: not from this plan ---------------- */

/* The fits know the smaller products of more ranks, in any way. */
static bool is_whole(const fr_plan *plan)
{
    return fr_plan_world(plan) == 1;
}

static bool shard_gradients(const fr_model *model, fr_plan *plan)
{
    (void)model;
    plan->zero_stage = 2;
    return plan->dp > 1;
}

static bool shard_parameters(const fr_model *model, fr_plan *plan)
{
    (void)model;
    plan->zero_stage = 3;
    return plan->dp > 1;
}

static bool split_backward(const fr_model *model, fr_plan *plan)
{
    (void)model;
    plan->schedule = FR_SCHEDULE_ZB_H1;
    return plan->pp > 1;
}

static bool fuse_attention(const fr_model *model, fr_plan *plan)
{
    (void)model;
    plan->is_flash = true;
    return is_whole(plan);
}

/* The replicas share sequences instead. */
static bool share_sequences(fr_plan *plan, fr_cp_kind kind)
{
    plan->cp = plan->dp;
    plan->dp = 1;
    plan->cp_kind = kind;
    plan->is_flash = kind == FR_CP_RING;
    return plan->cp > 1;
}

static bool pass_keys_round(const fr_model *model, fr_plan *plan)
{
    (void)model;
    return share_sequences(plan, FR_CP_RING);
}

static bool gather_keys(const fr_model *model, fr_plan *plan)
{
    (void)model;
    return share_sequences(plan, FR_CP_ALL_GATHER);
}

static bool exchange_heads(const fr_model *model, fr_plan *plan)
{
    (void)model;
    return share_sequences(plan, FR_CP_ALL_TO_ALL);
}

static bool spread_experts(const fr_model *model, fr_plan *plan)
{
    plan->ep = plan->dp;
    return model->n_experts > 0 && plan->dp > 1;
}

static bool offload(const fr_model *model, fr_plan *plan)
{
    (void)model;
    plan->is_optimizer_offloaded = true;
    plan->activation_offload_frac = 1;
    return is_whole(plan);
}

static bool halve_precision(const fr_model *model, fr_plan *plan)
{
    (void)model;
    plan->precision = FR_DTYPE_BF16;
    plan->execution.kernels = FR_KERNELS_OWN;
    plan->is_flash = true;
    return is_whole(plan);
}

static bool (*const other_ways[])(const fr_model *, fr_plan *) = {
    shard_gradients, shard_parameters, split_backward, fuse_attention,
    pass_keys_round, gather_keys,      exchange_heads, spread_experts,
    offload,         halve_precision};

static fr_status add_other_ways(fr_shapes *shapes, const fr_candidates *wanted,
                                const fr_plan *base,
                                const fr_fingerprint *machine, fr_err *err)
{
    for (size_t i = 0; i < FR_LENGTH(other_ways) && !wanted->is_quick; i++) {
        fr_plan plan = *base;
        if (other_ways[i](wanted->model, &plan))
            FR_TRY(add_plan(shapes, wanted, wanted->job, &plan, machine, err));
    }
    return FR_OK;
}

/* Adds plans in which one field at a time differs from the plan with all
 * variations off. */
static fr_status add_variations(fr_shapes *shapes, const fr_candidates *wanted,
                                const fr_plan *base,
                                const fr_fingerprint *machine, fr_err *err)
{
    fr_plan plan = *base;

    FR_TRY(add_other_ways(shapes, wanted, base, machine, err));
    if (base->tp > 1) {
        plan.is_sequence_parallel = true;
        FR_TRY(add_plan(shapes, wanted, wanted->job, &plan, machine, err));
        plan = *base;
    }
    if (base->pp > 1) {
        plan.schedule = fr_schedule_usual(2);
        for (plan.vpp = 2; plan.vpp <= 4; plan.vpp++)
            FR_TRY(add_plan(shapes, wanted, wanted->job, &plan, machine, err));
        plan = *base;
    }
    if (base->dp == 1)
        return FR_OK;
    plan.zero_stage = 1;
    FR_TRY(add_plan(shapes, wanted, wanted->job, &plan, machine, err));
    plan = *base;
    for (int kind = 1; kind < fr_n_compressors && !wanted->is_quick; kind++) {
        plan.compressor = (fr_compressor_kind)kind;
        plan.has_error_feedback = true;
        fr_compressor_mend_number(&plan);
        FR_TRY(add_plan(shapes, wanted, wanted->job, &plan, machine, err));
    }
    return FR_OK;
}

static fr_status add_optimizers(fr_shapes *shapes, const fr_candidates *wanted,
                                const fr_plan *plan,
                                const fr_fingerprint *machine, fr_err *err)
{
    fr_job job = *wanted->job;

    for (int kind = 0; kind < FR_OPTIMIZER_N; kind++) {
        job.optimizer = (fr_optimizer_kind)kind;
        FR_TRY(add_plan(shapes, wanted, &job, plan, machine, err));
    }
    return FR_OK;
}

static fr_status add_layout(fr_shapes *shapes, const fr_candidates *wanted,
                            const fr_plan *layout,
                            const fr_fingerprint *machine, fr_err *err)
{
    int64_t largest = wanted->job->global_batch / layout->dp;
    fr_plan plan = *layout;

    for (plan.micro_batch = 1; plan.micro_batch <= largest;
         plan.micro_batch *= 2) {
        for (int r = 0; r < FR_RECOMPUTE_N; r++) {
            plan.recompute = (fr_recompute)r;
            FR_TRY(add_plan(shapes, wanted, wanted->job, &plan, machine, err));
        }
        plan.recompute = FR_RECOMPUTE_NONE;
        if (plan.micro_batch == 1 || plan.micro_batch * 2 > largest)
            FR_TRY(add_variations(shapes, wanted, &plan, machine, err));
    }
    plan.micro_batch = largest;
    return add_optimizers(shapes, wanted, &plan, machine, err);
}

static fr_status add_world(fr_shapes *shapes, const fr_candidates *wanted,
                           int64_t world, int n_threads,
                           const fr_fingerprint *machine, fr_err *err)
{
    for (int64_t tp = 1; tp <= world; tp++) {
        for (int64_t pp = 1; tp * pp <= world; pp++) {
            fr_plan plan;
            if (world % (tp * pp) != 0)
                continue;
            fr_plan_init(&plan);
            plan.tp = (int32_t)tp;
            plan.pp = (int32_t)pp;
            plan.dp = (int32_t)(world / (tp * pp));
            plan.n_threads = n_threads;
            if (wanted->job->global_batch < plan.dp)
                continue;
            FR_TRY(add_layout(shapes, wanted, &plan, machine, err));
        }
    }
    return FR_OK;
}

fr_status fr_shapes_add_candidates(fr_shapes *shapes,
                                   const fr_candidates *candidates,
                                   const fr_fingerprint *machine, fr_err *err)
{
    int64_t last = candidates->n_ranks, world = 1;

    for (;;) {
        /* Every world is lowered with all cores, and with one thread per rank,
         * against which scaling is judged. */
        int most = (int)(candidates->n_cores / world);
        most = most < 1 ? 1 : most;
        FR_TRY(add_world(shapes, candidates, world, most, machine, err));
        if (most > 1)
            FR_TRY(add_world(shapes, candidates, world, 1, machine, err));
        if (world == last)
            return FR_OK;
        world = world * 2 < last ? world * 2 : last;
    }
}

/* ---- thinning ----------------------------------------------------------- */

static bool is_more_used(const fr_shape *a, const fr_shape *b)
{
    if (a->n_uses != b->n_uses)
        return a->n_uses > b->n_uses;
    return a < b;
}

void fr_shapes_thin(fr_shapes *shapes, int n_kept)
{
    bool *is_kept = calloc(shapes->list.n + 1, sizeof *is_kept);
    size_t n = 0;

    if (is_kept == NULL)
        return; /* nothing is lost but time */
    for (size_t i = 0; i < shapes->list.n; i++) {
        const fr_shape *shape = &shapes->list.items[i];
        int n_before = 0;
        for (size_t k = 0; k < shapes->list.n; k++)
            n_before +=
                k != i &&
                shapes->list.items[k].key.n_threads == shape->key.n_threads &&
                is_more_used(&shapes->list.items[k], shape) &&
                fr_compute_key_same_shape(&shapes->list.items[k].key,
                                          &shape->key);
        is_kept[i] = n_before < n_kept;
    }
    for (size_t i = 0; i < shapes->list.n; i++)
        if (is_kept[i])
            shapes->list.items[n++] = shapes->list.items[i];
    shapes->list.n = n;
    free(is_kept);
}

/* ---- held-out neighbours ------------------------------------------------ */

int fr_shape_free_dim(fr_op op)
{
    switch (op) {
    case FR_OP_COMPRESS:
    case FR_OP_DECOMPRESS:
    case FR_OP_OPT_NORMS:
    case FR_OP_OPT_STEP:
    case FR_OP_GRAD_SQSUM:
    case FR_OP_CLIP:
    case FR_OP_ROUTER_BWD: /* and what else has room for so many rows */
    case FR_OP_PERMUTE:
    case FR_OP_UNPERMUTE:
    case FR_OP_GROUPED_FWD:
    case FR_OP_GROUPED_DGRAD:
    case FR_OP_GROUPED_WGRAD:
        return -1;
    default:
        return 0;
    }
}

fr_status fr_shapes_add_held_out(fr_shapes *shapes, int n_per_op,
                                 const fr_fingerprint *machine, fr_err *err)
{
    int n_added[FR_OP_N] = {0};
    size_t n_known = shapes->list.n;

    /* The list is walked from its end, where the shapes of the largest world
     * are. */
    for (size_t i = n_known; i-- > 0;) {
        fr_shape shape = shapes->list.items[i];
        fr_op op = (fr_op)shape.instr.op;
        int dim = fr_shape_free_dim(op);
        int64_t old;
        char where[sizeof shape.key.where];
        if (dim < 0 || n_added[op] >= n_per_op)
            continue;
        old = shape.instr.dim[dim];
        /* Rows are powers of two; three halves lies between two of them. */
        shape.instr.dim[dim] = old + old / 2;
        if (old < 2)
            continue;
        memcpy(where, shape.key.where, sizeof where);
        fr_compute_key(&shape.instr, machine, shape.key.n_threads, &shape.key);
        memcpy(shape.key.where, where, sizeof where);
        shape.key.is_held_out = true;
        shape.hash = fr_compute_key_hash(&shape.key);
        if (find_shape(shapes, &shape.key, shape.hash) != NULL)
            continue;
        n_added[op]++;
        FR_TRY(push_shape(shapes, &shape, err));
    }
    return FR_OK;
}

void fr_shape_fill_tokens(const fr_shape *shape, uint64_t seed, int32_t *tokens,
                          uint64_t n_bytes)
{
    const fr_instr *instr = &shape->instr;
    bool is_embed =
        instr->op == FR_OP_EMBED_FWD || instr->op == FR_OP_EMBED_BWD;
    int64_t vocab = is_embed ? instr->embed.vocab : instr->loss.vocab;

    for (uint64_t i = 0; i < n_bytes / sizeof *tokens; i++)
        tokens[i] = (int32_t)(fr_hash_u64(seed, i, 0, 0) %
                              (uint64_t)(vocab > 0 ? vocab : 1));
}

uint64_t fr_shape_bytes(const fr_shape *shape)
{
    uint64_t sum = fr_kernels_cpu_scratch_bytes(&shape->instr);

    for (int i = 0; i < FR_INSTR_REFS; i++) {
        uint64_t n = shape->instr.ref[i].space == FR_SPACE_NONE
                         ? 0
                         : fr_instr_ref_bytes(&shape->instr, i, 1);
        sum += (n + 4095) / 4096 * 4096 + 4096;
    }
    return sum;
}

/* ---- routes ------------------------------------------------------------- */

/* Weight and expert of each copy, one expert after the other. */
static void fill_chosen(int64_t n_experts, int32_t *chosen, uint64_t n_bytes)
{
    const float weight = 0.5F;

    for (uint64_t i = 0; i < n_bytes / (2 * sizeof *chosen); i++) {
        memcpy(&chosen[2 * i], &weight, sizeof weight);
        chosen[2 * i + 1] = (int32_t)(i % (uint64_t)n_experts);
    }
}

/* As many rows for each expert. */
static void fill_counts(const fr_grouped_dims *d, int32_t *counts,
                        uint64_t n_bytes)
{
    const int64_t n = (int64_t)(n_bytes / sizeof *counts);

    for (int64_t i = 0; i < n; i++)
        counts[i] = (int32_t)(d->m / n);
}

bool fr_shape_fill_routes(const fr_shape *shape, int i_ref, void *operand,
                          uint64_t n_bytes)
{
    const fr_instr *instr = &shape->instr;

    switch ((fr_op)instr->op) {
    case FR_OP_ROUTER_BWD:
        if (!fr_instr_ref_is_choices(instr, i_ref))
            return false;
        fill_chosen(instr->router.n_experts, operand, n_bytes);
        return true;
    case FR_OP_PERMUTE:
    case FR_OP_UNPERMUTE:
        if (!fr_instr_ref_is_choices(instr, i_ref))
            return false;
        fill_chosen(instr->permute.n_experts, operand, n_bytes);
        return true;
    case FR_OP_GROUPED_FWD:
    case FR_OP_GROUPED_DGRAD:
    case FR_OP_GROUPED_WGRAD:
        if (i_ref != (instr->op == FR_OP_GROUPED_DGRAD
                          ? (int)FR_GROUPED_DGRAD_COUNTS
                          : (int)FR_GROUPED_FWD_COUNTS))
            return false;
        fill_counts(&instr->grouped, operand, n_bytes);
        return true;
    default:
        return false;
    }
}
