/* evaluate.c: what does not fit is told before it is simulated. */
#include "tuner/search/evaluate.h"

#include "core/base/text.h"
#include "cost_models/gpu/gpu_memory.h"
#include "plan/decide/plan_fields.h"
#include "program/ir/reuse.h"
#include "program/lower/step/lower.h"
#include "sim/predict/predict_memory.h"
#include "sim/predict/simulate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The most ranks on any node. */
static int64_t crowd(const int32_t *node_of_rank, int64_t n_ranks, int32_t node)
{
    int64_t n = 0;
    for (int64_t r = 0; r < n_ranks; r++)
        n += node_of_rank[r] == node;
    return n;
}

/* Memory of the program's slabs alone, where it already exceeds a rank's share.
 */
static bool is_slab_too_large(const fr_plan_space_request *request,
                              const fr_program *program,
                              const int32_t *node_of_rank, fr_evaluation *out)
{
    int64_t n_ranks = fr_plan_world(&program->plan);
    int32_t last_node = -1;
    uint64_t capacity_bytes = 0;
    for (int64_t r = 0; r < n_ranks; r++) {
        uint64_t n_bytes = fr_program_of_rank(program, r)->slab_bytes;
        int32_t node = node_of_rank[r];
        if (node != last_node)
            capacity_bytes = fr_cluster_rank_memory_bytes(
                request->cluster, node, crowd(node_of_rank, n_ranks, node));
        last_node = node;
        if (n_bytes <= capacity_bytes)
            continue;
        uint64_t short_by_bytes = n_bytes - capacity_bytes;
        if (short_by_bytes <= out->short_by_bytes)
            continue;
        out->short_by_bytes = short_by_bytes;
        out->prediction.memory.peak_bytes = n_bytes;
        out->prediction.memory.capacity_bytes = capacity_bytes;
    }
    return out->short_by_bytes > 0;
}

static fr_status evaluate_program(const fr_plan_space_request *request,
                                  const fr_cost_model *costs,
                                  const fr_program *program,
                                  const fr_placement *placement,
                                  fr_evaluation *out, fr_err *err)
{
    FR_TRY(fr_log_check(request->log, err));
    /* The slab does not limit a framework's tensors, and their live bytes are
     * only a lower bound: the memory of its allocator decides. */
    if (!placement->by_framework &&
        is_slab_too_large(request, program, placement->node_of_rank, out)) {
        out->outcome = FR_OUTCOME_TOO_LARGE;
        return FR_OK;
    }
    FR_TRY(fr_simulate(program, costs, request->cluster, placement,
                       &(fr_simulate_options){.stops_without_room = true,
                                              .is_bounded = true,
                                              .log = request->log},
                       &out->prediction, err));
    out->outcome = FR_OUTCOME_SIMULATED;
    if (out->prediction.memory.fits &&
        out->prediction.memory.p_fits >= request->fit_confidence)
        return FR_OK;
    uint64_t lack =
        fr_memory_short_by(&out->prediction, request->fit_confidence);
    out->outcome = FR_OUTCOME_TOO_LARGE;
    out->short_by_bytes = lack > 0 ? lack : 1;
    return FR_OK;
}

fr_status fr_evaluate(const fr_plan_space_request *request,
                      const fr_cost_model *costs, const fr_plan *plan,
                      fr_evaluation *out, fr_err *err)
{
    fr_evaluation result;
    fr_program *program = NULL;
    fr_err why;
    memset(&result, 0, sizeof result);
    FR_TRY(fr_log_check(request->log, err));
    /* A search has asked level by level; rules across levels come here. */
    if (request->target != NULL &&
        fr_target_check(request->target, request->target_version,
                        FR_PLAN_BITS_ALL, 0, plan, request->model, request->job,
                        &why) == FR_INPUT) {
        result.outcome = FR_OUTCOME_UNPLACEABLE;
        fr_text_copy_cut(result.why, sizeof result.why, why.text);
        *out = result;
        return FR_OK;
    }
    fr_placement placement = {.n_ranks = fr_plan_world(plan)};
    int32_t *node_of_rank =
        malloc((size_t)placement.n_ranks * sizeof *node_of_rank);
    if (node_of_rank == NULL)
        return fr_fail_no_memory(err);
    placement.node_of_rank = node_of_rank;
    fr_status status = fr_cluster_place(request->cluster, placement.n_ranks,
                                        plan->n_threads, 0, node_of_rank, &why);
    if (status == FR_INFEASIBLE) {
        result.outcome = FR_OUTCOME_UNPLACEABLE;
        fr_text_copy_cut(result.why, sizeof result.why, why.text);
        status = FR_OK;
        goto out_done;
    }
    if (status != FR_OK) {
        fr_fail(err, status, "%s", why.text);
        goto out_done;
    }
    const fr_device_type *device =
        fr_cluster_device(request->cluster, node_of_rank[0]);
    placement.by_framework = fr_gpu_is_by_framework(plan, device);
    placement.most_calls = request->most_calls;
    status = fr_lower(request->model, request->job, plan, &placement, &program,
                      &why);
    if (status == FR_INPUT) { /* more calls than can be written out */
        result.outcome = FR_OUTCOME_UNPLACEABLE;
        fr_text_copy_cut(result.why, sizeof result.why, why.text);
        status = FR_OK;
        goto out_done;
    }
    if (status != FR_OK) {
        fr_fail(err, status, "%s", why.text);
        goto out_done;
    }
    /* The reuse of caches matters on CPUs only. */
    if (device->kind == FR_DEVICE_CPU)
        FR_TRY_GOTO(status, fr_program_mark_reuse(program, err), out_done);
    status =
        evaluate_program(request, costs, program, &placement, &result, &why);
    if (status == FR_INFEASIBLE) { /* too long, in its time or in ours */
        memset(&result.prediction, 0, sizeof result.prediction);
        result.outcome = FR_OUTCOME_UNPLACEABLE;
        fr_text_copy_cut(result.why, sizeof result.why, why.text);
        status = FR_OK;
    } else if (status != FR_OK) {
        fr_fail(err, status, "%s", why.text);
    }
out_done:
    fr_program_destroy(program);
    free(node_of_rank);
    if (status == FR_OK)
        *out = result;
    return status;
}
