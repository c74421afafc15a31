/*
 * gpu_fake.h: GPUs made of host memory and threads, for tests of all that
 * stands above runtime/gpu_driver.h.  A stream is a thread that takes from a
 * queue; device memory has addresses that no host code can use; captures hold
 * the rules of CUDA (a stream takes part once it has waited for one that
 * does, and must be waited for before the end); kernels are the CPU's; ranks
 * are threads of this process, each with a device of its own.
 */
#ifndef FR_TESTS_GPU_FAKE_H
#define FR_TESTS_GPU_FAKE_H

#include "runtime/gpu_driver.h"

#include <pthread.h>
#include <stdatomic.h>

enum { GPU_FAKE_MAX_RANKS = 8 };

/* What goes wrong, and when; all of one rank (device). */
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

typedef struct gpu_fake {
    int n_devices;      /* 0: there is no driver */
    bool is_one_device; /* all have the same bus id */
    gpu_fake_fault fault;
    uint64_t memory_bytes; /* of a device */
    /* Kernels that run on the host instead of the CPU's, one at a time (those
     * of the emulated CUDA); set before the system is asked for. */
    const fr_cuda_kernel_fn *emulated;
    fr_status (*kernels_create)(fr_cuda_kernels **out, fr_err *err);
    void (*kernels_destroy)(fr_cuda_kernels *kernels);
    _Atomic int64_t n_kernels, n_graphs, n_graph_launches, n_exchanges;
    _Atomic int64_t n_lent, n_aborted, n_abandoned, n_tuned;
    _Atomic uint64_t most_bytes; /* allocated on a device at once */
    _Atomic int64_t i_step;      /* the newest that a kernel has seen */
    /* The rest is the fake's own. */
    pthread_mutex_t mutex;
    fr_gpu_driver driver;
    fr_cuda_kernel_fn kernels[FR_OP_N];
    struct gpu_fake_group *world;
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
    void *a;
    const void *b;
    uint64_t n, number;
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
};
typedef struct gpu_fake_stream {
    fr_gpu *gpu;
    pthread_t thread;
    gpu_fake_task *first, *last;
    bool is_busy, should_stop;
    fr_gpu_graph *joined; /* takes part in this capture ... */
    bool is_open;         /* ... and nobody has waited for its last task */
} gpu_fake_stream;
/* A copy of the task goes to the end of the stream (or into the capture). */
fr_status gpu_fake_push(const gpu_fake_task *task, fr_err *err);
bool gpu_fake_is_hit(const fr_gpu *gpu, fr_op op);
void gpu_fake_fail(fr_gpu *gpu, const char *text);
/* Blocks a task for good: until its stream is destroyed. */
void gpu_fake_hang(gpu_fake_stream *stream);

extern const fr_gpu_driver gpu_fake_streams; /* that part of the table */
extern const fr_gpu_comm_driver gpu_fake_comm_driver;

#endif
