/*
 * predict_busy.h: for how much of a step devices compute, which is when they
 * draw their full power.
 */
#ifndef FR_SIM_PREDICT_PREDICT_BUSY_H
#define FR_SIM_PREDICT_PREDICT_BUSY_H

#include "sim/replay/replay.h"
#include "spec/result/prediction.h"

/*
 * Sets out->busy_frac, (0, 1]: the calls of the compute lane at what each takes
 * alone, without communication, as a mean over all ranks, over out->step_s.  On
 * CPUs, whose cores wait by spinning, it is 1.
 */
FR_CHECKED fr_status fr_predict_busy(fr_replay_context *context,
                                     fr_prediction *out, fr_err *err);

#endif
