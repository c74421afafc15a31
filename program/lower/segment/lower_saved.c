/*
 * lower_saved.c: what a layer's forward keeps for its backward.
 *
 * The sum for a GPT layer in 16 bits is 34 s b h (+ 5 a s^2 b with unfused
 * attention) of Korthikanti et al. 2022 (arXiv 2205.05198), table 2, of which
 * the layer's input is a block of its own; tests hold the one to the other.
 * Selective recompute leaves out what its parts recompute.
 */
#include "program/lower/framework/lower_overhead.h"
#include "program/lower/segment/lower_kind.h"
#include "spec/model/model_traits.h"

#include <string.h>

static bool is_recomputed(const lower_context *context, uint32_t part)
{
    return lower_is_recomputed(context, part);
}

static uint64_t keep_bytes(uint64_t *used, uint64_t n_bytes)
{
    uint64_t at = *used;
    *used += (n_bytes + 63) / 64 * 64;
    return at;
}

static uint64_t keep(const lower_context *context, uint64_t *used,
                     bool is_there, int64_t rows, int64_t cols)
{
    return is_there ? keep_bytes(used, lower_bytes(context, rows, cols))
                    : LOWER_ABSENT;
}

/* Statistics are float32 whatever the plan says. */
static uint64_t keep_stats(uint64_t *used, bool is_there, int64_t rows,
                           int64_t cols)
{
    return is_there ? keep_bytes(used, (uint64_t)rows * (uint64_t)cols *
                                           sizeof(float))
                    : LOWER_ABSENT;
}

/* An operand of a product: below 16 bits its copy in that dtype is kept
 * instead (as Transformer Engine does), next to the wide one if something
 * else needs that too. */
static lower_kept keep_operand(const lower_context *context, uint64_t *used,
                               bool is_there, bool is_wide_needed, int64_t rows,
                               int64_t cols)
{
    lower_kept kept = {LOWER_ABSENT, LOWER_ABSENT};
    if (is_there && (is_wide_needed || !context->target.is_low))
        kept.wide = keep(context, used, true, rows, cols);
    if (is_there && context->target.is_low)
        kept.low =
            keep_bytes(used, (uint64_t)rows * (uint64_t)cols *
                                 fr_dtype_bytes(context->plan->precision));
    return kept;
}

uint64_t lower_core_bytes(const lower_context *context)
{
    const lower_shape *s = &context->shape;
    uint64_t rows = (uint64_t)(s->rows * s->q_heads);
    uint64_t width = lower_bytes(context, 1, 1);
    if (context->target.attention == LOWER_ATTENTION_FUSED)
        return rows * sizeof(float);
    /* The dropped probabilities and a mask are kept; our kernels draw the mask
     * again. */
    if (context->job->dropout > 0 &&
        context->target.attention == LOWER_ATTENTION_APART)
        width = 2 * width + 1;
    /* Gathered keys, or the whole sequence of fewer heads. */
    return rows * (uint64_t)(s->seq * context->plan->cp) * width;
}

static void init_attention(const lower_context *context, lower_saved *k,
                           uint64_t *used)
{
    const lower_shape *s = &context->shape;
    const fr_model *model = context->model;
    bool is_latent = model->kv_lora_rank > 0;
    k->qkv = keep(context, used, !lower_is_latent_recomputed(context), s->rows,
                  s->qkv);
    k->o = keep_operand(context, used, true, true, s->rows, s->attn);
    k->kept = context->target.is_core_recomputed
                  ? LOWER_ABSENT
                  : keep_bytes(used, lower_core_bytes(context));
    k->o_by_head = keep(context, used,
                        context->plan->cp > 1 &&
                            context->plan->cp_kind == FR_CP_ALL_TO_ALL,
                        s->rows, s->attn);
    bool is_normed = lower_has_head_norms(model);
    int64_t heads = s->q_heads + s->kv_heads;
    k->raw_heads = keep(context, used, is_normed, s->rows, heads * s->head_dim);
    k->raw_stats = keep_stats(used, is_normed, 2 * heads, s->rows);
    int64_t latent = is_latent ? model->q_lora_rank + model->kv_lora_rank : 0;
    k->latent = keep(context, used, is_latent, s->stream_rows,
                     latent + model->qk_rope_head_dim);
    k->latent_stats = keep_stats(used, is_latent, 4, s->stream_rows);
    k->q_latent = keep_operand(context, used, is_latent && model->q_lora_rank,
                               false, s->stream_rows, model->q_lora_rank);
    /* A gate of the output is in qkv; the product reads what it leaves. */
    (void)keep(context, used, fr_model_has(model, FR_TRAIT_OUTPUT_GATE),
               s->rows, s->attn);
    k->kv_latent = keep_operand(context, used, is_latent, false, s->stream_rows,
                                model->kv_lora_rank);
}

