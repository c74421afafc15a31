/* spare_nodes.c: see spare_nodes.h. */
#include "reliability/spare_nodes.h"

/* Returns the speed of steps while n_away nodes are away. */
static double speed_of(const fr_run_conditions *c, int64_t n_away)
{
    const int64_t n_missing = n_away - c->n_spares;
    if (n_missing <= 0)
        return 1;
    return n_missing <= (int64_t)c->elastic.n
               ? c->elastic.speed_frac[n_missing - 1]
               : 0;
}

/*
 * The state of n nodes away is put on top of those below, which it takes its
 * share from: Erlang's formula by its recursion over the servers.  The run goes
 * from one state to the next as often as back; it begins anew each time, and
 * saves all before a node is taken back.
 */
fr_spare_waits fr_spare_waits_expected(const fr_run_conditions *c,
                                       double up_frac)
{
    const double lost_per_s = c->failures_per_s * c->node_frac * up_frac;
    const double load = lost_per_s * c->repair_s;
    const double change_s =
        2 * c->elastic.replan_s + c->blocked_s + c->drain_s + c->restart_s;
    double top = 1, speed = 1, changes_per_s = 0;
    fr_spare_waits waits = {.steps_frac = 1};
    if (c->n_spares < 0 || !(load > 0))
        return waits;
    for (int64_t n = 1; top > 1e-18 && waits.waiting_frac == 0; n++) {
        const double at = speed_of(c, n), before = speed_of(c, n - 1);
        const double each_s = c->repair_s / (double)n;
        top = load * top / ((double)n + load * top);
        speed += top * (at - speed);
        changes_per_s -= top * changes_per_s;
        if (at > 0 && at < before)
            changes_per_s += top / each_s;
        /* A state lasts until the first of those away is back. */
        waits.variance_s2_per_s +=
            top * (2 * (1 - at) * (1 - at) * each_s - waits.variance_s2_per_s);
        waits.waiting_frac = at > 0 ? 0 : top;
    }
    waits.steps_frac = speed / (1 + changes_per_s * change_s);
    return waits;
}
