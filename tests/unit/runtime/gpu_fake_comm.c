/*
 * gpu_fake_comm.c: communicators of a fake's devices.  Members meet, every
 * one reads all the others' operands, and they meet again before anybody
 * writes.  Members that do not ask for the same thing are a failure.
 */
#include "core/system/clock.h"
#include "runtime/comm/collective_engine.h"
#include "tests/unit/runtime/gpu_fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct gpu_fake_group gpu_fake_group;
struct gpu_fake_group {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int n, n_there, n_members; /* n_members: handles that exist */
    uint64_t n_meetings;
    const void *brought[GPU_FAKE_MAX_RANKS]; /* by those who are there */
    const void *seen[GPU_FAKE_MAX_RANKS];    /* of the last meeting */
    _Atomic bool has_failed;
    bool is_broken; /* a member was aborted: its operands may be gone */
    /* Children of the split under way, by colour's first member. */
    gpu_fake_group *children[GPU_FAKE_MAX_RANKS];
};

struct fr_gpu_comm {
    fr_gpu *gpu;
    gpu_fake *fake;
    gpu_fake_group *group;
    int position;
    double timeout_s;
    fr_gpu_choices *choices;
    _Atomic bool is_aborted;
    fr_gpu_comm *next; /* of those that were aborted */
};

static gpu_fake_group *make_group(int n)
{
    gpu_fake_group *group = calloc(1, sizeof *group);

    if (group == NULL)
        return NULL;
    pthread_mutex_init(&group->mutex, NULL);
    pthread_cond_init(&group->changed, NULL);
    group->n = n;
    return group;
}

/* false: this member was aborted, or `limit_s` passed. */
static bool meet(fr_gpu_comm *comm, const void *brought, double limit_s)
{
    gpu_fake_group *group = comm->group;
    double until_s = fr_clock_s() + limit_s;

    pthread_mutex_lock(&group->mutex);
    uint64_t number = group->n_meetings;
    group->brought[comm->position] = brought;
    if (++group->n_there == group->n) {
        memcpy((void *)group->seen, (const void *)group->brought,
               sizeof group->seen);
        group->n_there = 0;
        group->n_meetings++;
        pthread_cond_broadcast(&group->changed);
    }
    while (group->n_meetings == number && !atomic_load(&comm->is_aborted) &&
           fr_clock_s() < until_s) {
        struct timespec limit;
        (void)clock_gettime(CLOCK_REALTIME, &limit);
        limit.tv_nsec += 20000000;
        limit.tv_sec += limit.tv_nsec / 1000000000;
        limit.tv_nsec %= 1000000000;
        (void)pthread_cond_timedwait(&group->changed, &group->mutex, &limit);
    }
    bool has_met = group->n_meetings != number;
    if (!has_met)
        group->n_there--; /* comes no more */
    pthread_mutex_unlock(&group->mutex);
    return has_met;
}

static void version(char *out, size_t n)
{
    (void)snprintf(out, n, "2.28.9");
}

static fr_status make_id(void *context, fr_gpu_comm_id *out, fr_err *err)
{
    (void)context;
    (void)err;
    memset(out, 0x5a, sizeof *out);
    return FR_OK;
}

/* Bytes of the device's memory. */
static uint64_t own_bytes(const fr_gpu_comm *comm)
{
    const gpu_fake_law *law = comm->fake->law;

    if (law == NULL)
        return 0;
    if (comm->group == comm->fake->world)
        return law->world_bytes;
    return comm->group->n == 2 ? law->pair_bytes : law->group_bytes;
}

static fr_status join(fr_gpu *gpu, gpu_fake_group *group, int position,
                      double timeout_s, fr_gpu_comm **out, fr_err *err)
{
    fr_gpu_comm *comm = calloc(1, sizeof *comm);

    if (comm == NULL)
        return fr_fail_no_memory(err);
    comm->gpu = gpu;
    comm->fake = gpu->fake;
    comm->group = group;
    comm->position = position;
    comm->timeout_s = timeout_s;
    pthread_mutex_lock(&group->mutex);
    group->n_members++;
    pthread_mutex_unlock(&group->mutex);
    gpu->n_bytes += own_bytes(comm);
    *out = comm;
    return FR_OK;
}

