/* model.c: defaults, copies, names and checks of a model. */
#include "spec/model/model.h"

#include "core/base/text.h"
#include "spec/model/mixers.h"
#include "spec/model/model_traits.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *fr_model_kind_name(fr_model_kind kind)
{
    static const char *const names[FR_MODEL_KIND_N] = {
        [FR_MODEL_DECODER] = "decoder",
        [FR_MODEL_ENCODER] = "encoder",
        [FR_MODEL_LAYERS] = "layers",
    };
    return (unsigned)kind < FR_MODEL_KIND_N ? names[kind] : "unknown";
}

const char *fr_activation_name(fr_activation activation)
{
    static const char *const names[FR_ACTIVATION_N] = {
        [FR_ACTIVATION_GELU_TANH] = "gelu_tanh",
        [FR_ACTIVATION_GELU] = "gelu",
        [FR_ACTIVATION_SILU] = "silu",
        [FR_ACTIVATION_RELU] = "relu",
        [FR_ACTIVATION_RELU_SQUARED] = "relu2",
        [FR_ACTIVATION_GELU_QUICK] = "quick_gelu",
        [FR_ACTIVATION_SIGMOID] = "sigmoid",
        [FR_ACTIVATION_TANH] = "tanh",
    };
    return (unsigned)activation < FR_ACTIVATION_N ? names[activation]
                                                  : "unknown";
}

void fr_model_init(fr_model *model)
{
    memset(model, 0, sizeof *model);
    model->kind = FR_MODEL_DECODER;
    model->norm_eps = 1e-5;
    model->rope_theta = 10000.0;
    model->rope_frac = 1.0;
    model->rope_factor = 8.0; /* Llama 3.1's, where frequencies are rescaled */
    model->rope_low_factor = 1.0;
    model->rope_high_factor = 4.0;
    model->rope_original_seq = 8192;
    model->moe_every = 1;
    model->n_expert_groups = model->n_chosen_groups = 1;
    model->routed_scale = 1.0;
    model->mtp_loss_scale = 0.3; /* DeepSeek-V3's for most of its training */
    model->has_final_norm = true;
}

void fr_model_release(fr_model *model)
{
    if (model == NULL)
        return;
    free(model->layers);
    free(model->layer_ops);
    memset(model, 0, sizeof *model);
}

/* A copy of n_bytes at `from`; NULL where there are none. */
static fr_status copy_bytes(const void *from, size_t n_bytes, void **out,
                            fr_err *err)
{
    *out = NULL;
    if (n_bytes == 0)
        return FR_OK;
    *out = malloc(n_bytes);
    if (*out == NULL)
        return fr_fail_no_memory(err);
    memcpy(*out, from, n_bytes);
    return FR_OK;
}

fr_status fr_model_copy(const fr_model *model, fr_model *out, fr_err *err)
{
    fr_model copy = *model;
    void *layers, *ops;
    FR_TRY(copy_bytes(model->layers,
                      model->n_layer_entries * sizeof *copy.layers, &layers,
                      err));
    fr_status status =
        copy_bytes(model->layer_ops,
                   model->n_layer_ops * sizeof *copy.layer_ops, &ops, err);
    if (status != FR_OK) {
        free(layers);
        return status;
    }
    copy.layers = layers;
    copy.layer_ops = ops;
    *out = copy;
    return FR_OK;
}

int64_t fr_model_rotated(const fr_model *model)
{
    return (int64_t)(model->rope_frac * (double)model->head_dim);
}

bool fr_model_layer_is_moe(const fr_model *model, int64_t i_layer)
{
    if (model->mlps[0] != '\0' && i_layer >= 0 && i_layer < FR_MODEL_MOST_MARKS)
        return model->mlps[i_layer] == 'e';
    return model->n_experts > 0 && i_layer >= model->first_dense_layers &&
           (i_layer + 1) % model->moe_every == 0;
}

bool fr_model_layer_has_mlp(const fr_model *model, int64_t i_layer)
{
    return model->mlps[0] == '\0' || i_layer < 0 ||
           i_layer >= FR_MODEL_MOST_MARKS || model->mlps[i_layer] != '-';
}

