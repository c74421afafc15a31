/*
 * run_length_report.h: a whole run at a predicted step time: nodes, days, cost,
 * energy, and what none of them counts.
 */
#ifndef FR_REPORT_RUN_RUN_LENGTH_REPORT_H
#define FR_REPORT_RUN_RUN_LENGTH_REPORT_H

#include "core/document/json.h"
#include "report/table.h"

/* What a run is predicted without; energy alone, where has_no_switches. */
#define FR_RUN_IS_WITHOUT "failures, restarts, evaluation"
#define FR_RUN_ENERGY_IS_WITHOUT "switches of the network"

typedef struct fr_run_length {
    double n_steps, n_tokens; /* 0: not shown */
    double seconds, usd, kwh; /* usd, kwh 0: not known */
    int64_t n_nodes, n_devices;
    bool has_no_switches; /* nobody said what those of the network draw */
} fr_run_length;

/* A table of runs: the headings, a row, the lines below it. */
void fr_run_length_begin(fr_table *table);
void fr_run_length_row(const char *label, const fr_run_length *run,
                       fr_table *table);
void fr_run_length_legend(bool has_no_switches, fr_buffer *out);

/* The run of one plan: a blank line, and the table with its legend. */
FR_CHECKED fr_status fr_report_run_length_text(const fr_run_length *run,
                                               fr_buffer *out, fr_err *err);
/* The member "run" of an object that is open, and what it is without. */
void fr_report_run_length_json(const fr_run_length *run, fr_json_writer *json);

#endif
