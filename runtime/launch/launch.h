/*
 * launch.h: from one command to many ranks, and one line when it goes wrong.
 *
 * `forerun run PLAN` of a world > 1 that nobody launched becomes the
 * supervisor: it starts itself again under mpirun (fr_launch_supervise), stays
 * alive and watches.  A process that is launched runs as a rank:
 *
 *     fr_launch_detect(&launch);
 *     if (world == 1 || launch.role == FR_LAUNCH_RANK) run here
 *     else if (launch.role == FR_LAUNCH_BYSTANDER) exit 0
 *     else fr_launch_supervise(...)
 *
 * A rank that fails calls fr_launch_report() and exits; when that returns
 * true the supervisor prints the line, else the rank does.
 */
#ifndef FR_RUNTIME_LAUNCH_LAUNCH_H
#define FR_RUNTIME_LAUNCH_LAUNCH_H

#include "core/base/err.h"

#include <signal.h>

typedef enum fr_launch_role {
    FR_LAUNCH_STANDALONE, /* started by a user: may supervise */
    FR_LAUNCH_RANK,       /* one of `world` ranks that MPI can join */
    /* A worker of a launcher that MPI knows nothing of (torchrun-style
     * environment); rank 0 is STANDALONE and starts all ranks over its
     * hostfile, the others have nothing to do. */
    FR_LAUNCH_BYSTANDER
} fr_launch_role;

typedef struct fr_launch {
    fr_launch_role role;
    const char *launcher; /* "mpirun", "srun", "torchrun", "none" */
    int64_t rank, world;  /* as the environment says; 0 of 1 when alone */
} fr_launch;

/* Reads the environment: OMPI_COMM_WORLD_*, PMI_*, SLURM_*, RANK. */
void fr_launch_detect(fr_launch *out);

/* Set for ranks that go on from a failure: the furthest step that was begun
 * before it, which has had its faults on purpose (faults.h). */
#define FR_REACHED_ENV "FORERUN_REACHED"

/* Did a supervisor of ours start this rank? */
bool fr_launch_is_supervised(void);

/* A whole number between two limits that an environment variable holds; false:
 * it holds none. */
bool fr_launch_number(const char *name, int64_t least, int64_t most,
                      int64_t *out);

typedef struct fr_launch_options {
    int64_t world;
    int n_threads;        /* per rank */
    const char *hostfile; /* NULL: this machine only */
    double hung_s; /* no sign of life of a rank for so long: it hangs; 0: 20 */
    /* Called with each line that a rank writes to stderr; may be NULL. */
    void (*on_line)(void *context, const char *line);
    double still_s; /* a rank alone that is at one operation for so long
                       hangs; 0: no limit */
    /* The ranks hold signals back and stop with FR_STOPPED (run_saver.h): the
     * first SIGTERM or SIGUSR1 is handed on to them.  A second one is as any,
     * and so are steps that take hung_s longer than thrice their longest. */
    bool is_stoppable;
    /* A directory that is removed if this process is killed: a run's copies in
     * memory; may be NULL. */
    const char *memory_dir;
    /* Looks at the run some times a second, and once after its end: the
     * furthest step that a rank of this machine has begun, -1: none.  True asks
     * the ranks to stop, as SIGTERM would, but the run ends with FR_PAUSED
     * where no user asks too; may be NULL. */
    bool (*on_look)(void *context, int64_t step);
    void *context;
} fr_launch_options;

void fr_launch_options_init(fr_launch_options *options);

/*
 * Runs argv (argv[0]: the program; NULL-terminated) as options->world ranks
 * under mpirun and waits for them; their stdout is this process's, when all has
 * gone well (FR_IO where it cannot be written).  SIGINT, SIGTERM and SIGHUP end
 * them, unless this process was started to ignore them (FR_INTERRUPTED, also
 * where it has failed since); no child and no file outlives this process, even
 * where it is killed.  FR_FAILURE (or the status that the rank reported) with
 * one line: which rank, its pid, the signal or reason and its last operation.
 * FR_FAILURE with the mend where mpirun is missing.
 */
FR_CHECKED fr_status fr_launch_supervise(char *const *argv,
                                         const fr_launch_options *options,
                                         fr_err *err);

/* Ends this rank when the process that started it dies.  Ranks call it. */
void fr_launch_follow_parent(void);

/* Also tells the supervisor that this rank is on its way to the others. */
void fr_launch_begin_rank(int64_t rank);

/*
 * From now on SIGTERM and SIGUSR1, unless they are ignored, do not end this
 * process but wait to be asked for.  Before it has threads, which follow.
 */
void fr_launch_hold_signals(void);
/* The one that waits; 0: none, or they are not held back. */
int fr_launch_held_signal(void);
/* Sets *out to the signals that would be held back. */
void fr_launch_held_set(sigset_t *out);

/* Does this process ignore the signal, as nohup and `&` in scripts make it?
 * Linux keeps one that is blocked all the same. */
bool fr_launch_is_ignored(int signal);

/* Leaves the reason for the supervisor; false when nobody is there. */
bool fr_launch_report(const fr_err *err);

#endif