int64_t fr_model_moe_layers(const fr_model *model)
{
    int64_t n = 0;
    if (model->mlps[0] != '\0') {
        for (int64_t i = 0; i < model->n_layers; i++)
            n += fr_model_layer_is_moe(model, i);
        return n;
    }
    if (model->n_experts == 0 || model->moe_every < 1)
        return 0;
    return model->n_layers / model->moe_every -
           model->first_dense_layers / model->moe_every;
}

bool fr_model_is_unmarked(const fr_model *model)
{
    return model->mixers[0] == '\0' && model->mlps[0] == '\0';
}

bool fr_model_has_position_table(const fr_model *model)
{
    return !model->is_rope && !fr_model_has(model, FR_TRAIT_ALIBI) &&
           !fr_model_has(model, FR_TRAIT_NO_POSITIONS);
}

typedef struct range {
    const char *name;
    int64_t value, low, high;
} range;

static fr_status check_ranges(const range *ranges, size_t n, fr_err *err)
{
    for (size_t i = 0; i < n; i++)
        if (ranges[i].value < ranges[i].low || ranges[i].value > ranges[i].high)
            return fr_fail(err, FR_INPUT, "%s is %lld; give %lld to %lld",
                           ranges[i].name, (long long)ranges[i].value,
                           (long long)ranges[i].low, (long long)ranges[i].high);
    return FR_OK;
}

enum { MOST_LAYERS = 100000 };

/* The limit for one sample: a thousand times the memory of any device. */
#define MOST_LAYER_BYTES UINT64_C(1000000000000000)

static fr_status check_layer_list(const fr_model *model, fr_err *err)
{
    int64_t n_layers = 0;
    double n_parameters = 0.0;
    if (model->n_layer_entries < 1)
        return fr_fail(err, FR_INPUT, "layers is empty; list at least one");
    for (size_t i = 0; i < model->n_layer_entries; i++) {
        const fr_model_layer *layer = &model->layers[i];
        if (layer->repeat < 1 || layer->repeat > MOST_LAYERS)
            return fr_fail(err, FR_INPUT,
                           "layer '%s': repeat is %lld; give 1 to %d",
                           layer->name, (long long)layer->repeat, MOST_LAYERS);
        if (layer->n_tensors < 1 || layer->n_tensors > MOST_LAYERS)
            return fr_fail(
                err, FR_INPUT, "layer '%s': tensors is %lld; give 1 to %d",
                layer->name, (long long)layer->n_tensors, MOST_LAYERS);
        if (!(layer->forward_flop >= 0.0 && layer->forward_flop < 1e24))
            return fr_fail(err, FR_INPUT,
                           "layer '%s': forward_flop is %g; give 0 or more",
                           layer->name, layer->forward_flop);
        if (layer->activation_bytes > MOST_LAYER_BYTES ||
            layer->output_bytes > MOST_LAYER_BYTES)
            return fr_fail(err, FR_INPUT,
                           "layer '%s': more than 1e15 bytes of activations "
                           "or output for one sample",
                           layer->name);
        n_layers += layer->repeat;
        n_parameters += (double)layer->n_parameters * (double)layer->repeat;
    }
    if (n_layers > MOST_LAYERS)
        return fr_fail(err, FR_INPUT, "%lld layers; give at most %d",
                       (long long)n_layers, MOST_LAYERS);
    if (n_layers != model->n_layers)
        return fr_fail(err, FR_INPUT, "n_layers is %lld but the list has %lld",
                       (long long)model->n_layers, (long long)n_layers);
    if (n_parameters > 1e18)
        return fr_fail(err, FR_INPUT, "%.3g parameters are more than 1e18",
                       n_parameters);
    return FR_OK;
}

