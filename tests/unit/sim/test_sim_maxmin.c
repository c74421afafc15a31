/*
 * test_sim_maxmin.c: rates against a plain progressive filling in double
 * precision that shares nothing with the solver, incremental against full
 * solving, hand-computed cases, order and scale.
 */
#include "sim/engine/maxmin_state.h"
#include "tests/check.h"

#include <stdlib.h>

/* All levels from nothing: what solving a change must be equal to. */
static void solve_all(fr_maxmin *m, int64_t now_ps)
{
    m->now_ps = now_ps;
    fr_maxmin_find_levels(m, true);
    fr_maxmin_commit(m, now_ps);
}

enum { MAX_LINKS = 40, MAX_FLOWS = 160, MAX_USES = 6 };

static uint64_t random_state;

static uint64_t next_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static uint32_t below(uint32_t n)
{
    return (uint32_t)(next_random() >> 33) % n;
}

typedef struct plain_flow {
    bool is_alive;
    uint32_t handle, tag;
    double cap;
    int64_t cap_quanta;
    size_t n_uses;
    fr_maxmin_use uses[MAX_USES];
} plain_flow;

typedef struct plain_net {
    size_t n_links;
    int64_t capacity[MAX_LINKS];
    plain_flow flows[MAX_FLOWS];
    double rate[MAX_FLOWS];
} plain_net;

/* All rise together; at each turn the tightest link or cap stops its flows. */
static void fill_plainly(plain_net *net)
{
    bool is_fixed[MAX_FLOWS];

    for (size_t i = 0; i < MAX_FLOWS; i++)
        is_fixed[i] = !net->flows[i].is_alive;
    for (;;) {
        double least = INFINITY;
        size_t least_link = MAX_LINKS, least_flow = MAX_FLOWS;
        for (size_t l = 0; l < net->n_links; l++) {
            double left = (double)net->capacity[l], weight = 0.0;
            for (size_t i = 0; i < MAX_FLOWS; i++) {
                const plain_flow *flow = &net->flows[i];
                for (size_t u = 0; flow->is_alive && u < flow->n_uses; u++) {
                    double a = (double)flow->uses[u].coefficient /
                               (double)FR_MAXMIN_ONE;
                    if (flow->uses[u].link != l)
                        continue;
                    if (is_fixed[i])
                        left -= a * net->rate[i];
                    else
                        weight += a;
                }
            }
            if (weight > 0.0 && left / weight < least) {
                least = left / weight;
                least_link = l;
            }
        }
        for (size_t i = 0; i < MAX_FLOWS; i++)
            if (!is_fixed[i] && net->flows[i].cap < least) {
                least = net->flows[i].cap;
                least_flow = i;
            }
        if (isinf(least))
            return;
        if (least_flow < MAX_FLOWS) {
            is_fixed[least_flow] = true;
            net->rate[least_flow] = least;
            continue;
        }
        for (size_t i = 0; i < MAX_FLOWS; i++)
            for (size_t u = 0; !is_fixed[i] && u < net->flows[i].n_uses; u++)
                if (net->flows[i].uses[u].link == least_link) {
                    is_fixed[i] = true;
                    net->rate[i] = least > 0.0 ? least : 0.0;
                }
    }
}

static void draw_flow(const plain_net *net, plain_flow *flow, bool is_odd)
{
    size_t n_uses = 1 + below(MAX_USES - 1);

    flow->n_uses = 0;
    for (size_t u = 0; u < n_uses; u++) {
        uint32_t link = below((uint32_t)net->n_links);
        bool is_there = false;
        for (size_t k = 0; k < flow->n_uses; k++)
            is_there = is_there || flow->uses[k].link == link;
        if (is_there)
            continue;
        uint32_t coefficient = FR_MAXMIN_ONE;
        if (is_odd && below(2))
            coefficient = FR_MAXMIN_ONE / 16 + below(4 * FR_MAXMIN_ONE);
        flow->uses[flow->n_uses++] = (fr_maxmin_use){link, coefficient};
    }
    flow->cap_quanta = FR_MAXMIN_NO_CAP;
    if (below(4) == 0)
        flow->cap_quanta = (INT64_C(1) << 40) + below(1u << 30) * INT64_C(997);
    flow->cap = (double)flow->cap_quanta;
}

static void draw_net(plain_net *net, bool is_equal)
{
    memset(net, 0, sizeof *net);
    net->n_links = 2 + below(MAX_LINKS - 2);
    for (size_t l = 0; l < net->n_links; l++)
        net->capacity[l] =
            is_equal ? INT64_C(4400000000007)
                     : (INT64_C(1) << 42) + below(1u << 30) * INT64_C(4093);
}

