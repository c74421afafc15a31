/* simulate.c: a replay as a prediction: time, interval, parts, memory, cost. */
#include "sim/simulate.h"

#include "core/clock.h"
#include "plan/step_breakdown.h"
#include "sim/replay.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* 90 % of a normal distribution lie within this many standard deviations. */
static const double z_90 = 1.6448536269514722;

/* What a rank uses besides its slab differs from run to run by so much. */
static const double baseline_rel_err = 0.1;

static fr_status fill_timeline(const fr_replay *replay, int32_t n_ranks,
                               fr_timeline *out, fr_err *err)
{
    for (size_t i = 0; i < replay->records.n; i++) {
        const fr_replay_record *rec = &replay->records.items[i];
        fr_span span = {.rank = rec->rank,
                        .lane = rec->lane,
                        .i_call = rec->i_call,
                        .i_instr = rec->i_instr,
                        .begin_ps = rec->ready_ps,
                        .end_ps = rec->end_ps};
        FR_TRY(fr_timeline_add(out, span, err));
    }
    out->n_ranks = n_ranks;
    return FR_OK;
}

static void set_ops(const fr_program *program, fr_timeline *timeline)
{
    for (size_t i = 0; i < timeline->n; i++)
        timeline->at[i].op = program->instrs[timeline->at[i].i_instr].op;
}

/*
 * Walks the critical path back.  Errors of one op are the same in all its
 * instances, those of different ops are independent: seconds on the path times
 * relative error add up by op, their squares over ops.
 */
static void path_error(const fr_program *program, const fr_replay *replay,
                       double *sigma_s, fr_cost_source *worst)
{
    double by_op_s[FR_OP_N] = {0};
    *worst = FR_COST_MEASURED;
    for (uint32_t i = replay->last; i != FR_REPLAY_NONE;
         i = replay->records.items[i].cause) {
        const fr_replay_record *rec = &replay->records.items[i];
        double seconds = 1e-12 * (double)(rec->end_ps - rec->start_ps);
        by_op_s[program->instrs[rec->i_instr].op] +=
            seconds * (double)rec->rel_err;
        if (rec->source > *worst)
            *worst = (fr_cost_source)rec->source;
    }
    double sum = 0;
    for (int op = 0; op < FR_OP_N; op++)
        sum += by_op_s[op] * by_op_s[op];
    *sigma_s = sqrt(sum);
}

static double call_flop(const fr_program *program, const fr_call *call)
{
    const fr_segment *s = &program->segments[call->i_segment];
    double sum = 0;
    for (uint32_t k = 0; k < s->n_instrs; k++) {
        const fr_instr *instr = &program->instrs[s->first_instr + k];
        if (fr_step_part_of(instr) == FR_PART_COMPUTE)
            sum += (double)fr_instr_flop(instr);
    }
    return sum;
}

/* Executed flop over those that a step without recompute executes. */
static double recompute_ratio(const fr_program *program)
{
    double all = 0, again = 0;
    for (uint32_t c = 0; c < program->n_classes; c++) {
        const fr_class *klass = &program->classes[c];
        for (uint32_t i = 0; i < klass->n_calls; i++) {
            const fr_call *call = &klass->calls[i];
            double flop = call_flop(program, call);
            all += flop;
            if (program->segments[call->i_segment].is_recompute)
                again += flop;
        }
    }
    return all > again ? all / (all - again) : 1.0;
}

/* Ranks of the node that holds rank r. */
static int64_t ranks_beside(const int32_t *node_of_rank, int64_t n_ranks,
                            int64_t rank)
{
    int64_t n = 0;
    for (int64_t i = 0; i < n_ranks; i++)
        n += node_of_rank[i] == node_of_rank[rank];
    return n;
}

/*
 * Dense peak of what the ranks occupy, all together: the datasheet's, on CPUs
 * the measured rate of large matrix products where there is one (a nominal
 * clock says little); 0: unknown.
 */
