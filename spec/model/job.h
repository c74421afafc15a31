/*
 * job.h: what training is asked for, apart from how it is laid out: batch,
 * sequence, steps, optimizer, learning-rate schedule, seed, data.
 */
#ifndef FR_SPEC_MODEL_JOB_H
#define FR_SPEC_MODEL_JOB_H

#include "core/base/err.h"
#include "core/document/names.h"
#include "spec/model/model.h"

typedef enum fr_optimizer_kind {
    FR_OPTIMIZER_SGD, /* with momentum */
    FR_OPTIMIZER_ADAMW,
    FR_OPTIMIZER_LARS,
    FR_OPTIMIZER_LAMB,
    FR_OPTIMIZER_N
} fr_optimizer_kind;

typedef enum fr_lr_schedule {
    FR_LR_CONSTANT,
    FR_LR_COSINE, /* to lr * lr_min_frac at the last step */
    FR_LR_LINEAR,
    FR_LR_INVERSE_SQRT,
    FR_LR_N
} fr_lr_schedule;

/* The rule by which the learning rate follows the batch: lr * (batch/base)^{0,
 * 1, 1/2}. */
typedef enum fr_lr_rule {
    FR_LR_RULE_NONE,
    FR_LR_RULE_LINEAR,
    FR_LR_RULE_SQRT,
    FR_LR_RULE_N
} fr_lr_rule;

typedef struct fr_job {
    int64_t global_batch; /* sequences per step */
    int64_t seq;          /* tokens per sequence */
    int64_t n_steps;
    int64_t tokens; /* of the whole run, from which n_steps follows; 0: n_steps
                       is as it was given */
    uint64_t seed;
    fr_optimizer_kind optimizer;
    double lr;
    double beta1; /* SGD, LARS: momentum */
    double beta2;
    double optimizer_eps;
    double weight_decay;      /* matrices only, never norms and biases */
    double trust_coefficient; /* LARS */
    double clip_norm;         /* global gradient norm; 0: no clipping */
    double dropout;           /* of residual sums and attention; 0: none */
    fr_lr_schedule lr_schedule;
    int64_t warmup_steps;
    double lr_min_frac;
    fr_lr_rule lr_rule;
    int64_t lr_base_batch; /* batch that `lr` was chosen for */
    char data[512];        /* token file; "": synthetic tokens */
    /* The cost of reading and decoding samples. */
    double sample_bytes;  /* of one on storage; 0: its tokens */
    double decode_s;      /* of a loader, for one */
    int64_t n_loaders;    /* threads of each device that decode; 0: one */
    double dataset_bytes; /* of all samples; 0: none stays in host memory */
} fr_job;

/* GPT-2 style defaults: AdamW 3e-4, (0.9, 0.95), wd 0.1, clip 1, 20 steps. */
void fr_job_init(fr_job *job);

/* Makes n_steps follow from `tokens`, where the job has them: the steps that
 * they take in whole batches (a list of layers counts samples).  Everything
 * that changes tokens, the batch or the sequence calls it. */
void fr_job_count_steps(fr_job *job, const fr_model *model);

/* Learning rate of step i_step (from 0), warm-up, decay and rule applied. */
double fr_job_lr(const fr_job *job, int64_t i_step);
/* The rate after warm-up and before decay, rule applied. */
double fr_job_peak_lr(const fr_job *job);

extern const fr_names fr_optimizer_names;

FR_CHECKED fr_status fr_job_check(const fr_job *job, fr_err *err);

#endif
