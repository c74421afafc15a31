/*
 * trace_losses.h: where the time of a step went, rank by rank, from traces:
 * forerun's own (a file has all its ranks) and PyTorch's (a file a rank).
 *
 * Each moment of a rank counts once, for the first of these that is under way
 * then: compute, the optimizer, collectives, send and receive, data.  So
 * collectives beside compute cost nothing: what is counted is exposed.  While
 * a stage waits in its pipeline it has a receive under way, so that bubbles
 * stand with send and receive.  Where nothing is under way the device waits
 * for its host.
 */
#ifndef FR_INTEROP_TRACE_TRACE_LOSSES_H
#define FR_INTEROP_TRACE_TRACE_LOSSES_H

#include "core/document/names.h"
#include "interop/trace/trace.h"
#include "spec/result/prediction.h"

typedef enum fr_loss {
    FR_LOSS_COMPUTE,
    FR_LOSS_OPTIMIZER,
    FR_LOSS_COLLECTIVES,
    FR_LOSS_PIPELINE,
    FR_LOSS_DATA,
    FR_LOSS_IDLE,
    FR_LOSS_N
} fr_loss;

extern const fr_names fr_loss_names; /* JSON keys */
const char *fr_loss_title(fr_loss loss);

/* Seconds of one step: the mean over those that the trace has. */
typedef struct fr_loss_rank {
    int64_t rank; /* as the trace says, else the place among the files */
    double step_s, time_s[FR_LOSS_N];
} fr_loss_rank;

/* The marks by which steps begin and end. */
typedef enum fr_step_marks {
    FR_STEPS_UNKNOWN,   /* all is one */
    FR_STEPS_MARKED,    /* by the profiler's step() */
    FR_STEPS_OPTIMIZER, /* from one update of the optimizer to the next */
    FR_STEPS_N
} fr_step_marks;
extern const fr_names fr_step_marks_names; /* JSON values */

typedef struct fr_losses {
    fr_loss_rank *ranks; /* in the order of the rank */
    size_t n;
    uint64_t n_steps; /* of the first rank */
    fr_step_marks steps_by;
    bool is_cpu; /* operators of a CPU: a trace without kernels */
    double step_s, time_s[FR_LOSS_N]; /* means over the ranks */
} fr_losses;

/* Does it begin like a trace?  False too where it cannot be read. */
bool fr_trace_is_file(const char *path);

/*
 * Files, or folders of files (*.json, *.json.gz, *.trace, *.sqlite,
 * *.et).  Where forerun's
 * trace has what was predicted and what was measured, is_predicted says which.
 * FR_INPUT "path: ..." where one is no trace.  fr_losses_release() frees.
 */
FR_CHECKED fr_status fr_losses_load(const char *const *paths, size_t n,
                                    bool is_predicted, fr_losses *out,
                                    fr_err *err);
void fr_losses_release(fr_losses *losses);

/*
 * The rank whose compute takes longest against what is predicted for it, and
 * by how much over the median rank.  Ranks of different stages do not do the
 * same: where the prediction has several ranks, a rank is held against its own
 * one or, since ranks that do the same are predicted as one, against the one
 * before it.
 */
typedef struct fr_slow_rank {
    int64_t rank;
    double ratio; /* 1: no slower than the median */
} fr_slow_rank;
FR_CHECKED fr_status fr_losses_slowest(const fr_losses *predicted,
                                       const fr_losses *measured,
                                       fr_slow_rank *out, fr_err *err);

/* The parts of a prediction in these words: one rank, the critical path. */
FR_CHECKED fr_status fr_losses_of_parts(double step_s,
                                        const double parts_s[FR_PART_N],
                                        fr_losses *out, fr_err *err);

#endif
