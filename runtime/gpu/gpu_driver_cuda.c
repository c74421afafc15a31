/*
 * gpu_driver_cuda.c: the device's half of gpu_driver.h in CUDA, 12 and 13.
 *
 * The two operations on words of memory are the driver library's
 * (cuStreamWriteValue32 and cuStreamWaitValue32; CUDA Driver API, Stream
 * Memory Operations), looked up at run time, so that the program starts where
 * there is no driver.
 */
#include "runtime/backend/gpu_driver.h"
#include "runtime/gpu/gpu_sensors.h"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef CUresult (*word_fn)(CUstream stream, CUdeviceptr address,
                            cuuint32_t value, unsigned int flags);

struct fr_gpu {
    int i_device;
    word_fn write_word, wait_word;
    bool is_abandoned;
};

struct fr_gpu_event {
    cudaEvent_t cuda;
};

struct fr_gpu_graph {
    cudaGraphExec_t cuda;
};

/* CUDA's own words; a sticky error comes back from every later call. */
static fr_status fail(cudaError_t code, const char *what, fr_err *err)
{
    (void)cudaGetLastError();
    return fr_fail(
        err, code == cudaErrorMemoryAllocation ? FR_NO_MEMORY : FR_FAILURE,
        "CUDA: %s: %s", what, cudaGetErrorString(code));
}

#define TRY_CUDA(call, what)                                                   \
    do {                                                                       \
        cudaError_t code_ = (call);                                            \
        if (code_ != cudaSuccess)                                              \
            return fail(code_, what, err);                                     \
    } while (0)

/*
 * Streams that share one of the device's queues wait for each other: as many
 * queues as there can be (CUDA Programming Guide, environment variables;
 * default 8), unless the user says otherwise.  CUDA reads it when it starts.
 */
static void want_queues(void)
{
    (void)setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
}

static fr_status cuda_count(void *context, int *n, fr_err *err)
{
    int found = 0;

    (void)context;
    want_queues();
    cudaError_t code = cudaGetDeviceCount(&found);
    if (code == cudaErrorInsufficientDriver || code == cudaErrorNoDevice) {
        (void)cudaGetLastError();
        return fr_fail(err, FR_FAILURE,
                       "there is no GPU that CUDA can use (%s); --backend cpu "
                       "needs none",
                       cudaGetErrorString(code));
    }
    if (code != cudaSuccess)
        return fail(code, "devices", err);
    *n = found;
    return FR_OK;
}

static cudaError_t find_entry(const char *name, void **out)
{
    enum cudaDriverEntryPointQueryResult found;
    /* The interface of CUDA 12.0, whatever is installed. */
#if CUDART_VERSION >= 12050
    cudaError_t code = cudaGetDriverEntryPointByVersion(
        name, out, 12000, cudaEnableDefault, &found);
#else
    cudaError_t code =
        cudaGetDriverEntryPoint(name, out, cudaEnableDefault, &found);
#endif
    if (code == cudaSuccess && found != cudaDriverEntryPointSuccess)
        return cudaErrorSymbolNotFound;
    return code;
}

static fr_status find_words(fr_gpu *gpu, fr_err *err)
{
    void *write_word = NULL, *wait_word = NULL;

    TRY_CUDA(find_entry("cuStreamWriteValue32", &write_word), "driver");
    TRY_CUDA(find_entry("cuStreamWaitValue32", &wait_word), "driver");
    memcpy(&gpu->write_word, &write_word, sizeof gpu->write_word);
    memcpy(&gpu->wait_word, &wait_word, sizeof gpu->wait_word);
    return FR_OK;
}

/* The kernels are for what the Makefile's NVCC_FLAGS name. */
static fr_status check_kind(fr_gpu *gpu, fr_err *err)
{
    enum { LEAST_MAJOR = 8 };
    int major = 0, minor = 0;

    TRY_CUDA(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor,
                                    gpu->i_device),
             "capability");
    TRY_CUDA(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor,
                                    gpu->i_device),
             "capability");
    if (major >= LEAST_MAJOR)
        return FR_OK;
    return fr_fail(err, FR_INFEASIBLE,
                   "GPU %d has compute capability %d.%d; kernels need %d.0 or "
                   "later (A100): choose another GPU, or --backend cpu",
                   gpu->i_device, major, minor, LEAST_MAJOR);
}

static void cuda_abandon(fr_gpu *gpu)
{
    gpu->is_abandoned = true;
}

static void cuda_close(fr_gpu *gpu)
{
    free(gpu);
}