static void destroy(fr_gpu_comm *comm)
{
    if (comm == NULL)
        return;
    gpu_fake_group *group = comm->group;
    gpu_fake *fake = comm->fake;
    if (fake->law != NULL)
        comm->gpu->n_bytes -= own_bytes(comm);
    pthread_mutex_lock(&fake->mutex);
    pthread_mutex_lock(&group->mutex);
    bool is_last = --group->n_members == 0;
    pthread_mutex_unlock(&group->mutex);
    if (is_last && fake->world == group)
        fake->world = NULL;
    pthread_mutex_unlock(&fake->mutex);
    free(comm);
    if (!is_last)
        return;
    pthread_mutex_destroy(&group->mutex);
    pthread_cond_destroy(&group->changed);
    free(group);
}

static fr_status init(fr_gpu *gpu, const fr_gpu_comm_id *id, int32_t world,
                      int32_t rank, bool has_choices, double timeout_s,
                      fr_gpu_comm **out, fr_err *err)
{
    fr_gpu_comm *comm = NULL;

    if (has_choices)
        atomic_fetch_add(&gpu->fake->n_tuned, 1);
    if (id->bytes[0] != 0x5a)
        return fr_fail(err, FR_FAILURE, "an id that nobody made");
    if (!gpu->has_library && gpu->fake->law != NULL)
        gpu->n_bytes += gpu->fake->law->library_bytes;
    gpu->has_library = true;
    pthread_mutex_lock(&gpu->fake->mutex);
    if (gpu->fake->world == NULL)
        gpu->fake->world = make_group(world);
    fr_status status = join(gpu, gpu->fake->world, rank, timeout_s, &comm, err);
    pthread_mutex_unlock(&gpu->fake->mutex);
    if (status == FR_OK && !meet(comm, NULL, timeout_s)) {
        status = fr_fail(err, FR_FAILURE, "not everybody came");
        destroy(comm);
    }
    if (status == FR_OK)
        *out = comm;
    return status;
}

static fr_status split(fr_gpu_comm *parent, int32_t colour, int32_t key,
                       fr_gpu_choices *choices, fr_gpu_comm **out, fr_err *err)
{
    const int32_t mine[2] = {colour, key};
    gpu_fake_group *group = parent->group;
    int n = 0, position = 0, first = -1;
    fr_status status = FR_OK;

    if (!meet(parent, mine, parent->timeout_s))
        return fr_fail(err, FR_FAILURE, "not everybody came to a split");
    for (int i = 0; i < group->n; i++) {
        const int32_t *other = group->seen[i];
        if (other[0] != colour)
            continue;
        first = first < 0 ? i : first;
        position += other[1] < key || (other[1] == key && i < parent->position);
        n++;
    }
    *out = NULL;
    if (colour != FR_GPU_NO_COLOUR) {
        pthread_mutex_lock(&group->mutex);
        if (group->children[first] == NULL)
            group->children[first] = make_group(n);
        pthread_mutex_unlock(&group->mutex);
        status = join(parent->gpu, group->children[first], position,
                      parent->timeout_s, out, err);
    }
    if (*out != NULL)
        (*out)->choices = choices;
    (void)meet(parent, NULL, parent->timeout_s);
    if (parent->position == 0)
        memset((void *)group->children, 0, sizeof group->children);
    (void)meet(parent, NULL, parent->timeout_s);
    return status;
}

static void abort_comm(fr_gpu_comm *comm)
{
    if (comm == NULL)
        return;
    gpu_fake *fake = comm->fake;
    atomic_store(&comm->is_aborted, true);
    atomic_fetch_add(&fake->n_aborted, 1);
    pthread_mutex_lock(&fake->mutex);
    comm->next = fake->aborted;
    fake->aborted = comm;
    pthread_mutex_unlock(&fake->mutex);
    pthread_mutex_lock(&comm->group->mutex);
    comm->group->is_broken = true;
    pthread_cond_broadcast(&comm->group->changed);
    pthread_mutex_unlock(&comm->group->mutex);
}

