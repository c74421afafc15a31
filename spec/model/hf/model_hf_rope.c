/* model_hf_rope.c: see model_hf_rope.h; transformers, modeling_rope_utils.py.
 */
#include "spec/model/hf/model_hf_rope.h"

#include "spec/model/rope.h"

#include <math.h>
#include <string.h>

static const char *const linear = "linear";

static fr_status read_original(const fr_json_value *scaling, fr_model *model,
                               fr_err *err)
{
    return fr_json_get_i64_or(scaling, "original_max_position_embeddings",
                              model->max_seq, &model->rope_original_seq, err);
}

/* modeling_deepseek_v3.py: the scores of latent attention are multiplied too,
 * by the square of what mscale_all_dim comes to. */
static fr_status read_yarn(const fr_json_value *config,
                           const fr_json_value *scaling, fr_model *model,
                           fr_err *err)
{
    const double factor = model->rope_factor;
    const bool is_latent = fr_json_find(config, "kv_lora_rank") != NULL;
    double m, all;
    bool is_truncated;

    FR_TRY(fr_json_get_double_or(scaling, "beta_slow", 1,
                                 &model->rope_low_factor, err));
    FR_TRY(fr_json_get_double_or(scaling, "beta_fast", 32,
                                 &model->rope_high_factor, err));
    FR_TRY(fr_json_get_double_or(scaling, "mscale", 0, &m, err));
    FR_TRY(fr_json_get_double_or(scaling, "mscale_all_dim", 0, &all, err));
    FR_TRY(fr_json_get_bool_or(scaling, "truncate", true, &is_truncated, err));
    const double whole = fr_rope_yarn_magnitude(factor, all);
    const double usual = m != 0 && all != 0
                             ? fr_rope_yarn_magnitude(factor, m) / whole
                             : fr_rope_yarn_magnitude(factor, 1);
    FR_TRY(fr_json_get_double_or(scaling, "attention_factor", usual,
                                 &model->rope_attention_factor, err));
    model->score_factor = is_latent && all != 0 ? whole * whole : 0;
    if (!is_truncated)
        model->rope_factor = 0;
    return read_original(scaling, model, err);
}

static fr_status read_scaling(const fr_json_value *config,
                              const fr_json_value *scaling, const char *type,
                              fr_model *model, fr_err *err)
{
    const int kind = fr_name_find(&fr_rope_names, type);

    model->rope_factor = 0.0;
    if (kind < 0 && strcmp(type, linear) != 0)
        return FR_OK;
    model->rope_kind = kind < 0 ? FR_ROPE_LLAMA3 : (fr_rope_kind)kind;
    FR_TRY(fr_json_get_double(scaling, "factor", &model->rope_factor, err));
    model->rope_original_seq = 0;
    if (kind < 0)
        return FR_OK;
    if (kind == FR_ROPE_YARN)
        return read_yarn(config, scaling, model, err);
    if (kind == FR_ROPE_DYNAMIC)
        return read_original(scaling, model, err);
    FR_TRY(fr_json_get_double(scaling, "low_freq_factor",
                              &model->rope_low_factor, err));
    FR_TRY(fr_json_get_double(scaling, "high_freq_factor",
                              &model->rope_high_factor, err));
    return fr_json_get_i64(scaling, "original_max_position_embeddings",
                           &model->rope_original_seq, err);
}

fr_status fr_model_hf_read_rope(const fr_json_value *config, fr_model *model,
                                fr_err *err)
{
    const fr_json_value *scaling = fr_json_find(config, "rope_parameters");
    if (scaling == NULL)
        scaling = fr_json_find(config, "rope_scaling");
    double theta = 10000.0;
    model->is_rope = true;
    if (scaling != NULL) {
        const char *type, *old_type;
        FR_TRY(
            fr_json_get_string_or(scaling, "type", "default", &old_type, err));
        FR_TRY(
            fr_json_get_string_or(scaling, "rope_type", old_type, &type, err));
        FR_TRY(
            fr_json_get_double_or(scaling, "rope_theta", theta, &theta, err));
        model->has_rope_scaling = strcmp(type, "default") != 0;
        if (model->has_rope_scaling)
            FR_TRY(read_scaling(config, scaling, type, model, err));
    }
    return fr_json_get_double_or(config, "rope_theta", theta,
                                 &model->rope_theta, err);
}

/* ---- written ------------------------------------------------------------- */

/* The m of fr_rope_yarn_magnitude() that comes to that. */
static double yarn_m(const fr_model *m, double magnitude)
{
    return m->rope_factor > 1 ? (magnitude - 1) / (0.1 * log(m->rope_factor))
                              : 0;
}

static void put_yarn(const fr_model *m, fr_json_writer *json)
{
    const double own =
        m->rope_attention_factor > 0 ? m->rope_attention_factor : 1;

    fr_json_put_double(json, "beta_slow", m->rope_low_factor);
    fr_json_put_double(json, "beta_fast", m->rope_high_factor);
    if (m->score_factor > 0) {
        const double whole = sqrt(m->score_factor);
        fr_json_put_double(json, "mscale", yarn_m(m, own * whole));
        fr_json_put_double(json, "mscale_all_dim", yarn_m(m, whole));
    }
    fr_json_put_double(json, "attention_factor", own);
}

void fr_model_hf_put_rope(const fr_model *m, fr_json_writer *json)
{
    fr_json_put_double(json, "rope_theta", m->rope_theta);
    if (!m->has_rope_scaling)
        return;
    bool is_linear =
        m->rope_kind == FR_ROPE_LLAMA3 && m->rope_original_seq == 0;
    fr_json_open_object(json, "rope_scaling");
    fr_json_put_string(json, "rope_type",
                       is_linear ? linear
                                 : fr_name_of(&fr_rope_names, m->rope_kind));
    fr_json_put_double(json, "factor", m->rope_factor);
    if (m->rope_kind == FR_ROPE_YARN)
        put_yarn(m, json);
    if (m->rope_kind == FR_ROPE_LLAMA3 && !is_linear) {
        fr_json_put_double(json, "low_freq_factor", m->rope_low_factor);
        fr_json_put_double(json, "high_freq_factor", m->rope_high_factor);
    }
    if (!is_linear)
        fr_json_put_i64(json, "original_max_position_embeddings",
                        m->rope_original_seq);
    fr_json_end_object(json);
}
