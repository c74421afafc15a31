/*
 * restart_log.h: what interrupted an elastic run: the supervisor writes it
 * beside the checkpoints, rank 0 puts it into the answer.
 */
#ifndef FR_CLI_TRAIN_RESTART_LOG_H
#define FR_CLI_TRAIN_RESTART_LOG_H

#include "api/request/request.h"
#include "core/base/vec.h"
#include "report/document/document.h"

typedef struct fr_restart {
    int64_t step; /* the furthest that was begun; -1: none */
    char why[256];
    int64_t ranks_before, ranks_after;
    double seconds; /* from then on to the next step; 0: not yet */
} fr_restart;

typedef struct fr_restart_log {
    char path[1024];
    double begun_s;  /* of the system's clock */
    double failed_s; /* the last progress before the last one, where it has
                        not resumed yet; else 0 */
    fr_vec(fr_restart) list;
} fr_restart_log;

/* A resumed run goes on with the log that is there. */
FR_CHECKED fr_status fr_restart_log_begin(fr_restart_log *log,
                                          const fr_request *request,
                                          fr_err *err);
void fr_restart_log_release(fr_restart_log *log);

/* A generation, whose last progress was at failed_s of fr_clock_s(), has ended;
 * the next one has begun a step.  What cannot be written is lost for the answer
 * alone. */
void fr_restart_log_add(fr_restart_log *log, const fr_restart *restart,
                        double failed_s);
void fr_restart_log_resumed(fr_restart_log *log);

/*
 * These write the restarts of the run of this rank: members `restarts` and
 * `goodput`, and lines for readers.  useful_s: the time of all steps that
 * count. They write nothing if the run is not elastic.
 */
void fr_restart_log_put(const fr_request *request, double useful_s,
                        fr_document *out);

#endif
