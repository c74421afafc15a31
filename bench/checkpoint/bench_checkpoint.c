/*
 * bench_checkpoint.c: what a checkpoint of a state of 1 GiB holds up, written
 * at once and asynchronously: make bench-checkpoint.  One rank; the state is
 * that of a decoder with 90 million parameters, of which nothing is trained.
 */
#include "core/numbers/stats.h"
#include "core/system/clock.h"
#include "program/lower/step/lower.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/comm/transport.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_SAVES = 5 };

static const char model_text[] =
    "{\"model_type\": \"gpt2\", \"n_layer\": 7, \"n_embd\": 768, "
    "\"n_head\": 12, \"n_inner\": 3072, \"n_positions\": 64, "
    "\"vocab_size\": 50304, \"layer_norm_epsilon\": 1e-5, "
    "\"activation_function\": \"gelu_new\"}";

static fr_status lower(fr_program **out, fr_err *err)
{
    const fr_placement placement = {.n_ranks = 1};
    fr_model model;
    fr_job job;
    fr_plan plan;

    fr_job_init(&job);
    job.global_batch = 1;
    job.seq = 64;
    fr_plan_init(&plan);
    plan.n_threads = 2;
    FR_TRY(fr_model_parse("bench", model_text, sizeof model_text - 1, &model,
                          err));
    fr_status status = fr_lower(&model, &job, &plan, &placement, out, err);
    fr_model_release(&model);
    return status;
}

/* The median time that a save holds training up; *whole_s: until it is on the
 * disk. */
static fr_status measure(const fr_program *program, const char *dir,
                         unsigned char *slab, bool is_async, double *stall_s,
                         double *whole_s, fr_err *err)
{
    const fr_checkpoint_options options = {
        .dir = dir, .is_resumed = true, .is_async = is_async, .n_kept = 1};
    const fr_state state = fr_state_of_memory(slab);
    double stalls[N_SAVES], wholes[N_SAVES];
    fr_checkpoints *checkpoints = NULL;
    fr_transport *transport = NULL;

    FR_TRY(fr_transport_alone_create(60, &transport, err));
    fr_status status =
        fr_checkpoints_open(&options, program, transport, &checkpoints, err);
    for (int i = 0; status == FR_OK && i < N_SAVES; i++) {
        const double begin_s = fr_clock_s();
        status = fr_checkpoints_save(checkpoints, &state,
                                     is_async ? 100 + i : 1 + i, NULL, err);
        stalls[i] = fr_clock_s() - begin_s;
        if (status == FR_OK)
            status = fr_checkpoints_finish(checkpoints, true, err);
        wholes[i] = fr_clock_s() - begin_s;
    }
    fr_checkpoints_close(checkpoints);
    fr_transport_destroy(transport);
    if (status != FR_OK)
        return status;
    *stall_s = fr_stats_median(stalls, N_SAVES);
    *whole_s = fr_stats_median(wholes, N_SAVES);
    return FR_OK;
}

static fr_status run(const char *dir, fr_err *err)
{
    fr_program *program = NULL;
    double sync_s = 0, stall_s = 0, whole_s = 0;

    FR_TRY(lower(&program, err));
    const fr_rank_program *rank = &program->rank_programs[0];
    unsigned char *slab = calloc(rank->slab_bytes, 1);
    fr_status status = slab != NULL ? FR_OK : fr_fail_no_memory(err);
    for (uint32_t i = 0; status == FR_OK && i < rank->n_blocks; i++)
        if (rank->blocks[i].is_persistent)
            memset(slab + rank->blocks[i].offset_bytes, (int)i + 1,
                   rank->blocks[i].n_bytes);
    if (status == FR_OK)
        status = measure(program, dir, slab, false, &sync_s, &whole_s, err);
    if (status == FR_OK)
        status = measure(program, dir, slab, true, &stall_s, &whole_s, err);
    if (status == FR_OK)
        printf("{\"parameters\": %llu, \"sync_s\": %.3f, \"async_stall_s\": "
               "%.3f, \"async_whole_s\": %.3f, \"stall_frac\": %.3f}\n",
               (unsigned long long)rank->n_parameters, sync_s, stall_s, whole_s,
               stall_s / sync_s);
    free(slab);
    fr_program_destroy(program);
    return status;
}

int main(int argc, char **argv)
{
    fr_err err = {0};

    if (argc != 2) {
        fprintf(stderr, "usage: bench_checkpoint DIR\n");
        return 2;
    }
    if (run(argv[1], &err) == FR_OK)
        return 0;
    fprintf(stderr, "bench_checkpoint: %s\n", err.text);
    return 1;
}
