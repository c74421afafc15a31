/* make_fit.c: causes in words, then sets of changes that need less memory. */
#include "tuner/study/make_fit.h"

#include "core/base/text.h"
#include "core/base/units.h"
#include "sim/bound/estimate.h"
#include "sim/predict/learned_step.h"
#include "sim/predict/predict_memory.h"
#include "tuner/search/evaluate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_AT_ONCE = 3,
    MOST_SETS = 1024,
    MOST_SIMULATED = 8,
    MOST_LOOKED_AT = 24, /* each is lowered, and its memory added up */
    MOST_OF_A_COUNT = 3
};
/* An advised plan is likely to fit; a larger set of changes must be faster by
 * this factor. */
static const double confidence = 0.9, worth_a_change = 0.95;

/* Passes over layers of a plan that is tried: all sets take some seconds. */
static const double most_calls = 0x1p18;

/* ---- causes -------------------------------------------------------------- */

static void add_cause(const char *what, uint64_t n_bytes, fr_fit_advice *out)
{
    int at = out->n_causes < FR_FIT_CAUSES ? out->n_causes++ : FR_FIT_CAUSES;
    for (; at > 0 && n_bytes > out->causes[at - 1].n_bytes; at--)
        if (at < FR_FIT_CAUSES)
            out->causes[at] = out->causes[at - 1];
    if (at == FR_FIT_CAUSES)
        return;
    fr_text_copy_cut(out->causes[at].what, sizeof out->causes[at].what, what);
    out->causes[at].n_bytes = n_bytes;
}

static void add_state(const fr_plan *plan, const char *what, int zero_stage,
                      uint64_t n_bytes, fr_fit_advice *out)
{
    char text[96];
    bool is_whole = plan->zero_stage < zero_stage;
    snprintf(text, sizeof text, "%s%s", what,
             is_whole && plan->dp * plan->cp > 1
                 ? ", not sharded over the data-parallel ranks"
                 : "");
    add_cause(text, n_bytes, out);
}

/* The loss in float32, or from logits of 16 bits: one such tensor. */
static void add_logits(const fr_model *model, const fr_job *job,
                       const fr_plan *plan, uint64_t most_bytes,
                       fr_fit_advice *out)
{
    char text[96];
    double n_bytes = (double)plan->micro_batch * (double)job->seq / plan->cp *
                     (double)model->vocab / plan->tp *
                     (fr_plan_is_loss_narrow(plan) ? 2 : 4);
    if (model->kind == FR_MODEL_LAYERS || n_bytes > (double)most_bytes ||
        n_bytes < 0.1 * (double)out->capacity_bytes)
        return;
    snprintf(text, sizeof text, "one tensor of logits of a %.0fk vocabulary",
             (double)model->vocab / 1000);
    add_cause(text, (uint64_t)n_bytes, out);
}

void fr_fit_causes(const fr_model *model, const fr_job *job,
                   const fr_plan *plan, const fr_prediction *p,
                   fr_fit_advice *out)
{
    char text[96];
    memset(out, 0, sizeof *out);
    fr_fit_verdict(p, out->verdict, sizeof out->verdict);
    out->capacity_bytes = p->memory.capacity_bytes;
    out->short_by_bytes = p->memory.peak_bytes > p->memory.capacity_bytes
                              ? p->memory.peak_bytes - p->memory.capacity_bytes
                              : 0;
    if (fr_prediction_lacks_host(p) && out->short_by_bytes == 0) {
        out->capacity_bytes = p->memory.host_capacity_bytes;
        out->short_by_bytes = p->memory.host_bytes - out->capacity_bytes;
        add_cause("offloaded to the memory of one node's hosts",
                  p->memory.host_bytes, out);
        return;
    }
    add_state(plan, "optimizer state", 1, p->memory.optimizer_bytes, out);
    add_state(plan, "gradients", 2, p->memory.gradients_bytes, out);
    add_state(plan, "parameters", 3, p->memory.parameters_bytes, out);
    snprintf(text, sizeof text, "activations of micro-batches of %lld %s",
             (long long)plan->micro_batch,
             model->kind == FR_MODEL_LAYERS ? "samples"
             : plan->micro_batch == 1       ? "sequence"
                                            : "sequences");
    if (model->kind != FR_MODEL_LAYERS) {
        size_t n = strlen(text);
        snprintf(text + n, sizeof text - n, " of %lld tokens",
                 (long long)job->seq);
    }
    add_cause(text, p->memory.activations_bytes, out);
    add_cause("buffers", p->memory.buffers_bytes, out);
    add_logits(model, job, plan,
               p->memory.activations_bytes + p->memory.buffers_bytes, out);
}

