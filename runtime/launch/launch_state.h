/*
 * launch_state.h: what the supervisor knows.  Inside runtime/launch_*.c only.
 */
#ifndef FR_RUNTIME_LAUNCH_LAUNCH_STATE_H
#define FR_RUNTIME_LAUNCH_LAUNCH_STATE_H

#include "runtime/launch/launch.h"
#include "runtime/launch/rank_page.h"

#include <sys/types.h>

/* What was found out, most telling last: a later kind replaces an earlier. */
enum {
    FR_BLAME_NONE,
    FR_BLAME_LAUNCHER, /* mpirun's own words */
    FR_BLAME_EXIT,     /* a rank's exit code */
    FR_BLAME_HUNG,     /* a rank without a sign of life */
    FR_BLAME_REPORT,   /* a rank's own words */
    FR_BLAME_SIGNAL    /* a rank was killed */
};

typedef struct fr_supervisor {
    const fr_launch_options *options;
    char dir[256];        /* status pages */
    fr_rank_page **pages; /* [world]; NULL: not there yet */
    pid_t mpirun;
    int stdout_fd, stderr_fd; /* of mpirun; -1 at their end */
    int signal_fd;
    int write_errno; /* why the answer could not be passed on; 0: it was */
    int blame;       /* FR_BLAME_*, and its line */
    fr_status blame_status;
    char blame_text[512];
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

#endif
