/*
 * executor.h: what a training run (run.c) wants of a backend: one rank's
 * memory and the means to step.  The CPU's is executor_cpu.c, that of GPUs
 * executor_gpu.c.
 *
 * In this order, on all ranks: open(), set_up(), connect(), fill(), then
 * steps; close() at any time.
 */
#ifndef FR_RUNTIME_RUN_EXECUTOR_H
#define FR_RUNTIME_RUN_EXECUTOR_H

#include "core/system/processors.h"
#include "runtime/run/interpreter.h"
#include "runtime/run/run.h"
#include "runtime/weights/weights.h"

typedef struct fr_executor fr_executor;

typedef struct fr_executor_ops {
    /* Collective: chooses the device and opens the transport's slab as the
     * backend wants it. */
    fr_status (*open)(fr_executor *executor, fr_err *err);
    /* Collective: gives back what the executor holds, but not its own
     * memory; also after an open() that failed. */
    void (*close)(fr_executor *executor);
    /* Not collective.  Allocates memory for the program, which nobody writes
     * yet. */
    fr_status (*set_up)(fr_executor *executor, fr_err *err);
    /* Collective: everything that talks to other ranks for the first time,
     * and the baseline of the memory. */
    fr_status (*connect)(fr_executor *executor, fr_err *err);
    /* The model as it is before the first step. */
    fr_status (*fill)(fr_executor *executor, fr_err *err);
    fr_status (*step)(fr_executor *executor, int64_t i_step, bool is_traced,
                      double *step_s, fr_err *err);
    const fr_step_scalars *(*scalars)(const fr_executor *executor);
    /* The loss of the n-th global batch of `data` comes to scalars(), nothing
     * else changes.  NULL: the backend cannot. */
    fr_status (*evaluate)(fr_executor *executor, fr_data *data, int64_t i_batch,
                          fr_err *err);
    /* This rank's part of the last step's loss; NULL: it does not know. */
    double (*own_loss)(const fr_executor *executor);
    /* The last step by part, see fr_interpreter_part_s(); NULL: not known. */
    void (*part_s)(const fr_executor *executor, double part_s[FR_PART_N]);
    /* From other ranks, since the begin; NULL: not known. */
    uint64_t (*received_bytes)(const fr_executor *executor);
    /* Returns the number of spans; `out` may be NULL. */
    size_t (*copy_spans)(const fr_executor *executor, fr_span *out);
    /* Bytes of the slab: to look at until the next call; to replace. */
    fr_status (*view)(fr_executor *executor, uint64_t offset_bytes,
                      uint64_t n_bytes, const void **out, fr_err *err);
    fr_status (*store)(fr_executor *executor, uint64_t offset_bytes,
                       uint64_t n_bytes, const void *bytes, fr_err *err);
    /* Returns the number of collectives; `out` may be NULL. A NULL function
     * means that the backend uses no library. */
    size_t (*copy_collectives)(const fr_executor *executor,
                               fr_collective_note *out);
    fr_status (*peak)(fr_executor *executor, uint64_t *peak_bytes, fr_err *err);
} fr_executor_ops;

struct fr_executor {
    const fr_backend *backend;
    const fr_executor_ops *ops; /* the backend's */
    fr_transport *transport;    /* all borrowed */
    const fr_program *program;
    const fr_rank_program *rank_program;
    const fr_run_options *options;
    fr_data *data; /* NULL: loads no tokens.  Set before set_up(), like: */
    const fr_weights *weights; /* NULL: training begins with random ones */
    fr_step_watch watch;
    _Atomic int64_t *beat_ns; /* may be NULL */
    fr_processor_set allowed; /* before open(), which pins threads */
    uint64_t baseline_bytes;  /* connect() sets it */
    bool is_oversubscribed;   /* open() sets it */
};

struct fr_backend {
    const char *name;
    bool is_slow_traced;   /* traced steps take longer than others */
    bool is_host_memory;   /* the transport's slab is the program's memory */
    size_t executor_bytes; /* of a struct that begins with fr_executor */
    const fr_executor_ops *ops;
    const void *context;
};

/* Collective: makes a backend's executor, which fr_executor_destroy() gives
 * back, and opens it. */
FR_CHECKED fr_status fr_executor_open(const fr_backend *backend,
                                      fr_transport *transport,
                                      const fr_program *program,
                                      const fr_run_options *options,
                                      fr_executor **out, fr_err *err);
void fr_executor_destroy(fr_executor *executor); /* takes NULL */

extern const fr_backend fr_backend_cpu;

#endif
