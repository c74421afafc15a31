/*
 * hf_towers.c: see hf_towers.h.  The counts are transcriptions of
 * modeling_<type>.py: qwen2_vl, qwen2_5_vl, qwen3_vl, siglip with gemma3,
 * llama4.
 */
#include "spec/model/hf/hf_towers.h"

#include "core/base/err.h"

#include <string.h>

/* Sizes of a tower.  `is_known` becomes false where the file lacks one. */
typedef struct tower {
    const fr_json_value *config;
    uint64_t text; /* columns of the text */
    bool is_known;
} tower;

/* A size; 0 in `otherwise`: it must be there. */
static uint64_t size(tower *t, const char *key, uint64_t otherwise)
{
    const fr_json_value *value = fr_json_find(t->config, key);
    int64_t n = (int64_t)otherwise;
    fr_err unused;
    if (value != NULL && fr_json_kind_of(value) == FR_JSON_NUMBER &&
        fr_json_as_i64(value, &n, &unused) != FR_OK)
        n = 0;
    if (n < 1 || n > 1 << 20) {
        t->is_known = false;
        return 1;
    }
    return (uint64_t)n;
}

/* Attention with biases and an MLP of two matrices with biases. */
static uint64_t plain_block(uint64_t h, uint64_t f)
{
    return 4 * h + 4 * h * h + 4 * h + 2 * h * f + f + h;
}

/* Two linears over merged patches, `wide` columns. */
static uint64_t merger(uint64_t wide, uint64_t out)
{
    return wide * wide + wide + wide * out + out;
}

static uint64_t patch_elements(tower *t, const char *channels,
                               uint64_t patch_otherwise)
{
    const uint64_t p = size(t, "patch_size", patch_otherwise);
    return size(t, channels, 3) * p * p * size(t, "temporal_patch_size", 2);
}

static uint64_t merged(tower *t, uint64_t h)
{
    const uint64_t side = size(t, "spatial_merge_size", 2);
    return side * side * h;
}

static uint64_t qwen2_vl(tower *t)
{
    const uint64_t h = size(t, "embed_dim", 1280);
    const uint64_t ratio = size(t, "mlp_ratio", 4);
    return patch_elements(t, "in_channels", 14) * h +
           size(t, "depth", 32) * plain_block(h, ratio * h) + 2 * h +
           merger(merged(t, h), size(t, "hidden_size", 3584));
}

static uint64_t qwen2_5_vl(tower *t)
{
    const uint64_t h = size(t, "hidden_size", 0);
    const uint64_t f = size(t, "intermediate_size", 0);
    const uint64_t block = 2 * h + 4 * h * h + 4 * h + 3 * h * f + 2 * f + h;
    return patch_elements(t, "in_channels", 14) * h +
           size(t, "depth", 32) * block + h +
           merger(merged(t, h), size(t, "out_hidden_size", 0));
}

static uint64_t qwen3_vl(tower *t)
{
    const fr_json_value *stack =
        fr_json_find(t->config, "deepstack_visual_indexes");
    const uint64_t h = size(t, "hidden_size", 0), wide = merged(t, h);
    const uint64_t out = size(t, "out_hidden_size", 0);
    const uint64_t block = plain_block(h, size(t, "intermediate_size", 0));
    uint64_t n_deep = 0;
    if (stack == NULL || fr_json_kind_of(stack) != FR_JSON_ARRAY)
        t->is_known = false;
    else
        n_deep = fr_json_n(stack);
    return patch_elements(t, "in_channels", 16) * h + h +
           size(t, "num_position_embeddings", 0) * h +
           size(t, "depth", 0) * block + 2 * h + merger(wide, out) +
           n_deep * (2 * wide + merger(wide, out));
}

/* SigLIP without its pooling head, then a norm and a matrix. */
static uint64_t gemma3(tower *t)
{
    const uint64_t h = size(t, "hidden_size", 0);
    const uint64_t p = size(t, "patch_size", 0);
    const uint64_t side = size(t, "image_size", 0) / p;
    return size(t, "num_channels", 3) * p * p * h + h + side * side * h +
           size(t, "num_hidden_layers", 0) *
               plain_block(h, size(t, "intermediate_size", 0)) +
           2 * h + h + h * t->text;
}

/* A class token, norms before and after the blocks, a shuffle of pixels, two
 * matrices and one to the text. */
static uint64_t llama4(tower *t)
{
    const uint64_t h = size(t, "hidden_size", 0);
    const uint64_t f = size(t, "intermediate_size", 0);
    const uint64_t p = size(t, "patch_size", 14);
    const uint64_t side = size(t, "image_size", 0) / p;
    const uint64_t in = size(t, "projector_input_dim", 0);
    const uint64_t out = size(t, "projector_output_dim", 0);
    const fr_json_value *shuffle =
        fr_json_find(t->config, "pixel_shuffle_ratio");
    double ratio = 0;
    fr_err unused;
    if (shuffle == NULL || fr_json_kind_of(shuffle) != FR_JSON_NUMBER ||
        fr_json_as_double(shuffle, &ratio, &unused) != FR_OK || ratio < 0.5 ||
        ratio > 0.5)
        t->is_known = false;
    return size(t, "num_channels", 3) * p * p * h + h + (side * side + 1) * h +
           4 * h + size(t, "num_hidden_layers", 0) * plain_block(h, f) +
           4 * h * in + in * out + out * t->text;
}

static const struct {
    const char *type; /* of the wrapper */
    uint64_t (*count)(tower *t);
} towers[] = {
    {"qwen2_vl", qwen2_vl}, {"qwen2_5_vl", qwen2_5_vl},
    {"qwen3_vl", qwen3_vl}, {"qwen3_vl_moe", qwen3_vl},
    {"qwen3_5", qwen3_vl},  {"qwen3_5_moe", qwen3_vl},
    {"gemma3", gemma3},     {"llama4", llama4},
};

uint64_t fr_hf_tower_parameters(const fr_json_value *object,
                                const fr_json_value *vision, int64_t hidden)
{
    const char *type;
    fr_err unused;
    tower t = {vision, (uint64_t)(hidden > 0 ? hidden : 0), true};
    if (fr_json_get_string_or(object, "model_type", "", &type, &unused) !=
        FR_OK)
        return 0;
    for (size_t i = 0; i < FR_LENGTH(towers); i++)
        if (strcmp(towers[i].type, type) == 0) {
            const uint64_t n = towers[i].count(&t);
            return t.is_known ? n : 0;
        }
    return 0;
}
