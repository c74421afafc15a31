/* lower_dispatch.c: see lower_dispatch.h. */
#include "program/lower/experts/lower_dispatch.h"

#include "plan/decide/grid.h"
#include "program/lower/segment/lower_block.h"

static int64_t etp_of(const lower_context *context)
{
    return context->plan->etp > 0 ? context->plan->etp : context->plan->tp;
}

/* Ranks whose rows an expert's rank has, one after the other. */
int64_t lower_expert_runs(const lower_context *context)
{
    const lower_shape *s = &context->shape;
    return lower_is_routed(context)
               ? context->plan->ep * (s->expert_rows / s->routed_rows)
               : 1;
}

static fr_instr *permute(lower_context *context, fr_op op, int64_t from,
                         int64_t to, fr_ref src, fr_ref dst)
{
    fr_instr *instr = lower_emit(context, op);
    instr->permute.n_experts = context->model->n_experts;
    instr->permute.top_k = context->model->n_experts_per_token;
    instr->permute.n_slots = context->plan->ep;
    instr->permute.rows_in = from;
    instr->permute.rows_out = to;
    instr->permute.cols = context->shape.hidden;
    instr->ref[FR_PERMUTE_SRC] = src;
    instr->ref[FR_PERMUTE_DST] = dst;
    return instr;
}

static void exchange(lower_context *context, fr_op op, fr_axis axis,
                     int64_t rows, fr_ref src, fr_ref dst)
{
    bool is_beside =
        op == FR_OP_ALL_TO_ALL && lower_is_exchange_overlapped(context);
    if (is_beside)
        lower_pass_exchange(context, src, dst);
    fr_instr *instr = lower_collective(
        context, op, axis, fr_plan_storage_dtype(context->plan),
        (uint64_t)(rows * context->shape.hidden), src, dst);
    if (op == FR_OP_ALL_TO_ALL &&
        context->plan->expert_dispatch == FR_DISPATCH_BY_NODE)
        instr->scalar = (double)context->model->n_experts_per_token;
    if (is_beside)
        lower_pass_compute(context, LOWER_NO_PIECE, LOWER_NO_PIECE);
}

/* Do ranks that split an expert have to gather each other's tokens? */
static bool is_gathered(const lower_context *context)
{
    return context->plan->is_sequence_parallel && etp_of(context) > 1;
}

/* Rows that come from several ranks and go to several experts are sorted
 * twice. */
static bool is_sorted_twice(const lower_context *context)
{
    return context->plan->ep > 1 && context->shape.experts_local > 1 &&
           !lower_is_routed(context); /* whose products go run by run */
}

fr_ref lower_temp_rows(lower_context *context, int64_t rows)
{
    return lower_temp(context,
                      lower_bytes(context, rows, context->shape.hidden));
}

uint64_t lower_float_bytes(int64_t n)
{
    return (uint64_t)n * sizeof(float);
}

/* Are small things apart on their way to the experts: do others have some? */
static bool is_apart(const lower_context *context)
{
    return context->plan->ep > 1 || is_gathered(context);
}

/* A float for each row, or counts: where the own ones are made that become
 * `out` on the experts' side. */
fr_ref lower_small_own(lower_context *context, int64_t n, fr_ref out)
{
    return is_apart(context) ? lower_temp(context, lower_float_bytes(n)) : out;
}

void lower_small_to_experts(lower_context *context, int64_t n, fr_ref own,
                            fr_ref out)
{
    bool is_joined = is_gathered(context);
    if (context->plan->ep > 1) {
        fr_ref next =
            is_joined ? lower_temp(context, lower_float_bytes(n)) : out;
        lower_collective(context, FR_OP_ALL_TO_ALL, FR_AXIS_EP, FR_DTYPE_F32,
                         (uint64_t)n, own, next);
        own = next;
    }
    if (is_joined)
        lower_collective(context, FR_OP_ALL_GATHER, FR_AXIS_ETP, FR_DTYPE_F32,
                         (uint64_t)(n * etp_of(context)), own, out);
}

/* Each rank that splits an expert has a part of the gradients of its rows'
 * weights: they are added up, and go to whose rows they are. */
