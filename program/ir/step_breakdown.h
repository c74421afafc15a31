/*
 * step_breakdown.h: a timeline's step time by part, for measured and for
 * simulated timelines alike: the same code for both, so that they can be laid
 * beside each other.
 *
 * It looks at the rank that ends last.  What its compute lane does goes to
 * the part of the instruction; while the compute lane stands still, the chain
 * of what its next call waits for is followed back over the other lanes:
 * waiting for a peer that has not begun to send is bubble, the transfer after
 * that is exposed communication, and what no lane accounts for is the host's,
 * which has not issued what could run.  In a collective the wait for members
 * of the same stage, late by themselves or by jitter, is stragglers, that for
 * other stages bubble; only simulated spans tell it from the collective.
 */
#ifndef FR_PROGRAM_IR_STEP_BREAKDOWN_H
#define FR_PROGRAM_IR_STEP_BREAKDOWN_H

#include "program/ir/program.h"
#include "spec/result/prediction.h"
#include "spec/result/timeline.h"

/* The part that an instruction's own time belongs to. */
fr_part fr_step_part_of(const fr_instr *instr);

/*
 * Breaks down step `step` of the timeline.  The parts add up to *step_s, the
 * time from the begin of the step to the last end.  FR_INPUT when the step has
 * no spans or they do not belong to the program.
 */
FR_CHECKED fr_status fr_step_breakdown(const fr_program *program,
                                       const fr_timeline *timeline,
                                       int32_t step,
                                       double breakdown_s[FR_PART_N],
                                       double *step_s, fr_err *err);

/*
 * Mean over all steps of the timeline, scaled so that it adds up to `step_s`
 * (0: not scaled).
 */
FR_CHECKED fr_status fr_step_breakdown_mean(const fr_program *program,
                                            const fr_timeline *timeline,
                                            double step_s,
                                            double breakdown_s[FR_PART_N],
                                            fr_err *err);

/* The recorded step whose length is the median; -1: there is none. */
int32_t fr_step_median(const fr_timeline *timeline);

#endif