/* ---- changes ------------------------------------------------------------- */

typedef enum knob {
    KNOB_ZERO,
    KNOB_RECOMPUTE,
    KNOB_MICRO_BATCH,
    KNOB_TENSOR,
    KNOB_PIPELINE,
    KNOB_OFFLOAD,
    KNOB_N
} knob;

/* Setting k (from 0) of a knob; false: there is none, or not here.  Degrees
 * take what they multiply by from dp. */
static bool turn(knob which, int k, bool is_gpu, fr_plan *plan, char *what,
                 size_t n_what)
{
    const fr_plan from = *plan;
    const int32_t times = 2 << k;
    switch (which) {
    case KNOB_ZERO:
        plan->zero_stage += k + 1;
        snprintf(what, n_what, "zero %d -> %d", from.zero_stage,
                 plan->zero_stage);
        return plan->zero_stage <= 3;
    case KNOB_RECOMPUTE:
        if ((int)plan->recompute + k + 1 >= FR_RECOMPUTE_N)
            return false;
        plan->recompute = (fr_recompute)((int)plan->recompute + k + 1);
        snprintf(what, n_what, "recompute %s -> %s",
                 fr_name_of(&fr_recompute_names, from.recompute),
                 fr_name_of(&fr_recompute_names, plan->recompute));
        return true;
    case KNOB_MICRO_BATCH:
        plan->n_shares = 0;
        plan->micro_batch = k == 0 ? from.micro_batch / 2 : 1;
        snprintf(what, n_what, "micro-batch %lld -> %lld",
                 (long long)from.micro_batch, (long long)plan->micro_batch);
        return k == 0 ? from.micro_batch % 2 == 0
                      : k == 1 && from.micro_batch > 3;
    case KNOB_TENSOR:
        plan->tp *= times;
        plan->dp /= times;
        plan->n_shares = 0;
        plan->is_sequence_parallel = is_gpu;
        snprintf(what, n_what, "tp %d -> %d", from.tp, plan->tp);
        return k < 3 && from.dp % times == 0;
    case KNOB_PIPELINE:
        plan->pp *= times;
        plan->dp /= times;
        plan->n_shares = 0;
        plan->n_split = 0;
        snprintf(what, n_what, "pp %d -> %d", from.pp, plan->pp);
        return k < 3 && from.dp % times == 0;
    case KNOB_OFFLOAD:
        plan->is_optimizer_offloaded = true;
        snprintf(what, n_what, "offload-optimizer");
        return k == 0 && is_gpu && !from.is_optimizer_offloaded;
    case KNOB_N:
        break;
    }
    return false;
}

typedef struct change_set {
    char what[160];
    fr_plan plan;
    double estimate_s;
} change_set;

typedef struct search {
    const fr_explain_request *request;
    fr_plan_space_request space;
    fr_estimator *estimator; /* NULL: CPUs */
    bool is_gpu;
    change_set *sets; /* [MOST_SETS]: of one count */
    size_t n;
    double best_s;
} search;

/* Can the target of the request execute the plan? */
static bool is_executable(const fr_explain_request *r, const fr_plan *plan)
{
    fr_err why;
    return r->target == NULL ||
           fr_target_check(r->target, r->target_version, FR_PLAN_BITS_ALL, 0,
                           plan, r->model, r->job, &why) == FR_OK;
}

/* Legal, and by the estimate it may fit: then it is a set. */
static void take(search *s, const fr_plan *plan, const char *what)
{
    const fr_explain_request *r = s->request;
    fr_estimate found = {0};
    fr_err why;
    if (s->n == MOST_SETS ||
        fr_plan_check_lowerable(plan, r->model, r->job, &why) != FR_OK ||
        (s->space.target != NULL && !is_executable(r, plan)))
        return;
    if (s->estimator != NULL && fr_estimate_knows(plan)) {
        if (fr_estimate_legal_plan(s->estimator, plan, &found, &why) != FR_OK ||
            (double)found.least_bytes > (double)found.capacity_bytes)
            return;
    }
    change_set *at = &s->sets[s->n++];
    at->plan = *plan;
    at->estimate_s =
        found.estimate_s *
        fr_expected_step_factor(r->costs, r->cluster, plan->execution.kernels);
    fr_text_copy_cut(at->what, sizeof at->what, what);
}

