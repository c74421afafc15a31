/*
 * framework_grace.c: GRACE, and what it does unless told otherwise.
 *
 * Source: sands-lab/grace at fd3a7f4: Communicator.step() for each tensor
 * (grace_dl/tensorflow/__init__.py), Horovod 0.21 with TensorFlow 1.15 or
 * PyTorch 1.7 (INSTALLING.md).
 */
#include "frameworks/framework_list.h"

static const fr_framework_facts of_grace = {
    .is_overlap = true,
    .is_gather_overlap = true,
    .kernels = FR_KERNELS_EAGER,
    .compress_by = FR_COMPRESS_TENSOR,
    .flash_kind = FR_FLASH_2,
};

const fr_framework fr_framework_grace = {
    .name = "grace",
    .summary = "GRACE: compressors over Horovod, 2021",
    .aliases = {"grace-dl"},
    .facts = &of_grace,
};
