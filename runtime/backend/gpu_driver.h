/*
 * gpu_driver.h: the few things that the GPU runtime wants of a device and of
 * a library of collectives, as two tables of functions.  CUDA and NCCL fill
 * them (gpu_driver_cuda.c, gpu_driver_nccl.c); tests fill them with host
 * memory and threads, so that all logic above runs without a GPU.
 *
 * Streams are in order and asynchronous: what is enqueued returns at once,
 * what it needs stays the caller's until the stream has passed it.  A device
 * belongs to the threads that opened or entered it.  Every failure is
 * FR_FAILURE (memory: FR_NO_MEMORY) with the library's own words.
 */
#ifndef FR_RUNTIME_BACKEND_GPU_DRIVER_H
#define FR_RUNTIME_BACKEND_GPU_DRIVER_H

#include "core/base/err.h"
#include "kernels/cuda/kernels_cuda.h"
#include "plan/decide/plan.h"
#include "plan/op/op.h"

typedef struct fr_gpu fr_gpu;             /* an open device */
typedef struct fr_gpu_event fr_gpu_event; /* a place in a stream */
typedef struct fr_gpu_graph fr_gpu_graph; /* captured launches */
typedef void *fr_gpu_stream;              /* CUDA: cudaStream_t */

typedef struct fr_gpu_properties {
    char name[256];
    char bus_id[32]; /* tells the devices of a host apart */
    uint64_t memory_bytes, l2_bytes;
    int n_processors;                 /* multiprocessors */
    int capability[2];                /* compute capability: 9, 0 */
    double clock_Hz, memory_clock_Hz; /* highest; 0: unknown */
    char runtime[32];                 /* version of the library, "13.0" */
} fr_gpu_properties;

/* The readings of a device's sensors; 0 or "": not known. */
typedef struct fr_gpu_readings {
    char driver[32]; /* version */
    double clock_Hz; /* of the multiprocessors */
    double power_w, power_limit_w;
} fr_gpu_readings;

