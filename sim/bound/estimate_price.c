/* estimate_price.c: prices of instructions, as a replay asks for them. */
#include "sim/bound/estimate_state.h"

#include "core/base/hash.h"
#include "cost_models/gpu/gpu_price.h"
#include "plan/codec/optimizer.h"
#include "sim/replay/jitter.h"
#include "sim/replay/replay_cost.h"

#include <math.h>
#include <string.h>

/* ---- maps --------------------------------------------------------------- */

static size_t slot_of(const est_map *map, uint64_t key)
{
    size_t at = key & (map->room - 1);
    while (map->keys[at] != 0 && map->keys[at] != key)
        at = (at + 1) & (map->room - 1);
    return at;
}

const int64_t *est_map_find(const est_map *map, uint64_t key)
{
    if (map->room == 0)
        return NULL;
    size_t at = slot_of(map, key | 1);
    return map->keys[at] != 0 ? &map->values[at] : NULL;
}

static fr_status grow(est_map *map, fr_err *err)
{
    est_map fresh = {.room = map->room > 0 ? 2 * map->room : 256};
    fresh.keys = calloc(fresh.room, sizeof *fresh.keys);
    fresh.values = malloc(fresh.room * sizeof *fresh.values);
    if (fresh.keys == NULL || fresh.values == NULL) {
        est_map_release(&fresh);
        return fr_fail_no_memory(err);
    }
    for (size_t i = 0; i < map->room; i++)
        if (map->keys[i] != 0) {
            size_t at = slot_of(&fresh, map->keys[i]);
            fresh.keys[at] = map->keys[i];
            fresh.values[at] = map->values[i];
        }
    fresh.n = map->n;
    est_map_release(map);
    *map = fresh;
    return FR_OK;
}

fr_status est_map_add(est_map *map, uint64_t key, int64_t value, fr_err *err)
{
    if (2 * (map->n + 1) > map->room)
        FR_TRY(grow(map, err));
    size_t at = slot_of(map, key | 1);
    map->keys[at] = key | 1;
    map->values[at] = value;
    map->n++;
    return FR_OK;
}

void est_map_release(est_map *map)
{
    free(map->keys);
    free(map->values);
    *map = (est_map){0};
}

/* ---- prices ------------------------------------------------------------- */

/* Of one core alone, in the rounding of a replay. */
static int64_t work_ps(const fr_cost *cost)
{
    if (fr_ps_of(cost->work_s) == 0)
        return 0;
    fr_demand demand = fr_demand_of(cost, false, false, NULL);
    return fr_maxmin_duration_ps(demand.work, demand.cap);
}

/* Shares of links are whole parts of FR_MAXMIN_ONE in a replay. */
static const double rounding = 1e-6;

static int64_t core_ps(const fr_cost *cost)
{
    return (int64_t)((double)work_ps(cost) * cost->cores * (1 - rounding));
}

/*
 * How much longer the work takes because the members' own traffic fills their
 * ports or their node's NICs, at least.
 */
static double slowdown_of(const fr_cost *cost, const fr_comm_scope *scope,
                          const est_place *place)
{
    double slowdown = 1;
    if (!(cost->work_s > 0))
        return slowdown;
    if (place->port_Bps > 0)
        slowdown =
            fmax(slowdown, cost->port_bytes / cost->work_s / place->port_Bps);
    if (scope->n_nodes > 1 && place->nic_Bps > 0)
        slowdown =
            fmax(slowdown, cost->link_bytes / cost->work_s *
                               (double)scope->ranks_on_node / place->nic_Bps);
    return fmax(1, slowdown * (1 - rounding));
}

static fr_status price_scope(fr_estimator *e, const fr_instr *instr,
                             fr_lane lane, const fr_comm_scope *scope,
                             const est_place *place, est_cost *out, fr_err *err)
{
    fr_cost cost = {0};
    FR_TRY(fr_cost_communicate(e->costs, instr, scope, lane != FR_LANE_COMPUTE,
                               &cost, err));
    double slowdown = slowdown_of(&cost, scope, place);
    int64_t ps = work_ps(&cost);
    if (slowdown > 1)
        ps = (int64_t)((double)ps * slowdown);
    *out = (est_cost){.ps = fr_ps_of(cost.latency_s) + ps,
                      .core_ps = core_ps(&cost)};
    return FR_OK;
}

