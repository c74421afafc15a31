/* predict_memory.c: live tensors, an allocator, and what stands beside. */
#include "sim/predict/predict_memory.h"

#include "cost_models/gpu/gpu_memory.h"
#include "cost_models/gpu/gpu_price.h"
#include "plan/decide/grid.h"
#include "program/memory/caching_allocator.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

/* The memory of a CPU rank beyond its slab differs between runs by this
 * share. */
static const double baseline_rel_err = 0.1;

/*
 * On GPUs tensors are exact only as far as the program has every buffer of
 * the framework: one standard error of what it allocates.  It is the error
 * that is asked of the model (memory MAPE <= 8 %: sigma = 1.25 x the mean
 * deviation of a normal distribution), not one that was fitted.
 */
static const double tensor_rel_err = 0.1;

double fr_memory_rel_err(void)
{
    return tensor_rel_err;
}

/* By halving: the probability grows with the errors that are free. */
double fr_memory_errors_of(double confidence)
{
    double low = 0, high = 8;
    if (!(confidence > 0.5))
        return 0;
    for (int i = 0; i < 60; i++) {
        double middle = 0.5 * (low + high);
        if (0.5 * erfc(-middle / sqrt(2.0)) < confidence)
            low = middle;
        else
            high = middle;
    }
    return high;
}

uint64_t fr_memory_short_by(const fr_prediction *prediction, double confidence)
{
    double needed_bytes =
        (double)prediction->memory.peak_bytes +
        fr_memory_errors_of(confidence) * prediction->memory.error_bytes;
    double lack = needed_bytes - (double)prediction->memory.capacity_bytes;
    if (fr_prediction_lacks_host(prediction))
        lack = fmax(lack, (double)(prediction->memory.host_bytes -
                                   prediction->memory.host_capacity_bytes));
    return lack > 0 ? (uint64_t)ceil(lack) : 0;
}

/* Ranks of the node that holds a rank. */
static int64_t ranks_beside(const fr_rank_layout *layout, int32_t rank)
{
    return fr_rank_groups_size(&layout->node, layout->node.group_of_rank[rank]);
}

static uint64_t capacity_of(const fr_rank_layout *layout, int32_t rank)
{
    return fr_cluster_rank_memory_bytes(layout->cluster,
                                        fr_rank_layout_node(layout, rank),
                                        ranks_beside(layout, rank));
}

static void set_stage(const fr_stage_memory *stage, fr_prediction *out)
{
    out->memory.parameters_bytes = stage->parameters_bytes;
    out->memory.gradients_bytes = stage->gradients_bytes;
    out->memory.optimizer_bytes = stage->optimizer_bytes;
    out->memory.activations_bytes = stage->activations_bytes;
    out->memory.buffers_bytes = stage->buffers_bytes;
    out->memory.workspaces_bytes = stage->workspaces_bytes;
    out->memory.alignment_bytes = stage->alignment_bytes;
    out->memory.allocated_bytes = stage->allocated_bytes;
    out->memory.reserved_bytes = stage->reserved_bytes;
    out->memory.device_bytes = stage->device_bytes;
    out->memory.peak_bytes = stage->device_bytes;
    out->memory.overhead_bytes =
        stage->device_bytes - stage->parameters_bytes - stage->gradients_bytes -
        stage->optimizer_bytes - stage->activations_bytes -
        stage->buffers_bytes;
}

static void set_fits(uint64_t capacity_bytes, double sigma_bytes,
                     fr_prediction *out)
{
    double headroom = (double)capacity_bytes - (double)out->memory.peak_bytes;
    out->memory.capacity_bytes = capacity_bytes;
    out->memory.fits = out->memory.peak_bytes <= capacity_bytes;
    out->memory.error_bytes = sigma_bytes;
    out->memory.p_fits = 0.5 * erfc(-headroom / sigma_bytes / sqrt(2.0));
}

/*
 * Sets the memory that offloading takes on the host with the least free memory.
 * It is exact, because the program's sizes are.  The ranks of a rack fill one
 * host after the other.
 */
