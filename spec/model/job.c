/* job.c: the table of the fields of a job, its learning-rate curve, its checks.
 */
#include "spec/model/job_fields.h"

#include <math.h>
#include <string.h>

static const char *const optimizers[FR_OPTIMIZER_N] = {
    [FR_OPTIMIZER_SGD] = "sgd",
    [FR_OPTIMIZER_ADAMW] = "adamw",
    [FR_OPTIMIZER_LARS] = "lars",
    [FR_OPTIMIZER_LAMB] = "lamb",
};

static const char *const schedules[FR_LR_N] = {
    [FR_LR_CONSTANT] = "constant",
    [FR_LR_COSINE] = "cosine",
    [FR_LR_LINEAR] = "linear",
    [FR_LR_INVERSE_SQRT] = "inverse-sqrt",
};

static const char *const rules[FR_LR_RULE_N] = {
    [FR_LR_RULE_NONE] = "none",
    [FR_LR_RULE_LINEAR] = "linear",
    [FR_LR_RULE_SQRT] = "sqrt",
};

const fr_names fr_optimizer_names = FR_NAMES(optimizers);
static const fr_names lr_schedule_names = FR_NAMES(schedules);
static const fr_names lr_rule_names = FR_NAMES(rules);

#define ROW(symbol, member, json, ...)                                         \
    [FR_JOB_##symbol] = {json, FR_MEMBER(fr_job, member), __VA_ARGS__}
#define RANGE(low, high) .min = (low), .max = (high)
#define OPTION(name, text) .option = (name), .help = (text)

/* The defaults are those of GPT-2 style training. */
const fr_field fr_job_fields[FR_JOB_FIELDS_N] = {
    ROW(GLOBAL_BATCH, global_batch, "global_batch", .initial = 8,
        RANGE(1, FR_NO_LIMIT), OPTION("global-batch", "sequences per step")),
    ROW(SEQ, seq, "seq", .initial = 128, RANGE(1, FR_NO_LIMIT),
        OPTION("seq", "tokens per sequence")),
    ROW(STEPS, n_steps, "steps", .initial = 20, RANGE(1, FR_NO_LIMIT),
        OPTION("steps", "training steps")),
    ROW(TOKENS, tokens, "tokens", .is_optional = true, RANGE(1, FR_NO_LIMIT),
        OPTION("tokens", "train on so many instead of --steps: 15e12, 300B")),
    ROW(SEED, seed, "seed", .initial = 1, RANGE(0, FR_NO_LIMIT),
        OPTION("seed", "seed of the weights and of the data order")),
    ROW(OPTIMIZER, optimizer, "optimizer", .names = &fr_optimizer_names,
        .initial = FR_OPTIMIZER_ADAMW, OPTION("optimizer", "update rule")),
    ROW(LR, lr, "lr", .initial = 3e-4, RANGE(0, FR_NO_LIMIT),
        OPTION("lr", "peak learning rate")),
    ROW(LR_SCHEDULE, lr_schedule, "lr_schedule", .names = &lr_schedule_names,
        OPTION("lr-schedule", "decay of the learning rate after warm-up")),
    ROW(LR_RULE, lr_rule, "lr_rule", .names = &lr_rule_names,
        OPTION("lr-rule", "scaling of the learning rate with the batch")),
    ROW(LR_BASE_BATCH, lr_base_batch, "lr_base_batch", .initial = 8,
        RANGE(1, FR_NO_LIMIT),
        OPTION("lr-base-batch", "global batch for which --lr was chosen")),
    ROW(WARMUP, warmup_steps, "warmup_steps", RANGE(0, FR_NO_LIMIT),
        OPTION("warmup", "warm-up steps")),
    ROW(DROPOUT, dropout, "dropout", RANGE(0, 1),
        OPTION("dropout", "share of activations to drop in training")),
    ROW(CLIP, clip_norm, "clip_norm", .initial = 1, RANGE(0, FR_NO_LIMIT),
        OPTION("clip", "largest global gradient norm; 0: no clipping")),
    ROW(WEIGHT_DECAY, weight_decay, "weight_decay", .initial = 0.1,
        RANGE(0, FR_NO_LIMIT),
        OPTION("weight-decay", "decoupled weight decay of matrices")),
    ROW(DATA, data, "data",
        OPTION("data", "training data: text, GPT-2 tokens or images")),
    ROW(SAMPLE_BYTES, sample_bytes, "sample_bytes", .is_optional = true,
        RANGE(0, FR_NO_LIMIT),
        OPTION("sample-bytes", "bytes of a sample on storage; 0: its tokens")),
    ROW(DECODE, decode_s, "decode_s", .is_optional = true,
        RANGE(0, FR_NO_LIMIT),
        OPTION("decode", "seconds that a loader needs for a sample (0)")),
    ROW(LOADERS, n_loaders, "loaders", .is_optional = true, RANGE(0, 4096),
        OPTION("loaders",
               "number of threads per device that decode samples (1)")),
    ROW(DATASET_BYTES, dataset_bytes, "dataset_bytes", .is_optional = true,
        RANGE(0, FR_NO_LIMIT),
        OPTION("dataset-bytes",
               "bytes of all samples: the part that fits in the hosts' memory "
               "is read once; 0: nothing is kept there")),
    ROW(BETA1, beta1, "beta1", .initial = 0.9),
    ROW(BETA2, beta2, "beta2", .initial = 0.95),
    ROW(OPTIMIZER_EPS, optimizer_eps, "optimizer_eps", .initial = 1e-8),
    /* You et al., arXiv 1708.03888. */
    ROW(TRUST_COEFFICIENT, trust_coefficient, "trust_coefficient",
        .initial = 0.001),
    ROW(LR_MIN_FRAC, lr_min_frac, "lr_min_frac", .initial = 0),
};

void fr_job_init(fr_job *job)
{
    memset(job, 0, sizeof *job);
    fr_fields_init(fr_job_fields, FR_JOB_FIELDS_N, job);
}

void fr_job_count_steps(fr_job *job, const fr_model *model)
{
    if (job->tokens <= 0)
        return;
    const int64_t each = fr_model_sample_tokens(model, job->seq);
    const int64_t batch = job->global_batch > INT64_MAX / each
                              ? INT64_MAX
                              : job->global_batch * each;
    job->n_steps = job->tokens / batch + (job->tokens % batch != 0);
}

/* Returns the factor of the learning rate that follows from the batch. */
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

double fr_job_peak_lr(const fr_job *job)
{
    return job->lr * rule_factor(job);
}

double fr_job_lr(const fr_job *job, int64_t i_step)
{
    double lr = fr_job_peak_lr(job);
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
        return fr_fail(err, FR_INPUT, "steps is %lld; give at least 1",
                       (long long)job->n_steps);
    if (job->tokens < 0)
        return fr_fail(err, FR_INPUT,
                       "tokens is %lld; give at least 1, or leave it out",
                       (long long)job->tokens);
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
                       fr_name_of(&lr_rule_names, job->lr_rule));
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
