/*
 * model_json.c: forerun's own model JSON.  One table of fields serves reader,
 * writer and the list of known keys.
 */
#include "spec/model/model_json.h"

#include "core/base/text.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define SCHEMA "forerun.model/1"

typedef enum field_kind { FIELD_I64, FIELD_BOOL, FIELD_DOUBLE } field_kind;

/* A member of fr_model; what is absent keeps fr_model_init()'s value. */
typedef struct field {
    const char *key;
    size_t offset;
    field_kind kind;
    bool is_required;
} field;

#define I64(name, required)                                                    \
    {                                                                          \
#name, offsetof(fr_model, name), FIELD_I64, required                   \
    }
#define BOOL(key, name)                                                        \
    {                                                                          \
        key, offsetof(fr_model, name), FIELD_BOOL, false                       \
    }
#define DOUBLE(name)                                                           \
    {                                                                          \
#name, offsetof(fr_model, name), FIELD_DOUBLE, false                   \
    }

static const field fields[] = {
    I64(n_layers, true),
    I64(hidden, true),
    I64(n_heads, true),
    I64(n_kv_heads, false),
    I64(head_dim, false),
    I64(ffn_hidden, true),
    I64(vocab, true),
    I64(max_seq, true),
    BOOL("gated_mlp", is_gated_mlp),
    BOOL("rms_norm", is_rms_norm),
    BOOL("rope", is_rope),
    BOOL("tied", is_tied),
    BOOL("qkv_bias", has_qkv_bias),
    BOOL("out_bias", has_out_bias),
    BOOL("mlp_bias", has_mlp_bias),
    BOOL("qk_norm", has_qk_norm),
    DOUBLE(norm_eps),
    DOUBLE(rope_theta),
    I64(sliding_window, false),
    I64(n_experts, false),
    I64(n_experts_per_token, false),
    I64(expert_ffn_hidden, false),
    I64(shared_expert_ffn_hidden, false),
    I64(first_dense_layers, false),
    I64(moe_every, false),
    BOOL("shared_expert_gate", has_shared_expert_gate),
    I64(q_lora_rank, false),
    I64(kv_lora_rank, false),
    I64(qk_rope_head_dim, false),
    I64(qk_nope_head_dim, false),
    I64(v_head_dim, false),
    I64(n_mtp_layers, false),
    BOOL("parallel_block", is_parallel_block),
    DOUBLE(rope_frac),
    BOOL("rope_scaling", has_rope_scaling),
    BOOL("scaled_embedding", has_scaled_embedding),
    BOOL("final_norm", has_final_norm),
    BOOL("embed_norm", has_embed_norm),
    I64(n_token_types, false),
    BOOL("pooler", has_pooler),
    BOOL("mlm_head", has_mlm_head),
    I64(image_size, false),
    I64(patch_size, false),
    I64(n_channels, false),
    I64(n_labels, false),
};
enum { N_FIELDS = FR_LENGTH(fields) };

static fr_status check_known(const fr_json_value *object, fr_err *err)
{
    const char *known[N_FIELDS + 4] = {"schema", "name", "kind", "activation"};
    for (size_t i = 0; i < N_FIELDS; i++)
        known[4 + i] = fields[i].key;
    return fr_json_check_keys(object, known, N_FIELDS + 4, err);
}

static fr_status read_field(const fr_json_value *object, const field *f,
                            fr_model *model, fr_err *err)
{
    void *at = (char *)model + f->offset;
    switch (f->kind) {
    case FIELD_BOOL:
        return fr_json_get_bool_or(object, f->key, *(bool *)at, at, err);
    case FIELD_DOUBLE:
        return fr_json_get_double_or(object, f->key, *(double *)at, at, err);
    case FIELD_I64:
        break;
    }
    if (f->is_required)
        return fr_json_get_i64(object, f->key, at, err);
    return fr_json_get_i64_or(object, f->key, *(int64_t *)at, at, err);
}

static fr_status read_name(const fr_json_value *object, fr_model *model,
                           fr_err *err)
{
    const char *name;
    FR_TRY(fr_json_get_string(object, "name", &name, err));
    if (!fr_text_copy(model->name, sizeof model->name, name))
        return fr_json_fail(fr_json_find(object, "name"), err,
                            "name is longer than %zu bytes",
                            sizeof model->name - 1);
    return FR_OK;
}

