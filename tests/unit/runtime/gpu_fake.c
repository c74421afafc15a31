/* gpu_fake.c: devices, memory and kernels. */
#include "tests/unit/runtime/gpu_fake.h"

#include "kernels/kernels_list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEVICE_BIT ((uintptr_t)1 << 62) /* of addresses */

void *gpu_fake_real(const void *memory)
{
    uintptr_t at = (uintptr_t)memory;

    /* NOLINTNEXTLINE(performance-no-int-to-ptr) */
    return (void *)(at & ~DEVICE_BIT);
}

/* ---- devices and memory -------------------------------------------------- */

static fr_status count(void *context, int *n, fr_err *err)
{
    const gpu_fake *fake = context;

    if (fake->n_devices == 0)
        return fr_fail(err, FR_FAILURE, "no driver is loaded");
    *n = fake->n_devices;
    return FR_OK;
}

static fr_status open_device(void *context, int i_device, fr_gpu **out,
                             fr_err *err)
{
    gpu_fake *fake = context;
    fr_gpu *gpu = calloc(1, sizeof *gpu);

    if (gpu == NULL)
        return fr_fail_no_memory(err);
    gpu->fake = fake;
    gpu->i_device = i_device;
    gpu->n_bytes = fake->law != NULL ? fake->law->context_bytes : 0;
    pthread_mutex_init(&gpu->mutex, NULL);
    pthread_cond_init(&gpu->changed, NULL);
    *out = gpu;
    return FR_OK;
}

static void close_device(fr_gpu *gpu)
{
    if (gpu == NULL)
        return;
    pthread_mutex_destroy(&gpu->mutex);
    pthread_cond_destroy(&gpu->changed);
    free(gpu);
}

/* Tasks that hang end with their stream here: nothing ever waits. */
static void abandon_device(fr_gpu *gpu)
{
    atomic_fetch_add(&gpu->fake->n_abandoned, 1);
}

/* Threads of the host use fake devices as they like. */
static fr_status enter(fr_gpu *gpu, fr_err *err)
{
    (void)gpu;
    (void)err;
    return FR_OK;
}

static fr_status properties(fr_gpu *gpu, fr_gpu_properties *out, fr_err *err)
{
    (void)err;
    *out = (fr_gpu_properties){.name = "fake",
                               .memory_bytes = gpu->fake->memory_bytes,
                               .l2_bytes = GPU_FAKE_L2_BYTES,
                               .n_processors = 132,
                               .capability = {9, 0},
                               .clock_Hz = 1.98e9,
                               .memory_clock_Hz = 2.619e9,
                               .runtime = "13.0"};
    (void)snprintf(out->bus_id, sizeof out->bus_id, "0000:%02x:00.0",
                   gpu->fake->is_one_device ? 0 : gpu->i_device);
    return FR_OK;
}

static bool sense(fr_gpu *gpu, fr_gpu_readings *out)
{
    if (gpu->fake->law == NULL)
        return false;
    *out = (fr_gpu_readings){.driver = "580.1",
                             .clock_Hz = 1.365e9,
                             .power_w = 693.5,
                             .power_limit_w = 700};
    return true;
}

static fr_status reach(fr_gpu *gpu, int i_other, bool *is_direct, fr_err *err)
{
    (void)err;
    *is_direct = !gpu->fake->has_no_peers && i_other != gpu->i_device;
    return FR_OK;
}

static fr_status memory(fr_gpu *gpu, uint64_t *free_bytes,
                        uint64_t *total_bytes, fr_err *err)
{
    (void)err;
    *total_bytes = gpu->fake->memory_bytes;
    *free_bytes = gpu->fake->memory_bytes - gpu->n_bytes;
    return FR_OK;
}