static fr_status check(fr_gpu_comm *comm, fr_err *err)
{
    if (!atomic_load(&comm->group->has_failed))
        return FR_OK;
    return fr_fail(err, FR_FAILURE, "remote process exited");
}

static bool is_alike(const fr_gpu_exchange *a, const fr_gpu_exchange *b)
{
    bool is_pair = a->op == FR_OP_SEND || a->op == FR_OP_RECV;

    if (a->dtype != b->dtype || a->n != b->n || a->is_max != b->is_max)
        return false;
    return is_pair ? a == b || (a->op != b->op &&
                                (b->op == FR_OP_SEND || b->op == FR_OP_RECV))
                   : a->op == b->op;
}

/* Copies each part of dst from the member and the element that have it. */
static void gather(const gpu_fake_group *group, const fr_gpu_exchange *own,
                   int position, unsigned char *result, uint64_t n_bytes)
{
    uint64_t part = n_bytes / (uint64_t)group->n;

    for (int i = 0; i < group->n; i++) {
        const fr_gpu_exchange *other = group->seen[i];
        const unsigned char *src = gpu_fake_real(other->src);
        if (own->op == FR_OP_ALL_GATHER)
            memcpy(result + (uint64_t)i * part, src, part);
        else if (own->op == FR_OP_ALL_TO_ALL)
            memcpy(result + (uint64_t)i * part, src + (uint64_t)position * part,
                   part);
        else if (own->op == FR_OP_BROADCAST && i == own->peer)
            memcpy(result, src, n_bytes);
        else if (own->op == FR_OP_SHIFT &&
                 i == (position + group->n - 1) % group->n)
            memcpy(result, src, n_bytes);
        else if (own->op == FR_OP_RECV && i != position)
            memcpy(result, src, n_bytes);
    }
}

static void compute(const fr_gpu_comm *comm, const fr_gpu_exchange *own,
                    unsigned char *result, uint64_t n_bytes)
{
    const gpu_fake_group *group = comm->group;
    const void *sources[GPU_FAKE_MAX_RANKS];
    bool is_scatter = own->op == FR_OP_REDUCE_SCATTER;
    uint64_t part = is_scatter ? own->n / (uint64_t)group->n : own->n;
    uint64_t first =
        is_scatter ? n_bytes / (uint64_t)group->n * (uint64_t)comm->position
                   : 0;

    if (own->op != FR_OP_ALL_REDUCE && !is_scatter) {
        gather(group, own, comm->position, result, n_bytes);
        return;
    }
    for (int i = 0; i < group->n; i++) {
        const fr_gpu_exchange *other = group->seen[i];
        sources[i] = (unsigned char *)gpu_fake_real(other->src) + first;
    }
    fr_reduce(result, sources, group->n, part, own->dtype, own->is_max);
}

/* Under the group's lock, so that nobody is aborted meanwhile. */
static bool take_part(fr_gpu_comm *comm, const fr_gpu_exchange *own,
                      unsigned char *result, uint64_t n_bytes)
{
    gpu_fake_group *group = comm->group;
    bool is_well = true;

    pthread_mutex_lock(&group->mutex);
    for (int i = 0; !group->is_broken && i < group->n; i++)
        is_well = is_well && is_alike(own, group->seen[i]);
    if (!group->is_broken && is_well)
        compute(comm, own, result, n_bytes);
    is_well = is_well || group->is_broken;
    pthread_mutex_unlock(&group->mutex);
    return is_well;
}

/* Ends for all so long after the last one has come. */
static void spend_exchange(gpu_fake_task *task)
{
    fr_gpu_comm *comm = task->a;
    const gpu_fake_group *group = comm->group;
    const fr_gpu_exchange *own = &task->exchange;
    const double no_limit_s = 1e6;
    double begin_s = 0;

    if (!meet(comm, task->stream, no_limit_s))
        return;
    for (int i = 0; i < group->n; i++) {
        const gpu_fake_stream *other = group->seen[i];
        begin_s = other->now_s > begin_s ? other->now_s : begin_s;
    }
    if (!meet(comm, NULL, no_limit_s))
        return;
    task->stream->now_s =
        begin_s +
        comm->fake->law->exchange_s(
            own->op, group->n, (double)(own->n * fr_dtype_bytes(own->dtype)));
}

