/*
 * target_ray_train.c: Ray Train's TorchTrainer around the loop of the script
 * for DDP (interop/export/script/train_ray.py).  Source: python/ray/train/
 * torch/torch_trainer.py and v2/api/config.py of Ray 2.
 */
#include "plan/target/target_list.h"
#include "plan/target/target_script.h"

static const fr_target_rule rules[] = {{.text = NULL}};

const fr_target fr_target_ray_train = {
    .name = "ray-train",
    .summary = "a training script for Ray Train, with PyTorch DDP",
    .fields = fr_target_ddp_fields,
    .rules = rules,
    .base = &fr_target_ddp,
};
