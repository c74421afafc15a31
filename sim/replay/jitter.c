/* jitter.c: expected maxima, and who carries which variance. */
#include "sim/replay/jitter.h"

#include "sim/engine/virtual_time.h"

#include <math.h>
#include <stdlib.h>

fr_largest fr_largest_of(int64_t n)
{
    enum { N_STEPS = 2000 };
    const double low = -9.0, high = 9.0, h = (high - low) / N_STEPS;
    double mass = 0, mean = 0, square = 0;
    if (n <= 1)
        return (fr_largest){n, 0.0, 1.0};
    for (int i = 0; i <= N_STEPS; i++) {
        double x = low + i * h;
        double below = 0.5 * erfc(-x / sqrt(2.0));
        double density = exp(-0.5 * x * x) * pow(below, (double)(n - 1));
        mass += density;
        mean += density * x;
        square += density * x * x;
    }
    mean /= mass;
    return (fr_largest){n, mean, square / mass - mean * mean};
}

void fr_jitter_init(double compute_frac, double network_frac, int32_t n_tables,
                    fr_jitter *out)
{
    *out = (fr_jitter){.compute_frac = compute_frac,
                       .network_frac = network_frac,
                       .is_on = compute_frac > 0 || network_frac > 0,
                       .n_tables = n_tables};
}

void fr_jitter_release(fr_jitter *jitter)
{
    fr_vec_release(&jitter->states);
    fr_vec_release(&jitter->choices);
    *jitter = (fr_jitter){0};
}

fr_ps2 *fr_jitter_state(const fr_jitter *jitter, uint32_t state)
{
    return &jitter->states
                .items[(size_t)state * (size_t)(jitter->n_tables + 1)];
}

static fr_ps2 *carried(const fr_jitter *jitter, uint32_t state, int32_t i_table)
{
    return fr_jitter_state(jitter, state) + 1 + i_table;
}

fr_status fr_jitter_add(fr_jitter *jitter, uint32_t cause, fr_err *err)
{
    size_t n = (size_t)jitter->n_tables + 1;
    if (fr_vec_reserve(&jitter->states, n) != FR_OK)
        return fr_fail_no_memory(err);
    fr_ps2 *state = jitter->states.items + jitter->states.n;
    for (size_t i = 0; i < n; i++)
        state[i] = cause != UINT32_MAX ? fr_jitter_state(jitter, cause)[i] : 0;
    jitter->states.n += n;
    return FR_OK;
}

static fr_largest largest(fr_jitter *jitter, int64_t n)
{
    for (int32_t i = 0; i < jitter->n_known; i++)
        if (jitter->known[i].n == n)
            return jitter->known[i];
    fr_largest found = fr_largest_of(n);
    if (jitter->n_known < FR_JITTER_SIZES)
        jitter->known[jitter->n_known++] = found;
    return found;
}

void fr_jitter_compute(fr_jitter *jitter, uint32_t state, int64_t ps)
{
    *fr_jitter_state(jitter, state) += ps;
}

static void note(fr_jitter *jitter, fr_ps2 a, fr_ps2 b, bool is_fixed)
{
    const fr_jitter_choice choice = {a, b, is_fixed};
    if (jitter->is_noted && fr_vec_push(&jitter->choices, choice) != FR_OK)
        jitter->has_lost = true;
}

static fr_ps2 larger(fr_jitter *jitter, fr_ps2 a, fr_ps2 b)
{
    note(jitter, a, b, false);
    return a > b ? a : b;
}

/* The square of a time, which lies within the clock. */
static fr_ps2 squared(double ps)
{
    ps = fmin(ps, (double)FR_PS_END);
    return (fr_ps2)(ps * ps + 0.5);
}

int64_t fr_jitter_meet(fr_jitter *jitter, int32_t i_table, int64_t n_ranks,
                       const uint32_t *members, int64_t n_members,
                       const fr_jitter_work *work)
{
    const fr_largest of = largest(jitter, n_ranks);
    const double sigma = jitter->compute_frac;
    fr_ps2 most_ps2 = 0;
    for (int64_t i = 0; i < n_members; i++) {
        fr_ps2 ps2 =
            squared(sigma * (double)*fr_jitter_state(jitter, members[i])) +
            *carried(jitter, members[i], i_table);
        note(jitter, ps2, 0, true);
        most_ps2 = ps2 > most_ps2 ? ps2 : most_ps2;
    }
    fr_ps2 left_ps2 = (fr_ps2)(of.variance * ((double)most_ps2 +
                                              sigma * sigma * work->squares) +
                               0.5) +
                      squared(jitter->network_frac * work->network_ps);
    for (int64_t i = 0; i < n_members; i++) {
        /* The variance since the last meeting of this group was carried to the
         * others, too.  There the variance that the maximum leaves replaces it,
         * else it would grow with every meeting. */
        fr_ps2 met_ps2 = *carried(jitter, members[i], i_table);
        *fr_jitter_state(jitter, members[i]) = 0;
        for (int32_t k = 0; k < jitter->n_tables; k++) {
            fr_ps2 *at = carried(jitter, members[i], k);
            *at = larger(jitter, *at - met_ps2, 0) + left_ps2;
        }
        *carried(jitter, members[i], i_table) = 0;
    }
    return fr_ps_cut(
        of.mean * (sqrt((double)most_ps2) + sigma * work->compute_ps) + 0.5);
}

void fr_jitter_transfer(fr_jitter *jitter, uint32_t from, uint32_t to,
                        int64_t ps)
{
    const fr_ps2 network_ps2 = squared(jitter->network_frac * (double)ps);
    for (int32_t k = 0; k < jitter->n_tables; k++) {
        fr_ps2 *a = carried(jitter, from, k), *b = carried(jitter, to, k);
        *a = *b = larger(jitter, *a, *b) + network_ps2;
    }
}