void lower_weights_from_experts(lower_context *context, fr_ref partial,
                                fr_ref own)
{
    const lower_shape *s = &context->shape;
    bool is_joined = is_gathered(context), is_sent = context->plan->ep > 1;
    if (etp_of(context) > 1) {
        fr_ref next = partial;
        if (is_joined)
            next = is_sent
                       ? lower_temp(context, lower_float_bytes(s->routed_rows))
                       : own;
        lower_collective(
            context, is_joined ? FR_OP_REDUCE_SCATTER : FR_OP_ALL_REDUCE,
            FR_AXIS_ETP, FR_DTYPE_F32, (uint64_t)s->expert_rows, partial, next);
        partial = next;
    }
    if (is_sent)
        lower_collective(context, FR_OP_ALL_TO_ALL, FR_AXIS_EP, FR_DTYPE_F32,
                         (uint64_t)s->routed_rows, partial, own);
}

/* Brings rows of the stream to those of the experts; with their weights, where
 * there is a place for these. */
void lower_dispatch(lower_context *context, fr_ref chosen, fr_ref x, fr_ref out,
                    fr_ref weights)
{
    const lower_shape *s = &context->shape;
    bool is_sent = context->plan->ep > 1,
         is_last_sort = is_sorted_twice(context);
    bool is_joined = is_gathered(context);
    fr_ref now =
        is_sent || is_joined ? lower_temp_rows(context, s->routed_rows) : out;
    bool has_weights = weights.space != FR_SPACE_NONE;
    fr_ref own_weights = has_weights
                             ? lower_small_own(context, s->routed_rows, weights)
                             : weights;
    fr_instr *instr =
        permute(context, FR_OP_PERMUTE, s->stream_rows, s->routed_rows, x, now);
    if (lower_is_routed(context)) {
        instr->ref[FR_PERMUTE_CHOSEN] = chosen;
        instr->ref[FR_PERMUTE_WEIGHTS] = own_weights;
    }
    if (has_weights)
        lower_small_to_experts(context, s->routed_rows, own_weights, weights);
    if (is_sent) {
        fr_ref next = is_joined || is_last_sort
                          ? lower_temp_rows(context, s->routed_rows)
                          : out;
        exchange(context, FR_OP_ALL_TO_ALL, FR_AXIS_EP, s->routed_rows, now,
                 next);
        now = next;
    }
    if (is_joined) {
        fr_ref next =
            is_last_sort ? lower_temp_rows(context, s->expert_rows) : out;
        exchange(context, FR_OP_ALL_GATHER, FR_AXIS_ETP, s->expert_rows, now,
                 next);
        now = next;
    }
    if (is_last_sort)
        (void)permute(context, FR_OP_PERMUTE, s->expert_rows, s->expert_rows,
                      now, out);
}

/* Brings rows of the experts back to those of the stream and adds them up. */
void lower_combine(lower_context *context, fr_ref chosen, fr_ref y, fr_ref out)
{
    const lower_shape *s = &context->shape;
    fr_ref now = y;
    if (is_sorted_twice(context)) {
        now = lower_temp_rows(context, s->expert_rows);
        (void)permute(context, FR_OP_PERMUTE, s->expert_rows, s->expert_rows, y,
                      now);
    }
    if (is_gathered(context)) {
        fr_ref next = lower_temp_rows(context, s->routed_rows);
        exchange(context, FR_OP_REDUCE_SCATTER, FR_AXIS_ETP, s->expert_rows,
                 now, next);
        now = next;
    }
    if (context->plan->ep > 1) {
        fr_ref next = lower_temp_rows(context, s->routed_rows);
        exchange(context, FR_OP_ALL_TO_ALL, FR_AXIS_EP, s->routed_rows, now,
                 next);
        now = next;
    }
    fr_instr *instr = permute(context, FR_OP_UNPERMUTE, s->routed_rows,
                              s->stream_rows, now, out);
    if (lower_is_routed(context))
        instr->ref[FR_UNPERMUTE_CHOSEN] = chosen;
    /* Tokens that all TP ranks hold: each has a part of every expert. */
    if (!context->plan->is_sequence_parallel)
        lower_sum_rows(context, out, out);
}
