/* estimate_price.c: prices of instructions, as a replay asks for them. */
#include "cost_models/gpu/gpu_price.h"
#include "plan/codec/optimizer.h"
#include "sim/bound/estimate_state.h"
#include "sim/engine/virtual_time.h"
#include "sim/replay/jitter.h"
#include "sim/replay/replay_cost.h"

#include <math.h>
#include <string.h>

/* ---- prices ------------------------------------------------------------- */

/* Returns the work of one core alone, rounded as in a replay. */
static int64_t work_ps(const fr_cost *cost)
{
    if (fr_ps_of(cost->work_s) == 0)
        return 0;
    fr_demand demand = fr_demand_of(cost, false, false, NULL);
    return fr_ps_of_work(demand.work, demand.cap);
}

/* Shares of links are whole parts of FR_MAXMIN_ONE in a replay. */
static const double rounding = 1e-6;

static int64_t core_ps(const fr_cost *cost)
{
    return fr_ps_cut((double)work_ps(cost) * cost->cores * (1 - rounding));
}

/*
 * Returns the least factor by which the work takes longer because the members'
 * own traffic fills their ports or their node's NICs.
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
        ps = fr_ps_cut((double)ps * slowdown);
    *out = (est_cost){.ps = fr_ps_add(fr_ps_of(cost.latency_s), ps),
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
        FR_TRY(fr_cost_compute(e->costs, instr, 1, place->node, &cost, err));
        cost.work_s /= place->compute_frac;
        *out = (est_cost){
            .ps = fr_ps_add(fr_ps_of(cost.latency_s), work_ps(&cost)),
            .core_ps = core_ps(&cost)};
    }
    out->host_ps =
        fr_ps_of(fr_gpu_prices_issue_s(fr_cost_gpu_prices(e->costs), plan,
                                       instr, cost.n_kernels, place->node));
    return FR_OK;
}

/* ---- prices that are kept ----------------------------------------------- */

typedef enum price_kind {
    PRICE_TIME,
    PRICE_CORES,
    PRICE_WIRE,
    PRICE_SEND,
    PRICE_RANGE,
    PRICE_JITTER
} price_kind;

/* The values that any of these costs depends on; unused ones are 0.  It has no
 * padding, because it is a key.  It is short, because searches look some up for
 * every plan. */
typedef struct price_key {
    uint64_t n;
    union {
        struct { /* transfers; ranks are at most 2^20 */
            int32_t n_group, n_nodes, ranks_on_node, n_beside;
        };
        struct { /* ranges */
            double compute_frac;
            int64_t norms_bytes;
        };
    };
    uint32_t net_id, node_types;
    int32_t n_channels;
    uint16_t flags;
    uint8_t kind, op, axis, dtype, grad_dtype, lane, collective, protocol;
    bool has_master, unused;
} price_key;
_Static_assert(sizeof(price_key) == 48, "no padding");

static const int64_t *known_price(const fr_estimator *e, const price_key *key)
{
    return fr_memo_find(&e->prices, key, sizeof *key);
}

static fr_status keep_price(fr_estimator *e, const price_key *key, int64_t ps,
                            fr_err *err)
{
    return fr_memo_add(&e->prices, key, sizeof *key, &ps) != NULL
               ? FR_OK
               : fr_fail_no_memory(err);
}

/* The instruction as lowering makes it. */
static fr_instr collective_of(const fr_plan *plan, const fr_comm_scope *scope,
                              const fr_move *move)
{
    fr_instr instr = {.op = (uint8_t)move->op};
    fr_move_tell(move, plan, scope->n_group, scope->n_nodes == 1, &instr);
    return instr;
}

static price_key scope_key(const fr_comm_scope *scope, const est_place *place,
                           price_kind kind)
{
    return (price_key){.kind = (uint8_t)kind,
                       .n_group = (int32_t)scope->n_group,
                       .n_nodes = (int32_t)scope->n_nodes,
                       .ranks_on_node = (int32_t)scope->ranks_on_node,
                       .node_types = scope->node_types,
                       .net_id = place->net_id};
}

static price_key move_key(const fr_plan *plan, const est_place *place,
                          const fr_move *move, price_kind kind)
{
    const fr_comm_scope *scope = &place->scopes[move->axis];
    price_key key = scope_key(scope, place, kind);
    key.n = move->n;
    key.op = (uint8_t)move->op;
    key.axis = (uint8_t)move->axis;
    key.dtype = (uint8_t)move->dtype;
    key.lane = (uint8_t)move->lane;
    key.collective = (uint8_t)plan->collective;
    key.protocol = (uint8_t)plan->protocol;
    key.n_channels = plan->n_channels;
    if (kind == PRICE_WIRE)
        key.n_beside = (int32_t)place->n_beside;
    return key;
}

