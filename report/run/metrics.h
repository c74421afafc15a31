/*
 * metrics.h: a step of a training run for other programs: a line of JSON
 * (docs/monitoring.md has the keys).
 */
#ifndef FR_REPORT_RUN_METRICS_H
#define FR_REPORT_RUN_METRICS_H

#include "core/base/buffer.h"
#include "spec/result/step_record.h"

/* What turns the time of a step into rates. */
typedef struct fr_metrics_scale {
    double tokens_per_step;
    /* The step if the devices did the model's flop at their peak, nothing
     * else (mfu times step time of the prediction); 0: not known. */
    double ideal_step_s;
} fr_metrics_scale;

/* Appends the line of a record, taken unix_s seconds after 1970. */
void fr_metrics_line(const fr_metrics_scale *scale,
                     const fr_step_record *record, double unix_s,
                     fr_buffer *out);

#endif