typedef struct fr_gpu_driver {
    const char *name;
    /* Devices that this process may use.  FR_FAILURE: there is no driver. */
    fr_status (*count)(void *context, int *n, fr_err *err);
    fr_status (*open)(void *context, int i_device, fr_gpu **out, fr_err *err);
    void (*close)(fr_gpu *gpu); /* takes NULL */
    /* Lets the calling thread, which has no other device, use it too. */
    fr_status (*enter)(fr_gpu *gpu, fr_err *err);
    /* It may never answer again: what would wait for it (free(), destroy())
     * does nothing from now on.  The process ends soon. */
    void (*abandon)(fr_gpu *gpu);
    fr_status (*properties)(fr_gpu *gpu, fr_gpu_properties *out, fr_err *err);
    /* NULL, or false: there are none to ask. */
    bool (*read_sensors)(fr_gpu *gpu, fr_gpu_readings *out);
    /* Lets copies of this device go to and from the memory of another one
     * directly; *is_direct false: they cannot.  May be NULL: nobody can. */
    fr_status (*reach)(fr_gpu *gpu, int i_other, bool *is_direct, fr_err *err);
    /* The memory that the driver sees as free and in total, whichever process
     * has it. */
    fr_status (*memory)(fr_gpu *gpu, uint64_t *free_bytes,
                        uint64_t *total_bytes, fr_err *err);

    fr_status (*alloc)(fr_gpu *gpu, uint64_t n_bytes, void **out, fr_err *err);
    void (*free)(fr_gpu *gpu, void *memory); /* takes NULL */
    /* Page-locked host memory, which the device can reach. */
    fr_status (*alloc_host)(fr_gpu *gpu, uint64_t n_bytes, void **out,
                            fr_err *err);
    void (*free_host)(fr_gpu *gpu, void *memory); /* takes NULL */
    /* Page-locks memory that is there. */
    fr_status (*lock_host)(fr_gpu *gpu, void *memory, uint64_t n_bytes,
                           fr_err *err);
    void (*unlock_host)(fr_gpu *gpu, void *memory);

    /* is_urgent: its kernels go before those of other streams. */
    fr_status (*stream_create)(fr_gpu *gpu, bool is_urgent, fr_gpu_stream *out,
                               fr_err *err);
    void (*stream_destroy)(fr_gpu *gpu, fr_gpu_stream stream); /* takes NULL */
    fr_status (*stream_wait)(fr_gpu *gpu, fr_gpu_stream stream,
                             fr_gpu_event *event, fr_err *err);

    fr_status (*event_create)(fr_gpu *gpu, bool is_timed, fr_gpu_event **out,
                              fr_err *err);
    void (*event_destroy)(fr_gpu *gpu, fr_gpu_event *event); /* takes NULL */
    fr_status (*event_record)(fr_gpu *gpu, fr_gpu_event *event,
                              fr_gpu_stream stream, fr_err *err);
    fr_status (*event_query)(fr_gpu *gpu, fr_gpu_event *event, bool *is_done,
                             fr_err *err);
    /* The time between two timed events that are done. */
    fr_status (*event_elapsed)(fr_gpu *gpu, fr_gpu_event *from,
                               fr_gpu_event *to, double *elapsed_s,
                               fr_err *err);

    /* Copies between any two memories, of the host or of devices. */
    fr_status (*copy)(fr_gpu *gpu, fr_gpu_stream stream, void *dst,
                      const void *src, uint64_t n_bytes, fr_err *err);
    /* Every byte of it becomes `byte`. */
    fr_status (*fill)(fr_gpu *gpu, fr_gpu_stream stream, void *dst,
                      uint8_t byte, uint64_t n_bytes, fr_err *err);
    /* Writes a word of page-locked memory when the stream gets there; holds
     * the stream until the word is at least `value`. */
    fr_status (*mark)(fr_gpu *gpu, fr_gpu_stream stream, uint32_t *word,
                      uint32_t value, fr_err *err);
    fr_status (*await)(fr_gpu *gpu, fr_gpu_stream stream, uint32_t *word,
                       uint32_t value, fr_err *err);

    /* Calls fn on a thread of the library when the stream gets there, which
     * goes on when it returns; fn asks nothing of the device. */
    fr_status (*call_host)(fr_gpu *gpu, fr_gpu_stream stream,
                           void (*fn)(void *context), void *context,
                           fr_err *err);

    /* The work that is enqueued between the two calls on `stream`, and on
     * streams that wait for it, becomes a graph and does not run. */
    fr_status (*capture_begin)(fr_gpu *gpu, fr_gpu_stream stream, fr_err *err);
    fr_status (*capture_end)(fr_gpu *gpu, fr_gpu_stream stream,
                             fr_gpu_graph **out, fr_err *err);
    fr_status (*graph_launch)(fr_gpu *gpu, fr_gpu_graph *graph,
                              fr_gpu_stream stream, fr_err *err);
    void (*graph_destroy)(fr_gpu *gpu, fr_gpu_graph *graph); /* takes NULL */
} fr_gpu_driver;

/* ---- communicators ------------------------------------------------------- */

typedef struct fr_gpu_comm fr_gpu_comm;

/* One rank makes it and gives it to all. */
typedef struct fr_gpu_comm_id {
    unsigned char bytes[128];
} fr_gpu_comm_id;

/* One communication instruction; op.h says what n, src and dst are. */
typedef struct fr_gpu_exchange {
    fr_op op;
    fr_dtype dtype;
    bool is_max;  /* reductions: maximum, not sum */
    uint64_t n;   /* elements, as in op.h */
    int32_t peer; /* SEND, RECV: of the communicator; BROADCAST: the root */
    const void *src;
    void *dst;
} fr_gpu_exchange;

#define FR_GPU_NO_COLOUR (-1)

/* The plan's choice for one operation of a communicator; AUTO and 0: the
 * library chooses. */
