/* simulate.c: a replay as a prediction: time, interval, parts, memory, cost. */
#include "sim/predict/simulate.h"

#include "core/system/clock.h"
#include "cost_models/gpu/gpu_price.h"
#include "cost_models/storage/input_cost.h"
#include "plan/decide/plan_fields.h"
#include "program/ir/step_breakdown.h"
#include "sim/predict/learned_step.h"
#include "sim/predict/predict_busy.h"
#include "sim/predict/predict_memory.h"
#include "sim/replay/replay_spans.h"
#include "spec/cluster/cluster_power.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* 90 % of a normal distribution lie within this many standard deviations. */
static const double z_90 = 1.6448536269514722;

/*
 * By how much all kernels of one GPU are off together: the mean errors of the
 * 92 tables of kernels that the costs are fitted to, root mean square 7.3 %
 * (`make fit-gpu`), and 1.5 % between two GPUs of a type
 * (fr_cluster_default_jitter_frac).  The same for all that a step does on them,
 * so it does not average out; a profile of these very GPUs has it in its
 * numbers.
 */
static const double gpu_rel_err = 0.075;

/*
 * By how much intervals of GPUs must be wider than the errors of the costs
 * for nine in ten of the published runs to lie inside: what the model of a
 * step leaves out is in none of them.  From all sources that `make validate`
 * scores; where each one is judged by the scale of the others, 88.6 % of
 * their rows lie inside (docs/validation.md).  The centre stays.
 */
static const double gpu_interval_scale = 1.62;

/*
 * The relative error of a step of forerun's own runtime on GPUs with a profile,
 * in addition to the errors of its costs: the root mean square of the logarithm
 * of predicted over measured, of the twelve plans that an H200 trained
 * (docs/validation.md).  Of the eleven that can be validated nine lie inside
 * the interval that the other ten make.
 */
static const double own_rel_err = 0.081;

/* Up to so many ranks are simulated separately for a timeline: as many as run
 * on CPUs. */
enum { MOST_RANKS_SHOWN = 64 };

/* Adds the error of instruction or run `rec` to the errors by key, in
 * seconds. */
static void add_errors(const fr_skip *skip, const fr_replay_record *rec,
                       double *by_key_s)
{
    double seconds = fr_skip_seconds(skip, rec->start_ps, rec->end_ps);
    if (rec->run == NULL) {
        by_key_s[rec->error_key] += seconds * (double)rec->rel_err;
        return;
    }
    for (size_t i = 0; i < rec->run->errors.n; i++)
        by_key_s[rec->run->errors.items[i].key] +=
            seconds * rec->run->errors.items[i].ps /
            fmax((double)rec->run->solo_ps, 1.0);
}

/*
 * Walks the critical path back.  Errors of one operation on one type of
 * device, and of one kind of link, are the same in all their instances; those
 * of others are independent: seconds on the path times relative error add up
 * by key, their squares over keys.
 */
static fr_status path_error(const fr_replay *replay, double *sigma_s,
                            fr_cost_source *worst, fr_err *err)
{
    size_t n_keys =
        2 + replay->context->layout.cluster->n_devices * (size_t)FR_OP_N;
    double *by_key_s = calloc(n_keys, sizeof *by_key_s), sum = 0;
    if (by_key_s == NULL)
        return fr_fail_no_memory(err);
    *worst = FR_COST_MEASURED;
    for (uint32_t i = replay->last; i != FR_REPLAY_NONE;
         i = replay->records.items[i].cause) {
        const fr_replay_record *rec = &replay->records.items[i];
        add_errors(&replay->skip, rec, by_key_s);
        if (rec->source > *worst)
            *worst = (fr_cost_source)rec->source;
    }
    for (size_t i = 0; i < n_keys; i++)
        sum += by_key_s[i] * by_key_s[i];
    free(by_key_s);
    *sigma_s = sqrt(sum);
    return FR_OK;
}

/* Flop of a segment, and those of them that recompute. */
static double segment_flop(const fr_program *program, const fr_segment *s,
                           double *recomputed)
{
    double sum = 0;
    *recomputed = 0;
    for (uint32_t k = 0; k < s->n_instrs; k++) {
        const fr_instr *instr = &program->instrs[s->first_instr + k];
        if (fr_step_part_of(instr) != FR_PART_COMPUTE)
            continue;
        sum += (double)fr_instr_flop(instr);
        if (s->role == FR_SEGMENT_RECOMPUTE ||
            instr->flags & FR_INSTR_RECOMPUTED)
            *recomputed += (double)fr_instr_flop(instr);
    }
    return sum;
}