static fr_status read_activation(const fr_json_value *object, fr_model *model,
                                 fr_err *err)
{
    const char *otherwise = fr_activation_name(
        model->is_gated_mlp ? FR_ACTIVATION_SILU : FR_ACTIVATION_GELU_TANH);
    const char *name;
    FR_TRY(fr_json_get_string_or(object, "activation", otherwise, &name, err));
    for (int i = 0; i < FR_ACTIVATION_N; i++)
        if (strcmp(name, fr_activation_name((fr_activation)i)) == 0) {
            model->activation = (fr_activation)i;
            return FR_OK;
        }
    return fr_json_fail(fr_json_find(object, "activation"), err,
                        "unknown activation '%s'; choose gelu_tanh, gelu, "
                        "silu or relu",
                        name);
}

static fr_status read_transformer(const fr_json_value *object, fr_model *model,
                                  fr_err *err)
{
    FR_TRY(check_known(object, err));
    FR_TRY(read_name(object, model, err));
    for (size_t i = 0; i < N_FIELDS; i++)
        FR_TRY(read_field(object, &fields[i], model, err));
    FR_TRY(read_activation(object, model, err));
    if (fr_json_find(object, "n_kv_heads") == NULL)
        model->n_kv_heads = model->n_heads;
    if (fr_json_find(object, "head_dim") != NULL)
        return FR_OK;
    if (model->n_heads < 1 || model->hidden % model->n_heads != 0)
        return fr_json_fail(fr_json_find(object, "n_heads"), err,
                            "hidden %lld %% n_heads %lld != 0; give head_dim",
                            (long long)model->hidden,
                            (long long)model->n_heads);
    model->head_dim = model->hidden / model->n_heads;
    return FR_OK;
}

static fr_status read_layer(const fr_json_value *object, fr_model_layer *layer,
                            fr_err *err)
{
    static const char *const known[] = {"name",         "forward_flop",
                                        "parameters",   "activation_bytes",
                                        "output_bytes", "repeat"};
    const char *name;
    if (fr_json_kind_of(object) != FR_JSON_OBJECT)
        return fr_json_fail(object, err, "a layer must be an object");
    FR_TRY(fr_json_check_keys(object, known, FR_LENGTH(known), err));
    FR_TRY(fr_json_get_string(object, "name", &name, err));
    if (!fr_text_copy(layer->name, sizeof layer->name, name))
        return fr_json_fail(object, err, "layer name is longer than %zu bytes",
                            sizeof layer->name - 1);
    FR_TRY(
        fr_json_get_double(object, "forward_flop", &layer->forward_flop, err));
    FR_TRY(fr_json_get_u64(object, "parameters", &layer->n_parameters, err));
    FR_TRY(fr_json_get_u64(object, "activation_bytes", &layer->activation_bytes,
                           err));
    FR_TRY(fr_json_get_u64(object, "output_bytes", &layer->output_bytes, err));
    return fr_json_get_i64_or(object, "repeat", 1, &layer->repeat, err);
}

static fr_status read_layers(const fr_json_value *object, fr_model *model,
                             fr_err *err)
{
    static const char *const known[] = {"schema", "name", "kind", "layers"};
    const fr_json_value *list;
    FR_TRY(fr_json_check_keys(object, known, FR_LENGTH(known), err));
    FR_TRY(read_name(object, model, err));
    FR_TRY(fr_json_get_array(object, "layers", &list, err));
    size_t n = fr_json_n(list);
    if (n == 0)
        return fr_json_fail(list, err, "layers is empty; list at least one");
    model->layers = calloc(n, sizeof *model->layers);
    if (model->layers == NULL)
        return fr_fail_no_memory(err);
    model->n_layer_entries = n;
    for (size_t i = 0; i < n; i++) {
        const fr_json_value *at = fr_json_at(list, i);
        FR_TRY(read_layer(at, &model->layers[i], err));
        int64_t repeat = model->layers[i].repeat;
        if (repeat < 1 || repeat > 1000000)
            return fr_json_fail(at, err, "repeat is %lld; give 1 to 1000000",
                                (long long)repeat);
        model->n_layers += repeat;
    }
    return FR_OK;
}

