/*
 * plan_space.h: all plans that tune looks at.
 *
 * A plan is one choice per axis (plan_space_axes.c, a table); which values an
 * axis has depends on the axes before it, so what would make no difference (a
 * bucket size without data parallelism, a schedule without a pipeline) has a
 * single value and is counted once.  A candidate is its choices, a byte each.
 */
#ifndef FR_TUNER_SPACE_PLAN_SPACE_H
#define FR_TUNER_SPACE_PLAN_SPACE_H

#include "core/base/log.h"
#include "core/base/vec.h"
#include "frameworks/target.h"
#include "plan/decide/plan_fields.h"
#include "spec/cluster/cluster.h"
#include "tuner/space/decision_levels.h"

/*
 * The axes in the order in which they are decided; each is a field of the plan.
 *
 * - symbol, name: of the field (plan_fields.h), whose values fr_list_NAME()
 *   lists.
 * - level: the decision level.
 * - values: LISTED if the user may name several, SINGLE if only one.
 * - set: fr_set_NAME() if more follows from a value than that of the field,
 *   else NULL.
 *
 * WORLD, the number of ranks, comes before them and is no field.  dp is what
 * the other degrees leave of it.
 */
#define FR_SPACE_AXES(X)                                                       \
    X(THREADS, threads, LAYERS, SINGLE, NULL)                                  \
    X(CP, cp, LAYERS, LISTED, fr_set_cp)                                       \
    X(TP, tp, LAYERS, LISTED, fr_set_tp)                                       \
    X(PP, pp, LAYERS, LISTED, fr_set_pp)                                       \
    X(EP, ep, LAYERS, LISTED, NULL)                                            \
    X(ETP, etp, LAYERS, LISTED, NULL)                                          \
    X(RANK_ORDER, rank_order, LAYERS, LISTED, NULL)                            \
    X(MICRO_BATCH, micro_batch, LAYERS, LISTED, NULL)                          \
    X(CP_KIND, cp_kind, LAYERS, LISTED, NULL)                                  \
    X(SEQUENCE_PARALLEL, sequence_parallel, LAYERS, SINGLE, NULL)              \
    X(TP_OVERLAP, tp_overlap, LAYERS, SINGLE, NULL)                            \
    X(RECOMPUTE, recompute, LAYERS, LISTED, NULL)                              \
    X(EP_OVERLAP, ep_overlap, LAYERS, SINGLE, NULL)                            \
    X(PRECISION, precision, LAYERS, LISTED, NULL)                              \
    X(BATCH_SHARES, shares, LAYERS, SINGLE, fr_set_shares)                     \
    X(VPP, vpp, PIPELINE, LISTED, NULL)                                        \
    X(SCHEDULE, schedule, PIPELINE, LISTED, NULL)                              \
    X(LAYER_SPLIT, split, PIPELINE, SINGLE, fr_set_split)                      \
    X(RECOMPUTE_LAYERS, recompute_layers, PIPELINE, LISTED, NULL)              \
    X(ZERO, zero, GRADIENTS, LISTED, NULL)                                     \
    X(ZERO_GROUP, zero_group, GRADIENTS, LISTED, NULL)                         \
    X(ZERO_RESHARD, reshard, GRADIENTS, SINGLE, NULL)                          \
    X(OFFLOAD_OPTIMIZER, offload, GRADIENTS, SINGLE, NULL)                     \
    X(COMPRESS, compressor, GRADIENTS, SINGLE, NULL)                           \
    X(OVERLAP, overlap, GRADIENTS, SINGLE, NULL)                               \
    X(GATHER_OVERLAP, gather, GRADIENTS, SINGLE, NULL)                         \
    X(BUCKET, bucket, GRADIENTS, LISTED, NULL)

typedef enum fr_plan_space_axis {
    FR_SPACE_AXIS_WORLD,
#define FR_SPACE_AXIS_ENUM(symbol, name, level, values, set)                   \
    FR_SPACE_AXIS_##symbol,
    FR_SPACE_AXES(FR_SPACE_AXIS_ENUM)
#undef FR_SPACE_AXIS_ENUM
        FR_SPACE_AXIS_N
} fr_plan_space_axis;

/* Plan fields that the user has fixed: bits of fr_plan_space_request.pins. */
#define FR_PIN(symbol) (UINT64_C(1) << FR_PLAN_##symbol)
/* Only fields that are axes, and dp, are ever chosen: these are their bits. */
#define FR_PIN_OR(symbol, name, level, values, set) | FR_PIN(symbol)
#define FR_PINS_ALL (FR_PIN(DP) FR_SPACE_AXES(FR_PIN_OR))

/* The values of an axis that the user has named; n is 0 if there are none. */
#define FR_RANGE_VALUES 16
typedef struct fr_axis_range {
    int n;
    int64_t at[FR_RANGE_VALUES];
} fr_axis_range;

typedef struct fr_balance fr_balance;

