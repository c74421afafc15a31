/* hf_shared.c: what readers of several model types share; see hf_type.h. */
#include "spec/model/hf/hf_get.h"
#include "spec/model/hf/hf_type.h"

/* Tied unless the file says otherwise. */
fr_status fr_hf_read_tied(const fr_json_value *config, fr_model *model,
                          fr_err *err)
{
    return get_bool(config, "tie_word_embeddings", true, &model->is_tied, err);
}

/* The rotated share of a head. */
fr_status fr_hf_read_rotary_share(const fr_json_value *config, double otherwise,
                                  fr_model *model, fr_err *err)
{
    const fr_json_value *rope = fr_json_find(config, "rope_parameters");
    if (rope != NULL && fr_json_kind_of(rope) == FR_JSON_OBJECT)
        FR_TRY(fr_json_get_double_or(rope, "partial_rotary_factor", otherwise,
                                     &otherwise, err));
    return fr_json_get_double_or(config, "partial_rotary_factor", otherwise,
                                 &model->rope_frac, err);
}

/* LayerNorm, whose epsilon has a key of its own. */
fr_status fr_hf_read_layer_norm(const fr_json_value *config, const char *key,
                                double otherwise, fr_model *model, fr_err *err)
{
    model->is_rms_norm = false;
    return fr_json_get_double_or(config, key, otherwise, &model->norm_eps, err);
}

/* A trait that a number other than 1, or 0, brings. */
fr_status fr_hf_read_number_trait(const fr_json_value *config, const char *key,
                                  double neutral, fr_model_trait trait,
                                  fr_model *model, fr_err *err)
{
    double value;
    FR_TRY(fr_json_get_double_or(config, key, neutral, &value, err));
    if (value < neutral || value > neutral)
        fr_model_set(model, trait);
    return FR_OK;
}

fr_status fr_hf_read_switch_trait(const fr_json_value *config, const char *key,
                                  bool otherwise, fr_model_trait trait,
                                  fr_model *model, fr_err *err)
{
    bool is_on;
    FR_TRY(get_bool(config, key, otherwise, &is_on, err));
    if (is_on)
        fr_model_set(model, trait);
    return FR_OK;
}
