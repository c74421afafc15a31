/*
 * setup_report.h: what a prediction is of, above its numbers: batch, sequence,
 * ranks, and whose habits the plan has where nobody said otherwise.
 */
#ifndef FR_REPORT_SETUP_REPORT_H
#define FR_REPORT_SETUP_REPORT_H

#include "plan/decide/plan.h"
#include "report/document/document.h"
#include "spec/cluster/cluster.h"

/* All that is not the plan's one line. */
typedef struct fr_report_setup {
    const fr_model *model;
    const fr_job *job;
    const fr_plan *plan;
    const fr_cluster *cluster;
    const char *framework; /* name, "": none was named */
} fr_report_setup;

/* The number of parameters that the reader of the model's file has understood,
 * and how many a token uses; the member "model". */
void fr_report_put_model(const fr_report_setup *at, fr_document *out);

/* A line with batch, sequence, ranks of how many, precision, kernels and
 * jitter, of GPUs another with the framework and its habits; the member
 * "setup". */
void fr_report_put_setup(const fr_report_setup *setup, fr_document *out);

/* The same line, for several predictions, of what they have in common: without
 * ranks, and with batch and sequence only if these are the same. */
void fr_report_put_common_setup(const fr_report_setup *setup, bool has_batch,
                                bool has_seq, fr_document *out);

/* "power_cap_w" of an object that is open, where the devices have a cap. */
void fr_report_power_cap_json(const fr_cluster *cluster, fr_json_writer *json);

#endif
