/*
 * profile.h: what calibration measured on one machine: seconds of kernels and
 * of communication, how they slow each other down, storage, overheads, and
 * whose machine it was.  JSON, schema "forerun.profile/1"
 * (docs/calibration.md).
 *
 * Raw points, no fits: a fit is made from them where it is used
 * (cost_models/), so a reader can always see what was measured and how well.
 * Operations stand by name, so a profile outlives the order of an enum.
 */
#ifndef FR_SPEC_PROFILE_PROFILE_H
#define FR_SPEC_PROFILE_PROFILE_H

#include "core/base/buffer.h"
#include "core/base/err.h"
#include "spec/profile/held_out.h"
#include "spec/profile/others_point.h"
#include "spec/profile/run_point.h"
#include "spec/profile/running_costs.h"

#define FR_PROFILE_NAME 32
#define FR_PROFILE_DIMS 6 /* as FR_INSTR_DIMS */
#define FR_PROFILE_SCOPE_SHM "shm"
#define FR_PROFILE_SCOPE_NET "net"
/* An `algorithm` of comm points that nobody measured: what NCCL's own model
 * expects (ncclGroupSimulateEnd).  To be looked at; no fit uses them. */
#define FR_PROFILE_NCCL_ESTIMATE "nccl-estimate"

/* The GPU whose kernels were timed. */
typedef struct fr_gpu_print {
    char name[128];      /* the driver's; "": none, kernels are the CPU's */
    char capability[16]; /* compute capability, "9.0" */
    char driver[32], cuda[32]; /* versions; "" unknown */
    char nccl[32];             /* "" without */
    int32_t n_processors;      /* multiprocessors */
    uint64_t l2_bytes, memory_bytes;
    double clock_Hz, memory_clock_Hz; /* highest; 0: unknown */
    double power_limit_w;             /* 0: unknown */
} fr_gpu_print;

/* Identifies a machine.  Two machines with equal hash() may share a profile. */
typedef struct fr_fingerprint {
    char cpu[128];
    char kernel[128]; /* operating system */
    char blas[128];   /* OpenBLAS's own configuration string */
    char mpi[128];    /* "" without */
    char compiler[128];
    int32_t n_cores;    /* logical cores that are online */
    int32_t n_nodes;    /* hosts that were measured together */
    uint64_t l2_bytes;  /* per core; 0: unknown */
    uint64_t llc_bytes; /* last level, shared; 0: unknown */
    uint64_t memory_bytes;
    fr_gpu_print gpu; /* its own object of the file, if there is one */
} fr_fingerprint;

uint64_t fr_fingerprint_hash(const fr_fingerprint *fingerprint);

/*
 * "" when `now` is the machine of `then`, else one line that names what
 * differs first and the mend; returns buf.
 */
char *fr_fingerprint_difference(const fr_fingerprint *then,
                                const fr_fingerprint *now, char *buf,
                                size_t n_buf);

/* A time and how well it is known. */
typedef struct fr_sample {
    double median_s, rel_err; /* relative standard error of the median */
    int32_t n_samples;        /* that the median rests on */
    int32_t n_outliers; /* thrown out: beyond 5 median absolute deviations */
} fr_sample;

/*
 * The place of an operand when the kernel began, one letter for each operand in
 * the order of op.h: '-' absent, FR_PROFILE_NEAR in the core's own caches,
 * FR_PROFILE_LLC in the last-level cache (a GPU's L2), FR_PROFILE_MEMORY in
 * DRAM.
 */
#define FR_PROFILE_NEAR 'n'
#define FR_PROFILE_LLC 'l'
#define FR_PROFILE_MEMORY 'm'
#define FR_PROFILE_REFS 8 /* as FR_INSTR_REFS */

/* One kernel on one shape. */
typedef struct fr_compute_point {
    char op[FR_PROFILE_NAME];      /* fr_op_name */
    char dtype[8];                 /* fr_dtype_name */
    char variant[FR_PROFILE_NAME]; /* optimizer or compressor kind; cast: of
                                      what; else "".  "+bf16": gradients of
                                      parameters are */
    uint32_t flags;                /* fr_instr.flags */
    int64_t dim[FR_PROFILE_DIMS];
    char where[FR_PROFILE_REFS + 1]; /* e.g. "nm-l" */
    int32_t n_threads;               /* of the rank */
    int32_t n_busy;   /* ranks of the node that computed at the same time */
    bool is_held_out; /* measured to check the fits, never used in one */
    uint64_t flop, moved_bytes;
    fr_sample sample;
} fr_compute_point;

/* One collective or transfer at one size. */
typedef struct fr_comm_point {
    char op[FR_PROFILE_NAME];        /* fr_op_name; "send": one way */
    char algorithm[FR_PROFILE_NAME]; /* fr_collective_names, "" for send */
    char scope[FR_PROFILE_NAME];     /* "shm" inside a node, "net" between */
    int32_t n_group;
    uint64_t n_bytes; /* fr_instr_payload_bytes */
    bool is_async;    /* by the communication thread, else by the rank */
    bool is_beside;   /* the compute thread was busy meanwhile */
    bool is_cold;     /* the payload came from memory, not from caches */
    bool is_held_out;
    double cpu_frac; /* thread CPU time / wall time of who drives it */
    fr_sample sample;
} fr_comm_point;

/* The slowdown of `victim` while `beside` runs: a ratio of medians. */
typedef struct fr_sharing_point {
    char victim[FR_PROFILE_NAME]; /* "linear_fwd", "axpy", "all_reduce" ... */
    char beside[FR_PROFILE_NAME]; /* "same" (other ranks), "all_reduce" ... */
    int32_t n_busy;
    double slowdown; /* >= 1 up to noise */
    double rel_err;
} fr_sharing_point;

