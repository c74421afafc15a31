/*
 * run.h: interpreter 2: trains under a program, one process per rank.
 *
 * A caller that is one of several ranks: fr_run_join() (learns the placement
 * that lowering wants), fr_lower(), fr_run(), ..., fr_run_leave().
 */
#ifndef FR_RUNTIME_RUN_RUN_H
#define FR_RUNTIME_RUN_RUN_H

#include "core/base/err.h"
#include "plan/collective/collective.h"
#include "program/ir/program.h"
#include "spec/model/faults.h"
#include "spec/result/timeline.h"
#include "spec/run/busy_steps.h"
#include "spec/run/saving_cost.h"
#include "spec/run/step_record.h"

typedef struct fr_backend fr_backend; /* executor.h; those of run.h: below */
typedef struct fr_rank_page fr_rank_page;

typedef struct fr_run_options {
    const fr_backend *backend; /* NULL: the CPU's */
    int64_t n_steps;           /* 0: as the job says */
    int64_t n_warmup;          /* steps left out of the statistics */
    int64_t trace_steps;   /* last k steps recorded in the timeline; the same
                              on all ranks, 0: none */
    double timeout_s;      /* a wait longer than this ends the run */
    bool is_gradient_dump; /* write the gradients of the first step ... */
    const char *gradient_path;  /* ... here, see gradient_dump.h */
    const char *checkpoint_dir; /* NULL: none, see checkpoint.h.  One that
                                   holds checkpoints is refused unless the
                                   run is resumed */
    int64_t checkpoint_every;   /* steps; 0: after the last one only */
    bool is_resumed;            /* go on from checkpoint_dir if it has one */
    const char *eval_data;      /* NULL: no validation, see run_validation.h */
    int64_t eval_every;         /* steps; 0: after the last one only */
    int64_t eval_batches;       /* of the job's size, 0: 4 */
    const char *init_path;      /* NULL: random weights, see weights.h */
    const char *save_dir;       /* NULL: none are written at the end */
    uint64_t save_shard_bytes;  /* 0: as fr_weights_save() has it */
    bool is_checkpoint_async;   /* a thread writes a copy of the state */
    int64_t n_checkpoints_kept; /* 0: 2 */
    int64_t replicate_every;    /* steps between copies of the state in memory,
                                   beside checkpoints; 0: none (replica.h) */
    const char *replica_dir;    /* NULL: FR_REPLICA_DIR */
    bool is_checked;    /* fr_program_check first (it may take a while) */
    bool is_unwatched;  /* no supervisor is told how it goes, or ends: it is
                           part of something else */
    fr_rank_page *page; /* of a rank alone (rank_guard.h); NULL: the
                           supervisor's, where there is one */
    const fr_faults *faults; /* on purpose; NULL: none */
    /* Tests: lanes wait at random (inject.h); 0: they do not.  CPUs only. */
    uint64_t shake_seed;
    /* Called on rank 0 after each step; may be NULL. */
    void (*on_step)(void *context, const fr_step_record *record);
    /* Called on rank 0 with a line that the user should read; may be NULL. */
    void (*on_note)(void *context, const char *line);
    void *context;
} fr_run_options;

/* Two warm-up steps, one traced step, 60 s, checked. */
void fr_run_options_init(fr_run_options *options);

typedef struct fr_run_result {
    const char *backend; /* its name, static */
    int64_t n_steps, world_size;
    double *loss;                   /* [n_steps], from resumed_from_step on */
    double *step_s;                 /* [n_steps], slowest rank */
    fr_run_evaluation *evaluations; /* [n_evaluations] */
    size_t n_evaluations;
    double *loss_before; /* [resumed_from_step]; NULL: not known */
    /* The times of the steps after warm-up.  On GPUs traced steps do not count,
     * because their events slow them. */
    double step_s_median, step_s_p5, step_s_p95;
    uint64_t peak_bytes;       /* of the peak rank, from the operating system */
    uint64_t baseline_bytes;   /* the same before the slab was touched */
    uint64_t slab_bytes;       /* of the peak rank: what was predicted */
    int64_t resumed_from_step; /* 0: from the beginning */
    bool is_from_memory;       /* from copies in memory */
    fr_saving_cost saving;
    char unsaved[512]; /* why the last state is in no checkpoint; "": it is, or
                          none was wanted */
    int64_t n_nodes;
    bool is_oversubscribed;   /* more compute threads than cores */
    fr_straggler *stragglers; /* [n_stragglers], by time */
    size_t n_stragglers;
    double monitoring_s; /* time of monitoring a step on rank 0, mean */
    /* [world_size] means of a step after warm-up: how long each rank computed
     * and waited for others; NULL: not known. */
    double *compute_s, *wait_s;
    fr_busy_steps busy;              /* steps that other processes disturbed */
    fr_collective_note *collectives; /* [n_collectives], of rank 0 */
    size_t n_collectives;            /* 0 on CPUs */
} fr_run_result;

void fr_run_result_release(fr_run_result *result);

/*
 * Runs inside a process that a launcher started (or alone, world 1): joins
 * the others, executes the program, gathers the result on rank 0 (elsewhere
 * *out is zeroed).  `timeline` may be NULL; rank 0 gets everybody's spans.
 * FR_FAILURE names the rank and the operation that died or timed out; after
 * it the process must end without fr_run_leave(), so that its launcher stops
 * the others.
 */
FR_CHECKED fr_status fr_run(const fr_program *program,
                            const fr_run_options *options,
                            fr_timeline *timeline, fr_run_result *out,
                            fr_err *err);

/*
 * Joins the launcher's ranks (world 1: nobody) and says which rank this is
 * and which node each of the `world` ranks is on (either may be NULL).
 */
FR_CHECKED fr_status fr_run_join(int64_t world, int64_t *rank,
                                 int32_t *node_of_rank, fr_err *err);

/* The last call of a process that succeeded: ends MPI if it was begun. */
void fr_run_leave(void);

/* fr_run over a transport of the caller (tests: threads of one process). */
struct fr_transport;
FR_CHECKED fr_status fr_run_over(struct fr_transport *transport,
                                 const fr_program *program,
                                 const fr_run_options *options,
                                 fr_timeline *timeline, fr_run_result *out,
                                 fr_err *err);

#endif