/* A mixer that is no attention: what its core reads, keeps and writes. */
static void init_mixer(const lower_context *context, const lower_kind *kind,
                       lower_saved *k, uint64_t *used)
{
    const lower_shape *s = &context->shape;
    const fr_mixer_sizes *mix = &kind->mix;
    bool is_there = mix->in > 0;
    k->mix_in = keep(context, used, is_there, s->rows, mix->in);
    k->mix_core = keep(context, used, is_there, s->rows, 1 + mix->kept);
    k->mix_out =
        keep_operand(context, used, is_there, true, s->rows, mix->inner);
}

static void init_experts(const lower_context *context, lower_saved *k,
                         uint64_t *used)
{
    const lower_shape *s = &context->shape;
    const fr_model *model = context->model;
    bool is_kept = !is_recomputed(context, FR_RECOMPUTE_PART_EXPERTS);
    bool is_act_kept =
        is_kept && !is_recomputed(context, FR_RECOMPUTE_PART_ACTIVATION |
                                               FR_RECOMPUTE_PART_PRODUCTS);
    bool is_shared = s->shared_ffn > 0;
    k->scores = keep(context, used, is_kept, s->stream_rows, model->n_experts);
    k->chosen = keep_stats(used, is_kept, s->stream_rows,
                           2 * model->n_experts_per_token);
    /* There is a count for each rank whose rows arrive here, and each
     * expert. */
    const bool is_routed = lower_is_routed(context);
    k->counts = keep_stats(used, is_kept && is_routed,
                           is_routed ? s->expert_rows / s->routed_rows : 0,
                           model->n_experts);
    k->loads = keep_stats(used, is_kept && lower_router_sets(context) > 0,
                          lower_router_sets(context), model->n_experts);
    k->row_weights = keep_stats(used, is_kept && is_routed, s->expert_rows, 1);
    k->expert_in =
        keep_operand(context, used, is_kept, false, s->expert_rows, s->hidden);
    k->expert_fc1 = keep(context, used, is_kept, s->expert_rows, s->expert_fc1);
    k->expert_act = keep_operand(context, used, is_act_kept, false,
                                 s->expert_rows, s->expert_ffn);
    k->shared_fc1 =
        keep(context, used, is_kept && is_shared, s->rows, s->shared_fc1);
    k->shared_act = keep_operand(context, used, is_act_kept && is_shared, false,
                                 s->rows, s->shared_ffn);
}

static void init_mlp(const lower_context *context, lower_saved *k,
                     uint64_t *used)
{
    const lower_shape *s = &context->shape;
    bool is_kept = !is_recomputed(context, FR_RECOMPUTE_PART_MLP);
    bool is_every_second = is_recomputed(context, FR_RECOMPUTE_PART_PRODUCTS);
    bool is_act_kept = is_kept && !is_every_second &&
                       !is_recomputed(context, FR_RECOMPUTE_PART_ACTIVATION);
    bool is_half_kept = is_kept && is_every_second && context->target.is_apart;
    k->fc1 = keep(context, used, is_kept && !is_half_kept, s->rows, s->fc1);
    /* One of two projections, and the last product, which nobody reads. */
    if (is_half_kept && !context->target.is_low) {
        k->fc1_half = keep(context, used, true, s->rows, s->ffn);
        (void)keep(context, used, true, s->stream_rows, s->hidden);
    }
    k->act = keep_operand(context, used, is_act_kept, false, s->rows, s->ffn);
}

