/*
 * gpu_links_comm.c: communication through communicators of the system's
 * library: one of the world, the others split from it.
 */
#include "plan/collective/collective.h"
#include "plan/decide/grid.h"
#include "runtime/gpu_comm/gpu_collectives.h"
#include "runtime/gpu_comm/gpu_links.h"

#include <stdlib.h>
#include <string.h>

typedef struct comm_links {
    fr_gpu_links base;
    const fr_gpu_comm_driver *driver;
    fr_gpu_comm *world;
    fr_gpu_comm **comms;     /* [n_splits]; NULL: takes no part */
    fr_gpu_choices *choices; /* [n_splits] */
    fr_gpu_collective *collectives;
    size_t n_collectives;
} comm_links;

static void comm_destroy(fr_gpu_links *links)
{
    comm_links *self = (comm_links *)links;

    for (uint32_t i = 0; self->comms != NULL && i < links->groups.n_splits; i++)
        self->driver->destroy(self->comms[i]);
    self->driver->destroy(self->world);
    free((void *)self->comms);
    free(self->choices);
    free(self->collectives);
    fr_gpu_groups_release(&links->groups);
    free(self);
}

static void comm_abort(fr_gpu_links *links)
{
    comm_links *self = (comm_links *)links;

    for (uint32_t i = 0; self->comms != NULL && i < links->groups.n_splits;
         i++) {
        self->driver->abort(self->comms[i]);
        self->comms[i] = NULL;
    }
    self->driver->abort(self->world);
    self->world = NULL;
}

static fr_status comm_check(fr_gpu_links *links, fr_err *err)
{
    comm_links *self = (comm_links *)links;

    for (uint32_t i = 0; i < links->groups.n_splits; i++)
        if (self->comms[i] != NULL)
            FR_TRY(self->driver->check(self->comms[i], err));
    return FR_OK;
}

static void comm_publish(fr_gpu_links *links, fr_axis axis, fr_lane lane,
                         uint64_t n_begun)
{
    const fr_transport *transport = links->place.transport;
    fr_shm_control *own = transport->control[transport->rank];

    atomic_store_explicit(&own->sync[axis][lane].count, n_begun,
                          memory_order_release);
}

/* Only the members of this node can be asked how far they are. */
static int64_t comm_waits_for(fr_gpu_links *links, uint32_t i_instr,
                              fr_lane lane)
{
    const fr_transport *transport = links->place.transport;
    const fr_instr *instr = &links->place.program->instrs[i_instr];
    const fr_gpu_route *route = &links->groups.routes[i_instr];
    int64_t *ranks = malloc((size_t)transport->world * sizeof *ranks);
    int64_t position = 0, absent = route->peer_rank;

    if (ranks == NULL || absent >= 0) {
        free(ranks);
        return absent;
    }
    int64_t n = fr_plan_group(&links->place.program->plan, transport->rank,
                              (fr_axis)instr->axis, ranks, &position);
    uint64_t own = atomic_load(
        &transport->control[transport->rank]->sync[instr->axis][lane].count);
    for (int64_t i = 0; absent < 0 && i < n; i++) {
        fr_shm_control *control = transport->control[ranks[i]];
        if (control != NULL &&
            atomic_load(&control->sync[instr->axis][lane].count) < own)
            absent = ranks[i];
    }
    free(ranks);
    return absent;
}

static fr_status comm_enqueue(fr_gpu_links *links, uint32_t i_instr,
                              fr_lane lane, void *src, void *dst,
                              fr_gpu_stream stream, fr_err *err)
{
    comm_links *self = (comm_links *)links;
    const fr_instr *instr = &links->place.program->instrs[i_instr];
    const fr_gpu_route *route = &links->groups.routes[i_instr];
    fr_gpu_exchange exchange = {.op = (fr_op)instr->op,
                                .dtype = (fr_dtype)instr->dtype,
                                .is_max = (instr->flags & FR_INSTR_MAX) != 0,
                                .n = (uint64_t)instr->comm.n,
                                .peer = route->peer,
                                .src = src,
                                .dst = dst};

    (void)lane;
    fr_status status = self->driver->enqueue(self->comms[route->i_split],
                                             &exchange, stream, err);
    if (status != FR_OK)
        fr_err_prefix(err, "rank %lld: %s over %s",
                      (long long)links->place.transport->rank,
                      fr_op_name((fr_op)instr->op),
                      fr_axis_name((fr_axis)instr->axis));
    return status;
}

