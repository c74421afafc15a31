/*
 * test_grid.c: ranks and coordinates, groups.  The oracle counts through the
 * axes with nested loops in the order that the name of a rank order says.
 */
#include "plan/decide/grid.h"
#include "plan/decide/plan.h"
#include "tests/check.h"

#include <stdlib.h>

static fr_plan make(int tp, int cp, int dp, int pp, fr_rank_order order)
{
    fr_plan plan;
    fr_plan_init(&plan);
    plan.tp = tp;
    plan.cp = cp;
    plan.dp = dp;
    plan.pp = pp;
    plan.rank_order = order;
    return plan;
}

/* The axis letters of "tp-dp-pp" with cp after tp, fastest first. */
static void parse_order(const char *name, char axes[5])
{
    int n = 0;
    for (const char *at = name; *at; at += at[2] ? 3 : 2) {
        axes[n++] = *at;
        if (*at == 't')
            axes[n++] = 'c';
    }
    axes[n] = '\0';
}

static int *axis_of(fr_coord *coord, char axis)
{
    switch (axis) {
    case 't':
        return &coord->tp;
    case 'c':
        return &coord->cp;
    case 'd':
        return &coord->dp;
    default:
        return &coord->pp;
    }
}

static void check_order(fr_rank_order order)
{
    fr_plan plan = make(3, 2, 5, 4, order);
    fr_coord size = {3, 2, 5, 4};
    char axes[5];
    int64_t rank = 0;
    parse_order(fr_name_of(&fr_rank_order_names, order), axes);
    int n[4];
    for (int i = 0; i < 4; i++)
        n[i] = *axis_of(&size, axes[i]);
    for (int a = 0; a < n[3]; a++)
        for (int b = 0; b < n[2]; b++)
            for (int c = 0; c < n[1]; c++)
                for (int d = 0; d < n[0]; d++) {
                    fr_coord expected = {0, 0, 0, 0};
                    *axis_of(&expected, axes[3]) = a;
                    *axis_of(&expected, axes[2]) = b;
                    *axis_of(&expected, axes[1]) = c;
                    *axis_of(&expected, axes[0]) = d;
                    fr_coord got = fr_plan_coord(&plan, rank);
                    CHECK(memcmp(&got, &expected, sizeof got) == 0);
                    CHECK_INT(fr_plan_rank(&plan, got), rank);
                    rank++;
                }
    CHECK_INT(rank, fr_plan_world(&plan));
}

static void test_orders(void)
{
    for (int i = 0; i < FR_RANK_ORDER_N; i++)
        check_order((fr_rank_order)i);
}

/* Number of a rank within its stage, counted: tp fastest, then cp, dp. */
static int place_of(const fr_plan *plan, fr_coord at)
{
    int place = 0;
    for (int dp = 0; dp < plan->dp; dp++)
        for (int cp = 0; cp < plan->cp; cp++)
            for (int tp = 0; tp < plan->tp; tp++, place++)
                if (tp == at.tp && cp == at.cp && dp == at.dp)
                    return place;
    return -1;
}

/* On the grid of experts, by cutting the stage into blocks. */
typedef struct expert_coord {
    int etp, ep, edp;
} expert_coord;

static expert_coord expert_of(const fr_plan *plan, fr_coord at)
{
    int n_etp = plan->etp > 0 ? plan->etp : plan->tp;
    expert_coord e = {0, 0, 0};
    for (int i = place_of(plan, at); i > 0; i--) {
        if (++e.etp < n_etp)
            continue;
        e.etp = 0;
        if (++e.ep < plan->ep)
            continue;
        e.ep = 0;
        e.edp++;
    }
    return e;
}

static bool is_together_expert(const fr_plan *plan, fr_axis axis, fr_coord x,
                               fr_coord y)
{
    expert_coord a = expert_of(plan, x), b = expert_of(plan, y);
    bool etp = a.etp == b.etp, ep = a.ep == b.ep, edp = a.edp == b.edp;
    return x.pp == y.pp && (axis == FR_AXIS_ETP  ? ep && edp
                            : axis == FR_AXIS_EP ? etp && edp
                                                 : etp && ep);
}

