/* elastic_speeds.c: see elastic_speeds.h. */
#include "tuner/study/elastic_speeds.h"

#include "tuner/search/tune_quick.h"
#include "tuner/space/plan_space_lists.h"

#include <math.h>

/* A new plan is found in less than that (docs/tuner.md). */
static const double replan_s = 1;

/* ---- one number of nodes ------------------------------------------------- */

static fr_status tune_step(const fr_elastic_subject *of, int64_t n_ranks,
                           double *out, fr_err *err)
{
    fr_quick found;
    fr_err why;
    const fr_plan_space_request request = {.model = of->model,
                                           .job = of->job,
                                           .cluster = of->cluster,
                                           .base = *of->base,
                                           .world = n_ranks,
                                           .fit_confidence = 0.9,
                                           .log = of->log};
    fr_status status = fr_tune_quick(&request, of->costs, 1, &found, &why);
    *out = HUGE_VAL;
    /* The batch does not divide among so many. */
    if (status == FR_INPUT || status == FR_INFEASIBLE)
        return FR_OK;
    if (status != FR_OK)
        return fr_fail(err, status, "%s", why.text);
    if (found.has_plan && found.fits)
        *out = found.prediction.expected_step_s;
    return FR_OK;
}

static fr_status find_step(const fr_elastic_subject *of, int64_t n_ranks,
                           fr_node_steps *known, double *out, fr_err *err)
{
    fr_node_step step = {.n_ranks = n_ranks};
    for (size_t i = 0; i < known->n; i++)
        if (known->items[i].n_ranks == n_ranks) {
            *out = known->items[i].step_s;
            return FR_OK;
        }
    FR_TRY(tune_step(of, n_ranks, &step.step_s, err));
    FR_TRY_PUSH(known, step, err);
    *out = step.step_s;
    return FR_OK;
}

/* ---- a run --------------------------------------------------------------- */

/* All numbers near n, and with every halving of it four in between. */
static bool is_tuned(int64_t n_nodes, int64_t missing)
{
    int64_t whole = n_nodes;
    if (missing <= 8)
        return true;
    while (n_nodes - missing <= whole / 2 && whole > 1)
        whole /= 2;
    return whole < 8 || (n_nodes - missing) % (whole / 8) == 0;
}

fr_status fr_elastic_speeds(const fr_elastic_subject *subject,
                            const fr_elastic_request *of, fr_node_steps *known,
                            fr_speeds *out, fr_err *err)
{
    double best = 0, all_s;
    const int64_t per_node = of->n_ranks / of->n_nodes;
    if (!fr_cluster_is_all_gpu(subject->cluster) ||
        of->n_ranks % of->n_nodes != 0)
        return fr_fail(err, FR_INFEASIBLE,
                       "--least-nodes: only whole nodes of GPUs are planned "
                       "anew; leave it out");
    for (int64_t k = 1; k <= of->n_nodes - of->least_nodes; k++)
        FR_TRY_PUSH(out, 0.0, err);
    /* The plan at hand may be slower than what is found for fewer nodes. */
    FR_TRY(find_step(subject, of->n_ranks, known, &all_s, err));
    all_s = fmin(all_s, of->step_s);
    /* From the fewest on: one more node is no slower. */
    for (size_t i = out->n; i-- > 0;) {
        double step_s = HUGE_VAL;
        const int64_t missing = (int64_t)i + 1;
        if (is_tuned(of->n_nodes, missing))
            FR_TRY(find_step(subject, (of->n_nodes - missing) * per_node, known,
                             &step_s, err));
        if (isfinite(step_s))
            best = fmin(fmax(best, all_s / step_s), 1);
        out->items[i] = best;
    }
    return FR_OK;
}

fr_status fr_elastic_check(const fr_speeds *speeds, int64_t least_nodes,
                           fr_err *err)
{
    if (speeds->n == 0 || speeds->items[0] > 0)
        return FR_OK;
    return fr_fail(err, FR_INFEASIBLE,
                   "there is no plan for fewer nodes, down to %lld; take a "
                   "smaller --least-nodes, or leave it out",
                   (long long)least_nodes);
}

fr_run_elastic fr_elastic_of(const fr_speeds *speeds)
{
    return (fr_run_elastic){speeds->items, speeds->n, replan_s};
}

/* ---- all numbers of a space ---------------------------------------------- */

static fr_status add_row(const fr_elastic_subject *subject,
                         const fr_elastic_request *request,
                         fr_elastic_table *out, fr_err *err)
{
    fr_speeds speeds = {0};
    fr_status status =
        fr_elastic_speeds(subject, request, &out->known, &speeds, err);
    if (status == FR_OK && fr_vec_push(&out->speeds, speeds) != FR_OK)
        status = fr_fail_no_memory(err);
    if (status != FR_OK) {
        fr_vec_release(&speeds);
        return status;
    }
    const fr_node_elastic row = {request->n_ranks, fr_elastic_of(&speeds)};
    FR_TRY_PUSH(&out->rows, row, err);
    return FR_OK;
}

static int64_t fewest_of(const fr_run_choices *choices)
{
    int64_t fewest = choices->least_nodes[0];
    for (int i = 1; i < choices->n_least_nodes; i++)
        if (choices->least_nodes[i] < fewest)
            fewest = choices->least_nodes[i];
    return fewest;
}

fr_status fr_elastic_table_make(const fr_plan_space_request *space,
                                const fr_cost_model *costs,
                                fr_elastic_table *out, fr_goal *goal,
                                fr_err *err)
{
    fr_plan_space_request all = *space;
    fr_plan plan = space->base;
    fr_plan_space_values worlds = {0};
    fr_run_choices *choices = &goal->choices;
    const fr_goal_subject of = {space->model, space->job, space->cluster};
    const fr_elastic_subject subject = {space->model,   space->job,
                                        space->cluster, costs,
                                        &space->base,   space->log};
    const int64_t least = fewest_of(choices);
    bool has_any = false;
    all.is_any_nodes = all.is_any_nodes || fr_goal_weighs_devices(goal);
    fr_list_world(&all, &plan, &worlds);
    for (int i = 0; i < worlds.n; i++) {
        fr_set_world(&all, &plan, worlds.at[i]);
        const int64_t n_nodes = fr_goal_scale_bare(goal, &plan, &of).n_nodes;
        const fr_elastic_request request = {worlds.at[i], n_nodes, least,
                                            HUGE_VAL};
        if (n_nodes <= least || worlds.at[i] % n_nodes != 0)
            continue;
        FR_TRY(add_row(&subject, &request, out, err));
        has_any |= out->speeds.items[out->speeds.n - 1].items[0] > 0;
    }
    if (out->speeds.n > 0 && !has_any)
        return fr_elastic_check(&out->speeds.items[0], least, err);
    choices->elastic = out->rows.items;
    choices->n_elastic = (int)out->rows.n;
    return FR_OK;
}

void fr_elastic_table_release(fr_elastic_table *table)
{
    for (size_t i = 0; i < table->speeds.n; i++)
        fr_vec_release(&table->speeds.items[i]);
    fr_vec_release(&table->speeds);
    fr_vec_release(&table->rows);
    fr_vec_release(&table->known);
}