static fr_status cuda_open(void *context, int i_device, fr_gpu **out,
                           fr_err *err)
{
    fr_gpu *gpu = calloc(1, sizeof *gpu);

    (void)context;
    if (gpu == NULL)
        return fr_fail_no_memory(err);
    gpu->i_device = i_device;
    want_queues();
    cudaError_t code = cudaSetDevice(i_device);
    if (code == cudaSuccess)
        code = cudaFree(NULL); /* makes the context now */
    fr_status status =
        code == cudaSuccess ? check_kind(gpu, err) : fail(code, "device", err);
    if (status == FR_OK)
        status = find_words(gpu, err);
    if (status != FR_OK) {
        cuda_close(gpu);
        return status;
    }
    *out = gpu;
    return FR_OK;
}

static fr_status cuda_enter(fr_gpu *gpu, fr_err *err)
{
    TRY_CUDA(cudaSetDevice(gpu->i_device), "device");
    return FR_OK;
}

/* Kilohertz of CUDA's in hertz; 0 where it does not say. */
static double clock_of(const fr_gpu *gpu, enum cudaDeviceAttr attribute)
{
    int khz = 0;

    if (cudaDeviceGetAttribute(&khz, attribute, gpu->i_device) != cudaSuccess)
        (void)cudaGetLastError();
    return 1e3 * (double)khz;
}

static fr_status cuda_properties(fr_gpu *gpu, fr_gpu_properties *out,
                                 fr_err *err)
{
    struct cudaDeviceProp found;
    fr_gpu_properties properties = {0};
    int version = 0;

    TRY_CUDA(cudaGetDeviceProperties(&found, gpu->i_device), "properties");
    TRY_CUDA(cudaDeviceGetPCIBusId(properties.bus_id,
                                   (int)sizeof properties.bus_id,
                                   gpu->i_device),
             "bus id");
    memcpy(properties.name, found.name, sizeof properties.name - 1);
    properties.memory_bytes = found.totalGlobalMem;
    properties.l2_bytes = (uint64_t)found.l2CacheSize;
    properties.n_processors = found.multiProcessorCount;
    properties.capability[0] = found.major;
    properties.capability[1] = found.minor;
    properties.clock_Hz = clock_of(gpu, cudaDevAttrClockRate);
    properties.memory_clock_Hz = clock_of(gpu, cudaDevAttrMemoryClockRate);
    (void)cudaRuntimeGetVersion(&version);
    (void)snprintf(properties.runtime, sizeof properties.runtime, "%d.%d",
                   version / 1000, version % 1000 / 10);
    *out = properties;
    return FR_OK;
}

static bool cuda_sense(fr_gpu *gpu, fr_gpu_readings *out)
{
    char bus_id[32] = "";

    return cudaDeviceGetPCIBusId(bus_id, (int)sizeof bus_id, gpu->i_device) ==
               cudaSuccess &&
           fr_gpu_sensors_read(bus_id, out);
}

static fr_status cuda_reach(fr_gpu *gpu, int i_other, bool *is_direct,
                            fr_err *err)
{
    int can = 0;

    TRY_CUDA(cudaDeviceCanAccessPeer(&can, gpu->i_device, i_other), "peer");
    if (can) {
        cudaError_t code = cudaDeviceEnablePeerAccess(i_other, 0);
        if (code != cudaSuccess && code != cudaErrorPeerAccessAlreadyEnabled)
            return fail(code, "peer access", err);
        (void)cudaGetLastError();
    }
    *is_direct = can != 0;
    return FR_OK;
}

static fr_status cuda_memory(fr_gpu *gpu, uint64_t *free_bytes,
                             uint64_t *total_bytes, fr_err *err)
{
    size_t n_free = 0, n_total = 0;

    (void)gpu;
    TRY_CUDA(cudaMemGetInfo(&n_free, &n_total), "memory");
    *free_bytes = n_free;
    *total_bytes = n_total;
    return FR_OK;
}

static fr_status cuda_alloc(fr_gpu *gpu, uint64_t n_bytes, void **out,
                            fr_err *err)
{
    void *memory = NULL;

    (void)gpu;
    TRY_CUDA(cudaMalloc(&memory, n_bytes), "memory of the device");
    *out = memory;
    return FR_OK;
}

static void cuda_free(fr_gpu *gpu, void *memory)
{
    if (!gpu->is_abandoned)
        (void)cudaFree(memory);
}

static fr_status cuda_alloc_host(fr_gpu *gpu, uint64_t n_bytes, void **out,
                                 fr_err *err)
{
    void *memory = NULL;

    (void)gpu;
    TRY_CUDA(cudaHostAlloc(&memory, n_bytes,
                           cudaHostAllocMapped | cudaHostAllocPortable),
             "page-locked memory");
    *out = memory;
    return FR_OK;
}

