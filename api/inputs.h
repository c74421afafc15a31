/*
 * inputs.h: the cluster and the profile that a request names, the cost model
 * made from them, and predictions with it.
 */
#ifndef FR_API_INPUTS_H
#define FR_API_INPUTS_H

#include "api/request/request.h"
#include "core/base/buffer.h"
#include "cost_models/base/cost.h"
#include "plan/decide/plan_json.h"
#include "program/ir/program.h"
#include "spec/result/prediction.h"
#include "spec/result/timeline.h"

typedef struct fr_inputs {
    fr_cluster cluster;
    const char *cluster_word; /* as the user named it */
    fr_profile profile;
    bool has_cluster, has_profile;
    fr_cost_model *costs;
    int64_t ranks_per_node; /* 0: as many as there are cores for */
    const fr_log *log;      /* can cancel predictions; NULL: nothing does */
} fr_inputs;

/*
 * Loads the cluster and --profile, and makes the cost model.  A note says that
 * there is no profile, or that it was measured on another machine.
 * fr_inputs_release() frees, also after a failure.
 */
FR_CHECKED fr_status fr_inputs_load(const fr_request *request,
                                    const char *cluster, fr_inputs *out,
                                    fr_err *err);
void fr_inputs_release(fr_inputs *inputs);

/* An input file that cannot be read is a bad input file: exit 5, not 1. */
fr_status fr_as_input(fr_status status, fr_err *err);

/* Loads the model of that name and notes the parts of its file that are not
 * counted.  fr_model_release() frees it. */
FR_CHECKED fr_status fr_inputs_load_model(const fr_request *request,
                                          const char *name, fr_model *out,
                                          fr_err *err);

/* Loads a plan file.  Where the path is that of a model, or its name, the error
 * says so, and how a plan is made of it for `cluster` ("this-machine"). */
FR_CHECKED fr_status fr_inputs_load_plan(const fr_request *request,
                                         const char *path, const char *cluster,
                                         fr_plan_file *out, fr_err *err);

/* One plan lowered and simulated. */
typedef struct fr_forecast {
    fr_program *program;
    fr_timeline timeline;
    fr_prediction prediction;
} fr_forecast;

/* FR_INPUT: illegal plan; FR_INFEASIBLE: more ranks than the cluster has
 * places for.  fr_forecast_release() frees, also after a failure. */
FR_CHECKED fr_status fr_forecast_make(const fr_inputs *inputs,
                                      const fr_model *model, const fr_job *job,
                                      const fr_plan *plan, fr_forecast *out,
                                      fr_err *err);
/* The prediction alone, without the memory that a timeline takes. */
FR_CHECKED fr_status fr_forecast_predict(const fr_inputs *inputs,
                                         const fr_model *model,
                                         const fr_job *job, const fr_plan *plan,
                                         fr_prediction *out, fr_err *err);
/* Predicts the plan of a file; where the file was made for this cluster, its
 * placement counts, and inputs->ranks_per_node changes to it.  A timeline of
 * thousands of ranks takes longer than all the rest. */
FR_CHECKED fr_status fr_forecast_make_file(fr_inputs *inputs,
                                           const fr_plan_file *file,
                                           bool has_timeline, fr_forecast *out,
                                           fr_err *err);
void fr_forecast_release(fr_forecast *forecast);

/* Lowers the plan of a file; node_of_rank[world] gets the node of each rank. */
FR_CHECKED fr_status fr_inputs_lower_file(fr_inputs *inputs,
                                          const fr_plan_file *file,
                                          int32_t *node_of_rank,
                                          fr_program **out, fr_err *err);

/*
 * The name and the hash are of the cluster that a plan file was made for.  If
 * it is another cluster than that of `inputs`, the first function puts this
 * before the error that follows from it, and the second passes a note.  They do
 * nothing if it is the same cluster, or is not known.
 */
void fr_inputs_prefix_wrong_cluster(const fr_inputs *inputs,
                                    const char *cluster, uint64_t hash,
                                    fr_err *err);
void fr_inputs_note_wrong_cluster(const fr_request *request,
                                  const fr_inputs *inputs, const char *cluster,
                                  uint64_t hash);

/* Writes the simulated step as a Chrome trace. */
FR_CHECKED fr_status fr_forecast_write_trace(const fr_forecast *forecast,
                                             const char *path, fr_err *err);

#endif
