/*
 * lower_transfer.c: sends and receives between pipeline stages.
 */
#include "program/lower/step/lower_step.h"

bool lower_is_p2p_sync(const lower_context *context)
{
    return context->plan->execution.is_p2p_sync && context->plan->vpp == 1 &&
           context->target.is_framework_step;
}

/*
 * A transfer over the boundary before global stage `boundary`; the segment is
 * made the first time.
 */
static uint32_t transfer_segment(lower_rank *rank, fr_op op, int32_t boundary,
                                 bool is_gradient)
{
    lower_context *context = rank->context;
    const fr_plan *plan = context->plan;
    uint32_t tag =
        (uint32_t)(2 * boundary + is_gradient) * (uint32_t)context->n_micro;
    bool is_send = op == FR_OP_SEND;
    fr_lane lane = is_send ? FR_LANE_PP_SEND : FR_LANE_PP_RECV;
    /* Activations go up over the boundary, gradients down. */
    int32_t peer = is_send == is_gradient ? boundary - 1 : boundary;
    uint32_t *known =
        &rank->transfers[(2 * boundary + is_gradient) * 2 + is_send];
    if (*known > 0)
        return *known - 1;
    uint32_t i_segment = lower_segment_begin(
        context, lane, "%s_%s_%d", is_send ? "send" : "recv",
        is_gradient ? "grad" : "act", (int)boundary);
    *known = i_segment + 1;
    fr_instr *instr = lower_emit(context, op);
    instr->axis = FR_AXIS_PP;
    instr->peer = (int16_t)fr_stage_holder(plan, peer);
    instr->tag = tag;
    instr->comm.n =
        (int64_t)(lower_stream_bytes(
                      context, fr_stage_first(plan, context->model, boundary)) /
                  fr_dtype_bytes(fr_plan_storage_dtype(plan)));
    if (!is_send && lower_is_p2p_sync(context))
        instr->flags |= FR_INSTR_HELD;
    instr->ref[FR_SEND_SRC] =
        lower_ref(is_send ? FR_SPACE_IN : FR_SPACE_OUT, 0);
    return i_segment;
}

/*
 * Makes a rank wait for a send as frameworks do: in 1F1B at once, as each send
 * is one batch with a receive (Megatron-LM,
 * core/pipeline_parallel/p2p_communication.py, which has no overlap there;
 * PyTorch, distributed/pipelining/schedules.py); with chunks once the next send
 * of the same direction is under way, before the tensor is freed (Megatron-LM,
 * core/pipeline_parallel/schedules.py, send_next_wait_handle).  A split
 * backward leaves as much time.  Our runtime waits for memory only.
 */
static void await_send(lower_rank *rank, bool is_gradient, uint32_t block)
{
    const fr_plan *plan = rank->context->plan;
    bool is_late = plan->vpp > 1 || rank->context->schedule->is_split;
    if (!rank->context->target.is_framework_step)
        return;
    rank->awaited = is_late ? rank->in_flight[is_gradient] : block;
    rank->in_flight[is_gradient] = block;
}

void lower_send(lower_rank *rank, int32_t boundary, bool is_gradient,
                const fr_task *task, uint32_t block)
{
    lower_add_call(rank,
                   transfer_segment(rank, FR_OP_SEND, boundary, is_gradient),
                   -1, task->micro_batch, task->chunk);
    fr_builder_bind(rank->builder, FR_SPACE_IN, block, 'r');
    rank->sent[0][is_gradient] = block;
    await_send(rank, is_gradient, block);
}

void lower_receive(lower_rank *rank, size_t i_task, size_t *i_arrival)
{
    const lower_context *context = rank->context;
    const lower_program *program = rank->program;
    const lower_arrival *all =
        &program->arrivals[(size_t)rank->stage * program->n_tasks];
    while (*i_arrival < program->n_arrivals[rank->stage] &&
           all[*i_arrival].before_task <= i_task) {
        const lower_arrival *a = &all[(*i_arrival)++];
        uint32_t block = lower_add_activation(
            rank, a->is_gradient
                      ? lower_gradient_bytes(rank, a->chunk)
                      : lower_stream_bytes(context,
                                           rank->chunks[a->chunk].span.first));
        fr_task task = {a->is_gradient, a->chunk, a->micro_batch};
        lower_add_call(
            rank,
            transfer_segment(rank, FR_OP_RECV, a->boundary, a->is_gradient), -1,
            a->micro_batch, a->chunk);
        fr_builder_bind(rank->builder, FR_SPACE_OUT, block, 'w');
        if (a->is_gradient)
            *lower_gradient_of(rank, &task) = block;
        else
            rank->blocks[lower_slot(rank, &task, 0)].input = block;
    }
}
