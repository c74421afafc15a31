/* model_hf_experts.c: see model_hf_experts.h. */
#include "spec/model/hf/model_hf_experts.h"

#include <string.h>

/*
 * transformers adds its auxiliary loss where router logits are asked for.  It
 * takes shares and means over the tokens of all layers at once, and counts each
 * of a token's copies as one: per layer, with shares that add up to 1, the
 * coefficient is this.
 */
fr_status fr_hf_read_aux_loss(const fr_json_value *config, double otherwise,
                              fr_model *model, fr_err *err)
{
    const int64_t n_layers = fr_model_moe_layers(model);
    bool is_added;
    double coef;
    FR_TRY(fr_json_get_bool_or(config, "output_router_logits", false, &is_added,
                               err));
    FR_TRY(fr_json_get_double_or(config, "router_aux_loss_coef", otherwise,
                                 &coef, err));
    if (is_added && n_layers > 0)
        model->router_aux_coef =
            coef * (double)model->n_experts_per_token / (double)n_layers;
    return FR_OK;
}

/* mlp_only_layers can be told when it is the first layers. */
static fr_status read_mlp_only(const fr_json_value *config, fr_model *model,
                               fr_err *err)
{
    const fr_json_value *list = fr_json_find(config, "mlp_only_layers");
    const size_t n = list != NULL ? fr_json_n(list) : 0;
    for (size_t i = 0; i < n; i++) {
        int64_t layer;
        const fr_json_value *at = fr_json_at(list, i);
        FR_TRY(fr_json_as_i64(at, &layer, err));
        if (layer != (int64_t)i)
            return fr_json_fail(at, err,
                                "mlp_only_layers other than the first ones "
                                "are not modelled");
    }
    model->first_dense_layers = (int64_t)n;
    return FR_OK;
}

fr_status fr_hf_read_qwen_experts(const fr_json_value *config, fr_model *model,
                                  fr_err *err)
{
    bool is_normed;
    FR_TRY(
        fr_json_get_bool_or(config, "norm_topk_prob", false, &is_normed, err));
    model->has_softmax_over_all = !is_normed;
    FR_TRY(fr_json_get_i64(config, "num_experts", &model->n_experts, err));
    FR_TRY(fr_json_get_i64(config, "num_experts_per_tok",
                           &model->n_experts_per_token, err));
    FR_TRY(fr_json_get_i64(config, "moe_intermediate_size",
                           &model->expert_ffn_hidden, err));
    FR_TRY(fr_json_get_i64_or(config, "decoder_sparse_step", 1,
                              &model->moe_every, err));
    FR_TRY(read_mlp_only(config, model, err));
    return fr_hf_read_aux_loss(config, 0.001, model, err);
}

/* If a file does not say how experts are chosen, the rule of the class holds,
 * provided that its groups fit. */
fr_status fr_hf_read_deepseek_router(const fr_json_value *config,
                                     fr_model *model, fr_err *err)
{
    const char *scores, *method;
    bool is_normed;
    bool has_groups = model->n_experts % 8 == 0 && model->n_experts > 0 &&
                      model->n_experts / 2 >= model->n_experts_per_token;
    FR_TRY(
        fr_json_get_string_or(config, "scoring_func", "sigmoid", &scores, err));
    FR_TRY(fr_json_get_string_or(config, "topk_method", "", &method, err));
    FR_TRY(
        fr_json_get_bool_or(config, "norm_topk_prob", true, &is_normed, err));
    FR_TRY(fr_json_get_i64_or(config, "n_group", has_groups ? 8 : 1,
                              &model->n_expert_groups, err));
    FR_TRY(fr_json_get_i64_or(config, "topk_group", has_groups ? 4 : 1,
                              &model->n_chosen_groups, err));
    model->has_sigmoid_router = strcmp(scores, "sigmoid") == 0;
    if (!model->has_sigmoid_router && strcmp(scores, "softmax") != 0)
        return fr_json_fail(fr_json_blamed(config, "scoring_func"), err,
                            "scoring_func '%s' is not known; sigmoid and "
                            "softmax are",
                            scores);
    model->has_router_bias = strcmp(method, "noaux_tc") == 0;
    model->has_softmax_over_all = !is_normed;
    FR_TRY(fr_json_get_double_or(config, "aux_loss_alpha", 0.0,
                                 &model->router_aux_coef, err));
    FR_TRY(fr_json_get_bool_or(config, "seq_aux", true,
                               &model->is_aux_by_sequence, err));
    return fr_json_get_double_or(config, "routed_scaling_factor", 2.5,
                                 &model->routed_scale, err);
}
