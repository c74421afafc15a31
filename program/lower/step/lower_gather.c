/*
 * lower_gather.c: ZeRO 2 and 3 (= FSDP): gradients, and with ZeRO 3 also
 * parameters, are whole only while a layer needs them (Rajbhandari et al.,
 * SC 2020, arXiv 1910.02054; Zhao et al., VLDB 2023, arXiv 2304.11277).
 *
 * Which uses of weights are preceded by a gather, and after which they are
 * dropped, is decided in plan/outline/weight_uses.h.  Gathers run on lane
 * GATHER, and each waits for what the use before has written (rank->gate).
 *
 * FSDP2 shards each parameter by itself, so that what was gathered is copied to
 * where it is used, in the way of the products (PyTorch, FSDP2's
 * all_gather_copy_out).
 *
 * Whole gradients of a set are made when backward comes to it.  Without a
 * pipeline they are reduced after every micro-batch and the shards add up
 * (FSDP without no_sync); under a pipeline they add up whole and are reduced
 * after the last micro-batch.
 */
#include "frameworks/framework_list.h"
#include "plan/decide/grid.h"
#include "program/lower/step/lower_step.h"

#include <stdio.h>

#define NO_SET UINT32_MAX

enum {
    PURPOSE_GATHER,
    PURPOSE_GATHER_TWICE,
    PURPOSE_COPY_OUT,
    PURPOSE_WIRE_ZERO,
    PURPOSE_ZERO,
    PURPOSE_REDUCE,
    PURPOSE_REDUCE_ADD
};

static const lower_unit *unit_of(const lower_rank *rank, const lower_set *set,
                                 uint32_t i)
{
    return &rank->units.items[set->first_unit + i];
}

static uint64_t shard_of(const lower_rank *rank, const lower_unit *unit)
{
    return fr_sharding_part(&rank->context->sharding, unit->is_expert, unit->n);
}

/* ---- sets ---- */

/* Does a unit join the set of the one before it in the list? */
static bool is_joined(const lower_rank *rank, const lower_unit *before,
                      const lower_unit *unit)
{
    if (unit->kind == LOWER_UNIT_LAYER)
        return unit->is_expert;
    if (before->kind == LOWER_UNIT_LAYER)
        return false;
    /* Both ends in one rank program without a pipeline: together if a call uses
     * both. */
    return rank->context->model->is_tied || lower_is_later_run(rank->context) ||
           !rank->is_first || !rank->is_last;
}

/* The segments of an end count from the begin of its set. */
static void rebase(const lower_rank *rank, uint32_t i_set, uint64_t *places,
                   size_t n_bytes)
{
    if (i_set == NO_SET)
        return;
    const lower_set *set = &rank->sets.items[i_set];
    for (size_t i = 0; i < n_bytes / sizeof *places; i++)
        if (places[i] != LOWER_ABSENT)
            places[i] -= unit_of(rank, set, 0)->first;
}

fr_status lower_sets_init(lower_rank *rank, fr_err *err)
{
    const fr_weight_ends ends = fr_weight_ends_of(rank->context->model);
    rank->i_embed_set = rank->i_head_set = NO_SET;
    rank->set_of_use = calloc((size_t)ends.n_sets, sizeof *rank->set_of_use);
    if (rank->set_of_use == NULL)
        return fr_fail_no_memory(err);
    for (uint32_t i = 0; i < rank->units.n; i++) {
        lower_unit *unit = &rank->units.items[i];
        if (i == 0 || !is_joined(rank, unit - 1, unit)) {
            lower_set fresh = {.first_unit = i,
                               .weight = FR_BLOCK_NONE,
                               .wire = FR_BLOCK_NONE,
                               .grad = FR_BLOCK_NONE,
                               .shard = FR_BLOCK_NONE};
            if (fr_vec_push(&rank->sets, fresh) != FR_OK)
                return fr_fail_no_memory(err);
        }
        lower_set *set = &rank->sets.items[rank->sets.n - 1];
        unit->i_set = (uint32_t)(rank->sets.n - 1);
        set->n_units++;
        set->n += unit->n;
        set->n_shard += shard_of(rank, unit);
        set->is_tied = set->is_tied || unit->kind == LOWER_UNIT_TIED;
        bool is_end = unit->kind != LOWER_UNIT_LAYER;
        if (!is_end)
            rank->set_of_use[unit->layer] = unit->i_set;
        if (unit->kind == LOWER_UNIT_FINAL || (is_end && !rank->is_first))
            rank->i_head_set = unit->i_set;
        if (unit->kind == LOWER_UNIT_EMBED || (is_end && !rank->is_last))
            rank->i_embed_set = unit->i_set;
    }
    if (rank->is_last)
        rank->set_of_use[ends.head] = rank->i_head_set;
    if (rank->is_first)
        rank->set_of_use[ends.embed] = rank->i_embed_set;
    rebase(rank, rank->is_first ? rank->i_embed_set : rank->i_head_set,
           &rank->ends.embed.wte, sizeof rank->ends.embed);
    rebase(rank, rank->i_head_set, &rank->ends.head.norm_w,
           sizeof rank->ends.head);
    return FR_OK;
}

