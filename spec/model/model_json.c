/*
 * model_json.c: forerun's own model JSON.  One table of fields serves reader,
 * writer and the list of known keys.
 */
#include "spec/model/model_json.h"

#include "core/base/text.h"
#include "core/document/fields.h"
#include "spec/model/layer_ops.h"
#include "spec/model/model_traits.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define SCHEMA "forerun.model/1"

/* Members of fr_model; what is absent keeps fr_model_init()'s value. */
#define NEEDED(name)                                                           \
    {                                                                          \
        .key = #name, FR_MEMBER(fr_model, name), .is_required = true           \
    }
static const fr_field fields[] = {
    FR_FIELD_ELSEWHERE("schema"),
    FR_FIELD_ELSEWHERE("name"),
    FR_FIELD_ELSEWHERE("kind"),
    FR_FIELD_ELSEWHERE("activation"),
    NEEDED(n_layers),
    NEEDED(hidden),
    NEEDED(n_heads),
    FR_FIELD(fr_model, n_kv_heads),
    FR_FIELD(fr_model, head_dim),
    NEEDED(ffn_hidden),
    NEEDED(vocab),
    NEEDED(max_seq),
    {"gated_mlp", FR_MEMBER(fr_model, is_gated_mlp)},
    {"rms_norm", FR_MEMBER(fr_model, is_rms_norm)},
    {"rope", FR_MEMBER(fr_model, is_rope)},
    {"tied", FR_MEMBER(fr_model, is_tied)},
    {"qkv_bias", FR_MEMBER(fr_model, has_qkv_bias)},
    {"out_bias", FR_MEMBER(fr_model, has_out_bias)},
    {"mlp_bias", FR_MEMBER(fr_model, has_mlp_bias)},
    {"qk_norm", FR_MEMBER(fr_model, has_qk_norm)},
    FR_FIELD(fr_model, norm_eps),
    FR_FIELD(fr_model, rope_theta),
    FR_FIELD(fr_model, sliding_window),
    FR_FIELD(fr_model, n_experts),
    FR_FIELD(fr_model, n_experts_per_token),
    FR_FIELD(fr_model, expert_ffn_hidden),
    FR_FIELD(fr_model, shared_expert_ffn_hidden),
    FR_FIELD(fr_model, first_dense_layers),
    FR_FIELD(fr_model, moe_every),
    {"shared_expert_gate", FR_MEMBER(fr_model, has_shared_expert_gate)},
    {"softmax_over_all", FR_MEMBER(fr_model, has_softmax_over_all)},
    {"sigmoid_router", FR_MEMBER(fr_model, has_sigmoid_router)},
    {"router_bias", FR_MEMBER(fr_model, has_router_bias)},
    FR_FIELD(fr_model, n_expert_groups),
    FR_FIELD(fr_model, n_chosen_groups),
    FR_FIELD(fr_model, routed_scale),
    FR_FIELD(fr_model, router_aux_coef),
    {"aux_by_sequence", FR_MEMBER(fr_model, is_aux_by_sequence)},
    FR_FIELD(fr_model, q_lora_rank),
    FR_FIELD(fr_model, kv_lora_rank),
    FR_FIELD(fr_model, qk_rope_head_dim),
    FR_FIELD(fr_model, qk_nope_head_dim),
    FR_FIELD(fr_model, v_head_dim),
    FR_FIELD(fr_model, n_mtp_layers),
    FR_FIELD(fr_model, mtp_loss_scale),
    {"parallel_block", FR_MEMBER(fr_model, is_parallel_block)},
    FR_FIELD(fr_model, rope_frac),
    {"rope_scaling", FR_MEMBER(fr_model, has_rope_scaling)},
    FR_FIELD(fr_model, rope_factor),
    FR_FIELD(fr_model, rope_low_factor),
    FR_FIELD(fr_model, rope_high_factor),
    FR_FIELD(fr_model, rope_original_seq),
    {"rope_kind", FR_MEMBER(fr_model, rope_kind), .names = &fr_rope_names,
     .is_optional = true},
    {"rope_attention_factor", FR_MEMBER(fr_model, rope_attention_factor),
     .is_optional = true},
    {"score_factor", FR_MEMBER(fr_model, score_factor), .is_optional = true},
    {"scaled_embedding", FR_MEMBER(fr_model, has_scaled_embedding)},
    {"final_norm", FR_MEMBER(fr_model, has_final_norm)},
    {"embed_norm", FR_MEMBER(fr_model, has_embed_norm)},
    FR_FIELD(fr_model, n_token_types),
    {"pooler", FR_MEMBER(fr_model, has_pooler)},
    {"mlm_head", FR_MEMBER(fr_model, has_mlm_head)},
    FR_FIELD(fr_model, image_size),
    FR_FIELD(fr_model, patch_size),
    FR_FIELD(fr_model, n_channels),
    FR_FIELD(fr_model, n_labels),
    FR_FIELD_ELSEWHERE("traits"),
#define OPTIONAL(name)                                                         \
    {                                                                          \
        .key = #name, FR_MEMBER(fr_model, name), .is_optional = true           \
    }
    OPTIONAL(mixers),
    OPTIONAL(mlps),
    OPTIONAL(mix_heads),
    OPTIONAL(mix_head_dim),
    OPTIONAL(mix_groups),
    OPTIONAL(mix_state),
    OPTIONAL(mix_conv),
    OPTIONAL(mix_chunk),
    OPTIONAL(mix_rank),
    {"mix_norm", FR_MEMBER(fr_model, has_mix_norm), .is_optional = true},
};

