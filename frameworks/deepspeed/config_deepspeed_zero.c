/*
 * config_deepspeed_zero.c: zero_optimization of a ds_config.json
 * (deepspeed/runtime/zero/config.py).  Its sizes are elements; those of a plan
 * are bytes of gradients and whole layers.
 */
#include "frameworks/deepspeed/config_deepspeed.h"

#include <string.h>

#define NO_PLACE "the plan has no place for it"
#define NOT_TIMED "no prediction depends on it"

/* runtime/zero/config.py, DeepSpeedZeroConfig. */
enum {
    REDUCE_BUCKET = 500000000,
    PREFETCH_BUCKET = 50000000,
    MAX_REUSE_DISTANCE = 1000000000
};

static const fr_config_key zero_keys[] = {
    {"stage", NULL},
    {"overlap_comm", NULL},
    {"reduce_bucket_size", NULL},
    {"stage3_prefetch_bucket_size", NULL},
    {"stage3_max_reuse_distance", NULL},
    {"mics_shard_size", NULL},
    {"offload_optimizer", NULL},
    {"cpu_offload", NULL},
    {"contiguous_gradients", NOT_TIMED},
    {"reduce_scatter", NO_PLACE},
    {"use_multi_rank_bucket_allreduce", NO_PLACE},
    {"allgather_partitions", NO_PLACE},
    {"allgather_bucket_size", NO_PLACE},
    {"load_from_fp32_weights", NOT_TIMED},
    {"elastic_checkpoint", NOT_TIMED},
    {"offload_param", "no plan has parameters on the host"},
    {"cpu_offload_param", "no plan has parameters on the host"},
    {"cpu_offload_use_pin_memory", NO_PLACE},
    {"cpu_offload_params", "no plan has parameters on the host"},
    {"zenflow", NO_PLACE},
    {"sub_group_size", NO_PLACE},
    {"stage3_param_persistence_threshold", NO_PLACE},
    {"stage3_model_persistence_threshold", NO_PLACE},
    {"stage3_max_live_parameters", "stage3_max_reuse_distance is"},
    {"stage3_gather_16bit_weights_on_model_save", NOT_TIMED},
    {"stage3_gather_fp16_weights_on_model_save", NOT_TIMED},
    {"stage3_module_granularity_threshold", NO_PLACE},
    {"stage3_use_all_reduce_for_fetch_params", NO_PLACE},
    {"stage3_allgather_sequential", NO_PLACE},
    {"prefetch_bucket_size", NULL},
    {"max_reuse_distance", NULL},
    {"param_persistence_threshold", NO_PLACE},
    {"model_persistence_threshold", NO_PLACE},
    {"max_live_parameters", "stage3_max_reuse_distance is"},
    {"gather_16bit_weights_on_model_save", NOT_TIMED},
    {"module_granularity_threshold", NO_PLACE},
    {"use_all_reduce_for_fetch_params", NO_PLACE},
    {"allgather_sequential", NO_PLACE},
    {"ignore_unused_parameters", NOT_TIMED},
    {"legacy_stage1", NO_PLACE},
    {"round_robin_gradients", NO_PLACE},
    {"zero_hpz_partition_size", "no plan has a second copy within nodes"},
    {"zero_quantized_weights", "no plan has quantized gathers"},
    {"zero_quantized_nontrainable_weights", NO_PLACE},
    {"zero_quantized_gradients", "no plan has quantized reductions"},
    {"zeropp_loco_param", NO_PLACE},
    {"mics_hierarchical_params_gather", NO_PLACE},
    {"memory_efficient_linear", NO_PLACE},
    {"pipeline_loading_checkpoint", NOT_TIMED},
    {"override_module_apply", NOT_TIMED},
    {"log_trace_cache_warnings", NOT_TIMED},
    {"enable_sanity_checks", NOT_TIMED},
    {"save_muon_momentum_buffer_in_memory", NO_PLACE},
    {"leaf_module", NO_PLACE},
};

