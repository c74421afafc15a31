/*
 * lower_list.c: an entry of a list of layers (CNNs, anything else) by its flop,
 * parameters and bytes alone, which is all that a prediction asks.  What it
 * computes where forerun runs it stands in program/lower/images/.
 *
 * Forward reads what came in and its weights, and writes what it keeps and
 * what goes out; backward is twice the forward's flop (the gradients of what
 * came in and of the weights), reads what was kept, and takes the gradient of
 * what went out for that of what came in, in the same memory.
 */
#include "program/lower/images/lower_images.h"
#include "program/lower/segment/lower_ends.h"
#include "program/lower/segment/lower_layer.h"

static fr_instr *entry(lower_context *context, const lower_kind *kind, fr_op op)
{
    const uint64_t width = lower_bytes(context, 1, 1);
    const uint64_t weights = kind->entry->n_parameters * width;
    bool is_forward = op == FR_OP_LAYER_FWD;
    uint64_t n_bytes =
        kind->in_bytes + kind->saved.n_bytes + kind->out_bytes + weights;
    if (!is_forward) /* weights again, their gradients read and written */
        n_bytes += 2 * kind->entry->n_parameters *
                   fr_dtype_bytes(context->plan->grad_dtype);
    fr_instr *instr = lower_emit(context, op);
    instr->dtype = (uint8_t)context->plan->precision;
    instr->layer.moved_bytes = (int64_t)n_bytes;
    instr->layer.kept_bytes = (int64_t)kind->saved.n_bytes;
    instr->layer.in_bytes =
        (int64_t)(is_forward ? kind->in_bytes : kind->out_bytes);
    instr->layer.out_bytes =
        (int64_t)(is_forward ? kind->out_bytes : kind->in_bytes);
    instr->scalar = kind->entry->forward_flop * (double)context->shape.batch *
                    (is_forward ? 1.0 : 2.0);
    return instr;
}

void lower_entry_segments(lower_context *context, lower_kind *kind,
                          uint32_t i_entry)
{
    const fr_ref kept = lower_ref(FR_SPACE_SAVED, 0);
    if (lower_is_images_run(context)) {
        lower_image_segments(context, kind, i_entry);
        return;
    }
    kind->segments.i_fwd = lower_segment_begin(
        context, FR_LANE_COMPUTE, "entry%u_fwd", (unsigned)i_entry);
    lower_segments_mark(context, kind->segments.i_fwd, FR_SEGMENT_FORWARD);
    fr_instr *instr = entry(context, kind, FR_OP_LAYER_FWD);
    instr->ref[FR_LAYER_FWD_IN] = lower_ref(FR_SPACE_IN, 0);
    instr->ref[FR_LAYER_FWD_KEPT] = kept;
    instr->ref[FR_LAYER_FWD_OUT] = lower_ref(FR_SPACE_OUT, 0);
    if (context->plan->recompute == FR_RECOMPUTE_FULL) {
        kind->segments.i_recompute = lower_segment_begin(
            context, FR_LANE_COMPUTE, "entry%u_recompute", (unsigned)i_entry);
        lower_segments_mark(context, kind->segments.i_recompute,
                            FR_SEGMENT_RECOMPUTE);
        fr_ref out = lower_temp(context, kind->out_bytes);
        instr = entry(context, kind, FR_OP_LAYER_FWD);
        instr->ref[FR_LAYER_FWD_IN] = lower_ref(FR_SPACE_IN, 0);
        instr->ref[FR_LAYER_FWD_KEPT] = kept;
        instr->ref[FR_LAYER_FWD_OUT] = out;
    }
    kind->segments.i_bwd = lower_segment_begin(
        context, FR_LANE_COMPUTE, "entry%u_bwd", (unsigned)i_entry);
    lower_segments_mark(context, kind->segments.i_bwd, FR_SEGMENT_BACKWARD);
    instr = entry(context, kind, FR_OP_LAYER_BWD);
    instr->ref[FR_LAYER_BWD_DOUT] = lower_ref(FR_SPACE_IN, 0);
    instr->ref[FR_LAYER_BWD_KEPT] = kept;
    instr->ref[FR_LAYER_BWD_DIN] = lower_ref(FR_SPACE_IN, 0);
}

/* The input and the loss are small compared with the layers. */
static void input(lower_context *context)
{
    const fr_ref out = lower_ref(FR_SPACE_OUT, 0);
    if (lower_is_images_run(context)) {
        lower_image_input(context, out);
        return;
    }
    fr_instr *instr = lower_emit(context, FR_OP_ZERO);
    instr->copy.n_bytes = (int64_t)context->kinds[0].in_bytes;
    instr->ref[FR_ZERO_DST] = out;
}

static void loss(lower_context *context)
{
    if (lower_is_images_run(context))
        lower_image_loss(context);
    else
        lower_copy(context, lower_ref(FR_SPACE_IN, 0),
                   lower_ref(FR_SPACE_OUT, 0),
                   context->kinds[context->n_kinds - 1].out_bytes);
}

void lower_list_ends(lower_context *context, bool has_embed, bool has_head,
                     lower_ends_segments *out)
{
    if (has_embed) {
        out->i_embed_fwd =
            lower_segment_begin(context, FR_LANE_COMPUTE, "input");
        lower_segments_mark(context, out->i_embed_fwd, FR_SEGMENT_INPUT);
        input(context);
        out->i_embed_bwd =
            lower_segment_begin(context, FR_LANE_COMPUTE, "input_bwd");
        lower_segments_mark(context, out->i_embed_bwd,
                            FR_SEGMENT_EMBED_BACKWARD);
    }
    if (has_head) {
        out->i_head = lower_segment_begin(context, FR_LANE_COMPUTE, "loss");
        loss(context);
    }
}