static double peak_flops(const fr_program *program, const fr_cost_model *costs,
                         const fr_cluster *cluster, const int32_t *node_of_rank)
{
    double measured = fr_cost_measured_flops(costs, program->plan.n_threads);
    int64_t n_ranks = fr_plan_world(&program->plan);
    double sum = 0;
    for (int64_t r = 0; r < n_ranks; r++) {
        const fr_device_type *device =
            fr_cluster_device(cluster, node_of_rank[r]);
        double peak = fr_device_peak_flops(
            device, fr_dtype_name(program->plan.precision));
        if (device->kind == FR_DEVICE_CPU && device->n_cores > 0) {
            double threads = program->plan.n_threads;
            double n_cores = (double)device->n_cores;
            double n_wanted =
                threads * (double)ranks_beside(node_of_rank, n_ranks, r);
            peak = measured > 0 ? measured : peak * fmin(1, threads / n_cores);
            peak *= fmin(1, n_cores / n_wanted);
        }
        sum += peak;
    }
    return sum;
}

static void predict_rates(const fr_program *program, const fr_cost_model *costs,
                          const fr_cluster *cluster,
                          const int32_t *node_of_rank, fr_prediction *out)
{
    const fr_job *job = &program->job;
    double tokens = (double)(job->global_batch * job->seq);
    double peak = peak_flops(program, costs, cluster, node_of_rank);
    out->tokens_per_s = tokens / out->step_s;
    if (peak <= 0)
        return;
    out->mfu = tokens *
               fr_model_flop_per_token(&program->model, job->seq, false) /
               out->step_s / peak;
    out->hfu = out->mfu * recompute_ratio(program);
}

/*
 * The rank with the least room.  The slab is exact by construction; what the
 * process uses besides is measured and varies.
 */
static fr_status predict_memory(const fr_program *program,
                                const fr_cost_model *costs,
                                const fr_cluster *cluster,
                                const int32_t *node_of_rank, fr_prediction *out,
                                fr_err *err)
{
    int64_t n_ranks = fr_plan_world(&program->plan), tightest = 0;
    double least = INFINITY;
    uint64_t capacity_bytes = 0;
    for (int64_t r = 0; r < n_ranks; r++) {
        const fr_class *klass = fr_program_class(program, r);
        uint64_t capacity = fr_cluster_rank_memory_bytes(
            cluster, node_of_rank[r], ranks_beside(node_of_rank, n_ranks, r));
        double room = (double)capacity - (double)klass->slab_bytes;
        if (room < least) {
            least = room;
            tightest = r;
            capacity_bytes = capacity;
        }
    }
    const fr_class *klass = fr_program_class(program, tightest);
    uint64_t parts[FR_MEMORY_N], live_bytes;
    FR_TRY(fr_class_peak(klass, parts, &live_bytes, err));
    uint64_t baseline = fr_cost_baseline_bytes(costs, n_ranks);
    out->memory.parameters_bytes = parts[FR_MEMORY_PARAMETERS];
    out->memory.gradients_bytes = parts[FR_MEMORY_GRADIENTS];
    out->memory.optimizer_bytes = parts[FR_MEMORY_OPTIMIZER];
    out->memory.activations_bytes = parts[FR_MEMORY_ACTIVATIONS];
    out->memory.buffers_bytes = parts[FR_MEMORY_BUFFERS];
    out->memory.overhead_bytes = klass->slab_bytes - live_bytes + baseline;
    out->memory.reserved_bytes = klass->slab_bytes;
    out->memory.device_bytes = klass->slab_bytes + baseline;
    out->memory.peak_bytes = out->memory.device_bytes;
    out->memory.capacity_bytes = capacity_bytes;
    out->memory.fits = out->memory.peak_bytes <= capacity_bytes;
    double room = (double)capacity_bytes - (double)out->memory.peak_bytes;
    double sigma = baseline_rel_err * (double)baseline + 1;
    out->memory.p_fits = 0.5 * erfc(-room / sigma / sqrt(2.0));
    return FR_OK;
}

