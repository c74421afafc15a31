/*
 * grid.c: ranks <-> coordinates on the axes of the process grid.
 *
 * cp always changes right after tp (Megatron's order tp-cp-dp-pp): both talk
 * within every layer, so they want to be neighbours.
 */
#include "plan/decide/grid.h"

#include "plan/decide/plan.h"

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

/*
 * Every axis but PP, EMBED, MODEL and WORLD stays within a stage, and its
 * groups are evenly spaced in the stage's order tp, cp, dp (tp fastest):
 * place = tp + n_tp (cp + n_cp dp).
 */
typedef struct line {
    int64_t first, step, n;
} line;

static int64_t stage_size(const fr_plan *plan)
{
    return (int64_t)plan->tp * plan->cp * plan->dp;
}

static int64_t rank_at(const fr_plan *plan, int64_t place, int32_t pp)
{
    int64_t rest = place / plan->tp;
    return fr_plan_rank(plan, (fr_coord){.tp = (int32_t)(place % plan->tp),
                                         .cp = (int32_t)(rest % plan->cp),
                                         .dp = (int32_t)(rest / plan->cp),
                                         .pp = pp});
}

/* The line of `axis` through a place; what is no line has one member. */
static line line_of(const fr_plan *plan, fr_axis axis, int64_t place)
{
    const int64_t tp = plan->tp, n = fr_plan_group_size(plan, axis);
    const int64_t etp = fr_plan_group_size(plan, FR_AXIS_ETP);
    int64_t step;
    switch (axis) {
    case FR_AXIS_TP:
    case FR_AXIS_ETP:
        step = 1;
        break;
    case FR_AXIS_CP:
    case FR_AXIS_DP:
    case FR_AXIS_SHARD:
        step = tp;
        break;
    case FR_AXIS_REPLICA:
        step = tp * fr_plan_group_size(plan, FR_AXIS_SHARD);
        break;
    case FR_AXIS_EP:
        step = etp;
        break;
    case FR_AXIS_EDP:
        step = etp * plan->ep;
        break;
    default:
        return (line){place, 1, 1};
    }
    return (line){place - place / step % n * step, step, n};
}

int64_t fr_plan_group_size(const fr_plan *plan, fr_axis axis)
{
    const int64_t n_data = (int64_t)plan->dp * plan->cp;
    const int64_t n_shard = plan->zero_group > 0 ? plan->zero_group : n_data;
    const int64_t etp = plan->etp > 0 ? plan->etp : plan->tp;
    switch (axis) {
    case FR_AXIS_TP:
        return plan->tp;
    case FR_AXIS_CP:
        return plan->cp;
    case FR_AXIS_EP:
        return plan->ep;
    case FR_AXIS_DP:
        return n_data;
    case FR_AXIS_PP:
        return plan->pp;
    case FR_AXIS_EMBED:
        return plan->pp > 1 ? 2 : 1;
    case FR_AXIS_MODEL:
        return (int64_t)plan->tp * plan->pp;
    case FR_AXIS_WORLD:
        return fr_plan_world(plan);
    case FR_AXIS_SHARD:
        return n_shard;
    case FR_AXIS_REPLICA:
        return n_data / n_shard;
    case FR_AXIS_ETP:
        return etp;
    case FR_AXIS_EDP:
        return stage_size(plan) / (etp * plan->ep);
    case FR_AXIS_NONE:
    case FR_AXIS_N:
        break;
    }
    return 1;
}

/* Places in the mixed radix of tp, cp, dp, so that a step is an addition. */
static int64_t list_line(const fr_plan *plan, const line *l, fr_coord at,
                         int64_t *ranks, int64_t *position)
{
    const int64_t tp = plan->tp, cp = plan->cp;
    const int64_t origin = rank_at(plan, 0, at.pp);
    const int64_t by_tp = tp > 1 ? rank_at(plan, 1, at.pp) - origin : 0;
    const int64_t by_cp = cp > 1 ? rank_at(plan, tp, at.pp) - origin : 0;
    const int64_t by_dp =
        plan->dp > 1 ? rank_at(plan, tp * cp, at.pp) - origin : 0;
    int64_t self = at.tp + tp * (at.cp + cp * at.dp);
    int64_t i_tp = l->first % tp, i_cp = l->first / tp % cp;
    int64_t i_dp = l->first / tp / cp;
    for (int64_t i = 0; i < l->n; i++) {
        ranks[i] = origin + i_tp * by_tp + i_cp * by_cp + i_dp * by_dp;
        i_tp += l->step;
        if (i_tp >= tp) {
            i_cp += i_tp / tp;
            i_tp %= tp;
        }
        if (i_cp >= cp) {
            i_dp += i_cp / cp;
            i_cp %= cp;
        }
    }
    if (position != NULL)
        *position = (self - l->first) / l->step;
    return l->n;
}

