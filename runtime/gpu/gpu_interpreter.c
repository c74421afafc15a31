/*
 * gpu_interpreter.c: a step from the host's side: what goes in, the launch or
 * the graph, what comes out.
 */
#include "core/system/clock.h"
#include "runtime/gpu/gpu_interpreter_state.h"

#include <math.h>
#include <string.h>

/* Adam's bias correction; a moment that never moves has none. */
static float moment_scale(double beta, int64_t i_step)
{
    double left = 1 - pow(beta, (double)(i_step + 1));

    return left > 0 ? (float)(1 / left) : 1;
}

static void set_step(fr_gpu_interpreter *it, int64_t i_step)
{
    const fr_job *job = &it->rank.program->job;

    it->i_step = i_step;
    it->pinned->step =
        (fr_cuda_step){.i_step = i_step,
                       .learning_rate = (float)fr_job_lr(job, i_step),
                       .moment1_scale = moment_scale(job->beta1, i_step),
                       .moment2_scale = moment_scale(job->beta2, i_step)};
    for (int lane = 0; lane < FR_LANE_N; lane++)
        it->pinned->marks[lane].word = it->pinned->marks[lane].call = 0;
}

static fr_status load_input(fr_gpu_interpreter *it, int64_t i_step,
                            unsigned char *out, fr_err *err)
{
    fr_instr_walk at = {.program = it->rank.program,
                        .rank_program = it->rank.rank_program};

    while (fr_instr_walk_next(&at)) {
        const uint64_t n_bytes = fr_gpu_input_room(it, at.instr);
        if (n_bytes == 0)
            continue;
        FR_TRY(fr_rank_load(&it->rank, at.call, at.instr, i_step, out, err));
        out += n_bytes;
    }
    return FR_OK;
}

static fr_status give_input(fr_gpu_interpreter *it, fr_err *err)
{
    if (it->i_ahead != it->i_step)
        return load_input(it, it->i_step, it->input, err);
    memcpy(it->input, it->input_ahead, it->input_bytes);
    return FR_OK;
}

/* Loads what the next step reads while the device works.  A failure is
 * ignored here and shows when it is needed. */
static void load_ahead(fr_gpu_interpreter *it)
{
    fr_err ignored;

    it->i_ahead = -1;
    if (it->input_bytes > 0 &&
        load_input(it, it->i_step + 1, it->input_ahead, &ignored) == FR_OK)
        it->i_ahead = it->i_step + 1;
}

/* Kernels have chosen their algorithms in the first step. */
static bool is_for_graph(const fr_gpu_interpreter *it)
{
    bool can_capture = it->links == NULL || it->links->ops->is_capturable;

    return can_capture && !it->options.is_launched && !it->is_traced &&
           !it->is_noted && it->n_steps > 0;
}

static fr_status capture(fr_gpu_interpreter *it, fr_err *err)
{
    fr_gpu_stream stream = it->lanes[FR_LANE_COMPUTE].stream;
    fr_gpu_graph *graph = NULL;
    fr_err ignored;

    FR_TRY(it->driver->capture_begin(it->gpu, stream, err));
    it->is_captured = true;
    fr_status status = fr_gpu_enqueue_step(it, err);
    it->is_captured = false;
    fr_status ended = it->driver->capture_end(it->gpu, stream, &graph,
                                              status == FR_OK ? err : &ignored);
    if (status != FR_OK || ended != FR_OK) {
        it->driver->graph_destroy(it->gpu, graph);
        fr_err_prefix(err, "capture of a step (FORERUN_GPU_GRAPH=0 does "
                           "without)");
        return status != FR_OK ? status : ended;
    }
    it->graph = graph;
    return FR_OK;
}