/* Can the sum after attention be computed from attention's output? */
static bool is_mid_recomputable(const lower_kind *kind)
{
    return kind->mixer->is_attention && !kind->mixer->has_side_attention &&
           kind->layout.out1_w == LOWER_ABSENT;
}

void lower_saved_init(const lower_context *context, lower_kind *kind)
{
    const lower_shape *s = &context->shape;
    const int64_t rows = s->stream_rows, c = s->hidden;
    lower_saved *k = &kind->saved;
    uint64_t used = 0;
    bool is_post = lower_is_post_norm(context);
    bool is_norm_kept = !is_recomputed(context, FR_RECOMPUTE_PART_NORM |
                                                    FR_RECOMPUTE_PART_PRODUCTS);
    bool is_dropped = context->job->dropout > 0;
    bool is_parallel = context->model->is_parallel_block;
    const lower_layer_layout *l = &kind->layout;
    bool has_mixer = kind->mixer->letter != '-';
    bool has_second = !is_parallel || l->ln2_w != LOWER_ABSENT;
    memset(k, 0xff, sizeof *k); /* LOWER_ABSENT */
    /* Post-norm: the layer's input itself is the first operand. */
    if (!is_post && l->ln1_w != LOWER_ABSENT)
        k->n1 = keep_operand(context, &used, is_norm_kept, false, rows, c);
    else if (context->target.is_low && has_mixer)
        k->n1.low = keep_operand(context, &used, true, false, rows, c).low;
    k->stats1 = keep_stats(&used, is_post || l->ln1_w != LOWER_ABSENT, 2, rows);
    if (kind->mixer->is_attention)
        init_attention(context, k, &used);
    init_mixer(context, kind, k, &used);
    k->mid = keep(context, &used,
                  !is_parallel && has_mixer && kind->has_mlp &&
                      (!lower_is_mid_recomputed(context) ||
                       !is_mid_recomputable(kind)),
                  rows, c);
    /* The router, too, reads the second norm; after a post-norm the sum. */
    if (is_post || l->ln2_w != LOWER_ABSENT)
        k->n2 = keep_operand(context, &used, is_post || is_norm_kept,
                             is_post || kind->is_moe, rows, c);
    else if (has_second && kind->has_mlp && context->target.is_low)
        k->n2.low = keep_operand(context, &used, true, false, rows, c).low;
    else if (!has_second)
        k->n2 = k->n1;
    k->stats2 = keep_stats(&used, is_post || l->ln2_w != LOWER_ABSENT, 2, rows);
    const uint64_t outs[2] = {l->out1_w, l->out2_w};
    for (int i = 0; i < 2; i++) {
        k->branch[i] = keep(context, &used, outs[i] != LOWER_ABSENT, rows, c);
        k->branch_stats[i] =
            keep_stats(&used, outs[i] != LOWER_ABSENT, 2, rows);
    }
    if (kind->is_moe)
        init_experts(context, k, &used);
    else if (kind->has_mlp)
        init_mlp(context, k, &used);
    if (is_dropped && !is_parallel)
        k->mask1 = keep_bytes(&used, (uint64_t)(rows * c));
    if (is_dropped)
        k->mask2 = keep_bytes(&used, (uint64_t)(rows * c));
    if (is_parallel) /* one sum, one mask */
        k->mask1 = k->mask2;
    k->last = keep(context, &used, is_post, rows, c);
    k->joined = keep_operand(context, &used, kind->is_mtp, false, rows, 2 * c);
    k->join_stats = keep_stats(&used, kind->is_mtp, 4, rows);
    k->join_out = keep(context, &used, kind->is_mtp, rows, c);
    bool is_later = kind->is_mtp && lower_is_later_run(context);
    k->later_out = keep(context, &used, is_later, rows, c);
    k->later_stats = keep_stats(&used, is_later, 2, rows);
    (void)keep_bytes(&used,
                     lower_overhead_saved(context, is_norm_kept,
                                          k->act.wide != LOWER_ABSENT ||
                                              k->act.low != LOWER_ABSENT));
    k->n_bytes = used;
}
