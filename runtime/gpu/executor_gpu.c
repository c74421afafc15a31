/* executor_gpu.c: a rank on its GPU, from the choice of the device on. */
#include "runtime/gpu/executor_gpu.h"

#include "core/system/clock.h"
#include "kernels/cpu/kernels_cpu.h"
#include "plan/codec/optimizer.h"
#include "plan/decide/grid.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/weight_parts.h"
#include "runtime/gpu/gpu_choice.h"
#include "runtime/gpu/gpu_interpreter.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct gpu_executor {
    fr_executor base;
    const fr_gpu_setup *setup;
    const fr_gpu_driver *driver;
    fr_gpu *gpu;
    unsigned char *slab;
    fr_gpu_links *links;
    fr_gpu_interpreter *interpreter;
    fr_gpu_stream stream; /* of copies between steps */
    fr_gpu_event *copied;
    unsigned char *piece; /* page-locked, FR_STATE_PIECE_BYTES */
    uint64_t peak_bytes;
    bool has_copies;     /* of the parameters, on the host */
    pthread_t heartbeat; /* shows that this process lives */
    bool has_heartbeat;
    _Atomic bool should_stop;
} gpu_executor;

/* Set-up and checkpoints of large models take longer than a supervisor waits
 * for a sign of life. */
static void *beat(void *context)
{
    const double every_s = 0.1;
    gpu_executor *self = context;

    while (!atomic_load(&self->should_stop)) {
        atomic_store_explicit(self->base.beat_ns, fr_clock_ns(),
                              memory_order_relaxed);
        fr_sleep_s(every_s);
    }
    return NULL;
}

static fr_status start_heartbeat(gpu_executor *self, fr_err *err)
{
    if (self->base.beat_ns == NULL)
        return FR_OK;
    if (pthread_create(&self->heartbeat, NULL, beat, self) != 0)
        return fr_fail(err, FR_FAILURE, "no thread for signs of life");
    self->has_heartbeat = true;
    return FR_OK;
}

static void gpu_close(fr_executor *executor)
{
    gpu_executor *self = (gpu_executor *)executor;

    /* Streams end before the communicators that their work is in. */
    fr_gpu_interpreter_destroy(self->interpreter);
    fr_gpu_links_destroy(self->links);
    if (self->gpu != NULL) {
        self->driver->stream_destroy(self->gpu, self->stream);
        self->driver->event_destroy(self->gpu, self->copied);
        self->driver->free_host(self->gpu, self->piece);
        self->driver->free(self->gpu, self->slab);
        self->driver->close(self->gpu);
    }
    atomic_store(&self->should_stop, true);
    if (self->has_heartbeat)
        (void)pthread_join(self->heartbeat, NULL);
}

/* Copies of what is offloaded wait in streams for other ranks, and may hold up
 * those that these wait for (gpu_links_host.c). */
static fr_status check_shared(const fr_plan *plan, fr_err *err)
{
    if (!plan->is_optimizer_offloaded && plan->activation_offload_frac <= 0)
        return FR_OK;
    return fr_fail(err, FR_INPUT,
                   "ranks that share a GPU cannot offload to the host: their "
                   "copies would wait for each other; leave --share-gpu or the "
                   "offload out");
}

static fr_status gpu_open(fr_executor *executor, fr_err *err)
{
    gpu_executor *self = (gpu_executor *)executor;
    fr_transport *transport = executor->transport;

    self->setup = executor->backend->context;
    self->driver = self->setup->system->driver;
    bool is_mirrored = self->setup->is_shared && transport->world > 1;
    if (is_mirrored)
        FR_TRY(check_shared(&executor->program->plan, err));
    FR_TRY(transport->ops->open_slab(
        transport, is_mirrored ? executor->rank_program->slab_bytes : 0, err));
    return fr_gpu_choose(self->setup->system, transport, self->setup->is_shared,
                         &self->gpu, err);
}

/* ---- memory -------------------------------------------------------------- */

/* The memory in use by all processes, as the driver reports it. */
static fr_status used_bytes(gpu_executor *self, uint64_t *out, fr_err *err)
{
    uint64_t free_bytes = 0, total_bytes = 0;

    FR_TRY(self->driver->memory(self->gpu, &free_bytes, &total_bytes, err));
    *out = total_bytes - free_bytes;
    if (*out > self->peak_bytes)
        self->peak_bytes = *out;
    return FR_OK;
}