/* All sets of n more changes, of the knobs from `first` on. */
static void list_sets(search *s, int first, int n, const fr_plan *plan,
                      const char *what)
{
    if (n == 0) {
        take(s, plan, what);
        return;
    }
    for (int which = first; which < KNOB_N; which++)
        for (int k = 0; k < 3; k++) {
            fr_plan changed = *plan;
            char one[48], all[160];
            if (!turn((knob)which, k, s->is_gpu, &changed, one, sizeof one))
                continue;
            snprintf(all, sizeof all, "%.100s%s%s", what,
                     what[0] != '\0' ? ", " : "", one);
            list_sets(s, which + 1, n - 1, &changed, all);
        }
}

static int by_estimate(const void *a, const void *b)
{
    const change_set *x = a, *y = b;
    if (x->estimate_s != y->estimate_s)
        return x->estimate_s < y->estimate_s ? -1 : 1;
    return strcmp(x->what, y->what);
}

static void add_change(const change_set *set, const fr_prediction *p,
                       int n_at_once, int first, fr_fit_advice *out)
{
    int at = out->n_changes++;
    for (; at > first && p->expected_step_s < out->changes[at - 1].step_s; at--)
        out->changes[at] = out->changes[at - 1];
    fr_fit_change *change = &out->changes[at];
    *change = (fr_fit_change){.n_changes = n_at_once,
                              .step_s = p->expected_step_s,
                              .p_fits = p->memory.p_fits,
                              .peak_bytes = p->memory.peak_bytes};
    fr_text_copy_cut(change->what, sizeof change->what, set->what);
    fr_plan_describe(&set->plan, change->plan, sizeof change->plan);
}

/* The best of those of one count, if they are worth more than fewer are. */
static fr_status try_sets(search *s, int n_at_once, fr_fit_advice *out,
                          fr_err *err)
{
    const int first = out->n_changes;
    const double most_s = worth_a_change * s->best_s;
    size_t n_simulated = 0, i = 0;
    s->n = 0;
    list_sets(s, 0, n_at_once, s->request->plan, "");
    qsort(s->sets, s->n, sizeof *s->sets, by_estimate);
    for (; i < s->n && s->sets[i].estimate_s <= most_s && i < MOST_LOOKED_AT &&
           n_simulated < MOST_SIMULATED &&
           out->n_changes < first + MOST_OF_A_COUNT;
         i++) {
        fr_evaluation found;
        fr_err why;
        fr_status status = fr_evaluate(&s->space, s->request->costs,
                                       &s->sets[i].plan, &found, &why);
        if (fr_status_ends_all(status))
            return fr_fail(err, status, "%s", why.text);
        if (status == FR_OK && found.outcome == FR_OUTCOME_UNPLACEABLE)
            out->n_left_out++;
        /* A plan that takes too long to simulate costs as much time before this
         * is known. */
        n_simulated += status == FR_OK && found.outcome != FR_OUTCOME_TOO_LARGE;
        if (status != FR_OK || found.outcome != FR_OUTCOME_SIMULATED ||
            found.prediction.expected_step_s > most_s)
            continue;
        s->best_s = fmin(s->best_s, found.prediction.expected_step_s);
        add_change(&s->sets[i], &found.prediction, n_at_once, first, out);
    }
    if (out->n_changes < first + MOST_OF_A_COUNT)
        for (; i < s->n && s->sets[i].estimate_s <= most_s; i++)
            out->n_left_out++;
    return FR_OK;
}

fr_status fr_make_fit(const fr_explain_request *r, fr_fit_advice *out,
                      fr_err *err)
{
    search s = {.request = r,
                .space = {.model = r->model,
                          .job = r->job,
                          .cluster = r->cluster,
                          .base = *r->plan,
                          .fit_confidence = confidence,
                          .most_calls = most_calls,
                          .target = r->target,
                          .target_version = r->target_version,
                          .log = r->log},
                .is_gpu = fr_cluster_is_all_gpu(r->cluster),
                .best_s = HUGE_VAL};
    if (!is_executable(r, r->plan)) /* the target sets no limits to it */
        s.space.target = NULL;
    fr_fit_causes(r->model, r->job, r->plan, r->prediction, out);
    out->is_searched = true;
    s.sets = calloc(MOST_SETS, sizeof *s.sets);
    if (s.sets == NULL)
        return fr_fail_no_memory(err);
    fr_status status = FR_OK;
    if (s.is_gpu)
        status = fr_estimator_create(r->model, r->job, r->cluster, r->costs,
                                     &s.estimator, err);
    for (int n = 1; n <= MOST_AT_ONCE && status == FR_OK; n++)
        status = try_sets(&s, n, out, err);
    fr_estimator_destroy(s.estimator);
    free(s.sets);
    return status;
}