static fr_status check_experts(const fr_model *model, fr_err *err)
{
    if (model->n_experts == 0)
        return FR_OK;
    const range ranges[] = {
        {"n_experts_per_token", model->n_experts_per_token, 1,
         model->n_experts},
        {"expert_ffn_hidden", model->expert_ffn_hidden, 1, 1 << 28},
        {"shared_expert_ffn_hidden", model->shared_expert_ffn_hidden, 0,
         1 << 28},
        {"first_dense_layers", model->first_dense_layers, 0, model->n_layers},
        {"moe_every", model->moe_every, 1, model->n_layers},
        {"n_expert_groups", model->n_expert_groups, 1, model->n_experts},
        {"n_chosen_groups", model->n_chosen_groups, 1, model->n_expert_groups},
    };
    FR_TRY(check_ranges(ranges, FR_LENGTH(ranges), err));
    const int64_t per_group = model->n_experts / model->n_expert_groups;
    if (model->n_experts % model->n_expert_groups != 0 ||
        model->n_chosen_groups * per_group < model->n_experts_per_token)
        return fr_fail(err, FR_INPUT,
                       "%lld experts in %lld groups, of which %lld are chosen: "
                       "give groups of one size with at least "
                       "n_experts_per_token %lld in those",
                       (long long)model->n_experts,
                       (long long)model->n_expert_groups,
                       (long long)model->n_chosen_groups,
                       (long long)model->n_experts_per_token);
    if (!(model->router_aux_coef >= 0.0 && model->router_aux_coef < 1e6))
        return fr_fail(err, FR_INPUT, "router_aux_coef is %g; give [0, 1e6)",
                       model->router_aux_coef);
    if (!(model->routed_scale > 0.0 && model->routed_scale < 1e6))
        return fr_fail(err, FR_INPUT, "routed_scale is %g; give (0, 1e6)",
                       model->routed_scale);
    return FR_OK;
}

static fr_status check_latent(const fr_model *model, fr_err *err)
{
    if (model->kv_lora_rank == 0)
        return FR_OK;
    const range ranges[] = {
        {"kv_lora_rank", model->kv_lora_rank, 1, 1 << 24},
        {"q_lora_rank", model->q_lora_rank, 0, 1 << 24},
        {"qk_rope_head_dim", model->qk_rope_head_dim, 1, 1 << 16},
        {"qk_nope_head_dim", model->qk_nope_head_dim, 1, 1 << 16},
        {"v_head_dim", model->v_head_dim, 1, 1 << 16},
    };
    return check_ranges(ranges, FR_LENGTH(ranges), err);
}

/* The exact counts are 64-bit: a rough bound in double must be far below. */
static fr_status check_total(const fr_model *model, fr_err *err)
{
    double hidden = (double)model->hidden;
    double attention =
        4.0 * hidden * (double)model->n_heads * (double)model->head_dim +
        (double)(model->kv_lora_rank + model->q_lora_rank) *
            (double)model->n_heads *
            (double)(model->qk_rope_head_dim + model->qk_nope_head_dim +
                     model->v_head_dim) +
        hidden * 65536.0 +
        3.0 * (double)model->mix_heads * (double)model->mix_head_dim *
            (hidden + 2.0 * (double)model->mix_state +
             (double)model->mix_rank) +
        4.0 * hidden * (double)model->mix_groups * (double)model->mix_state;
    double mlp =
        3.0 * hidden *
        ((double)model->ffn_hidden + (double)model->shared_expert_ffn_hidden +
         (double)model->n_experts * (double)model->expert_ffn_hidden);
    double total =
        (double)model->n_layers * (attention + mlp) +
        2.0 * hidden * ((double)model->vocab + (double)model->max_seq);
    if (total > 1e18)
        return fr_fail(err, FR_INPUT, "about %.3g parameters: more than 1e18",
                       total);
    return FR_OK;
}

