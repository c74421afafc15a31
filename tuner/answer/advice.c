/* advice.c: see advice.h. */
#include "tuner/answer/advice.h"

#include "tuner/answer/tune.h"

#include <math.h>
#include <stdio.h>

static bool is_gpu(const fr_plan_space_request *space)
{
    return fr_cluster_device(space->cluster, 0)->kind == FR_DEVICE_GPU;
}

static const char *name_of(const fr_plan_space_request *space,
                           fr_baseline baseline)
{
    if (baseline == FR_BASELINE_DEVICE && !is_gpu(space))
        return "one process";
    return fr_baseline_name(baseline);
}

static fr_status weigh(const fr_plan_space_request *space, const fr_goal *goal,
                       fr_tuning *t, fr_err *err)
{
    fr_job job = fr_goal_job(space->model, space->job);
    job.global_batch = t->best.global_batch;
    const fr_goal_subject subject = {space->model, &job, space->cluster};
    fr_goal_scale scale;
    FR_TRY(fr_goal_scale_make(goal, t->best.plan, &subject, &scale, err));
    for (int i = 0; i < FR_BASELINE_N; i++) {
        fr_tuned *b = &t->baselines[i].tuned;
        if (b->plan == NULL)
            continue;
        b->is_tie = fr_is_tie(goal, &scale, &t->best, b);
        fr_tune_why(&t->best.prediction, &b->prediction, b->why, sizeof b->why);
    }
    fr_tuned *healthy = &t->baselines[FR_BASELINE_HEALTHY].tuned;
    const double less = 1 - healthy->value / t->best.value;
    healthy->is_tie &= less <= 0;
    /* If both have the same value, the best plan has no slow node either. */
    if (healthy->plan != NULL && healthy->value < HUGE_VAL && less != 0)
        snprintf(healthy->why, sizeof healthy->why,
                 less > 0 ? "better by %.1f %%: drop the slow nodes"
                          : "worse by %.1f %%: keep the slow nodes",
                 100 * fabs(less));
    fr_goal_scale_release(&scale);
    return FR_OK;
}

/* "Do not distribute: ..." where a baseline is as good; false: it is not. */
static bool advise_baseline(const fr_plan_space_request *space,
                            fr_baseline baseline, fr_tuning *t)
{
    const fr_tuned *b = &t->baselines[baseline].tuned;
    const char *name = name_of(space, baseline);
    if (b->plan == NULL || b->value == HUGE_VAL)
        return false;
    bool is_best = baseline == FR_BASELINE_DEVICE ? t->best.n_ranks == 1
                                                  : t->best.n_nodes == 1;
    double more = b->value / t->best.value - 1;
    if (is_best)
        snprintf(t->advice, sizeof t->advice,
                 "Do not distribute: %s is best, more are not better", name);
    else if (more < 0)
        snprintf(t->advice, sizeof t->advice,
                 "Do not distribute: %s alone is better by %.1f %%", name,
                 -100 * more);
    else if (b->is_tie)
        snprintf(t->advice, sizeof t->advice,
                 "Do not distribute: %s alone is worse by %.1f %%, less than "
                 "the model's error",
                 name, 100 * more);
    else
        return false;
    t->advised_ranks = is_best ? t->best.n_ranks : b->n_ranks;
    return true;
}

/* Fewer devices than there are; false: all of them are best. */
static bool advise_fewer(const fr_plan_space_request *space, fr_tuning *t)
{
    if (!is_gpu(space))
        return false;
    if (t->fewest.n_ranks > 0) {
        snprintf(t->advice, sizeof t->advice,
                 "%lld of %lld devices are worse by %.1f %%, less than the "
                 "model's error: %.120s",
                 (long long)t->fewest.n_ranks, (long long)t->n_slots,
                 100 * (t->fewest.value / t->best.value - 1), t->fewest.name);
        t->advised_ranks = t->fewest.n_ranks;
        return true;
    }
    if (t->best.n_ranks == t->n_slots || space->world > 0)
        return false;
    snprintf(t->advice, sizeof t->advice,
             "%lld of %lld devices are best of the numbers that were looked at",
             (long long)t->best.n_ranks, (long long)t->n_slots);
    return true;
}

static void advise_all(const fr_plan_space_request *space, fr_tuning *t)
{
    int n =
        snprintf(t->advice, sizeof t->advice,
                 "Use %s%lld %s:", t->best.n_ranks == t->n_slots ? "all " : "",
                 (long long)t->best.n_ranks, is_gpu(space) ? "GPUs" : "ranks");
    for (int i = FR_BASELINE_NODE; i >= 0; i--) {
        const fr_tuning_baseline *b = &t->baselines[i];
        const char *name = name_of(space, (fr_baseline)i);
        size_t room = sizeof t->advice - (size_t)n;
        bool is_there = b->tuned.plan != NULL && b->tuned.value < HUGE_VAL;
        if (i == FR_BASELINE_NODE && t->best.n_nodes == 1)
            continue;
        if (!is_there)
            n += snprintf(t->advice + n, room, " %s is not enough,", name);
        else
            n += snprintf(t->advice + n, room,
                          t->goal.is_step ? " %s takes %.3g times as long,"
                                          : " %s is %.3g times worse,",
                          name, b->tuned.value / t->best.value);
    }
    t->advice[n - 1] = '\0';
}

fr_status fr_advise(const fr_plan_space_request *space, const fr_goal *goal,
                    fr_tuning *t, fr_err *err)
{
    t->n_slots = fr_cluster_slots(space->cluster);
    if (t->best.plan == NULL)
        return FR_OK;
    t->advised_ranks = t->best.n_ranks;
    FR_TRY(weigh(space, goal, t, err));
    if (t->n_slots == 1)
        return FR_OK;
    if (advise_baseline(space, FR_BASELINE_DEVICE, t))
        return FR_OK;
    if (fr_cluster_n_nodes(space->cluster) > 1 &&
        advise_baseline(space, FR_BASELINE_NODE, t))
        return FR_OK;
    if (!advise_fewer(space, t))
        advise_all(space, t);
    return FR_OK;
}