/* The segment for this purpose and sets of this shape; `is_new`: to be
 * filled. */
static uint32_t set_segment(lower_rank *rank, int purpose, fr_lane lane,
                            const lower_set *set, bool *is_new)
{
    static const char *const names[] = {
        [PURPOSE_GATHER] = "param_gather",
        [PURPOSE_GATHER_TWICE] = "param_gather_twice",
        [PURPOSE_COPY_OUT] = "param_copy_out",
        [PURPOSE_WIRE_ZERO] = "param_zero",
        [PURPOSE_ZERO] = "grad_zero",
        [PURPOSE_REDUCE] = "grad_reduce",
        [PURPOSE_REDUCE_ADD] = "grad_reduce_add",
    };
    uint64_t key[3] = {0};
    char name[sizeof((fr_segment *)0)->name];
    for (uint32_t i = 0; i < set->n_units; i++)
        key[i] =
            unit_of(rank, set, i)->n << 1 | unit_of(rank, set, i)->is_expert;
    snprintf(name, sizeof name, "%s_%s", names[purpose],
             unit_of(rank, set, 0)->kind == LOWER_UNIT_LAYER ? "layer" : "end");
    return lower_shared_segment_of(rank, purpose, key, lane, name, is_new);
}

/* ---- parameters ---- */

fr_status lower_uses_init(lower_rank *rank, fr_err *err)
{
    const lower_context *context = rank->context;
    const lower_program *program = rank->program;
    const fr_task *tasks =
        &program->tasks[(size_t)rank->stage * program->n_tasks];
    rank->gate = FR_BLOCK_NONE;
    rank->left_grad = FR_BLOCK_NONE;
    if (!context->sharding.is_gathered)
        return FR_OK;
    return fr_weight_uses_list(context->plan, context->model, rank->stage,
                               tasks, program->n_tasks, &rank->uses, err);
}

/* ---- parameters by themselves ---- */

/*
 * DeepSpeed 0.3 (2021), runtime/zero/stage3.py and partition_parameters.py:
 * fetch_sub_module gathers every parameter of a module by itself into a list
 * of views, of zeros for which the host has waited, and waits for the device;
 * prefetching brings the next ones beside what runs, but not where more than
 * stage3_max_live_parameters are there.  Parameters below
 * stage3_param_persistence_threshold stay.  What full recompute has used is
 * used again in backward: it was dropped where more than
 * stage3_max_reuse_distance elements lie in between.
 */
enum { MOST_PIECES = 32 };
static const fr_framework *const deepspeed =
    &fr_framework_megatron_deepspeed_2021;

static bool is_by_parameter(const lower_context *context)
{
    return context->sharding.is_gathered &&
           context->plan->execution.zero_unit == FR_ZERO_UNIT_PARAMETER;
}

/* The parts of a unit, in elements, that each go in one collective: tensors of
 * `least` elements and more that have one for each rank, what is smaller with
 * the last of them. */
