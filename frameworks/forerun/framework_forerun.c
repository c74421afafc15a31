/* framework_forerun.c: the row of forerun's own runtime. */
#include "frameworks/framework_list.h"

static const fr_framework_facts own = {
    .is_overlap = true,
    .is_gather_overlap = true,
    .kernels = FR_KERNELS_OWN,
};

const fr_framework fr_framework_forerun = {
    .name = "forerun",
    .summary = "forerun's own runtime",
    .facts = &own,
    .target = &fr_target_forerun,
    .checks = &fr_target_forerun,
    .writer = &fr_exporter_forerun,
};
