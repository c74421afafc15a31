/*
 * gpu_show.h: one training run of all its ranks, a thread each, on fake GPUs
 * (or on the CPU): what tests of the GPU backend compare.
 */
#ifndef FR_TESTS_GPU_SHOW_H
#define FR_TESTS_GPU_SHOW_H

#include "program/lower/step/lower.h"
#include "runtime/gpu/executor_gpu.h"
#include "tests/unit/runtime/gpu_fake.h"

/* Models of four layers. */
extern const char gpu_show_gpt2[], gpu_show_llama[];

typedef struct gpu_show {
    const char *model_text;
    const fr_model *model;       /* instead of the text; NULL: none */
    const int32_t *node_of_rank; /* NULL: all on one */
    fr_plan plan;
    fr_job job;
    fr_run_options options;
    gpu_fake *fake;              /* NULL: the CPU ... */
    const fr_gpu_system *system; /* ... if this is NULL too */
    bool is_shared, is_launched, is_estimated;
    int port; /* ranks meet there over sockets; 0: in memory */
    /* The outcome. */
    fr_program *program;
    fr_timeline timeline;
    fr_run_result result; /* of rank 0 */
    fr_status status[GPU_FAKE_MAX_RANKS];
    fr_err err[GPU_FAKE_MAX_RANKS];
    double took_s;
} gpu_show;

/* One rank, GPT-2, a global batch of 8 x 16, AdamW, six steps. */
void gpu_show_init(gpu_show *show);
/* false: there is no program for it (said as a failed check). */
bool gpu_show_perform(gpu_show *show);
/* And all ranks end well. */
bool gpu_show_perform_well(gpu_show *show);
void gpu_show_release(gpu_show *show);

#endif