static void check_hosts(const fr_replay_context *context, fr_prediction *out)
{
    const fr_rank_layout *layout = &context->layout;
    const fr_program *program = layout->program;
    double least = INFINITY;
    for (int32_t g = 0; g < layout->node.n_groups; g++) {
        const fr_node_type *type =
            fr_cluster_node_type(layout->cluster, layout->node_of_group[g]);
        const int64_t n_hosts = type->n_hosts > 1 ? type->n_hosts : 1;
        const int64_t per_host = (type->n_devices + n_hosts - 1) / n_hosts;
        const int64_t n_filled =
            (fr_rank_groups_size(&layout->node, g) + per_host - 1) / per_host;
        const uint64_t capacity_bytes =
            type->host_memory_bytes / (uint64_t)n_hosts * (uint64_t)n_filled;
        uint64_t n_bytes = 0;
        for (int32_t i = layout->node.first[g]; i < layout->node.first[g + 1];
             i++) {
            int32_t p = layout->program_of_rank[layout->node.members[i]];
            n_bytes += program->rank_programs[p].host_bytes;
        }
        double left = capacity_bytes > 0
                          ? (double)capacity_bytes - (double)n_bytes
                          : DBL_MAX;
        if (n_bytes == 0 || left >= least)
            continue;
        least = left;
        out->memory.host_bytes = n_bytes;
        out->memory.host_capacity_bytes = capacity_bytes;
    }
    if (!fr_prediction_lacks_host(out))
        return;
    out->memory.fits = false;
    out->memory.p_fits = 0;
}

static fr_status live_peak(const fr_rank_program *rank_program,
                           fr_stage_memory *out, fr_err *err)
{
    uint64_t parts[FR_MEMORY_N], live_bytes;
    FR_TRY(fr_rank_program_peak(rank_program, parts, &live_bytes, err));
    out->parameters_bytes = parts[FR_MEMORY_PARAMETERS];
    out->gradients_bytes = parts[FR_MEMORY_GRADIENTS];
    out->optimizer_bytes = parts[FR_MEMORY_OPTIMIZER];
    out->activations_bytes = parts[FR_MEMORY_ACTIVATIONS];
    out->buffers_bytes = parts[FR_MEMORY_BUFFERS];
    return FR_OK;
}

/* Sets the difference between the allocated bytes and the sum of parts and
 * workspaces. */
static void set_allocated(uint64_t allocated_bytes, uint64_t workspaces_bytes,
                          fr_stage_memory *out)
{
    out->workspaces_bytes = workspaces_bytes;
    out->allocated_bytes = allocated_bytes;
    out->alignment_bytes = allocated_bytes - out->parameters_bytes -
                           out->gradients_bytes - out->optimizer_bytes -
                           out->activations_bytes - out->buffers_bytes -
                           workspaces_bytes;
}

/* The host's memory is the processor's too. */
static uint64_t on_cpu_bytes(const fr_rank_program *rank_program)
{
    return rank_program->slab_bytes + rank_program->host_bytes;
}

/*
 * The rank with the least headroom.  The slab is exact by construction; what
 * the process uses besides is measured and varies.
 */
static fr_status predict_slab(const fr_replay_context *context,
                              const fr_cost_model *costs, fr_prediction *out,
                              fr_err *err)
{
    const fr_rank_layout *layout = &context->layout;
    const fr_rank_program *rank_program = NULL;
    double least = INFINITY;
    uint64_t capacity_bytes = 0;
    for (int32_t c = 0; c < context->fold.n_colors; c++) {
        int32_t rank = context->fold.rank_of_color[c];
        const fr_rank_program *other =
            &layout->program->rank_programs[layout->program_of_rank[rank]];
        uint64_t capacity = capacity_of(layout, rank);
        double headroom = (double)capacity - (double)on_cpu_bytes(other);
        if (headroom < least) {
            least = headroom;
            rank_program = other;
            capacity_bytes = capacity;
        }
    }
    fr_stage_memory stage;
    uint64_t baseline =
        fr_cost_baseline_bytes(costs, fr_plan_world(&layout->program->plan));
    FR_TRY(live_peak(rank_program, &stage, err));
    set_allocated(on_cpu_bytes(rank_program), 0, &stage);
    stage.reserved_bytes = on_cpu_bytes(rank_program);
    stage.device_bytes = on_cpu_bytes(rank_program) + baseline;
    set_stage(&stage, out);
    set_fits(capacity_bytes, baseline_rel_err * (double)baseline + 1, out);
    return FR_OK;
}

static fr_status predict_stage(const fr_program *program,
                               const fr_rank_program *rank_program,
                               const fr_device_type *device,
                               fr_stage_memory *out, fr_err *err)
{
    const fr_gpu_memory overhead =
        fr_gpu_memory_overhead(&program->plan, device);
    uint64_t workspaces_bytes = 0;
    fr_allocator_use use;
    fr_gpu_workspaces spaces =
        fr_gpu_workspaces_of(&program->plan, &program->model, device);
    FR_TRY(live_peak(rank_program, out, err));
    FR_TRY(fr_rank_program_reserve(program, rank_program, spaces.n_bytes,
                                   spaces.n, &use, err));
    for (int i = 0; i < spaces.n; i++)
        workspaces_bytes += spaces.n_bytes[i];
    set_allocated(use.allocated_bytes, workspaces_bytes, out);
    out->reserved_bytes = use.reserved_bytes;
    out->device_bytes =
        use.reserved_bytes + overhead.context_bytes + overhead.nccl_bytes;
    return FR_OK;
}

