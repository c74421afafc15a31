/*
 * export_job.h: the job that a plan's files run: how long it is, when a batch
 * system ends it, and the checkpoints from which the next submission continues.
 * Parts that a program or a launcher has no word for are named at the top of
 * its file.
 */
#ifndef FR_FRAMEWORKS_WRITE_EXPORT_JOB_H
#define FR_FRAMEWORKS_WRITE_EXPORT_JOB_H

#include "frameworks/write/export.h"

/* The user's wishes, and the interval that suits the cluster. */
typedef struct fr_export_wish {
    double time_limit_s;        /* of a submission; 0: not given */
    const char *checkpoint_dir; /* NULL: not given */
    int64_t checkpoint_every;   /* steps; 0: not given */
    bool is_forced;      /* a limit within which the run cannot end is taken */
    double best_every_s; /* of steps between checkpoints, where failures are as
                            often as the cluster says; 0: not known */
} fr_export_wish;

/*
 * Fills in the checkpoints and the time limit of `request`: a folder and an
 * interval where the run is longer than the interval, or where one is wished
 * for.  FR_USAGE: the limit leaves no time between two checkpoints, or the
 * folder is none that a job finds.  FR_INFEASIBLE: the limit ends a run that
 * cannot continue.
 */
FR_CHECKED fr_status fr_export_choose_job(const fr_export_wish *wish,
                                          fr_export_request *request,
                                          fr_err *err);

/* Seconds that all steps are predicted to take; 0: nothing is predicted. */
double fr_export_run_s(const fr_export_request *request);

/* Minutes after which a batch system may end a submission: --time-limit, or
 * twice what is predicted for all steps and half an hour; 0: not known. */
int64_t fr_export_minutes(const fr_export_request *request);
/* Seconds before that, at which a program that can is asked to save: five
 * minutes, or a tenth of a short limit. */
double fr_export_margin_s(const fr_export_request *request);

/* Submissions of so many minutes that the run takes, each from the newest
 * checkpoint of the one before; 1: it ends within one, or none continues. */
int64_t fr_export_submissions(const fr_export_request *request);

/* Has the plan checkpoints that its program saves? */
bool fr_export_has_checkpoints(const fr_export_request *request);

/* The longest time limit that is written, which Slurm takes. */
enum { FR_EXPORT_MINUTES_MAX = 1000000 };

/* Warnings for the user, a line each: options without an effect, and a run that
 * cannot end in time. */
void fr_export_put_warnings(const fr_export_wish *wish,
                            const fr_export_request *request, fr_buffer *out);

/* The lines of the header, each behind `prefix`: the job; under `left` the
 * parts of it that neither the program's files nor the launcher's have; and
 * under `unknown` what depends on a cluster or a prediction that there is not.
 */
void fr_export_put_job(const fr_export_request *request, const char *prefix,
                       fr_buffer *out);
void fr_export_put_left(const fr_export_request *request, const char *prefix,
                        fr_buffer *out);
void fr_export_put_unknown(const fr_export_request *request, const char *prefix,
                           fr_buffer *out);

/* A path as a word of a shell. */
void fr_export_put_word(const char *path, fr_buffer *out);

#endif
