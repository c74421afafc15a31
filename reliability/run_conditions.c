/* run_conditions.c: see run_conditions.h. */
#include "reliability/run_conditions.h"

#include <math.h>

fr_status fr_run_conditions_check(const fr_run_conditions *c, fr_err *err)
{
    const struct {
        const char *name;
        double value, most;
    } amounts[] = {
        {"step", c->step_s, HUGE_VAL},
        {"share of stragglers", c->straggler_frac, 1},
        {"share of input", c->input_frac, 1},
        {"share of evaluation", c->evaluation_frac, 1},
        {"start-up", c->start_s, HUGE_VAL},
        {"checkpoint", c->blocked_s, HUGE_VAL},
        {"checkpoint's way to storage", c->drain_s, HUGE_VAL},
        {"rate of failures", c->failures_per_s, HUGE_VAL},
        {"rate of failing racks", c->racks_per_s, HUGE_VAL},
        {"rate of slow-downs", c->slowdowns_per_s, HUGE_VAL},
        {"slow-down", c->slow_s, HUGE_VAL},
        {"factor of slow-downs", c->slow_factor, HUGE_VAL},
        {"maintenance", c->maintenance_s, HUGE_VAL},
        {"time between maintenance", c->maintenance_every_s, HUGE_VAL},
        {"restart", c->restart_s, HUGE_VAL},
        {"share of hangs", c->hang_frac, 1},
        {"detection of a hang", c->hang_s, HUGE_VAL},
        {"share of lost nodes", c->node_frac, 1},
        {"repair", c->repair_s, HUGE_VAL},
        {"rate of interruptions", c->interruptions_per_s, HUGE_VAL},
        {"absence", c->absence_s, HUGE_VAL},
        {"notice", c->notice_s, HUGE_VAL},
        {"new plan", c->elastic.replan_s, HUGE_VAL}};
    for (size_t i = 0; i < sizeof amounts / sizeof amounts[0]; i++)
        if (!(amounts[i].value >= 0 && amounts[i].value <= amounts[i].most &&
              isfinite(amounts[i].value)))
            return fr_fail(err, FR_INPUT,
                           "the %s of a run is %g; give a number that is 0 or "
                           "more%s",
                           amounts[i].name, amounts[i].value,
                           amounts[i].most == 1 ? ", and 1 or less" : "");
    if (c->slowdowns_per_s > 0 && !(c->slow_factor >= 1))
        return fr_fail(err, FR_INPUT, "a run that slows down gets faster");
    if (c->rack_nodes < 0)
        return fr_fail(err, FR_INPUT, "a rack of fewer nodes than none");
    if (!(c->step_s > 0))
        return fr_fail(err, FR_INPUT, "a step of a run takes no time");
    double more = 1;
    for (size_t i = 0; i < c->elastic.n; i++) {
        const double speed = c->elastic.speed_frac[i];
        if (!(speed >= 0 && speed <= more))
            return fr_fail(err, FR_INPUT,
                           "with %zu nodes missing a run is %g times as fast "
                           "as with all; give 0 to %g",
                           i + 1, speed, more);
        more = speed;
    }
    if (c->elastic.n > 0 && c->n_spares < 0)
        return fr_fail(err, FR_INPUT,
                       "a run that always has a spare node never shrinks");
    double present_s = 0;
    for (size_t i = 0; i < c->presence.n; i++)
        if (c->presence.spans_s[i] >= 0)
            present_s += i % 2 == 0 ? c->presence.spans_s[i] : 0;
        else
            return fr_fail(err, FR_INPUT, "a span of presence is negative");
    if (c->presence.n > 0 && !(present_s > 0))
        return fr_fail(err, FR_INPUT, "the nodes of a run are never there");
    if (c->every_steps < 0 || c->presence.n % 2 != 0)
        return fr_fail(err, FR_INPUT,
                       "a run saves every %lld steps; give 1 or more",
                       (long long)c->every_steps);
    return FR_OK;
}
