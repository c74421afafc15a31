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

#include "core/base/vec.h"
#include "plan/decide/plan.h"
#include "spec/cluster/cluster.h"
#include "tuner/space/decision_levels.h"
#include "tuner/space/frameworks.h"

typedef enum fr_plan_space_axis {
    FR_SPACE_AXIS_WORLD,
    FR_SPACE_AXIS_THREADS,
    FR_SPACE_AXIS_CP,
    FR_SPACE_AXIS_TP,
    FR_SPACE_AXIS_PP, /* and with it dp */
    FR_SPACE_AXIS_EP,
    FR_SPACE_AXIS_ETP,
    FR_SPACE_AXIS_RANK_ORDER,
    FR_SPACE_AXIS_MICRO_BATCH,
    FR_SPACE_AXIS_CP_KIND,
    FR_SPACE_AXIS_SEQUENCE_PARALLEL,
    FR_SPACE_AXIS_TP_OVERLAP,
    FR_SPACE_AXIS_RECOMPUTE,
    FR_SPACE_AXIS_EP_OVERLAP,
    FR_SPACE_AXIS_PRECISION,
    FR_SPACE_AXIS_VPP,
    FR_SPACE_AXIS_SCHEDULE,
    FR_SPACE_AXIS_SPLIT,
    FR_SPACE_AXIS_RECOMPUTE_LAYERS,
    FR_SPACE_AXIS_ZERO,
    FR_SPACE_AXIS_ZERO_GROUP,
    FR_SPACE_AXIS_RESHARD,
    FR_SPACE_AXIS_OFFLOAD,
    FR_SPACE_AXIS_COMPRESSOR,
    FR_SPACE_AXIS_OVERLAP,
    FR_SPACE_AXIS_GATHER,
    FR_SPACE_AXIS_BUCKET,
    FR_SPACE_AXIS_N
} fr_plan_space_axis;

/* Plan fields that the user has fixed: bits of fr_plan_space_request.pins. */
typedef enum fr_pin {
    FR_PIN_DP = 1 << 0,
    FR_PIN_TP = 1 << 1,
    FR_PIN_PP = 1 << 2,
    FR_PIN_VPP = 1 << 3,
    FR_PIN_MICRO_BATCH = 1 << 4,
    FR_PIN_SCHEDULE = 1 << 5,
    FR_PIN_SPLIT = 1 << 6,
    FR_PIN_RECOMPUTE = 1 << 7,
    FR_PIN_SEQUENCE_PARALLEL = 1 << 8,
    FR_PIN_ZERO = 1 << 9,
    FR_PIN_COMPRESSOR = 1 << 10,
    FR_PIN_OVERLAP = 1 << 11,
    FR_PIN_BUCKET = 1 << 12,
    FR_PIN_RANK_ORDER = 1 << 13,
    FR_PIN_PRECISION = 1 << 14,
    FR_PIN_THREADS = 1 << 15,
    FR_PIN_CP = 1 << 16,
    FR_PIN_EP = 1 << 17,
    FR_PIN_ETP = 1 << 18,
    FR_PIN_CP_KIND = 1 << 19,
    FR_PIN_TP_OVERLAP = 1 << 20,
    FR_PIN_RECOMPUTE_LAYERS = 1 << 21,
    FR_PIN_ZERO_GROUP = 1 << 22,
    FR_PIN_RESHARD = 1 << 23,
    FR_PIN_OFFLOAD = 1 << 24,
    FR_PIN_GATHER = 1 << 25,
    FR_PIN_EP_OVERLAP = 1 << 26
} fr_pin;

/* Values of an axis that the user has named; n == 0: none. */
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
    fr_plan base;       /* pinned fields; what is no axis stays as here */
    unsigned pins;      /* fr_pin */
    int64_t world;      /* 0: every divisor of the cluster's slots */
    int64_t most_nodes; /* that are there: the first ones; 0: all */
    bool is_any_nodes;  /* world 0: also other numbers of whole nodes */
    bool allow_lossy;   /* compressors, precision */
    const fr_axis_range *ranges;         /* [FR_SPACE_AXIS_N]; NULL: none */
    const fr_framework_rules *framework; /* that hold too; NULL: none */
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

/* One row per axis. */
typedef struct fr_plan_space_axis_row {
    const char *name;
    fr_decision_level level;
    void (*list)(const fr_plan_space_request *request, const fr_plan *plan,
                 fr_plan_space_values *values);
    void (*set)(const fr_plan_space_request *request, fr_plan *plan,
                int64_t value);
} fr_plan_space_axis_row;

extern const fr_plan_space_axis_row fr_plan_space_axes[FR_SPACE_AXIS_N];

typedef struct fr_candidate {
    uint8_t choice[FR_SPACE_AXIS_N];
} fr_candidate;

typedef struct fr_plan_space {
    fr_plan_space_request request;
    fr_candidate *at;
    size_t n, cap;
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

/* Makes the choices of a decision level in *plan, which has those of LAYERS. */
void fr_plan_space_set(const fr_plan_space_request *request,
                       fr_decision_level level,
                       const fr_plan_space_choice *choice, fr_plan *plan);

/* One choice of each decision level; all of the same LAYERS. */
void fr_candidate_join(const fr_candidate *layers, const fr_candidate *pipeline,
                       const fr_candidate *gradients, fr_candidate *out);

/* Choice by choice, as the space counts them. */
int fr_candidate_compare(const fr_candidate *a, const fr_candidate *b);

#endif