/* Every rank program once on each kind of device that runs it; of these the one
 * that leaves the least. */
static fr_status predict_stages(const fr_replay_context *context,
                                fr_stage_memory *stages, fr_err *err)
{
    const fr_rank_layout *layout = &context->layout;
    const fr_cluster *cluster = layout->cluster;
    const size_t n_stages = layout->program->n_rank_programs;
    bool *is_done = calloc(n_stages * cluster->n_devices + 1, sizeof *is_done);
    double *least = malloc((n_stages + 1) * sizeof *least);
    fr_status status =
        is_done != NULL && least != NULL ? FR_OK : fr_fail_no_memory(err);
    for (size_t i = 0; status == FR_OK && i < n_stages; i++)
        least[i] = INFINITY;
    for (int32_t c = 0; status == FR_OK && c < context->fold.n_colors; c++) {
        const int32_t rank = context->fold.rank_of_color[c];
        const int32_t i = layout->program_of_rank[rank];
        const fr_device_type *device =
            fr_cluster_device(cluster, fr_rank_layout_node(layout, rank));
        const size_t at = (size_t)i * cluster->n_devices +
                          (size_t)(device - cluster->devices);
        fr_stage_memory memory = {0};
        if (is_done[at])
            continue;
        is_done[at] = true;
        status =
            predict_stage(layout->program, &layout->program->rank_programs[i],
                          device, &memory, err);
        const double left =
            (double)capacity_of(layout, rank) - (double)memory.device_bytes;
        if (status == FR_OK && left < least[i]) {
            least[i] = left;
            stages[i] = memory;
        }
    }
    free(is_done);
    free(least);
    return status;
}

static void choose_tightest(const fr_replay_context *context,
                            const fr_gpu_memory *overhead, double slab_rel_err,
                            const fr_stage_memory *stages, fr_prediction *out)
{
    const fr_rank_layout *layout = &context->layout;
    double least = INFINITY;
    uint64_t capacity_bytes = 0;
    int32_t i_tightest = 0;
    for (int32_t c = 0; c < context->fold.n_colors; c++) {
        int32_t rank = context->fold.rank_of_color[c];
        int32_t i = layout->program_of_rank[rank];
        uint64_t capacity = capacity_of(layout, rank);
        double headroom = (double)capacity - (double)stages[i].device_bytes;
        if (headroom < least) {
            least = headroom;
            capacity_bytes = capacity;
            i_tightest = i;
        }
    }
    const fr_stage_memory *tightest = &stages[i_tightest];
    out->memory.tightest_stage = layout->program->rank_programs[i_tightest].pp;
    double overhead_bytes =
        (double)(overhead->context_bytes + overhead->nccl_bytes);
    set_stage(tightest, out);
    set_fits(capacity_bytes,
             hypot(overhead->rel_err * overhead_bytes,
                   slab_rel_err * (double)tightest->allocated_bytes) +
                 1,
             out);
}

static void list_stages(const fr_program *program,
                        const fr_stage_memory *stages, fr_prediction *out)
{
    const uint32_t pp = (uint32_t)program->plan.pp;
    if (pp > FR_PREDICTION_MAX_STAGES)
        return;
    out->memory.n_stages = (int32_t)pp;
    /* If ranks have different shares of the batch, the one with the most memory
     * counts. */
    for (uint32_t i = 0; i < program->n_rank_programs; i++)
        if (i < pp ||
            stages[i].device_bytes > out->memory.stages[i % pp].device_bytes)
            out->memory.stages[i % pp] = stages[i];
}

/* ---- forerun's own runtime, measured ------------------------------------- */

/* Streams with kernels, and communicators, of one rank program: one
 * communicator for each (axis, lane) of collectives and one for each direction
 * between two stages (gpu_groups.h). */
typedef struct own_use {
    bool has_kernels[FR_LANE_N];
    bool has_collectives[FR_AXIS_N][FR_LANE_N];
    bool has_transfers[2][2]; /* sends or receives, to before or behind */
} own_use;

static void note_use(const fr_plan *plan, const fr_rank_program *rank_program,
                     fr_lane lane, const fr_instr *instr, own_use *use)
{
    switch (fr_op_class_of((fr_op)instr->op)) {
    case FR_OP_CLASS_COMPUTE:
        use->has_kernels[lane] = true;
        break;
    case FR_OP_CLASS_COLLECTIVE:
        if (fr_plan_group_size(plan, (fr_axis)instr->axis) > 1)
            use->has_collectives[instr->axis][lane] = true;
        break;
    case FR_OP_CLASS_P2P:
        use->has_transfers[instr->op == FR_OP_RECV]
                          [instr->peer > rank_program->pp] = true;
        break;
    case FR_OP_CLASS_IO:
        break;
    }
}