/* Executed flop over those that a step without recompute executes. */
static fr_status recompute_ratio(const fr_program *program, double *ratio,
                                 fr_err *err)
{
    double all = 0, recomputed = 0;
    double *flop;
    FR_TRY_CALLOC(flop, 2 * program->n_segments + 1, err);
    for (uint32_t i = 0; i < program->n_segments; i++)
        flop[2 * i] =
            segment_flop(program, &program->segments[i], &flop[2 * i + 1]);
    for (uint32_t c = 0; c < program->n_rank_programs; c++) {
        const fr_rank_program *rank_program = &program->rank_programs[c];
        const fr_repeat *repeat = &rank_program->repeat;
        for (uint32_t i = 0; i < rank_program->n_calls; i++) {
            uint32_t s = rank_program->calls[i].i_segment;
            bool is_repeated = i >= repeat->first_call &&
                               i < repeat->first_call + repeat->period;
            double n = 1 + (is_repeated ? (double)program->n_repeats : 0);
            all += n * flop[2 * s];
            recomputed += n * flop[2 * s + 1];
        }
    }
    free(flop);
    *ratio = all > recomputed ? all / (all - recomputed) : 1.0;
    return FR_OK;
}

/* Ranks of the node that holds a rank. */
static int64_t ranks_beside(const fr_rank_layout *layout, int32_t rank)
{
    return fr_rank_groups_size(&layout->node, layout->node.group_of_rank[rank]);
}

/*
 * Dense peak of what the ranks occupy, all together: the datasheet's, on CPUs
 * the measured rate of large matrix products where there is one (a nominal
 * clock says little); 0: unknown.
 */
static double peak_flops(const fr_replay_context *context,
                         const fr_cost_model *costs)
{
    const fr_rank_layout *layout = &context->layout;
    const fr_plan *plan = &layout->program->plan;
    double measured = fr_cost_measured_flops(costs, plan->n_threads);
    double sum = 0;
    for (int32_t c = 0; c < context->fold.n_colors; c++) {
        int32_t rank = context->fold.rank_of_color[c];
        const fr_device_type *device = fr_cluster_device(
            layout->cluster, fr_rank_layout_node(layout, rank));
        double peak =
            fr_device_peak_flops(device, fr_dtype_name(plan->precision));
        if (device->kind == FR_DEVICE_CPU && device->n_cores > 0) {
            double n_cores = (double)device->n_cores;
            double n_wanted =
                plan->n_threads * (double)ranks_beside(layout, rank);
            peak = measured > 0 ? measured
                                : peak * fmin(1, plan->n_threads / n_cores);
            peak *= fmin(1, n_cores / n_wanted);
        }
        sum += peak * context->fold.n_alike[c];
    }
    return sum;
}

static fr_status predict_rates(const fr_replay_context *context,
                               const fr_cost_model *costs, fr_prediction *out,
                               fr_err *err)
{
    const fr_program *program = context->layout.program;
    const fr_job *job = &program->job;
    double tokens = (double)(job->global_batch * job->seq), ratio;
    double peak = peak_flops(context, costs);
    out->samples_per_s = (double)job->global_batch / out->expected_step_s;
    out->tokens_per_s = out->samples_per_s * (double)fr_model_sample_tokens(
                                                 &program->model, job->seq);
    if (peak <= 0)
        return FR_OK;
    FR_TRY(recompute_ratio(program, &ratio, err));
    out->mfu = tokens *
               fr_model_flop_per_token(&program->model, job->seq, false) /
               out->expected_step_s / peak;
    out->mfu_causal = tokens *
                      fr_model_flop_per_token(&program->model, job->seq, true) /
                      out->expected_step_s / peak;
    out->hfu = out->mfu * ratio;
    return FR_OK;
}

