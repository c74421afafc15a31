/* schedule_report.h: the answer about one run with faults on purpose. */
#ifndef FR_REPORT_GOODPUT_SCHEDULE_REPORT_H
#define FR_REPORT_GOODPUT_SCHEDULE_REPORT_H

#include "report/document/document.h"
#include "spec/result/goodput.h"

typedef struct fr_schedule_told {
    fr_schedule_result result;
    double step_s; /* undisturbed */
    int64_t n_steps, every_steps;
    double blocked_s, restart_s;
} fr_schedule_told;

void fr_report_schedule(const fr_schedule_told *told, fr_document *out);

#endif