static int list_pieces(const lower_rank *rank, const lower_unit *unit,
                       uint64_t least, uint64_t pieces[MOST_PIECES])
{
    const uint64_t n_shards = rank->context->sharding.n_shards[unit->is_expert];
    uint64_t left = unit->n;
    int n = 0;
    for (size_t i = 0; is_by_parameter(rank->context) && i < rank->tensors.n &&
                       n < MOST_PIECES;
         i++) {
        const fr_tensor *tensor = &rank->tensors.items[i];
        if (tensor->first < unit->first ||
            tensor->first >= unit->first + unit->n || tensor->n < least ||
            tensor->n < n_shards)
            continue;
        uint64_t size = tensor->n / n_shards * n_shards;
        pieces[n++] = size < left ? size : left;
        left -= pieces[n - 1];
    }
    if (n == 0)
        pieces[n++] = 0;
    pieces[n - 1] += left; /* the rest adds less than a shard's padding */
    return n;
}

/* With full recompute: is piece i fetched once more between its two uses in
 * backward? */
static bool is_refetched(const uint64_t *pieces, int n, int i)
{
    uint64_t distance = 0;
    for (int k = i + 1; k < n; k++)
        distance += 2 * pieces[k];
    return distance >= deepspeed->facts->max_reuse_distance;
}

static void gather_pieces(lower_rank *rank, const lower_unit *unit,
                          uint64_t from, uint64_t to, bool has_refetch)
{
    lower_context *context = rank->context;
    const uint64_t weight_bytes = lower_element_bytes(context, FR_SPACE_WEIGHT);
    const uint64_t n_shards = context->sharding.n_shards[unit->is_expert];
    uint64_t pieces[MOST_PIECES];
    int n = list_pieces(rank, unit, deepspeed->facts->persistent_below, pieces);
    for (int i = 0; i < n; i++) {
        const fr_move move =
            fr_sharding_gather(&context->sharding, unit->is_expert, pieces[i]);
        fr_instr *instr = lower_move(context, &move);
        if (is_by_parameter(context))
            instr->flags |= FR_INSTR_LISTED;
        instr->ref[FR_COMM_SRC] =
            lower_parameter(context, FR_SPACE_WEIGHT, from);
        instr->ref[FR_COMM_DST] = lower_ref(FR_SPACE_OUT, to * weight_bytes);
        if (has_refetch && is_refetched(pieces, n, i)) {
            const fr_instr first = *instr;
            *lower_emit(context, FR_OP_ALL_GATHER) = first;
        }
        from += pieces[i] / n_shards;
        to += pieces[i];
    }
}

/* torch.zeros, then torch.cuda.synchronize, before a parameter is gathered. */
static void zero_wire(lower_rank *rank, const lower_set *set, uint64_t n_bytes)
{
    bool is_new;
    uint32_t i_segment =
        set_segment(rank, PURPOSE_WIRE_ZERO, FR_LANE_COMPUTE, set, &is_new);
    if (is_new) {
        fr_instr *instr = lower_emit(rank->context, FR_OP_ZERO);
        instr->copy.n_bytes = (int64_t)n_bytes;
        instr->flags |= FR_INSTR_HELD;
        instr->ref[FR_ZERO_DST] = lower_ref(FR_SPACE_OUT, 0);
    }
    lower_add_call(rank, i_segment, unit_of(rank, set, 0)->layer, -1, -1);
    fr_builder_bind(rank->builder, FR_SPACE_OUT, set->wire, 'w');
}