static void check_rates(plain_net *net, fr_maxmin *a, fr_maxmin *b)
{
    fill_plainly(net);
    for (size_t i = 0; i < MAX_FLOWS; i++) {
        const plain_flow *flow = &net->flows[i];
        if (!flow->is_alive)
            continue;
        CHECK_NEAR(a->rate[flow->handle], net->rate[i], 1e-9);
        CHECK(a->rate[flow->handle] == b->rate[flow->handle]);
        CHECK(fr_maxmin_remaining(a, flow->handle, 0) ==
              fr_maxmin_remaining(b, flow->handle, 0));
    }
}

/* Handles of two solvers agree as long as they are given the same changes. */
static void change(plain_net *net, fr_maxmin *a, fr_maxmin *b, bool is_odd)
{
    size_t i = below(MAX_FLOWS);
    plain_flow *flow = &net->flows[i];
    uint32_t other = 0;
    fr_err err;

    if (flow->is_alive) {
        fr_maxmin_remove(a, flow->handle);
        fr_maxmin_remove(b, flow->handle);
        flow->is_alive = false;
        return;
    }
    draw_flow(net, flow, is_odd);
    fr_work work = (fr_work)(1 + below(1u << 30)) << 40;
    flow->is_alive = true;
    CHECK_OK(fr_maxmin_add(a, work, flow->cap_quanta, flow->uses, flow->n_uses,
                           (uint32_t)i, &flow->handle, &err),
             &err);
    CHECK_OK(fr_maxmin_add(b, work, flow->cap_quanta, flow->uses, flow->n_uses,
                           (uint32_t)i, &other, &err),
             &err);
    CHECK_INT(flow->handle, other);
}

static void try_net(uint64_t seed, bool is_odd, bool is_equal)
{
    static plain_net net;
    fr_maxmin *a = NULL, *b = NULL;
    fr_err err;

    random_state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    draw_net(&net, is_equal);
    if (!CHECK_OK(fr_maxmin_create(net.n_links, net.capacity, &a, &err),
                  &err) ||
        !CHECK_OK(fr_maxmin_create(net.n_links, net.capacity, &b, &err), &err))
        return;
    for (int turn = 0; turn < 60; turn++) {
        uint32_t n_changes = 1 + below(turn == 0 ? MAX_FLOWS : 4);
        for (uint32_t c = 0; c < n_changes; c++)
            change(&net, a, b, is_odd);
        fr_maxmin_solve(a, 0);
        solve_all(b, 0);
        check_rates(&net, a, b);
    }
    fr_maxmin_destroy(a);
    fr_maxmin_destroy(b);
}

static void test_against_plain_filling(void)
{
    for (uint64_t seed = 1; seed <= 60; seed++)
        try_net(seed, false, false);
}

static void test_with_coefficients(void)
{
    for (uint64_t seed = 101; seed <= 160; seed++)
        try_net(seed, true, false);
}

static void test_equal_links(void)
{
    for (uint64_t seed = 201; seed <= 260; seed++)
        try_net(seed, seed % 2 == 0, true);
}

/* Runs all flows to their end; solving everything anew must change nothing. */
static size_t run_to_the_end(uint64_t seed, bool is_all, int64_t *ends)
{
    static plain_net net;
    fr_maxmin *m = NULL;
    fr_err err;
    size_t n_started = 0, n_ended = 0;
    int64_t now_ps = 0;
    uint32_t tags[3];

    random_state = seed;
    draw_net(&net, false);
    if (!CHECK_OK(fr_maxmin_create(net.n_links, net.capacity, &m, &err), &err))
        return 0;
    while (n_ended < 500) {
        while (n_started < 500 && n_started - n_ended < 40) {
            plain_flow flow;
            draw_flow(&net, &flow, n_started % 3 == 0);
            fr_work work = (fr_work)(1 + below(1u << 30)) << 50;
            CHECK_OK(fr_maxmin_add(m, work, flow.cap_quanta, flow.uses,
                                   flow.n_uses, (uint32_t)n_started, NULL,
                                   &err),
                     &err);
            n_started++;
        }
        if (is_all)
            solve_all(m, now_ps);
        else
            fr_maxmin_solve(m, now_ps);
        int64_t next_ps = fr_maxmin_next_ps(m);
        if (!CHECK(next_ps >= now_ps && next_ps < INT64_MAX))
            break;
        now_ps = next_ps;
        size_t n = 0;
        do {
            n = fr_maxmin_take_finished(m, now_ps, tags, 3);
            for (size_t k = 0; k < n; k++)
                ends[tags[k]] = now_ps;
            n_ended += n;
        } while (n == 3);
    }
    CHECK_INT(fr_maxmin_n_flows(m), 0);
    fr_maxmin_destroy(m);
    return n_ended;
}

