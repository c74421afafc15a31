/*
 * plan_fields.h: every field of a plan and every fact of its execution, one row
 * each (plan_fields.c).  The reader and the writer of plan files, the options
 * of the command line with their help, defaults, range checks, the one-line
 * description, and what the tuner may pin or vary are made from the rows.
 */
#ifndef FR_PLAN_DECIDE_PLAN_FIELDS_H
#define FR_PLAN_DECIDE_PLAN_FIELDS_H

#include "core/base/buffer.h"
#include "core/document/fields.h"
#include "plan/decide/plan.h"

/* Options, in the order of the help text: fields of a plan, and facts of its
 * execution (execution.h). */
#define FR_PLAN_OPTION_LIST(FIELD, FACT)                                       \
    FIELD(DP)                                                                  \
    FIELD(TP)                                                                  \
    FIELD(PP)                                                                  \
    FIELD(CP)                                                                  \
    FIELD(EP)                                                                  \
    FIELD(VPP)                                                                 \
    FIELD(MICRO_BATCH)                                                         \
    FIELD(SCHEDULE)                                                            \
    FIELD(ZERO)                                                                \
    FIELD(RECOMPUTE)                                                           \
    FIELD(SEQUENCE_PARALLEL)                                                   \
    FIELD(OVERLAP)                                                             \
    FIELD(BUCKET)                                                              \
    FIELD(COMPRESS)                                                            \
    FIELD(ERROR_FEEDBACK)                                                      \
    FACT(COMPRESS_BY)                                                          \
    FIELD(COLLECTIVE)                                                          \
    FIELD(NCCL_PROTOCOL)                                                       \
    FIELD(NCCL_CHANNELS)                                                       \
    FIELD(SERVER_PLACE)                                                        \
    FIELD(SERVERS)                                                             \
    FIELD(RANK_ORDER)                                                          \
    FIELD(LAYER_SPLIT)                                                         \
    FIELD(BATCH_SHARES)                                                        \
    FIELD(PRECISION)                                                           \
    FIELD(GRAD_DTYPE)                                                          \
    FIELD(FLASH_ATTENTION)                                                     \
    FACT(FLASH_KIND)                                                           \
    FACT(KERNELS)                                                              \
    FACT(SCALING)                                                              \
    FACT(CUDA_GRAPHS)                                                          \
    FIELD(RECOMPUTE_PARTS)                                                     \
    FIELD(RECOMPUTE_LAYERS)                                                    \
    FIELD(ZERO_GROUP)                                                          \
    FIELD(ZERO_RESHARD)                                                        \
    FIELD(ZERO_PREFETCH)                                                       \
    FACT(ZERO_UNIT)                                                            \
    FIELD(GATHER_OVERLAP)                                                      \
    FIELD(TP_OVERLAP)                                                          \
    FIELD(EP_OVERLAP)                                                          \
    FIELD(CP_KIND)                                                             \
    FIELD(ETP)                                                                 \
    FIELD(EXPERT_DISPATCH)                                                     \
    FACT(EXPERT_IMBALANCE)                                                     \
    FIELD(EXPERT_CAPACITY)                                                     \
    FIELD(EXPERT_PAD)                                                          \
    FIELD(OFFLOAD_OPTIMIZER)                                                   \
    FIELD(OFFLOAD_ACTIVATIONS)                                                 \
    FIELD(THREADS)

/* Fields that only plan files and the readers of measured runs set; the first
 * two are also the number in --compress NAME:NUMBER. */
#define FR_PLAN_OTHER_LIST(FIELD, FACT)                                        \
    FIELD(COMPRESSOR_RANK)                                                     \
    FIELD(COMPRESSOR_DENSITY)                                                  \
    FACT(LOSS_FUSED)                                                           \
    FACT(LOSS_METRICS)                                                         \
    FACT(GRAD_ADDED_APART)                                                     \
    FACT(GRAD_LISTED)                                                          \
    FACT(ROUTING_FUSED)                                                        \
    FACT(NORM_FUSED)                                                           \
    FACT(EARLY_STOP)                                                           \
    FACT(P2P_SYNC)

