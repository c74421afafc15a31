/* prediction_fields.c: see prediction_fields.h. */
#include "spec/result/prediction_fields.h"

#include "spec/result/prediction.h"

const fr_field fr_prediction_memory[FR_PREDICTION_MEMORY_N] = {
    {"fits", FR_MEMBER(fr_prediction, memory.fits)},
    {"peak_bytes", FR_MEMBER(fr_prediction, memory.peak_bytes)},
    {"capacity_bytes", FR_MEMBER(fr_prediction, memory.capacity_bytes)},
    {"parameters_bytes", FR_MEMBER(fr_prediction, memory.parameters_bytes)},
    {"gradients_bytes", FR_MEMBER(fr_prediction, memory.gradients_bytes)},
    {"optimizer_bytes", FR_MEMBER(fr_prediction, memory.optimizer_bytes)},
    {"activations_bytes", FR_MEMBER(fr_prediction, memory.activations_bytes)},
    {"buffers_bytes", FR_MEMBER(fr_prediction, memory.buffers_bytes)},
    {"overhead_bytes", FR_MEMBER(fr_prediction, memory.overhead_bytes)},
    {"workspaces_bytes", FR_MEMBER(fr_prediction, memory.workspaces_bytes)},
    {"alignment_bytes", FR_MEMBER(fr_prediction, memory.alignment_bytes)},
    {"reserved_bytes", FR_MEMBER(fr_prediction, memory.reserved_bytes)},
    {"device_bytes", FR_MEMBER(fr_prediction, memory.device_bytes)},
    {"p_fits", FR_MEMBER(fr_prediction, memory.p_fits)},
};

static const fr_field costs[] = {
    {"usd_per_hour", FR_MEMBER(fr_prediction, cost.usd_per_hour)},
    {"usd_total", FR_MEMBER(fr_prediction, cost.usd_total)},
    {"kwh", FR_MEMBER(fr_prediction, cost.kwh)},
};

/* The names of cost_models/base/cost.h: files and answers only repeat them. */
static const char *const sources[] = {"measured", "fitted", "extrapolated",
                                      "datasheet"};
static const fr_names source_names = FR_NAMES(sources);

const fr_field fr_prediction_fields[FR_PREDICTION_FIELDS_N] = {
    FR_FIELD(fr_prediction, expected_step_s),
    FR_FIELD(fr_prediction, step_s),
    FR_FIELD(fr_prediction, step_s_p5),
    FR_FIELD(fr_prediction, step_s_p95),
    FR_FIELD(fr_prediction, tokens_per_s),
    FR_FIELD(fr_prediction, samples_per_s),
    FR_FIELD(fr_prediction, mfu),
    FR_FIELD(fr_prediction, mfu_causal),
    FR_FIELD(fr_prediction, hfu),
    {"breakdown_s", FR_MEMBER(fr_prediction, breakdown_s),
     .names = &fr_part_names},
    FR_GROUP("memory", fr_prediction_memory),
    FR_GROUP("cost", costs),
    {"source", FR_MEMBER(fr_prediction, source), .names = &source_names},
};
