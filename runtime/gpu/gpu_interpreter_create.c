/* gpu_interpreter_create.c: makes everything that stepping needs, beforehand.
 */
#include "plan/decide/grid.h"
#include "runtime/gpu/gpu_interpreter_state.h"

#include <stdlib.h>
#include <string.h>

/* Counts of a rank program: rooms to make. */
static void count_instr(fr_gpu_interpreter *it, const fr_instr *instr,
                        uint8_t lane)
{
    it->n_instrs++;
    if (fr_op_class_of((fr_op)instr->op) == FR_OP_CLASS_COMPUTE) {
        it->lanes[lane].has_kernels = true;
        it->lanes[lane].has_device_kernels |= !fr_gpu_is_on_host(instr);
        it->n_host_steps += fr_gpu_is_on_host(instr);
    }
    if (fr_instr_communicates(instr))
        it->lanes[lane].n_comms++;
    it->input_bytes += fr_gpu_input_room(it, instr);
}

static void lay_out_call(fr_gpu_interpreter *it, uint32_t i_call)
{
    const fr_segment *segment = fr_rank_segment(&it->rank, i_call);

    it->calls[i_call].first_instr = it->n_instrs;
    it->calls[i_call].input_bytes = it->input_bytes;
    it->calls[i_call].i_host = it->n_host_steps;
    for (uint32_t i = 0; i < segment->n_instrs; i++)
        count_instr(it, &it->rank.program->instrs[segment->first_instr + i],
                    segment->lane);
}

static fr_status lay_out_comms(fr_gpu_interpreter *it, fr_err *err)
{
    fr_instr_walk at = {.program = it->rank.program,
                        .rank_program = it->rank.rank_program};

    for (int lane = 0; lane < FR_LANE_N; lane++) {
        fr_gpu_lane *own = &it->lanes[lane];
        FR_TRY_CALLOC(own->comms, own->n_comms + 1, err);
        own->n_comms = 0;
    }
    while (fr_instr_walk_next(&at)) {
        fr_gpu_lane *own = &it->lanes[at.segment->lane];
        if (fr_instr_communicates(at.instr) && it->links != NULL &&
            it->links->groups.routes[at.i_instr].i_split >= 0)
            own->comms[own->n_comms++] =
                (fr_gpu_lane_comm){at.i_call, at.i_instr};
    }
    return FR_OK;
}

/*
 * A lane runs in order, so of several calls of another lane the last one is
 * enough, and none that the own lane has waited for before.
 */
static void find_waits(fr_gpu_interpreter *it, uint32_t i_call,
                       uint32_t seen[FR_LANE_N][FR_LANE_N], uint32_t *n_waits)
{
    const fr_call *call = &it->rank.rank_program->calls[i_call];
    uint8_t lane = fr_rank_segment(&it->rank, i_call)->lane;
    uint32_t last[FR_LANE_N] = {0}; /* call + 1 */

    for (uint32_t i = 0; i < call->n_deps; i++) {
        uint32_t dep = it->rank.rank_program->deps[call->first_dep + i];
        uint8_t other = fr_rank_segment(&it->rank, dep)->lane;
        if (other != lane && dep + 1 > last[other])
            last[other] = dep + 1;
    }
    it->calls[i_call].first_wait = *n_waits;
    for (int other = 0; other < FR_LANE_N; other++) {
        if (last[other] <= seen[lane][other])
            continue;
        seen[lane][other] = last[other];
        it->waits[(*n_waits)++] = last[other] - 1;
    }
    it->calls[i_call].n_waits = *n_waits - it->calls[i_call].first_wait;
}

static fr_status lay_out(fr_gpu_interpreter *it, fr_err *err)
{
    uint32_t seen[FR_LANE_N][FR_LANE_N] = {{0}}, n_waits = 0;
    uint32_t n_calls = it->rank.rank_program->n_calls;

    FR_TRY_CALLOC(it->calls, n_calls + 1, err);
    FR_TRY_CALLOC(it->waits, it->rank.rank_program->n_deps + 1, err);
    for (uint32_t i = 0; i < n_calls; i++) {
        lay_out_call(it, i);
        find_waits(it, i, seen, &n_waits);
    }
    return lay_out_comms(it, err);
}

