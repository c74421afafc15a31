/* goodput_report.h: the answer about a run of weeks. */
#ifndef FR_REPORT_GOODPUT_GOODPUT_REPORT_H
#define FR_REPORT_GOODPUT_GOODPUT_REPORT_H

#include "report/document/document.h"
#include "spec/result/goodput.h"
#include "spec/run/run_events.h"

#include <stdbool.h>

/* The conditions that a run was simulated with. */
typedef struct fr_goodput_setup {
    double step_s;
    double work_days;    /* of steps, undisturbed */
    double horizon_days; /* that are told of; 0: all */
    int64_t n_nodes, n_devices;
    int64_t n_backups, n_replicas;    /* of so many, are not waited for */
    double device_mtbf_s, job_mtbf_s; /* HUGE_VAL: no failures are known */
    bool is_mtbf_assumed, is_restart_assumed;
    double restart_s;
    const char *checkpoint_kind;
    int64_t every_steps; /* 0: only at the end */
    bool is_interval_best;
    uint64_t checkpoint_bytes;
    double blocked_s, drain_s;
    double storage_write_Bps, storage_read_Bps;
    bool is_storage_assumed;
    int64_t n_spares; /* -1: there always is one */
    double repair_s;
    int64_t least_nodes;      /* with fewer it waits; 0: it always does */
    double speed_without_one; /* of its steps, a node missing */
    fr_run_events events;
    bool is_spot;
    double spot_mtbf_s, spot_wait_s; /* of the job */
    double usd, kwh, kgco2e;         /* until it is done; 0: not known */
} fr_goodput_setup;

/* The run after one change of the conditions. */
typedef struct fr_goodput_change {
    const char *name; /* "checkpoints async" */
    double goodput;
    double finish_days_p50, finish_days_p95; /* HUGE_VAL: not finished */
    double usd;                              /* 0: not known */
} fr_goodput_change;

/* For readers: where the time goes, of so many days or seconds; parts of 0 are
 * left out. */
void fr_report_waterfall(const double shares[FR_RUN_PARTS], double amount,
                         const char *unit, fr_document *out);

void fr_report_goodput(const fr_goodput *goodput, const fr_goodput_setup *setup,
                       fr_document *out);
void fr_report_goodput_changes(const fr_goodput_change *changes, size_t n,
                               fr_document *out);

#endif