static fr_status read_kind(const fr_json_value *object, fr_model *model,
                           fr_err *err)
{
    const char *kind;
    FR_TRY(fr_json_get_string_or(object, "kind", "decoder", &kind, err));
    for (int i = 0; i < FR_MODEL_KIND_N; i++)
        if (strcmp(kind, fr_model_kind_name((fr_model_kind)i)) == 0) {
            model->kind = (fr_model_kind)i;
            return FR_OK;
        }
    return fr_json_fail(fr_json_find(object, "kind"), err,
                        "unknown kind '%s'; choose decoder, encoder or layers",
                        kind);
}

static fr_status read_model(const fr_json_value *object, fr_model *model,
                            fr_err *err)
{
    const char *schema;
    FR_TRY(fr_json_get_string(object, "schema", &schema, err));
    if (strcmp(schema, SCHEMA) != 0)
        return fr_json_fail(fr_json_find(object, "schema"), err,
                            "schema is '%s'; expected '" SCHEMA "'", schema);
    FR_TRY(read_kind(object, model, err));
    FR_TRY(model->kind == FR_MODEL_LAYERS
               ? read_layers(object, model, err)
               : read_transformer(object, model, err));
    fr_err broken = {0};
    if (fr_model_check(model, &broken) != FR_OK)
        return fr_json_fail(object, err, "%s", broken.text);
    return FR_OK;
}

fr_status fr_model_from_json(const fr_json_value *object, fr_model *out,
                             fr_err *err)
{
    if (fr_json_kind_of(object) != FR_JSON_OBJECT)
        return fr_json_fail(object, err, "a model must be an object, not %s",
                            fr_json_kind_name(fr_json_kind_of(object)));
    fr_model model;
    fr_model_init(&model);
    fr_status status = read_model(object, &model, err);
    if (status != FR_OK) {
        fr_model_release(&model);
        return status;
    }
    *out = model;
    return FR_OK;
}

static void write_field(const fr_model *model, const field *f,
                        fr_json_writer *writer)
{
    const void *at = (const char *)model + f->offset;
    switch (f->kind) {
    case FIELD_BOOL:
        fr_json_put_bool(writer, f->key, *(const bool *)at);
        break;
    case FIELD_DOUBLE:
        fr_json_put_double(writer, f->key, *(const double *)at);
        break;
    case FIELD_I64:
        fr_json_put_i64(writer, f->key, *(const int64_t *)at);
        break;
    }
}

static void write_layers(const fr_model *model, fr_json_writer *writer)
{
    fr_json_open_array(writer, "layers");
    for (size_t i = 0; i < model->n_layer_entries; i++) {
        const fr_model_layer *layer = &model->layers[i];
        fr_json_begin_object(writer);
        fr_json_put_string(writer, "name", layer->name);
        fr_json_put_double(writer, "forward_flop", layer->forward_flop);
        fr_json_put_u64(writer, "parameters", layer->n_parameters);
        fr_json_put_u64(writer, "activation_bytes", layer->activation_bytes);
        fr_json_put_u64(writer, "output_bytes", layer->output_bytes);
        fr_json_put_i64(writer, "repeat", layer->repeat);
        fr_json_end_object(writer);
    }
    fr_json_end_array(writer);
}

void fr_model_to_json(const fr_model *model, fr_json_writer *writer)
{
    fr_json_begin_object(writer);
    fr_json_put_string(writer, "schema", SCHEMA);
    fr_json_put_string(writer, "name", model->name);
    fr_json_put_string(writer, "kind", fr_model_kind_name(model->kind));
    if (model->kind == FR_MODEL_LAYERS) {
        write_layers(model, writer);
    } else {
        fr_json_put_string(writer, "activation",
                           fr_activation_name(model->activation));
        for (size_t i = 0; i < N_FIELDS; i++)
            write_field(model, &fields[i], writer);
    }
    fr_json_end_object(writer);
}
