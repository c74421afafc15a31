/* schedule_report.h: one run with faults on purpose as text and JSON. */
#ifndef FR_REPORT_GOODPUT_SCHEDULE_REPORT_H
#define FR_REPORT_GOODPUT_SCHEDULE_REPORT_H

#include "core/base/buffer.h"
#include "core/document/json.h"
#include "spec/result/goodput.h"

typedef struct fr_schedule_told {
    fr_schedule_result result;
    double step_s; /* undisturbed */
    int64_t n_steps, every_steps;
    double blocked_s, restart_s;
} fr_schedule_told;

FR_CHECKED fr_status fr_report_schedule_text(const fr_schedule_told *told,
                                             fr_buffer *out, fr_err *err);
/* As members of an object that is open. */
void fr_report_schedule_json(const fr_schedule_told *told,
                             fr_json_writer *json);

#endif
