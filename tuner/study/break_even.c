/* break_even.c: a scan over rates, then a root between two of them. */
#include "tuner/study/break_even.h"

#include "core/base/text.h"
#include "plan/codec/compressor.h"
#include "plan/decide/grid.h"
#include "spec/cluster/cluster_knobs.h"
#include "tuner/search/evaluate.h"
#include "tuner/study/what_if.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef _OPENMP
#include <omp.h>
#else
#define omp_get_max_threads() 1
#endif

/* From a thousandth of the rate to 64 times as much. */
enum { N_SCAN = 9, SCAN_BELOW = 5, SCAN_STEP = 4 };
/* One plan for each compressor of the table, up to so many. */
enum { MOST_PLANS = 16, MOST_STEPS = 24 };
static const double narrow_enough = 0.005;

typedef struct scan {
    const fr_explain_request *request;
    fr_cluster unlimited; /* the cluster with memory for anything */
    fr_resource link;
    int n_threads;
    fr_plan plans[MOST_PLANS]; /* [0]: without a compressor */
    bool is_legal[MOST_PLANS];
    fr_err whys[MOST_PLANS]; /* it is not */
    fr_evaluation actual[MOST_PLANS];
    double steps_s[N_SCAN][MOST_PLANS];
    double roots[MOST_PLANS][N_SCAN]; /* between i and i + 1; 0: none */
} scan;

static int n_plans(void)
{
    return fr_n_compressors < MOST_PLANS ? fr_n_compressors : MOST_PLANS;
}

static double factor_at(int i)
{
    return pow(SCAN_STEP, i - SCAN_BELOW);
}

/* ---- which links --------------------------------------------------------- */

/* Do the ranks that sum a gradient sit on several nodes? */
static fr_status does_leave_node(const fr_explain_request *r, bool *out,
                                 fr_err *err)
{
    const fr_plan *plan = r->plan;
    int64_t n = fr_plan_world(plan);
    int32_t *node_of_rank = malloc((size_t)n * sizeof *node_of_rank);
    if (node_of_rank == NULL)
        return fr_fail_no_memory(err);
    fr_status status =
        fr_cluster_place(r->cluster, n, plan->n_threads, 0, node_of_rank, err);
    *out = false;
    for (int64_t rank = 0; rank < n && status == FR_OK && !*out; rank++) {
        fr_coord first = fr_plan_coord(plan, rank);
        first.dp = first.cp = 0;
        *out = node_of_rank[rank] != node_of_rank[fr_plan_rank(plan, first)];
    }
    free(node_of_rank);
    return status;
}

/* Returns the rate of the largest message that was timed in one direction; 0:
 * none was timed. */
static double measured_Bps(const fr_profile *profile, bool is_net)
{
    const fr_comm_point *best = NULL;
    for (size_t i = 0; profile != NULL && i < profile->n_comm; i++) {
        const fr_comm_point *at = &profile->comm[i];
        if (strcmp(at->op, "send") == 0 && !at->is_held_out &&
            (strcmp(at->scope, "net") == 0) == is_net &&
            (best == NULL || at->n_bytes > best->n_bytes))
            best = at;
    }
    return best != NULL ? (double)best->n_bytes / best->sample.median_s : 0;
}

static double rate_of_links(const fr_explain_request *r, fr_resource link)
{
    const fr_node_type *node = fr_cluster_node_type(r->cluster, 0);
    bool is_net = link == FR_RESOURCE_NETWORK;
    double Bps = measured_Bps(r->profile, is_net);
    if (Bps > 0)
        return Bps;
    return is_net ? node->nic_Bps : node->intra_Bps;
}

/* ---- simulations --------------------------------------------------------- */

static fr_status evaluate_on(const scan *s, const fr_cluster *cluster,
                             const fr_cost_model *costs, int i_plan,
                             fr_evaluation *out, fr_err *err)
{
    const fr_plan *plan = &s->plans[i_plan];
    fr_plan_space_request request = {.model = s->request->model,
                                     .job = s->request->job,
                                     .cluster = cluster,
                                     .base = *plan,
                                     .log = s->request->log};
    return fr_evaluate(&request, costs, plan, out, err);
}

/* steps_s[i] of plans i with bits in `which`; those that cannot be: 0. */
static fr_status simulate_at(const scan *s, double factor, unsigned which,
                             double *steps_s, fr_err *err)
{
    fr_what_if changed;
    fr_evaluation found;
    bool is_there;
    fr_status status = FR_OK;
    memset(steps_s, 0, MOST_PLANS * sizeof *steps_s);
    FR_TRY(fr_what_if_create(&s->unlimited, s->request->profile, s->link,
                             factor, &changed, &is_there, err));
    if (!is_there)
        return FR_OK;
    for (int i = 0; i < n_plans() && status == FR_OK; i++) {
        if ((which >> i & 1) == 0 || !s->is_legal[i])
            continue;
        status =
            evaluate_on(s, &changed.cluster, changed.costs, i, &found, err);
        steps_s[i] = status == FR_OK ? found.prediction.expected_step_s : 0;
    }
    fr_what_if_release(&changed);
    return status;
}