static const fr_config_key offload_keys[] = {
    {"device", NULL},
    {"nvme_path", NO_PLACE},
    {"buffer_count", NO_PLACE},
    {"buffer_size", NO_PLACE},
    {"max_in_cpu", NO_PLACE},
    {"pin_memory", NO_PLACE},
    {"pipeline", NO_PLACE},
    {"pipeline_read", NO_PLACE},
    {"pipeline_write", NO_PLACE},
    {"fast_init", NOT_TIMED},
    {"ratio", "all of the optimizer state is taken"},
    {"super_offload", NO_PLACE},
    {"cpuadam_cores_perc", NO_PLACE},
};

/* Elements of a key, or what it has where it is silent. */
static fr_status read_elements(const fr_json_value *zero, const char *key,
                               const char *taken, int64_t usual, int64_t *out,
                               fr_buffer *notes, fr_err *err)
{
    const fr_json_value *value = fr_deepspeed_find(zero, key, taken, notes);
    *out = usual;
    if (value == NULL)
        return FR_OK;
    return fr_deepspeed_read_count(value, key, 0, INT64_MAX / 1024, out, err);
}

static fr_status read_bucket(const fr_json_value *zero, fr_config *out,
                             fr_err *err)
{
    fr_plan *plan = &out->file.plan;
    const fr_model *model = &out->file.model;
    const bool is_auto =
        fr_deepspeed_is_auto(fr_json_find(zero, "reduce_bucket_size"));
    int64_t n;
    FR_TRY(
        read_elements(zero, "reduce_bucket_size",
                      "hidden x hidden elements, as the Trainer has it",
                      is_auto ? model->hidden * model->hidden : REDUCE_BUCKET,
                      &n, &out->notes, err));
    plan->bucket_bytes = (uint64_t)n * fr_dtype_bytes(plan->grad_dtype);
    if ((uint64_t)n == fr_model_parameters(model))
        plan->bucket_bytes = 0; /* one of all */
    return FR_OK;
}

uint64_t fr_deepspeed_layer_elements(const fr_model *model, const fr_plan *plan)
{
    uint64_t n_layers = model->n_layers > 0 ? (uint64_t)model->n_layers : 1;
    uint64_t n = fr_model_parameters(model) / (uint64_t)plan->tp / n_layers;
    return n > 0 ? n : 1;
}

static fr_status read_gathers(const fr_json_value *zero, fr_config *out,
                              fr_err *err)
{
    fr_plan *plan = &out->file.plan;
    const fr_model *model = &out->file.model;
    const uint64_t layer = fr_deepspeed_layer_elements(model, plan);
    const bool is_auto =
        fr_deepspeed_is_auto(fr_json_find(zero, "stage3_prefetch_bucket_size"));
    int64_t n, distance;
    FR_TRY(read_elements(zero, "stage3_prefetch_bucket_size",
                         "0.9 x hidden x hidden elements, as the Trainer has "
                         "it",
                         is_auto ? model->hidden * model->hidden / 10 * 9
                                 : PREFETCH_BUCKET,
                         &n, &out->notes, err));
    /* Part of a layer is gathered ahead as well. */
    uint64_t n_layers = (uint64_t)n / layer;
    plan->n_prefetch = n == 0           ? 0
                       : n_layers < 1   ? 1
                       : n_layers >> 20 ? 1 << 20
                                        : (int32_t)n_layers;
    FR_TRY(read_elements(zero, "stage3_max_reuse_distance", "1e9",
                         MAX_REUSE_DISTANCE, &distance, &out->notes, err));
    plan->is_resharded = (uint64_t)distance < 2 * fr_model_parameters(model);
    return FR_OK;
}