static void cuda_free_host(fr_gpu *gpu, void *memory)
{
    if (memory != NULL && !gpu->is_abandoned)
        (void)cudaFreeHost(memory);
}

static fr_status cuda_lock_host(fr_gpu *gpu, void *memory, uint64_t n_bytes,
                                fr_err *err)
{
    (void)gpu;
    TRY_CUDA(cudaHostRegister(memory, n_bytes, cudaHostRegisterPortable),
             "page-locking");
    return FR_OK;
}

static void cuda_unlock_host(fr_gpu *gpu, void *memory)
{
    if (!gpu->is_abandoned)
        (void)cudaHostUnregister(memory);
}

static fr_status cuda_stream_create(fr_gpu *gpu, bool is_urgent,
                                    fr_gpu_stream *out, fr_err *err)
{
    int least = 0, greatest = 0;
    cudaStream_t stream = NULL;

    (void)gpu;
    TRY_CUDA(cudaDeviceGetStreamPriorityRange(&least, &greatest), "streams");
    TRY_CUDA(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking,
                                          is_urgent ? greatest : least),
             "stream");
    *out = stream;
    return FR_OK;
}

static void cuda_stream_destroy(fr_gpu *gpu, fr_gpu_stream stream)
{
    if (stream != NULL && !gpu->is_abandoned)
        (void)cudaStreamDestroy(stream);
}

static fr_status cuda_stream_wait(fr_gpu *gpu, fr_gpu_stream stream,
                                  fr_gpu_event *event, fr_err *err)
{
    (void)gpu;
    TRY_CUDA(cudaStreamWaitEvent(stream, event->cuda, 0), "wait");
    return FR_OK;
}

static void cuda_event_destroy(fr_gpu *gpu, fr_gpu_event *event)
{
    if (event != NULL && !gpu->is_abandoned)
        (void)cudaEventDestroy(event->cuda);
    free(event);
}

static fr_status cuda_event_create(fr_gpu *gpu, bool is_timed,
                                   fr_gpu_event **out, fr_err *err)
{
    fr_gpu_event *event = calloc(1, sizeof *event);

    (void)gpu;
    if (event == NULL)
        return fr_fail_no_memory(err);
    cudaError_t code = cudaEventCreateWithFlags(
        &event->cuda, is_timed ? cudaEventDefault : cudaEventDisableTiming);
    if (code != cudaSuccess) {
        free(event);
        return fail(code, "event", err);
    }
    *out = event;
    return FR_OK;
}

static fr_status cuda_event_record(fr_gpu *gpu, fr_gpu_event *event,
                                   fr_gpu_stream stream, fr_err *err)
{
    (void)gpu;
    TRY_CUDA(cudaEventRecord(event->cuda, stream), "event");
    return FR_OK;
}

static fr_status cuda_event_query(fr_gpu *gpu, fr_gpu_event *event,
                                  bool *is_done, fr_err *err)
{
    cudaError_t code = cudaEventQuery(event->cuda);

    (void)gpu;
    if (code != cudaSuccess && code != cudaErrorNotReady)
        return fail(code, "the device", err);
    if (code == cudaErrorNotReady)
        (void)cudaGetLastError();
    *is_done = code == cudaSuccess;
    return FR_OK;
}

static fr_status cuda_event_elapsed(fr_gpu *gpu, fr_gpu_event *from,
                                    fr_gpu_event *to, double *elapsed_s,
                                    fr_err *err)
{
    float elapsed_ms = 0;

    (void)gpu;
    TRY_CUDA(cudaEventElapsedTime(&elapsed_ms, from->cuda, to->cuda),
             "elapsed time");
    *elapsed_s = (double)elapsed_ms * 1e-3;
    return FR_OK;
}

static fr_status cuda_copy(fr_gpu *gpu, fr_gpu_stream stream, void *dst,
                           const void *src, uint64_t n_bytes, fr_err *err)
{
    (void)gpu;
    TRY_CUDA(cudaMemcpyAsync(dst, src, n_bytes, cudaMemcpyDefault, stream),
             "copy");
    return FR_OK;
}

static fr_status cuda_fill(fr_gpu *gpu, fr_gpu_stream stream, void *dst,
                           uint8_t byte, uint64_t n_bytes, fr_err *err)
{
    (void)gpu;
    TRY_CUDA(cudaMemsetAsync(dst, byte, n_bytes, stream), "fill");
    return FR_OK;
}