/* > 0: compressing is slower; 0: one of both has no step. */
static double excess(const double *steps_s, int i_plan)
{
    return steps_s[i_plan] > 0 && steps_s[0] > 0
               ? log(steps_s[i_plan] / steps_s[0])
               : 0;
}

/*
 * Finds where the excess changes its sign between scan points i and i + 1, by
 * the chord through both ends in the logarithm of the rate.  The weight of an
 * end that stays is halved (Dowell and Jarratt 1971, the Illinois algorithm).
 */
static fr_status find_root(scan *s, int i_plan, int i, fr_err *err)
{
    double a = log(factor_at(i)), b = log(factor_at(i + 1));
    double at_a = excess(s->steps_s[i], i_plan);
    double at_b = excess(s->steps_s[i + 1], i_plan), middle = a;
    int last_kept = 0;
    for (int k = 0; k < MOST_STEPS && b - a > narrow_enough; k++) {
        double steps_s[MOST_PLANS];
        double least = 0.45 * narrow_enough;
        middle = a + (b - a) * at_a / (at_a - at_b);
        middle = fmin(fmax(middle, a + least), b - least);
        FR_TRY(simulate_at(s, exp(middle), 1u | 1u << i_plan, steps_s, err));
        double found = excess(steps_s, i_plan);
        if ((found < 0) == (at_a < 0)) {
            a = middle;
            at_a = found;
            at_b *= last_kept == 1 ? 0.5 : 1;
            last_kept = 1;
        } else {
            b = middle;
            at_b = found;
            at_a *= last_kept == -1 ? 0.5 : 1;
            last_kept = -1;
        }
    }
    s->roots[i_plan][i] = exp((a + b) / 2);
    return FR_OK;
}

/* All tasks in parallel; the first error does not depend on who ran first. */
static fr_status
run_tasks(scan *s, int n, fr_status (*task)(scan *, int, fr_err *), fr_err *err)
{
    fr_err errors[N_SCAN * MOST_PLANS];
    fr_status statuses[N_SCAN * MOST_PLANS];
#pragma omp parallel for schedule(dynamic, 1) num_threads(s->n_threads)
    for (int i = 0; i < n; i++)
        statuses[i] = task(s, i, &errors[i]);
    for (int i = 0; i < n; i++)
        if (statuses[i] != FR_OK)
            return fr_fail(err, statuses[i], "%s", errors[i].text);
    return FR_OK;
}

/* On the cluster as it is.  A plan that is illegal, or has no place or no
 * program, is none. */
static fr_status actual_task(scan *s, int i, fr_err *err)
{
    const fr_explain_request *r = s->request;
    fr_evaluation *found = &s->actual[i];
    s->plans[i] = *r->plan;
    s->plans[i].compressor = (fr_compressor_kind)i;
    fr_status status =
        fr_plan_check(&s->plans[i], r->model, r->job, &s->whys[i]);
    if (status == FR_OK)
        status = evaluate_on(s, r->cluster, r->costs, i, found, &s->whys[i]);
    if (status == FR_OK && found->outcome == FR_OUTCOME_UNPLACEABLE)
        status = fr_fail(&s->whys[i], FR_INFEASIBLE, "%s", found->why);
    s->is_legal[i] = status == FR_OK;
    if (status == FR_OK || status == FR_INPUT || status == FR_INFEASIBLE)
        return FR_OK;
    return fr_fail(err, status, "%s", s->whys[i].text);
}

static fr_status scan_task(scan *s, int i, fr_err *err)
{
    double steps_s[MOST_PLANS];
    int i_plan = i % n_plans();
    FR_TRY(
        simulate_at(s, factor_at(i / n_plans()), 1u << i_plan, steps_s, err));
    s->steps_s[i / n_plans()][i_plan] = steps_s[i_plan];
    return FR_OK;
}

static fr_status root_task(scan *s, int i, fr_err *err)
{
    int at = i / n_plans(), i_plan = i % n_plans();
    double left = excess(s->steps_s[at], i_plan);
    double right = excess(s->steps_s[at + 1], i_plan);
    if (i_plan == 0 || (left < 0) == (right < 0))
        return FR_OK;
    return find_root(s, i_plan, at, err);
}