static void predict_cost(const fr_program *program, const fr_cluster *cluster,
                         const int32_t *node_of_rank, fr_prediction *out)
{
    int64_t n_ranks = fr_plan_world(&program->plan), n_nodes = 0;
    for (int64_t r = 0; r < n_ranks; r++)
        if (node_of_rank[r] >= n_nodes)
            n_nodes = node_of_rank[r] + 1;
    double hours = out->step_s * (double)program->job.n_steps / 3600;
    out->cost.usd_per_hour = fr_cluster_usd_per_h(cluster, n_nodes, false);
    out->cost.usd_total = out->cost.usd_per_hour * hours;
    out->cost.kwh = fr_cluster_power_w(cluster, n_nodes, 1.0) * hours / 1000;
}

static fr_status predict(const fr_program *program, const fr_replay *replay,
                         const fr_timeline *timeline, fr_prediction *out,
                         fr_err *err)
{
    out->step_s = 1e-12 * (double)replay->makespan_ps;
    if (replay->records.n > 0) {
        double step_s;
        FR_TRY(fr_step_breakdown(program, timeline, 0, out->breakdown_s,
                                 &step_s, err));
    }
    double sigma_s;
    fr_cost_source worst;
    path_error(program, replay, &sigma_s, &worst);
    out->step_s_p5 = fmax(0, out->step_s - z_90 * sigma_s);
    out->step_s_p95 = out->step_s + z_90 * sigma_s;
    out->source = fr_cost_source_name(worst);
    return FR_OK;
}

static fr_status
simulate_placed(const fr_program *program, const fr_cost_model *costs,
                const fr_cluster *cluster, const int32_t *node_of_rank,
                fr_timeline *timeline, fr_prediction *out, fr_err *err)
{
    double begin_s = fr_clock_s();
    int64_t n_ranks = fr_plan_world(&program->plan);
    fr_prediction result = {0};
    fr_timeline spans;
    fr_replay replay;
    FR_TRY(fr_replay_run(program, costs, cluster, node_of_rank, &replay, err));
    fr_timeline_init(&spans);
    fr_status status = fill_timeline(&replay, (int32_t)n_ranks, &spans, err);
    if (status == FR_OK) {
        set_ops(program, &spans);
        status = predict(program, &replay, &spans, &result, err);
    }
    if (status == FR_OK)
        status =
            predict_memory(program, costs, cluster, node_of_rank, &result, err);
    if (status == FR_OK) {
        predict_rates(program, costs, cluster, node_of_rank, &result);
        predict_cost(program, cluster, node_of_rank, &result);
        result.sim.events = replay.n_events;
        result.sim.ranks_simulated = result.sim.ranks_total = n_ranks;
        result.sim.wall_s = fr_clock_s() - begin_s;
        *out = result;
        if (timeline != NULL) {
            fr_timeline_release(timeline);
            *timeline = spans;
            fr_timeline_init(&spans);
        }
    }
    fr_timeline_release(&spans);
    fr_replay_release(&replay);
    return status;
}

fr_status fr_simulate(const fr_program *program, const fr_cost_model *costs,
                      const fr_cluster *cluster, const fr_placement *placement,
                      fr_timeline *timeline, fr_prediction *out, fr_err *err)
{
    int64_t n_ranks = fr_plan_world(&program->plan);
    if (placement != NULL && placement->node_of_rank != NULL)
        return simulate_placed(program, costs, cluster, placement->node_of_rank,
                               timeline, out, err);
    int32_t *one_node = calloc((size_t)n_ranks, sizeof *one_node);
    if (one_node == NULL)
        return fr_fail_no_memory(err);
    fr_status status =
        simulate_placed(program, costs, cluster, one_node, timeline, out, err);
    free(one_node);
    return status;
}