typedef struct fr_gpu_choice {
    fr_op op;
    fr_collective_kind algorithm; /* AUTO, RING, DOUBLE_TREE, NVLS */
    fr_protocol protocol;
    int32_t n_channels;
    uint64_t min_bytes, max_bytes; /* for payloads in [min, max] */
    /* Counted by threads of the library: plans of this operation that it
     * made, and how many of them can be made as wanted. */
    _Atomic int64_t n_asked, n_granted;
} fr_gpu_choice;

enum { FR_GPU_MAX_CHOICES = 4 };

typedef struct fr_gpu_choices {
    int n;
    fr_gpu_choice at[FR_GPU_MAX_CHOICES];
} fr_gpu_choices;

typedef struct fr_gpu_comm_driver {
    const char *name;
    /* Writes the version of the loaded library, as "2.28.9". */
    void (*version)(char *out, size_t n);
    fr_status (*make_id)(void *context, fr_gpu_comm_id *out, fr_err *err);
    /* Collective over all ranks.  has_choices: splits of it will have some.
     * Calls that wait give up after timeout_s. */
    fr_status (*init)(fr_gpu *gpu, const fr_gpu_comm_id *id, int32_t world,
                      int32_t rank, bool has_choices, double timeout_s,
                      fr_gpu_comm **out, fr_err *err);
    /* Collective over the parent: ranks of one colour, in the order of their
     * keys; FR_GPU_NO_COLOUR: in none, *out is NULL.  `choices` (n 0: none)
     * is borrowed as long as the communicator lives. */
    fr_status (*split)(fr_gpu_comm *parent, int32_t colour, int32_t key,
                       fr_gpu_choices *choices, fr_gpu_comm **out, fr_err *err);
    void (*destroy)(fr_gpu_comm *comm); /* takes NULL */
    /* Ends what is under way, on this rank, whatever the others do. */
    void (*abort)(fr_gpu_comm *comm); /* takes NULL; then it is destroyed */
    /* Did something go wrong since it was enqueued? */
    fr_status (*check)(fr_gpu_comm *comm, fr_err *err);
    fr_status (*enqueue)(fr_gpu_comm *comm, const fr_gpu_exchange *exchange,
                         fr_gpu_stream stream, fr_err *err);
    /* Collective, all members with the same list: what the library's own
     * model expects of each collective, which it does not carry out; 0: it
     * does not say. */
    fr_status (*estimate)(fr_gpu_comm *comm, const fr_gpu_exchange *list,
                          size_t n, fr_gpu_stream stream, double *out_s,
                          fr_err *err);
    /* Memory that operands lie in: the library may spare itself copies. */
    fr_status (*register_memory)(fr_gpu_comm *comm, void *memory,
                                 uint64_t n_bytes, fr_err *err);
} fr_gpu_comm_driver;

/* ---- all of it ----------------------------------------------------------- */

/* The interfaces that a GPU run uses.  All fields are borrowed. */
typedef struct fr_gpu_system {
    const char *name; /* "cuda" */
    const fr_gpu_driver *driver;
    const fr_gpu_comm_driver *comm;   /* NULL: none in this build */
    void *context;                    /* of both tables' first functions */
    const fr_cuda_kernel_fn *kernels; /* [FR_OP_N] */
    /* As in kernels_cuda.h; NULL: the kernels need nothing. */
    fr_status (*kernels_create)(fr_cuda_kernels **out, fr_err *err);
    void (*kernels_destroy)(fr_cuda_kernels *kernels);
    fr_status (*kernels_tune)(const fr_cuda_launch *launch, fr_err *err);
} fr_gpu_system;

/* CUDA and NCCL.  FR_FAILURE with the mend where they were left out of the
 * build. */
FR_CHECKED fr_status fr_gpu_system_cuda(const fr_gpu_system **out, fr_err *err);

extern const fr_gpu_driver fr_gpu_driver_cuda;
extern const fr_gpu_comm_driver fr_gpu_comm_driver_nccl;

#endif