/* ---- what they say ------------------------------------------------------- */

static void name_compressor(const fr_plan *plan, char *buf, size_t n_buf)
{
    const char *name = fr_name_of(&fr_compressor_names, plan->compressor);
    const fr_compressor_number number = fr_compressor_of(plan)->number;
    if (number == FR_COMPRESSOR_BY_RANK)
        snprintf(buf, n_buf, "%s-r%lld", name,
                 (long long)plan->compressor_rank);
    else if (number == FR_COMPRESSOR_BY_DENSITY)
        snprintf(buf, n_buf, "%s-%g", name, plan->compressor_density);
    else
        snprintf(buf, n_buf, "%s", name);
}

/* From signs at the scan and the roots between them. */
static void fill_ranges(const scan *s, int i_plan, fr_compression *out)
{
    double from = -1; /* of a range that is open */
    for (int i = 0; i < N_SCAN; i++) {
        bool pays = excess(s->steps_s[i], i_plan) < 0;
        if (pays && from < 0)
            from = i == 0 ? 0 : s->roots[i_plan][i - 1];
        if (!pays && from >= 0) {
            out->pays[out->n_pays++] =
                (fr_rate_range){from, s->roots[i_plan][i - 1]};
            from = -1;
        }
    }
    if (from >= 0)
        out->pays[out->n_pays++] = (fr_rate_range){from, INFINITY};
}

/* A plan that is too large to be simulated has the step time of a scan with
 * free memory. */
static double actual_s(const scan *s, int i_plan)
{
    double step_s = s->actual[i_plan].prediction.expected_step_s;
    return step_s > 0 ? step_s : s->steps_s[SCAN_BELOW][i_plan];
}

static void fill_verdict(const scan *s, int i_plan, fr_compression *out)
{
    const fr_evaluation *found = &s->actual[i_plan];
    double plain_s = actual_s(s, 0);
    out->step_s = actual_s(s, i_plan);
    out->diff = plain_s > 0 ? out->step_s / plain_s - 1 : 0;
    out->peak_bytes = found->prediction.memory.peak_bytes;
    out->short_by_bytes = found->short_by_bytes;
    out->verdict = found->outcome != FR_OUTCOME_SIMULATED ? FR_VERDICT_TOO_LARGE
                   : out->step_s < plain_s                ? FR_VERDICT_PAYS
                                                          : FR_VERDICT_NOT;
}

static void fill_answer(const scan *s, fr_break_even *out)
{
    out->link = s->link;
    out->link_Bps = rate_of_links(s->request, s->link);
    out->least = factor_at(0);
    out->most = factor_at(N_SCAN - 1);
    out->plain_s = actual_s(s, 0);
    out->plain_fits = s->actual[0].outcome == FR_OUTCOME_SIMULATED;
    for (int i = 1; i < n_plans(); i++) {
        fr_compression *at = &out->of[out->n++];
        name_compressor(&s->plans[i], at->name, sizeof at->name);
        at->is_gathered =
            fr_compressor_of(&s->plans[i])->wire == FR_WIRE_GATHER;
        at->verdict = FR_VERDICT_ILLEGAL;
        if (s->is_legal[i]) {
            fill_verdict(s, i, at);
            fill_ranges(s, i, at);
        } else {
            fr_text_copy_cut(at->why, sizeof at->why, s->whys[i].text);
        }
    }
}

static fr_status run_all(scan *s, fr_err *err)
{
    bool leaves_node;
    FR_TRY(does_leave_node(s->request, &leaves_node, err));
    s->link = leaves_node ? FR_RESOURCE_NETWORK : FR_RESOURCE_NODE_LINKS;
    FR_TRY(run_tasks(s, n_plans(), actual_task, err));
    FR_TRY(run_tasks(s, N_SCAN * n_plans(), scan_task, err));
    return run_tasks(s, (N_SCAN - 1) * n_plans(), root_task, err);
}

fr_status fr_break_even_find(const fr_explain_request *request,
                             fr_break_even *out, fr_err *err)
{
    memset(out, 0, sizeof *out);
    if (request->plan->dp == 1)
        return FR_OK;
    scan *s = calloc(1, sizeof *s);
    if (s == NULL)
        return fr_fail_no_memory(err);
    s->request = request;
    s->n_threads =
        request->n_threads > 0 ? request->n_threads : omp_get_max_threads();
    fr_status status =
        fr_what_if_unlimited(request->cluster, &s->unlimited, err);
    if (status == FR_OK)
        status = run_all(s, err);
    if (status == FR_OK)
        fill_answer(s, out);
    fr_cluster_release(&s->unlimited);
    free(s);
    return status;
}
