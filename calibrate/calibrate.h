/*
 * calibrate.h: measures a machine, or a job over several, into a profile.
 *
 * What is timed are the runtime's own kernels on the shapes that candidate
 * plans of the models need, and its own collectives and transfers; never a
 * plan.  docs/calibration.md says how, and what the numbers mean.  GPUs:
 * calibrate_gpu.h.
 */
#ifndef FR_CALIBRATE_CALIBRATE_H
#define FR_CALIBRATE_CALIBRATE_H

#include "core/base/log.h"
#include "runtime/comm/transport.h"
#include "spec/model/job.h"
#include "spec/model/model.h"
#include "spec/profile/profile.h"

/* A model and a job whose candidate plans say what to time. */
typedef struct fr_calibrate_case {
    const fr_model *model;
    const fr_job *job; /* batch, sequence; its optimizer and all others */
} fr_calibrate_case;

typedef struct fr_calibrate_options {
    const fr_calibrate_case *cases; /* none: link, memory, storage only */
    size_t n_cases;
    bool is_quick;           /* a third of the time, no compressors */
    double budget_s;         /* 0: 45 s, quick 15 s; a goal, not a promise */
    double timeout_s;        /* of a wait for another rank; 0: 60 s */
    const char *scratch_dir; /* for the storage test; NULL: none is done */
    const fr_log *log;       /* progress, disturbances; NULL: silence */
} fr_calibrate_options;

/*
 * Runs in a process that a launcher started, or alone: joins a world of
 * n_ranks (1: no MPI) and measures.  Every rank calls it with the same
 * options; rank 0's *out is the profile (fr_profile_release() it), elsewhere
 * it is left empty.  *is_first says which this is.
 */
FR_CHECKED fr_status fr_calibrate(const fr_calibrate_options *options,
                                  int64_t n_ranks, fr_profile *out,
                                  bool *is_first, fr_err *err);

/* The same over a transport that is there; collective. */
FR_CHECKED fr_status fr_calibrate_over(fr_transport *transport,
                                       const fr_calibrate_options *options,
                                       fr_profile *out, fr_err *err);

/* Says in the profile what is measured: machine, nodes, models. */
void fr_calibrate_name(const fr_calibrate_options *options,
                       const fr_transport *transport, fr_profile *profile);

/* Fits against the held-out points of a finished profile: adds held_out. */
FR_CHECKED fr_status fr_calibrate_hold_out(fr_profile *profile, fr_err *err);

#endif