/* A rate of the machine, for reports and roofline fall-backs. */
typedef struct fr_rate_point {
    char
        name[FR_PROFILE_NAME]; /* "sgemm" flop/s; "axpy", "write", "read" B/s */
    int32_t n_threads;
    int32_t n_busy;
    double rate; /* flop/s or bytes/s */
    double rel_err;
} fr_rate_point;

/* The time and memory that the runtime of a GPU takes in addition to its
 * kernels; 0 where it was not measured.  A program on one rank also holds the
 * profile's baseline_alone_bytes. */
typedef struct fr_gpu_costs {
    uint64_t workspace_bytes;  /* of each further stream with kernels */
    uint64_t comm_world_bytes; /* the world's, and what the library loads */
    uint64_t comm_pair_bytes, comm_group_bytes; /* one of 2, of more ranks */
    double launch_s;                            /* of the host: one kernel */
    double graph_launch_s; /* of the host: a graph of one kernel ... */
    double graph_node_s;   /* ... and each further one */
    double kernel_s;       /* of the device: start to start of empty kernels */
    double bracket_s;      /* time that two events around a kernel add; the
                              points do not contain it */
    double steady_clock_Hz, steady_power_w; /* under lasting products */
} fr_gpu_costs;

/* A whole step under a plan: `forerun tune --measure` adds them.  Predictions
 * do not rest on them; they say how true those were on this machine. */
typedef struct fr_step_point {
    char model[128];
    char plan[256]; /* fr_plan_describe */
    uint64_t global_batch, seq;
    int32_t n_ranks;
    double predicted_s;
    fr_sample sample;
} fr_step_point;

#define FR_MOST_JITTER_FRAC 10.0 /* busier machines measure nothing */

typedef struct fr_profile {
    fr_fingerprint fingerprint;
    char model[128];         /* that the shapes come from; "": grids only */
    double wall_s;           /* that calibration took */
    uint64_t baseline_bytes; /* of a rank without its slab: code, MPI, BLAS; 0
                                where no second rank was there */
    uint64_t baseline_alone_bytes; /* of a single rank, without MPI */
    double instr_overhead_s;       /* the runtime's own, per instruction */
    double call_overhead_s;        /* per call: dependencies, lane hand-over */
    double wake_s;            /* until a waiting lane sees its dependency */
    double jitter_frac;       /* spread (p95 - p5) / median of the sentinel */
    int32_t n_disturbed;      /* phases repeated because the sentinel moved */
    fr_gpu_costs gpu;         /* meaningful where the fingerprint has a GPU */
    fr_running_costs running; /* may be absent in a file */
    fr_compute_point *compute;
    size_t n_compute, cap_compute;
    fr_comm_point *comm;
    size_t n_comm, cap_comm;
    fr_sharing_point *sharing;
    size_t n_sharing, cap_sharing;
    fr_rate_point *rate;
    size_t n_rate, cap_rate;
    fr_held_out *held_out;
    size_t n_held_out, cap_held_out;
    fr_others_point *others; /* may be absent in a file */
    size_t n_others, cap_others;
    fr_step_point *step; /* may be absent in a file */
    size_t n_step, cap_step;
    fr_run_point *run; /* of the stack; may be absent in a file */
    size_t n_run, cap_run;
} fr_profile;

/* Are its kernels those of a GPU? */
bool fr_profile_is_gpu(const fr_profile *profile);

void fr_profile_init(fr_profile *profile);
void fr_profile_release(fr_profile *profile);

FR_CHECKED fr_status fr_profile_add_compute(fr_profile *profile,
                                            const fr_compute_point *point,
                                            fr_err *err);
FR_CHECKED fr_status fr_profile_add_comm(fr_profile *profile,
                                         const fr_comm_point *point,
                                         fr_err *err);
FR_CHECKED fr_status fr_profile_add_sharing(fr_profile *profile,
                                            const fr_sharing_point *point,
                                            fr_err *err);
FR_CHECKED fr_status fr_profile_add_rate(fr_profile *profile,
                                         const fr_rate_point *point,
                                         fr_err *err);
FR_CHECKED fr_status fr_profile_add_held_out(fr_profile *profile,
                                             const fr_held_out *check,
                                             fr_err *err);
FR_CHECKED fr_status fr_profile_add_others(fr_profile *profile,
                                           const fr_others_point *point,
                                           fr_err *err);
FR_CHECKED fr_status fr_profile_add_step(fr_profile *profile,
                                         const fr_step_point *point,
                                         fr_err *err);
FR_CHECKED fr_status fr_profile_add_run(fr_profile *profile,
                                        const fr_run_point *point, fr_err *err);

/* NULL if absent; n_threads 0 or n_busy 0: any. */
const fr_rate_point *fr_profile_find_rate(const fr_profile *profile,
                                          const char *name, int n_threads,
                                          int n_busy);

/*
 * Strict JSON: unknown, missing or doubled keys, numbers that are not finite,
 * times that are not positive are FR_INPUT with "path:line: ...".
 */
FR_CHECKED fr_status fr_profile_load(const char *path, fr_profile *out,
                                     fr_err *err);
FR_CHECKED fr_status fr_profile_parse(const char *name, const char *text,
                                      size_t n_text, fr_profile *out,
                                      fr_err *err);
FR_CHECKED fr_status fr_profile_save(const fr_profile *profile,
                                     const char *path, fr_err *err);

/* Appends the same JSON, without a newline at the end. */
FR_CHECKED fr_status fr_profile_format(const fr_profile *profile,
                                       fr_buffer *out, fr_err *err);

/* A hash of all that a step's prediction rests on (plans record it). */
uint64_t fr_profile_hash(const fr_profile *profile);

#endif
