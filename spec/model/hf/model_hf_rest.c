/* model_hf_rest.c: see model_hf_rest.h. */
#include "spec/model/hf/model_hf_rest.h"

#include "core/base/buffer.h"
#include "core/base/text.h"
#include "spec/model/hf/hf_keys.h"
#include "spec/model/hf/hf_towers.h"

#include <string.h>

fr_status fr_model_hf_get_type(const fr_json_value *object,
                               const fr_json_value *config, const char **out,
                               fr_err *err)
{
    const char *wrapper;
    FR_TRY(fr_json_get_string_or(object, "model_type", "", &wrapper, err));
    if (config == object || fr_json_find(config, "model_type") != NULL ||
        strstr(wrapper, "llava") == NULL)
        return fr_json_get_string(config, "model_type", out, err);
    *out = "llama"; /* configuration_llava.py */
    return FR_OK;
}

bool fr_model_hf_labels_tokens(const char *class_name)
{
    return fr_text_ends(class_name, "ForTokenClassification") ||
           fr_text_ends(class_name, "ForQuestionAnswering");
}

/* ---- heads --------------------------------------------------------------- */

/* Classes of transformers whose decoder has no output matrix over the
 * vocabulary. */
static bool has_no_language_head(const char *name)
{
    return fr_text_ends(name, "ForSequenceClassification") ||
           fr_model_hf_labels_tokens(name) || strstr(name, "Reward") != NULL ||
           (fr_text_ends(name, "Model") && strstr(name, "Head") == NULL &&
            strcmp(name, "ChatGLMModel") != 0); /* it has one */
}

static fr_status read_head(const fr_json_value *object,
                           const fr_json_value *config, fr_model *model,
                           fr_buffer *left_out, fr_err *err)
{
    const fr_json_value *names = fr_json_find(object, "architectures");
    const char *name;
    if (names == NULL)
        names = fr_json_find(config, "architectures");
    if (names == NULL || fr_json_n(names) == 0 ||
        model->kind != FR_MODEL_DECODER)
        return FR_OK;
    FR_TRY(fr_json_as_string(fr_json_at(names, 0), &name, err));
    if (!has_no_language_head(name))
        return FR_OK;
    model->is_tied = true; /* no matrix of its own */
    fr_buffer_printf(left_out,
                     "%.60s has no output matrix, and none is counted; flop "
                     "and logits of a loss over the vocabulary are predicted "
                     "still",
                     name);
    return FR_OK;
}

/* ---- towers -------------------------------------------------------------- */

/* The first of the keys that is a positive number, 0: none. */
static double first_of(const fr_json_value *config, const char *const *keys,
                       size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const fr_json_value *value = fr_json_find(config, keys[i]);
        double number = 0;
        fr_err unused;
        if (value != NULL && fr_json_kind_of(value) == FR_JSON_NUMBER &&
            fr_json_as_double(value, &number, &unused) == FR_OK && number > 0)
            return number;
    }
    return 0;
}

/*
 * Parameters of the blocks of a tower: attention is four matrices of width x
 * width, the MLP two of width x inner, or three where silu gates it.  Names are
 * those of CLIP, SigLIP, Pixtral, Whisper, Qwen-VL.  0: the file does not say.
 */
static double tower_parameters(const fr_json_value *config)
{
    static const char *const layers[] = {
        "num_hidden_layers", "depth", "encoder_layers", "num_layers", "layers"};
    static const char *const widths[] = {"embed_dim", "d_model", "hidden_size",
                                         "width"};
    static const char *const inners[] = {"intermediate_size",
                                         "encoder_ffn_dim"};
    static const char *const ratios[] = {"mlp_ratio"};
    const fr_json_value *act = fr_json_find(config, "hidden_act");
    const double n_layers = first_of(config, layers, FR_LENGTH(layers));
    const double width = first_of(config, widths, FR_LENGTH(widths));
    const double ratio = first_of(config, ratios, 1);
    double inner = first_of(config, inners, FR_LENGTH(inners));
    const char *name = "";
    fr_err unused;
    if (act != NULL && fr_json_kind_of(act) == FR_JSON_STRING &&
        fr_json_as_string(act, &name, &unused) != FR_OK)
        name = "";
    if (inner <= 0)
        inner = (ratio > 0 ? ratio : 4) * width;
    return n_layers * width *
           (4 * width + (strcmp(name, "silu") == 0 ? 3 : 2) * inner);
}

/* A part of a model that the text is no part of: "vision_config", "audio". */
static bool is_tower(const char *key, const fr_json_value *value)
{
    static const char *const parts[] = {
        "vision", "visual",  "audio",     "speech",  "image",
        "video",  "qformer", "perceiver", "encoder", "dit"};
    if (fr_json_kind_of(value) != FR_JSON_OBJECT || fr_json_n(value) == 0 ||
        !fr_text_ends(key, "config"))
        return false;
    for (size_t i = 0; i < FR_LENGTH(parts); i++)
        if (strstr(key, parts[i]) != NULL)
            return true;
    return tower_parameters(value) > 0;
}

static void read_towers(const fr_json_value *object, const fr_json_value *text,
                        int64_t hidden, fr_buffer *left_out)
{
    for (size_t i = 0; i < fr_json_n(object); i++) {
        const char *key = fr_json_key_at(object, i);
        const fr_json_value *value = fr_json_at(object, i);
        if (value == text || !is_tower(key, value))
            continue;
        const double n = tower_parameters(value);
        const uint64_t exact =
            strcmp(key, "vision_config") == 0
                ? fr_hf_tower_parameters(object, value, hidden)
                : 0;
        fr_buffer_printf(left_out, "%s%.40s", left_out->n > 0 ? "; " : "", key);
        if (exact > 0)
            fr_buffer_printf(left_out, " (%llu parameters with its projector)",
                             (unsigned long long)exact);
        else if (n > 0)
            fr_buffer_printf(left_out, " (about %.3g %s parameters)",
                             n >= 1e9 ? n / 1e9 : n / 1e6,
                             n >= 1e9 ? "billion" : "million");
        fr_buffer_puts(left_out, " is not counted");
    }
}

fr_status fr_model_hf_read_rest(const fr_json_value *object,
                                const fr_json_value *config, fr_model *model,
                                fr_err *err)
{
    fr_buffer left_out;
    fr_buffer_init(&left_out);
    fr_status status = read_head(object, config, model, &left_out, err);
    if (status == FR_OK)
        read_towers(object, config, model->hidden, &left_out);
    if (status == FR_OK)
        fr_hf_note_keys(config, &left_out);
    if (status == FR_OK)
        status = fr_buffer_check(&left_out, err);
    if (status == FR_OK)
        fr_text_copy_cut(model->left_out, sizeof model->left_out,
                         fr_buffer_text(&left_out));
    fr_buffer_release(&left_out);
    return status;
}
