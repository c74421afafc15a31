/*
 * plan_fields.h: every field of a plan, one row each (plan_fields.c).  The
 * reader and the writer of plan files, the options of the command line with
 * their help, defaults, range checks, the one-line description, and what the
 * tuner may pin or vary are made from the rows.
 */
#ifndef FR_PLAN_DECIDE_PLAN_FIELDS_H
#define FR_PLAN_DECIDE_PLAN_FIELDS_H

#include "core/document/fields.h"
#include "plan/decide/plan.h"

/* Fields that are options, in the order of the help text. */
#define FR_PLAN_OPTIONS(X)                                                     \
    X(DP)                                                                      \
    X(TP)                                                                      \
    X(PP)                                                                      \
    X(CP)                                                                      \
    X(EP)                                                                      \
    X(VPP)                                                                     \
    X(MICRO_BATCH)                                                             \
    X(SCHEDULE)                                                                \
    X(ZERO)                                                                    \
    X(RECOMPUTE)                                                               \
    X(SEQUENCE_PARALLEL)                                                       \
    X(OVERLAP)                                                                 \
    X(BUCKET)                                                                  \
    X(COMPRESS)                                                                \
    X(ERROR_FEEDBACK)                                                          \
    X(COMPRESS_BY)                                                             \
    X(COLLECTIVE)                                                              \
    X(NCCL_PROTOCOL)                                                           \
    X(NCCL_CHANNELS)                                                           \
    X(SERVER_PLACE)                                                            \
    X(SERVERS)                                                                 \
    X(RANK_ORDER)                                                              \
    X(LAYER_SPLIT)                                                             \
    X(BATCH_SHARES)                                                            \
    X(PRECISION)                                                               \
    X(GRAD_DTYPE)                                                              \
    X(FLASH_ATTENTION)                                                         \
    X(FLASH_KIND)                                                              \
    X(KERNELS)                                                                 \
    X(SCALING)                                                                 \
    X(CUDA_GRAPHS)                                                             \
    X(RECOMPUTE_PARTS)                                                         \
    X(RECOMPUTE_LAYERS)                                                        \
    X(ZERO_GROUP)                                                              \
    X(ZERO_RESHARD)                                                            \
    X(ZERO_PREFETCH)                                                           \
    X(ZERO_UNIT)                                                               \
    X(GATHER_OVERLAP)                                                          \
    X(TP_OVERLAP)                                                              \
    X(EP_OVERLAP)                                                              \
    X(CP_KIND)                                                                 \
    X(ETP)                                                                     \
    X(EXPERT_DISPATCH)                                                         \
    X(EXPERT_IMBALANCE)                                                        \
    X(EXPERT_CAPACITY)                                                         \
    X(EXPERT_PAD)                                                              \
    X(OFFLOAD_OPTIMIZER)                                                       \
    X(OFFLOAD_ACTIVATIONS)                                                     \
    X(THREADS)

/* Fields that only plan files and the readers of measured runs set; the first
 * two are also the number in --compress NAME:NUMBER. */
#define FR_PLAN_OTHERS(X)                                                      \
    X(COMPRESSOR_RANK)                                                         \
    X(COMPRESSOR_DENSITY)                                                      \
    X(LOSS_FUSED)                                                              \
    X(LOSS_METRICS)                                                            \
    X(GRAD_ADDED_APART)                                                        \
    X(GRAD_LISTED)                                                             \
    X(ROUTING_FUSED)                                                           \
    X(NORM_FUSED)                                                              \
    X(EARLY_STOP)                                                              \
    X(P2P_SYNC)

typedef enum fr_plan_field_id {
#define FR_PLAN_FIELD_ENUM(symbol) FR_PLAN_##symbol,
    FR_PLAN_OPTIONS(FR_PLAN_FIELD_ENUM) FR_PLAN_OTHERS(FR_PLAN_FIELD_ENUM)
#undef FR_PLAN_FIELD_ENUM
        FR_PLAN_FIELDS_N
} fr_plan_field_id;

/* Sets of fields. */
#define FR_PLAN_BIT(symbol) (UINT64_C(1) << FR_PLAN_##symbol)
#define FR_PLAN_BITS_ALL ((UINT64_C(1) << FR_PLAN_FIELDS_N) - 1)

/* The first of them are the options. */
enum {
#define FR_PLAN_OPTION_COUNT(symbol) +1
    FR_PLAN_OPTIONS_N = FR_PLAN_OPTIONS(FR_PLAN_OPTION_COUNT)
#undef FR_PLAN_OPTION_COUNT
};

/* Where the one-line description of a plan has a word for the field. */
typedef enum fr_plan_shown {
    FR_SHOWN_CHANGED,      /* where it is not as fr_plan_init() has it */
    FR_SHOWN_ALWAYS,       /* everywhere */
    FR_SHOWN_CHANGED_PART, /* where it is changed, and not without effect */
    FR_SHOWN_PART          /* wherever it is not without effect */
} fr_plan_shown;

typedef struct fr_plan_field {
    fr_field field;
    const char *word; /* of the description; the value stands for the '*' */
    fr_plan_shown shown;
    /* It is part of another decision: without effect unless that field has one
     * of these values (bit v: value v, bit 63: 63 and all above), or unless
     * is_used says so; neither: always in effect. */
    uint64_t part_values;
    fr_plan_field_id part_of;
    bool (*is_used)(const fr_plan *plan);
    /* Names in the description, of the bits of a mask; NULL: field.names. */
    const fr_names *words;
} fr_plan_field;

extern const fr_plan_field fr_plan_fields[FR_PLAN_FIELDS_N];
/* Fields in the order of the description. */
extern const fr_plan_field_id fr_plan_described[FR_PLAN_FIELDS_N];

/* Is the decision that the field is part of taken?  If not, any value of the
 * field gives the same program. */
bool fr_plan_field_is_used(const fr_plan *plan, fr_plan_field_id id);

/* Do two plans give the same program wherever either is legal: are they alike
 * in all fields that are not without effect?  A hash that is then the same. */
bool fr_plan_is_same(const fr_plan *a, const fr_plan *b);
uint64_t fr_plan_hash(const fr_plan *plan);

/* All fields within their ranges?  FR_INPUT says what a field may be. */
FR_CHECKED fr_status fr_plan_check_ranges(const fr_plan *plan, fr_err *err);
/* plan_size.c: can the bytes of a step be counted?  The plan divides the job.
 */
FR_CHECKED fr_status fr_plan_check_size(const fr_plan *plan,
                                        const fr_model *model,
                                        const fr_job *job, fr_err *err);
/* Can all calls of so many micro-batches be written out?  FR_INPUT: there are
 * more than `most`. */
FR_CHECKED fr_status fr_plan_check_calls(const fr_plan *plan,
                                         const fr_model *model, int64_t n_micro,
                                         double most, fr_err *err);

#endif
