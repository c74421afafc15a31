/*
 * gpu_fake.h: GPUs made of host memory and threads, for tests of all that
 * stands above gpu_driver.h.  A stream is a thread that takes from a
 * queue; device memory has addresses that no host code can use; captures hold
 * the rules of CUDA (a stream takes part once it has waited for one that
 * does, and must be waited for before the end); kernels are the CPU's; ranks
 * are threads of this process, each with a device of its own.
 */
#ifndef FR_TESTS_GPU_FAKE_H
#define FR_TESTS_GPU_FAKE_H

#include "runtime/backend/gpu_driver.h"

#include <pthread.h>
#include <stdatomic.h>

enum { GPU_FAKE_MAX_RANKS = 8 };

/* The failure and its time; all of one rank (device). */
typedef struct gpu_fake_fault {
    int device;     /* -1: nothing does */
    fr_op op;       /* a kernel or a communication ... */
    int64_t i_step; /* ... of this step or later */
    enum {
        GPU_FAKE_KERNEL_FAILS,  /* found by the next query, as CUDA's */
        GPU_FAKE_RANK_HANGS,    /* its stream stops there for good */
        GPU_FAKE_LIBRARY_FAILS, /* check() of the other members says so */
        GPU_FAKE_ENQUEUE_FAILS, /* at once */
    } kind;
} gpu_fake_fault;

/* The source and the destination of a copy. */
typedef enum gpu_fake_way {
    GPU_FAKE_WITHIN, /* one device */
    GPU_FAKE_IN_PINNED,
    GPU_FAKE_IN_PAGEABLE,
    GPU_FAKE_OUT_PINNED,
    GPU_FAKE_OUT_PAGEABLE,
    GPU_FAKE_TO_PEER,
    GPU_FAKE_WAY_N
} gpu_fake_way;

/*
 * Time that is made up: nothing is computed or moved (but what is small),
 * streams have clocks of their own, and events show them.  The L2 holds the
 * operands that were used last, each whole or not at all.
 */
typedef struct gpu_fake_law {
    /* The time of a kernel whose operands come from memory (cold) and from the
     * L2. */
    double (*kernel_s)(const fr_instr *instr, double cold_bytes,
                       double warm_bytes);
    double (*copy_s)(gpu_fake_way way, double n_bytes);
    double (*exchange_s)(fr_op op, int n_group, double n_bytes);
    double kernel_gap_s; /* start to start of kernels, besides */
    double event_s;      /* of an event, on its stream */
    double beside;       /* kernels beside an exchange take so much longer */
    double hot;          /* and so do products after `n_hot` in a row */
    int n_hot;
    double launch_s; /* real time of the host for each kernel */
    uint64_t context_bytes, world_bytes, pair_bytes, group_bytes;
    uint64_t library_bytes; /* with a device's first communicator, and kept */
} gpu_fake_law;

enum { GPU_FAKE_RANGES = 64, GPU_FAKE_L2_BYTES = 4 << 20 };

/* Memory that somebody has, or that a cache holds. */
typedef struct gpu_fake_range {
    uintptr_t begin;
    uint64_t n_bytes;
} gpu_fake_range;

typedef struct gpu_fake {
    int n_devices;      /* 0: there is no driver */
    bool is_one_device; /* all have the same bus id */
    gpu_fake_fault fault;
    uint64_t memory_bytes;   /* of a device */
    const gpu_fake_law *law; /* NULL: real kernels, real time */
    bool has_no_peers;
    bool is_blocking; /* a launch returns when it has run */
    /* Kernels that run on the host instead of the CPU's, one at a time (those
     * of the emulated CUDA); set before the system is asked for. */
    const fr_cuda_kernel_fn *emulated;
    fr_status (*kernels_create)(fr_cuda_kernels **out, fr_err *err);
    void (*kernels_destroy)(fr_cuda_kernels *kernels);
    _Atomic int64_t n_kernels, n_graphs, n_graph_launches, n_exchanges;
    _Atomic int64_t n_lent, n_aborted, n_abandoned, n_tuned;
    _Atomic int64_t n_late_loads;  /* kernels that were launched for the first
                                      time while an exchange was under way */
    _Atomic int64_t n_early_frees; /* of page-locked memory, while a stream
                                      waits for a word */
    _Atomic int64_t most_pending;  /* tasks of a stream that had not begun */
    _Atomic uint64_t most_bytes;   /* allocated on a device at once */
    _Atomic int64_t i_step;        /* the newest that a kernel has seen */
    /* The rest is the fake's own. */
    pthread_mutex_t mutex;
    fr_gpu_driver driver;
    fr_cuda_kernel_fn kernels[FR_OP_N];
    struct gpu_fake_group *world;
    gpu_fake_range pinned[GPU_FAKE_RANGES];
    fr_gpu_comm *aborted; /* kept to the end: a stream may be in a meeting */
} gpu_fake;

