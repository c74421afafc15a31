/*
 * goodput_inject.h: goodput --inject: what is predicted of one run with faults
 * on purpose, the words of run --inject.
 */
#ifndef FR_API_GOODPUT_GOODPUT_INJECT_H
#define FR_API_GOODPUT_GOODPUT_INJECT_H

#include "api/inputs.h"
#include "report/goodput/schedule_report.h"

/*
 * `inputs` is changed while steps are predicted and given back as it was.
 * FR_USAGE: words that make no sense, or options that go with other runs.
 */
FR_CHECKED fr_status fr_goodput_inject(const fr_request *request,
                                       fr_inputs *inputs,
                                       const fr_plan_file *file, double step_s,
                                       fr_schedule_told *out, fr_err *err);

#endif