static fr_status check_attention(const fr_model *model, fr_err *err)
{
    if (model->n_heads % model->n_kv_heads != 0)
        return fr_fail(err, FR_INPUT,
                       "n_heads %lld %% n_kv_heads %lld != 0; every kv head "
                       "serves the same number of heads",
                       (long long)model->n_heads, (long long)model->n_kv_heads);
    if (model->is_rope && model->head_dim % 2 != 0)
        return fr_fail(err, FR_INPUT,
                       "head_dim %lld is odd; rotary positions turn pairs",
                       (long long)model->head_dim);
    if (!(model->rope_frac > 0.0 && model->rope_frac <= 1.0))
        return fr_fail(err, FR_INPUT, "rope_frac is %g; give (0, 1]",
                       model->rope_frac);
    if (model->is_rope &&
        (fr_model_rotated(model) < 2 || fr_model_rotated(model) % 2 != 0))
        return fr_fail(err, FR_INPUT,
                       "rope_frac %g of head_dim %lld are %lld columns; rotary "
                       "positions turn pairs",
                       model->rope_frac, (long long)model->head_dim,
                       (long long)fr_model_rotated(model));
    const bool needs_original = model->rope_kind != FR_ROPE_LLAMA3;
    if (model->has_rope_scaling &&
        !(model->rope_factor >= 0.0 && model->rope_low_factor > 0.0 &&
          (model->rope_high_factor > model->rope_low_factor ||
           (model->rope_kind == FR_ROPE_YARN &&
            model->rope_high_factor >= model->rope_low_factor)) &&
          model->rope_original_seq >= needs_original))
        return fr_fail(err, FR_INPUT,
                       "rope scaling by %g from %g to %g of %lld positions; "
                       "give a factor of at least 0, 0 < low < high, and the "
                       "original_seq of yarn and dynamic",
                       model->rope_factor, model->rope_low_factor,
                       model->rope_high_factor,
                       (long long)model->rope_original_seq);
    if (!(model->rope_attention_factor >= 0.0 &&
          model->rope_attention_factor < 1e6 && model->score_factor >= 0.0 &&
          model->score_factor < 1e6))
        return fr_fail(err, FR_INPUT,
                       "rope_attention_factor %g, score_factor %g: give 0 (1) "
                       "to 1e6",
                       model->rope_attention_factor, model->score_factor);
    if (model->is_rope && !(model->rope_theta > 0.0))
        return fr_fail(err, FR_INPUT, "rope_theta is %g; give more than 0",
                       model->rope_theta);
    if (!(model->norm_eps > 0.0 && model->norm_eps < 1.0))
        return fr_fail(err, FR_INPUT, "norm_eps is %g; give (0, 1)",
                       model->norm_eps);
    if (fr_model_has_position_table(model) && model->max_seq < 1)
        return fr_fail(err, FR_INPUT,
                       "max_seq is missing; learned positions need it");
    return FR_OK;
}

const char *fr_model_counted(const fr_model *model)
{
    if (model->image_size > 0)
        return "images";
    return model->kind == FR_MODEL_LAYERS ? "samples" : "tokens";
}

double fr_model_count_of(const fr_model *model, int64_t seq, double n_samples)
{
    return model->image_size > 0
               ? n_samples
               : n_samples * (double)fr_model_sample_tokens(model, seq);
}

/* Every layer has a letter, and whatever its letters stand for has sizes. */
static fr_status check_marks(const fr_model *model, fr_err *err)
{
    const size_t n_mixers = strlen(model->mixers);
    const size_t n_mlps = strlen(model->mlps);
    if ((n_mixers > 0 && n_mixers != (size_t)model->n_layers) ||
        (n_mlps > 0 && n_mlps != (size_t)model->n_layers))
        return fr_fail(err, FR_INPUT,
                       "mixers '%s' or mlps '%s' do not mark each of %lld "
                       "layers",
                       model->mixers, model->mlps, (long long)model->n_layers);
    for (size_t i = 0; i < n_mixers; i++)
        if (fr_mixer_find(model->mixers[i]) == NULL)
            return fr_fail(
                err, FR_INPUT,
                "layer %zu: mixer '%c' is not known; docs/formats.md "
                "lists the letters",
                i, model->mixers[i]);
    for (size_t i = 0; i < n_mlps; i++) {
        if (strchr("me-", model->mlps[i]) == NULL)
            return fr_fail(err, FR_INPUT,
                           "layer %zu: mlp '%c' is not known; m, e and - are",
                           i, model->mlps[i]);
        if (model->mlps[i] == 'e' && model->n_experts == 0)
            return fr_fail(err, FR_INPUT,
                           "layer %zu has experts, and n_experts is 0", i);
        if (model->mlps[i] == 'm' && model->ffn_hidden < 1)
            return fr_fail(err, FR_INPUT,
                           "layer %zu has an MLP, and ffn_hidden is 0", i);
        if (model->mlps[i] == '-' &&
            fr_model_mixer(model, (int64_t)i)->letter == '-')
            return fr_fail(err, FR_INPUT,
                           "layer %zu has neither a mixer nor an MLP", i);
    }
    return FR_OK;
}

