/* job.c: defaults of a job, its learning-rate curve, its checks. */
#include "spec/model/job.h"

#include <math.h>
#include <string.h>

static const char *const optimizer_names[FR_OPTIMIZER_N] = {
    [FR_OPTIMIZER_SGD] = "sgd",
    [FR_OPTIMIZER_ADAMW] = "adamw",
    [FR_OPTIMIZER_LARS] = "lars",
    [FR_OPTIMIZER_LAMB] = "lamb",
};

static const char *const schedule_names[FR_LR_N] = {
    [FR_LR_CONSTANT] = "constant",
    [FR_LR_COSINE] = "cosine",
    [FR_LR_LINEAR] = "linear",
    [FR_LR_INVERSE_SQRT] = "inverse-sqrt",
};

static const char *const rule_names[FR_LR_RULE_N] = {
    [FR_LR_RULE_NONE] = "none",
    [FR_LR_RULE_LINEAR] = "linear",
    [FR_LR_RULE_SQRT] = "sqrt",
};

const char *fr_optimizer_kind_name(fr_optimizer_kind kind)
{
    return (unsigned)kind < FR_OPTIMIZER_N ? optimizer_names[kind] : "unknown";
}

const char *fr_lr_schedule_name(fr_lr_schedule schedule)
{
    return (unsigned)schedule < FR_LR_N ? schedule_names[schedule] : "unknown";
}

const char *fr_lr_rule_name(fr_lr_rule rule)
{
    return (unsigned)rule < FR_LR_RULE_N ? rule_names[rule] : "unknown";
}

int fr_optimizer_kind_find(const char *name)
{
    for (int i = 0; i < FR_OPTIMIZER_N; i++)
        if (strcmp(optimizer_names[i], name) == 0)
            return i;
    return -1;
}

void fr_job_init(fr_job *job)
{
    memset(job, 0, sizeof *job);
    job->global_batch = 8;
    job->seq = 128;
    job->n_steps = 20;
    job->seed = 1;
    job->optimizer = FR_OPTIMIZER_ADAMW;
    job->lr = 3e-4;
    job->beta1 = 0.9;
    job->beta2 = 0.95;
    job->optimizer_eps = 1e-8;
    job->weight_decay = 0.1;
    job->trust_coefficient = 0.001; /* You et al., arXiv 1708.03888 */
    job->clip_norm = 1.0;
    job->lr_schedule = FR_LR_CONSTANT;
    job->lr_rule = FR_LR_RULE_NONE;
    job->lr_base_batch = 8;
}

/* What the batch makes of the rate. */
static double rule_factor(const fr_job *job)
{
    double ratio = (double)job->global_batch / (double)job->lr_base_batch;
    switch (job->lr_rule) {
    case FR_LR_RULE_LINEAR:
        return ratio;
    case FR_LR_RULE_SQRT:
        return sqrt(ratio);
    case FR_LR_RULE_NONE:
    case FR_LR_RULE_N:
        break;
    }
    return 1.0;
}

/* From 0 just after warm-up to 1 at the last step. */
static double decay_progress(const fr_job *job, int64_t i_step)
{
    int64_t n_decay = job->n_steps - 1 - job->warmup_steps;
    if (n_decay <= 0)
        return i_step >= job->n_steps - 1 ? 1.0 : 0.0;
    double progress = (double)(i_step - job->warmup_steps) / (double)n_decay;
    return progress > 1.0 ? 1.0 : progress;
}

double fr_job_lr(const fr_job *job, int64_t i_step)
{
    double lr = job->lr * rule_factor(job);
    if (i_step < job->warmup_steps)
        return lr * (double)(i_step + 1) / (double)job->warmup_steps;
    double floor_frac = job->lr_min_frac;
    double frac = 1.0;
    switch (job->lr_schedule) {
    case FR_LR_COSINE:
        frac = floor_frac +
               (1.0 - floor_frac) * 0.5 *
                   (1.0 + cos(acos(-1.0) * decay_progress(job, i_step)));
        break;
    case FR_LR_LINEAR:
        frac = 1.0 - (1.0 - floor_frac) * decay_progress(job, i_step);
        break;
    case FR_LR_INVERSE_SQRT: {
        int64_t peak = job->warmup_steps > 0 ? job->warmup_steps : 1;
        frac = sqrt((double)peak / (double)(i_step + 1));
        frac = frac > floor_frac ? frac : floor_frac;
        break;
    }
    case FR_LR_CONSTANT:
    case FR_LR_N:
        break;
    }
    return lr * frac;
}

