/*
 * gpu_interpreter_state.h: what the parts of the GPU's interpreter share.
 * Inside runtime/gpu/gpu_interpreter*.c only.
 */
#ifndef FR_RUNTIME_GPU_GPU_INTERPRETER_STATE_H
#define FR_RUNTIME_GPU_GPU_INTERPRETER_STATE_H

#include "runtime/gpu/gpu_interpreter.h"
#include "runtime/rank/rank_context.h"

#include <stdatomic.h>

/* One call as the host enqueues it. */
typedef struct fr_gpu_call {
    uint32_t first_wait, n_waits; /* in `waits`: calls of other lanes */
    fr_gpu_event *done;           /* NULL: no other lane waits for it */
    uint32_t first_instr;         /* number of its first instruction in a step:
                                     index of the trace's events */
    uint64_t input_bytes; /* offset of its instructions' part of the input */
    uint32_t i_host;      /* the same of its step on the host */
} fr_gpu_call;

/* A step of the optimizer on the host; page-locked. */
typedef struct fr_gpu_host_step {
    fr_step_scalars scalars; /* as the device has them when it begins */
    struct fr_gpu_pinned *pinned;
    fr_kernel_call call;
} fr_gpu_host_step;

/* A communication of a lane: what its marks mean. */
typedef struct fr_gpu_lane_comm {
    uint32_t i_call, i_instr;
} fr_gpu_lane_comm;

/* Marks of a lane: 2 k + 1 when it begins its k-th communication of the step,
 * 2 k + 2 when it has ended it. */
typedef struct fr_gpu_lane {
    fr_gpu_stream stream; /* NULL: no call of the rank program is on it */
    fr_gpu_event *end;    /* of the step; compute lane: of the whole */
    fr_gpu_event *paced;  /* which the host waits for while it enqueues */
    bool has_kernels;     /* of the device or of the host */
    bool has_device_kernels;
    fr_cuda_kernels *kernels; /* theirs */
    fr_gpu_lane_comm *comms;
    uint32_t n_comms;
    uint32_t i_comm;     /* while enqueuing */
    uint32_t n_enqueued; /* instructions of the step */
    uint32_t last_mark;  /* as the watcher saw it last, and when it changed */
    int64_t moved_ns;
    uint32_t last_call; /* 1 + the call that it is in or waits before, 0: none
                           yet, FR_GPU_LANE_ENDED: behind all of them */
} fr_gpu_lane;

#define FR_GPU_LANE_ENDED UINT32_MAX

/* Page-locked: the device reads the first part, writes the rest. */
typedef struct fr_gpu_pinned {
    fr_cuda_step step;
    fr_step_scalars scalars;
    struct {
        uint32_t word;
        uint32_t call; /* lanes with kernels: see fr_gpu_lane.last_call */
        unsigned char padding[56];
    } marks[FR_LANE_N];
    /* A device that was given up may call the host when the interpreter is no
     * more, but finds this. */
    _Atomic bool has_stopped;   /* steps on the host do nothing any more */
    _Atomic uint32_t n_on_host; /* that are under way */
} fr_gpu_pinned;

struct fr_gpu_interpreter {
    fr_gpu_place place;
    const fr_gpu_driver *driver; /* place.system's */
    fr_gpu *gpu;
    fr_rank_context rank;
    fr_gpu_links *links;
    fr_gpu_options options;
    fr_gpu_lane lanes[FR_LANE_N];
    fr_gpu_call *calls; /* [n_calls] */
    uint32_t *waits;
    fr_gpu_pinned *pinned;
    fr_cuda_step *device_step;
    unsigned char *input;       /* page-locked: of the step that runs */
    unsigned char *input_ahead; /* of the next one, ordinary memory */
    uint64_t input_bytes;
    int64_t i_ahead;              /* step of input_ahead, -1: none */
    unsigned char *host;          /* page-locked: the program's host blocks */
    fr_gpu_host_step *host_steps; /* [n_host_steps] */
    uint32_t n_host_steps;
    fr_gpu_event *begin;
    fr_gpu_graph *graph;
    int64_t n_steps;   /* done so far */
    bool is_abandoned; /* the device may never answer again */
    int64_t moved_ns;  /* when the watcher last saw any lane go on */
    /* The step that is being enqueued. */
    int64_t i_step;
    bool is_traced, is_noted, is_captured;
    /* Traced steps: two events for each instruction of a step. */
    fr_gpu_event **trace; /* [2 n_instrs] */
    uint32_t n_instrs;
    fr_span *spans;
    size_t n_spans, cap_spans;
    unsigned char *gradients; /* for on_gradients */
};

/* Returns the bytes that an instruction gets from data, in the host's memory,
 * aligned for every type. */
static inline uint64_t fr_gpu_input_room(const fr_gpu_interpreter *it,
                                         const fr_instr *instr)
{
    return (fr_rank_input_bytes(&it->rank, instr) + 15) / 16 * 16;
}

/* Does the host carry it out, when its stream gets there? */
static inline bool fr_gpu_is_on_host(const fr_instr *instr)
{
    return (instr->flags & FR_INSTR_HOST) != 0;
}

/* Enqueues a step of the optimizer on the host.  (gpu_interpreter_host.c) */
FR_CHECKED fr_status fr_gpu_enqueue_host_step(fr_gpu_interpreter *it,
                                              fr_lane lane, uint32_t i_call,
                                              const fr_instr *instr,
                                              void *const *ptr, fr_err *err);
/* None of them runs when it returns, and none begins later. */
void fr_gpu_stop_host_steps(fr_gpu_interpreter *it);
/* Enqueues the whole step on the lanes' streams. */
FR_CHECKED fr_status fr_gpu_enqueue_step(fr_gpu_interpreter *it, fr_err *err);
/* Brings what a step that is over has counted, where enqueue_step() has not. */
FR_CHECKED fr_status fr_gpu_finish_step(fr_gpu_interpreter *it, fr_err *err);
/* Ends all that is under way; the device may never answer again. */
void fr_gpu_abandon(fr_gpu_interpreter *it);
/* Waits for the step's end; sees what fails or hangs. */
FR_CHECKED fr_status fr_gpu_watch(fr_gpu_interpreter *it, fr_err *err);
/* The same of any event. */
FR_CHECKED fr_status fr_gpu_wait_event(fr_gpu_interpreter *it,
                                       fr_gpu_event *event, fr_err *err);

#endif
