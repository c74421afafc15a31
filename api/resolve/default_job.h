/*
 * default_job.h: sizes on GPUs that nobody gave: the model's sequence, all of
 * the cluster, a batch that its ranks can share.  Clusters of CPUs keep the
 * small defaults of a job, which train in seconds.
 */
#ifndef FR_API_RESOLVE_DEFAULT_JOB_H
#define FR_API_RESOLVE_DEFAULT_JOB_H

#include "api/inputs.h"

/* On GPUs the model's longest sequence, at most 8192 tokens; on CPUs the job's,
 * at most that of the model. */
void fr_default_seq(const fr_model *model, const fr_cluster *cluster,
                    fr_job *job);

/* Sets the global batch, unless it was given, of a search over plans of up to
 * n_ranks: a sequence for each of them, or 32 samples of a model that is not a
 * decoder. */
void fr_default_batch(const fr_request *request, const fr_model *model,
                      const fr_cluster *cluster, int64_t n_ranks, fr_job *job);

/*
 * Sets the sizes of a single plan: the largest dp that is legal with the other
 * axes, and a global batch that is a multiple of its micro-batches.  What was
 * given stays; where no dp is legal 1 is left for fr_plan_check() to refuse.
 */
void fr_default_plan(const fr_request *request, const fr_inputs *inputs,
                     fr_plan_file *file);

/* Applies --ranks to a single plan: on CPUs dp follows it, unless the plan is
 * given by a file; FR_USAGE where the plan has another number of ranks. */
FR_CHECKED fr_status fr_default_ranks(const fr_request *request,
                                      const fr_inputs *inputs, bool is_given,
                                      fr_plan *plan, fr_err *err);

#endif