static fr_status read_offload(const fr_json_value *zero, fr_config *out,
                              fr_err *err)
{
    const fr_json_value *object = fr_json_find(zero, "offload_optimizer");
    bool *is_offloaded = &out->file.plan.is_optimizer_offloaded;
    const char *device;
    FR_TRY(fr_config_read_bool(zero, "cpu_offload", is_offloaded, err));
    if (object == NULL)
        return FR_OK;
    FR_TRY(fr_config_check_keys(object, "zero_optimization.offload_optimizer.",
                                offload_keys, FR_LENGTH(offload_keys),
                                &out->notes, err));
    const fr_json_value *value = fr_json_find(object, "device");
    FR_TRY(fr_json_get_string_or(object, "device", "none", &device, err));
    if (strcmp(device, "cpu") == 0)
        *is_offloaded = true;
    else if (strcmp(device, "none") == 0)
        *is_offloaded = false;
    else if (strcmp(device, "nvme") == 0)
        return fr_json_fail(value, err,
                            "offload_optimizer to nvme: no plan has that; cpu "
                            "is the nearest");
    else
        return fr_json_fail(value, err,
                            "offload_optimizer.device '%.40s'; give cpu or "
                            "none",
                            device);
    return FR_OK;
}

/* pydantic refuses a field that stands there by its name and its alias. */
static fr_status check_aliases(const fr_json_value *zero, fr_err *err)
{
    for (size_t i = 0; i < fr_json_n(zero); i++) {
        const char *key = fr_json_key_at(zero, i);
        if (strncmp(key, "stage3_", 7) == 0 &&
            fr_json_find(zero, key + 7) != NULL)
            return fr_json_fail(fr_json_at(zero, i), err,
                                "%s is given twice: %s is the same field; "
                                "leave one out",
                                key, key + 7);
    }
    return FR_OK;
}

fr_status fr_deepspeed_read_zero(const fr_json_value *root, fr_config *out,
                                 fr_err *err)
{
    const fr_json_value *zero = fr_json_find(root, "zero_optimization");
    fr_plan *plan = &out->file.plan;
    int64_t stage = 0, n_shards = -1;
    plan->is_overlap = false;
    if (zero == NULL)
        return read_bucket(zero, out, err);
    FR_TRY(fr_config_check_keys(zero, "zero_optimization.", zero_keys,
                                FR_LENGTH(zero_keys), &out->notes, err));
    FR_TRY(check_aliases(zero, err));
    const fr_json_value *value = fr_deepspeed_find(
        zero, "stage", "0 is taken: the Trainer says it", &out->notes);
    if (value != NULL)
        FR_TRY(fr_deepspeed_read_count(value, "stage", 0, 3, &stage, err));
    plan->zero_stage = (int32_t)stage;
    plan->is_overlap = stage == 3;
    plan->is_gather_overlap = stage != 1 && stage != 2; /* after the step */
    value = fr_deepspeed_find(zero, "overlap_comm", "on for stage 3 alone",
                              &out->notes);
    if (value != NULL)
        FR_TRY(fr_json_as_bool(value, &plan->is_overlap, err));
    if (stage > 1 && plan->compressor == FR_COMPRESSOR_BF16) {
        plan->compressor = FR_COMPRESSOR_NONE;
        plan->grad_dtype =
            plan->precision == FR_DTYPE_F16 ? FR_DTYPE_F16 : FR_DTYPE_BF16;
        fr_buffer_printf(&out->notes,
                         "gradients %s, as they are sent: with ZeRO 2 and 3 "
                         "a plan has one type, and the file adds them up in "
                         "fp32\n",
                         fr_name_of(&fr_dtype_names, plan->grad_dtype));
    }
    FR_TRY(read_bucket(zero, out, err));
    FR_TRY(read_gathers(zero, out, err));
    value = fr_json_find(zero, "mics_shard_size");
    if (value != NULL)
        FR_TRY(fr_deepspeed_read_count(value, "mics_shard_size", -1, 1 << 20,
                                       &n_shards, err));
    plan->zero_group = n_shards > 0 && stage == 3 ? (int32_t)n_shards : 0;
    return read_offload(zero, out, err);
}
