/* goodput.c: see goodput.h. */
#include "spec/result/goodput.h"

static const char *const parts[FR_RUN_PARTS] = {
    [FR_RUN_USEFUL] = "useful",
    [FR_RUN_CHECKPOINT] = "checkpoint",
    [FR_RUN_LOST] = "lost",
    [FR_RUN_RESTART] = "restart",
    [FR_RUN_REPLAN] = "replan",
    [FR_RUN_STRAGGLER] = "straggler",
    [FR_RUN_INPUT] = "input",
    [FR_RUN_IDLE] = "idle",
    [FR_RUN_MAINTENANCE] = "maintenance",
    [FR_RUN_EVALUATION] = "evaluation",
};

const fr_names fr_run_part_names = FR_NAMES(parts);