static void predict_cost(const fr_replay_context *context, fr_prediction *out)
{
    const fr_rank_layout *layout = &context->layout;
    const fr_cluster *cluster = layout->cluster;
    const fr_plan *plan = &layout->program->plan;
    int64_t n_nodes = layout->n_nodes * layout->n_copies;
    const double hours =
        out->expected_step_s * (double)layout->program->job.n_steps / 3600;
    out->cost.usd_per_hour = fr_cluster_usd_per_h(cluster, n_nodes, false);
    out->cost.usd_total = out->cost.usd_per_hour * hours;
    out->cost.kwh = fr_cluster_training_w(cluster, n_nodes, fr_plan_world(plan),
                                          plan->n_threads, out->busy_frac) *
                    hours / 1000;
}

/* The parts of the step, of a program that has all rounds that were replayed.
 */
static fr_status predict_parts(const fr_replay *replay, fr_prediction *out,
                               fr_err *err)
{
    fr_program program = *replay->context->layout.program;
    double step_s;
    fr_timeline spans;
    if (replay->records.n == 0)
        return FR_OK;
    if (replay->n_rounds > 0)
        FR_TRY(fr_replay_unroll_last(replay, &program, err));
    program.plan = replay->context->layout.grid; /* of the spans */
    fr_timeline_init(&spans);
    fr_status status = fr_replay_spans_of_last(replay, &spans, err);
    if (status == FR_OK)
        status = fr_step_breakdown(&program, &spans, 0, out->breakdown_s,
                                   &step_s, err);
    fr_timeline_release(&spans);
    if (replay->n_rounds > 0)
        fr_replay_unroll_release(replay, &program);
    return status;
}

/* Samples are read and decoded a step ahead: what that takes beyond a step is
 * waited for, however fast a stack is at the rest. */
static void predict_input(const fr_replay *replay, fr_prediction *out)
{
    const fr_rank_layout *layout = &replay->context->layout;
    const fr_program *program = layout->program;
    const fr_input_cost cost =
        fr_input_cost_of(&program->model, &program->job, layout->cluster,
                         out->memory.host_bytes);
    const double input_s = fr_input_s(&cost, &program->job, &program->plan,
                                      layout->n_nodes * layout->n_copies);
    if (!(input_s > 0))
        return;
    out->breakdown_s[FR_PART_DATA] += fmax(input_s - out->step_s, 0);
    out->step_s = fmax(out->step_s, input_s);
    out->step_s_p5 = fmax(out->step_s_p5, input_s);
    out->step_s_p95 = fmax(out->step_s_p95, input_s);
}

static fr_status predict_time(const fr_replay *replay, fr_prediction *out,
                              fr_err *err)
{
    double sigma_s;
    fr_cost_source worst;
    out->step_s = 1e-12 * (double)replay->makespan_ps;
    FR_TRY(predict_parts(replay, out, err));
    FR_TRY(path_error(replay, &sigma_s, &worst, err));
    const fr_cluster *cluster = replay->context->layout.cluster;
    const fr_replay_costs *costs = &replay->context->costs;
    const fr_kernel_set kernels = costs->program->plan.execution.kernels;
    const bool is_gpu = fr_cluster_device(cluster, 0)->kind == FR_DEVICE_GPU;
    /* forerun's own runtime on GPUs that were measured. */
    const bool is_own =
        is_gpu && kernels == FR_KERNELS_OWN &&
        fr_gpu_prices_is_measured(fr_cost_gpu_prices(costs->model), 0);
    if (is_own)
        sigma_s = hypot(sigma_s, own_rel_err * out->step_s);
    else if (is_gpu)
        sigma_s =
            gpu_interval_scale * hypot(sigma_s, gpu_rel_err * out->step_s);
    if (out->step_s > 0) { /* errors multiply: the logarithm is normal */
        double spread = exp(z_90 * sigma_s / out->step_s);
        out->step_s_p5 = out->step_s / spread;
        out->step_s_p95 = out->step_s * spread;
    }
    out->source = fr_cost_source_name(worst);
    fr_learned_step_apply(
        fr_cost_stack(costs->model), costs->program,
        fr_cluster_device(cluster,
                          fr_rank_layout_node(&replay->context->layout, 0)),
        out);
    predict_input(replay, out);
    const double factor =
        fr_expected_step_factor(costs->model, cluster, kernels);
    out->expected_step_s = out->step_s * factor;
    out->step_s_p5 *= factor;
    out->step_s_p95 *= factor;
    return FR_OK;
}

/* Makes the prediction of a finished replay; *timeline (may be NULL) is
 * replaced. */
