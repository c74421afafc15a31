/*
 * cuda_runtime.h, the emulation's: what the kernels of runtime/ and their hosts
 * use of CUDA, on the CPU.  Memory of the device is the program's own, a
 * launch runs to its end, the threads of a block are fibers that take turns.
 * Compiled with FR_EMULATED, in C++ with the device's side too.
 */
#ifndef FR_TESTS_CUDA_RUNTIME_H
#define FR_TESTS_CUDA_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef int cudaError_t;
typedef struct emulated_stream *cudaStream_t;
typedef struct emulated_event *cudaEvent_t;
enum { cudaSuccess = 0, cudaErrorMemoryAllocation = 2 };
typedef enum cudaMemcpyKind {
    cudaMemcpyHostToDevice = 1,
    cudaMemcpyDeviceToHost = 2,
    cudaMemcpyDeviceToDevice = 3
} cudaMemcpyKind;

/* Bytes of shared memory that a block may have; tests change it. */
extern int emulated_shared_bytes;
typedef enum cudaDeviceAttr {
    cudaDevAttrMaxSharedMemoryPerBlockOptin = 97
} cudaDeviceAttr;
cudaError_t cudaGetDevice(int *out);
cudaError_t cudaDeviceGetAttribute(int *out, cudaDeviceAttr what, int device);
cudaError_t cudaGetDeviceCount(int *out);
cudaError_t cudaGetLastError(void);
const char *cudaGetErrorString(cudaError_t error);
cudaError_t cudaMalloc(void **out, size_t n_bytes);
cudaError_t cudaFree(void *at);
cudaError_t cudaMemsetAsync(void *at, int value, size_t n_bytes,
                            cudaStream_t stream);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t n_bytes,
                            cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaEventCreate(cudaEvent_t *out);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to);

#ifdef __cplusplus
}
#include "tests/gpu/emulator/device_side.h"
#endif

#endif
