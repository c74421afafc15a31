/*
 * grid.c: ranks <-> coordinates on the axes of the process grid.
 *
 * cp always changes right after tp (Megatron's order tp-cp-dp-pp): both talk
 * within every layer, so they want to be neighbours.
 */
#include "plan/plan.h"

#include <assert.h>

enum { TP, CP, DP, PP, N_AXES };

/* Fastest first. */
static const uint8_t orders[FR_RANK_ORDER_N][N_AXES] = {
    [FR_RANK_ORDER_TP_DP_PP] = {TP, CP, DP, PP},
    [FR_RANK_ORDER_TP_PP_DP] = {TP, CP, PP, DP},
    [FR_RANK_ORDER_DP_TP_PP] = {DP, TP, CP, PP},
    [FR_RANK_ORDER_DP_PP_TP] = {DP, PP, TP, CP},
    [FR_RANK_ORDER_PP_TP_DP] = {PP, TP, CP, DP},
    [FR_RANK_ORDER_PP_DP_TP] = {PP, DP, TP, CP},
};

fr_coord fr_plan_coord(const fr_plan *plan, int64_t rank)
{
    const int64_t n[N_AXES] = {plan->tp, plan->cp, plan->dp, plan->pp};
    int32_t at[N_AXES] = {0};
    assert(rank >= 0 && rank < fr_plan_world(plan));
    for (int i = 0; i < N_AXES; i++) {
        int axis = orders[plan->rank_order][i];
        at[axis] = (int32_t)(rank % n[axis]);
        rank /= n[axis];
    }
    return (fr_coord){.tp = at[TP], .cp = at[CP], .dp = at[DP], .pp = at[PP]};
}

int64_t fr_plan_rank(const fr_plan *plan, fr_coord coord)
{
    const int64_t n[N_AXES] = {plan->tp, plan->cp, plan->dp, plan->pp};
    const int64_t at[N_AXES] = {coord.tp, coord.cp, coord.dp, coord.pp};
    int64_t rank = 0;
    for (int i = N_AXES - 1; i >= 0; i--) {
        int axis = orders[plan->rank_order][i];
        rank = rank * n[axis] + at[axis];
    }
    return rank;
}

/* The ranks of a box of coordinates, pp slowest, then dp, cp, tp. */
typedef struct box {
    fr_coord first, n;
} box;

static int64_t list_box(const fr_plan *plan, const box *b, int64_t self,
                        int64_t *ranks, int64_t *position)
{
    int64_t count = 0;
    int64_t n_total = (int64_t)b->n.pp * b->n.dp * b->n.cp * b->n.tp;
    for (int64_t i = 0; i < n_total; i++) {
        int64_t rest = i;
        fr_coord c = b->first;
        c.tp += (int32_t)(rest % b->n.tp);
        rest /= b->n.tp;
        c.cp += (int32_t)(rest % b->n.cp);
        rest /= b->n.cp;
        c.dp += (int32_t)(rest % b->n.dp);
        c.pp += (int32_t)(rest / b->n.dp);
        int64_t rank = fr_plan_rank(plan, c);
        if (rank == self && position)
            *position = count;
        ranks[count++] = rank;
    }
    return count;
}

static int64_t embed_group(const fr_plan *plan, int64_t rank, fr_coord at,
                           int64_t *ranks, int64_t *position)
{
    bool is_last = at.pp == plan->pp - 1;
    if (plan->pp == 1 || (at.pp != 0 && !is_last)) {
        ranks[0] = rank;
        if (position)
            *position = 0;
        return 1;
    }
    at.pp = 0;
    ranks[0] = fr_plan_rank(plan, at);
    at.pp = plan->pp - 1;
    ranks[1] = fr_plan_rank(plan, at);
    if (position)
        *position = is_last ? 1 : 0;
    return 2;
}

static int64_t world_group(const fr_plan *plan, int64_t rank, int64_t *ranks,
                           int64_t *position)
{
    int64_t n = fr_plan_world(plan);
    for (int64_t i = 0; i < n; i++)
        ranks[i] = i;
    if (position)
        *position = rank;
    return n;
}

int64_t fr_plan_group(const fr_plan *plan, int64_t rank, fr_axis axis,
                      int64_t *ranks, int64_t *position)
{
    fr_coord at = fr_plan_coord(plan, rank);
    box b = {.first = at, .n = {1, 1, 1, 1}};
    switch (axis) {
    case FR_AXIS_TP:
        b.first.tp = 0;
        b.n.tp = plan->tp;
        break;
    case FR_AXIS_CP:
        b.first.cp = 0;
        b.n.cp = plan->cp;
        break;
    case FR_AXIS_EP: /* ep neighbours among the data-parallel ranks */
        b.first.dp = at.dp - at.dp % plan->ep;
        b.n.dp = plan->ep;
        break;
    case FR_AXIS_DP:
        b.first.dp = 0;
        b.n.dp = plan->dp;
        break;
    case FR_AXIS_PP:
        b.first.pp = 0;
        b.n.pp = plan->pp;
        break;
    case FR_AXIS_MODEL:
        b.first.tp = b.first.pp = 0;
        b.n.tp = plan->tp;
        b.n.pp = plan->pp;
        break;
    case FR_AXIS_WORLD:
        return world_group(plan, rank, ranks, position);
    case FR_AXIS_EMBED:
        return embed_group(plan, rank, at, ranks, position);
    case FR_AXIS_SHARD:
    case FR_AXIS_REPLICA:
    case FR_AXIS_ETP:
    case FR_AXIS_EDP:
    case FR_AXIS_NONE:
    case FR_AXIS_N:
        break;
    }
    return list_box(plan, &b, rank, ranks, position);
}
