/*
 * cuda_emulator.cc: see device_side.h.
 *
 * One fiber per thread of a block.  A fiber runs until it waits at a barrier,
 * then the next one has its turn; makecontext begins a fiber, setjmp and
 * longjmp switch (no system call).  Blocks run one after the other.  Who comes
 * next differs from launch to launch: up, down, or in leaps over warps, so
 * that what lacks a barrier gives another result.
 */
#include "tests/gpu/emulator/cuda_runtime.h"

#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <ucontext.h>
#include <vector>

dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace
{

enum { STACK_BYTES = 128 * 1024, MAX_THREADS = 1024, N_WARPS = 32 };

struct copy {
    void *to;
    const void *from;
    size_t n_bytes;
    bool is_zero;
    int group;
};

/* Counts arrivals; generation moves on when all are there. */
struct barrier {
    unsigned n_here;
    unsigned long generation;
};

struct fiber {
    jmp_buf at;
    bool is_done;
    const barrier *waits_at; /* until it leaves this generation */
    unsigned long generation;
    char *stack;
    unsigned n_met; /* exchanges of its warp so far */
    std::vector<copy> copies;
    int n_groups;
};

fiber fibers[MAX_THREADS];
barrier block_barrier, warp_barriers[N_WARPS];
char slots[N_WARPS][2][32 * EMULATOR_SLOT];
std::vector<char> shared;
const std::function<void()> *running;
jmp_buf scheduler;
ucontext_t first_context;
unsigned current, n_threads_now, n_live;
unsigned n_launches, first, stride; /* the turns: first, first + stride, ... */

void fail(const char *what)
{
    fprintf(stderr, "emulated kernel: %s (block %u,%u,%u thread %u)\n", what,
            blockIdx.x, blockIdx.y, blockIdx.z, current);
    abort();
}

bool can_go_on(const fiber &one)
{
    return !one.is_done &&
           (!one.waits_at || one.waits_at->generation != one.generation);
}

/* Saves the fiber and goes on with the next one that can. */
void switch_from(fiber *self)
{
    if (_setjmp(self->at) != 0)
        return;
    if (n_live == 0)
        _longjmp(scheduler, 1);
    unsigned i = current, n_passed = 0;
    do {
        if (n_passed++ == n_threads_now)
            fail("a barrier that not all threads reach");
        i = (i + stride) % n_threads_now;
    } while (!can_go_on(fibers[i]));
    current = i;
    threadIdx = dim3(i);
    _longjmp(fibers[i].at, 1);
}

/* The life of a fiber: one body after the other. */
void live(unsigned i)
{
    fiber *self = &fibers[i];
    if (_setjmp(self->at) == 0)
        setcontext(&first_context);
    for (;;) {
        (*running)();
        self->is_done = true;
        n_live--;
        switch_from(self);
    }
}

void begin(unsigned i)
{
    fiber *self = &fibers[i];
    ucontext_t context;
    if (self->stack)
        return;
    self->stack = (char *)malloc(STACK_BYTES);
    getcontext(&context);
    context.uc_stack.ss_sp = self->stack;
    context.uc_stack.ss_size = STACK_BYTES;
    context.uc_link = nullptr;
    makecontext(&context, (void (*)())live, 1, i);
    swapcontext(&first_context, &context);
}

void wait(barrier *at, unsigned n)
{
    unsigned long mine = at->generation;
    if (++at->n_here == n) {
        at->n_here = 0;
        at->generation++;
        return;
    }
    fiber *self = &fibers[current];
    self->waits_at = at;
    self->generation = mine;
    switch_from(self);
    self->waits_at = nullptr;
}

void run_block()
{
    for (unsigned i = 0; i < n_threads_now; i++)
        fibers[i].is_done = false;
    n_live = n_threads_now;
    memset(shared.data(), 0xff, shared.size());
    if (_setjmp(scheduler) != 0)
        return;
    current = first;
    threadIdx = dim3(first);
    _longjmp(fibers[first].at, 1);
}

void arrive(const copy &one)
{
    if (one.is_zero)
        memset(one.to, 0, one.n_bytes);
    else
        memcpy(one.to, one.from, one.n_bytes);
}

float of_bf16(uint32_t bits)
{
    return __uint_as_float(bits << 16);
}

/* The operands of a lane: a then b. */
struct operands {
    uint32_t a[4], b[2];
};

} // namespace

void emulator_launch(dim3 grid, unsigned n_threads, size_t shared_bytes,
                     const std::function<void()> &body)
{
    gridDim = grid;
    blockDim = dim3(n_threads);
    n_threads_now = n_threads;
    running = &body;
    n_launches++;
    first = n_launches * 2654435761U % n_threads;
    stride = n_launches % 3 == 1 ? n_threads - 1 : n_launches % 3 == 2 ? 33 : 1;
    while (std::gcd(stride, n_threads) != 1)
        stride++;
    shared.resize(shared_bytes + 64);
    if (n_threads == 0 || n_threads > MAX_THREADS || n_threads % 32 != 0)
        fail("threads of a block");
    if (shared_bytes > (size_t)emulated_shared_bytes)
        fail("shared memory of a block");
    for (unsigned i = 0; i < n_threads; i++)
        begin(i);
    for (unsigned z = 0; z < grid.z; z++)
        for (unsigned y = 0; y < grid.y; y++)
            for (unsigned x = 0; x < grid.x; x++) {
                blockIdx = dim3(x, y, z);
                run_block();
            }
}