/* The lists restricted to one kind of entry. */
#define FR_PLAN_NOTHING(symbol)
#define FR_PLAN_OPTIONS(X) FR_PLAN_OPTION_LIST(X, FR_PLAN_NOTHING)
#define FR_PLAN_OTHERS(X) FR_PLAN_OTHER_LIST(X, FR_PLAN_NOTHING)
#define FR_EXECUTION_OPTIONS(X) FR_PLAN_OPTION_LIST(FR_PLAN_NOTHING, X)
#define FR_EXECUTION_OTHERS(X) FR_PLAN_OTHER_LIST(FR_PLAN_NOTHING, X)

typedef enum fr_plan_field_id {
#define FR_PLAN_FIELD_ENUM(symbol) FR_PLAN_##symbol,
    FR_PLAN_OPTIONS(FR_PLAN_FIELD_ENUM) FR_PLAN_OTHERS(FR_PLAN_FIELD_ENUM)
#undef FR_PLAN_FIELD_ENUM
        FR_PLAN_FIELDS_N
} fr_plan_field_id;

typedef enum fr_execution_field_id {
#define FR_EXECUTION_FIELD_ENUM(symbol) FR_EXECUTION_##symbol,
    FR_EXECUTION_OPTIONS(FR_EXECUTION_FIELD_ENUM)
        FR_EXECUTION_OTHERS(FR_EXECUTION_FIELD_ENUM)
#undef FR_EXECUTION_FIELD_ENUM
            FR_EXECUTION_FIELDS_N
} fr_execution_field_id;

/* Sets of fields, and of facts. */
typedef uint32_t fr_execution_bits;
#define FR_EXECUTION_BIT(symbol) (UINT32_C(1) << FR_EXECUTION_##symbol)
#define FR_EXECUTION_BITS_ALL ((UINT32_C(1) << FR_EXECUTION_FIELDS_N) - 1)
#define FR_PLAN_BIT(symbol) (UINT64_C(1) << FR_PLAN_##symbol)
#define FR_PLAN_BITS_ALL ((UINT64_C(1) << FR_PLAN_FIELDS_N) - 1)

/*
 * An item is a field or a fact, where both are met: a field by its id, a fact
 * by its id behind all fields.
 */
#define FR_FACT(symbol) (FR_PLAN_FIELDS_N + (int)FR_EXECUTION_##symbol)
enum {
#define FR_PLAN_OPTION_COUNT(symbol) +1
    FR_PLAN_ITEMS_N = (int)FR_PLAN_FIELDS_N + (int)FR_EXECUTION_FIELDS_N,
    FR_PLAN_OPTIONS_N =
        FR_PLAN_OPTION_LIST(FR_PLAN_OPTION_COUNT, FR_PLAN_OPTION_COUNT)
#undef FR_PLAN_OPTION_COUNT
};

/* The condition under which the one-line description of a plan has a word for
 * the field. */
typedef enum fr_plan_shown {
    FR_SHOWN_CHANGED,      /* if it differs from fr_plan_init() */
    FR_SHOWN_ALWAYS,       /* everywhere */
    FR_SHOWN_CHANGED_PART, /* if it is changed and has an effect */
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
    /* The origin of a fact, which targets without a key for it print. */
    const char *origin;
} fr_plan_field;

extern const fr_plan_field fr_plan_fields[FR_PLAN_FIELDS_N];
/* Their offsets are those within the plan, too. */
extern const fr_plan_field fr_execution_fields[FR_EXECUTION_FIELDS_N];

/* All items: in the order of the help text, of which the first
 * FR_PLAN_OPTIONS_N are options, and in that of the description. */
extern const int fr_plan_items[FR_PLAN_ITEMS_N];
extern const int fr_plan_described[FR_PLAN_ITEMS_N];

/* The row of an item. */
const fr_plan_field *fr_plan_item_row(int item);

/* Is the decision that the item is part of taken?  If not, any value of it
 * gives the same program. */
bool fr_plan_field_is_used(const fr_plan *plan, int item);

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

/* Appends the value of a field: a name, "on" or "off", a number, or numbers
 * with commas. */
void fr_plan_put_value(const fr_field *field, const fr_plan *plan,
                       fr_buffer *out);

#endif
