/* executor_cpu.c: the CPU backend: the rank's slab is the transport's. */
#include "kernels/cpu/kernels_cpu.h"
#include "kernels/cpu/narrow/narrow.h"
#include "plan/codec/optimizer.h"
#include "plan/decide/grid.h"
#include "runtime/checkpoint/weight_parts.h"
#include "runtime/rank/measure.h"
#include "runtime/rank/rank_context.h"
#include "runtime/run/executor.h"

#include <string.h>
#include <sys/mman.h>

typedef struct cpu_executor {
    fr_executor base;
    fr_interpreter *interpreter;
    fr_cores cores;
    fr_core_mask previous_cores;
    bool has_copies; /* take_copies() */
} cpu_executor;

static void cpu_close(fr_executor *executor)
{
    cpu_executor *self = (cpu_executor *)executor;

    fr_interpreter_destroy(self->interpreter);
    fr_cores_restore(&self->previous_cores);
}

static fr_status cpu_open(fr_executor *executor, fr_err *err)
{
    cpu_executor *self = (cpu_executor *)executor;
    fr_transport *transport = executor->transport;

    fr_measure_reset_peak();
    fr_cores_assign(transport->n_local, transport->i_local,
                    executor->program->plan.n_threads, &self->cores);
    fr_cores_pin(&self->cores, &self->previous_cores);
    executor->is_oversubscribed = self->cores.is_crowded;
    return transport->ops->open_slab(transport,
                                     executor->rank_program->slab_bytes +
                                         executor->rank_program->host_bytes,
                                     err);
}

/*
 * BLAS takes its work space at the first product; that belongs to the
 * baseline, not to the slab.
 */
