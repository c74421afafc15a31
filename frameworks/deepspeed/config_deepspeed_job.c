/*
 * config_deepspeed_job.c: optimizer, scheduler and experts of a ds_config.json
 * (deepspeed/runtime/lr_schedules.py, module_inject/auto_ep_config.py).
 */
#include "frameworks/deepspeed/config_deepspeed.h"

#include <string.h>
#include <strings.h>

#define NO_PLACE "the plan has no place for it"
#define NOT_TIMED "no prediction depends on it"

/* ---- experts ------------------------------------------------------------- */

static const fr_config_key expert_keys[] = {
    {"enabled", NULL},
    {"autoep_size", NULL},
    {"expert_tensor_parallel_size", NULL},
    {"preset_model", "the model says it"},
    {"moe_layer_pattern", "the model says it"},
    {"expert_pattern", "the model says it"},
    {"router_pattern", "the model says it"},
    {"use_grouped_mm", NO_PLACE},
    {"disable_triton_grouped_mm", NO_PLACE},
    {"route_norm", NOT_TIMED},
    {"route_scale", NOT_TIMED},
    {"score_apply", NOT_TIMED},
    {"combine_impl", NO_PLACE},
    {"num_expert_groups", NO_PLACE},
    {"num_limited_groups", NO_PLACE},
    {"score_func", NOT_TIMED},
    {"top_k", "the model says it"},
    {"load_balance_coeff", NOT_TIMED},
    {"routed_scaling_factor", NOT_TIMED},
    {"expert_w1", "the model says it"},
    {"expert_w2", "the model says it"},
    {"expert_w3", "the model says it"},
    {"num_experts_attr", "the model says it"},
    {"top_k_attr", "the model says it"},
    {"has_shared_experts", "the model says it"},
    {"shared_experts_pattern", "the model says it"},
    {"shared_experts_gate_pattern", "the model says it"},
    {"validate_folding_routing", NOT_TIMED},
};

fr_status fr_deepspeed_read_experts(const fr_json_value *root, fr_config *out,
                                    fr_err *err)
{
    const fr_json_value *object = fr_json_find(root, "expert_parallel");
    fr_plan *plan = &out->file.plan;
    int64_t ep = 1, etp = 1;
    bool is_on = false;
    if (object == NULL)
        return FR_OK;
    FR_TRY(fr_config_check_known_keys(object, "expert_parallel.", expert_keys,
                                      FR_LENGTH(expert_keys), &out->notes,
                                      err));
    FR_TRY(fr_config_read_bool(object, "enabled", &is_on, err));
    if (!is_on)
        return FR_OK;
    const fr_json_value *value = fr_json_find(object, "autoep_size");
    if (value != NULL)
        FR_TRY(fr_deepspeed_read_count(value, "autoep_size", 1, 1 << 20, &ep,
                                       err));
    value = fr_json_find(object, "expert_tensor_parallel_size");
    if (value != NULL)
        FR_TRY(fr_deepspeed_read_count(value, "expert_tensor_parallel_size", 1,
                                       1 << 20, &etp, err));
    plan->ep = (int32_t)ep;
    plan->etp = etp == plan->tp ? 0 : (int32_t)etp;
    return FR_OK;
}

/* ---- optimizer ----------------------------------------------------------- */

static const fr_config_key optimizer_keys[] = {
    {"type", NULL},
    {"params", NULL},
    {"legacy_fusion", NOT_TIMED},
};

static const fr_config_key parameter_keys[] = {
    {"lr", NULL},
    {"betas", NULL},
    {"eps", NULL},
    {"weight_decay", NULL},
    {"momentum", NULL},
    {"torch_adam", NO_PLACE},
    {"adam_w_mode", NOT_TIMED},
    {"bias_correction", NOT_TIMED},
    {"amsgrad", NO_PLACE},
    {"fused", NO_PLACE},
    {"foreach", NO_PLACE},
    {"nesterov", NOT_TIMED},
    {"dampening", NOT_TIMED},
    {"max_grad_norm", NOT_TIMED},
    {"max_coeff", NOT_TIMED},
    {"min_coeff", NOT_TIMED},
    {"freeze_step", "no plan has 1-bit reductions"},
    {"cuda_aware", "no plan has 1-bit reductions"},
    {"comm_backend_name", "no plan has 1-bit reductions"},
    {"coeff_beta", "no plan has 1-bit reductions"},
    {"factor_max", "no plan has 1-bit reductions"},
    {"factor_min", "no plan has 1-bit reductions"},
    {"factor_threshold", "no plan has 1-bit reductions"},
    {"var_freeze_step", "no plan has 1-bit reductions"},
    {"var_update_scaler", "no plan has 1-bit reductions"},
    {"local_step_scaler", "no plan has 1-bit reductions"},
    {"local_step_clipper", "no plan has 1-bit reductions"},
};

