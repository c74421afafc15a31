/* config_megatron_experts.c: experts that arguments of Megatron-LM say
 * (megatron/training/arguments.py, _add_moe_args, from core 0.16 the fields of
 * megatron/core/transformer/transformer_config.py). */
#include "frameworks/megatron/read/megatron_flags.h"
#include "frameworks/megatron/target_megatron.h"

#include <stdlib.h>
#include <string.h>

/* ---- which layers have them ---------------------------------------------- */

/* Has the model experts in these layers, with these two numbers? */
static bool has_layers(const char *list, int64_t first_dense, int64_t every,
                       fr_model *model)
{
    model->first_dense_layers = first_dense;
    model->moe_every = every;
    for (int64_t i = 0; i < model->n_layers; i++)
        if ((list[i] == '1') != fr_model_layer_is_moe(model, i))
            return false;
    return true;
}

/* The list has the layers after the first k, every k-th, or every k-th of
 * these.
 */
static bool match_layers(const char *list, fr_model *model)
{
    const int64_t n = model->n_layers;
    int64_t first = 0;
    while (first < n && list[first] == '0')
        first++;
    if (has_layers(list, first, 1, model))
        return true;
    int64_t second = first + 1;
    while (second < n && list[second] == '0')
        second++;
    int64_t every = second < n ? second - first : first + 1;
    return has_layers(list, 0, every, model) ||
           has_layers(list, first, every, model);
}

/* "[0,1]" of YAML came as the words 0 and 1. */
static void put_words(const fr_megatron_flag *flag, fr_buffer *out)
{
    bool is_yaml = flag->n_values > 1;
    if (is_yaml)
        fr_buffer_putc(out, '[');
    for (size_t i = 0; i < flag->n_values; i++)
        fr_buffer_printf(out, "%s%s", i > 0 ? "," : "", flag->values[i].text);
    if (is_yaml)
        fr_buffer_putc(out, ']');
}

static fr_status read_expert_layers(fr_megatron_flags *flags, fr_model *model,
                                    fr_err *err)
{
    const fr_megatron_flag *flag = fr_megatron_find(flags, "moe-layer-freq");
    fr_buffer words;
    model->moe_every = 1;
    if (flag == NULL ||
        (flag->n_values == 1 && strcmp(flag->values[0].text, "1") == 0))
        return FR_OK;
    char *list = malloc((size_t)model->n_layers);
    if (list == NULL)
        return fr_fail_no_memory(err);
    fr_buffer_init(&words);
    put_words(flag, &words);
    int64_t n =
        fr_megatron_layer_list(fr_buffer_text(&words), model->n_layers, list);
    bool is_known = n == model->n_layers && match_layers(list, model);
    fr_buffer_release(&words);
    free(list);
    if (is_known)
        return FR_OK;
    return fr_megatron_refuse(flags, flag,
                              n == model->n_layers
                                  ? "layers with experts are those after the "
                                    "first k, or every k-th; name the model "
                                    "with --model"
                                  : "give 1, or a list of a 0 or 1 for each "
                                    "layer, as \"[0]*3+[1]*58\"",
                              err);
}

/* ---- the router ---------------------------------------------------------- */

/* Its "sinkhorn", "global_aux_loss" and "quantile_balancing" are not modelled,
 * nor several at once. */
static fr_status read_aux_loss(fr_megatron_flags *flags, fr_model *model,
                               fr_buffer *notes, fr_err *err)
{
    const char *kind;
    double coef = 0;
    FR_TRY(fr_megatron_real(flags, "moe-aux-loss-coeff", &coef, err));
    FR_TRY(fr_megatron_word(flags, "moe-router-load-balancing-type", "aux_loss",
                            &kind, err));
    model->is_aux_by_sequence = strcmp(kind, "seq_aux_loss") == 0;
    if (model->is_aux_by_sequence || strcmp(kind, "aux_loss") == 0)
        model->router_aux_coef = coef;
    const fr_megatron_flag *flag =
        fr_megatron_find(flags, "moe-router-load-balancing-type");
    bool is_known = model->is_aux_by_sequence ||
                    strcmp(kind, "aux_loss") == 0 || strcmp(kind, "none") == 0;
    if (flag != NULL && (!is_known || flag->n_values > 1))
        fr_buffer_printf(notes,
                         "line %d: --moe-router-load-balancing-type: the plan "
                         "has what stands first, and of that aux_loss and "
                         "seq_aux_loss alone\n",
                         flag->line);
    return FR_OK;
}

/* Without --moe-router-group-topk the number of groups says nothing. */
static fr_status read_groups(fr_megatron_flags *flags, fr_model *model,
                             fr_buffer *notes, fr_err *err)
{
    int64_t n_groups = 0, n_chosen = 0;
    FR_TRY(fr_megatron_i64(flags, "moe-router-num-groups", 0, &n_groups, err));
    FR_TRY(fr_megatron_i64(flags, "moe-router-group-topk", 0, &n_chosen, err));
    if (n_chosen == 0)
        return FR_OK;
    if (n_groups < n_chosen || model->n_experts % n_groups != 0)
        return fr_megatron_refuse(
            flags, fr_megatron_find(flags, "moe-router-group-topk"),
            "give as many groups of one size at least "
            "(--moe-router-num-groups)",
            err);
    model->n_expert_groups = n_groups;
    model->n_chosen_groups = n_chosen;
    int64_t n_best = model->n_experts_per_token / n_chosen;
    if (fr_megatron_has_groups(model) &&
        n_best != fr_megatron_group_best(model))
        fr_buffer_printf(notes,
                         "--moe-router-group-topk: groups are chosen by the "
                         "sum of their best %lld scores, here of %lld\n",
                         (long long)n_best,
                         (long long)fr_megatron_group_best(model));
    return FR_OK;
}

static fr_status read_router(fr_megatron_flags *flags, fr_plan_file *file,
                             fr_buffer *notes, fr_err *err)
{
    fr_model *model = &file->model;
    FR_TRY(fr_megatron_read_rows(flags, "router", file, err));
    bool is_before = fr_megatron_has(flags, "moe-router-pre-softmax");
    /* Sigmoids of several experts add up to 1, that of one does not. */
    model->has_softmax_over_all =
        model->has_sigmoid_router ? model->n_experts_per_token == 1 : is_before;
    if (model->has_router_bias && !model->has_sigmoid_router)
        return fr_megatron_refuse(
            flags, fr_megatron_find(flags, "moe-router-enable-expert-bias"),
            "Megatron-LM asks for --moe-router-score-function sigmoid", err);
    if (model->routed_scale == 0)
        model->routed_scale = 1; /* 0 is no factor to Megatron-LM */
    return read_groups(flags, model, notes, err);
}

fr_status fr_megatron_read_experts(fr_megatron_flags *flags, fr_plan_file *file,
                                   fr_buffer *notes, fr_err *err)
{
    fr_model *model = &file->model;
    if (model->n_experts == 0)
        return FR_OK;
    model->n_experts_per_token = 2;
    model->expert_ffn_hidden = model->ffn_hidden;
    FR_TRY(fr_megatron_read_rows(flags, "experts", file, err));
    FR_TRY(read_router(flags, file, notes, err));
    FR_TRY(read_aux_loss(flags, model, notes, err));
    return read_expert_layers(flags, model, err);
}