/* All stages, and all of tp where `is_tp_varied`; tp fastest. */
static int64_t model_group(const fr_plan *plan, fr_coord at, bool is_tp_varied,
                           int64_t *ranks, int64_t *position)
{
    const int32_t n_tp = is_tp_varied ? plan->tp : 1;
    int64_t count = 0;
    fr_coord c = at;
    for (c.pp = 0; c.pp < plan->pp; c.pp++) {
        for (int32_t tp = 0; tp < n_tp; tp++) {
            c.tp = is_tp_varied ? tp : at.tp;
            if (position != NULL && c.pp == at.pp && c.tp == at.tp)
                *position = count;
            ranks[count++] = fr_plan_rank(plan, c);
        }
    }
    return count;
}

static int64_t embed_group(const fr_plan *plan, int64_t rank, fr_coord at,
                           int64_t *ranks, int64_t *position)
{
    bool is_last = at.pp == plan->pp - 1;
    if (plan->pp == 1 || (at.pp != 0 && !is_last)) {
        ranks[0] = rank;
        if (position != NULL)
            *position = 0;
        return 1;
    }
    at.pp = 0;
    ranks[0] = fr_plan_rank(plan, at);
    at.pp = plan->pp - 1;
    ranks[1] = fr_plan_rank(plan, at);
    if (position != NULL)
        *position = is_last ? 1 : 0;
    return 2;
}

static int64_t world_group(const fr_plan *plan, int64_t rank, int64_t *ranks,
                           int64_t *position)
{
    int64_t n = fr_plan_world(plan);
    for (int64_t i = 0; i < n; i++)
        ranks[i] = i;
    if (position != NULL)
        *position = rank;
    return n;
}

int64_t fr_plan_group(const fr_plan *plan, int64_t rank, fr_axis axis,
                      int64_t *ranks, int64_t *position)
{
    fr_coord at = fr_plan_coord(plan, rank);
    line l;
    switch (axis) {
    case FR_AXIS_PP:
        return model_group(plan, at, false, ranks, position);
    case FR_AXIS_MODEL:
        return model_group(plan, at, true, ranks, position);
    case FR_AXIS_WORLD:
        return world_group(plan, rank, ranks, position);
    case FR_AXIS_EMBED:
        return embed_group(plan, rank, at, ranks, position);
    default:
        l = line_of(plan, axis,
                    at.tp + plan->tp * (at.cp + (int64_t)plan->cp * at.dp));
        return list_line(plan, &l, at, ranks, position);
    }
}

/* Do the ranks of a group over stages share a node?  From tp 0 of stage 0. */
static bool is_column_local(const fr_plan *plan, fr_axis axis, int64_t place,
                            const int32_t *node_of_rank)
{
    int64_t first = axis == FR_AXIS_MODEL ? place - place % plan->tp : place;
    int32_t node = node_of_rank[rank_at(plan, first, 0)];
    int32_t pp = axis == FR_AXIS_EMBED ? plan->pp - 1 : 0;
    for (; pp < plan->pp; pp++)
        if (node_of_rank[rank_at(plan, place, pp)] != node)
            return false;
    return true;
}

/* In each stage, does the rank at a place share a node with the first of its
 * group? */
static bool is_line_local(const fr_plan *plan, fr_axis axis, int64_t place,
                          int64_t stride, const int32_t *node_of_rank)
{
    const line l = line_of(plan, axis, place);
    if (l.first == place)
        return true;
    int64_t rank = rank_at(plan, place, 0);
    int64_t first = rank_at(plan, l.first, 0);
    for (int32_t pp = 0; pp < plan->pp; pp++)
        if (node_of_rank[rank + pp * stride] !=
            node_of_rank[first + pp * stride])
            return false;
    return true;
}

bool fr_plan_axis_is_local(const fr_plan *plan, fr_axis axis,
                           const int32_t *node_of_rank)
{
    const int64_t n_places = stage_size(plan), world = fr_plan_world(plan);
    if (node_of_rank == NULL || fr_plan_group_size(plan, axis) == 1)
        return true;
    if (axis == FR_AXIS_WORLD) {
        for (int64_t rank = 1; rank < world; rank++)
            if (node_of_rank[rank] != node_of_rank[0])
                return false;
        return true;
    }
    bool is_column =
        axis == FR_AXIS_PP || axis == FR_AXIS_MODEL || axis == FR_AXIS_EMBED;
    int64_t stride = plan->pp > 1 ? rank_at(plan, 0, 1) : 0;
    for (int64_t place = 0; place < n_places; place++)
        if (!(is_column
                  ? is_column_local(plan, axis, place, node_of_rank)
                  : is_line_local(plan, axis, place, stride, node_of_rank)))
            return false;
    return true;
}
