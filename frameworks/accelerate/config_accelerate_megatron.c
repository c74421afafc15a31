/*
 * config_accelerate_megatron.c: megatron_lm_config of Accelerate
 * (utils/dataclasses.py, MegatronLMPlugin).
 */
#include "frameworks/accelerate/accelerate_reader.h"
#include "frameworks/framework_list.h"

static const fr_config_key megatron_keys[] = {
    {"megatron_lm_tp_degree", NULL},
    {"megatron_lm_pp_degree", NULL},
    {"megatron_lm_num_micro_batches", NULL},
    {"megatron_lm_gradient_clipping", NULL},
    {"megatron_lm_sequence_parallelism", NULL},
    {"megatron_lm_recompute_activations", NULL},
    {"megatron_lm_recompute_granularity", NULL},
    {"megatron_lm_recompute_method", NULL},
    {"megatron_lm_recompute_num_layers", NULL},
    {"megatron_lm_use_distributed_optimizer", NULL},
    {"megatron_lm_optimizer_cpu_offload", NULL},
    {"megatron_lm_use_precision_aware_optimizer", NULL},
    {"megatron_lm_overlap_cpu_optimizer_d2h_h2d", FR_ACCELERATE_NO_PLACE},
    {"megatron_lm_context_parallel_size", NULL},
    {"megatron_lm_expert_model_parallel_size", NULL},
    {"megatron_lm_expert_tensor_parallel_size", NULL},
    {"megatron_lm_hidden_dropout", NULL},
    {"megatron_lm_attention_dropout", NULL},
    {"megatron_lm_attention_backend", NULL},
    {"megatron_lm_attention_softmax_in_fp32", NULL},
    {"megatron_lm_calculate_per_token_loss", NULL},
    {"megatron_lm_use_rotary_position_embeddings", NULL},
    {"megatron_lm_decoder_last_pipeline_num_layers", "layers are split evenly"},
    {"megatron_lm_use_custom_fsdp", FR_ACCELERATE_NO_PLACE},
    {"megatron_lm_no_load_optim", NULL},
    {"megatron_lm_no_save_optim", NULL},
    {"megatron_lm_eod_mask_loss", NULL},
};

static fr_status read_recompute(fr_accelerate_reader *r,
                                const fr_json_value *part)
{
    static const char *const granularities[] = {"full", "selective"};
    static const char *const methods[] = {"uniform", "block"};
    fr_plan *plan = &r->out->file.plan;
    bool is_selective = false;
    int granularity = -1, method = 0;
    int32_t n_layers = 1;
    FR_TRY(fr_accelerate_read_word(r, part, "megatron_lm_recompute_granularity",
                                   granularities, 2, &granularity));
    FR_TRY(fr_accelerate_read_word(r, part, "megatron_lm_recompute_method",
                                   methods, 2, &method));
    FR_TRY(fr_accelerate_read_degree(
        r, part, "megatron_lm_recompute_num_layers", &n_layers));
    FR_TRY(fr_accelerate_read_switch(
        r, part, "megatron_lm_recompute_activations", &is_selective));
    if (granularity < 0)
        fr_buffer_puts(&r->out->notes,
                       "recompute as before 1.13: from then on it is full "
                       "unless megatron_lm_recompute_granularity says so\n");
    plan->recompute = granularity == 0 ? FR_RECOMPUTE_FULL
                      : granularity == 1 || is_selective
                          ? FR_RECOMPUTE_SELECTIVE
                          : FR_RECOMPUTE_NONE;
    if (granularity == 0 && method == 1)
        plan->recompute_layers = n_layers;
    return FR_OK;
}

fr_status fr_accelerate_read_megatron(fr_accelerate_reader *r)
{
    fr_plan *plan = &r->out->file.plan;
    fr_job *job = &r->out->file.job;
    const fr_json_value *part;
    int32_t n_micro = 1;
    bool is_sharded = false;
    FR_TRY(fr_accelerate_find_part(r, "megatron_lm_config", megatron_keys,
                                   FR_LENGTH(megatron_keys), &part));
    if (part == NULL)
        part = r->root; /* which has none of the keys: all defaults */
    r->is_compiled = false;
    FR_TRY(fr_accelerate_take_script(r, &fr_framework_megatron));
    FR_TRY(
        fr_accelerate_read_degree(r, part, "megatron_lm_tp_degree", &plan->tp));
    FR_TRY(
        fr_accelerate_read_degree(r, part, "megatron_lm_pp_degree", &plan->pp));
    FR_TRY(fr_accelerate_read_degree(
        r, part, "megatron_lm_context_parallel_size", &plan->cp));
    FR_TRY(fr_accelerate_read_degree(
        r, part, "megatron_lm_expert_model_parallel_size", &plan->ep));
    FR_TRY(fr_accelerate_read_degree(r, part, "megatron_lm_num_micro_batches",
                                     &n_micro));
    FR_TRY(fr_accelerate_read_switch(r, part,
                                     "megatron_lm_sequence_parallelism",
                                     &plan->is_sequence_parallel));
    FR_TRY(fr_accelerate_read_switch(
        r, part, "megatron_lm_use_distributed_optimizer", &is_sharded));
    FR_TRY(fr_accelerate_read_switch(r, part,
                                     "megatron_lm_optimizer_cpu_offload",
                                     &plan->is_optimizer_offloaded));
    FR_TRY(read_recompute(r, part));
    FR_TRY(fr_json_get_double_or(part, "megatron_lm_gradient_clipping", 1,
                                 &job->clip_norm, r->err));
    FR_TRY(fr_json_get_double_or(part, "megatron_lm_hidden_dropout", 0,
                                 &job->dropout, r->err));
    FR_TRY(fr_config_take_dp(r->request, r->n_processes, r->out, r->err));
    plan->is_sequence_parallel = plan->is_sequence_parallel && plan->tp > 1;
    plan->zero_stage = is_sharded ? 1 : 0;
    plan->is_overlap = plan->is_gather_overlap = false;
    plan->grad_dtype =
        plan->precision == FR_DTYPE_F16 ? FR_DTYPE_F16 : FR_DTYPE_F32;
    fr_accelerate_take_batch(r, n_micro);
    return FR_OK;
}
