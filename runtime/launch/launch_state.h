/*
 * launch_state.h: what the supervisor knows.  Inside runtime/launch_*.c only.
 */
#ifndef FR_RUNTIME_LAUNCH_LAUNCH_STATE_H
#define FR_RUNTIME_LAUNCH_LAUNCH_STATE_H

#include "core/base/buffer.h"
#include "runtime/launch/launch.h"
#include "runtime/rank/rank_page.h"

#include <sys/types.h>

/* The reason of a failure, the most specific last: a later kind replaces an
 * earlier one. */
enum {
    FR_BLAME_NONE,
    FR_BLAME_LAUNCHER, /* mpirun's own words */
    FR_BLAME_EXIT,     /* a rank's exit code */
    FR_BLAME_ASKED,    /* somebody asked to stop */
    FR_BLAME_HUNG,     /* a rank without a sign of life */
    FR_BLAME_REPORT,   /* a rank's own words */
    FR_BLAME_SIGNAL    /* a rank was killed */
};

/* That the ranks shall stop after a checkpoint (launch_stop.c). */
typedef struct fr_stop_request {
    int signal, by; /* 0: nobody has asked */
    bool is_own;    /* this process asks, which goes on by itself */
    double step_s;  /* for so long ranks have been within steps since */
    double looked_s, sent_s; /* last looked at; by mpirun, 0: it was not */
} fr_stop_request;

typedef struct fr_supervisor {
    const fr_launch_options *options;
    char dir[256];        /* status pages */
    fr_rank_page **pages; /* [world]; NULL: not there yet */
    int64_t *stopped_ns;  /* [world]: since when a joined rank was seen to be
                             stopped; 0: it was not */
    pid_t mpirun;
    int stdout_fd, stderr_fd; /* of mpirun; -1 at their end */
    int signal_fd;
    pid_t keeper;     /* launch_clean.c: ends all when this process dies */
    int keeper_fd;    /* -1: there is none */
    int64_t begin_ns; /* of mpirun */
    fr_buffer answer; /* the first rank's stdout */
    int blame;        /* FR_BLAME_*, and its line */
    fr_status blame_status;
    char blame_text[512];
    bool is_still;       /* no rank goes on, and it was said */
    bool is_interrupted; /* somebody has ended the run */
    bool has_killed;     /* this process has killed ranks */
    fr_stop_request stop;
    bool is_in_notice; /* between two rulers of mpirun's stderr */
    char notice[2048]; /* its lines, joined by blanks */
    char line[2048];
    size_t n_line;
} fr_supervisor;

/* Takes a line of mpirun's stderr, which is a rank's and is handed on, or
 * mpirun's own. */
void fr_watch_line(fr_supervisor *sv, const char *line);
/* Looks at the pages: failures, signs of life. */
void fr_watch_pages(fr_supervisor *sv);
/* Says who waits for whom where no rank goes on (launch_hang.c). */
void fr_watch_hang(fr_supervisor *sv);
/* ", at step 7 in layer_bwd" for as much as is known of a rank. */
void fr_watch_describe(fr_supervisor *sv, int64_t rank, char *out, size_t n);
/* Asks the hosts where no rank of this machine has begun: one that does not
 * answer is to blame. */
void fr_watch_hosts(fr_supervisor *sv, const char *program, double limit_s);
/* The furthest step that has begun, -1: none. */
int64_t fr_watch_step(fr_supervisor *sv);
/* Notes who ends the run. */
void fr_watch_signal(fr_supervisor *sv, int signal, int from);
/* Notes that ranks have not stopped when this process asked them to. */
void fr_watch_deaf(fr_supervisor *sv, double waited_s);
/* The page of a rank that has one; else NULL. */
fr_rank_page *fr_watch_page(fr_supervisor *sv, int64_t rank);

/*
 * launch_stop.c.  A user who asks is told for how long the run may take; one
 * who asks after this process did is heard.
 */
void fr_stop_ask(fr_supervisor *sv, int signal, int by, bool is_own);
/* Hands the request on to ranks that have come since, and ends a run that
 * takes longer. */
void fr_stop_look(fr_supervisor *sv);
/* Has a user asked the ranks to stop, or ended them? */
bool fr_stop_is_of_user(const fr_supervisor *sv);
enum { FR_SENDER_BYTES = 128 };
/* "SIGTERM from pid 77 (bash)". */
void fr_stop_describe(int signal, int from, char out[FR_SENDER_BYTES]);

/* launch_clean.c: a process that ends all ranks if this one is killed. */
void fr_clean_begin(fr_supervisor *sv);
void fr_clean_end(fr_supervisor *sv);
/* Sends a signal, also to a process that is stopped. */
void fr_clean_signal(pid_t pid, int signal);
/* Kills the ranks of this machine that have a page. */
void fr_clean_ranks(fr_supervisor *sv);
/* Closes the pages and removes them; after a failure, Open MPI's files too. */
void fr_clean_files(fr_supervisor *sv, bool has_failed);

#endif