/* Do two ranks share a group of this axis? */
static bool is_together(const fr_plan *plan, fr_axis axis, int64_t a, int64_t b)
{
    fr_coord x = fr_plan_coord(plan, a), y = fr_plan_coord(plan, b);
    bool tp = x.tp == y.tp, cp = x.cp == y.cp;
    bool dp = x.dp == y.dp, pp = x.pp == y.pp;
    int zero_group = plan->zero_group ? plan->zero_group : plan->dp * plan->cp;
    int data_x = x.dp * plan->cp + x.cp, data_y = y.dp * plan->cp + y.cp;
    bool is_end_x = x.pp == 0 || x.pp == plan->pp - 1;
    bool is_end_y = y.pp == 0 || y.pp == plan->pp - 1;
    switch (axis) {
    case FR_AXIS_TP:
        return cp && dp && pp;
    case FR_AXIS_CP:
        return tp && dp && pp;
    case FR_AXIS_DP:
        return tp && pp;
    case FR_AXIS_SHARD:
        return tp && pp && data_x / zero_group == data_y / zero_group;
    case FR_AXIS_REPLICA:
        return tp && pp && data_x % zero_group == data_y % zero_group;
    case FR_AXIS_PP:
        return tp && cp && dp;
    case FR_AXIS_ETP:
    case FR_AXIS_EP:
    case FR_AXIS_EDP:
        return is_together_expert(plan, axis, x, y);
    case FR_AXIS_MODEL:
        return cp && dp;
    case FR_AXIS_EMBED:
        return tp && cp && dp && (a == b || (is_end_x && is_end_y));
    case FR_AXIS_WORLD:
        return true;
    case FR_AXIS_NONE:
    case FR_AXIS_N:
        break;
    }
    return a == b;
}

static void check_groups(const fr_plan *plan, fr_axis axis)
{
    int64_t world = fr_plan_world(plan), ranks[256];
    for (int64_t rank = 0; rank < world; rank++) {
        int64_t position = -1, n_expected = 0;
        int64_t n = fr_plan_group(plan, rank, axis, ranks, &position);
        for (int64_t other = 0; other < world; other++)
            n_expected += is_together(plan, axis, rank, other);
        CHECK_INT(n, n_expected);
        CHECK(position >= 0 && position < n && ranks[position] == rank);
        int64_t others[256], at;
        for (int64_t i = 0; i < n; i++) {
            CHECK(is_together(plan, axis, rank, ranks[i]));
            /* Every member sees the same list. */
            CHECK_INT(fr_plan_group(plan, ranks[i], axis, others, &at), n);
            CHECK_INT(at, i);
            CHECK(memcmp(ranks, others, (size_t)n * sizeof *ranks) == 0);
        }
    }
}

static void test_groups(void)
{
    for (int order = 0; order < FR_RANK_ORDER_N; order++) {
        fr_plan plan = make(3, 2, 4, 3, (fr_rank_order)order);
        plan.ep = 2;
        plan.zero_group = order % 2 ? 4 : 0;
        plan.etp = order % 3;
        for (int axis = 0; axis < FR_AXIS_N; axis++)
            check_groups(&plan, (fr_axis)axis);
    }
}

/* Groups of an axis cut the world into parts of the promised size. */
static void check_partition(const fr_plan *plan, fr_axis axis)
{
    int64_t world = fr_plan_world(plan), ranks[64];
    int n_seen[64] = {0};
    for (int64_t rank = 0; rank < world; rank++) {
        int64_t position = -1;
        int64_t n = fr_plan_group(plan, rank, axis, ranks, &position);
        bool is_middle = axis == FR_AXIS_EMBED && n == 1;
        CHECK(is_middle || n == fr_plan_group_size(plan, axis));
        if (position == 0)
            for (int64_t i = 0; i < n; i++)
                n_seen[ranks[i]]++;
    }
    for (int64_t rank = 0; rank < world; rank++)
        CHECK_INT(n_seen[rank], 1);
}

