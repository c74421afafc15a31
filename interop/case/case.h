/*
 * case.h: a row of published measurements (cases.h) as model, cluster,
 * plan and job.  Rows are written by people: free text is read by rules of
 * words (case_text.h), what is left out takes the default of the framework,
 * model family or node type that is named.  No source and no row has a rule of
 * its own.  docs/formats.md lists the rules.
 */
#ifndef FR_INTEROP_CASE_CASE_H
#define FR_INTEROP_CASE_CASE_H

#include "frameworks/framework.h"
#include "plan/decide/plan.h"
#include "spec/cluster/cluster.h"
#include "spec/model/job.h"
#include "spec/model/model.h"
#include "spec/result/cases.h"

/* The contents of a measured number of bytes. */
typedef enum fr_memory_count {
    FR_MEMORY_COUNT_NONE,      /* not measured, or a formula, or not said */
    FR_MEMORY_COUNT_ALLOCATED, /* by the framework's tensors */
    FR_MEMORY_COUNT_RESERVED,  /* by its caching allocator */
    FR_MEMORY_COUNT_DEVICE,    /* as the driver sees it */
    FR_MEMORY_COUNT_N
} fr_memory_count;

/* The rank whose memory it is. */
typedef enum fr_case_rank {
    FR_CASE_RANK_TIGHTEST, /* the largest, or not said */
    FR_CASE_RANK_FIRST,    /* rank 0: the first pipeline stage */
    FR_CASE_RANK_LAST
} fr_case_rank;

typedef enum fr_case_status {
    FR_CASE_STATUS_UNKNOWN,
    FR_CASE_STATUS_FITS,
    FR_CASE_STATUS_OOM
} fr_case_status;

typedef struct fr_case_setup {
    fr_model model;
    fr_cluster cluster;
    fr_plan plan;
    fr_job job;
    const char *framework; /* whose habits fill what the row leaves out */
    double measured_s;     /* of one step; 0: not measured */
    double peak_bytes;     /* 0: not measured */
    fr_memory_count memory_count;
    fr_case_rank memory_rank;
    fr_case_status status;
    /* May its step time (its memory) be scored?  Why not, "" if it may: the
     * grade, an incomplete configuration, something that had to be guessed. */
    char why_unscored_step[160];
    char why_unscored_memory[160];
    char guessed[96]; /* columns that are empty and not implied: "dp,mbs" */
} fr_case_setup;

/*
 * FR_INPUT "path:line: what" when the row cannot be understood or names
 * something unknown; a model without sizes is looked up in `configs`
 * (spec/catalog/config_path.h).  The plan is not yet checked against the model
 * (fr_plan_check).  fr_case_setup_release() frees after success.
 */
FR_CHECKED fr_status fr_case_read(const char *configs, const fr_case *row,
                                  fr_case_setup *out, fr_err *err);
void fr_case_setup_release(fr_case_setup *setup);

/* The word by which a cell of column framework names it. */
const char *fr_case_framework_word(const fr_framework *framework);

/* "source: row", or "file:line"; `id` wins.  Returns buf. */
char *fr_case_name(const fr_case *row, char *buf, size_t n_buf);

#endif
