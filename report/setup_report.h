/*
 * setup_report.h: what a prediction is of, above its numbers: batch, sequence,
 * ranks, and whose habits the plan has where nobody said otherwise.
 */
#ifndef FR_REPORT_SETUP_REPORT_H
#define FR_REPORT_SETUP_REPORT_H

#include "core/document/json.h"
#include "plan/decide/plan.h"
#include "spec/cluster/cluster.h"

/* All that is not the plan's one line. */
typedef struct fr_report_setup {
    const fr_model *model;
    const fr_job *job;
    const fr_plan *plan;
    const fr_cluster *cluster;
    const char *framework; /* name, "": none was named */
} fr_report_setup;

/* Batch, sequence, ranks of how many, precision, kernels, jitter: a line; of
 * GPUs the framework and what it does: another; and as the member "setup" of
 * an object that is open. */
void fr_report_setup_text(const fr_report_setup *setup, fr_buffer *out);
void fr_report_setup_json(const fr_report_setup *setup, fr_json_writer *json);

/* "power_cap_w" of an object that is open, where the devices have a cap. */
void fr_report_power_cap_json(const fr_cluster *cluster, fr_json_writer *json);

#endif
