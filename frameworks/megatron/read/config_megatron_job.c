/* config_megatron_job.c: batch, optimizer and schedule of arguments of
 * Megatron-LM, with its own values where they say nothing. */
#include "frameworks/megatron/megatron_keys.h"
#include "frameworks/megatron/megatron_words.h"
#include "frameworks/megatron/read/megatron_flags.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static fr_status read_schedule(fr_megatron_flags *flags, fr_config *out,
                               fr_err *err)
{
    fr_job *job = &out->file.job;
    const char *style;
    double min_lr = 0, fraction = 0;
    FR_TRY(fr_megatron_read_rows(flags, "rates", &out->file, err));
    FR_TRY(fr_megatron_read_rows(flags, "schedule", &out->file, err));
    FR_TRY(fr_megatron_real(flags, "min-lr", &min_lr, err));
    if (job->lr > 0 && min_lr <= job->lr)
        job->lr_min_frac = min_lr / job->lr;
    FR_TRY(fr_megatron_word(flags, "lr-decay-style", "linear", &style, err));
    const fr_key_word *known = fr_key_word_find(fr_megatron_lr_styles, style);
    if (known == NULL)
        fr_buffer_printf(&out->notes,
                         "--lr-decay-style %.40s: taken as "
                         "constant\n",
                         style);
    job->lr_schedule =
        known != NULL ? (fr_lr_schedule)known->value : FR_LR_CONSTANT;
    FR_TRY(fr_megatron_real(flags, "lr-warmup-fraction", &fraction, err));
    if (fraction > 0 && fraction < 1)
        job->warmup_steps = (int64_t)(fraction * (double)job->n_steps);
    return FR_OK;
}

static fr_status read_samples(fr_megatron_flags *flags, const char *name,
                              const fr_job *job, int64_t *out_steps,
                              fr_err *err)
{
    int64_t n = 0;
    FR_TRY(fr_megatron_i64(flags, name, 0, &n, err));
    if (n > 0 && job->global_batch > 0)
        *out_steps = (n + job->global_batch - 1) / job->global_batch;
    return FR_OK;
}

/* "2.4B", "768": a number with its suffix; *p moves behind it.  -1: none. */
static double take_amount(const char **p)
{
    static const struct {
        char letter;
        double factor;
    } units[] = {{'K', 1e3}, {'M', 1e6}, {'B', 1e9}, {'T', 1e12}};
    char *end;
    double value = strtod(*p, &end);
    if (end == *p || !(value >= 0 && value < 1e30))
        return -1;
    for (size_t i = 0; i < FR_LENGTH(units); i++)
        if (toupper((unsigned char)*end) == units[i].letter) {
            value *= units[i].factor;
            end++;
            break;
        }
    *p = end;
    return value;
}

/*
 * "0:16 2.4B:320 12B:1536": the batch from so many tokens on, of which the plan
 * takes the last (megatron/core/num_microbatches_calculator.py,
 * StepBatchsizeNumMicroBatchesCalculator._parse_schedule, core 0.19).
 */
static fr_status read_steps_of_batch(fr_megatron_flags *flags, fr_config *out,
                                     fr_err *err)
{
    const fr_megatron_flag *flag =
        fr_megatron_find(flags, "step-batch-size-schedule");
    double last = -1, batch = 0;
    if (flag == NULL)
        return FR_OK;
    bool is_ok = flag->n_values > 0;
    for (size_t i = 0; i < flag->n_values && is_ok; i++)
        for (const char *p = flag->values[i].text; *p != '\0' && is_ok;) {
            if (*p == ' ' || *p == ',') {
                p++;
                continue;
            }
            double from = take_amount(&p), size = -1;
            if (from >= 0 && *p == ':') {
                p++;
                size = take_amount(&p);
            }
            is_ok = size >= 1 && size <= 1 << 30 && strchr(" ,", *p) != NULL;
            if (is_ok && from >= last) {
                last = from;
                batch = size;
            }
        }
    if (!is_ok || last < 0)
        return fr_megatron_refuse(flags, flag,
                                  "give tokens and batches, as "
                                  "\"0:768 250B:1536\"",
                                  err);
    out->file.job.global_batch = (int64_t)batch;
    fr_buffer_printf(&out->notes,
                     "--step-batch-size-schedule: the plan is that of its last "
                     "batch, %lld%s\n",
                     (long long)batch,
                     fr_megatron_has(flags, "global-batch-size")
                         ? "; Megatron-LM takes no --global-batch-size besides"
                         : "");
    return FR_OK;
}

fr_status fr_megatron_read_job(fr_megatron_flags *flags, fr_config *out,
                               fr_err *err)
{
    fr_plan *plan = &out->file.plan;
    fr_job *job = &out->file.job;
    double of_attention = 0.1;
    /* Megatron-LM's own values. */
    job->global_batch = 0;
    job->seed = 1234;
    job->optimizer = FR_OPTIMIZER_ADAMW;
    job->beta1 = 0.9;
    job->beta2 = 0.999;
    job->optimizer_eps = 1e-8;
    job->weight_decay = 0.01;
    job->dropout = 0.1;
    FR_TRY(fr_megatron_read_rows(flags, "batch", &out->file, err));
    if (plan->micro_batch > 1 << 30)
        return fr_fail(err, FR_INPUT,
                       "%s:1: --micro-batch-size %lld: give "
                       "fewer sequences",
                       flags->path, (long long)plan->micro_batch);
    if (job->global_batch == 0)
        job->global_batch = plan->micro_batch * plan->dp;
    FR_TRY(read_steps_of_batch(flags, out, err));
    if (fr_megatron_has(flags, "rampup-batch-size"))
        fr_buffer_puts(&out->notes, "--rampup-batch-size: the plan is that of "
                                    "the full batch\n");
    FR_TRY(read_samples(flags, "train-samples", job, &job->n_steps, err));
    FR_TRY(fr_megatron_read_rows(flags, fr_megatron_moments(job), &out->file,
                                 err));
    FR_TRY(fr_megatron_read_rows(flags, "decay", &out->file, err));
    FR_TRY(read_schedule(flags, out, err));
    FR_TRY(
        read_samples(flags, "lr-warmup-samples", job, &job->warmup_steps, err));
    FR_TRY(fr_megatron_read_rows(flags, "dropout", &out->file, err));
    FR_TRY(fr_megatron_real(flags, "attention-dropout", &of_attention, err));
    if (job->dropout != of_attention)
        fr_buffer_printf(&out->notes,
                         "--attention-dropout %g: taken as that of residual "
                         "sums, %g\n",
                         of_attention, job->dropout);
    if (fr_megatron_has(flags, "data-path"))
        fr_buffer_puts(&out->notes, "--data-path: Megatron's own files, which "
                                    "forerun does not train on\n");
    return FR_OK;
}