/* Rank 0 makes the name of the world's communicator, all get it. */
static fr_status share_id(comm_links *self, fr_gpu_comm_id *id, fr_err *err)
{
    const fr_gpu_place *place = &self->base.place;
    fr_transport *transport = place->transport;
    fr_status status = FR_OK;

    memset(id, 0, sizeof *id);
    if (transport->rank == 0)
        status = self->driver->make_id(place->system->context, id, err);
    if (status != FR_OK)
        fr_err_prefix(err, "rank 0");
    FR_TRY(fr_transport_agree(transport, status, false, err));
    return fr_transport_share(transport, id, sizeof *id, err);
}

/*
 * Makes the connections of a communicator now: they are made at the first
 * operation, by calls that wait for the other side, and a step may meet its
 * partners in another order.
 */
static fr_status warm_up(comm_links *self, const fr_gpu_split *split,
                         fr_gpu_comm *comm, fr_gpu_stream stream, void *scratch,
                         fr_err *err)
{
    fr_gpu_exchange exchange = {.op = FR_OP_ALL_REDUCE,
                                .dtype = FR_DTYPE_F32,
                                .n = 1,
                                .peer = -1,
                                .src = scratch,
                                .dst = scratch};

    if (split->is_pair) {
        exchange.op = split->key == 0 ? FR_OP_SEND : FR_OP_RECV;
        exchange.peer = split->key == 0;
    }
    return self->driver->enqueue(comm, &exchange, stream, err);
}

static fr_status make_comms(comm_links *self, fr_gpu_stream stream,
                            void *scratch, fr_err *err)
{
    const fr_gpu_place *place = &self->base.place;
    const fr_gpu_groups *groups = &self->base.groups;
    uint64_t slab_bytes =
        fr_program_of_rank(place->program, place->transport->rank)->slab_bytes;

    for (uint32_t i = 0; i < groups->n_splits; i++) {
        const fr_gpu_split *split = &groups->splits[i];
        FR_TRY(self->driver->split(self->world, split->colour, split->key,
                                   &self->choices[i], &self->comms[i], err));
        if (self->comms[i] == NULL)
            continue;
        FR_TRY(self->driver->register_memory(self->comms[i], place->slab,
                                             slab_bytes, err));
        FR_TRY(warm_up(self, split, self->comms[i], stream, scratch, err));
    }
    return FR_OK;
}

/* Nothing is carried out, so any address is as good as the operands'. */
static fr_gpu_exchange exchange_of(const comm_links *self,
                                   const fr_gpu_collective *at)
{
    const fr_gpu_place *place = &self->base.place;
    const fr_instr *instr = &place->program->instrs[at->i_instr];

    return (fr_gpu_exchange){.op = (fr_op)instr->op,
                             .dtype = (fr_dtype)instr->dtype,
                             .is_max = (instr->flags & FR_INSTR_MAX) != 0,
                             .n = (uint64_t)instr->comm.n,
                             .peer = self->base.groups.routes[at->i_instr].peer,
                             .src = place->slab,
                             .dst = place->slab};
}

/* Asks communicator by communicator, in the order in which all ranks made them.
 * */
static fr_status estimate(comm_links *self, fr_gpu_stream stream, fr_err *err)
{
    size_t n_all = self->n_collectives;
    fr_gpu_exchange *list = calloc(n_all + 1, sizeof *list);
    double *seconds = calloc(n_all + 1, sizeof *seconds);
    fr_status status =
        list != NULL && seconds != NULL ? FR_OK : fr_fail_no_memory(err);

    for (uint32_t i = 0; status == FR_OK && i < self->base.groups.n_splits;
         i++) {
        size_t n = 0;
        for (size_t k = 0; k < n_all; k++)
            if (self->collectives[k].i_split == i)
                list[n++] = exchange_of(self, &self->collectives[k]);
        if (n == 0)
            continue;
        status = self->driver->estimate(self->comms[i], list, n, stream,
                                        seconds, err);
        for (size_t k = n_all; status == FR_OK && k-- > 0;)
            if (self->collectives[k].i_split == i)
                self->collectives[k].run.estimate_s = seconds[--n];
    }
    free(list);
    free(seconds);
    return status;
}

static size_t comm_describe(fr_gpu_links *links, fr_collective_note *out)
{
    comm_links *self = (comm_links *)links;

    for (size_t i = 0; out != NULL && i < self->n_collectives; i++) {
        const fr_gpu_collective *at = &self->collectives[i];
        const fr_gpu_choices *choices = &self->choices[at->i_split];
        out[i] = at->run;
        for (int k = 0; k < choices->n; k++) {
            if (choices->at[k].op != at->run.op)
                continue;
            out[i].n_asked = atomic_load(&choices->at[k].n_asked);
            out[i].n_granted = atomic_load(&choices->at[k].n_granted);
        }
    }
    return self->n_collectives;
}