static void gather(lower_rank *rank, uint32_t i_set, bool is_backward)
{
    lower_context *context = rank->context;
    const uint64_t weight_bytes = lower_element_bytes(context, FR_SPACE_WEIGHT);
    lower_set *set = &rank->sets.items[i_set];
    uint64_t from = 0, to = 0;
    bool is_new;
    bool has_refetch = is_backward && is_by_parameter(context) &&
                       context->plan->recompute == FR_RECOMPUTE_FULL &&
                       unit_of(rank, set, 0)->kind == LOWER_UNIT_LAYER;
    uint32_t i_segment =
        set_segment(rank, has_refetch ? PURPOSE_GATHER_TWICE : PURPOSE_GATHER,
                    FR_LANE_GATHER, set, &is_new);
    for (uint32_t i = 0; is_new && i < set->n_units; i++) {
        const lower_unit *unit = unit_of(rank, set, i);
        uint64_t shard = shard_of(rank, unit);
        if (shard == unit->n) {
            fr_instr *instr = lower_emit(context, FR_OP_COPY);
            instr->copy.n_bytes = (int64_t)(unit->n * weight_bytes);
            instr->ref[FR_COPY_SRC] =
                lower_parameter(context, FR_SPACE_WEIGHT, from);
            instr->ref[FR_COPY_DST] =
                lower_ref(FR_SPACE_OUT, to * weight_bytes);
        } else {
            gather_pieces(rank, unit, from, to, has_refetch);
        }
        from += shard;
        to += unit->n;
    }
    set->wire = fr_builder_add_block(rank->builder, FR_MEMORY_PARAMETERS, false,
                                     set->n * weight_bytes);
    if (is_by_parameter(context))
        zero_wire(rank, set, set->n * weight_bytes);
    lower_add_call(rank, i_segment, unit_of(rank, set, 0)->layer, -1, -1);
    fr_builder_set_base(rank->builder, FR_SPACE_WEIGHT,
                        unit_of(rank, set, 0)->weight);
    for (uint32_t i = 0; i < set->n_units; i++)
        fr_builder_use(rank->builder, unit_of(rank, set, i)->weight, 'r');
    fr_builder_bind(rank->builder, FR_SPACE_OUT, set->wire, 'w');
    fr_builder_after(rank->builder, rank->gate);
}

/* Shards of each parameter lie apart in what was gathered. */
static void copy_out(lower_rank *rank, uint32_t i_set)
{
    lower_context *context = rank->context;
    lower_set *set = &rank->sets.items[i_set];
    const uint64_t n_bytes =
        set->n * lower_element_bytes(context, FR_SPACE_WEIGHT);
    bool is_new;
    uint32_t i_segment =
        set_segment(rank, PURPOSE_COPY_OUT, FR_LANE_COMPUTE, set, &is_new);
    if (is_new) {
        fr_instr *instr = lower_emit(context, FR_OP_COPY);
        instr->copy.n_bytes = (int64_t)n_bytes;
        if (is_by_parameter(context))
            instr->flags |= FR_INSTR_HELD;
        instr->ref[FR_COPY_SRC] = lower_ref(FR_SPACE_IN, 0);
        instr->ref[FR_COPY_DST] = lower_ref(FR_SPACE_OUT, 0);
    }
    set->weight = fr_builder_add_block(rank->builder, FR_MEMORY_PARAMETERS,
                                       false, n_bytes);
    lower_add_call(rank, i_segment, unit_of(rank, set, 0)->layer, -1, -1);
    fr_builder_bind(rank->builder, FR_SPACE_IN, set->wire, 'r');
    fr_builder_bind(rank->builder, FR_SPACE_OUT, set->weight, 'w');
    set->wire = FR_BLOCK_NONE;
}

/* Enqueues the gathers of the uses before `end`. */
static void provide(lower_rank *rank, size_t end)
{
    for (; rank->n_gathered < end; rank->n_gathered++) {
        const fr_weight_use *use = &rank->uses.items[rank->n_gathered];
        if (use->is_gathered)
            gather(rank, rank->set_of_use[use->set], use->is_backward);
    }
}

void lower_before_use(lower_rank *rank)
{
    const fr_plan *plan = rank->context->plan;
    if (!rank->context->sharding.is_gathered || rank->context->is_out_of_memory)
        return;
    const uint32_t i_set = rank->set_of_use[rank->uses.items[rank->i_use].set];
    provide(rank, rank->i_use + 1);
    if (rank->sets.items[i_set].weight == FR_BLOCK_NONE)
        copy_out(rank, i_set);
    if (is_by_parameter(rank->context) &&
        rank->sets.items[i_set].n >= deepspeed->facts->max_live)
        return;
    provide(rank, fr_weight_uses_reach(plan, &rank->uses, rank->i_use));
}