static void run_exchange(gpu_fake_task *task)
{
    fr_gpu_comm *comm = task->a;
    fr_gpu_exchange *own = &task->exchange;
    uint64_t n_bytes = own->n * fr_dtype_bytes(own->dtype);
    const double no_limit_s = 1e6;

    if (gpu_fake_is_hit(comm->gpu, own->op)) {
        if (comm->gpu->fake->fault.kind == GPU_FAKE_LIBRARY_FAILS)
            atomic_store(&comm->group->has_failed, true);
        gpu_fake_hang(task->stream);
        return;
    }
    if (comm->fake->law != NULL) {
        spend_exchange(task);
        return;
    }
    if (!meet(comm, own, no_limit_s))
        return;
    unsigned char *result = malloc(n_bytes + 1);
    if (!take_part(comm, own, result, n_bytes))
        gpu_fake_fail(comm->gpu, "members ask for different things");
    else if (meet(comm, own, no_limit_s) && own->dst != NULL)
        memcpy(gpu_fake_real(own->dst), result,
               own->op == FR_OP_REDUCE_SCATTER
                   ? n_bytes / (uint64_t)comm->group->n
                   : n_bytes);
    free(result);
    atomic_fetch_add(&comm->gpu->n_exchanged, 1);
}

/* This library can do rings alone. */
static void count_choice(fr_gpu_comm *comm, fr_op op)
{
    for (int i = 0; comm->choices != NULL && i < comm->choices->n; i++) {
        fr_gpu_choice *choice = &comm->choices->at[i];
        if (choice->op != op)
            continue;
        atomic_fetch_add(&choice->n_asked, 1);
        if (choice->algorithm == FR_COLLECTIVE_RING ||
            choice->algorithm == FR_COLLECTIVE_AUTO)
            atomic_fetch_add(&choice->n_granted, 1);
    }
}

static fr_status enqueue(fr_gpu_comm *comm, const fr_gpu_exchange *exchange,
                         fr_gpu_stream stream, fr_err *err)
{
    gpu_fake_task task = {.stream = stream,
                          .run = run_exchange,
                          .a = comm,
                          .exchange = *exchange};

    atomic_fetch_add(&comm->gpu->fake->n_exchanges, 1);
    count_choice(comm, exchange->op);
    atomic_store(&comm->gpu->is_exchanging, true);
    comm->gpu->n_pushed += comm->gpu->capture == NULL;
    return gpu_fake_push(&task, err);
}

/* 7.3 us and 2.7 GB/s. */
static fr_status estimate(fr_gpu_comm *comm, const fr_gpu_exchange *list,
                          size_t n, fr_gpu_stream stream, double *out_s,
                          fr_err *err)
{
    (void)comm;
    (void)stream;
    (void)err;
    for (size_t i = 0; i < n; i++)
        out_s[i] = 7.3e-6 +
                   (double)(list[i].n * fr_dtype_bytes(list[i].dtype)) / 2.7e9;
    return FR_OK;
}

static fr_status lend(fr_gpu_comm *comm, void *memory, uint64_t n_bytes,
                      fr_err *err)
{
    (void)memory;
    (void)n_bytes;
    (void)err;
    atomic_fetch_add(&comm->gpu->fake->n_lent, 1);
    return FR_OK;
}

const fr_gpu_comm_driver gpu_fake_comm_driver = {
    .name = "fake",
    .version = version,
    .make_id = make_id,
    .init = init,
    .split = split,
    .destroy = destroy,
    .abort = abort_comm,
    .check = check,
    .enqueue = enqueue,
    .estimate = estimate,
    .register_memory = lend,
};

void gpu_fake_release(gpu_fake *fake)
{
    while (fake->aborted != NULL) {
        fr_gpu_comm *comm = fake->aborted;
        fake->aborted = comm->next;
        destroy(comm);
    }
    pthread_mutex_destroy(&fake->mutex);
}