/* Makes the communicators, on a stream and a word of memory of its own. */
static fr_status connect(comm_links *self, fr_err *err)
{
    const fr_gpu_place *place = &self->base.place;
    const fr_gpu_driver *driver = place->system->driver;
    fr_transport *transport = place->transport;
    fr_gpu_stream stream = NULL;
    fr_gpu_event *end = NULL;
    void *scratch = NULL;
    fr_gpu_comm_id id;
    bool is_done = false;
    fr_status status = FR_OK;
    fr_waiter waiter;

    FR_TRY(share_id(self, &id, err));
    FR_TRY(self->driver->init(place->gpu, &id, (int32_t)transport->world,
                              (int32_t)transport->rank,
                              fr_collective_has_choice(&place->program->plan),
                              place->timeout_s, &self->world, err));
    FR_TRY_GOTO(status, driver->alloc(place->gpu, 256, &scratch, err), out);
    FR_TRY_GOTO(status, driver->stream_create(place->gpu, true, &stream, err),
                out);
    FR_TRY_GOTO(status, driver->event_create(place->gpu, false, &end, err),
                out);
    FR_TRY_GOTO(status, driver->fill(place->gpu, stream, scratch, 0, 256, err),
                out);
    FR_TRY_GOTO(status, make_comms(self, stream, scratch, err), out);
    FR_TRY_GOTO(status, driver->event_record(place->gpu, end, stream, err),
                out);
    fr_waiter_init(&waiter, &transport->idle_bell);
    waiter.sleep_ns = 100000;
    while (status == FR_OK && !is_done) {
        fr_waiter_pause(&waiter);
        status = driver->event_query(place->gpu, end, &is_done, err);
        if (status == FR_OK && !is_done &&
            fr_waiter_waited_s(&waiter) > place->timeout_s)
            status = fr_fail(err, FR_FAILURE,
                             "rank %lld: no connection to all ranks after "
                             "%.3g s",
                             (long long)transport->rank, place->timeout_s);
    }
    /* A communicator is split only while nothing is under way on it. */
    if (status == FR_OK && place->is_estimated)
        status = estimate(self, stream, err);
out:
    if (status != FR_OK)
        comm_abort(&self->base);
    driver->stream_destroy(place->gpu, stream);
    driver->event_destroy(place->gpu, end);
    driver->free(place->gpu, scratch);
    return status;
}

static const fr_gpu_links_ops comm_ops = {
    .is_capturable = true,
    .destroy = comm_destroy,
    .enqueue = comm_enqueue,
    .check = comm_check,
    .publish = comm_publish,
    .waits_for = comm_waits_for,
    .describe = comm_describe,
    .abort = comm_abort,
};

/* Derives from the program alone which communicators there are. */
static fr_status prepare(comm_links *self, fr_err *err)
{
    const fr_program *program = self->base.place.program;
    int64_t rank = self->base.place.transport->rank;
    const fr_rank_program *rank_program = fr_program_of_rank(program, rank);
    fr_gpu_groups *groups = &self->base.groups;

    FR_TRY(fr_gpu_groups_init(program, rank, groups, err));
    FR_TRY_CALLOC(self->comms, groups->n_splits + 1, err);
    FR_TRY_CALLOC(self->choices, groups->n_splits + 1, err);
    for (uint32_t i = 0; i < groups->n_splits; i++)
        fr_gpu_choices_fill(program, rank_program, groups, i,
                            &self->choices[i]);
    return fr_gpu_collectives_list(program, rank_program, groups,
                                   &self->collectives, &self->n_collectives,
                                   err);
}

fr_status fr_gpu_links_comm_create(const fr_gpu_place *place,
                                   fr_gpu_links **out, fr_err *err)
{
    if (place->system->comm == NULL)
        return fr_fail(err, FR_FAILURE,
                       "several ranks need NCCL, which was left out of this "
                       "build; apt-get install libnccl-dev and make again");
    comm_links *self;
    FR_TRY_CALLOC(self, 1, err);
    self->base.ops = &comm_ops;
    self->base.place = *place;
    self->driver = place->system->comm;
    fr_status status = prepare(self, err);
    if (status == FR_OK)
        status = connect(self, err);
    if (status != FR_OK) {
        comm_destroy(&self->base);
        return status;
    }
    *out = &self->base;
    return FR_OK;
}
