/*
 * metrics.h: how a training run goes, for other programs: a line of JSON a
 * step, and the text that Prometheus reads (docs/monitoring.md has the keys).
 */
#ifndef FR_REPORT_RUN_METRICS_H
#define FR_REPORT_RUN_METRICS_H

#include "core/base/buffer.h"
#include "spec/run/step_record.h"

typedef struct fr_metrics_state {
    /* Factors that turn the time of a step into rates. */
    double tokens_per_step; /* without tokens: samples */
    double count_per_step;  /* of `counted` (fr_model_counted) */
    const char *counted;
    /* The step if the devices did the model's flop at their peak, nothing
     * else (mfu times step time of the prediction); 0: not known. */
    double ideal_step_s;
    int64_t n_done;          /* steps of this process; 0: `last` says nothing */
    fr_step_record last;     /* the last step, ... */
    double unix_s;           /* over so many seconds after 1970 */
    uint64_t received_bytes; /* by all steps */
    double saving_s;         /* before all of them */
} fr_metrics_state;

/* One more step is over. */
void fr_metrics_add(fr_metrics_state *state, const fr_step_record *record,
                    double unix_s);

/* Appends the last step as a line of JSON; all as text for Prometheus. */
void fr_metrics_line(const fr_metrics_state *state, fr_buffer *out);
void fr_metrics_text(const fr_metrics_state *state, fr_buffer *out);

#endif
