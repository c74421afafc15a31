/* case.c: what was measured, what may be scored, and the parts together. */
#include "interop/case/case_internal.h"
#include "interop/case/case_text.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define GIB (1024.0 * 1024 * 1024)

char *fr_case_name(const fr_case *row, char *buf, size_t n_buf)
{
    const char *id = row->field[FR_CASE_ID];
    const char *source = row->field[FR_CASE_SOURCE];
    const char *name = row->field[FR_CASE_ROW];
    if (*id != '\0')
        snprintf(buf, n_buf, "%s", id);
    else if (*source != '\0' && *name != '\0')
        snprintf(buf, n_buf, "%s: %s", source, name);
    else
        snprintf(buf, n_buf, "%s:%d", row->file, row->line);
    return buf;
}

/*
 * Megatron's hardware flop of a step with full recompute: 96 B s l h^2 (1 +
 * s/6h + V/16lh), arXiv 2104.04473 eq. 3.  Only where the page names it.
 */
static double megatron_step_flop(const fr_case_setup *setup)
{
    double b = (double)setup->job.global_batch, s = (double)setup->job.seq;
    double l = (double)setup->model.n_layers, h = (double)setup->model.hidden;
    double v = (double)setup->model.vocab;
    return 96 * b * s * l * h * h * (1 + s / (6 * h) + v / (16 * l * h));
}

static fr_status read_step_time(const fr_case *row, fr_case_setup *setup,
                                fr_err *err)
{
    double step_s = 0, tokens = 0, samples = 0, tflops = 0;
    double n_gpus = (double)fr_plan_world(&setup->plan);
    double batch = (double)setup->job.global_batch;
    FR_TRY(fr_case_real(row, FR_CASE_STEP_TIME_S, &step_s, err));
    FR_TRY(fr_case_real(row, FR_CASE_TOKENS_PER_S_PER_GPU, &tokens, err));
    FR_TRY(fr_case_real(row, FR_CASE_SAMPLES_PER_S, &samples, err));
    FR_TRY(fr_case_real(row, FR_CASE_TFLOPS_PER_GPU, &tflops, err));
    if (step_s > 0)
        setup->measured_s = step_s;
    else if (tokens > 0)
        setup->measured_s = batch * (double)setup->job.seq / tokens / n_gpus;
    else if (samples > 0)
        setup->measured_s = batch / samples;
    else if (tflops > 0 && fr_case_has(row->field[FR_CASE_TFLOPS_KIND], "96B"))
        setup->measured_s =
            megatron_step_flop(setup) / (tflops * 1e12) / n_gpus;
    return FR_OK;
}

static fr_memory_count memory_count_of(const char *text)
{
    static const struct {
        const char *word;
        fr_memory_count kind;
    } words[] = {
        {"formula", FR_MEMORY_COUNT_NONE},
        {"estimat", FR_MEMORY_COUNT_NONE},
        {"theor", FR_MEMORY_COUNT_NONE},
        {"comput", FR_MEMORY_COUNT_NONE},
        {"reserved", FR_MEMORY_COUNT_RESERVED},
        {"allocated", FR_MEMORY_COUNT_ALLOCATED},
        {"smi", FR_MEMORY_COUNT_DEVICE},
        {"nvml", FR_MEMORY_COUNT_DEVICE},
        {"driver", FR_MEMORY_COUNT_DEVICE},
        {"device", FR_MEMORY_COUNT_DEVICE},
        {"cudamemgetinfo", FR_MEMORY_COUNT_DEVICE},
    };
    for (size_t i = 0; i < FR_LENGTH(words); i++)
        if (fr_case_has(text, words[i].word))
            return words[i].kind;
    return FR_MEMORY_COUNT_NONE;
}

/* Megatron's TensorBoard is written by the last rank (training/global_vars.py,
 * _set_tensorboard_writer). */
static fr_case_rank memory_rank_of(const char *text)
{
    if (fr_case_has(text, "rank 0") || fr_case_has(text, "first rank"))
        return FR_CASE_RANK_FIRST;
    if (fr_case_has(text, "last rank") || fr_case_has(text, "tensorboard"))
        return FR_CASE_RANK_LAST;
    return FR_CASE_RANK_TIGHTEST;
}