char *emulator_shared()
{
    uintptr_t at = (uintptr_t)shared.data();
    return shared.data() + (16 - at % 16) % 16;
}

void emulator_block_barrier()
{
    wait(&block_barrier, n_threads_now);
}

const void *emulator_meet(const void *mine, size_t n_bytes)
{
    fiber *self = &fibers[current];
    unsigned warp = current / 32, lane = current % 32;
    char *slot = slots[warp][self->n_met++ % 2];
    memcpy(slot + lane * EMULATOR_SLOT, mine, n_bytes);
    wait(&warp_barriers[warp], 32);
    return slot;
}

/* m16n8k16: a[16,16] row-major, b[16,8] by columns, c[16,8]. */
void emulator_mma_bf16(float c[4], const uint32_t a[4], const uint32_t b[2])
{
    operands mine;
    memcpy(mine.a, a, sizeof mine.a);
    memcpy(mine.b, b, sizeof mine.b);
    const void *met = emulator_meet(&mine, sizeof mine);
    unsigned lane = current % 32;
    for (unsigned i = 0; i < 4; i++) {
        unsigned row_group = lane / 4, column = lane % 4 * 2 + i % 2;
        for (unsigned k = 0; k < 16; k++) {
            unsigned word = k / 8 * 2 + i / 2, half = k % 2 * 16;
            operands left =
                emulator_lane<operands>(met, row_group * 4 + k % 8 / 2);
            operands right =
                emulator_lane<operands>(met, column * 4 + k % 8 / 2);
            c[i] += of_bf16(left.a[word] >> half & 0xffff) *
                    of_bf16(right.b[k / 8] >> half & 0xffff);
        }
    }
}

/* m16n8k8: elements are float32 of which 10 bits of mantissa are read. */
void emulator_mma_tf32(float c[4], const uint32_t a[4], const uint32_t b[2])
{
    operands mine;
    memcpy(mine.a, a, sizeof mine.a);
    memcpy(mine.b, b, sizeof mine.b);
    const void *met = emulator_meet(&mine, sizeof mine);
    unsigned lane = current % 32;
    for (unsigned i = 0; i < 4; i++) {
        unsigned row_group = lane / 4, column = lane % 4 * 2 + i % 2;
        for (unsigned k = 0; k < 8; k++) {
            operands left = emulator_lane<operands>(met, row_group * 4 + k % 4);
            operands right = emulator_lane<operands>(met, column * 4 + k % 4);
            c[i] += __uint_as_float(left.a[k / 4 * 2 + i / 2] & ~0x1fffU) *
                    __uint_as_float(right.b[k / 4] & ~0x1fffU);
        }
    }
}

/* Four 8x8 matrices of 16 bits; lane i names row i % 8 of matrix i / 8. */
void emulator_load_matrices(uint32_t out[4], const void *row,
                            bool is_transposed)
{
    const void *met = emulator_meet(&row, sizeof row);
    unsigned lane = current % 32, far = lane / 4, near = lane % 4 * 2;
    if ((uintptr_t)row % 16 != 0)
        fail("a matrix row that is not aligned to 16 bytes");
    for (unsigned i = 0; i < 4; i++) {
        uint32_t word = 0;
        for (unsigned j = 0; j < 2; j++) {
            unsigned r = is_transposed ? near + j : far;
            unsigned c = is_transposed ? far : near + j;
            const uint16_t *at =
                emulator_lane<const uint16_t *>(met, i * 8 + r);
            word |= (uint32_t)at[c] << (16 * j);
        }
        out[i] = word;
    }
}

/* A copy may arrive at once, or as late as it is waited for: in turn. */
void emulator_copy_async(void *to, const void *from, size_t n_bytes,
                         bool is_zero)
{
    fiber *self = &fibers[current];
    const copy one = {to, from, n_bytes, is_zero, self->n_groups};
    if ((uintptr_t)to % n_bytes != 0 || (uintptr_t)from % n_bytes != 0)
        fail("an asynchronous copy that is not aligned to its size");
    if (n_launches % 2 == 0)
        self->copies.push_back(one);
    else
        arrive(one);
}

void emulator_copy_commit()
{
    fibers[current].n_groups++;
}

void emulator_copy_wait(int n_left)
{
    fiber *self = &fibers[current];
    std::vector<copy> later;
    for (const copy &one : self->copies) {
        if (one.group >= self->n_groups - n_left)
            later.push_back(one);
        else
            arrive(one);
    }
    self->copies.swap(later);
}

/* ---- the host's side ------------------------------------------------------
 */

int emulated_shared_bytes = 227 * 1024;

cudaError_t cudaGetDevice(int *out)
{
    *out = 0;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *out, cudaDeviceAttr, int)
{
    *out = emulated_shared_bytes;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *out)
{
    *out = 1;
    return cudaSuccess;
}

cudaError_t cudaGetLastError(void)
{
    return cudaSuccess;
}

const char *cudaGetErrorString(cudaError_t error)
{
    return error == cudaSuccess ? "no error" : "out of memory";
}

cudaError_t cudaMalloc(void **out, size_t n_bytes)
{
    *out = malloc(n_bytes);
    return *out ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaFree(void *at)
{
    free(at);
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *at, int value, size_t n_bytes, cudaStream_t)
{
    memset(at, value, n_bytes);
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t n_bytes,
                            cudaMemcpyKind, cudaStream_t)
{
    memcpy(to, from, n_bytes);
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t)
{
    return cudaSuccess;
}