fr_status est_price(fr_estimator *e, const fr_plan *plan, const fr_instr *instr,
                    fr_lane lane, const est_place *place, est_cost *out,
                    fr_err *err)
{
    fr_cost cost = {.n_kernels = 1};
    if (fr_instr_communicates(instr)) {
        FR_TRY(price_scope(e, instr, lane, &place->scopes[instr->axis], place,
                           out, err));
    } else {
        FR_TRY(fr_cost_compute_on(e->costs, instr, 1, place->node, &cost, err));
        cost.work_s /= place->compute_frac;
        *out = (est_cost){.ps = fr_ps_of(cost.latency_s) + work_ps(&cost),
                          .core_ps = core_ps(&cost)};
    }
    out->host_ps =
        fr_ps_of(fr_gpu_prices_issue_s(fr_cost_gpu_prices(e->costs), plan,
                                       instr, cost.n_kernels, place->node));
    return FR_OK;
}

static uint64_t key_of(const uint64_t *words, size_t n)
{
    return fr_hash_bytes(words, n * sizeof *words, 1);
}

/* The instruction as lowering makes it. */
static fr_instr collective_of(const fr_plan *plan, const fr_comm_scope *scope,
                              const fr_move *move)
{
    fr_instr instr = {.op = (uint8_t)move->op};
    fr_move_tell(move, plan, scope->n_group, scope->n_nodes == 1, &instr);
    return instr;
}

static uint64_t move_key(const fr_plan *plan, const est_place *place,
                         const fr_comm_scope *scope, const fr_move *move,
                         uint64_t what)
{
    const uint64_t words[] = {
        move->n,
        (uint64_t)move->op | (uint64_t)move->axis << 8 |
            (uint64_t)move->dtype << 16 | (uint64_t)plan->collective << 24 |
            (uint64_t)move->lane << 32 | (uint64_t)plan->protocol << 40 |
            (uint64_t)plan->n_channels << 48,
        (uint64_t)scope->n_group << 32 | (uint64_t)scope->n_nodes,
        (uint64_t)scope->ranks_on_node << 32 | scope->node_types,
        place->net_key,
        what};
    return key_of(words, sizeof words / sizeof words[0]);
}

fr_status est_collective(fr_estimator *e, const fr_plan *plan,
                         const est_place *place, const fr_move *move,
                         int64_t *out_ps, fr_err *err)
{
    const fr_comm_scope *scope = &place->scopes[move->axis];
    *out_ps = 0;
    if (move->n == 0 || scope->n_group <= 1)
        return FR_OK;
    uint64_t key = move_key(plan, place, scope, move, 0);
    const int64_t *known = est_map_find(&e->prices, key);
    if (known != NULL) {
        *out_ps = *known;
        return FR_OK;
    }
    fr_instr instr = collective_of(plan, scope, move);
    est_cost cost;
    FR_TRY(price_scope(e, &instr, move->lane, scope, place, &cost, err));
    *out_ps = cost.ps;
    return est_map_add(&e->prices, key, *out_ps, err);
}

fr_status est_core(fr_estimator *e, const fr_plan *plan, const est_place *place,
                   const fr_move *move, int64_t *out_ps, fr_err *err)
{
    const fr_comm_scope *scope = &place->scopes[move->axis];
    *out_ps = 0;
    if (move->n == 0 || scope->n_group <= 1)
        return FR_OK;
    uint64_t key = move_key(plan, place, scope, move, UINT64_MAX);
    const int64_t *known = est_map_find(&e->prices, key);
    if (known != NULL) {
        *out_ps = *known;
        return FR_OK;
    }
    fr_instr instr = collective_of(plan, scope, move);
    est_cost cost;
    FR_TRY(price_scope(e, &instr, move->lane, scope, place, &cost, err));
    *out_ps = cost.core_ps;
    return est_map_add(&e->prices, key, *out_ps, err);
}

