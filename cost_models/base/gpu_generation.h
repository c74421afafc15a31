/*
 * gpu_generation.h: generations of GPUs, one row each: what the models of
 * kernels, of memory and of links know of one beyond its fitted shares
 * (gpu_constants.c) and its datasheet (spec/catalog).
 */
#ifndef FR_COST_MODELS_BASE_GPU_GENERATION_H
#define FR_COST_MODELS_BASE_GPU_GENERATION_H

#include "spec/cluster/cluster.h"

#include <stdbool.h>
#include <stdint.h>

/* The implementation of fused attention on a generation. */
typedef enum fr_gpu_attention_kind {
    FR_GPU_ATTENTION_SYNC,  /* FlashAttention-2: products wait for softmax */
    FR_GPU_ATTENTION_ASYNC, /* FlashAttention-3, cuDNN 9: two blocks at once */
    FR_GPU_ATTENTION_TMEM,  /* FlashAttention-4: part of exp by polynomial */
    FR_GPU_ATTENTION_LATER, /* FlashAttention-2 on what came after Ampere, in
                               Ampere's instructions */
    FR_GPU_ATTENTION_FIRST, /* FlashAttention of 2022 */
    FR_GPU_ATTENTION_N
} fr_gpu_attention_kind;

/* A row of gpu_generation.c each, in its order. */
typedef enum fr_gpu_generation {
    FR_GPU_VOLTA,
    FR_GPU_AMPERE,
    FR_GPU_ADA,
    FR_GPU_HOPPER,
    FR_GPU_BLACKWELL,
    FR_GPU_BLACKWELL_ULTRA, /* B300, GB300 */
    FR_GPU_CDNA2,
    FR_GPU_CDNA3,
    FR_GPU_CDNA4,
    FR_GPU_OTHER,
    FR_GPU_GENERATION_N
} fr_gpu_generation;

/* The facts of NCCL's tuner about the links of a compute capability;
 * generations that it does not distinguish share a row. */
typedef struct fr_gpu_link_rates {
    int capability;        /* 70, 80 ...: later ones are faster */
    double nvlink_share;   /* of the wire's rate, less headers of packets */
    double ll_most_Bps[3]; /* LL's busbw at most, on 1, 2 and more nodes */
    double nvls_share;     /* that NVLink SHARP reaches of the ring's rate; 0:
                              its switches do not add */
    int n_channels;        /* in a switch that does not add */
    bool is_known;         /* collectives over its switches were measured */
    bool is_new;           /* has the later of two shares of LL128 and steps */
} fr_gpu_link_rates;

typedef struct fr_gpu_generation_row {
    const char *name; /* in cluster files and the catalogue */
    /* Watts per peak 16-bit TFLOP/s of the card whose share of the peak stands
     * in the constants (the datasheets); 0: none does. */
    double reference_w_per_tflops;
    fr_gpu_generation stands_in; /* its share is used if this one has none */
    fr_gpu_attention_kind attention;
    bool has_large_context; /* of the driver, as the first tensor cores */
    uint64_t blas_bytes;    /* workspace of cuBLAS, hipBLAS for one handle */
    uint64_t fused_bytes;   /* and of Transformer Engine's; 0: it has none */
    const fr_gpu_link_rates *links; /* NULL: by what its tensor cores can do */
} fr_gpu_generation_row;

extern const fr_gpu_generation_row fr_gpu_generations[FR_GPU_GENERATION_N];

const char *fr_gpu_generation_name(fr_gpu_generation generation);

/* Its own, or where the cluster file names none, by what it can multiply. */
fr_gpu_generation fr_gpu_generation_of(const fr_device_type *device);

/* Never NULL. */
const fr_gpu_link_rates *fr_gpu_link_rates_of(const fr_device_type *device);

#endif