static fr_status launch(fr_gpu_interpreter *it, fr_err *err)
{
    const fr_gpu_lane *main = &it->lanes[FR_LANE_COMPUTE];

    if (is_for_graph(it)) {
        if (it->graph == NULL)
            FR_TRY(capture(it, err));
        FR_TRY(it->driver->graph_launch(it->gpu, it->graph, main->stream, err));
    } else {
        FR_TRY(fr_gpu_enqueue_step(it, err));
    }
    return it->driver->event_record(it->gpu, main->end, main->stream, err);
}

static fr_status record_span(fr_gpu_interpreter *it, uint32_t i_call,
                             uint32_t i, fr_err *err)
{
    const fr_segment *segment = fr_rank_segment(&it->rank, i_call);
    uint32_t i_instr = segment->first_instr + i;
    fr_gpu_event **trace = it->trace + 2 * (it->calls[i_call].first_instr + i);
    double begin_s = 0, taken_s = 0;

    FR_TRY(
        it->driver->event_elapsed(it->gpu, it->begin, trace[0], &begin_s, err));
    FR_TRY(
        it->driver->event_elapsed(it->gpu, trace[0], trace[1], &taken_s, err));
    it->spans[it->n_spans++] = (fr_span){
        .rank = (int32_t)it->place.transport->rank,
        .lane = segment->lane,
        .op = it->rank.program->instrs[i_instr].op,
        .i_call = i_call,
        .i_instr = i_instr,
        .step = (int32_t)it->i_step,
        .begin_ps = llround(begin_s * 1e12),
        .end_ps = llround((begin_s + taken_s) * 1e12),
    };
    return FR_OK;
}

static fr_status record_spans(fr_gpu_interpreter *it, fr_err *err)
{
    for (int lane = 0; lane < FR_LANE_N; lane++)
        for (uint32_t i = 0; i < it->rank.rank_program->n_calls; i++) {
            const fr_segment *segment = fr_rank_segment(&it->rank, i);
            uint32_t n = segment->lane == lane ? segment->n_instrs : 0;
            for (uint32_t k = 0; k < n && it->n_spans < it->cap_spans; k++)
                FR_TRY(record_span(it, i, k, err));
        }
    return FR_OK;
}

static fr_status run_step(fr_gpu_interpreter *it, double *step_s, fr_err *err)
{
    FR_TRY(give_input(it, err));
    int64_t begin_ns = fr_clock_ns();
    FR_TRY(launch(it, err));
    load_ahead(it);
    FR_TRY(fr_gpu_watch(it, err));
    FR_TRY(fr_gpu_finish_step(it, err));
    *step_s = (double)(fr_clock_ns() - begin_ns) * 1e-9;
    return it->is_traced ? record_spans(it, err) : FR_OK;
}

void fr_gpu_abandon(fr_gpu_interpreter *it)
{
    /* First: what an abort lets go on may get to a step on the host. */
    fr_gpu_stop_host_steps(it);
    if (it->links != NULL)
        it->links->ops->abort(it->links);
    it->is_abandoned = true;
    it->driver->abandon(it->gpu);
}

fr_status fr_gpu_interpreter_step(fr_gpu_interpreter *it, int64_t i_step,
                                  bool is_traced, double *step_s, fr_err *err)
{
    it->is_traced = is_traced && it->trace != NULL;
    it->is_noted = it->options.watch.on_gradients != NULL && it->n_steps == 0;
    set_step(it, i_step);
    if (it->options.watch.on_status != NULL)
        it->options.watch.on_status(it->options.watch.context, i_step, 0, 0);
    fr_status status = run_step(it, step_s, err);
    if (status == FR_OK)
        it->n_steps++;
    else
        fr_gpu_abandon(it);
    return status;
}

const fr_step_scalars *fr_gpu_interpreter_scalars(const fr_gpu_interpreter *it)
{
    return &it->pinned->scalars;
}

size_t fr_gpu_interpreter_copy_spans(const fr_gpu_interpreter *it, fr_span *out)
{
    if (out != NULL && it->n_spans > 0)
        memcpy(out, it->spans, it->n_spans * sizeof *out);
    return it->n_spans;
}