/* The size stands before it. */
static fr_status alloc(fr_gpu *gpu, uint64_t n_bytes, void **out, fr_err *err)
{
    unsigned char *block = NULL;
    void *memory_block = NULL;

    if (gpu->n_bytes + n_bytes > gpu->fake->memory_bytes)
        return fr_fail(err, FR_NO_MEMORY, "out of memory");
    if (posix_memalign(&memory_block, 4096, n_bytes + 4096) != 0)
        return fr_fail_no_memory(err);
    block = memory_block;
    memcpy(block, &n_bytes, sizeof n_bytes);
    if (gpu->fake->law == NULL)
        memset(block + 4096, 0xff, n_bytes); /* nobody has written it */
    gpu->n_bytes += n_bytes;
    if (gpu->n_bytes > atomic_load(&gpu->fake->most_bytes))
        atomic_store(&gpu->fake->most_bytes, gpu->n_bytes);
    /* NOLINTNEXTLINE(performance-no-int-to-ptr) */
    *out = (void *)((uintptr_t)(block + 4096) | DEVICE_BIT);
    pthread_mutex_lock(&gpu->mutex);
    gpu_fake_note(gpu->blocks, *out, n_bytes);
    pthread_mutex_unlock(&gpu->mutex);
    return FR_OK;
}

static void free_memory(fr_gpu *gpu, void *device)
{
    uint64_t n_bytes = 0;

    if (device == NULL)
        return;
    unsigned char *block = (unsigned char *)gpu_fake_real(device) - 4096;
    pthread_mutex_lock(&gpu->mutex);
    gpu_fake_forget(gpu->blocks, device);
    pthread_mutex_unlock(&gpu->mutex);
    memcpy(&n_bytes, block, sizeof n_bytes);
    gpu->n_bytes -= n_bytes;
    free(block);
}

static fr_status alloc_host(fr_gpu *gpu, uint64_t n_bytes, void **out,
                            fr_err *err)
{
    *out = aligned_alloc(64, (n_bytes + 63) / 64 * 64);
    if (*out == NULL)
        return fr_fail_no_memory(err);
    pthread_mutex_lock(&gpu->fake->mutex);
    gpu_fake_note(gpu->fake->pinned, *out, n_bytes);
    pthread_mutex_unlock(&gpu->fake->mutex);
    return FR_OK;
}

static void free_host(fr_gpu *gpu, void *host)
{
    if (atomic_load(&gpu->n_awaits) > 0)
        atomic_fetch_add(&gpu->fake->n_early_frees, 1);
    pthread_mutex_lock(&gpu->fake->mutex);
    gpu_fake_forget(gpu->fake->pinned, host);
    pthread_mutex_unlock(&gpu->fake->mutex);
    free(host);
}

static fr_status lock_host(fr_gpu *gpu, void *host, uint64_t n_bytes,
                           fr_err *err)
{
    (void)gpu;
    (void)host;
    (void)n_bytes;
    (void)err;
    return FR_OK;
}

static void unlock_host(fr_gpu *gpu, void *host)
{
    (void)gpu;
    (void)host;
}

/* ---- kernels ------------------------------------------------------------- */

bool gpu_fake_is_hit(const fr_gpu *gpu, fr_op op)
{
    const gpu_fake_fault *fault = &gpu->fake->fault;

    return fault->device == gpu->i_device && fault->op == op &&
           atomic_load(&gpu->fake->i_step) >= fault->i_step;
}

static void run_emulated(fr_cuda_launch *launch, fr_gpu *gpu)
{
    fr_op op = (fr_op)launch->call.instr->op;
    fr_err err = {0};

    launch->step = gpu_fake_real(launch->step);
    launch->stream = NULL;
    pthread_mutex_lock(&gpu->fake->mutex);
    fr_status status = gpu->fake->emulated[op](launch, &err);
    pthread_mutex_unlock(&gpu->fake->mutex);
    if (status != FR_OK)
        gpu_fake_fail(gpu, err.text);
}

