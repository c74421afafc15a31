/*
 * gpu_model.h: what a kernel costs on a GPU that was never measured here: a
 * physical model of its tiles, waves, memory traffic and launch over the
 * datasheet's figures.  All sources and equations stand beside the functions;
 * constants: gpu_constants.h.
 */
#ifndef FR_COST_MODELS_GPU_GPU_MODEL_H
#define FR_COST_MODELS_GPU_GPU_MODEL_H

#include "cost_models/base/cost.h"
#include "cost_models/gpu/gpu_constants.h"

typedef struct fr_gpu_model {
    const fr_gpu_constants *constants; /* borrowed */
    char id[FR_CLUSTER_ID];
    fr_gpu_generation generation;
    fr_gpu_attention_kind attention;
    double flops[FR_GPU_MATH_N]; /* that products sustain; 0: no such unit */
    double burst_flops[FR_GPU_MATH_N]; /* in the first tens of milliseconds */
    bool is_guessed[FR_GPU_MATH_N];    /* of its share nothing was measured */
    double n_cores;                    /* multiprocessors */
    double exp_ratio; /* exponentials of one of them in a clock over those of
                         all generations from Volta to Blackwell */
    double memory_Bps, cache_bytes;
} fr_gpu_model;

/* With the fitted constants. */
void fr_gpu_model_init(const fr_device_type *device, fr_gpu_model *out);
/* With others, which must outlive the model. */
void fr_gpu_model_init_with(const fr_device_type *device,
                            const fr_gpu_constants *constants,
                            fr_gpu_model *out);

/* Does the model know how the clock follows the power that it is given? */
bool fr_gpu_knows_power(const fr_device_type *device);

/* The unit for a dtype.  An older one where there is none of its own (bf16 on
 * Volta runs on the vector units); FR_GPU_MATH_N: none can do it. */
fr_gpu_math fr_gpu_math_of(const fr_gpu_model *model, fr_dtype dtype);

/* Returns the kind of fused attention that runs on the device if the plan asks
 * for `flash`. */
fr_gpu_attention_kind fr_gpu_attention_kind_of(const fr_gpu_model *model,
                                               fr_flash_kind flash);

/* ---- kernels, in seconds ------------------------------------------------ */

/* C[m,n] (+)= A[m,k] B[k,n], `groups` of them at once. */
typedef struct fr_gpu_product {
    int64_t m, n, k, groups;
    fr_gpu_math math;
    double in_bytes;  /* of an element of A and B */
    double out_bytes; /* moved per element of C: twice its size when added */
    bool has_block_scales; /* fp8: MXFP8 */
} fr_gpu_product;

double fr_gpu_product_s(const fr_gpu_model *model, const fr_gpu_product *p);

typedef struct fr_gpu_attention {
    int64_t batch, heads, kv_heads, queries, keys, qk_dim, v_dim;
    int64_t window; /* 0: none */
    fr_gpu_math math;
    fr_gpu_attention_kind kind; /* of the fused kernel */
    double bytes;               /* of an element */
    bool is_causal, is_backward, has_dropout;
} fr_gpu_attention;

/* One fused kernel (FlashAttention). */
double fr_gpu_attention_fused_s(const fr_gpu_model *model,
                                const fr_gpu_attention *a);
/* Products, softmax and dropout apart, with all pairs in memory. */
double fr_gpu_attention_apart_s(const fr_gpu_model *model,
                                const fr_gpu_attention *a);

/* Reads and writes `bytes`; family STREAM or ROWS. */
double fr_gpu_memory_s(const fr_gpu_model *model, double bytes,
                       fr_gpu_family family);

/*
 * Layers of convolutions of so much flop that read and write `bytes`; and
 * what moves `extra_bytes` between them.
 */
double fr_gpu_layers_s(const fr_gpu_model *model, fr_gpu_math math, double flop,
                       double bytes, double extra_bytes);

/* ---- instructions ------------------------------------------------------- */

/*
 * The cost of a compute instruction: work_s from start to start of the next
 * kernel, latency_s 0, one core (the device), memory_frac of the device's own
 * memory, rel_err of its kind of kernel, FR_COST_FITTED where kernels of this
 * generation and dtype were measured, else FR_COST_EXTRAPOLATED.
 * FR_INFEASIBLE: the GPU cannot multiply in that dtype.  FR_FAILURE: not a
 * compute instruction.  Allocates nothing.
 */
FR_CHECKED fr_status fr_gpu_cost_compute(const fr_gpu_model *model,
                                         const fr_instr *instr, fr_cost *out,
                                         fr_err *err);

#endif