static fr_status check_counts(const fr_job *job, fr_err *err)
{
    if (job->global_batch < 1)
        return fr_fail(err, FR_INPUT,
                       "global_batch is %lld; give at least 1 sequence",
                       (long long)job->global_batch);
    if (job->seq < 1)
        return fr_fail(err, FR_INPUT, "seq is %lld; give at least 1 token",
                       (long long)job->seq);
    if (job->global_batch > INT64_MAX / job->seq)
        return fr_fail(err, FR_INPUT,
                       "global_batch %lld x seq %lld does not fit 64 bits",
                       (long long)job->global_batch, (long long)job->seq);
    if (job->n_steps < 1)
        return fr_fail(err, FR_INPUT, "n_steps is %lld; give at least 1",
                       (long long)job->n_steps);
    if (job->warmup_steps < 0)
        return fr_fail(err, FR_INPUT, "warmup_steps is %lld; give 0 or more",
                       (long long)job->warmup_steps);
    if ((unsigned)job->optimizer >= FR_OPTIMIZER_N)
        return fr_fail(err, FR_INPUT,
                       "unknown optimizer; choose sgd, adamw, lars or lamb");
    if ((unsigned)job->lr_schedule >= FR_LR_N)
        return fr_fail(err, FR_INPUT,
                       "unknown lr_schedule; choose constant, cosine, linear "
                       "or inverse-sqrt");
    if ((unsigned)job->lr_rule >= FR_LR_RULE_N)
        return fr_fail(err, FR_INPUT,
                       "unknown lr_rule; choose none, linear or sqrt");
    if (job->lr_rule != FR_LR_RULE_NONE && job->lr_base_batch < 1)
        return fr_fail(err, FR_INPUT,
                       "lr_rule %s needs lr_base_batch, the batch that lr "
                       "was chosen for",
                       fr_lr_rule_name(job->lr_rule));
    return FR_OK;
}

fr_status fr_job_check(const fr_job *job, fr_err *err)
{
    FR_TRY(check_counts(job, err));
    const struct {
        const char *name;
        double value, low, high;
        bool is_low_open, is_high_open;
    } ranges[] = {
        {"lr", job->lr, 0.0, HUGE_VAL, true, true},
        {"beta1", job->beta1, 0.0, 1.0, false, true},
        {"beta2", job->beta2, 0.0, 1.0, false, true},
        {"optimizer_eps", job->optimizer_eps, 0.0, 1.0, true, false},
        {"weight_decay", job->weight_decay, 0.0, HUGE_VAL, false, true},
        {"trust_coefficient", job->trust_coefficient, 0.0, HUGE_VAL, true,
         true},
        {"dropout", job->dropout, 0.0, 1.0, false, true},
        {"clip_norm", job->clip_norm, 0.0, HUGE_VAL, false, true},
        {"lr_min_frac", job->lr_min_frac, 0.0, 1.0, false, false},
    };
    for (size_t i = 0; i < FR_LENGTH(ranges); i++) {
        double value = ranges[i].value;
        bool is_low_ok = ranges[i].is_low_open ? value > ranges[i].low
                                               : value >= ranges[i].low;
        bool is_high_ok = ranges[i].is_high_open ? value < ranges[i].high
                                                 : value <= ranges[i].high;
        if (!is_low_ok || !is_high_ok)
            return fr_fail(err, FR_INPUT,
                           "%s is %g; give a number in %c%g, %g%c",
                           ranges[i].name, value,
                           ranges[i].is_low_open ? '(' : '[', ranges[i].low,
                           ranges[i].high, ranges[i].is_high_open ? ')' : ']');
    }
    return FR_OK;
}