static own_use use_of(const fr_program *program,
                      const fr_rank_program *rank_program)
{
    own_use use = {0};
    for (uint32_t c = 0; c < rank_program->n_calls; c++) {
        const fr_segment *s =
            &program->segments[rank_program->calls[c].i_segment];
        for (uint32_t i = 0; i < s->n_instrs; i++)
            note_use(&program->plan, rank_program, (fr_lane)s->lane,
                     &program->instrs[s->first_instr + i], &use);
    }
    return use;
}

static uint64_t own_overhead(const fr_program *program,
                             const fr_rank_program *rank_program,
                             const fr_own_memory *own)
{
    own_use use = use_of(program, rank_program);
    uint64_t n_streams = 0, bytes = own->alone_bytes;
    if (fr_plan_world(&program->plan) > 1)
        bytes += own->comm_world_bytes;
    for (int lane = 0; lane < FR_LANE_N; lane++) {
        n_streams += use.has_kernels[lane];
        for (int axis = 0; axis < FR_AXIS_N; axis++)
            if (use.has_collectives[axis][lane])
                bytes += fr_plan_group_size(&program->plan, (fr_axis)axis) == 2
                             ? own->comm_pair_bytes
                             : own->comm_group_bytes;
    }
    for (int i = 0; i < 4; i++)
        if (use.has_transfers[i / 2][i % 2])
            bytes += own->comm_pair_bytes;
    return bytes + (n_streams > 1 ? n_streams - 1 : 0) * own->workspace_bytes;
}

/* The runtime's slab, and what it was seen to hold overhead. */
static fr_status predict_own(const fr_replay_context *context,
                             const fr_own_memory *own, fr_prediction *out,
                             fr_err *err)
{
    const fr_program *program = context->layout.program;
    fr_stage_memory *stages =
        calloc(program->n_rank_programs + 1, sizeof *stages);
    fr_gpu_memory overhead = {.rel_err = baseline_rel_err};
    fr_status status = stages != NULL ? FR_OK : fr_fail_no_memory(err);
    for (uint32_t i = 0; status == FR_OK && i < program->n_rank_programs; i++) {
        const fr_rank_program *rank_program = &program->rank_programs[i];
        uint64_t overhead_bytes = own_overhead(program, rank_program, own);
        status = live_peak(rank_program, &stages[i], err);
        set_allocated(rank_program->slab_bytes, 0, &stages[i]);
        stages[i].reserved_bytes = rank_program->slab_bytes;
        stages[i].device_bytes = rank_program->slab_bytes + overhead_bytes;
        if (overhead_bytes > overhead.context_bytes)
            overhead.context_bytes = overhead_bytes;
    }
    if (status == FR_OK) {
        choose_tightest(context, &overhead, 0, stages, out);
        list_stages(program, stages, out);
    }
    free(stages);
    return status;
}

static fr_status predict_gpus(const fr_replay_context *context,
                              fr_prediction *out, fr_err *err)
{
    const fr_program *program = context->layout.program;
    fr_gpu_memory overhead = fr_gpu_memory_overhead(
        &program->plan,
        fr_cluster_device(context->layout.cluster,
                          fr_rank_layout_node(&context->layout, 0)));
    fr_stage_memory *stages;
    FR_TRY_CALLOC(stages, program->n_rank_programs + 1, err);
    fr_status status = predict_stages(context, stages, err);
    if (status == FR_OK) {
        choose_tightest(context, &overhead, tensor_rel_err, stages, out);
        list_stages(program, stages, out);
    }
    free(stages);
    return status;
}

fr_status fr_predict_memory(const fr_replay_context *context,
                            const fr_cost_model *costs, fr_prediction *out,
                            fr_err *err)
{
    const fr_device_type *device = fr_cluster_device(
        context->layout.cluster, fr_rank_layout_node(&context->layout, 0));
    const fr_program *program = context->layout.program;
    fr_own_memory own;
    if (device->kind == FR_DEVICE_CPU)
        return predict_slab(context, costs, out, err);
    if (fr_gpu_prices_own_memory(fr_cost_gpu_prices(costs), &program->plan,
                                 fr_rank_layout_node(&context->layout, 0),
                                 &own) &&
        fr_plan_check_executable_gpu(&program->plan, &program->model,
                                     &program->job, NULL) == FR_OK)
        FR_TRY(predict_own(context, &own, out, err));
    else
        FR_TRY(predict_gpus(context, out, err));
    check_hosts(context, out);
    return FR_OK;
}