static const fr_field layer_fields[] = {
    {"name", FR_MEMBER(fr_model_layer, name), .is_required = true},
    {"forward_flop", FR_MEMBER(fr_model_layer, forward_flop)},
    {"parameters", FR_MEMBER(fr_model_layer, n_parameters)},
    {"activation_bytes", FR_MEMBER(fr_model_layer, activation_bytes)},
    {"output_bytes", FR_MEMBER(fr_model_layer, output_bytes)},
    {"tensors", FR_MEMBER(fr_model_layer, n_tensors)},
    {"repeat", FR_MEMBER(fr_model_layer, repeat)},
    FR_FIELD_ELSEWHERE("ops"),
};

/* Operations give the amounts, which the rows from AMOUNT on give in lists
 * without operations. */
enum { AMOUNT = 1, N_AMOUNTS = 5, N_NEEDED = 4 };

/* The fields of a list whose layers name their operations. */
static const fr_field image_fields[] = {
    FR_FIELD_ELSEWHERE("schema"),
    FR_FIELD_ELSEWHERE("name"),
    FR_FIELD_ELSEWHERE("kind"),
    FR_FIELD_ELSEWHERE("layers"),
    {"image_size", FR_MEMBER(fr_model, image_size), .is_optional = true},
    {"n_channels", FR_MEMBER(fr_model, n_channels), .is_optional = true},
};

