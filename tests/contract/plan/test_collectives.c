/*
 * Every collective algorithm, over operations, group sizes and lengths: its
 * transfers do what the operation means, whatever order a phase runs in, and
 * its closed form agrees with a replay of the transfers.
 */
#include "plan/collective/collective.h"
#include "tests/check.h"

#include <stdlib.h>

typedef enum replay_order { IN_ORDER, REVERSED, N_ORDERS } replay_order;

static const fr_op ops[] = {FR_OP_ALL_REDUCE, FR_OP_REDUCE_SCATTER,
                            FR_OP_ALL_GATHER, FR_OP_ALL_TO_ALL,
                            FR_OP_BROADCAST,  FR_OP_SHIFT};
enum { MOST = 33 }; /* members, and a switch */

/* Whole numbers, so that sums are exact in any order. */
static double value(int64_t member, uint64_t i)
{
    return (double)((i * 7919U + (uint64_t)member * 104729U) % 999983U);
}

static void apply(const fr_transfer *t, double *const *from,
                  double *const *buffers, bool is_max)
{
    for (uint64_t i = 0; i < t->n; i++) {
        double got = from[t->src][t->src_first + i];
        double *to = &buffers[t->dst][t->dst_first + i];
        if (!t->is_reduce)
            *to = got;
        else if (is_max)
            *to = got > *to ? got : *to;
        else
            *to += got;
    }
}

static void execute(const fr_transfer_list *list, double *const *from,
                    double *const *buffers, bool is_max, replay_order order)
{
    for (uint32_t phase = 0; phase < list->n_phases; phase++)
        for (size_t k = 0; k < list->n; k++) {
            size_t i = order == IN_ORDER ? k : list->n - 1 - k;
            if (list->at[i].phase == phase)
                apply(&list->at[i], from, buffers, is_max);
        }
}

/* The value that member m must hold at element i in the end; false: any
 * value. */
static bool expected(fr_op op, int64_t g, uint64_t n, int64_t m, uint64_t i,
                     bool is_max, double *out)
{
    double sum = 0, most = 0;
    uint64_t part = n / (uint64_t)g;
    for (int64_t k = 0; k < g; k++) {
        sum += value(k, i);
        most = value(k, i) > most ? value(k, i) : most;
    }
    *out = op == FR_OP_ALL_GATHER  ? value((int64_t)(i / part), i)
           : op == FR_OP_BROADCAST ? value(0, i)
           : op == FR_OP_ALL_TO_ALL
               ? value((int64_t)(i / part), part * (uint64_t)m + i % part)
           : is_max ? most
                    : sum;
    if (op == FR_OP_SHIFT)
        *out = value((m + g - 1) % g, i);
    if (op == FR_OP_ALL_TO_ALL) /* the own slice is nobody's transfer */
        return (int64_t)(i / part) != m;
    return op != FR_OP_REDUCE_SCATTER ||
           (i >= part * (uint64_t)m && i < part * (uint64_t)(m + 1));
}

/* Buffers of g members and of the switch, which begins neutral. */
static void fill(fr_op op, int64_t g, uint64_t n, double **buffers)
{
    for (int64_t m = 0; m <= g; m++) {
        buffers[m] = malloc((n + 1) * sizeof(double));
        for (uint64_t i = 0; i < n; i++) {
            bool has =
                op != FR_OP_ALL_GATHER || (int64_t)(i / (n / (uint64_t)g)) == m;
            buffers[m][i] = m == g ? 0 : has ? value(m, i) : (double)NAN;
        }
    }
}

