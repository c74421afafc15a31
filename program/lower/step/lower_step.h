/*
 * lower_step.h: the steps of a rank's program, from the flat list of its
 * parameters to the update: who adds which calls.
 */
#ifndef FR_PROGRAM_LOWER_STEP_LOWER_STEP_H
#define FR_PROGRAM_LOWER_STEP_LOWER_STEP_H

#include "program/lower/step/lower_rank.h"

/* ---- lower_layout.c, lower_tensors.c: the flat list, buckets ---- */

FR_CHECKED fr_status lower_layout(lower_rank *rank, fr_err *err);
/* false: out of memory */
bool lower_push_layer(lower_rank *rank, const lower_unit *unit);
/* wte, wpe, last norm and head, as far as the unit has them. */
bool lower_push_ends(lower_rank *rank, const lower_unit *unit);

/* ---- lower_pipeline.c: the order of receives ---- */

/* Writes the pipeline with the number of micro-batches of the context, and
 * releases the previous contents of *program. */
FR_CHECKED fr_status lower_pipeline(lower_context *context,
                                    lower_program *program, fr_err *err);
void lower_pipeline_release(lower_program *program);

/* ---- lower_gather.c: ZeRO 2 and 3; what is whole only while it is used.
 * "set" functions only where the sharding is_by_unit ---- */

FR_CHECKED fr_status lower_sets_init(lower_rank *rank, fr_err *err);
FR_CHECKED fr_status lower_uses_init(lower_rank *rank, fr_err *err);
/* Around the calls that use the weights of the next set in `uses`: gathers it
 * and those to come; lets go what is not used soon. */
void lower_before_use(lower_rank *rank);
void lower_after_use(lower_rank *rank, uint32_t gate);
void lower_bind_set(lower_rank *rank, fr_space space, uint32_t i_set,
                    char access);
/* Before a call that adds to the gradients of a set: they are there, zeroed if
 * they are new. */
void lower_open_grads(lower_rank *rank, uint32_t i_set);
/* They are complete: summed over the ranks that have them too, each of which
 * keeps its shard. */
void lower_reduce_set(lower_rank *rank, uint32_t i_set);
/* Own gradients or weights of a bucket, whatever ZeRO has left of them: the
 * operand, and the access of the last call. */
fr_ref lower_own(const lower_rank *rank, const lower_bucket *bucket,
                 fr_space space);
void lower_bind_own(lower_rank *rank, const lower_bucket *bucket,
                    fr_space space, char access);

/* ---- lower_offload.c: what waits in the host's memory ---- */

void lower_offload_layer(lower_rank *rank, const fr_task *task, int32_t i);
void lower_fetch_layer(lower_rank *rank, const fr_task *task, int32_t i);
void lower_offload_grads(lower_rank *rank, uint32_t i_bucket);

/* The parts of a bucket that stay on the host: offsets in space HOST, whose
 * base is the block of the gradients. */
typedef struct lower_host_share {
    uint64_t n;          /* elements */
    uint64_t grad_bytes; /* from the base on */
    uint64_t state, state_bytes;
    uint64_t copy, copy_bytes; /* of the parameters */
} lower_host_share;

lower_host_share lower_host_share_of(const lower_rank *rank,
                                     const lower_bucket *bucket);
void lower_add_host_blocks(lower_rank *rank, lower_bucket *bucket);
/* Binds the last call, the optimizer's step of the bucket. */
void lower_bind_host_step(lower_rank *rank, const lower_bucket *bucket);

/* ---- lower_pass_calls.c: a layer's pass in several calls ---- */

/* A layer of a task, as its calls see it. */
typedef struct lower_layer_at {
    const fr_task *task;
    int32_t i, layer; /* in the chunk, global */
    uint32_t input;   /* block */
} lower_layer_at;

/* The blocks of a pass; FR_BLOCK_NONE: forward has no gradient, recompute no
 * output; no carry: one of the pass's own. */
typedef struct lower_pass_blocks {
    uint32_t saved, gradient, out, carry;
    bool is_carry_new;
} lower_pass_blocks;

/* The block of the layer's weights in the dtype of its products. */
uint32_t *lower_low_block(const lower_rank *rank, const lower_layer_at *at);
void lower_bind_layer(lower_rank *rank, fr_space space,
                      const lower_layer_at *at, char access);
/* A call that reads the layer's weights. */
void lower_add_layer_call(lower_rank *rank, const lower_layer_at *at,
                          uint32_t i_segment);
void lower_pass_calls(lower_rank *rank, const lower_layer_at *at,
                      const lower_pass *pass, lower_pass_blocks blocks);
/* The calls of a layer whose keys go round a ring. */
void lower_ring_forward_calls(lower_rank *rank, const lower_layer_at *at,
                              const lower_ring_segments *ring, uint32_t saved,
                              uint32_t out);
void lower_ring_backward_calls(lower_rank *rank, const lower_layer_at *at,
                               uint32_t saved, uint32_t gradient);

/* ---- lower_calls.c: the calls of one layer ---- */

void lower_forward_calls(lower_rank *rank, const fr_task *task, int32_t i);
void lower_backward_calls(lower_rank *rank, const fr_task *task, int32_t i,
                          uint32_t gradient);
/* The second part of a backward that is cut in two. */
void lower_weights_calls(lower_rank *rank, const fr_task *task, int32_t i);

/* ---- lower_reduce.c: gradient reduction, compressed or not ---- */

void lower_reduce_tied(lower_rank *rank);
void lower_reduce_bucket(lower_rank *rank, uint32_t i_bucket);
void lower_reduce_finish(lower_rank *rank);

/* ---- lower_finish.c: what follows complete gradients ---- */

/* After a task has made the gradients of a layer, or of the embedding or the
 * head; after all tasks. */
void lower_finish_layer(lower_rank *rank, const fr_task *task, int32_t i);
void lower_finish_ends(lower_rank *rank, const fr_task *task, bool is_head);
void lower_finish_reductions(lower_rank *rank);

/* ---- lower_transfer.c: sends and receives between stages ---- */

/* Does the host wait for what it receives? */
bool lower_is_p2p_sync(const lower_context *context);

void lower_send(lower_rank *rank, int32_t boundary, bool is_gradient,
                const fr_task *task, uint32_t block);
/* Receives the blocks that arrive while the rank works on its task i. */
void lower_receive(lower_rank *rank, size_t i_task, size_t *i_arrival);

/* ---- lower_update.c: norm, clip, optimizer, loss ---- */

void lower_zero(lower_rank *rank);
/* ZeRO 1, 2 with overlap: parameters of the step before, ahead of forward. */
void lower_gather_early(lower_rank *rank);
void lower_update(lower_rank *rank);

/* ---- lower_stage.c: all calls of a pipeline rank ---- */

FR_CHECKED fr_status lower_stage(lower_rank *rank, fr_err *err);

#endif