static void run_kernel(gpu_fake_task *task)
{
    fr_kernel_call *call = &task->launch.call;
    fr_gpu *gpu = task->stream->gpu;
    const fr_cuda_step *step = gpu_fake_real(task->launch.step);
    fr_op op = (fr_op)call->instr->op;

    atomic_store(&gpu->fake->i_step, step->i_step);
    atomic_fetch_add(&gpu->fake->n_kernels, 1);
    if (gpu_fake_is_hit(gpu, op)) {
        if (gpu->fake->fault.kind == GPU_FAKE_RANK_HANGS)
            gpu_fake_hang(task->stream);
        else
            gpu_fake_fail(gpu, "an illegal memory access was encountered");
        return;
    }
    if (gpu->fake->law != NULL) {
        gpu_fake_spend_kernel(task);
        return;
    }
    call->i_step = step->i_step;
    for (int i = 0; i < FR_INSTR_REFS; i++)
        call->ptr[i] = gpu_fake_real(call->ptr[i]);
    if (gpu->fake->emulated != NULL) {
        run_emulated(&task->launch, gpu);
        return;
    }
    call->scratch = malloc(fr_kernels_cpu_scratch_bytes(call->instr) + 1);
    fr_kernels_cpu_run(call);
    free(call->scratch);
    call->scratch = NULL;
}

/* A real device would wait here for all that runs on it. */
static void load(fr_gpu *gpu, fr_op op)
{
    if (!gpu->is_loaded[op] && gpu->n_pushed > atomic_load(&gpu->n_exchanged))
        atomic_fetch_add(&gpu->fake->n_late_loads, 1);
    gpu->is_loaded[op] = true;
}

static fr_status fake_kernel(const fr_cuda_launch *launch, fr_err *err)
{
    gpu_fake_task task = {
        .stream = launch->stream, .run = run_kernel, .launch = *launch};

    load(task.stream->gpu, (fr_op)launch->call.instr->op);

    if (gpu_fake_is_hit(task.stream->gpu, (fr_op)launch->call.instr->op) &&
        task.stream->gpu->fake->fault.kind == GPU_FAKE_ENQUEUE_FAILS)
        return fr_fail(err, FR_FAILURE, "invalid configuration argument");
    task.launch.call.n_threads = 1;
    if (task.stream->gpu->fake->law != NULL) {
        task.n = atomic_load(&task.stream->gpu->is_exchanging);
        gpu_fake_spin(task.stream->gpu->fake->law->launch_s);
    }
    FR_TRY(gpu_fake_push(&task, err));
    if (task.stream->gpu->fake->is_blocking)
        gpu_fake_drain(task.stream);
    return FR_OK;
}

static const bool has_cpu_kernel[FR_OP_N] = {
#define FAKE_ENTRY(symbol, name) [FR_OP_##symbol] = true,
    FR_KERNEL_LIST(FAKE_ENTRY)
#undef FAKE_ENTRY
};

void gpu_fake_init(gpu_fake *fake, int n_devices)
{
    memset(fake, 0, sizeof *fake);
    fake->n_devices = n_devices;
    fake->fault.device = -1;
    fake->memory_bytes = (uint64_t)1 << 30;
    pthread_mutex_init(&fake->mutex, NULL);
    fake->driver = gpu_fake_streams;
    fake->driver.name = "fake";
    fake->driver.count = count;
    fake->driver.open = open_device;
    fake->driver.close = close_device;
    fake->driver.enter = enter;
    fake->driver.abandon = abandon_device;
    fake->driver.properties = properties;
    fake->driver.read_sensors = sense;
    fake->driver.reach = reach;
    fake->driver.memory = memory;
    fake->driver.alloc = alloc;
    fake->driver.free = free_memory;
    fake->driver.alloc_host = alloc_host;
    fake->driver.free_host = free_host;
    fake->driver.lock_host = lock_host;
    fake->driver.unlock_host = unlock_host;
}

fr_gpu_system gpu_fake_system(gpu_fake *fake)
{
    for (int op = 0; op < FR_OP_N; op++) {
        bool has_kernel = fake->emulated != NULL ? fake->emulated[op] != NULL
                                                 : has_cpu_kernel[op];
        fake->kernels[op] = has_kernel ? fake_kernel : NULL;
    }
    return (fr_gpu_system){.name = "fake",
                           .driver = &fake->driver,
                           .comm = &gpu_fake_comm_driver,
                           .context = fake,
                           .kernels = fake->kernels,
                           .kernels_create = fake->kernels_create,
                           .kernels_destroy = fake->kernels_destroy};
}
