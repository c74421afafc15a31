/*
 * lower_layers.c: the segments of each kind of layer: one segment each way, or
 * several where collectives run beside them.
 */
#include "program/lower/segment/lower_layer.h"

#include <stdio.h>

/*
 * Full recompute is the whole forward again: frameworks that checkpoint a
 * layer as one function (Megatron-LM; the 96 B s l h^2 of Narayanan et al.
 * 2021, arXiv 2104.04473, appendix) run its last product too.  Others stop
 * when they have what backward needs, which that product is not, unless
 * something reads its output: a norm, dropout, the weights of experts.
 */
static bool is_recompute_whole(const lower_context *context,
                               const lower_kind *kind)
{
    return !context->target.is_early_stop || kind->is_moe || !kind->has_mlp ||
           kind->layout.out2_w != LOWER_ABSENT || lower_is_post_norm(context) ||
           context->job->dropout > 0 || kind->saved.later_out != LOWER_ABSENT ||
           context->model->is_parallel_block;
}

static void recompute_segment(lower_context *context, lower_kind *kind,
                              const char *name)
{
    const bool is_whole = is_recompute_whole(context, kind);
    kind->segments.i_recompute =
        lower_segment_begin(context, FR_LANE_COMPUTE, "%s_recompute", name);
    lower_segments_mark(context, kind->segments.i_recompute,
                        FR_SEGMENT_RECOMPUTE);
    fr_ref out = is_whole ? lower_temp(context, context->shape.stream_bytes)
                          : lower_absent;
    lower_layer_forward(context, kind, out, is_whole);
}

static void forward_passes(lower_context *context, lower_kind *kind,
                           const char *name, bool is_recomputed)
{
    size_t first = context->segments.n;
    lower_pass_begin(context, &kind->forward, name, "fwd", 0);
    lower_layer_forward(context, kind, lower_ref(FR_SPACE_OUT, 0), true);
    lower_pass_end(context);
    lower_segments_mark(context, first, FR_SEGMENT_FORWARD);
    if (!is_recomputed)
        return;
    first = context->segments.n;
    lower_pass_begin(context, &kind->recompute, name, "recompute", 0);
    const bool is_whole = is_recompute_whole(context, kind);
    fr_ref out = is_whole ? lower_temp(context, context->shape.stream_bytes)
                          : lower_absent;
    lower_layer_forward(context, kind, out, is_whole);
    lower_pass_end(context);
    lower_segments_mark(context, first, FR_SEGMENT_RECOMPUTE);
}

/* A layer that is one call each way, or several where it is cut. */
static void whole_segments(lower_context *context, lower_kind *kind,
                           const char *name)
{
    bool is_recomputed = context->plan->recompute == FR_RECOMPUTE_FULL;
    bool is_exchange_cut = context->plan->is_ep_overlap && kind->is_moe;
    bool is_tp_cut = lower_is_pass_cut(context);
    if ((is_tp_cut && context->plan->is_tp_overlap) || is_exchange_cut) {
        forward_passes(context, kind, name, is_recomputed);
    } else {
        kind->segments.i_fwd =
            lower_segment_begin(context, FR_LANE_COMPUTE, "%s_fwd", name);
        lower_segments_mark(context, kind->segments.i_fwd, FR_SEGMENT_FORWARD);
        lower_layer_forward(context, kind, lower_ref(FR_SPACE_OUT, 0), true);
        if (is_recomputed)
            recompute_segment(context, kind, name);
    }
    const size_t first = context->segments.n;
    if (is_tp_cut || is_exchange_cut) {
        lower_pass_begin(context, &kind->backward, name, "bwd", 0);
        lower_layer_backward(context, kind);
        lower_pass_end(context);
        lower_segments_mark(context, first, FR_SEGMENT_BACKWARD);
        return;
    }
    lower_keep_temps(context);
    kind->segments.i_bwd =
        lower_segment_begin(context, FR_LANE_COMPUTE, "%s_bwd", name);
    lower_segments_mark(context, first, FR_SEGMENT_BACKWARD);
    lower_layer_backward(context, kind);
    lower_split_backward(context, kind, name);
}

static void kind_segments(lower_context *context, lower_kind *kind,
                          const char *name)
{
    context->kind = kind;
    lower_cast_segment(context, kind);
    if (lower_is_ring(context))
        lower_ring_write(context, kind, name);
    else
        whole_segments(context, kind, name);
    const lower_partial partial = lower_partial_norms(context, &kind->layout);
    if (partial.n == 0)
        return;
    kind->segments.i_norm_reduce =
        lower_segment_begin(context, FR_LANE_COMPUTE, "norm_grad_reduce");
    const fr_ref norms = lower_grad(context, partial.first);
    lower_collective(context, FR_OP_ALL_REDUCE, FR_AXIS_TP,
                     context->plan->grad_dtype, partial.n, norms, norms);
}

enum { NAME_BYTES = 32 };

static const char *marked_name(const lower_kind *kind, char *out)
{
    snprintf(out, NAME_BYTES, "%s%s%s", kind->is_mtp ? "mtp_" : "",
             kind->mixer->name,
             kind->is_moe    ? "_moe"
             : kind->has_mlp ? "_mlp"
                             : "");
    return out;
}

void lower_layers_segments(lower_context *context)
{
    const fr_model *model = context->model;
    static const char *const names[] = {"layer", "moe_layer", "mtp_layer"};
    char name[NAME_BYTES];
    int64_t n_layers = model->n_layers + model->n_mtp_layers;
    for (uint32_t i = 0; i < context->n_kinds; i++) {
        lower_kind *kind = &context->kinds[i];
        bool is_used = model->kind == FR_MODEL_LAYERS;
        for (int64_t k = 0; k < n_layers && !is_used; k++)
            is_used = lower_kind_of(context, (int32_t)k) == kind;
        if (model->kind == FR_MODEL_LAYERS)
            lower_entry_segments(context, kind, i);
        else if (is_used && fr_model_is_unmarked(model))
            kind_segments(context, kind, names[i]);
        else if (is_used)
            kind_segments(context, kind, marked_name(kind, name));
    }
}