static fr_status predict(const fr_replay *replay, const fr_cost_model *costs,
                         fr_timeline *timeline, fr_prediction *out, fr_err *err)
{
    fr_timeline spans;
    FR_TRY(predict_time(replay, out, err));
    FR_TRY(predict_rates(replay->context, costs, out, err));
    FR_TRY(fr_predict_busy(replay->context, out, err));
    predict_cost(replay->context, out);
    out->sim.events = replay->n_events;
    out->sim.ranks_simulated = replay->n_simulated;
    out->sim.ranks_total =
        fr_plan_world(&replay->context->layout.program->plan);
    if (timeline == NULL)
        return FR_OK;
    fr_timeline_init(&spans);
    fr_status status = fr_replay_spans(replay, &spans, err);
    if (status != FR_OK) {
        fr_timeline_release(&spans);
        return status;
    }
    fr_timeline_release(timeline);
    *timeline = spans;
    return FR_OK;
}

/* Memory comes first: what does not fit may not have to be replayed. */
static fr_status replay_all(const fr_cost_model *costs,
                            const fr_simulate_options *options,
                            fr_replay *replay, fr_prediction *out,
                            bool *is_unsteady, fr_err *err)
{
    FR_TRY(fr_predict_memory(replay->context, costs, out, err));
    if (options->stops_without_room && !out->memory.fits)
        return FR_OK;
    FR_TRY(fr_replay_finish(replay, err));
    FR_TRY(fr_log_check(options->log, err));
    *is_unsteady = replay->is_unsteady;
    return replay->is_unsteady
               ? FR_OK
               : predict(replay, costs, options->timeline, out, err);
}

/* Simulates the whole program if a program repeats but its replay does not. */
static fr_status simulate_whole(const fr_program *program,
                                const fr_cost_model *costs,
                                const fr_cluster *cluster,
                                const fr_placement *placement,
                                const fr_simulate_options *options,
                                fr_prediction *out, fr_err *err)
{
    fr_placement all = *placement;
    fr_program *whole;
    all.is_whole = true;
    fr_status status = fr_lower(&program->model, &program->job, &program->plan,
                                &all, &whole, err);
    if (status == FR_INPUT && options->is_bounded) /* too many calls */
        err->status = status = FR_INFEASIBLE;
    if (status != FR_OK)
        return status;
    status = fr_simulate(whole, costs, cluster, &all, options, out, err);
    fr_program_destroy(whole);
    return status;
}

fr_status fr_simulate(const fr_program *program, const fr_cost_model *costs,
                      const fr_cluster *cluster, const fr_placement *placement,
                      const fr_simulate_options *options, fr_prediction *out,
                      fr_err *err)
{
    static const fr_simulate_options usual = {0};
    double begin_s = fr_clock_s();
    int64_t n_ranks = fr_plan_world(&program->plan);
    const int32_t *nodes = placement != NULL ? placement->node_of_rank : NULL;
    int32_t *one_node = NULL;
    fr_prediction result = {0};
    fr_replay replay = {0};
    bool is_unsteady = false;
    options = options != NULL ? options : &usual;
    if (nodes == NULL) {
        FR_TRY_CALLOC(one_node, (size_t)n_ranks, err);
        nodes = one_node;
    }
    bool is_cpu = fr_cluster_device(cluster, nodes[0])->kind == FR_DEVICE_CPU;
    fr_replay_options chosen = {.is_unfolded = options->timeline != NULL &&
                                               is_cpu &&
                                               n_ranks <= MOST_RANKS_SHOWN};
    if (options->replay != NULL)
        chosen = *options->replay;
    chosen.is_whole = chosen.is_whole || options->timeline != NULL;
    chosen.is_bounded = options->is_bounded;
    chosen.log = options->log;
    fr_status status = fr_replay_prepare(program, costs, cluster, nodes,
                                         &chosen, &replay, err);
    if (status == FR_OK) {
        status =
            replay_all(costs, options, &replay, &result, &is_unsteady, err);
        fr_replay_release(&replay);
    }
    if (status == FR_OK && is_unsteady)
        status = simulate_whole(program, costs, cluster, placement, options,
                                &result, err);
    if (status == FR_OK) {
        result.sim.wall_s = fr_clock_s() - begin_s;
        *out = result;
    }
    free(one_node);
    return status;
}