/* Time and processors of a collective, both of which are kept. */
static fr_status find_move(fr_estimator *e, const fr_plan *plan,
                           const est_place *place, const fr_move *move,
                           price_kind kind, int64_t *out_ps, fr_err *err)
{
    const fr_comm_scope *scope = &place->scopes[move->axis];
    *out_ps = 0;
    if (move->n == 0 || scope->n_group <= 1)
        return FR_OK;
    const price_key key = move_key(plan, place, move, kind);
    const int64_t *known = known_price(e, &key);
    if (known != NULL) {
        *out_ps = *known;
        return FR_OK;
    }
    fr_instr instr = collective_of(plan, scope, move);
    est_cost cost;
    FR_TRY(price_scope(e, &instr, move->lane, scope, place, &cost, err));
    *out_ps = kind == PRICE_CORES ? cost.core_ps : cost.ps;
    return keep_price(e, &key, *out_ps, err);
}

fr_status est_collective(fr_estimator *e, const fr_plan *plan,
                         const est_place *place, const fr_move *move,
                         int64_t *out_ps, fr_err *err)
{
    return find_move(e, plan, place, move, PRICE_TIME, out_ps, err);
}

fr_status est_core(fr_estimator *e, const fr_plan *plan, const est_place *place,
                   const fr_move *move, int64_t *out_ps, fr_err *err)
{
    return find_move(e, plan, place, move, PRICE_CORES, out_ps, err);
}

fr_status est_wire(fr_estimator *e, const fr_plan *plan, const est_place *place,
                   const fr_move *move, int64_t *out_ps, fr_err *err)
{
    const fr_comm_scope *scope = &place->scopes[move->axis];
    fr_cost cost = {0};
    *out_ps = 0;
    if (move->n == 0 || scope->n_nodes <= 1 || !(place->nic_Bps > 0))
        return FR_OK;
    const price_key key = move_key(plan, place, move, PRICE_WIRE);
    const int64_t *known = known_price(e, &key);
    if (known != NULL) {
        *out_ps = *known;
        return FR_OK;
    }
    fr_instr instr = collective_of(plan, scope, move);
    FR_TRY(fr_cost_communicate(e->costs, &instr, scope,
                               move->lane != FR_LANE_COMPUTE, &cost, err));
    *out_ps = fr_ps_of(cost.link_bytes * (double)place->n_beside /
                       place->nic_Bps * (1 - rounding));
    return keep_price(e, &key, *out_ps, err);
}

fr_status est_send(fr_estimator *e, const fr_comm_scope *hop,
                   const est_place *place, fr_dtype dtype, uint64_t n,
                   int64_t *out_ps, fr_err *err)
{
    price_key key = scope_key(hop, place, PRICE_SEND);
    key.n = n;
    key.dtype = (uint8_t)dtype;
    const int64_t *known = known_price(e, &key);
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
    return keep_price(e, &key, *out_ps, err);
}

fr_status est_over_range(fr_estimator *e, const fr_plan *plan,
                         const est_place *place, const fr_instr *instr,
                         uint64_t n, int64_t *out_ps, fr_err *err)
{
    *out_ps = 0;
    if (n == 0)
        return FR_OK;
    const price_key key = {.kind = PRICE_RANGE,
                           .n = n,
                           .op = instr->op,
                           .dtype = instr->dtype,
                           .grad_dtype = instr->grad_dtype,
                           .flags = instr->flags,
                           .has_master = fr_plan_has_master(plan),
                           .node_types = place->type_bit,
                           .compute_frac = place->compute_frac,
                           .norms_bytes = instr->range.norms_bytes};
    const int64_t *known = known_price(e, &key);
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
    return keep_price(e, &key, *out_ps, err);
}

fr_status est_jitter(fr_estimator *e, int64_t n, double *out, fr_err *err)
{
    const price_key key = {.kind = PRICE_JITTER, .n = (uint64_t)n};
    const double sigma = e->cluster->jitter_compute_frac;
    *out = 0;
    if (n <= 1 || !(sigma > 0))
        return FR_OK;
    const int64_t *known = known_price(e, &key);
    int64_t bits;
    if (known != NULL) {
        memcpy(out, known, sizeof *out);
        return FR_OK;
    }
    *out = sigma * fr_largest_of(n).mean;
    memcpy(&bits, out, sizeof bits);
    return keep_price(e, &key, bits, err);
}
