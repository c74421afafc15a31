/*
 * run_length_report.h: a whole run at a predicted step time: nodes, days, cost,
 * energy, and what none of them counts.
 */
#ifndef FR_REPORT_RUN_LENGTH_REPORT_H
#define FR_REPORT_RUN_LENGTH_REPORT_H

#include "report/document/document.h"
#include "spec/result/run_outlook.h"

/* The part that predicted energy lacks if lacks_switches. */
#define FR_RUN_ENERGY_IS_WITHOUT "switches of the network"

typedef struct fr_run_length {
    double n_steps, n_tokens; /* 0: not shown */
    fr_run_outlook outlook;
    int64_t n_nodes, n_devices;
    fr_run_counts counts;
    bool has_tokens; /* n_tokens are samples otherwise */
} fr_run_length;

/* A table of runs: the headings, a row, the lines below it. */
fr_table *fr_run_length_begin(const fr_run_counts *counts, fr_document *out);
void fr_run_length_row(const char *label, const fr_run_length *run,
                       fr_table *table);
/* "best: about 9.34 interruptions; checkpoints async ...", where a run is
 * interrupted. */
void fr_run_way_text(const char *label, const fr_run_length *run,
                     fr_document *out);
/* Prints the cost and the energy that 95 of 100 runs do not exceed; nothing if
 * they are not known. */
void fr_run_most_text(const char *label, const fr_run_length *run,
                      fr_document *out);
void fr_run_length_legend(const fr_run_counts *counts, fr_document *out);

/* Adds the quantities that are included, and those that are not; no end of
 * line.
 */
void fr_run_counts_text(const fr_run_counts *counts, fr_document *out);
/* Members "seconds", "usd" ... of an object that is open. */
void fr_run_outlook_json(const fr_run_outlook *outlook, fr_json_writer *json);
/* "run_is_without", "run_failures" and what belongs to them. */
void fr_run_counts_json(const fr_run_counts *counts, fr_json_writer *json);

/* The run of one plan: a blank line, and the table with its legend; the member
 * "run", and what it is without. */
void fr_report_run_length(const fr_run_length *run, fr_document *out);

#endif