static void check_meaning(const fr_collective *c, fr_op op, int64_t g,
                          uint64_t n, const fr_transfer_list *list)
{
    double *buffers[MOST], *sources[MOST];
    bool is_apart = op == FR_OP_ALL_TO_ALL || op == FR_OP_SHIFT;
    for (int variant = 0; variant < 2 * N_ORDERS; variant++) {
        bool is_max = variant >= N_ORDERS;
        int n_wrong = 0;
        fill(op, g, n, buffers);
        fill(op, g, n, sources);
        execute(list, is_apart ? sources : buffers, buffers, is_max,
                (replay_order)(variant % N_ORDERS));
        for (int64_t m = 0; m < g; m++)
            for (uint64_t i = 0; i < n; i++) {
                double want;
                if (expected(op, g, n, m, i, is_max, &want))
                    n_wrong += !(buffers[m][i] == want);
            }
        for (int64_t m = 0; m <= g; m++) {
            free(buffers[m]);
            free(sources[m]);
        }
        check_that(n_wrong == 0, __FILE__, __LINE__,
                   "%s %s group %d n %d variant %d: %d wrong", c->name,
                   fr_op_name(op), (int)g, (int)n, variant, n_wrong);
    }
}

/* The transfers of the members of one phase; bytes through the link of each. */
typedef struct phase_load {
    double begin[MOST], in[MOST], out[MOST], reduced[MOST];
    double most[MOST]; /* of the links that its transfers share */
    bool is_busy[MOST];
} phase_load;

static void load_phase(const fr_transfer_list *list, uint32_t phase, int64_t g,
                       uint64_t element_bytes, const double *clock,
                       phase_load *load)
{
    *load = (phase_load){0};
    memcpy(load->begin, clock, sizeof load->begin);
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < list->n; i++) {
            const fr_transfer *t = &list->at[i];
            double bytes = (double)(t->n * element_bytes);
            double both = fmax(clock[t->src], clock[t->dst]);
            if (t->phase != phase)
                continue;
            if (pass == 0) {
                load->begin[t->src] = fmax(load->begin[t->src], both);
                load->begin[t->dst] = fmax(load->begin[t->dst], both);
                load->out[t->src] += (int64_t)t->src < g ? bytes : 0;
                load->in[t->dst] += (int64_t)t->dst < g ? bytes : 0;
                load->reduced[t->dst] += t->is_reduce ? bytes : 0;
                load->is_busy[t->src] = load->is_busy[t->dst] = true;
                continue;
            }
            double shared = fmax(load->out[t->src], load->in[t->dst]);
            load->most[t->src] = fmax(load->most[t->src], shared);
            load->most[t->dst] = fmax(load->most[t->dst], shared);
        }
}

/*
 * Members with full-duplex links, which their transfers of a phase share: a
 * phase of a member begins when it and all it meets have ended the phase
 * before.  The switch (position g) takes no time of its own: it is done when
 * those it meets are.
 */
static double replay_s(const fr_transfer_list *list, int64_t g,
                       uint64_t element_bytes, const fr_link_cost *link)
{
    double clock[MOST] = {0}, last = 0;
    for (uint32_t phase = 0; phase < list->n_phases; phase++) {
        phase_load load;
        load_phase(list, phase, g, element_bytes, clock, &load);
        for (int64_t m = 0; m < g; m++) {
            if (load.is_busy[m])
                clock[m] = load.begin[m] + link->latency_s +
                           load.most[m] * link->s_per_byte +
                           load.reduced[m] * link->reduce_s_per_byte;
            last = fmax(last, clock[m]);
        }
        if (load.is_busy[g])
            clock[g] = last;
    }
    return last;
}

static void check_time(const fr_collective *c, fr_op op, int64_t g, uint64_t n,
                       const fr_transfer_list *list)
{
    static const fr_link_cost links[] = {{2.385e-6, 1.13e-10, 3.71e-11},
                                         {5.17e-5, 8.39e-9, 4.21e-10}};
    for (size_t i = 0; i < sizeof links / sizeof links[0]; i++) {
        double closed = c->idle_s(op, g, n, 4, &links[i]);
        double replayed = replay_s(list, g, 4, &links[i]);
        check_that(fabs(closed - replayed) <= 0.02 * fmax(closed, replayed),
                   __FILE__, __LINE__, "%s %s group %d n %d: %g and %g",
                   c->name, fr_op_name(op), (int)g, (int)n, closed, replayed);
    }
}

