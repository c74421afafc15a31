/* sharding.c: see sharding.h. */
#include "plan/outline/sharding.h"

#include "plan/collective/collective.h"
#include "plan/decide/grid.h"

fr_sharding fr_sharding_of(const fr_plan *plan, bool is_executable)
{
    const int64_t n_replicas =
        plan->zero_group == 0 ? 1 : fr_plan_group_size(plan, FR_AXIS_REPLICA);
    /* Experts that lie otherwise than the layer they are of. */
    const bool has_apart =
        plan->ep > 1 || (plan->etp > 0 && plan->etp != plan->tp);
    fr_sharding s = {
        .weight_dtype = fr_plan_storage_dtype(plan),
        .grad_dtype = plan->grad_dtype,
        .reduce_axis = {FR_AXIS_DP, FR_AXIS_EDP},
        .shard_axis = {n_replicas == 1 ? FR_AXIS_DP : FR_AXIS_SHARD,
                       FR_AXIS_EDP},
        .n_shards = {1, 1},
        .n_replicas = (uint64_t)n_replicas,
        .is_scattered = plan->zero_stage > 0,
        .is_by_unit = plan->zero_stage >= 2,
        .is_gathered = plan->zero_stage == 3,
        .is_gathered_early = (plan->zero_stage == 1 || plan->zero_stage == 2) &&
                             plan->is_gather_overlap && !is_executable,
        .has_master = fr_plan_has_master(plan),
        .is_state_on_host = plan->is_optimizer_offloaded,
        .reduce_lane = plan->is_overlap ? FR_LANE_DP : FR_LANE_COMPUTE,
        .norm_axis =
            plan->zero_stage > 0 || has_apart ? FR_AXIS_WORLD : FR_AXIS_MODEL,
    };
    for (int i = 0; i < 2 && s.is_scattered; i++)
        s.n_shards[i] = (uint64_t)fr_plan_group_size(plan, s.shard_axis[i]);
    s.gather_lane = s.is_gathered || s.is_gathered_early ? FR_LANE_GATHER
                    : is_executable && plan->is_overlap  ? FR_LANE_DP
                                                         : FR_LANE_COMPUTE;
    return s;
}

int fr_sharding_reduce(const fr_sharding *s, bool is_expert, uint64_t n,
                       fr_move out[2])
{
    if (!s->is_scattered) {
        out[0] = (fr_move){s->reduce_lane, FR_OP_ALL_REDUCE,
                           s->reduce_axis[is_expert], s->grad_dtype, n};
        return 1;
    }
    out[0] = (fr_move){s->reduce_lane, FR_OP_REDUCE_SCATTER,
                       s->shard_axis[is_expert], s->grad_dtype, n};
    if (is_expert || s->n_replicas == 1)
        return 1;
    out[1] = (fr_move){s->reduce_lane, FR_OP_ALL_REDUCE, FR_AXIS_REPLICA,
                       s->grad_dtype, n / s->n_shards[0]};
    return 2;
}

bool fr_sharding_scatters_wire(const fr_sharding *s,
                               const fr_compressor *compressor)
{
    return s->is_scattered && compressor->wire == FR_WIRE_REDUCE &&
           compressor->is_elementwise;
}

bool fr_sharding_codes_shards(const fr_sharding *s,
                              const fr_compressor *compressor, bool is_expert)
{
    return s->is_scattered && !is_expert && s->n_replicas > 1 &&
           !fr_sharding_scatters_wire(s, compressor);
}

fr_axis fr_sharding_coded_axis(const fr_sharding *s,
                               const fr_compressor *compressor, bool is_expert)
{
    return fr_sharding_codes_shards(s, compressor, is_expert)
               ? FR_AXIS_REPLICA
               : s->reduce_axis[is_expert];
}

uint64_t fr_sharding_coded(const fr_sharding *s,
                           const fr_compressor *compressor, bool is_expert,
                           uint64_t n)
{
    return fr_sharding_codes_shards(s, compressor, is_expert)
               ? n / s->n_shards[is_expert]
               : n;
}

int fr_sharding_exchange(const fr_sharding *s, const fr_compressor *compressor,
                         bool is_expert, uint64_t n, uint64_t payload_bytes,
                         int64_t n_group, fr_move out[2])
{
    const fr_dtype dtype = compressor->wire_dtype;
    if (fr_sharding_scatters_wire(s, compressor)) {
        const int n_moves = fr_sharding_reduce(s, is_expert, n, out);
        for (int i = 0; i < n_moves; i++)
            out[i].dtype = dtype;
        return n_moves;
    }
    const bool is_gather = compressor->wire == FR_WIRE_GATHER;
    int n_moves = 0;
    /* Not behind the payloads before it: encoding waits for it. */
    if (fr_sharding_codes_shards(s, compressor, is_expert))
        out[n_moves++] = (fr_move){FR_LANE_COMPUTE, FR_OP_REDUCE_SCATTER,
                                   s->shard_axis[is_expert], s->grad_dtype, n};
    out[n_moves++] = (fr_move){
        s->reduce_lane, is_gather ? FR_OP_ALL_GATHER : FR_OP_ALL_REDUCE,
        fr_sharding_coded_axis(s, compressor, is_expert),
        is_gather ? FR_DTYPE_U8 : dtype,
        is_gather ? payload_bytes * (uint64_t)n_group
                  : payload_bytes / fr_dtype_bytes(dtype)};
    return n_moves;
}

fr_move fr_sharding_gather(const fr_sharding *s, bool is_expert, uint64_t n)
{
    return (fr_move){s->gather_lane, FR_OP_ALL_GATHER, s->shard_axis[is_expert],
                     s->weight_dtype, n};
}

fr_move fr_sharding_norm_sum(const fr_sharding *s)
{
    return (fr_move){FR_LANE_COMPUTE, FR_OP_ALL_REDUCE, s->norm_axis,
                     FR_DTYPE_F64, 1};
}

fr_move fr_sharding_loss_sum(void)
{
    return (fr_move){FR_LANE_COMPUTE, FR_OP_ALL_REDUCE, FR_AXIS_WORLD,
                     FR_DTYPE_F64, 1};
}

void fr_move_tell(const fr_move *move, const fr_plan *plan, int64_t n_group,
                  bool is_local, fr_instr *out)
{
    out->axis = (uint8_t)move->axis;
    out->dtype = (uint8_t)move->dtype;
    out->comm.n = (int64_t)move->n;
    out->algorithm = (uint8_t)fr_collective_choose(
        fr_collective_is_of_data(move->axis) ? plan->collective
                                             : FR_COLLECTIVE_AUTO,
        move->op, n_group, move->n * fr_dtype_bytes(move->dtype), is_local);
    if (move->axis == FR_AXIS_DP && out->algorithm == plan->collective)
        out->flags |= FR_INSTR_GIVEN; /* never AUTO here */
    fr_collective_tell(plan, out);
}
