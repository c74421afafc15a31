/* plan_report.c: what a plan does, for a reader who knows the terms. */
#include "report/plan_report.h"

#include "core/base/units.h"
#include "plan/codec/compressor.h"
#include "plan/decide/plan_shares.h"
#include "plan/schedule/schedule.h"

#include <stdio.h>

typedef struct words {
    fr_table *table;
    const fr_model *model;
    const fr_job *job;
    const fr_plan *plan;
} words;

static void add_job(const words *w)
{
    char count[FR_FORMAT_MAX];
    const fr_job *job = w->job;
    fr_table_text(w->table, "model");
    fr_table_cell(
        w->table, "%s, %s parameters, %lld layers", w->model->name,
        fr_format_u64(count, sizeof count, fr_model_parameters(w->model)),
        (long long)w->model->n_layers);
    fr_table_text(w->table, "job");
    fr_table_cell(w->table, "%lld sequences of %lld tokens a step, %s",
                  (long long)job->global_batch, (long long)job->seq,
                  fr_name_of(&fr_optimizer_names, job->optimizer));
}

static void add_ranks(const words *w)
{
    const fr_plan *p = w->plan;
    long long world = (long long)fr_plan_world(p);
    char context[24] = "";
    if (p->cp > 1)
        snprintf(context, sizeof context, " x cp %d", p->cp);
    fr_table_text(w->table, "ranks");
    fr_table_cell(w->table,
                  "%lld = dp %d x tp %d x pp %d%s, %d thread%s each, order %s",
                  world, p->dp, p->tp, p->pp, context, p->n_threads,
                  p->n_threads > 1 ? "s" : "",
                  fr_name_of(&fr_rank_order_names, p->rank_order));
}

static void add_batch(const words *w)
{
    const fr_plan *p = w->plan;
    const long long most = (long long)fr_plan_micro_batches(p, w->job);
    char each[48];
    snprintf(each, sizeof each, "%lld", most);
    if (p->n_shares > 0)
        snprintf(each, sizeof each, "%lld to %lld",
                 (long long)fr_plan_least_share(p, w->job), most);
    fr_table_text(w->table, "micro-batches");
    fr_table_cell(w->table, "%s of %lld sequence%s on each rank", each,
                  (long long)p->micro_batch, p->micro_batch > 1 ? "s" : "");
}

static void add_pipeline(const words *w)
{
    const fr_plan *p = w->plan;
    char layers[128] = "";
    int n = 0;
    if (p->pp == 1)
        return;
    for (int32_t i = 0; i < p->pp * p->vpp && n < 100; i++)
        n += snprintf(layers + n, sizeof layers - (size_t)n, "%s%d",
                      i > 0 ? "-" : "", fr_plan_stage_layers(p, w->model, i));
    fr_table_text(w->table, "pipeline");
    fr_table_cell(w->table, "%s, layers %s, ideal bubble %.1f %%",
                  fr_name_of(&fr_schedule_names, p->schedule), layers,
                  100 * fr_schedule_bubble_frac(
                            fr_schedules[p->schedule], p->pp,
                            fr_plan_micro_batches(p, w->job), p->vpp));
}

static void add_gradients(const words *w)
{
    const fr_plan *p = w->plan;
    char bytes[FR_FORMAT_MAX];
    if (p->dp == 1)
        return;
    fr_table_text(w->table, "gradients");
    if (p->bucket_bytes == 0)
        snprintf(bytes, sizeof bytes, "one bucket");
    else
        fr_format_bytes(bytes, sizeof bytes, (double)p->bucket_bytes);
    fr_table_cell(w->table, "%s, %s%s, %s, %s%s",
                  p->zero_stage > 0 ? "scattered (ZeRO)" : "all-reduced", bytes,
                  p->bucket_bytes > 0 ? " buckets" : "",
                  p->is_overlap ? "overlapping backward" : "after backward",
                  p->compressor == FR_COMPRESSOR_NONE
                      ? "not compressed"
                      : fr_name_of(&fr_compressor_names, p->compressor),
                  fr_compressor_has_error(p) ? " with error feedback" : "");
}

static void add_memory(const words *w)
{
    static const char *const meaning[FR_RECOMPUTE_N] = {
        [FR_RECOMPUTE_NONE] = "none: all activations are kept",
        [FR_RECOMPUTE_SELECTIVE] = "selective: attention is made again",
        [FR_RECOMPUTE_FULL] = "full: only the input of a layer is kept",
    };
    fr_table_text(w->table, "recompute");
    fr_table_text(w->table, meaning[w->plan->recompute]);
    if (!w->plan->is_sequence_parallel)
        return;
    fr_table_text(w->table, "sequence parallel");
    fr_table_text(w->table, "norms and residuals are sharded over tp");
}

void fr_report_plan(const fr_model *model, const fr_job *job,
                    const fr_plan *plan, fr_document *out)
{
    static const char *const headings[] = {"", "", NULL};
    char name[256];
    const words w = {fr_document_table(out, headings), model, job, plan};
    fr_table_text(w.table, "plan");
    fr_table_text(w.table, fr_plan_describe(plan, name, sizeof name));
    add_job(&w);
    add_ranks(&w);
    add_batch(&w);
    add_pipeline(&w);
    add_gradients(&w);
    add_memory(&w);
}
