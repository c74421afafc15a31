/*
 * config_accelerate_fsdp.c: fsdp_config and parallelism_config of Accelerate
 * (utils/dataclasses.py, FullyShardedDataParallelPlugin;
 * parallelism_config.py).
 */
#include "frameworks/accelerate/accelerate_reader.h"
#include "frameworks/deepspeed/config_deepspeed.h"
#include "frameworks/framework_list.h"

#include <string.h>

static const fr_config_key fsdp_keys[] = {
    {"fsdp_version", NULL},
    {"fsdp_sharding_strategy", NULL},
    {"fsdp_reshard_after_forward", NULL},
    {"fsdp_offload_params", NULL},
    {"fsdp_activation_checkpointing", NULL},
    {"fsdp_auto_wrap_policy", NULL},
    {"fsdp_min_num_params", "each layer is gathered by itself"},
    {"fsdp_transformer_layer_cls_to_wrap", NULL},
    {"fsdp_backward_prefetch", NULL},
    {"fsdp_backward_prefetch_policy", NULL},
    {"fsdp_forward_prefetch", NULL},
    {"fsdp_state_dict_type", NULL},
    {"fsdp_use_orig_params", NULL},
    {"fsdp_cpu_ram_efficient_loading", NULL},
    {"fsdp_sync_module_states", NULL},
    {"fsdp_limit_all_gathers", NULL},
    {"fsdp_ignored_modules", FR_ACCELERATE_NO_PLACE},
};

static const fr_config_key mesh_keys[] = {
    {"parallelism_config_dp_replicate_size", NULL},
    {"parallelism_config_dp_shard_size", NULL},
    {"parallelism_config_tp_size", NULL},
    {"parallelism_config_cp_size", NULL},
    {"parallelism_config_cp_backend", NULL},
    {"parallelism_config_cp_comm_strategy", NULL},
    {"parallelism_config_sp_size", NULL},
    {"parallelism_config_sp_backend", NULL},
    {"parallelism_config_sp_seq_length", NULL},
    {"parallelism_config_sp_seq_length_is_variable", NULL},
    {"parallelism_config_sp_attn_implementation", NULL},
};

fr_status fr_accelerate_read_mesh(fr_accelerate_reader *r, int32_t *n_copies)
{
    static const char *const rotations[] = {"allgather", "alltoall"};
    fr_plan *plan = &r->out->file.plan;
    const fr_json_value *part;
    int32_t n_shards = 1;
    int rotation = 0;
    FR_TRY(fr_accelerate_find_part(r, "parallelism_config", mesh_keys,
                                   FR_LENGTH(mesh_keys), &part));
    if (part == NULL || fr_json_n(part) == 0)
        return FR_OK;
    FR_TRY(fr_accelerate_read_degree(r, part, "parallelism_config_tp_size",
                                     &plan->tp));
    FR_TRY(fr_accelerate_read_degree(r, part, "parallelism_config_cp_size",
                                     &plan->cp));
    FR_TRY(fr_accelerate_read_degree(
        r, part, "parallelism_config_dp_replicate_size", n_copies));
    FR_TRY(fr_accelerate_read_degree(
        r, part, "parallelism_config_dp_shard_size", &n_shards));
    FR_TRY(fr_accelerate_read_word(r, part,
                                   "parallelism_config_cp_comm_strategy",
                                   rotations, 2, &rotation));
    plan->cp_kind = rotation == 1 ? FR_CP_RING : FR_CP_ALL_GATHER;
    const double product = (double)plan->tp * plan->cp * *n_copies * n_shards;
    const int64_t world =
        r->n_processes > 0 ? r->n_processes : r->request->world;
    if (world > 0 && product != (double)world && product != 1)
        return fr_json_fail(part, r->err,
                            "dp_replicate %d x dp_shard %d x cp %d x tp %d are "
                            "%.0f ranks, and there are %lld",
                            *n_copies, n_shards, plan->cp, plan->tp, product,
                            (long long)world);
    return FR_OK;
}

fr_status fr_accelerate_read_ulysses(fr_accelerate_reader *r,
                                     int32_t *n_sequence)
{
    const fr_json_value *part;
    FR_TRY(fr_accelerate_find_part(r, "parallelism_config", mesh_keys,
                                   FR_LENGTH(mesh_keys), &part));
    return fr_accelerate_read_degree(r, part, "parallelism_config_sp_size",
                                     n_sequence);
}

enum {
    FULL_SHARD,
    SHARD_GRAD_OP,
    NO_SHARD,
    HYBRID_SHARD,
    HYBRID_SHARD_ZERO2,
    STRATEGIES_N
};

/* A name, or its number from 1, or, with FSDP 2, whether parameters are dropped
 * after forward. */