/* Returns the device's address of a word of page-locked memory. */
static fr_status device_word(uint32_t *word, CUdeviceptr *out, fr_err *err)
{
    void *address = NULL;

    TRY_CUDA(cudaHostGetDevicePointer(&address, word, 0), "word");
    *out = (CUdeviceptr)(uintptr_t)address;
    return FR_OK;
}

static fr_status check_word(CUresult code, const char *what, fr_err *err)
{
    return code == CUDA_SUCCESS
               ? FR_OK
               : fr_fail(err, FR_FAILURE, "CUDA: %s: driver error %d", what,
                         (int)code);
}

static fr_status cuda_mark(fr_gpu *gpu, fr_gpu_stream stream, uint32_t *word,
                           uint32_t value, fr_err *err)
{
    CUdeviceptr address = 0;

    FR_TRY(device_word(word, &address, err));
    return check_word(
        gpu->write_word(stream, address, value, CU_STREAM_WRITE_VALUE_DEFAULT),
        "write of a word", err);
}

static fr_status cuda_await(fr_gpu *gpu, fr_gpu_stream stream, uint32_t *word,
                            uint32_t value, fr_err *err)
{
    CUdeviceptr address = 0;

    FR_TRY(device_word(word, &address, err));
    return check_word(
        gpu->wait_word(stream, address, value, CU_STREAM_WAIT_VALUE_GEQ),
        "wait for a word", err);
}

static fr_status cuda_call_host(fr_gpu *gpu, fr_gpu_stream stream,
                                void (*fn)(void *context), void *context,
                                fr_err *err)
{
    (void)gpu;
    TRY_CUDA(cudaLaunchHostFunc(stream, fn, context), "call of the host");
    return FR_OK;
}

/* Relaxed: libraries may allocate while they enqueue. */
static fr_status cuda_capture_begin(fr_gpu *gpu, fr_gpu_stream stream,
                                    fr_err *err)
{
    (void)gpu;
    TRY_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed),
             "capture");
    return FR_OK;
}

static fr_status cuda_capture_end(fr_gpu *gpu, fr_gpu_stream stream,
                                  fr_gpu_graph **out, fr_err *err)
{
    fr_gpu_graph *made = calloc(1, sizeof *made);
    cudaGraph_t graph = NULL;

    (void)gpu;
    cudaError_t code = cudaStreamEndCapture(stream, &graph);
    if (code == cudaSuccess && made != NULL)
        code = cudaGraphInstantiate(&made->cuda, graph, 0);
    if (graph != NULL)
        (void)cudaGraphDestroy(graph);
    if (code != cudaSuccess || made == NULL) {
        free(made);
        return code != cudaSuccess ? fail(code, "capture of the step", err)
                                   : fr_fail_no_memory(err);
    }
    *out = made;
    return FR_OK;
}

static fr_status cuda_graph_launch(fr_gpu *gpu, fr_gpu_graph *graph,
                                   fr_gpu_stream stream, fr_err *err)
{
    (void)gpu;
    TRY_CUDA(cudaGraphLaunch(graph->cuda, stream), "launch of the step");
    return FR_OK;
}

static void cuda_graph_destroy(fr_gpu *gpu, fr_gpu_graph *graph)
{
    if (graph != NULL && !gpu->is_abandoned)
        (void)cudaGraphExecDestroy(graph->cuda);
    free(graph);
}

const fr_gpu_driver fr_gpu_driver_cuda = {
    .name = "cuda",
    .count = cuda_count,
    .open = cuda_open,
    .close = cuda_close,
    .enter = cuda_enter,
    .abandon = cuda_abandon,
    .properties = cuda_properties,
    .read_sensors = cuda_sense,
    .reach = cuda_reach,
    .memory = cuda_memory,
    .alloc = cuda_alloc,
    .free = cuda_free,
    .alloc_host = cuda_alloc_host,
    .free_host = cuda_free_host,
    .lock_host = cuda_lock_host,
    .unlock_host = cuda_unlock_host,
    .stream_create = cuda_stream_create,
    .stream_destroy = cuda_stream_destroy,
    .stream_wait = cuda_stream_wait,
    .event_create = cuda_event_create,
    .event_destroy = cuda_event_destroy,
    .event_record = cuda_event_record,
    .event_query = cuda_event_query,
    .event_elapsed = cuda_event_elapsed,
    .copy = cuda_copy,
    .fill = cuda_fill,
    .mark = cuda_mark,
    .await = cuda_await,
    .call_host = cuda_call_host,
    .capture_begin = cuda_capture_begin,
    .capture_end = cuda_capture_end,
    .graph_launch = cuda_graph_launch,
    .graph_destroy = cuda_graph_destroy,
};
