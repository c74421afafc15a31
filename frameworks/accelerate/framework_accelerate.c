/* framework_accelerate.c: the row of Accelerate. */
#include "frameworks/framework_list.h"

const fr_framework fr_framework_accelerate = {
    .name = "accelerate",
    .summary = "Accelerate of Hugging Face",
    .target = &fr_target_accelerate,
    .checks = &fr_target_accelerate,
    .reader = &fr_config_accelerate,
    .writer = &fr_exporter_accelerate,
};