static fr_status create_events(fr_gpu_interpreter *it, fr_err *err)
{
    const fr_gpu_driver *driver = it->driver;

    FR_TRY(driver->event_create(it->gpu, true, &it->begin, err));
    for (uint32_t i = 0; i < it->rank.rank_program->n_calls; i++) {
        const fr_gpu_call *call = &it->calls[i];
        for (uint32_t k = 0; k < call->n_waits; k++) {
            fr_gpu_event **done =
                &it->calls[it->waits[call->first_wait + k]].done;
            if (*done == NULL)
                FR_TRY(driver->event_create(it->gpu, false, done, err));
        }
    }
    if (it->options.trace_steps == 0)
        return FR_OK;
    it->trace = calloc(2 * (size_t)it->n_instrs + 1, sizeof(fr_gpu_event *));
    it->cap_spans = (size_t)it->n_instrs * (size_t)it->options.trace_steps;
    it->spans = malloc((it->cap_spans + 1) * sizeof *it->spans);
    if (it->trace == NULL || it->spans == NULL)
        return fr_fail_no_memory(err);
    for (uint32_t i = 0; i < 2 * it->n_instrs; i++)
        FR_TRY(driver->event_create(it->gpu, true, &it->trace[i], err));
    return FR_OK;
}

/* Kernels of communication wait for others: they go first. */
static fr_status create_streams(fr_gpu_interpreter *it, fr_err *err)
{
    bool is_used[FR_LANE_N] = {[FR_LANE_COMPUTE] = true};

    for (uint32_t i = 0; i < it->rank.rank_program->n_calls; i++)
        is_used[fr_rank_segment(&it->rank, i)->lane] = true;
    for (int lane = 0; lane < FR_LANE_N; lane++) {
        fr_gpu_lane *own = &it->lanes[lane];
        if (!is_used[lane])
            continue;
        FR_TRY(it->driver->stream_create(it->gpu, lane != FR_LANE_COMPUTE,
                                         &own->stream, err));
        FR_TRY(it->driver->event_create(it->gpu, false, &own->end, err));
        FR_TRY(it->driver->event_create(it->gpu, false, &own->paced, err));
    }
    return FR_OK;
}

static fr_status create_memory(fr_gpu_interpreter *it, fr_err *err)
{
    const fr_gpu_driver *driver = it->driver;
    uint64_t host_bytes = it->rank.rank_program->host_bytes;
    void *pinned = NULL, *step = NULL, *input = NULL, *store = NULL;
    void *host_steps = NULL;

    FR_TRY(driver->alloc_host(it->gpu, sizeof *it->pinned, &pinned, err));
    it->pinned = pinned;
    memset(pinned, 0, sizeof *it->pinned);
    FR_TRY(driver->alloc(it->gpu, sizeof *it->device_step, &step, err));
    it->device_step = step;
    FR_TRY(driver->alloc_host(it->gpu, it->input_bytes + 1, &input, err));
    it->input = input;
    it->input_ahead = malloc(it->input_bytes + 1);
    if (it->input_ahead == NULL)
        return fr_fail_no_memory(err);
    FR_TRY(driver->alloc_host(it->gpu, host_bytes + 1, &store, err));
    it->host = store;
    memset(store, 0, host_bytes); /* the optimizer's state begins so */
    FR_TRY(driver->alloc_host(it->gpu,
                              (it->n_host_steps + 1) * sizeof *it->host_steps,
                              &host_steps, err));
    it->host_steps = host_steps;
    if (it->options.watch.on_gradients == NULL)
        return FR_OK;
    it->gradients =
        malloc(it->rank.rank_program->n_parameters * sizeof(float) + 1);
    return it->gradients != NULL ? FR_OK : fr_fail_no_memory(err);
}

/* One set for each stream: a workspace serves one launch at a time. */
static fr_status create_kernels(fr_gpu_interpreter *it, fr_err *err)
{
    const fr_gpu_system *system = it->place.system;

    for (int lane = 0; lane < FR_LANE_N; lane++)
        if (it->lanes[lane].has_device_kernels &&
            system->kernels_create != NULL)
            FR_TRY(system->kernels_create(&it->lanes[lane].kernels, err));
    return FR_OK;
}