/* The optimizer for each type; a note says where it is the nearest one. */
static const struct {
    const char *type;
    fr_optimizer_kind kind;
    const char *said;
} optimizers[] = {
    {"adamw", FR_OPTIMIZER_ADAMW, NULL},
    {"adam", FR_OPTIMIZER_ADAMW, NULL}, /* adam_w_mode is on */
    {"sgd", FR_OPTIMIZER_SGD, NULL},
    {"lamb", FR_OPTIMIZER_LAMB, NULL},
    {"onebitadam", FR_OPTIMIZER_ADAMW, "its 1-bit reductions are not"},
    {"zerooneadam", FR_OPTIMIZER_ADAMW, "its 1-bit reductions are not"},
    {"onebitlamb", FR_OPTIMIZER_LAMB, "its 1-bit reductions are not"},
    {"muadamw", FR_OPTIMIZER_ADAMW, "its scaling of rates is not"},
    {"muadam", FR_OPTIMIZER_ADAMW, "its scaling of rates is not"},
    {"musgd", FR_OPTIMIZER_SGD, "its scaling of rates is not"},
};

static fr_status read_type(const fr_json_value *object, fr_config *out,
                           fr_err *err)
{
    const char *type;
    FR_TRY(fr_json_get_string(object, "type", &type, err));
    for (size_t i = 0; i < FR_LENGTH(optimizers); i++) {
        if (strcasecmp(type, optimizers[i].type) != 0)
            continue;
        out->file.job.optimizer = optimizers[i].kind;
        if (optimizers[i].said != NULL)
            fr_buffer_printf(
                &out->notes, "optimizer %s is read as %s: %s\n",
                optimizers[i].type,
                fr_name_of(&fr_optimizer_names, optimizers[i].kind),
                optimizers[i].said);
        return FR_OK;
    }
    return fr_json_fail(fr_json_blamed(object, "type"), err,
                        "optimizer '%.40s' has no state that is known here; "
                        "known are Adam, AdamW, SGD, Lamb",
                        type);
}

static fr_status read_real(const fr_json_value *object, const char *key,
                           double *out, fr_buffer *notes, fr_err *err)
{
    const fr_json_value *value =
        fr_deepspeed_find(object, key, "the Trainer says it", notes);
    return value == NULL ? FR_OK : fr_json_as_double(value, out, err);
}

static fr_status read_optimizer(const fr_json_value *root, fr_config *out,
                                fr_err *err)
{
    const fr_json_value *object = fr_json_find(root, "optimizer");
    const fr_json_value *values = fr_json_find(object, "params");
    fr_job *job = &out->file.job;
    fr_buffer *notes = &out->notes;
    if (object == NULL) {
        fr_buffer_puts(notes, "optimizer adamw: the file has none, the "
                              "script's is meant\n");
        return FR_OK;
    }
    FR_TRY(fr_config_check_known_keys(object, "optimizer.", optimizer_keys,
                                      FR_LENGTH(optimizer_keys), notes, err));
    FR_TRY(read_type(object, out, err));
    FR_TRY(fr_config_check_keys(values, "optimizer.params.", parameter_keys,
                                FR_LENGTH(parameter_keys), notes, err));
    FR_TRY(read_real(values, "lr", &job->lr, notes, err));
    FR_TRY(read_real(values, "eps", &job->optimizer_eps, notes, err));
    FR_TRY(read_real(values, "weight_decay", &job->weight_decay, notes, err));
    FR_TRY(read_real(values, "momentum", &job->beta1, notes, err));
    const fr_json_value *betas =
        fr_deepspeed_find(values, "betas", "the Trainer says it", notes);
    if (betas == NULL)
        return FR_OK;
    if (fr_json_kind_of(betas) != FR_JSON_ARRAY || fr_json_n(betas) != 2)
        return fr_json_fail(betas, err, "betas must be two numbers");
    FR_TRY(fr_json_as_double(fr_json_at(betas, 0), &job->beta1, err));
    return fr_json_as_double(fr_json_at(betas, 1), &job->beta2, err);
}