static void warm_up_blas(int n_threads)
{
    enum { N = 512 };
    size_t n_bytes = (size_t)N * N * sizeof(float);
    unsigned char *memory = mmap(NULL, 3 * n_bytes, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return;
    fr_instr instr = {.op = FR_OP_LINEAR_FWD,
                      .linear = {.m = N, .n = N, .k = N}};
    fr_kernel_call call = {
        .instr = &instr,
        .ptr = {memory, memory + n_bytes, NULL, memory + 2 * n_bytes},
        .n_group = 1,
        .n_threads = n_threads};
    fr_kernels_cpu_set_threads(n_threads);
    fr_kernels_cpu[FR_OP_LINEAR_FWD](&call);
    (void)munmap(memory, 3 * n_bytes);
}

/*
 * MPI grows its buffers at the first large messages between nodes; they are
 * the baseline's too.
 */
static fr_status warm_up_messages(fr_transport *transport, fr_err *err)
{
    enum { MESSAGE_BYTES = 1 << 20 };
    bool has_nodes = false;

    for (int64_t i = 0; i < transport->world; i++)
        has_nodes = has_nodes || transport->node_of_rank[i] > 0;
    if (!has_nodes)
        return FR_OK;
    size_t n_all = (size_t)transport->world * MESSAGE_BYTES;
    unsigned char *memory =
        mmap(NULL, n_all + MESSAGE_BYTES, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return fr_fail_no_memory(err);
    memset(memory, 1, MESSAGE_BYTES);
    fr_status status = fr_transport_all_gather(transport, memory, MESSAGE_BYTES,
                                               memory + MESSAGE_BYTES, err);
    (void)munmap(memory, n_all + MESSAGE_BYTES);
    return status;
}

/* The slab where its pages are shared memory, else NULL. */
static void *shared_window(const fr_transport *transport)
{
    return transport->is_slab_shared ? transport->slab[transport->rank] : NULL;
}

static unsigned char *slab_of(const fr_executor *executor)
{
    return executor->transport->slab[executor->transport->rank];
}

static fr_status cpu_set_up(fr_executor *executor, fr_err *err)
{
    cpu_executor *self = (cpu_executor *)executor;
    fr_interpreter_options options = {
        .timeout_s = executor->options->timeout_s,
        .trace_steps = executor->options->trace_steps,
        .is_core_shared = self->cores.is_core_shared,
        .is_crowded = self->cores.is_crowded,
        .comm_core = self->cores.comm,
        .watch = executor->watch,
        .beat_ns = executor->beat_ns,
        .faults = executor->options->faults,
        .shake_seed = executor->options->shake_seed,
    };

    warm_up_blas(executor->program->plan.n_threads);
    return fr_interpreter_create(executor->program, executor->transport,
                                 executor->data, &options, &self->interpreter,
                                 err);
}

static fr_status cpu_connect(fr_executor *executor, fr_err *err)
{
    fr_transport *transport = executor->transport;

    FR_TRY(warm_up_messages(transport, err));
    fr_measure_reset_peak();
    /* Without the slab, whose pages are there before they are used. */
    return fr_measure_peak(shared_window(transport), 0,
                           &executor->baseline_bytes, err);
}

/* Elements [first, first + n) of the flat list as they are before the first
 * step, as `dtype`, to `at`. */
static fr_status fill_weights(const fr_executor *executor, unsigned char *at,
                              int64_t first, int64_t n, fr_dtype dtype,
                              fr_err *err)
{
    enum { N_AT_ONCE = 1 << 14 };
    const fr_program *program = executor->program;
    const fr_rank_program *rank_program = executor->rank_program;
    const fr_tensor_place place =
        fr_tensor_place_of(&program->plan, executor->transport->rank);
    float room[N_AT_ONCE];
    const bool is_narrow = dtype != FR_DTYPE_F32;
    const int64_t step = is_narrow ? N_AT_ONCE : n;

    for (int64_t i = 0; i < n; i += step) {
        float *to = is_narrow ? room : (float *)(void *)at;
        int64_t n_now = n - i < step ? n - i : step;
        if (is_narrow) /* bytes that belong to no tensor are unchanged */
            fr_narrow_load(room, at, dtype, i, n_now);
        if (executor->weights != NULL)
            FR_TRY(fr_weights_fill(executor->weights, executor->transport->rank,
                                   first + i, n_now, to, err));
        else
            fr_kernels_cpu_init_weights(
                to, first + i, n_now, rank_program->tensors,
                rank_program->n_tensors, &place, program->job.seed,
                program->plan.n_threads);
        if (is_narrow)
            fr_narrow_store(at, dtype, i, room, n_now);
    }
    return FR_OK;
}

/* The float32 copies of narrow weights, behind the moments of each range. */
static fr_status fill_masters(const fr_executor *executor, fr_err *err)
{
    const fr_program *program = executor->program;
    fr_rank_context rank;
    fr_instr_walk at = {.program = program,
                        .rank_program = executor->rank_program};

    FR_TRY(fr_rank_context_init(program, executor->transport->rank, NULL, &rank,
                                err));
    while (fr_instr_walk_next(&at)) {
        void *ptr[FR_INSTR_REFS];
        const int64_t n = at.instr->range.n;
        if (at.instr->op != FR_OP_OPT_STEP)
            continue;
        fr_call_operands(rank.rank_program, at.call, at.instr, rank.coordinate,
                         slab_of(executor), ptr);
        FR_TRY(fill_weights(
            executor,
            (unsigned char *)ptr[FR_OPT_STEP_OPT] +
                fr_optimizer_state_bytes(program->job.optimizer, (uint64_t)n),
            fr_instr_range_first(at.instr, rank.coordinate[at.instr->axis]), n,
            FR_DTYPE_F32, err));
    }
    return FR_OK;
}

static fr_status cpu_fill(fr_executor *executor, fr_err *err)
{
    const fr_program *program = executor->program;
    fr_weight_parts parts = {0};
    fr_status status =
        fr_weight_parts_list(program, executor->transport->rank, &parts, err);

    for (size_t i = 0; status == FR_OK && i < parts.n; i++)
        status = fill_weights(executor,
                              slab_of(executor) + parts.items[i].offset_bytes,
                              parts.items[i].first, parts.items[i].n,
                              fr_plan_storage_dtype(&program->plan), err);
    if (status == FR_OK && fr_plan_has_master(&program->plan))
        status = fill_masters(executor, err);
    fr_vec_release(&parts);
    return status;
}

/* An optimizer on the host steps on copies of the parameters, which begin as
 * these are before the first step, filled or from a checkpoint. */
static fr_status take_copies(const fr_executor *executor, fr_err *err)
{
    fr_rank_context rank;
    fr_instr_walk at = {.program = executor->program,
                        .rank_program = executor->rank_program};

    FR_TRY(fr_rank_context_init(executor->program, executor->transport->rank,
                                NULL, &rank, err));
    while (fr_instr_walk_next(&at)) {
        void *ptr[FR_INSTR_REFS];
        if (at.instr->op != FR_OP_OPT_STEP ||
            (at.instr->flags & FR_INSTR_HOST) == 0)
            continue;
        fr_call_operands(rank.rank_program, at.call, at.instr, rank.coordinate,
                         slab_of(executor), ptr);
        memcpy(ptr[FR_OPT_STEP_W],
               slab_of(executor) + fr_updated_bytes(&rank, at.call, at.instr),
               fr_instr_ref_bytes(at.instr, FR_OPT_STEP_W, 1));
    }
    return FR_OK;
}

static fr_status cpu_step(fr_executor *executor, int64_t i_step, bool is_traced,
                          double *step_s, fr_err *err)
{
    cpu_executor *self = (cpu_executor *)executor;

    if (!self->has_copies)
        FR_TRY(take_copies(executor, err));
    self->has_copies = true;
    return fr_interpreter_step(self->interpreter, i_step, is_traced, step_s,
                               err);
}

static const fr_step_scalars *cpu_scalars(const fr_executor *executor)
{
    return fr_interpreter_scalars(
        ((const cpu_executor *)executor)->interpreter);
}

static void cpu_part_s(const fr_executor *executor, double part_s[FR_PART_N])
{
    fr_interpreter_part_s(((const cpu_executor *)executor)->interpreter,
                          part_s);
}

static uint64_t cpu_received_bytes(const fr_executor *executor)
{
    return fr_interpreter_received_bytes(
        ((const cpu_executor *)executor)->interpreter);
}

static fr_status cpu_evaluate(fr_executor *executor, fr_data *data,
                              int64_t i_batch, fr_err *err)
{
    return fr_interpreter_evaluate(((cpu_executor *)executor)->interpreter,
                                   data, i_batch, err);
}

static double cpu_own_loss(const fr_executor *executor)
{
    return fr_interpreter_own_loss(
        ((const cpu_executor *)executor)->interpreter);
}

static size_t cpu_copy_spans(const fr_executor *executor, fr_span *out)
{
    return fr_interpreter_copy_spans(
        ((const cpu_executor *)executor)->interpreter, out);
}

static fr_status cpu_view(fr_executor *executor, uint64_t offset_bytes,
                          uint64_t n_bytes, const void **out, fr_err *err)
{
    (void)n_bytes;
    (void)err;
    *out = slab_of(executor) + offset_bytes;
    return FR_OK;
}

static fr_status cpu_store(fr_executor *executor, uint64_t offset_bytes,
                           uint64_t n_bytes, const void *bytes, fr_err *err)
{
    (void)err;
    memcpy(slab_of(executor) + offset_bytes, bytes, n_bytes);
    return FR_OK;
}

static fr_status cpu_peak(fr_executor *executor, uint64_t *peak_bytes,
                          fr_err *err)
{
    const fr_transport *transport = executor->transport;

    return fr_measure_peak(shared_window(transport), transport->slab_bytes,
                           peak_bytes, err);
}

static const fr_executor_ops cpu_ops = {
    .open = cpu_open,
    .close = cpu_close,
    .set_up = cpu_set_up,
    .connect = cpu_connect,
    .fill = cpu_fill,
    .step = cpu_step,
    .scalars = cpu_scalars,
    .evaluate = cpu_evaluate,
    .own_loss = cpu_own_loss,
    .part_s = cpu_part_s,
    .received_bytes = cpu_received_bytes,
    .copy_spans = cpu_copy_spans,
    .view = cpu_view,
    .store = cpu_store,
    .peak = cpu_peak,
};

const fr_backend fr_backend_cpu = {.name = "cpu",
                                   .is_host_memory = true,
                                   .executor_bytes = sizeof(cpu_executor),
                                   .ops = &cpu_ops};
