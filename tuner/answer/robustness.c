/* robustness.c: what the model cannot tell apart, and which of that to take. */
#include "tuner/answer/rank_plans.h"

#include <math.h>
#include <stdio.h>

bool fr_is_tie(const fr_goal *goal, const fr_goal_scale *scale,
               const fr_tuned *best, const fr_tuned *other)
{
    const fr_prediction *p = &best->prediction;
    double half_s = 0.5 * (p->step_s_p95 - p->step_s_p5);
    double step_s = p->expected_step_s;
    const fr_weighed_step step = fr_weighed_step_of(p);
    fr_weighed_step longer = step;
    const double times = 1 + fmin(half_s / step_s, 0.05);
    longer.seconds *= times;
    longer.busy_s *= times;
    double taken = fr_goal_taken_frac(p);
    double same = fr_goal_objective(goal, scale, &step, taken);
    double worse = fr_goal_objective(goal, scale, &longer, taken);
    return other->value - best->value <= worse - same;
}

static double percent(double frac)
{
    return floor(100 * frac + 0.5);
}

static double waiting_s(const fr_prediction *p)
{
    double exposed_s = p->breakdown_s[FR_PART_STRAGGLERS];
    for (int i = FR_PART_EXPOSED_TP; i <= FR_PART_EXPOSED_DP; i++)
        exposed_s += p->breakdown_s[i];
    return exposed_s;
}

/* The criteria in their order, each smaller for the more robust plan. */
enum { N_CRITERIA = 3 };

static void measure(const fr_prediction *p, double step_s,
                    double out[N_CRITERIA])
{
    out[0] = percent(1 - p->memory.p_fits);
    out[1] = percent(waiting_s(p) / step_s);
    out[2] = percent((p->step_s_p95 - p->step_s_p5) / step_s);
}

int fr_robustness_compare(const fr_prediction *a, const fr_prediction *b,
                          double step_s)
{
    double of_a[N_CRITERIA], of_b[N_CRITERIA];
    measure(a, step_s, of_a);
    measure(b, step_s, of_b);
    for (int i = 0; i < N_CRITERIA; i++)
        if (of_a[i] != of_b[i])
            return of_a[i] < of_b[i] ? -1 : 1;
    return 0;
}

char *fr_robustness_why(const fr_prediction *best, const fr_prediction *robust,
                        char *buf, size_t n_buf)
{
    static const char *const names[N_CRITERIA] = {
        "%.0f %% instead of %.0f %% likely not to fit",
        "waits for others %.0f %% of the step instead of %.0f %%",
        "an interval of %.0f %% of the step instead of %.0f %%"};
    double of_best[N_CRITERIA], of_robust[N_CRITERIA];
    measure(best, best->step_s, of_best);
    measure(robust, best->step_s, of_robust);
    buf[0] = '\0';
    for (int i = 0; i < N_CRITERIA; i++)
        if (of_robust[i] < of_best[i]) {
            snprintf(buf, n_buf, names[i], of_robust[i], of_best[i]);
            break;
        }
    return buf;
}
