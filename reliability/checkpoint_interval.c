/* checkpoint_interval.c: see checkpoint_interval.h. */
#include "reliability/checkpoint_interval.h"

#include "reliability/spare_nodes.h"

#include <math.h>

/* All that interrupts, and what each takes on average until steps go on. */
typedef struct interruption {
    double per_s, down_s;
} interruption;

static interruption interruption_of(const fr_run_conditions *c)
{
    const double failure_s = c->restart_s + c->hang_frac * c->hang_s;
    const double absence_s = c->absence_s + c->restart_s;
    const double failures_per_s = c->failures_per_s + c->racks_per_s;
    interruption all = {.per_s = failures_per_s + c->interruptions_per_s};
    if (all.per_s > 0)
        all.down_s =
            (failures_per_s * failure_s + c->interruptions_per_s * absence_s) /
            all.per_s;
    return all;
}

/* Seconds that a checkpoint after `steps_s` of steps holds them up: the one
 * before has to be away first. */
static double held_s(const fr_run_conditions *c, double steps_s)
{
    return fmax(c->drain_s - steps_s, 0) + c->blocked_s;
}

/* Expected seconds of a cycle with `steps_s` of steps. */
static double expected_cycle_s(const fr_run_conditions *c, double steps_s)
{
    const interruption all = interruption_of(c);
    const double cycle_s = steps_s + held_s(c, steps_s);
    if (!(all.per_s > 0))
        return cycle_s;
    /* A failure while it is restarted begins that again. */
    const double down_s = expm1(all.per_s * c->restart_s) / all.per_s +
                          (all.down_s - c->restart_s);
    return (1 / all.per_s + down_s) * expm1(all.per_s * cycle_s) *
           (1 + all.per_s * c->drain_s);
}

static double seconds_per_step_second(const fr_run_conditions *c,
                                      double steps_s)
{
    return expected_cycle_s(c, steps_s) / steps_s;
}

/* Seconds of steps between two checkpoints, at least so many, with the least
 * expected time. */
static double best_steps_s(const fr_run_conditions *c, double least_s)
{
    const double ratio = (sqrt(5) - 1) / 2;
    const interruption all = interruption_of(c);
    /* Golden section over the logarithm: the curve has one minimum. */
    double low = log(least_s), high = log(fmax(20 / all.per_s, least_s));
    for (int i = 0; i < 80; i++) {
        const double a = high - ratio * (high - low);
        const double b = low + ratio * (high - low);
        if (seconds_per_step_second(c, exp(a)) <
            seconds_per_step_second(c, exp(b)))
            high = b;
        else
            low = a;
    }
    return exp((low + high) / 2);
}

int64_t fr_checkpoint_best_interval(const fr_run_conditions *c)
{
    if (!(interruption_of(c).per_s > 0))
        return 0;
    const double steps = floor(best_steps_s(c, c->step_s) / c->step_s);
    if (steps < 1)
        return 1;
    return seconds_per_step_second(c, steps * c->step_s) <=
                   seconds_per_step_second(c, (steps + 1) * c->step_s)
               ? (int64_t)steps
               : (int64_t)steps + 1;
}

/* Squares of what interruptions take away from the steps, per second. */
static double squares_per_s(const fr_run_conditions *c, double cycle_s)
{
    const double restart_s = c->restart_s + c->drain_s;
    /* Means of down time and of its square: a hang is seen late, nodes are away
     * for an exponential time. */
    const double late_s = restart_s + c->hang_s, frac = c->hang_frac;
    const double fail_s = (1 - frac) * restart_s + frac * late_s;
    const double fail_s2 =
        (1 - frac) * restart_s * restart_s + frac * late_s * late_s;
    const double away_s = restart_s + c->absence_s;
    const double away_s2 = away_s * away_s + c->absence_s * c->absence_s;
    const double lost_s = cycle_s / 2, lost_s2 = cycle_s * cycle_s / 3;
    return c->failures_per_s * (fail_s2 + 2 * fail_s * lost_s + lost_s2) +
           c->interruptions_per_s * (away_s2 + 2 * away_s * lost_s + lost_s2);
}

fr_run_stretch fr_run_expected_stretch(const fr_run_conditions *c)
{
    /* No step is shorter. */
    const double least_s = 1e-3;
    const interruption all = interruption_of(c);
    const double n_steps = (double)c->every_steps;
    if (!(all.per_s > 0) && c->every_steps == 0)
        return (fr_run_stretch){.seconds = 1};
    const double steps_s = c->every_steps > 0
                               ? fmax(n_steps * c->step_s, least_s)
                               : best_steps_s(c, least_s);
    const double down_s = all.per_s * all.down_s;
    const double down_frac = down_s / (1 + down_s);
    const fr_spare_waits waits = fr_spare_waits_expected(c, 1 - down_frac);
    const double there_frac = 1 - waits.waiting_frac;
    const double cycle_s = expected_cycle_s(c, steps_s) / waits.steps_frac;
    return (fr_run_stretch){
        .seconds = cycle_s / steps_s,
        .per_step_s = n_steps > 0 ? cycle_s / n_steps : 0,
        .cycle_s = steps_s,
        .interruptions = cycle_s / steps_s * all.per_s * there_frac,
        .variance_s2_per_s =
            squares_per_s(c, steps_s + c->blocked_s) * there_frac +
            waits.variance_s2_per_s,
        .waiting_frac = 1 - (1 - down_frac) * waits.steps_frac,
        .saving_frac = held_s(c, steps_s) / cycle_s};
}

double fr_run_expected_goodput(const fr_run_conditions *c)
{
    const double steps_s = (double)c->every_steps * c->step_s;
    if (c->presence.n > 0 || c->n_spares >= 0 || c->slowdowns_per_s > 0 ||
        c->maintenance_every_s > 0)
        return 0;
    if (!(interruption_of(c).per_s > 0))
        return c->every_steps == 0 ? 1
                                   : steps_s / (steps_s + held_s(c, steps_s));
    return c->every_steps == 0 ? 0 : 1 / seconds_per_step_second(c, steps_s);
}
