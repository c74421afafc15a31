/*
 * request.h: one question: a command, its arguments and the values of its
 * options, which the option rows check.
 */
#ifndef FR_API_REQUEST_REQUEST_H
#define FR_API_REQUEST_REQUEST_H

#include "api/request/command.h"
#include "api/request/session.h"

#define FR_MAX_REPEATS 16
#define FR_MAX_COMMAND_OPTIONS 80
#define FR_MAX_LIST 16

typedef enum fr_option_source {
    FR_SOURCE_UNSET,
    FR_SOURCE_ENV,
    FR_SOURCE_FLAG
} fr_option_source;

typedef struct fr_option_value {
    fr_option_source source;
    const char *text; /* as it was given, borrowed; NULL: it was not */
    bool is_on;       /* FLAG */
    int64_t count;    /* COUNT; CHOICE: the index of the name */
    double real;      /* REAL, SHARE; TIME: seconds */
    uint64_t n_bytes; /* BYTES */
    int n_list; /* values of a list "2,4,8", else 0; count or n_bytes is the
                   first */
    int64_t list[FR_MAX_LIST];
} fr_option_value;

typedef struct fr_request {
    const fr_command *command;
    fr_option_value option[FR_OPT_N];
    const char *positional[FR_MAX_POSITIONAL]; /* borrowed */
    int n_positional;
    const char *repeats[FR_MAX_REPEATS]; /* values of the REPEATED option */
    int n_repeats;
    const fr_session *session; /* NULL: notes are dropped */
    fr_log quiet_log;          /* the session's without lines and progress */
} fr_request;

static inline bool fr_request_has(const fr_request *request, fr_option option)
{
    return request->option[option].source != FR_SOURCE_UNSET;
}

static inline bool fr_request_on(const fr_request *request, fr_option option)
{
    return request->option[option].is_on;
}

/* The text of a TEXT or PATH option, NULL when it was not given. */
static inline const char *fr_request_text(const fr_request *request,
                                          fr_option option)
{
    return request->option[option].text;
}

/* An empty request; `session` may be NULL. */
void fr_request_init(fr_request *request, const fr_command *command,
                     const fr_session *session);

/* Appends a positional argument: a model, a cluster, a file.  FR_USAGE: the
 * command takes no more.  The word is borrowed. */
FR_CHECKED fr_status fr_request_add(fr_request *request, const char *word,
                                    fr_err *err);

/* Gives the option of that name, such as "tp" or "global-batch", a value, which
 * is borrowed.  FR_USAGE: the command has no such option, or the text cannot be
 * read. */
FR_CHECKED fr_status fr_request_put(fr_request *request, const char *name,
                                    const char *text, fr_err *err);

/* FR_USAGE where a positional argument is missing. */
FR_CHECKED fr_status fr_request_check(const fr_request *request, fr_err *err);

/*
 * Gives an option the value that `text` says, which is borrowed.  `shown` is
 * the option as the user wrote it, for messages: "--dp" or "FORERUN_DP".
 * FR_USAGE: the text cannot be read, or is out of range; the value stays.
 */
FR_CHECKED fr_status fr_request_read(fr_request *request, fr_option option,
                                     const char *shown, const char *text,
                                     fr_option_source source, fr_err *err);

/* The same, as if "--NAME TEXT" had been on the command line. */
FR_CHECKED fr_status fr_request_set(fr_request *request, fr_option option,
                                    const char *text, fr_err *err);

/* Does the answer, by the job's tokens, the goal or its limits, report a run
 * that failures and spot nodes interrupt, and not a step alone?  job NULL: it
 * is not read yet. */
bool fr_request_counts_interruptions(const fr_request *request,
                                     const fr_job *job);

/* The caller's folder of configurations, NULL: the one near the program. */
const char *fr_request_configs(const fr_request *request);

/* The caller's log, which can cancel the work; NULL where it has none.  It has
 * no lines and no progress where QUIET is on. */
const fr_log *fr_request_log(const fr_request *request);

/* The threads that the request may use: --jobs, else those of the session; 0:
 * as many as the machine has. */
int fr_request_threads(const fr_request *request);

/* Passes a note to the caller, unless QUIET is on. */
void fr_request_note(const fr_request *request, const char *format, ...)
    FR_PRINTF(2, 3);
/* Passes each line of the text that is not empty as a note, after
 * "TOPIC: " where topic is not NULL. */
void fr_request_note_lines(const fr_request *request, const char *topic,
                           const char *text);

#endif
