/*
 * estimate_search.h: all plans of a search, estimated one after the other.
 */
#ifndef FR_BENCH_ESTIMATE_SEARCH_H
#define FR_BENCH_ESTIMATE_SEARCH_H

#include "sim/bound/estimate.h"

typedef struct fr_estimate_job {
    const fr_model *model;
    const fr_job *job;
    const fr_cluster *cluster;
    const fr_cost_model *costs;
} fr_estimate_job;

/*
 * Every legal plan of `world` GPUs out of 460,800 combinations, from an empty
 * table on: microseconds of each on average, lowering and those that are
 * refused included.
 */
FR_CHECKED fr_status fr_estimate_search(const fr_estimate_job *of,
                                        int64_t world, double *out_us,
                                        fr_err *err);

#endif