void lower_after_use(lower_rank *rank, uint32_t gate)
{
    rank->gate = gate;
    if (!rank->context->sharding.is_gathered || rank->context->is_out_of_memory)
        return;
    const fr_weight_use *use = &rank->uses.items[rank->i_use++];
    if (use->is_dropped)
        rank->sets.items[rank->set_of_use[use->set]].weight = FR_BLOCK_NONE;
}

void lower_bind_set(lower_rank *rank, fr_space space, uint32_t i_set,
                    char access)
{
    const lower_set *set = &rank->sets.items[i_set];
    if (space == FR_SPACE_GRAD) {
        fr_builder_bind(rank->builder, space, set->grad, access);
    } else if (rank->context->sharding.is_gathered) {
        fr_builder_bind(rank->builder, space, set->weight, access);
    } else {
        fr_builder_set_base(rank->builder, space,
                            unit_of(rank, set, 0)->weight);
        for (uint32_t i = 0; i < set->n_units; i++)
            fr_builder_use(rank->builder, unit_of(rank, set, i)->weight,
                           access);
    }
}

/* ---- gradients ---- */

void lower_open_grads(lower_rank *rank, uint32_t i_set)
{
    lower_context *context = rank->context;
    lower_set *set = &rank->sets.items[i_set];
    uint64_t n_bytes = set->n * lower_element_bytes(context, FR_SPACE_GRAD);
    bool is_new;
    if (set->grad != FR_BLOCK_NONE)
        return;
    uint32_t i_segment =
        set_segment(rank, PURPOSE_ZERO, FR_LANE_COMPUTE, set, &is_new);
    if (is_new) {
        fr_instr *instr = lower_emit(context, FR_OP_ZERO);
        instr->copy.n_bytes = (int64_t)n_bytes;
        instr->ref[FR_ZERO_DST] = lower_ref(FR_SPACE_GRAD, 0);
    }
    set->grad = fr_builder_add_block(rank->builder, FR_MEMORY_GRADIENTS, false,
                                     n_bytes);
    lower_add_call(rank, i_segment, unit_of(rank, set, 0)->layer, -1, -1);
    fr_builder_bind(rank->builder, FR_SPACE_GRAD, set->grad, 'w');
}

/* Scatters a unit, where the plan says so one parameter after the other. */
static void scatter_pieces(lower_rank *rank, const lower_unit *unit,
                           fr_move move, fr_ref whole, fr_ref own)
{
    lower_context *context = rank->context;
    const uint64_t grad_bytes = lower_element_bytes(context, FR_SPACE_GRAD);
    const uint64_t n_shards = context->sharding.n_shards[unit->is_expert];
    uint64_t pieces[MOST_PIECES], at = 0;
    /* Gradients also of parameters that stay whole. */
    int n = list_pieces(rank, unit, 0, pieces);
    for (int i = 0; i < n; i++) {
        move.n = pieces[i];
        fr_instr *instr = lower_move(context, &move);
        instr->ref[FR_COMM_SRC] = lower_moved(whole, at * grad_bytes);
        instr->ref[FR_COMM_DST] = lower_moved(own, at / n_shards * grad_bytes);
        if (is_by_parameter(context))
            instr->flags |= FR_INSTR_LISTED;
        at += pieces[i];
    }
}

/* Reduces one unit of a set: whole gradients lie at `from`, the shard at
 * `to`. */
static void emit_reduce(lower_rank *rank, const lower_unit *unit, uint64_t from,
                        uint64_t to, bool is_added)
{
    lower_context *context = rank->context;
    const fr_dtype dtype = context->plan->grad_dtype;
    const uint64_t grad_bytes = lower_element_bytes(context, FR_SPACE_GRAD);
    const fr_ref whole = lower_parameter(context, FR_SPACE_GRAD, from);
    const fr_ref own = lower_ref(FR_SPACE_OUT, to * grad_bytes);
    uint64_t shard = shard_of(rank, unit);
    uint64_t mark = lower_temp_mark(context);
    fr_ref sum = whole;
    fr_move moves[2];
    fr_instr *instr;
    if (shard < unit->n) {
        sum = is_added ? lower_temp(context, shard * grad_bytes) : own;
        const int n = fr_sharding_reduce(&context->sharding, unit->is_expert,
                                         unit->n, moves);
        scatter_pieces(rank, unit, moves[0], whole, sum);
        for (int i = 1; i < n; i++) {
            instr = lower_move(context, &moves[i]);
            instr->ref[FR_COMM_SRC] = instr->ref[FR_COMM_DST] = sum;
        }
    }
    if (is_added) {
        instr = lower_emit(context, FR_OP_ADD);
        instr->dtype = (uint8_t)dtype;
        instr->vector.n = (int64_t)shard;
        instr->ref[FR_ADD_SRC] = sum;
        instr->ref[FR_ADD_DST] = own;
    } else if (shard == unit->n) {
        instr = lower_emit(context, FR_OP_COPY);
        instr->copy.n_bytes = (int64_t)(shard * grad_bytes);
        instr->ref[FR_COPY_SRC] = whole;
        instr->ref[FR_COPY_DST] = own;
    }
    lower_temp_reset(context, mark);
}