void gpu_fake_init(gpu_fake *fake, int n_devices);
/* After all devices are closed. */
void gpu_fake_release(gpu_fake *fake);
/* Borrows the fake. */
fr_gpu_system gpu_fake_system(gpu_fake *fake);

/* Between the fake's files: device memory as the host sees it. */
void *gpu_fake_real(const void *memory);
typedef struct gpu_fake_task gpu_fake_task;
struct gpu_fake_task {
    gpu_fake_task *next;
    struct gpu_fake_stream *stream;
    void (*run)(gpu_fake_task *task);
    void (*host)(void *context);
    void *a;
    const void *b;
    uint64_t n, number;
    double after_s; /* under a law: when the host enqueued it */
    fr_cuda_launch launch;
    fr_gpu_exchange exchange;
};
struct fr_gpu {
    gpu_fake *fake;
    int i_device;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    _Atomic bool has_failed, is_closing;
    char failure[128];
    uint64_t n_bytes;
    struct fr_gpu_graph *capture; /* NULL: none under way */
    bool is_loaded[FR_OP_N];      /* has the kernel been launched? */
    bool has_library;
    int64_t n_pushed; /* exchanges that are no part of a graph */
    _Atomic int64_t n_exchanged;
    _Atomic int64_t n_awaits; /* enqueued, and not passed */
    /* Under a law. */
    gpu_fake_range blocks[GPU_FAKE_RANGES];
    gpu_fake_range cache[GPU_FAKE_RANGES]; /* last used first */
    _Atomic bool is_exchanging;
    int n_products; /* in a row */
    double seen_s;  /* under a law: the latest moment that the host has seen */
};
typedef struct gpu_fake_stream {
    fr_gpu *gpu;
    pthread_t thread;
    pthread_cond_t has_task;
    gpu_fake_task *first, *last;
    bool is_busy, should_stop;
    int64_t n_pending;
    double now_s;         /* under a law */
    fr_gpu_graph *joined; /* takes part in this capture ... */
    bool is_open;         /* ... and nobody has waited for its last task */
} gpu_fake_stream;
/* A copy of the task goes to the end of the stream (or into the capture). */
fr_status gpu_fake_push(const gpu_fake_task *task, fr_err *err);
bool gpu_fake_is_hit(const fr_gpu *gpu, fr_op op);
void gpu_fake_fail(fr_gpu *gpu, const char *text);
/* Returns when nothing is left on the stream. */
void gpu_fake_drain(gpu_fake_stream *stream);
/* Blocks a task for good: until its stream is destroyed. */
void gpu_fake_hang(gpu_fake_stream *stream);

/* gpu_fake_law.c: what a task takes, added to its stream's clock. */
void gpu_fake_spend_kernel(const gpu_fake_task *task);
void gpu_fake_spend_copy(const gpu_fake_task *task);
bool gpu_fake_is_pageable(fr_gpu *gpu, const void *dst, const void *src);
void gpu_fake_note(gpu_fake_range *ranges, const void *memory,
                   uint64_t n_bytes);
void gpu_fake_forget(gpu_fake_range *ranges, const void *memory);
void gpu_fake_spin(double seconds);

extern const fr_gpu_driver gpu_fake_streams; /* that part of the table */
extern const fr_gpu_comm_driver gpu_fake_comm_driver;

#endif