fr_status est_wire(fr_estimator *e, const fr_plan *plan, const est_place *place,
                   const fr_move *move, int64_t *out_ps, fr_err *err)
{
    const fr_comm_scope *scope = &place->scopes[move->axis];
    fr_cost cost = {0};
    *out_ps = 0;
    if (move->n == 0 || scope->n_nodes <= 1 || !(place->nic_Bps > 0))
        return FR_OK;
    uint64_t key =
        move_key(plan, place, scope, move, 1 + (uint64_t)place->n_beside);
    const int64_t *known = est_map_find(&e->prices, key);
    if (known != NULL) {
        *out_ps = *known;
        return FR_OK;
    }
    fr_instr instr = collective_of(plan, scope, move);
    FR_TRY(fr_cost_communicate(e->costs, &instr, scope,
                               move->lane != FR_LANE_COMPUTE, &cost, err));
    *out_ps = fr_ps_of(cost.link_bytes * (double)place->n_beside /
                       place->nic_Bps * (1 - rounding));
    return est_map_add(&e->prices, key, *out_ps, err);
}

fr_status est_send(fr_estimator *e, const fr_comm_scope *hop,
                   const est_place *place, fr_dtype dtype, uint64_t n,
                   int64_t *out_ps, fr_err *err)
{
    const uint64_t words[] = {
        n, (uint64_t)hop->n_nodes << 40 | (uint64_t)hop->node_types,
        (uint64_t)dtype << 8 | (uint64_t)FR_OP_SEND, place->net_key};
    uint64_t key = key_of(words, sizeof words / sizeof words[0]);
    const int64_t *known = est_map_find(&e->prices, key);
    if (known != NULL) {
        *out_ps = *known;
        return FR_OK;
    }
    fr_instr send = {.op = FR_OP_SEND,
                     .axis = FR_AXIS_PP,
                     .dtype = (uint8_t)dtype,
                     .comm = {.n = (int64_t)n}};
    est_cost cost;
    FR_TRY(price_scope(e, &send, FR_LANE_PP_SEND, hop, place, &cost, err));
    *out_ps = cost.ps;
    return est_map_add(&e->prices, key, *out_ps, err);
}

fr_status est_over_range(fr_estimator *e, const fr_plan *plan,
                         const est_place *place, const fr_instr *instr,
                         uint64_t n, int64_t *out_ps, fr_err *err)
{
    uint64_t frac;
    *out_ps = 0;
    if (n == 0)
        return FR_OK;
    memcpy(&frac, &place->compute_frac, sizeof frac);
    const uint64_t words[] = {
        n,
        (uint64_t)instr->op << 56 | (uint64_t)instr->dtype << 48 |
            (uint64_t)instr->grad_dtype << 40 | (uint64_t)instr->flags << 16 |
            (uint64_t)fr_plan_has_master(plan),
        place->type_bit, frac, (uint64_t)instr->range.norms_bytes};
    uint64_t key = key_of(words, sizeof words / sizeof words[0]);
    const int64_t *known = est_map_find(&e->prices, key);
    if (known != NULL) {
        *out_ps = *known;
        return FR_OK;
    }
    fr_instr one = *instr;
    one.range.n = (int64_t)n;
    if (one.op == FR_OP_OPT_STEP || one.op == FR_OP_OPT_NORMS)
        one.range.opt_bytes = (int64_t)fr_optimizer_resident_bytes(
            e->job->optimizer, n, fr_plan_has_master(plan));
    est_cost cost;
    FR_TRY(est_price(e, plan, &one, FR_LANE_COMPUTE, place, &cost, err));
    *out_ps = cost.ps;
    return est_map_add(&e->prices, key, *out_ps, err);
}

fr_status est_jitter(fr_estimator *e, int64_t n, double *out, fr_err *err)
{
    const uint64_t words[] = {(uint64_t)n, 9};
    const uint64_t key = key_of(words, sizeof words / sizeof words[0]);
    const double sigma = e->cluster->jitter_compute_frac;
    *out = 0;
    if (n <= 1 || !(sigma > 0))
        return FR_OK;
    const int64_t *known = est_map_find(&e->prices, key);
    int64_t bits;
    if (known != NULL) {
        memcpy(out, known, sizeof *out);
        return FR_OK;
    }
    *out = sigma * fr_largest_of(n).mean;
    memcpy(&bits, out, sizeof bits);
    return est_map_add(&e->prices, key, bits, err);
}
