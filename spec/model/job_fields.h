/*
 * job_fields.h: every field of a job, one row each (job.c): files, options of
 * the command line with their help, and defaults are made from the rows.
 */
#ifndef FR_SPEC_MODEL_JOB_FIELDS_H
#define FR_SPEC_MODEL_JOB_FIELDS_H

#include "core/document/fields.h"
#include "spec/model/job.h"

/* Fields that are options, in the order of the help text. */
#define FR_JOB_OPTIONS(X)                                                      \
    X(GLOBAL_BATCH)                                                            \
    X(SEQ)                                                                     \
    X(STEPS)                                                                   \
    X(TOKENS)                                                                  \
    X(SEED)                                                                    \
    X(OPTIMIZER)                                                               \
    X(LR)                                                                      \
    X(LR_SCHEDULE)                                                             \
    X(LR_RULE)                                                                 \
    X(LR_BASE_BATCH)                                                           \
    X(WARMUP) X(DROPOUT) X(CLIP) X(WEIGHT_DECAY) X(DATA) X(SAMPLE_BYTES)       \
        X(DECODE) X(LOADERS) X(DATASET_BYTES)

/* Fields that only files set. */
#define FR_JOB_OTHERS(X)                                                       \
    X(BETA1) X(BETA2) X(OPTIMIZER_EPS) X(TRUST_COEFFICIENT) X(LR_MIN_FRAC)

typedef enum fr_job_field_id {
#define FR_JOB_FIELD_ENUM(symbol) FR_JOB_##symbol,
    FR_JOB_OPTIONS(FR_JOB_FIELD_ENUM) FR_JOB_OTHERS(FR_JOB_FIELD_ENUM)
#undef FR_JOB_FIELD_ENUM
        FR_JOB_FIELDS_N
} fr_job_field_id;

/* The first of them are the options. */
enum {
#define FR_JOB_OPTION_COUNT(symbol) +1
    FR_JOB_OPTIONS_N = FR_JOB_OPTIONS(FR_JOB_OPTION_COUNT)
#undef FR_JOB_OPTION_COUNT
};

extern const fr_field fr_job_fields[FR_JOB_FIELDS_N];

#endif
