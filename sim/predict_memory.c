/* predict_memory.c: live tensors, an allocator, and what stands beside. */
#include "sim/predict_memory.h"

#include <math.h>
#include <stdlib.h>

#include "cost_models/gpu_memory.h"
#include "plan/caching_allocator.h"

/* What a CPU rank uses besides its slab differs from run to run by so much. */
static const double baseline_rel_err = 0.1;

/*
 * On GPUs tensors are exact only as far as the program has every buffer of
 * the framework: one standard error of what it allocates.  It is the error
 * that is asked of the model (memory MAPE <= 8 %: sigma = 1.25 x the mean
 * deviation of a normal distribution), not one that was fitted.
 */
static const double tensor_rel_err = 0.1;

/* Ranks of the node that holds a rank. */
static int64_t ranks_beside(const fr_rank_layout *layout, int32_t rank)
{
    return fr_partition_size(&layout->node, layout->node.group_of_rank[rank]);
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
    double room = (double)capacity_bytes - (double)out->memory.peak_bytes;
    out->memory.capacity_bytes = capacity_bytes;
    out->memory.fits = out->memory.peak_bytes <= capacity_bytes;
    out->memory.p_fits = 0.5 * erfc(-room / sigma_bytes / sqrt(2.0));
}

static fr_status live_peak(const fr_class *klass, fr_stage_memory *out,
                           uint64_t *live_bytes, fr_err *err)
{
    uint64_t parts[FR_MEMORY_N];
    FR_TRY(fr_class_peak(klass, parts, live_bytes, err));
    out->parameters_bytes = parts[FR_MEMORY_PARAMETERS];
    out->gradients_bytes = parts[FR_MEMORY_GRADIENTS];
    out->optimizer_bytes = parts[FR_MEMORY_OPTIMIZER];
    out->activations_bytes = parts[FR_MEMORY_ACTIVATIONS];
    out->buffers_bytes = parts[FR_MEMORY_BUFFERS];
    return FR_OK;
}

/*
 * The rank with the least room.  The slab is exact by construction; what the
 * process uses besides is measured and varies.
 */
static fr_status predict_slab(const fr_replay_context *context,
                              const fr_cost_model *costs, fr_prediction *out,
                              fr_err *err)
{
    const fr_rank_layout *layout = &context->layout;
    const fr_class *klass = NULL;
    double least = INFINITY;
    uint64_t capacity_bytes = 0, live_bytes;
    for (int32_t c = 0; c < context->fold.n_colors; c++) {
        int32_t rank = context->fold.rank_of_color[c];
        const fr_class *other =
            &layout->program->classes[layout->class_of_rank[rank]];
        uint64_t capacity = capacity_of(layout, rank);
        double room = (double)capacity - (double)other->slab_bytes;
        if (room < least) {
            least = room;
            klass = other;
            capacity_bytes = capacity;
        }
    }
    fr_stage_memory stage;
    uint64_t baseline = fr_cost_baseline_bytes(costs, layout->n_ranks);
    FR_TRY(live_peak(klass, &stage, &live_bytes, err));
    stage.allocated_bytes = stage.reserved_bytes = klass->slab_bytes;
    stage.device_bytes = klass->slab_bytes + baseline;
    set_stage(&stage, out);
    set_fits(capacity_bytes, baseline_rel_err * (double)baseline + 1, out);
    return FR_OK;
}

static fr_status predict_stage(const fr_program *program, const fr_class *klass,
                               const fr_device_type *device,
                               uint64_t besides_bytes, fr_stage_memory *out,
                               fr_err *err)
{
    uint64_t live_bytes;
    fr_allocator_use use;
    fr_gpu_workspaces spaces =
        fr_gpu_workspaces_of(&program->plan, &program->model, device);
    FR_TRY(live_peak(klass, out, &live_bytes, err));
    FR_TRY(fr_class_reserve_beside(program, klass, spaces.n_bytes, spaces.n,
                                   &use, err));
    out->allocated_bytes = use.allocated_bytes;
    out->reserved_bytes = use.reserved_bytes;
    out->device_bytes = use.reserved_bytes + besides_bytes;
    return FR_OK;
}

/* Every class once, on the device of the first rank that runs it. */
static fr_status predict_stages(const fr_replay_context *context,
                                uint64_t besides_bytes, fr_stage_memory *stages,
                                fr_err *err)
{
    const fr_rank_layout *layout = &context->layout;
    bool *is_done = calloc(layout->program->n_classes + 1, sizeof *is_done);
    fr_status status = FR_OK;
    if (is_done == NULL)
        return fr_fail_no_memory(err);
    for (int32_t c = 0; status == FR_OK && c < context->fold.n_colors; c++) {
        int32_t rank = context->fold.rank_of_color[c];
        int32_t i = layout->class_of_rank[rank];
        const fr_device_type *device = fr_cluster_device(
            layout->cluster, fr_rank_layout_node(layout, rank));
        if (is_done[i])
            continue;
        is_done[i] = true;
        status = predict_stage(layout->program, &layout->program->classes[i],
                               device, besides_bytes, &stages[i], err);
    }
    free(is_done);
    return status;
}

static void choose_tightest(const fr_replay_context *context,
                            const fr_gpu_memory *besides,
                            const fr_stage_memory *stages, fr_prediction *out)
{
    const fr_rank_layout *layout = &context->layout;
    double least = INFINITY;
    uint64_t capacity_bytes = 0;
    for (int32_t c = 0; c < context->fold.n_colors; c++) {
        int32_t rank = context->fold.rank_of_color[c];
        int32_t i = layout->class_of_rank[rank];
        uint64_t capacity = capacity_of(layout, rank);
        double room = (double)capacity - (double)stages[i].device_bytes;
        if (room < least) {
            least = room;
            capacity_bytes = capacity;
            out->memory.tightest_stage = i;
        }
    }
    const fr_stage_memory *tightest = &stages[out->memory.tightest_stage];
    double beside_bytes =
        (double)(besides->context_bytes + besides->nccl_bytes);
    set_stage(tightest, out);
    set_fits(capacity_bytes,
             hypot(besides->rel_err * beside_bytes,
                   tensor_rel_err * (double)tightest->allocated_bytes) +
                 1,
             out);
}

static fr_status predict_gpus(const fr_replay_context *context,
                              fr_prediction *out, fr_err *err)
{
    const fr_program *program = context->layout.program;
    fr_gpu_memory besides = fr_gpu_memory_besides(
        &program->plan,
        fr_cluster_device(context->layout.cluster,
                          fr_rank_layout_node(&context->layout, 0)));
    fr_stage_memory *stages = calloc(program->n_classes + 1, sizeof *stages);
    if (stages == NULL)
        return fr_fail_no_memory(err);
    fr_status status = predict_stages(
        context, besides.context_bytes + besides.nccl_bytes, stages, err);
    if (status == FR_OK) {
        choose_tightest(context, &besides, stages, out);
        if (program->n_classes <= FR_PREDICTION_MAX_STAGES) {
            out->memory.n_stages = (int32_t)program->n_classes;
            for (uint32_t i = 0; i < program->n_classes; i++)
                out->memory.stages[i] = stages[i];
        }
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
    if (device->kind == FR_DEVICE_CPU)
        return predict_slab(context, costs, out, err);
    return predict_gpus(context, out, err);
}