static fr_status read_strategy(fr_accelerate_reader *r,
                               const fr_json_value *part, int *out)
{
    static const char *const names[STRATEGIES_N] = {
        [FULL_SHARD] = "FULL_SHARD",
        [SHARD_GRAD_OP] = "SHARD_GRAD_OP",
        [NO_SHARD] = "NO_SHARD",
        [HYBRID_SHARD] = "HYBRID_SHARD",
        [HYBRID_SHARD_ZERO2] = "HYBRID_SHARD_ZERO2"};
    const char *key = "fsdp_reshard_after_forward";
    bool is_dropped = true;
    int32_t version = 1, number = 0;
    FR_TRY(fr_accelerate_read_degree(r, part, "fsdp_version", &version));
    if (version == 2) {
        FR_TRY(fr_accelerate_read_switch(r, part, key, &is_dropped));
        *out = is_dropped ? FULL_SHARD : SHARD_GRAD_OP;
        return FR_OK;
    }
    if (fr_json_find(part, "fsdp_sharding_strategy") != NULL)
        key = "fsdp_sharding_strategy";
    const fr_json_value *value = fr_json_find(part, key);
    if (value == NULL || fr_json_kind_of(value) != FR_JSON_NUMBER)
        return fr_accelerate_read_word(r, part, key, names, STRATEGIES_N, out);
    FR_TRY(fr_accelerate_read_degree(r, part, key, &number));
    if (number > STRATEGIES_N)
        return fr_json_fail(value, r->err, "%s %d; give 1 to %d", key, number,
                            STRATEGIES_N);
    *out = number - 1;
    return FR_OK;
}

/* Ranks that share one copy of the parameters; 0: all. */
static fr_status take_copies(fr_accelerate_reader *r, int strategy,
                             int32_t n_copies)
{
    fr_plan *plan = &r->out->file.plan;
    int32_t n_machines = 1;
    FR_TRY(fr_accelerate_read_degree(r, r->root, "num_machines", &n_machines));
    if (strategy == HYBRID_SHARD || strategy == HYBRID_SHARD_ZERO2)
        n_copies = n_machines;
    const int64_t n_data = (int64_t)plan->dp * plan->cp;
    if (n_data % n_copies != 0)
        return fr_json_fail(r->root, r->err,
                            "%lld ranks do not divide by %d copies",
                            (long long)n_data, n_copies);
    plan->zero_stage =
        strategy == NO_SHARD || n_data == n_copies || n_data == 1 ? 0 : 3;
    plan->zero_group = n_copies > 1 && plan->zero_stage == 3
                           ? (int32_t)(n_data / n_copies)
                           : 0;
    return FR_OK;
}

/* CPUOffload of FSDP 1 and CPUOffloadPolicy of FSDP 2 keep the shards of
 * parameters and gradients on the host and step there
 * (torch/distributed/fsdp/api.py; _fully_shard/_fsdp_api.py). */
static void note_offload(fr_accelerate_reader *r)
{
    const fr_plan *plan = &r->out->file.plan;
    const int64_t n_data = (int64_t)plan->dp * plan->cp;
    const double n_shards = plan->zero_stage < 3   ? 1
                            : plan->zero_group > 0 ? plan->zero_group
                                                   : (double)n_data;
    const double bytes = (double)fr_model_parameters(&r->out->file.model) /
                         plan->tp / n_shards *
                         (double)(fr_dtype_bytes(fr_plan_storage_dtype(plan)) +
                                  fr_dtype_bytes(plan->grad_dtype));
    if (plan->is_optimizer_offloaded)
        fr_buffer_printf(
            &r->out->notes,
            "fsdp_offload_params moves parameters and gradients to the host, "
            "too: no plan does, so the predicted memory has %.1f GiB too much, "
            "and the step lacks their copies to the GPU and back\n",
            bytes / (1 << 30));
}

fr_status fr_accelerate_read_fsdp(fr_accelerate_reader *r)
{
    static const char *const policies[] = {"TRANSFORMER_BASED_WRAP",
                                           "SIZE_BASED_WRAP", "NO_WRAP"};
    fr_plan *plan = &r->out->file.plan;
    const fr_json_value *part;
    bool is_full = false;
    int strategy = FULL_SHARD, policy = 2;
    int32_t n_copies = 1;
    FR_TRY(fr_accelerate_find_part(r, "fsdp_config", fsdp_keys,
                                   FR_LENGTH(fsdp_keys), &part));
    FR_TRY(fr_accelerate_take_script(r, r->out->framework));
    FR_TRY(fr_accelerate_read_mesh(r, &n_copies));
    FR_TRY(fr_config_take_dp(r->request, r->n_processes, r->out, r->err));
    FR_TRY(read_strategy(r, part, &strategy));
    FR_TRY(take_copies(r, strategy, n_copies));
    plan->is_resharded = strategy == FULL_SHARD || strategy == HYBRID_SHARD;
    FR_TRY(fr_accelerate_read_word(r, part, "fsdp_auto_wrap_policy", policies,
                                   3, &policy));
    if (policy != 0)
        fr_buffer_printf(
            &r->out->notes,
            "fsdp_auto_wrap_policy %s: layers are taken as what is "
            "gathered at once\n",
            policies[policy]);
    FR_TRY(fr_accelerate_read_switch(r, part, "fsdp_offload_params",
                                     &plan->is_optimizer_offloaded));
    FR_TRY(fr_accelerate_read_switch(r, part, "fsdp_activation_checkpointing",
                                     &is_full));
    plan->recompute = is_full ? FR_RECOMPUTE_FULL : FR_RECOMPUTE_NONE;
    /* set_mixed_precision(): reduce_dtype is param_dtype. */
    plan->grad_dtype = fr_plan_storage_dtype(plan);
    note_offload(r);
    fr_accelerate_take_batch(r, 1);
    return FR_OK;
}
