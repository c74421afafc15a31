/* spare_nodes.c: see spare_nodes.h. */
#include "sim/run/spare_nodes.h"

fr_spare_waits fr_spare_waits_expected(const fr_run_conditions *c,
                                       double up_frac)
{
    const double lost_per_s = c->failures_per_s * c->node_frac * up_frac;
    const double load = lost_per_s * c->repair_s;
    double blocked = 1; /* Erlang's B, by the recursion over the servers */
    if (c->n_spares < 0 || !(load > 0))
        return (fr_spare_waits){0};
    for (int64_t n = 1; n <= c->n_spares + 1 && blocked > 1e-18; n++)
        blocked = load * blocked / ((double)n + load * blocked);
    /* Waits begin when a node is lost while all spares are out; each lasts
     * until the first of s + 1 is back. */
    return (fr_spare_waits){blocked, c->repair_s / ((double)c->n_spares + 1)};
}
