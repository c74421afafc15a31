/* plan_space_axes.c: the table of axes. */
#include "tuner/space/plan_space_lists.h"

#define ROW(symbol, name, level, functions)                                    \
    [FR_SPACE_AXIS_##symbol] = {name, FR_DECISION_##level,                     \
                                fr_list_##functions, fr_set_##functions}

const fr_plan_space_axis_row fr_plan_space_axes[FR_SPACE_AXIS_N] = {
    ROW(WORLD, "world", LAYERS, world),
    ROW(THREADS, "threads", LAYERS, threads),
    ROW(CP, "cp", LAYERS, cp),
    ROW(TP, "tp", LAYERS, tp),
    ROW(PP, "pp", LAYERS, pp),
    ROW(EP, "ep", LAYERS, ep),
    ROW(ETP, "etp", LAYERS, etp),
    ROW(RANK_ORDER, "rank-order", LAYERS, rank_order),
    ROW(MICRO_BATCH, "micro-batch", LAYERS, micro_batch),
    ROW(CP_KIND, "cp-kind", LAYERS, cp_kind),
    ROW(SEQUENCE_PARALLEL, "sequence-parallel", LAYERS, sequence_parallel),
    ROW(TP_OVERLAP, "tp-overlap", LAYERS, tp_overlap),
    ROW(RECOMPUTE, "recompute", LAYERS, recompute),
    ROW(EP_OVERLAP, "ep-overlap", LAYERS, ep_overlap),
    ROW(PRECISION, "precision", LAYERS, precision),
    ROW(VPP, "vpp", PIPELINE, vpp),
    ROW(SCHEDULE, "schedule", PIPELINE, schedule),
    ROW(SPLIT, "layer-split", PIPELINE, split),
    ROW(RECOMPUTE_LAYERS, "recompute-layers", PIPELINE, recompute_layers),
    ROW(ZERO, "zero", GRADIENTS, zero),
    ROW(ZERO_GROUP, "zero-group", GRADIENTS, zero_group),
    ROW(RESHARD, "zero-reshard", GRADIENTS, reshard),
    ROW(OFFLOAD, "offload-optimizer", GRADIENTS, offload),
    ROW(COMPRESSOR, "compress", GRADIENTS, compressor),
    ROW(OVERLAP, "overlap", GRADIENTS, overlap),
    ROW(GATHER, "gather-overlap", GRADIENTS, gather),
    ROW(BUCKET, "bucket", GRADIENTS, bucket),
};