static fr_status prepare(fr_gpu_interpreter *it, fr_err *err)
{
    FR_TRY(fr_gpu_program_check(it->place.system, it->rank.program, err));
    FR_TRY(lay_out(it, err));
    FR_TRY(create_streams(it, err));
    FR_TRY(create_events(it, err));
    FR_TRY(create_memory(it, err));
    return create_kernels(it, err);
}

fr_status fr_gpu_interpreter_create(const fr_gpu_place *place,
                                    fr_gpu_links *links, fr_data *data,
                                    const fr_gpu_options *options,
                                    fr_gpu_interpreter **out, fr_err *err)
{
    fr_gpu_interpreter *it;

    FR_TRY_CALLOC(it, 1, err);
    it->place = *place;
    it->driver = place->system->driver;
    it->gpu = place->gpu;
    it->links = links;
    it->options = *options;
    it->i_ahead = -1;
    fr_status status = fr_rank_context_init(
        place->program, place->transport->rank, data, &it->rank, err);
    if (status == FR_OK)
        status = prepare(it, err);
    if (status != FR_OK) {
        fr_gpu_interpreter_destroy(it);
        return status;
    }
    *out = it;
    return FR_OK;
}

static void destroy_events(fr_gpu_interpreter *it)
{
    const fr_gpu_driver *driver = it->driver;

    for (uint32_t i = 0;
         it->calls != NULL && i < it->rank.rank_program->n_calls; i++)
        driver->event_destroy(it->gpu, it->calls[i].done);
    for (uint32_t i = 0; it->trace != NULL && i < 2 * it->n_instrs; i++)
        driver->event_destroy(it->gpu, it->trace[i]);
    driver->event_destroy(it->gpu, it->begin);
    for (int lane = 0; lane < FR_LANE_N; lane++) {
        driver->event_destroy(it->gpu, it->lanes[lane].end);
        driver->event_destroy(it->gpu, it->lanes[lane].paced);
        free(it->lanes[lane].comms);
    }
}

void fr_gpu_interpreter_destroy(fr_gpu_interpreter *it)
{
    if (it == NULL)
        return;
    const fr_gpu_driver *driver = it->driver;
    /* Streams first: what is on them may still use the rest. */
    for (int lane = 0; lane < FR_LANE_N; lane++)
        driver->stream_destroy(it->gpu, it->lanes[lane].stream);
    driver->graph_destroy(it->gpu, it->graph);
    destroy_events(it);
    for (int lane = 0; lane < FR_LANE_N; lane++)
        if (it->lanes[lane].kernels != NULL && !it->is_abandoned)
            it->place.system->kernels_destroy(it->lanes[lane].kernels);
    driver->free_host(it->gpu, it->pinned);
    driver->free_host(it->gpu, it->input);
    driver->free_host(it->gpu, it->host);
    driver->free_host(it->gpu, it->host_steps);
    driver->free(it->gpu, it->device_step);
    free(it->input_ahead);
    free(it->gradients);
    free((void *)it->trace);
    free(it->spans);
    free(it->calls);
    free(it->waits);
    free(it);
}

static bool has_way(const fr_gpu_system *system, const fr_instr *instr)
{
    if (fr_op_class_of((fr_op)instr->op) != FR_OP_CLASS_COMPUTE)
        return true;
    if (fr_gpu_is_on_host(instr))
        return instr->op == FR_OP_OPT_STEP;
    return system->kernels[instr->op] != NULL;
}

fr_status fr_gpu_program_check(const fr_gpu_system *system,
                               const fr_program *program, fr_err *err)
{
    for (uint32_t i = 0; i < program->n_instrs; i++) {
        const fr_instr *instr = &program->instrs[i];
        if (has_way(system, instr))
            continue;
        return fr_fail(err, FR_INPUT,
                       "there is no kernel yet for %s%s on backend %s; choose "
                       "a plan without it, or --backend cpu",
                       fr_op_name((fr_op)instr->op),
                       instr->flags & FR_INSTR_HOST ? " on the host" : "",
                       system->name);
    }
    return FR_OK;
}
