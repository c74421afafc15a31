/*
 * sharding.h: how a plan spreads gradients, parameters and optimizer state over
 * the ranks that hold the same layers (ZeRO: Rajbhandari et al., SC 2020, arXiv
 * 1910.02054), and which collectives that takes.
 *
 * A part of the outline: lowering writes instructions for what stands here, the
 * bounds and the partition of layers count it, and nobody decides it again.
 */
#ifndef FR_PLAN_OUTLINE_SHARDING_H
#define FR_PLAN_OUTLINE_SHARDING_H

#include "plan/codec/compressor.h"
#include "plan/codec/optimizer.h"
#include "plan/decide/plan.h"
#include "plan/op/op.h"

/* Arrays [2]: of what is no expert, and of experts. */
typedef struct fr_sharding {
    fr_dtype weight_dtype, grad_dtype;
    fr_axis reduce_axis[2]; /* ranks whose gradients are summed */
    fr_axis shard_axis[2];  /* ranks that hold one copy together */
    uint64_t n_shards[2];   /* ... with ZeRO; else 1 */
    uint64_t n_replicas;    /* copies of what is no expert */
    bool is_scattered;      /* ZeRO 1 and above: the optimizer's state */
    bool is_by_unit;        /* ZeRO 2, 3: gradients, each unit is a bucket */
    bool is_gathered;       /* ZeRO 3: parameters */
    /* ZeRO 1, 2: the parameters of the step before are gathered in this one. */
    bool is_gathered_early;
    bool has_master, is_state_on_host;
    fr_lane reduce_lane, gather_lane;
    fr_axis norm_axis; /* ranks that hold different gradients, all of them */
} fr_sharding;

/*
 * is_executable: fr_plan_is_executable(), whose steps end with whole
 * parameters.
 */
fr_sharding fr_sharding_of(const fr_plan *plan, bool is_executable);

/* A collective over n elements. */
typedef struct fr_move {
    fr_lane lane;
    fr_op op;
    fr_axis axis;
    fr_dtype dtype;
    uint64_t n;
} fr_move;

/* Lists the moves, in sequence, that sum n gradients, and returns their number.
 * With ZeRO over a part of the ranks the shards of all parts are summed at the
 * end. */
int fr_sharding_reduce(const fr_sharding *sharding, bool is_expert, uint64_t n,
                       fr_move out[2]);
/* Is what ZeRO leaves of a bucket's payload the own shard? */
bool fr_sharding_scatters_wire(const fr_sharding *sharding,
                               const fr_compressor *compressor);
/*
 * ZeRO over a part of the ranks, such as those of a node: gradients are reduced
 * to the part's shards as they are, and only what the parts exchange of them is
 * compressed, shard by shard.  Not where payloads are scattered as above.
 */
bool fr_sharding_codes_shards(const fr_sharding *sharding,
                              const fr_compressor *compressor, bool is_expert);
/* The ranks whose payloads come together, and what each encodes of n. */
fr_axis fr_sharding_coded_axis(const fr_sharding *sharding,
                               const fr_compressor *compressor, bool is_expert);
uint64_t fr_sharding_coded(const fr_sharding *sharding,
                           const fr_compressor *compressor, bool is_expert,
                           uint64_t n);
/* Lists the moves that combine the payload of one stage, of n gradients, over a
 * group of n_group on the axis above: it is summed as the gradients would be,
 * or gathered.  The last move is of the payload; a move before it is of the
 * gradients. */
int fr_sharding_exchange(const fr_sharding *sharding,
                         const fr_compressor *compressor, bool is_expert,
                         uint64_t n, uint64_t payload_bytes, int64_t n_group,
                         fr_move out[2]);
/* Returns the move that makes n parameters whole again. */
fr_move fr_sharding_gather(const fr_sharding *sharding, bool is_expert,
                           uint64_t n);
/* The sums of one number each for which ranks meet at the end of a step: of the
 * squares of gradients, where these are clipped, and of the loss. */
fr_move fr_sharding_norm_sum(const fr_sharding *sharding);
fr_move fr_sharding_loss_sum(void);

/*
 * Bytes of n parameters of which own_n are in the rank's own shards.  With ZeRO
 * 2 and 3 the gradients are those of the own shards, which are there from the
 * first backward on; all else stands from step to step.  The optimizer's state
 * is on the host where is_state_on_host.
 */
typedef struct fr_state_bytes {
    uint64_t parameters, gradients, optimizer;
} fr_state_bytes;

static inline fr_state_bytes fr_sharding_state(const fr_sharding *sharding,
                                               fr_optimizer_kind optimizer,
                                               uint64_t n, uint64_t own_n)
{
    return (fr_state_bytes){
        .parameters = (sharding->is_gathered ? own_n : n) *
                      fr_dtype_bytes(sharding->weight_dtype),
        .gradients = (sharding->is_by_unit ? own_n : n) *
                     fr_dtype_bytes(sharding->grad_dtype),
        .optimizer = fr_optimizer_resident_bytes(optimizer, own_n,
                                                 sharding->has_master)};
}

/* Returns the bytes of state on the device. */
static inline uint64_t fr_sharding_resident(const fr_sharding *sharding,
                                            const fr_state_bytes *state)
{
    return state->parameters + state->gradients +
           (sharding->is_state_on_host ? 0 : state->optimizer);
}

/* Sets what an instruction needs of a move, for n_group ranks; is_local: on one
 * node.  Servers of gradients are not told. */
void fr_move_tell(const fr_move *move, const fr_plan *plan, int64_t n_group,
                  bool is_local, fr_instr *out);

/* Returns the number of elements that a rank has of n. */
static inline uint64_t fr_sharding_part(const fr_sharding *sharding,
                                        bool is_expert, uint64_t n)
{
    return n / sharding->n_shards[is_expert];
}

/* Elements of the own shards. */
static inline uint64_t fr_sharding_own(const fr_sharding *sharding,
                                       uint64_t n_dense, uint64_t n_expert)
{
    return n_dense / sharding->n_shards[0] + n_expert / sharding->n_shards[1];
}

#endif