static void test_partitions(void)
{
    static const int grids[][7] = {
        /* tp cp dp pp ep etp zero_group */
        {1, 1, 8, 1, 8, 1, 4}, {2, 2, 4, 2, 8, 1, 2},  {4, 1, 4, 2, 4, 2, 0},
        {4, 2, 2, 4, 2, 1, 4}, {1, 4, 4, 1, 16, 0, 8}, {8, 1, 2, 4, 4, 4, 2},
        {2, 4, 2, 1, 2, 8, 4},
    };
    for (size_t g = 0; g < sizeof grids / sizeof grids[0]; g++)
        for (int order = 0; order < FR_RANK_ORDER_N; order++) {
            fr_plan plan = make(grids[g][0], grids[g][1], grids[g][2],
                                grids[g][3], (fr_rank_order)order);
            plan.ep = grids[g][4];
            plan.etp = grids[g][5];
            plan.zero_group = grids[g][6];
            for (int axis = 0; axis < FR_AXIS_N; axis++)
                check_partition(&plan, (fr_axis)axis);
        }
}

/* Every group on one node, found by asking every group. */
static void test_local(void)
{
    for (int order = 0; order < FR_RANK_ORDER_N; order++) {
        fr_plan plan = make(2, 2, 4, 2, (fr_rank_order)order);
        plan.ep = 4;
        plan.etp = 1;
        plan.zero_group = 4;
        for (int per_node = 1; per_node <= 32; per_node *= 2) {
            int32_t nodes[32];
            for (int i = 0; i < 32; i++)
                nodes[i] = i / per_node;
            for (int axis = 0; axis < FR_AXIS_N; axis++) {
                bool is_local = true;
                int64_t ranks[32];
                for (int64_t rank = 0; rank < 32; rank++) {
                    int64_t n =
                        fr_plan_group(&plan, rank, (fr_axis)axis, ranks, NULL);
                    for (int64_t i = 0; i < n; i++)
                        is_local =
                            is_local && nodes[ranks[i]] == nodes[ranks[0]];
                }
                CHECK_INT(fr_plan_axis_is_local(&plan, (fr_axis)axis, nodes),
                          is_local);
            }
        }
        CHECK(fr_plan_axis_is_local(&plan, FR_AXIS_WORLD, NULL));
    }
}

/* Positions are coordinates: who sends to peer p of PP finds stage p there. */
static void test_position_is_coordinate(void)
{
    fr_plan plan = make(2, 1, 3, 5, FR_RANK_ORDER_DP_PP_TP);
    int64_t ranks[32], position;
    for (int64_t rank = 0; rank < fr_plan_world(&plan); rank++) {
        fr_coord at = fr_plan_coord(&plan, rank);
        fr_plan_group(&plan, rank, FR_AXIS_PP, ranks, &position);
        CHECK_INT(position, at.pp);
        fr_plan_group(&plan, rank, FR_AXIS_DP, ranks, &position);
        CHECK_INT(position, at.dp); /* cp 1 */
        fr_plan_group(&plan, rank, FR_AXIS_TP, ranks, &position);
        CHECK_INT(position, at.tp);
        fr_plan_group(&plan, rank, FR_AXIS_WORLD, ranks, &position);
        CHECK_INT(position, rank);
        CHECK_INT(fr_plan_group(&plan, rank, FR_AXIS_MODEL, ranks, NULL), 10);
    }
}

static void test_one_stage_has_no_embed_pair(void)
{
    fr_plan plan = make(2, 1, 2, 1, FR_RANK_ORDER_TP_DP_PP);
    int64_t ranks[4], position;
    CHECK_INT(fr_plan_group(&plan, 3, FR_AXIS_EMBED, ranks, &position), 1);
    CHECK_INT(ranks[0], 3);
    CHECK_INT(position, 0);
}

CHECK_MAIN({"orders", test_orders}, {"groups", test_groups},
           {"partitions", test_partitions}, {"local", test_local},
           {"position", test_position_is_coordinate},
           {"embed", test_one_stage_has_no_embed_pair})