static fr_status wait_copied(gpu_executor *self, fr_err *err)
{
    fr_waiter waiter;
    bool is_done = false;

    FR_TRY(
        self->driver->event_record(self->gpu, self->copied, self->stream, err));
    fr_waiter_init(&waiter, &self->base.transport->idle_bell);
    waiter.sleep_ns = 50000;
    for (;;) {
        FR_TRY(
            self->driver->event_query(self->gpu, self->copied, &is_done, err));
        if (is_done)
            return FR_OK;
        fr_waiter_pause(&waiter);
    }
}

/* Returns the memory at an offset: on the device, or behind the slab on the
 * host. */
static unsigned char *memory_at(const gpu_executor *self, uint64_t offset_bytes)
{
    const uint64_t slab_bytes = self->base.rank_program->slab_bytes;

    return offset_bytes < slab_bytes
               ? self->slab + offset_bytes
               : fr_gpu_interpreter_host(self->interpreter) +
                     (offset_bytes - slab_bytes);
}

static fr_status gpu_view(fr_executor *executor, uint64_t offset_bytes,
                          uint64_t n_bytes, const void **out, fr_err *err)
{
    gpu_executor *self = (gpu_executor *)executor;

    FR_TRY(self->driver->copy(self->gpu, self->stream, self->piece,
                              memory_at(self, offset_bytes), n_bytes, err));
    FR_TRY(wait_copied(self, err));
    *out = self->piece;
    return FR_OK;
}

static fr_status gpu_store(fr_executor *executor, uint64_t offset_bytes,
                           uint64_t n_bytes, const void *bytes, fr_err *err)
{
    gpu_executor *self = (gpu_executor *)executor;

    memcpy(self->piece, bytes, n_bytes);
    FR_TRY(self->driver->copy(self->gpu, self->stream,
                              memory_at(self, offset_bytes), self->piece,
                              n_bytes, err));
    return wait_copied(self, err);
}

static fr_status store_all(gpu_executor *self, uint64_t offset_bytes,
                           uint64_t n_bytes, const void *bytes, fr_err *err)
{
    for (uint64_t at = 0; at < n_bytes; at += FR_STATE_PIECE_BYTES) {
        uint64_t n = n_bytes - at;
        FR_TRY(gpu_store(&self->base, offset_bytes + at,
                         n < FR_STATE_PIECE_BYTES ? n : FR_STATE_PIECE_BYTES,
                         (const unsigned char *)bytes + at, err));
    }
    return FR_OK;
}

static fr_status gpu_set_up(fr_executor *executor, fr_err *err)
{
    gpu_executor *self = (gpu_executor *)executor;
    uint64_t slab_bytes = executor->rank_program->slab_bytes, before_bytes = 0;
    void *slab = NULL, *piece = NULL;

    FR_TRY(start_heartbeat(self, err));
    FR_TRY(fr_gpu_program_check(self->setup->system, executor->program, err));
    FR_TRY(used_bytes(self, &before_bytes, err));
    fr_status status = self->driver->alloc(self->gpu, slab_bytes, &slab, err);
    if (status != FR_OK) {
        fr_err_prefix(err, "%llu MiB for the slab, %llu MiB are in use",
                      (unsigned long long)(slab_bytes >> 20),
                      (unsigned long long)(before_bytes >> 20));
        return status;
    }
    self->slab = slab;
    FR_TRY(
        self->driver->alloc_host(self->gpu, FR_STATE_PIECE_BYTES, &piece, err));
    self->piece = piece;
    FR_TRY(self->driver->stream_create(self->gpu, false, &self->stream, err));
    return self->driver->event_create(self->gpu, false, &self->copied, err);
}

static fr_status clear(gpu_executor *self, fr_err *err)
{
    FR_TRY(self->driver->fill(self->gpu, self->stream, self->slab, 0,
                              self->base.rank_program->slab_bytes, err));
    return wait_copied(self, err);
}

static fr_status gpu_connect(fr_executor *executor, fr_err *err)
{
    gpu_executor *self = (gpu_executor *)executor;
    fr_transport *transport = executor->transport;
    fr_gpu_place place = {.system = self->setup->system,
                          .gpu = self->gpu,
                          .transport = transport,
                          .program = executor->program,
                          .slab = self->slab,
                          .is_estimated = self->setup->is_estimated,
                          .timeout_s = executor->options->timeout_s};
    fr_gpu_options options = {.trace_steps = executor->options->trace_steps,
                              .is_launched = self->setup->is_launched,
                              .watch = executor->watch};
    uint64_t now_bytes = 0;

    FR_TRY(clear(self, err));
    if (transport->world > 1 && self->setup->is_shared)
        FR_TRY(fr_gpu_links_host_create(&place, &self->links, err));
    else if (transport->world > 1)
        FR_TRY(fr_gpu_links_comm_create(&place, &self->links, err));
    FR_TRY(fr_gpu_interpreter_create(&place, self->links, executor->data,
                                     &options, &self->interpreter, err));
    FR_TRY(fr_gpu_interpreter_tune(self->interpreter, err));
    FR_TRY(clear(self, err));
    FR_TRY(used_bytes(self, &now_bytes, err));
    executor->baseline_bytes = now_bytes - executor->rank_program->slab_bytes;
    return FR_OK;
}

