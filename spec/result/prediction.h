/*
 * prediction.h: the answer of simulate: time with an interval, its parts,
 * memory by component.  `breakdown_s` adds up to step_s.
 */
#ifndef FR_SPEC_RESULT_PREDICTION_H
#define FR_SPEC_RESULT_PREDICTION_H

#include "core/base/err.h"
#include "core/document/names.h"
#include "spec/profile/run_point.h"

typedef enum fr_part {
    FR_PART_COMPUTE,
    FR_PART_EXPOSED_TP,
    FR_PART_EXPOSED_CP,
    FR_PART_EXPOSED_EP,
    FR_PART_EXPOSED_PP,
    FR_PART_EXPOSED_DP,
    FR_PART_BUBBLE,
    FR_PART_STRAGGLERS, /* waits for ranks that are slower, by jitter too */
    FR_PART_OPTIMIZER,
    FR_PART_DATA,
    FR_PART_EXPOSED_OFFLOAD, /* copies to the host's memory and back */
    FR_PART_HOST, /* nothing runs: the host has not issued what could */
    FR_PART_OTHER,
    FR_PART_N
} fr_part;

extern const fr_names fr_part_names; /* the JSON keys */
const char *fr_part_name(fr_part part);

/* Memory of the ranks of one pipeline stage: the live tensors at their peak, by
 * component, and the same three sums as in fr_prediction.memory.  The first
 * seven add up to allocated_bytes. */
typedef struct fr_stage_memory {
    uint64_t parameters_bytes, gradients_bytes, optimizer_bytes;
    uint64_t activations_bytes, buffers_bytes;
    uint64_t workspaces_bytes; /* scratch that libraries keep for good */
    uint64_t alignment_bytes;  /* rounding by an allocator, losses of packing at
                                  fixed places */
    uint64_t allocated_bytes, reserved_bytes, device_bytes;
} fr_stage_memory;

/* Up to so many stages are described one by one. */
enum { FR_PREDICTION_MAX_STAGES = 64 };

typedef struct fr_prediction {
    /* A step as its stack is expected to take it, the centre of the 90 %
     * interval; and at best, the sum of what is known to take time.  They
     * differ on GPUs whose stack was not measured. */
    double expected_step_s, step_s, step_s_p5, step_s_p95;
    double samples_per_s; /* sequences or images */
    double tokens_per_s;  /* a list of layers has none: then samples */
    /* Model flop utilization with all of attention counted (PaLM, appendix
     * B), and with the half of it that a causal mask leaves; hfu as mfu, with
     * what is recomputed. */
    double mfu, mfu_causal, hfu;
    double breakdown_s[FR_PART_N]; /* adds up to step_s */
    double busy_frac; /* of the step in which devices compute, their mean */
    struct {
        bool fits;
        double p_fits;
        double error_bytes; /* one standard error of the peak; 0: not known */
        uint64_t peak_bytes, capacity_bytes;
        uint64_t parameters_bytes, gradients_bytes, optimizer_bytes;
        uint64_t activations_bytes, buffers_bytes;
        uint64_t overhead_bytes; /* the rest of peak_bytes; of it these: */
        uint64_t workspaces_bytes, alignment_bytes;
        /* On GPUs: what the caching allocator has given out at the peak, what
         * it took from the driver for that, and what the driver reports for
         * the whole process.  On CPUs the first two are the slab, the third is
         * the slab and the memory of the process itself. */
        uint64_t allocated_bytes, reserved_bytes, device_bytes;
        /* The bytes that the ranks of the fullest node together offload to its
         * memory, 0: none; and the capacity of that memory, 0: unknown. */
        uint64_t host_bytes, host_capacity_bytes;
        /* On GPUs: the pipeline stages in order; n_stages is 0 where there
         * are more than FR_PREDICTION_MAX_STAGES.  The numbers above are those
         * of the tightest one. */
        int32_t n_stages, tightest_stage;
        fr_stage_memory stages[FR_PREDICTION_MAX_STAGES];
    } memory;
    struct {
        double usd_per_hour, usd_total, kwh;
    } cost;
    /* The correction by measured steps of the stack; n_runs 0: there is
     * none. */
    struct {
        int64_t n_runs;           /* that it rests on */
        double factor;            /* step_s over what it was without them */
        double half_width;        /* of the 90 % interval, relative */
        double half_width_prior;  /* the same if no step had been measured */
        const char *left;         /* of what most of the width is */
        double left_frac;         /* that share of its variance */
        fr_run_features features; /* of the step without them */
    } learned;
    const char *source; /* the worst source of a cost on the critical path */
    struct {
        uint64_t events;
        double wall_s;
        int64_t ranks_simulated, ranks_total;
    } sim;
} fr_prediction;

/* Is more offloaded to a node than it has? */
bool fr_prediction_lacks_host(const fr_prediction *prediction);

#endif
