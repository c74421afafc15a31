/* robustness.c: what the model cannot tell apart, and which of that to take. */
#include <math.h>

#include "tuner/rank_plans.h"

bool fr_is_tie(const fr_goal *goal, const fr_goal_scale *scale,
               const fr_tuned *best, const fr_tuned *other)
{
    const fr_prediction *p = &best->prediction;
    double half_s = 0.5 * (p->step_s_p95 - p->step_s_p5);
    double longer_s = p->step_s + fmin(half_s, 0.05 * p->step_s);
    double taken = fr_goal_taken_frac(p);
    double same = fr_goal_objective(goal, scale, p->step_s, taken);
    double worse = fr_goal_objective(goal, scale, longer_s, taken);
    return other->value - best->value <= worse - same;
}

static double percent(double frac)
{
    return floor(100 * frac + 0.5);
}

static double waiting_frac(const fr_prediction *p)
{
    double exposed_s = 0;
    for (int i = FR_PART_EXPOSED_TP; i <= FR_PART_EXPOSED_DP; i++)
        exposed_s += p->breakdown_s[i];
    return exposed_s / p->step_s;
}

static double width_frac(const fr_prediction *p)
{
    return (p->step_s_p95 - p->step_s_p5) / p->step_s;
}

int fr_robustness_compare(const fr_prediction *a, const fr_prediction *b)
{
    const double of[][2] = {
        {1 - a->memory.p_fits, 1 - b->memory.p_fits},
        {waiting_frac(a), waiting_frac(b)},
        {width_frac(a), width_frac(b)},
    };
    for (int i = 0; i < 3; i++)
        if (percent(of[i][0]) != percent(of[i][1]))
            return percent(of[i][0]) < percent(of[i][1]) ? -1 : 1;
    return 0;
}