/* ---- the model before the first step ------------------------------------- */

/* Rounds to the nearest, ties to even; weights are never NaN. */
static uint16_t round_to_bf16(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* float32 copies of 16-bit weights, behind the moments of each range. */
static fr_status fill_master(gpu_executor *self, const float *weights,
                             fr_err *err)
{
    const fr_executor *base = &self->base;
    const fr_program *program = base->program;
    uint64_t n_moments =
        (uint64_t)fr_optimizers[program->job.optimizer]->n_moments;
    int64_t *ranks = malloc((size_t)base->transport->world * sizeof *ranks);
    fr_status status = ranks != NULL ? FR_OK : fr_fail_no_memory(err);
    fr_instr_walk at = {.program = program, .rank_program = base->rank_program};

    while (status == FR_OK && fr_instr_walk_next(&at)) {
        const fr_instr *instr = at.instr;
        uint64_t n = (uint64_t)instr->range.n;
        int64_t position = 0;
        if (instr->op != FR_OP_OPT_STEP)
            continue;
        if ((instr->flags & FR_INSTR_SHARD) != 0)
            (void)fr_plan_group(&program->plan, base->transport->rank,
                                (fr_axis)instr->axis, ranks, &position);
        status =
            store_all(self,
                      fr_call_base_bytes(base->rank_program, at.call,
                                         instr->ref[FR_OPT_STEP_OPT].space) +
                          instr->ref[FR_OPT_STEP_OPT].offset_bytes +
                          n_moments * n * sizeof(float),
                      n * sizeof *weights,
                      weights + fr_instr_range_first(instr, position), err);
    }
    free(ranks);
    return status;
}

/* Stores the parts of the flat list that are the rank's. */
static fr_status store_parts(gpu_executor *self, const void *list,
                             size_t element_bytes, fr_err *err)
{
    const fr_executor *base = &self->base;
    fr_weight_parts parts = {0};
    fr_status status =
        fr_weight_parts_list(base->program, base->transport->rank, &parts, err);

    for (size_t i = 0; status == FR_OK && i < parts.n; i++) {
        const fr_weight_part *part = &parts.items[i];
        status = store_all(
            self, part->offset_bytes, (uint64_t)part->n * element_bytes,
            (const unsigned char *)list + (size_t)part->first * element_bytes,
            err);
    }
    fr_vec_release(&parts);
    return status;
}

static fr_status store_weights(gpu_executor *self, const float *weights,
                               fr_err *err)
{
    const fr_rank_program *rank_program = self->base.rank_program;
    const fr_plan *plan = &self->base.program->plan;
    uint64_t n = rank_program->n_parameters;

    if (fr_plan_storage_dtype(plan) == FR_DTYPE_F32)
        return store_parts(self, weights, sizeof *weights, err);
    if (fr_plan_storage_dtype(plan) != FR_DTYPE_BF16)
        return fr_fail(err, FR_INPUT,
                       "weights in %s cannot be made; choose precision f32, "
                       "tf32 or bf16",
                       fr_dtype_name(fr_plan_storage_dtype(plan)));
    uint16_t *narrow = malloc(n * sizeof *narrow + 1);
    if (narrow == NULL)
        return fr_fail_no_memory(err);
    for (uint64_t i = 0; i < n; i++)
        narrow[i] = round_to_bf16(weights[i]);
    fr_status status = store_parts(self, narrow, sizeof *narrow, err);
    free(narrow);
    if (status == FR_OK && fr_plan_has_master(plan))
        status = fill_master(self, weights, err);
    return status;
}

/* A plan's threads are meant for its steps; here all cores are idle, and the
 * weights do not depend on the number of threads. */
static int fill_threads(const fr_executor *executor)
{
    long n_local = (long)executor->transport->n_local;
    long n = sysconf(_SC_NPROCESSORS_ONLN) / (n_local > 0 ? n_local : 1);
    int n_threads = executor->program->plan.n_threads;

    return n > n_threads ? (int)n : n_threads;
}

static fr_status gpu_fill(fr_executor *executor, fr_err *err)
{
    gpu_executor *self = (gpu_executor *)executor;
    const fr_program *program = executor->program;
    const fr_rank_program *rank_program = executor->rank_program;

    if (rank_program->n_tensors == 0)
        return FR_OK;
    const fr_tensor_place place =
        fr_tensor_place_of(&program->plan, executor->transport->rank);
    float *weights;
    FR_TRY_CALLOC(weights, rank_program->n_parameters + 1, err);
    fr_status status = FR_OK;
    if (executor->weights != NULL)
        status =
            fr_weights_fill(executor->weights, executor->transport->rank, 0,
                            (int64_t)rank_program->n_parameters, weights, err);
    else
        fr_kernels_cpu_init_weights(
            weights, 0, (int64_t)rank_program->n_parameters,
            rank_program->tensors, rank_program->n_tensors, &place,
            program->job.seed, fill_threads(executor));
    if (status == FR_OK)
        status = store_weights(self, weights, err);
    free(weights);
    return status;
}

/* ---- steps --------------------------------------------------------------- */

/* An optimizer on the host steps on copies of the parameters, which begin as
 * these are before the first step, filled or from a checkpoint. */
static fr_status take_copies(gpu_executor *self, fr_err *err)
{
    const fr_executor *base = &self->base;
    fr_rank_context rank;
    fr_instr_walk at = {.program = base->program,
                        .rank_program = base->rank_program};

    FR_TRY(fr_rank_context_init(base->program, base->transport->rank, NULL,
                                &rank, err));
    while (fr_instr_walk_next(&at)) {
        if (at.instr->op != FR_OP_OPT_STEP ||
            (at.instr->flags & FR_INSTR_HOST) == 0)
            continue;
        uint64_t to =
            fr_call_operand_bytes(rank.rank_program, at.call, at.instr,
                                  rank.coordinate, FR_OPT_STEP_W);
        uint64_t from = fr_updated_bytes(&rank, at.call, at.instr);
        FR_TRY(self->driver->copy(
            self->gpu, self->stream, memory_at(self, to), memory_at(self, from),
            fr_instr_ref_bytes(at.instr, FR_OPT_STEP_W, 1), err));
        FR_TRY(wait_copied(self, err));
    }
    self->has_copies = true;
    return FR_OK;
}

static fr_status gpu_step(fr_executor *executor, int64_t i_step, bool is_traced,
                          double *step_s, fr_err *err)
{
    gpu_executor *self = (gpu_executor *)executor;
    uint64_t now_bytes = 0;

    if (!self->has_copies)
        FR_TRY(take_copies(self, err));
    FR_TRY(fr_gpu_interpreter_step(self->interpreter, i_step, is_traced, step_s,
                                   err));
    return used_bytes(self, &now_bytes, err);
}

static const fr_step_scalars *gpu_scalars(const fr_executor *executor)
{
    return fr_gpu_interpreter_scalars(
        ((const gpu_executor *)executor)->interpreter);
}

static size_t gpu_copy_spans(const fr_executor *executor, fr_span *out)
{
    return fr_gpu_interpreter_copy_spans(
        ((const gpu_executor *)executor)->interpreter, out);
}

static size_t gpu_copy_collectives(const fr_executor *executor,
                                   fr_collective_note *out)
{
    fr_gpu_links *links = ((const gpu_executor *)executor)->links;

    return links != NULL && links->ops->describe != NULL
               ? links->ops->describe(links, out)
               : 0;
}

static fr_status gpu_peak(fr_executor *executor, uint64_t *peak_bytes,
                          fr_err *err)
{
    gpu_executor *self = (gpu_executor *)executor;
    uint64_t now_bytes = 0;

    FR_TRY(used_bytes(self, &now_bytes, err));
    *peak_bytes = self->peak_bytes;
    return FR_OK;
}

static const fr_executor_ops gpu_ops = {
    .open = gpu_open,
    .close = gpu_close,
    .set_up = gpu_set_up,
    .connect = gpu_connect,
    .fill = gpu_fill,
    .step = gpu_step,
    .scalars = gpu_scalars,
    .copy_spans = gpu_copy_spans,
    .view = gpu_view,
    .store = gpu_store,
    .copy_collectives = gpu_copy_collectives,
    .peak = gpu_peak,
};

fr_backend fr_gpu_backend(const fr_gpu_setup *setup)
{
    return (fr_backend){.name = setup->system->name,
                        .is_slow_traced = true,
                        .executor_bytes = sizeof(gpu_executor),
                        .ops = &gpu_ops,
                        .context = setup};
}
