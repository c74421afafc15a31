/*
 * supervise.h: commands whose work is done by several ranks: this process is
 * their supervisor, or one of them.
 */
#ifndef FR_CLI_TRAIN_SUPERVISE_H
#define FR_CLI_TRAIN_SUPERVISE_H

#include "cli/cli.h"
#include "runtime/hosts/hostfile.h"
#include "runtime/launch/rank_guard.h"
#include "runtime/replica/replica_store.h"

/*
 * Calls `work` here when this process is a rank (or n_ranks is 1), else
 * starts the same command line as n_ranks ranks of n_threads threads and
 * waits for them.  A launcher that started another number is FR_INPUT.
 */
FR_CHECKED fr_status fr_supervised(
    const fr_cli *cli, int64_t n_ranks, int n_threads,
    fr_status (*work)(const fr_cli *cli, int64_t n_ranks, fr_err *err),
    fr_err *err);

/* Starts `argv` as ranks under mpirun and waits for them; `look` and its
 * context are on_look of launch.h. */
FR_CHECKED fr_status fr_supervise_ranks(
    const fr_cli *cli, char *const *argv, int64_t n_ranks, int n_threads,
    bool (*look)(void *context, int64_t step), void *context, fr_err *err);

/* A guard for a rank that nobody supervises; *out is NULL where it has nothing
 * to do. */
FR_CHECKED fr_status fr_cli_guard(const fr_cli *cli, fr_rank_guard **out,
                                  fr_err *err);

/* Finds the folder of the run's copies in memory on this host; "": it has none.
 * FR_IO: the directory of its checkpoints does not exist. */
FR_CHECKED fr_status fr_cli_replica_path(const fr_cli *cli,
                                         char out[FR_REPLICA_PATH],
                                         fr_err *err);

/* Ranks that a launcher started, this one among them; 0: nobody did. */
int64_t fr_launched_ranks(void);

/* Is this the one that speaks for all ranks? */
bool fr_is_first_rank(void);

/* Should this process draw progress?  On a terminal only, also through the
 * supervisor's. */
bool fr_cli_shows_progress(const fr_cli *cli);

#endif