/* ---- learning rate ------------------------------------------------------- */

static const fr_config_key scheduler_keys[] = {{"type", NULL},
                                               {"params", NULL}};

static const fr_config_key curve_keys[] = {
    {"total_num_steps", NULL},    {"warmup_num_steps", NULL},
    {"warmup_max_lr", NULL},      {"cos_min_ratio", NULL},
    {"warmup_min_lr", NOT_TIMED}, {"warmup_min_ratio", NOT_TIMED},
    {"warmup_type", NOT_TIMED},   {"last_batch_iteration", NOT_TIMED},
};

static const struct {
    const char *type;
    fr_lr_schedule schedule;
} curves[] = {{"WarmupLR", FR_LR_CONSTANT},
              {"WarmupDecayLR", FR_LR_LINEAR},
              {"WarmupCosineLR", FR_LR_COSINE}};

static fr_status read_steps(const fr_json_value *values, const char *key,
                            int64_t *out, fr_buffer *notes, fr_err *err)
{
    const fr_json_value *value =
        fr_deepspeed_find(values, key, "the Trainer says it", notes);
    return value == NULL ? FR_OK
                         : fr_deepspeed_read_count(value, key, 0,
                                                   INT64_C(1) << 40, out, err);
}

static fr_status read_scheduler(const fr_json_value *root, fr_config *out,
                                fr_err *err)
{
    const fr_json_value *object = fr_json_find(root, "scheduler");
    const fr_json_value *values = fr_json_find(object, "params");
    fr_job *job = &out->file.job;
    fr_buffer *notes = &out->notes;
    const char *type;
    if (object == NULL)
        return FR_OK;
    FR_TRY(fr_config_check_known_keys(object, "scheduler.", scheduler_keys,
                                      FR_LENGTH(scheduler_keys), notes, err));
    FR_TRY(fr_json_get_string(object, "type", &type, err));
    size_t i = 0;
    while (i < FR_LENGTH(curves) && strcmp(curves[i].type, type) != 0)
        i++;
    if (i == FR_LENGTH(curves)) {
        fr_buffer_printf(notes,
                         "line %d: scheduler %.40s is not read: the "
                         "rate is taken as constant\n",
                         fr_json_line(object), type);
        return FR_OK;
    }
    job->lr_schedule = curves[i].schedule;
    FR_TRY(fr_config_check_keys(values, "scheduler.params.", curve_keys,
                                FR_LENGTH(curve_keys), notes, err));
    job->warmup_steps = 1000; /* lr_schedules.py: warmup_num_steps */
    FR_TRY(
        read_steps(values, "warmup_num_steps", &job->warmup_steps, notes, err));
    FR_TRY(read_steps(values, "total_num_steps", &job->n_steps, notes, err));
    if (job->lr_schedule == FR_LR_COSINE)
        job->lr_min_frac = 0.0001; /* WarmupCosineLR: cos_min_ratio */
    FR_TRY(read_real(values, "cos_min_ratio", &job->lr_min_frac, notes, err));
    return read_real(values, "warmup_max_lr", &job->lr, notes, err);
}

fr_status fr_deepspeed_read_job(const fr_json_value *root, fr_config *out,
                                fr_err *err)
{
    fr_job *job = &out->file.job;
    job->clip_norm = 0; /* GRADIENT_CLIPPING_DEFAULT */
    FR_TRY(read_real(root, "gradient_clipping", &job->clip_norm, &out->notes,
                     err));
    FR_TRY(read_optimizer(root, out, err));
    return read_scheduler(root, out, err);
}