static fr_status check_mixers(const fr_model *model, fr_err *err)
{
    const range ranges[] = {
        {"mix_heads", model->mix_heads, 0, 1 << 18},
        {"mix_head_dim", model->mix_head_dim, 0, 1 << 12},
        {"mix_groups", model->mix_groups, 0, 1 << 12},
        {"mix_state", model->mix_state, 0, 1 << 16},
        {"mix_conv", model->mix_conv, 0, 1 << 10},
        {"mix_chunk", model->mix_chunk, 0, 1 << 20},
        {"mix_rank", model->mix_rank, 0, 1 << 16},
    };
    FR_TRY(check_ranges(ranges, FR_LENGTH(ranges), err));
    if (fr_model_is_unmarked(model))
        return FR_OK;
    FR_TRY(check_marks(model, err));
    if (model->kv_lora_rank > 0 || model->kind != FR_MODEL_DECODER)
        return fr_fail(err, FR_INPUT,
                       "layers are marked one by one in decoders with plain "
                       "attention only");
    if (model->is_parallel_block &&
        (model->mlps[0] != '\0' ||
         strspn(model->mixers, "awc") != strlen(model->mixers)))
        return fr_fail(err, FR_INPUT,
                       "parallel blocks have attention and an MLP in each "
                       "layer; mark them a, w or c");
    for (int64_t i = 0; i < model->n_layers; i++) {
        const fr_mixer *mixer = fr_model_mixer(model, i);
        if (mixer->is_windowed && model->sliding_window < 1)
            return fr_fail(err, FR_INPUT,
                           "layer %lld has a window, and sliding_window is 0",
                           (long long)i);
        if (mixer->sizes == NULL)
            continue;
        const fr_mixer_sizes sizes = mixer->sizes(model);
        if (sizes.in < 1 || sizes.inner < 1 || model->mix_heads < 0)
            return fr_fail(err, FR_INPUT,
                           "layer %lld is %s, and its sizes are missing: "
                           "mix_heads, mix_head_dim, mix_state, mix_conv",
                           (long long)i, mixer->name);
    }
    return FR_OK;
}

int64_t fr_model_sample_tokens(const fr_model *model, int64_t seq)
{
    return model->kind == FR_MODEL_LAYERS ? 1 : seq;
}

fr_status fr_model_check(const fr_model *model, fr_err *err)
{
    if ((unsigned)model->kind >= FR_MODEL_KIND_N ||
        (unsigned)model->activation >= FR_ACTIVATION_N)
        return fr_fail(err, FR_INPUT,
                       "kind or activation is not one of its kinds");
    if (model->kind == FR_MODEL_LAYERS)
        return check_layer_list(model, err);
    bool is_image = model->n_channels > 0;
    const range ranges[] = {
        {"n_layers", model->n_layers, 1, MOST_LAYERS},
        {"hidden", model->hidden, 1, 1 << 24},
        {"n_heads", model->n_heads, 1, 1 << 20},
        {"n_kv_heads", model->n_kv_heads, 1, 1 << 20},
        {"head_dim", model->head_dim, 1, 1 << 16},
        {"ffn_hidden", model->ffn_hidden,
         model->n_experts > 0 || model->mlps[0] != '\0' ? 0 : 1, 1 << 28},
        {"vocab", model->vocab, is_image ? 0 : 1, 1 << 28},
        {"max_seq", model->max_seq, 0, 1 << 30},
        {"sliding_window", model->sliding_window, 0, INT64_MAX},
        {"n_experts", model->n_experts, 0, 1 << 16},
        {"n_mtp_layers", model->n_mtp_layers, 0, 1024},
        {"n_token_types", model->n_token_types, 0, 1 << 20},
        {"image_size", model->image_size, is_image ? 1 : 0, 1 << 16},
        {"patch_size", model->patch_size, is_image ? 1 : 0, 1 << 12},
        {"n_channels", model->n_channels, 0, 1 << 12},
        {"n_labels", model->n_labels, 0, 1 << 24},
    };
    FR_TRY(check_ranges(ranges, FR_LENGTH(ranges), err));
    FR_TRY(check_attention(model, err));
    FR_TRY(check_experts(model, err));
    FR_TRY(check_latent(model, err));
    FR_TRY(check_mixers(model, err));
    if (!(model->mtp_loss_scale >= 0.0 && model->mtp_loss_scale < 1e6))
        return fr_fail(err, FR_INPUT, "mtp_loss_scale is %g; give [0, 1e6)",
                       model->mtp_loss_scale);
    return check_total(model, err);
}