typedef struct fr_plan_space_request {
    const fr_model *model;
    const fr_job *job;
    const fr_cluster *cluster;
    fr_plan base;          /* has the pinned fields and all that is no axis */
    uint64_t pins;         /* FR_PIN() */
    int64_t world;         /* 0: every divisor of the cluster's slots */
    int64_t most_nodes;    /* only so many first nodes are used; 0: all */
    bool is_any_nodes;     /* world 0: also other numbers of whole nodes */
    bool allow_lossy;      /* compressors, precision */
    double fit_confidence; /* plans that are less likely to fit do not; 0: those
                              that are more likely not to */
    double most_calls;     /* passes over layers that may be written out for one
                              simulation; 0: as many as fit */
    const fr_axis_range *ranges; /* [FR_SPACE_AXIS_N]; NULL: none */
    const fr_target *target;     /* its rules hold too; NULL: none */
    int target_version;
    const fr_log *log; /* of searches: progress, cancellation; NULL: none */
    /* Finds balanced splits (balance_layers.h), which are then values; NULL:
     * they are not. */
    fr_balance *balance;
} fr_plan_space_request;

/* Values of one axis given the axes before it. */
#define FR_SPACE_VALUES 256
typedef struct fr_plan_space_values {
    int n;
    int64_t at[FR_SPACE_VALUES];
} fr_plan_space_values;

/* The field of the plan that an axis is; WORLD: FR_PLAN_FIELDS_N, none. */
extern const fr_plan_field_id fr_space_axis_fields[FR_SPACE_AXIS_N];

/* One row per axis. */
typedef struct fr_plan_space_axis_row {
    fr_decision_level level;
    bool is_listed; /* may the user name several values? */
    void (*list)(const fr_plan_space_request *request, const fr_plan *plan,
                 fr_plan_space_values *values);
    /* NULL: the field gets the value. */
    void (*set)(const fr_plan_space_request *request, fr_plan *plan,
                int64_t value);
} fr_plan_space_axis_row;

extern const fr_plan_space_axis_row fr_plan_space_axes[FR_SPACE_AXIS_N];

enum { FR_CANDIDATE_WORDS = (FR_SPACE_AXIS_N + 7) / 8 };
typedef union fr_candidate {
    uint8_t choice[FR_SPACE_AXIS_N];
    uint64_t words[FR_CANDIDATE_WORDS]; /* the same, and zeros after it */
} fr_candidate;

typedef struct fr_plan_space {
    fr_plan_space_request request;
    fr_vec(fr_candidate) plans;
    uint64_t n_illegal; /* combinations that fr_plan_check refused */
} fr_plan_space;

/* Called for every illegal combination with the reason; may be NULL. */
typedef void (*fr_illegal_fn)(void *context, const char *reason);

/* Walks all combinations; borrows what the request points at. */
FR_CHECKED fr_status fr_plan_space_create(const fr_plan_space_request *request,
                                          fr_illegal_fn on_illegal,
                                          void *context, fr_plan_space *out,
                                          fr_err *err);
void fr_plan_space_release(fr_plan_space *space);

/* The plan of a candidate. */
void fr_plan_space_plan(const fr_plan_space_request *request,
                        const fr_candidate *candidate, fr_plan *out);

/* The choices of one decision level and those before it, by number and by
 * value. */
typedef struct fr_plan_space_choice {
    fr_candidate candidate; /* 0 on the axes of other levels */
    int64_t value[FR_SPACE_AXIS_N];
} fr_plan_space_choice;

typedef fr_vec(fr_plan_space_choice) fr_plan_space_choices;

/*
 * Appends the legal choices of a decision level to `out`, in order.  `plan` has
 * those of LAYERS, or is the base for LAYERS themselves.  on_illegal as above.
 */
FR_CHECKED fr_status fr_plan_space_list(const fr_plan_space_request *request,
                                        fr_decision_level level,
                                        const fr_plan *plan,
                                        fr_illegal_fn on_illegal, void *context,
                                        fr_plan_space_choices *out,
                                        fr_err *err);

/*
 * The same of LAYERS until that time of fr_clock_s() (0: all), a little later
 * while there is none, the largest worlds first; *is_cut: they may not be all.
 */
FR_CHECKED fr_status
fr_plan_space_list_until(const fr_plan_space_request *request, double until_s,
                         fr_illegal_fn on_illegal, void *context,
                         fr_plan_space_choices *out, bool *is_cut, fr_err *err);

/* Makes the choices of a decision level in *plan, which has those of LAYERS. */
void fr_plan_space_set(const fr_plan_space_request *request,
                       fr_decision_level level,
                       const fr_plan_space_choice *choice, fr_plan *plan);

/* The same where *plan has the choice `from` of the level already. */
void fr_plan_space_change(const fr_plan_space_request *request,
                          fr_decision_level level,
                          const fr_plan_space_choice *from,
                          const fr_plan_space_choice *to, fr_plan *plan);

/* One choice of each decision level; all of the same LAYERS. */
void fr_candidate_join(const fr_candidate *layers, const fr_candidate *pipeline,
                       const fr_candidate *gradients, fr_candidate *out);

/* Choice by choice, as the space counts them. */
int fr_candidate_compare(const fr_candidate *a, const fr_candidate *b);

#endif
