/*
 * sweep_points.h: --vary KEY=A,B,... as the cases of a sweep.  A key is a
 * knob of the cluster (cluster_knobs.h), an option of the plan or the
 * job (options.h), "model" or "ranks".
 */
#ifndef FR_API_SWEEP_SWEEP_POINTS_H
#define FR_API_SWEEP_SWEEP_POINTS_H

#include "api/inputs.h"
#include "api/request/request.h"
#include "api/resolve/plan_choice.h"
#include "tuner/study/run_sweep.h"

/* A cluster with some knobs turned. */
typedef struct fr_sweep_variant {
    fr_cluster cluster;
    fr_cost_model *costs; /* NULL: it cannot be so */
    char why[320];
} fr_sweep_variant;

typedef struct fr_sweep_points {
    fr_sweep sweep;
    fr_model *models; /* one, or one for each value of "model" */
    size_t n_models;
    fr_sweep_variant *variants; /* one for each choice of all knobs */
    size_t n_variants;
    fr_sweep_case *cases;  /* [sweep.n_points] */
    fr_model *case_models; /* the same; what is in them belongs to `models` */
    int64_t n_usual_ranks; /* that the usual batch is for */
} fr_sweep_points;

/*
 * Reads request->repeats and makes keys, points and cases; the model is
 * positional 0, a plan file positional 2.  Everything is owned, inputs are
 * borrowed; fr_sweep_points_release() frees, also after a failure.  FR_USAGE:
 * a key or a value that cannot be.
 */
FR_CHECKED fr_status fr_sweep_points_make(const fr_request *request,
                                          const fr_inputs *inputs,
                                          fr_sweep_points *out, fr_err *err);
void fr_sweep_points_release(fr_sweep_points *points);

/* Fills one case from what the options make of its model and cluster. */
void fr_sweep_fill_case(const fr_request *request, const fr_plan_choice *choice,
                        fr_sweep_points *points, size_t i);
/* Room for the cases of all points. */
FR_CHECKED fr_status fr_sweep_make_cases(fr_sweep_points *points, fr_err *err);

/* Loads one more model into out->models. */
FR_CHECKED fr_status fr_sweep_load_model(const fr_request *request,
                                         const char *name, fr_sweep_points *out,
                                         fr_err *err);

/* Appends the values of "8..64*2", "1..4" or "200Gb/s" to the last key. */
FR_CHECKED fr_status fr_sweep_read_value(const char *text, fr_sweep *sweep,
                                         fr_err *err);

/* Name i of all keys of the command `sweep`, NULL past the last. */
const char *fr_sweep_key_name(const fr_command *sweep, int i);

#endif