static void test_every_entry(void)
{
    static const int64_t groups[] = {1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 17};
    static const uint64_t sizes[] = {1, 2, 5, 64, 997, 3001};
    int n_cases = 0;
    for (int kind = 0; kind < fr_n_collectives; kind++) {
        const fr_collective *c = fr_collectives[kind];
        fr_transfer_list list = {0};
        fr_err err = {0};
        if (kind == FR_COLLECTIVE_AUTO) {
            CHECK(c == NULL);
            continue;
        }
        CHECK_INT(fr_name_find(&fr_collective_names, c->name), kind);
        for (size_t o = 0; o < sizeof ops / sizeof ops[0]; o++)
            for (size_t k = 0; k < sizeof groups / sizeof groups[0]; k++)
                for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
                    int64_t g = groups[k];
                    bool is_whole = ops[o] == FR_OP_ALL_REDUCE ||
                                    ops[o] == FR_OP_BROADCAST ||
                                    ops[o] == FR_OP_SHIFT;
                    uint64_t n = is_whole ? sizes[s] : sizes[s] * (uint64_t)g;
                    if (!c->fits(ops[o], g))
                        continue;
                    list.n = list.n_phases = 0;
                    CHECK_OK(c->emit(ops[o], g, n, &list, &err), &err);
                    check_meaning(c, ops[o], g, n, &list);
                    if (sizes[s] > 500)
                        check_time(c, ops[o], g, n, &list);
                    n_cases++;
                }
        fr_transfer_list_release(&list);
    }
    CHECK(n_cases > 500);
}

/* Payloads where bytes decide, not latencies. */
static void test_long(void)
{
    static const int64_t groups[] = {2, 3, 4, 8, 12, 16, 32};
    for (int kind = 1; kind < fr_n_collectives; kind++)
        for (size_t o = 0; o < sizeof ops / sizeof ops[0]; o++)
            for (size_t k = 0; k < sizeof groups / sizeof groups[0]; k++) {
                const fr_collective *c = fr_collectives[kind];
                const uint64_t n = 12000007ULL * (uint64_t)groups[k];
                fr_transfer_list list = {0};
                fr_err err = {0};
                if (!c->fits(ops[o], groups[k]))
                    continue;
                CHECK_OK(c->emit(ops[o], groups[k], n, &list, &err), &err);
                check_time(c, ops[o], groups[k], n, &list);
                fr_transfer_list_release(&list);
            }
}

/* Textbook values, by hand. */
static void test_textbook(void)
{
    const fr_link_cost link = {1e-5, 1e-9, 0};
    /* Ring all-reduce of 8 members: 2 * 7 steps of 1/8 of 4 MB. */
    CHECK_NEAR(fr_collectives[FR_COLLECTIVE_RING]->idle_s(FR_OP_ALL_REDUCE, 8,
                                                          1000000, 4, &link),
               14 * (1e-5 + 0.5e6 * 1e-9), 1e-9);
    /* Rabenseifner: 2 log2 8 latencies, 2 * 7/8 of the bytes. */
    CHECK_NEAR(fr_collectives[FR_COLLECTIVE_HALVING_DOUBLING]->idle_s(
                   FR_OP_ALL_REDUCE, 8, 1000000, 4, &link),
               6 * 1e-5 + 2 * 7.0 / 8 * 4e6 * 1e-9, 1e-9);
    CHECK_NEAR(fr_collectives[FR_COLLECTIVE_TREE]->idle_s(FR_OP_ALL_REDUCE, 5,
                                                          100, 4, &link),
               6 * (1e-5 + 400e-9), 1e-9);
    CHECK_NEAR(fr_collectives[FR_COLLECTIVE_RING]->idle_s(FR_OP_ALL_GATHER, 4,
                                                          1000, 4, &link),
               3 * (1e-5 + 1000e-9), 1e-9);
}