void lower_reduce_set(lower_rank *rank, uint32_t i_set)
{
    lower_context *context = rank->context;
    lower_set *set = &rank->sets.items[i_set];
    bool is_added = set->shard != FR_BLOCK_NONE, is_new;
    uint64_t from = 0, to = 0;
    uint32_t i_segment =
        set_segment(rank, is_added ? PURPOSE_REDUCE_ADD : PURPOSE_REDUCE,
                    context->sharding.reduce_lane, set, &is_new);
    for (uint32_t i = 0; is_new && i < set->n_units; i++) {
        const lower_unit *unit = unit_of(rank, set, i);
        emit_reduce(rank, unit, from, to, is_added);
        from += unit->n;
        to += shard_of(rank, unit);
    }
    if (!is_added)
        set->shard = fr_builder_add_block(
            rank->builder, FR_MEMORY_GRADIENTS, false,
            set->n_shard * lower_element_bytes(context, FR_SPACE_GRAD));
    lower_add_call(rank, i_segment, unit_of(rank, set, 0)->layer, -1, -1);
    fr_builder_bind(rank->builder, FR_SPACE_GRAD, set->grad, 'r');
    fr_builder_bind(rank->builder, FR_SPACE_OUT, set->shard,
                    is_added ? 'm' : 'w');
    rank->left_grad = set->grad;
    rank->reduced = set->shard;
    set->grad = FR_BLOCK_NONE;
}

/* ---- the own part of a bucket ---- */

fr_ref lower_own(const lower_rank *rank, const lower_bucket *bucket,
                 fr_space space)
{
    const lower_context *context = rank->context;
    const lower_unit *unit = &rank->units.items[bucket->first_unit];
    const uint64_t weight = lower_element_bytes(context, FR_SPACE_WEIGHT);
    const uint64_t grad = lower_element_bytes(context, FR_SPACE_GRAD);
    uint64_t mine = space == FR_SPACE_GRAD ? grad : weight;
    uint64_t stride = weight > grad ? weight : grad;
    uint64_t first = 0;
    fr_ref ref;
    if (!context->sharding.is_by_unit)
        first = bucket->first;
    for (const lower_unit *u = unit;
         context->sharding.is_by_unit && space == FR_SPACE_GRAD &&
         u-- > unit_of(rank, &rank->sets.items[unit->i_set], 0);)
        first += shard_of(rank, u);
    ref = lower_parameter(context, space, first);
    if (context->sharding.n_shards[bucket->is_expert] > 1 &&
        !(context->sharding.is_by_unit && space == FR_SPACE_GRAD) &&
        !context->sharding.is_gathered)
        for (ref.is_sharded = 1; mine < stride; mine *= 2)
            ref.is_sharded++;
    return ref;
}

void lower_bind_own(lower_rank *rank, const lower_bucket *bucket,
                    fr_space space, char access)
{
    const lower_unit *unit = &rank->units.items[bucket->first_unit];
    if (!rank->context->sharding.is_by_unit)
        lower_bind_flat(rank, space, bucket, access);
    else if (space == FR_SPACE_GRAD)
        fr_builder_bind(rank->builder, space,
                        rank->sets.items[unit->i_set].shard, access);
    else
        fr_builder_bind(rank->builder, space, unit->weight, access);
}