/* Allocators and drivers count in powers of two, whatever the column says. */
static fr_status read_memory(const fr_case *row, fr_case_setup *setup,
                             fr_err *err)
{
    const char *status = row->field[FR_CASE_STATUS];
    double gib = 0;
    FR_TRY(fr_case_real(row, FR_CASE_PEAK_MEM_GB, &gib, err));
    FR_TRY(fr_case_real(row, FR_CASE_PEAK_MEM_GIB, &gib, err));
    setup->peak_bytes = gib * GIB;
    setup->memory_count = memory_count_of(row->field[FR_CASE_MEM_KIND]);
    setup->memory_rank = memory_rank_of(row->field[FR_CASE_MEM_KIND]);
    if (fr_case_has(status, "oom") || fr_case_has(status, "out of memory") ||
        fr_case_has(status, "does not fit"))
        setup->status = FR_CASE_STATUS_OOM;
    else if (fr_case_has(status, "fits") || fr_case_has(status, "ok"))
        setup->status = FR_CASE_STATUS_FITS;
    return FR_OK;
}

/* Graded A or B with a complete configuration, as far as the file grades. */
static void judge_step(const fr_case *row, fr_case_setup *setup)
{
    char *why = setup->why_unscored_step;
    size_t n = sizeof setup->why_unscored_step;
    const char *grade = row->field[FR_CASE_GRADE];
    const char *complete = row->field[FR_CASE_CONFIG_COMPLETE];
    int letter = toupper((unsigned char)grade[0]);
    why[0] = '\0';
    if (setup->measured_s <= 0)
        snprintf(why, n, "no step time, throughput or known formula");
    else if (fr_case_find_switch(row->field[FR_CASE_OTHER_OPTS],
                                 "deterministic") == 1)
        snprintf(why, n, "deterministic mode, whose kernels have no price");
    else if (row->has_grade && letter != 'A' && letter != 'B')
        snprintf(why, n, "grade %.20s", *grade != '\0' ? grade : "is empty");
    else if (row->has_config_complete && strncasecmp(complete, "full", 4) != 0)
        snprintf(why, n, "configuration: %.80s",
                 *complete != '\0' ? complete : "not said to be complete");
    else if (setup->guessed[0] != '\0')
        snprintf(why, n, "guessed: %.90s", setup->guessed);
}

/* A graded file says how good its times are; memory does not hang on them,
 * nor on the number of micro-batches. */
static void judge_memory(fr_case_setup *setup)
{
    char *why = setup->why_unscored_memory;
    size_t n = sizeof setup->why_unscored_memory;
    why[0] = '\0';
    if (setup->peak_bytes <= 0)
        snprintf(why, n, "no memory measured");
    else if (setup->memory_count == FR_MEMORY_COUNT_NONE)
        snprintf(why, n,
                 "mem_kind names neither allocated, reserved nor nvidia-smi");
    else if (setup->guessed[0] != '\0' && strcmp(setup->guessed, "gbs") != 0)
        snprintf(why, n, "guessed: %.90s", setup->guessed);
}

fr_status fr_case_read(const char *configs, const fr_case *row,
                       fr_case_setup *out, fr_err *err)
{
    fr_status status;
    fr_case_setup setup = {.measured_s = 0};
    fr_model_init(&setup.model);
    fr_plan_init(&setup.plan);
    fr_job_init(&setup.job);
    FR_TRY_GOTO(status, fr_case_read_model(configs, row, &setup, err),
                out_failed);
    FR_TRY_GOTO(status, fr_case_read_plan(row, &setup, err), out_failed);
    FR_TRY_GOTO(status, read_step_time(row, &setup, err), out_failed);
    FR_TRY_GOTO(status, read_memory(row, &setup, err), out_failed);
    status = fr_model_check(&setup.model, err);
    if (status != FR_OK) {
        status = fr_case_fail_at(row, status, err);
        goto out_failed;
    }
    FR_TRY_GOTO(status, fr_case_read_cluster(row, &setup, err), out_failed);
    judge_step(row, &setup);
    judge_memory(&setup);
    *out = setup;
    return FR_OK;
out_failed:
    fr_model_release(&setup.model);
    return status;
}

void fr_case_setup_release(fr_case_setup *setup)
{
    fr_model_release(&setup->model);
    fr_cluster_release(&setup->cluster);
    memset(setup, 0, sizeof *setup);
}
