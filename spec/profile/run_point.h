/*
 * run_point.h: a measured step of a stack (software on hardware) beside what
 * was predicted of it, and what of the plan says how alike two steps are.
 */
#ifndef FR_SPEC_PROFILE_RUN_POINT_H
#define FR_SPEC_PROFILE_RUN_POINT_H

#include "core/document/fields.h"

/*
 * Parts of a step for which a stack may take more or less time than predicted:
 * symbol, key, meaning.  They are shares of the predicted step; the last two
 * are a fixed time for each pass of a micro-batch over a layer, and for each
 * step, over the predicted step.
 */
#define FR_RUN_SHARE_LIST(X)                                                   \
    X(COMPUTE, "compute", "kernels")                                           \
    X(TENSOR, "tensor", "tensor and context parallel")                         \
    X(EXPERTS, "experts", "expert parallel")                                   \
    X(PIPELINE, "pipeline", "transfers between stages and bubbles")            \
    X(GRADIENTS, "gradients", "gradient reduction")                            \
    X(OPTIMIZER, "optimizer", "optimizer and the rest")                        \
    X(WAITS, "waits", "stragglers and the host")                               \
    X(LAUNCHES, "launches", "host time of a pass over a layer")                \
    X(STEP, "step", "time of a step beside all parts")

/* Sizes that kernels and collectives depend on, as binary logarithms. */
#define FR_RUN_SIZE_LIST(X)                                                    \
    X(HIDDEN, "log2_hidden")                                                   \
    X(ROWS, "log2_rows")                                                       \
    X(SEQ, "log2_seq")                                                         \
    X(RANKS, "log2_ranks")                                                     \
    X(TP, "log2_tp")                                                           \
    X(CP, "log2_cp")                                                           \
    X(PP, "log2_pp")

/* Features that are equal or not: numbers that stand for a choice. */
#define FR_RUN_KIND_LIST(X)                                                    \
    X(DEVICE, "kind_of_device")                                                \
    X(PRECISION, "kind_of_precision")                                          \
    X(KERNELS, "kind_of_kernels")                                              \
    X(LAYOUT, "kind_of_layout")                                                \
    X(MODEL, "kind_of_model")

#define FR_RUN_ENUM(symbol, ...) FR_RUN_##symbol,
typedef enum fr_run_share {
    FR_RUN_SHARE_LIST(FR_RUN_ENUM) FR_RUN_SHARE_N
} fr_run_share;
#define FR_RUN_SIZE_ENUM(symbol, ...) FR_RUN_SIZE_##symbol,
typedef enum fr_run_size {
    FR_RUN_SIZE_LIST(FR_RUN_SIZE_ENUM) FR_RUN_SIZE_N
} fr_run_size;
#define FR_RUN_KIND_ENUM(symbol, ...) FR_RUN_KIND_##symbol,
typedef enum fr_run_kind {
    FR_RUN_KIND_LIST(FR_RUN_KIND_ENUM) FR_RUN_KIND_N
} fr_run_kind;

typedef struct fr_run_features {
    double share[FR_RUN_SHARE_N];
    double size[FR_RUN_SIZE_N];
    double kind[FR_RUN_KIND_N];
} fr_run_features;

enum { FR_RUN_FEATURES_N = FR_RUN_SHARE_N + FR_RUN_SIZE_N + FR_RUN_KIND_N };
extern const fr_field fr_run_feature_fields[FR_RUN_FEATURES_N];
extern const char *const fr_run_share_summaries[FR_RUN_SHARE_N];

typedef struct fr_run_point {
    char name[160]; /* of the row that it was read from */
    char plan[128];
    double measured_s, predicted_s;
    fr_run_features features;
} fr_run_point;

#endif
