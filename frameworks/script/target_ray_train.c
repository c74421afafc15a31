/*
 * target_ray_train.c: Ray Train's TorchTrainer around the loops of the scripts
 * for DDP and for fully_shard (frameworks/script/template/ray_main.py). Source:
 * python/ray/train/torch/torch_trainer.py and v2/api/config.py of Ray 2.
 */
#include "frameworks/framework_list.h"
#include "frameworks/script/target_script.h"

static const fr_target_rule no_rules[] = {{.text = NULL}};

static const fr_target ddp = {
    .name = "ray-train (DDP)",
    .summary = "DistributedDataParallel",
    .fields = fr_target_ddp_fields,
    .facts = fr_target_ddp_facts,
    .rules = no_rules,
    .base = &fr_target_ddp,
};

static const fr_target fsdp2 = {
    .name = "ray-train (FSDP)",
    .summary = "fully_shard",
    .fields = fr_target_fsdp2_fields,
    .facts = fr_target_fsdp2_facts,
    .rules = no_rules,
    .base = &fr_target_fsdp2,
};

/* DDP shards optimizer state alone, and sends parameters after its step. */
static const fr_target *backend_of(const fr_plan *plan)
{
    bool is_sharded = plan->zero_stage > 1 ||
                      (plan->zero_stage == 1 && plan->is_gather_overlap);
    return is_sharded ? &fsdp2 : &ddp;
}

static const fr_target *const backends[] = {&ddp, &fsdp2, NULL};

/* The fields that either of them has. */
static const fr_target_field fields[FR_PLAN_FIELDS_N] = {
    FR_SCRIPT_FIELDS_OF_TORCH,
    FR_SCRIPT_FIELDS_OF_ONE_AXIS,
    FR_TARGET_FIELDS_OF_NCCL,
    [FR_PLAN_PRECISION] =
        FR_WRITTEN_ONLY(FR_IS(FR_DTYPE_F32) | FR_IS(FR_DTYPE_TF32) |
                            FR_IS(FR_DTYPE_BF16) | FR_IS(FR_DTYPE_F16),
                        "torch.autocast, MixedPrecisionPolicy(param_dtype)",
                        "f32, tf32, bf16, and with DDP f16"),
    [FR_PLAN_GRAD_DTYPE] =
        FR_WRITTEN_ONLY(FR_IS(FR_DTYPE_F32) | FR_IS(FR_DTYPE_BF16),
                        "MixedPrecisionPolicy(reduce_dtype); f32 with DDP",
                        "f32, and bf16 with FSDP"),
    [FR_PLAN_ZERO] =
        FR_WRITTEN("0 is DDP, 1 ZeroRedundancyOptimizer or fully_shard, 2 and "
                   "3 fully_shard"),
    [FR_PLAN_ZERO_GROUP] =
        FR_WRITTEN("the mesh; ZeroRedundancyOptimizer(process_group)"),
    [FR_PLAN_ZERO_RESHARD] = FR_WRITTEN("reshard_after_forward"),
    [FR_PLAN_ZERO_PREFETCH] = FR_WRITTEN("set_modules_to_forward_prefetch"),
    [FR_PLAN_GATHER_OVERLAP] = FR_WRITTEN("on is fully_shard, off DDP"),
    [FR_PLAN_OVERLAP] = FR_WRITTEN("DDP, or all_reduce after backward; on with "
                                   "FSDP"),
    [FR_PLAN_BUCKET] = FR_WRITTEN("bucket_cap_mb; a layer with FSDP"),
    [FR_PLAN_COMPRESS] = FR_WRITTEN_ONLY(
        FR_IS(FR_COMPRESSOR_NONE) | FR_IS(FR_COMPRESSOR_BF16) |
            FR_IS(FR_COMPRESSOR_POWERSGD),
        "bf16_compress_hook, powerSGD_hook", "DDP has bf16 and PowerSGD"),
    [FR_PLAN_COMPRESSOR_RANK] = FR_WRITTEN("matrix_approximation_rank"),
    [FR_PLAN_COMPRESSOR_DENSITY] = FR_REFUSED("DDP has no top-k hook"),
    [FR_PLAN_ERROR_FEEDBACK] = FR_WRITTEN("use_error_feedback"),
    [FR_PLAN_OFFLOAD_OPTIMIZER] = FR_WRITTEN("CPUOffloadPolicy of FSDP"),
};

static const fr_target_field facts[FR_EXECUTION_FIELDS_N] = {
    FR_SCRIPT_FACTS_OF_TORCH,
    [FR_EXECUTION_ZERO_UNIT] = FR_IMPLIED_ONLY(
        FR_IS(FR_ZERO_UNIT_LAYER), "fully_shard is called for each layer",
        "fully_shard is called for each layer"),
    [FR_EXECUTION_COMPRESS_BY] = FR_IMPLIED_ONLY(
        FR_IS(FR_COMPRESS_BUCKET), "hooks are called for buckets",
        "hooks are called for buckets"),
};

const fr_target fr_target_ray_train = {
    .name = "ray-train",
    .summary = "a training script for Ray Train, with PyTorch DDP or FSDP2",
    .fields = fields,
    .facts = facts,
    .rules = no_rules,
    .backends = backends,
    .backend_of = backend_of,
    .backend_fields = FR_PLAN_BIT(ZERO) | FR_PLAN_BIT(GATHER_OVERLAP),
};