static void test_textbook_new(void)
{
    const fr_link_cost link = {1e-5, 1e-9, 0}, slow = {3e-5, 7e-9, 0};
    /* Two nodes of four, 8 MB: 3 steps of a quarter and 1 of an eighth, each
     * way. */
    CHECK_NEAR(
        fr_hierarchical_idle_s(FR_OP_ALL_REDUCE, 2, 4, 8e6, &link, &slow),
        2 * (3 * (1e-5 + 2e6 * 1e-9) + 3e-5 + 1e6 * 7e-9), 1e-9);
    /* All-to-all of 4: three slices of 1 MB. */
    CHECK_NEAR(fr_collectives[FR_COLLECTIVE_PAIRWISE]->idle_s(
                   FR_OP_ALL_TO_ALL, 4, 1000000, 4, &link),
               3 * (1e-5 + 1e6 * 1e-9), 1e-9);
    /* Trees of 8 members: three levels each way, two children but at the
     * root. */
    CHECK_NEAR(fr_collectives[FR_COLLECTIVE_DOUBLE_TREE]->idle_s(
                   FR_OP_ALL_REDUCE, 8, 1000000, 4, &link),
               6 * 1e-5 + 2 * (4e6 + 4e6 + 2e6) * 1e-9, 1e-9);
    /* NVLS moves (1 + 1/g) payloads: near that when chunks overlap. */
    CHECK_NEAR(fr_collectives[FR_COLLECTIVE_NVLS]->idle_s(FR_OP_ALL_REDUCE, 8,
                                                          100000000, 4, &link),
               4e8 * (1 + 1.0 / 8) * 1e-9, 0.2);
}

static void test_choice(void)
{
    for (int kind = 1; kind < fr_n_collectives; kind++)
        for (int64_t g = 2; g < 20; g++)
            for (size_t o = 0; ops[o] != FR_OP_SHIFT; o++) /* simulated only */
                for (int near = 0; near < 2; near++)
                    CHECK(fr_collectives[fr_collective_choose(
                                             FR_COLLECTIVE_AUTO, ops[o], g,
                                             (uint64_t)1 << kind, near)]
                              ->not_executable == NULL);
    CHECK(fr_collectives[FR_COLLECTIVE_NVLS]->not_executable != NULL);
    CHECK_INT(fr_collective_choose(FR_COLLECTIVE_AUTO, FR_OP_ALL_REDUCE, 4,
                                   1 << 30, true),
              FR_COLLECTIVE_DIRECT);
    CHECK_INT(fr_collective_choose(FR_COLLECTIVE_AUTO, FR_OP_ALL_REDUCE, 4,
                                   1 << 30, false),
              FR_COLLECTIVE_RING);
    CHECK_INT(
        fr_collective_choose(FR_COLLECTIVE_AUTO, FR_OP_ALL_REDUCE, 4, 8, false),
        FR_COLLECTIVE_HALVING_DOUBLING);
    CHECK_INT(
        fr_collective_choose(FR_COLLECTIVE_AUTO, FR_OP_ALL_REDUCE, 6, 8, false),
        FR_COLLECTIVE_RING);
    CHECK_INT(
        fr_collective_choose(FR_COLLECTIVE_TREE, FR_OP_ALL_REDUCE, 6, 8, true),
        FR_COLLECTIVE_TREE);
    /* The algorithm that was asked for does not exist: fall back. */
    CHECK_INT(fr_collective_choose(FR_COLLECTIVE_TREE, FR_OP_ALL_GATHER, 6,
                                   1 << 30, false),
              FR_COLLECTIVE_RING);
    CHECK_INT(
        fr_collective_choose(FR_COLLECTIVE_AUTO, FR_OP_BROADCAST, 6, 8, false),
        FR_COLLECTIVE_TREE);
}

static void test_parts(void)
{
    for (int64_t g = 1; g < 20; g++) {
        CHECK_INT(fr_collective_part(1000003, g, 0), 0);
        CHECK_INT(fr_collective_part(1000003, g, g), 1000003);
        for (int64_t i = 0; i < g; i++) {
            uint64_t n = fr_collective_part(1000003, g, i + 1) -
                         fr_collective_part(1000003, g, i);
            CHECK(n == 1000003U / (uint64_t)g ||
                  n == 1000003U / (uint64_t)g + 1);
        }
    }
    CHECK(fr_collective_part((uint64_t)1 << 62, 1024, 1024) == (uint64_t)1
                                                                   << 62);
}

CHECK_MAIN({"every_entry", test_every_entry}, {"long", test_long},
           {"textbook", test_textbook}, {"textbook_new", test_textbook_new},
           {"choice", test_choice}, {"parts", test_parts})
