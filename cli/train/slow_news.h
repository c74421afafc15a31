/*
 * slow_news.h: what rank 0 tells the supervisor of run --rebalance: how long
 * steps take and which ranks are slow, in a small file beside the checkpoints
 * that is written again every few steps.
 */
#ifndef FR_CLI_TRAIN_SLOW_NEWS_H
#define FR_CLI_TRAIN_SLOW_NEWS_H

#include "api/request/request.h"
#include "spec/run/step_record.h"

enum { FR_NEWS_STEPS = 8 }; /* between two of them */

typedef struct fr_slow_news {
    int64_t step;  /* the last one that it is of */
    double step_s; /* the median of the last FR_NEWS_STEPS */
    int n_stragglers;
    fr_straggler stragglers[FR_STEP_STRAGGLERS]; /* kind, index, factor */
} fr_slow_news;

/* The reporter of rank 0. */
typedef struct fr_slow_reporter {
    const fr_request *request;
    double step_s[FR_NEWS_STEPS];
    int64_t n;
} fr_slow_reporter;

/* Nothing without --rebalance; what cannot be written is not told. */
void fr_slow_reporter_step(fr_slow_reporter *reporter,
                           const fr_step_record *record);

/* False: there are none, or they cannot be read. */
bool fr_slow_news_read(const fr_request *request, fr_slow_news *out);
/* Removes the file of an earlier run. */
void fr_slow_news_forget(const fr_request *request);

#endif