static void test_history_does_not_matter(void)
{
    static int64_t a[500], b[500];

    for (uint64_t seed = 7; seed < 19; seed++) {
        CHECK_INT(run_to_the_end(seed * 7919, false, a), 500);
        CHECK_INT(run_to_the_end(seed * 7919, true, b), 500);
        CHECK(memcmp(a, b, sizeof a) == 0);
    }
}

static void test_by_hand(void)
{
    /* Two links of 12 and 10: flow 0 on both, 1 and 2 on the second, 3 on the
     * first, capped at 4: the second gives 10/3 each, flow 3 its cap. */
    const int64_t capacity[2] = {12000000, 10000000};
    const fr_maxmin_use both[2] = {{0, FR_MAXMIN_ONE}, {1, FR_MAXMIN_ONE}};
    uint32_t f[4] = {0}, tags[4];
    fr_maxmin *m = NULL;
    fr_err err;

    CHECK_OK(fr_maxmin_create(2, capacity, &m, &err), &err);
    CHECK_OK(fr_maxmin_add(m, 7, FR_MAXMIN_NO_CAP, both, 2, 0, &f[0], &err),
             &err);
    CHECK_OK(fr_maxmin_add(m, 3333334, FR_MAXMIN_NO_CAP, both + 1, 1, 1, &f[1],
                           &err),
             &err);
    CHECK_OK(fr_maxmin_add(m, 100000000, FR_MAXMIN_NO_CAP, both + 1, 1, 2,
                           &f[2], &err),
             &err);
    CHECK_OK(fr_maxmin_add(m, 8000000, 4000000, both, 1, 3, &f[3], &err), &err);
    fr_maxmin_solve(m, 5);
    CHECK_INT(m->rate[f[0]], 3333333);
    CHECK_INT(m->rate[f[2]], 3333333);
    CHECK_INT(m->rate[f[3]], 4000000);
    CHECK_INT(m->bound[f[0]], 1);
    CHECK_INT(m->bound[f[3]], FR_OWN_CAP);
    CHECK_INT(fr_maxmin_next_ps(m), 6);
    CHECK_INT(fr_maxmin_take_finished(m, 6, tags, 4), 1);
    CHECK_INT(tags[0], 0);
    fr_maxmin_solve(m, 6);
    CHECK_INT(m->rate[f[1]], 5000000);
    /* One unit was left; it takes a whole picosecond. */
    CHECK(fr_maxmin_remaining(m, f[1], 6) == 1);
    CHECK_INT(fr_maxmin_next_ps(m), 7);
    CHECK_INT(fr_maxmin_take_finished(m, 7, tags, 4), 2);
    fr_maxmin_solve(m, 7);
    CHECK_INT(m->rate[f[2]], 10000000);
    CHECK(fr_maxmin_remaining(m, f[2], 7) == 100000000 - 3333333 - 5000000);
    CHECK_INT(fr_maxmin_next_ps(m), 7 + 10);
    fr_maxmin_destroy(m);
}

static void test_no_links_and_no_work(void)
{
    uint32_t tag = 9, f = 0;
    fr_maxmin *m = NULL;
    fr_err err;

    CHECK_OK(fr_maxmin_create(0, NULL, &m, &err), &err);
    CHECK_OK(fr_maxmin_add(m, 0, 17, NULL, 0, 1, NULL, &err), &err);
    CHECK_OK(fr_maxmin_add(m, 35, 17, NULL, 0, 2, &f, &err), &err);
    fr_maxmin_solve(m, 100);
    CHECK_INT(fr_maxmin_next_ps(m), 100);
    CHECK_INT(fr_maxmin_take_finished(m, 100, &tag, 1), 1);
    CHECK_INT(tag, 1);
    fr_maxmin_solve(m, 100);
    CHECK_INT(fr_maxmin_next_ps(m), 103);
    CHECK(fr_maxmin_remaining(m, f, 101) == 18);
    fr_maxmin_destroy(m);
    CHECK_INT(fr_maxmin_duration_ps(10, 0), INT64_MAX);
    CHECK_INT(fr_maxmin_duration_ps((fr_work)1 << 100, 3), INT64_MAX);
    CHECK_INT(fr_maxmin_duration_ps(10, 3), 4);
    CHECK_INT(fr_maxmin_duration_ps(9, 3), 3);
}

CHECK_MAIN({"plain", test_against_plain_filling},
           {"coefficients", test_with_coefficients},
           {"equal", test_equal_links},
           {"history", test_history_does_not_matter}, {"hand", test_by_hand},
           {"empty", test_no_links_and_no_work})
