/* executor_cpu.c: the CPU backend: the rank's slab is the transport's. */
#include "plan/decide/grid.h"
#include "runtime/checkpoint/weight_parts.h"
#include "runtime/kernels_cpu/kernels_cpu.h"
#include "runtime/run/executor.h"
#include "runtime/run/measure.h"

#include <string.h>
#include <sys/mman.h>

typedef struct cpu_executor {
    fr_executor base;
    fr_interpreter *interpreter;
    fr_cores cores;
    fr_core_mask previous_cores;
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
                                     executor->rank_program->slab_bytes, err);
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
    return fr_measure_peak(shared_window(transport), transport->slab_bytes,
                           &executor->baseline_bytes, err);
}

static fr_status cpu_fill(fr_executor *executor, fr_err *err)
{
    const fr_program *program = executor->program;
    const fr_rank_program *rank_program = executor->rank_program;
    const int64_t rank = executor->transport->rank;
    const fr_tensor_place place = fr_tensor_place_of(&program->plan, rank);
    fr_weight_parts parts = {0};
    fr_status status = fr_weight_parts_list(program, rank, &parts, err);

    for (size_t i = 0; status == FR_OK && i < parts.n; i++) {
        const fr_weight_part *part = &parts.items[i];
        float *to = (float *)(void *)(slab_of(executor) + part->offset_bytes);
        if (executor->weights != NULL)
            status = fr_weights_fill(executor->weights, rank, part->first,
                                     part->n, to, err);
        else
            fr_kernels_cpu_init_weights(
                to, part->first, part->n, rank_program->tensors,
                rank_program->n_tensors, &place, program->job.seed,
                program->plan.n_threads);
    }
    fr_vec_release(&parts);
    return status;
}

static fr_status cpu_step(fr_executor *executor, int64_t i_step, bool is_traced,
                          double *step_s, fr_err *err)
{
    return fr_interpreter_step(((cpu_executor *)executor)->interpreter, i_step,
                               is_traced, step_s, err);
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
    .part_s = cpu_part_s,
    .received_bytes = cpu_received_bytes,
    .copy_spans = cpu_copy_spans,
    .view = cpu_view,
    .store = cpu_store,
    .peak = cpu_peak,
};

const fr_backend fr_backend_cpu = {
    .name = "cpu", .executor_bytes = sizeof(cpu_executor), .ops = &cpu_ops};