static fr_status read_name(const fr_json_value *object, fr_model *model,
                           fr_err *err)
{
    const char *name;
    FR_TRY(fr_json_get_string(object, "name", &name, err));
    if (!fr_text_copy(model->name, sizeof model->name, name))
        return fr_json_fail(fr_json_blamed(object, "name"), err,
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
    return fr_json_fail(fr_json_blamed(object, "activation"), err,
                        "unknown activation '%s'; choose gelu_tanh, gelu, "
                        "quick_gelu, silu, relu, relu2, sigmoid or tanh",
                        name);
}

static fr_status read_traits(const fr_json_value *object, fr_model *model,
                             fr_err *err)
{
    const fr_json_value *list;
    if (fr_json_find(object, "traits") == NULL)
        return FR_OK;
    FR_TRY(fr_json_get_array(object, "traits", &list, err));
    for (size_t i = 0; i < fr_json_n(list); i++) {
        const fr_json_value *at = fr_json_at(list, i);
        const char *name;
        FR_TRY(fr_json_as_string(at, &name, err));
        const int trait = fr_name_find(&fr_model_trait_names, name);
        if (trait < 0)
            return fr_json_fail(at, err,
                                "trait '%s' is not known; docs/formats.md "
                                "lists them",
                                name);
        fr_model_set(model, (fr_model_trait)trait);
    }
    return FR_OK;
}

static void write_traits(const fr_model *model, fr_json_writer *writer)
{
    if (model->traits == 0)
        return;
    fr_json_key(writer, "traits");
    fr_json_begin_row(writer);
    for (int i = 0; i < FR_TRAIT_N; i++)
        if (fr_model_has(model, (fr_model_trait)i))
            fr_json_string(writer, fr_name_of(&fr_model_trait_names, i));
    fr_json_end_array(writer);
}

static fr_status read_transformer(const fr_json_value *object, fr_model *model,
                                  fr_err *err)
{
    FR_TRY(fr_fields_read(object, FR_FIELDS(fields), model, err));
    FR_TRY(read_name(object, model, err));
    FR_TRY(read_activation(object, model, err));
    FR_TRY(read_traits(object, model, err));
    if (fr_json_find(object, "n_kv_heads") == NULL)
        model->n_kv_heads = model->n_heads;
    if (fr_json_find(object, "head_dim") != NULL)
        return FR_OK;
    if (model->n_heads < 1 || model->hidden % model->n_heads != 0)
        return fr_json_fail(fr_json_blamed(object, "n_heads"), err,
                            "hidden %lld %% n_heads %lld != 0; give head_dim",
                            (long long)model->hidden,
                            (long long)model->n_heads);
    model->head_dim = model->hidden / model->n_heads;
    return FR_OK;
}

/* Appends its operations to those of the model, which has room. */
static fr_status read_ops(const fr_json_value *object, fr_model *model,
                          fr_model_layer *layer, fr_err *err)
{
    const fr_json_value *ops;
    layer->first_op = (int64_t)model->n_layer_ops;
    if (fr_json_find(object, "ops") == NULL)
        return FR_OK;
    FR_TRY(fr_json_get_array(object, "ops", &ops, err));
    for (size_t i = 0; i < fr_json_n(ops); i++) {
        const fr_json_value *at = fr_json_at(ops, i);
        if (fr_json_kind_of(at) != FR_JSON_OBJECT)
            return fr_json_fail(at, err, "an operation must be an object");
        FR_TRY(fr_fields_read(at, fr_layer_op_fields, fr_n_layer_op_fields,
                              &model->layer_ops[model->n_layer_ops++], err));
        layer->n_ops++;
    }
    return FR_OK;
}

static fr_status read_layer(const fr_json_value *object, fr_model *model,
                            fr_model_layer *layer, fr_err *err)
{
    const char *name;
    if (fr_json_kind_of(object) != FR_JSON_OBJECT)
        return fr_json_fail(object, err, "a layer must be an object");
    FR_TRY(fr_json_get_string_or(object, "name", "", &name, err));
    if (strlen(name) >= sizeof layer->name)
        return fr_json_fail(object, err, "layer name is longer than %zu bytes",
                            sizeof layer->name - 1);
    layer->n_tensors = 1;
    layer->repeat = 1;
    FR_TRY(fr_fields_read(object, FR_FIELDS(layer_fields), layer, err));
    if (layer->repeat < 1 || layer->repeat > 1000000)
        return fr_json_fail(object, err, "repeat is %lld; give 1 to 1000000",
                            (long long)layer->repeat);
    for (int i = 0; fr_json_find(object, "ops") == NULL && i < N_NEEDED; i++)
        if (fr_json_find(object, layer_fields[AMOUNT + i].key) == NULL)
            return fr_json_fail(object, err, "'%s' is missing",
                                layer_fields[AMOUNT + i].key);
    return read_ops(object, model, layer, err);
}

/* The amounts in the file must equal those of the entry's operations. */
static fr_status check_amounts(const fr_json_value *object,
                               const fr_model_layer *layer, fr_err *err)
{
    for (int i = 0; i < N_AMOUNTS; i++) {
        const fr_field *field = &layer_fields[AMOUNT + i];
        const double derived = fr_field_get(field, layer);
        double said;
        FR_TRY(fr_json_get_double_or(object, field->key, derived, &said, err));
        if (said < derived || said > derived)
            return fr_json_fail(object, err,
                                "layer '%s': %s is %.17g, its operations come "
                                "to %.17g; leave it out",
                                layer->name, field->key, said, derived);
    }
    return FR_OK;
}

static size_t count_ops(const fr_json_value *list)
{
    size_t n = 0;
    for (size_t i = 0; i < fr_json_n(list); i++) {
        const fr_json_value *ops = fr_json_find(fr_json_at(list, i), "ops");
        n += ops != NULL ? fr_json_n(ops) : 0;
    }
    return n;
}

static fr_status take_room(const fr_json_value *list, fr_model *model,
                           fr_err *err)
{
    const size_t n_ops = count_ops(list);
    model->n_layer_entries = fr_json_n(list);
    model->layers = calloc(model->n_layer_entries, sizeof *model->layers);
    if (n_ops > 0)
        model->layer_ops = calloc(n_ops, sizeof *model->layer_ops);
    if (model->layers == NULL || (n_ops > 0 && model->layer_ops == NULL))
        return fr_fail_no_memory(err);
    return FR_OK;
}

/* The entry or the operation of it that cannot be, else the whole list. */
static const fr_json_value *value_at(const fr_json_value *list,
                                     fr_layer_place where)
{
    if (where.i_entry < 0)
        return list;
    const fr_json_value *entry = fr_json_at(list, (size_t)where.i_entry);
    return where.i_op < 0
               ? entry
               : fr_json_at(fr_json_find(entry, "ops"), (size_t)where.i_op);
}

static fr_status read_layers(const fr_json_value *object, fr_model *model,
                             fr_err *err)
{
    const fr_json_value *list;
    fr_layer_place where;
    fr_err broken = {0};
    FR_TRY(fr_fields_read(object, FR_FIELDS(image_fields), model, err));
    FR_TRY(read_name(object, model, err));
    FR_TRY(fr_json_get_array(object, "layers", &list, err));
    if (fr_json_n(list) == 0)
        return fr_json_fail(list, err, "layers is empty; list at least one");
    FR_TRY(take_room(list, model, err));
    for (size_t i = 0; i < model->n_layer_entries; i++) {
        FR_TRY(read_layer(fr_json_at(list, i), model, &model->layers[i], err));
        model->n_layers += model->layers[i].repeat;
    }
    if (fr_model_derive_layers(model, &where, &broken) != FR_OK)
        return fr_json_fail(value_at(list, where), err, "%s", broken.text);
    for (size_t i = 0; model->n_layer_ops > 0 && i < fr_json_n(list); i++)
        FR_TRY(check_amounts(fr_json_at(list, i), &model->layers[i], err));
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
    return fr_json_fail(fr_json_blamed(object, "kind"), err,
                        "unknown kind '%s'; choose decoder, encoder or layers",
                        kind);
}

static fr_status read_model(const fr_json_value *object, fr_model *model,
                            fr_err *err)
{
    const char *schema;
    FR_TRY(fr_json_get_string(object, "schema", &schema, err));
    if (strcmp(schema, SCHEMA) != 0)
        return fr_json_fail(fr_json_blamed(object, "schema"), err,
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

static void write_layers(const fr_model *model, fr_json_writer *writer)
{
    fr_fields_put(FR_FIELDS(image_fields), model, writer);
    fr_json_open_array(writer, "layers");
    for (size_t i = 0; i < model->n_layer_entries; i++) {
        const fr_model_layer *layer = &model->layers[i];
        fr_json_begin_object(writer);
        fr_fields_put(FR_FIELDS(layer_fields), layer, writer);
        if (layer->n_ops > 0)
            fr_fields_put_structs(
                "ops", fr_layer_op_fields, fr_n_layer_op_fields,
                &model->layer_ops[layer->first_op], (size_t)layer->n_ops,
                sizeof *model->layer_ops, writer);
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
        fr_fields_put(FR_FIELDS(fields), model, writer);
        write_traits(model, writer);
    }
    fr_json_end_object(writer);
}
