/* goodput_elastic.c: see goodput_elastic.h. */
#include "cli/run/goodput_elastic.h"

#include "tuner/study/tune_quick.h"

#include <math.h>

/* Seconds of a step with so many nodes; HUGE_VAL: there is no plan. */
static fr_status find_step(const fr_inputs *inputs,
                           const fr_elastic_request *of, int64_t n_nodes,
                           double *out, fr_err *err)
{
    fr_quick found;
    fr_err why;
    const fr_plan_file *file = of->file;
    const int64_t per_node = fr_plan_world(&file->plan) / of->n_nodes;
    const fr_plan_space_request request = {.model = &file->model,
                                           .job = &file->job,
                                           .cluster = &inputs->cluster,
                                           .base = file->plan,
                                           .world = n_nodes * per_node,
                                           .fit_confidence = 0.9};
    fr_status status = fr_tune_quick(&request, inputs->costs, 1, &found, &why);
    *out = HUGE_VAL;
    /* The batch does not divide among so many. */
    if (status == FR_INPUT || status == FR_INFEASIBLE)
        return FR_OK;
    if (status != FR_OK)
        return fr_fail(err, status, "%s", why.text);
    if (found.has_plan && found.fits)
        *out = found.prediction.step_s;
    return FR_OK;
}

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

fr_status fr_goodput_speeds(const fr_inputs *inputs,
                            const fr_elastic_request *of, fr_speeds *out,
                            fr_err *err)
{
    double best = 0, all_s;
    if (!fr_cluster_is_all_gpu(&inputs->cluster) ||
        fr_plan_world(&of->file->plan) % of->n_nodes != 0)
        return fr_fail(err, FR_INFEASIBLE,
                       "--least-nodes: only whole nodes of GPUs are planned "
                       "anew; leave it out");
    for (int64_t k = 1; k <= of->n_nodes - of->least_nodes; k++)
        FR_TRY_PUSH(out, 0.0, err);
    /* The plan at hand may be slower than what is found for fewer nodes. */
    FR_TRY(find_step(inputs, of, of->n_nodes, &all_s, err));
    all_s = fmin(all_s, of->step_s);
    /* From the fewest on: one more node is no slower. */
    for (size_t i = out->n; i-- > 0;) {
        double step_s = HUGE_VAL;
        const int64_t missing = (int64_t)i + 1;
        if (is_tuned(of->n_nodes, missing))
            FR_TRY(find_step(inputs, of, of->n_nodes - missing, &step_s, err));
        best = fmin(fmax(best, all_s / step_s), 1);
        out->items[i] = best;
    }
    if (out->n > 0 && !(out->items[0] > 0))
        return fr_fail(err, FR_INFEASIBLE,
                       "there is no plan for fewer nodes, down to %lld; take "
                       "a smaller --least-nodes, or leave it out",
                       (long long)of->least_nodes);
    return FR_OK;
}
