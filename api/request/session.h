/*
 * session.h: what a caller of api/ brings along and all of its requests share.
 * The command line is one such caller.
 *
 * Nothing in api/ or below it prints, reads the environment, changes signals or
 * starts processes: notes and progress go to the caller's functions.
 */
#ifndef FR_API_REQUEST_SESSION_H
#define FR_API_REQUEST_SESSION_H

#include "core/base/log.h"
#include "spec/profile/profile.h"

struct fr_measurer;

typedef struct fr_session {
    /* Receives a note about an answer, one line without its end: an assumption,
     * an option that has no effect.  NULL: notes are dropped. */
    void (*note)(void *context, const char *text);
    void *context; /* first argument of `note` */
    /* The folder of named models, clusters and templates; NULL: the one near
     * the program (spec/catalog/config_path.h). */
    const char *configs;
    /* Receives the progress of long work, and can cancel it: the answer is then
     * FR_INTERRUPTED; NULL: neither. */
    const fr_log *log;
    /* The default of --jobs; 0: as many as the machine has. */
    int n_threads;
    /* Runs plans on this machine (tune --measure); NULL: no plan can be run. */
    const struct fr_measurer *measurer;
    /* Describes the machine that the process runs on, against which a profile
     * is checked; NULL: profiles are not checked. */
    void (*describe_machine)(fr_fingerprint *out);
} fr_session;

#endif
