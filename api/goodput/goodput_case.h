/*
 * goodput_case.h: a run of weeks as options, cluster and prediction make it:
 * what it meets, and what is said of that.
 */
#ifndef FR_API_GOODPUT_GOODPUT_CASE_H
#define FR_API_GOODPUT_GOODPUT_CASE_H

#include "api/inputs.h"
#include "interop/trace/spot_trace.h"
#include "reliability/run_hazards.h"
#include "reliability/run_replicas.h"
#include "report/goodput/goodput_report.h"
#include "tuner/study/elastic_speeds.h"

typedef struct fr_goodput_case {
    fr_run_conditions conditions;
    fr_run_request request;
    fr_run_hazards hazards; /* as a user said them */
    fr_goodput_setup setup; /* without the sums */
    fr_spot_spans spans;    /* that conditions borrow */
    fr_speeds speeds;       /* the same */
    double training_w;      /* of all nodes; 0: not known */
    double step_p95_factor; /* 95 of 100 steps take no more than so many times
                               the expected one */
} fr_goodput_case;

void fr_goodput_case_release(fr_goodput_case *run);

/* fr_goodput_case_release() frees, also after a failure.
 * FR_USAGE: options that cannot be read, or go with others; FR_INPUT: spot
 * nodes of which nobody knows how often they go. */
FR_CHECKED fr_status fr_goodput_case_make(const fr_request *request,
                                          const fr_inputs *inputs,
                                          const fr_plan_file *file,
                                          const fr_prediction *prediction,
                                          fr_goodput_case *out, fr_err *err);

/* Lets the runs of the case happen (run_replicas.h).  Their quantiles hold the
 * error of the predicted step, too, which is the same for all of them. */
FR_CHECKED fr_status fr_goodput_case_live(const fr_goodput_case *run,
                                          fr_goodput *out, fr_err *err);

/* Money, energy and carbon until the run is done, into the setup. */
void fr_goodput_case_sum(const fr_cluster *cluster, const fr_goodput *goodput,
                         fr_goodput_case *out);

/* Meets the hazards anew, after one of them has changed, and saves at the best
 * interval again if it did; spares, notice and a recorded presence stay. */
void fr_goodput_case_meet(const fr_cluster *cluster, fr_goodput_case *run);

#endif
