/* gpu_fake_law.c: made-up time: clocks of streams, an L2, kinds of memory. */
#include "core/system/clock.h"
#include "tests/unit/runtime/gpu_fake.h"

#include <string.h>

static bool holds(const gpu_fake_range *range, const void *memory)
{
    uintptr_t at = (uintptr_t)memory;

    return at >= range->begin && at < range->begin + range->n_bytes;
}

static bool is_in(const gpu_fake_range *ranges, const void *memory)
{
    for (int i = 0; i < GPU_FAKE_RANGES; i++)
        if (holds(&ranges[i], memory))
            return true;
    return false;
}

void gpu_fake_note(gpu_fake_range *ranges, const void *memory, uint64_t n_bytes)
{
    for (int i = 0; i < GPU_FAKE_RANGES; i++) {
        if (ranges[i].n_bytes != 0)
            continue;
        ranges[i] = (gpu_fake_range){(uintptr_t)memory, n_bytes};
        return;
    }
}

void gpu_fake_forget(gpu_fake_range *ranges, const void *memory)
{
    for (int i = 0; i < GPU_FAKE_RANGES; i++)
        if (ranges[i].n_bytes != 0 && ranges[i].begin == (uintptr_t)memory)
            ranges[i].n_bytes = 0;
}

void gpu_fake_spin(double seconds)
{
    double begin_s = fr_clock_s();

    while (fr_clock_s() - begin_s < seconds) {
    }
}

/* Whole operands, the one used last first; was it there? */
static bool touch(fr_gpu *gpu, const void *memory, uint64_t n_bytes,
                  bool is_piece)
{
    gpu_fake_range now = {(uintptr_t)memory, n_bytes};
    uint64_t sum;
    bool is_warm = false;
    int i = 0;

    for (; i < GPU_FAKE_RANGES - 1; i++) {
        const gpu_fake_range *range = &gpu->cache[i];
        if (range->begin <= now.begin &&
            range->begin + range->n_bytes >= now.begin + n_bytes) {
            is_warm = true;
            now = *range;
            break;
        }
        if (is_piece && range->n_bytes > 0 &&
            range->n_bytes + n_bytes <= GPU_FAKE_L2_BYTES &&
            range->begin + range->n_bytes == now.begin) {
            now.begin = range->begin; /* the next piece of it */
            now.n_bytes += range->n_bytes;
            break;
        }
        if (range->n_bytes == 0)
            break;
    }
    sum = now.n_bytes;
    memmove(&gpu->cache[1], &gpu->cache[0], (size_t)i * sizeof now);
    gpu->cache[0] = now;
    for (int k = 1; k < GPU_FAKE_RANGES; k++) {
        sum += gpu->cache[k].n_bytes;
        if (sum > GPU_FAKE_L2_BYTES)
            gpu->cache[k].n_bytes = 0;
    }
    return is_warm;
}

static bool is_product(fr_op op)
{
    return op == FR_OP_LINEAR_FWD || op == FR_OP_LINEAR_DGRAD ||
           op == FR_OP_LINEAR_WGRAD;
}

void gpu_fake_spend_kernel(const gpu_fake_task *task)
{
    const fr_kernel_call *call = &task->launch.call;
    fr_gpu *gpu = task->stream->gpu;
    const gpu_fake_law *law = gpu->fake->law;
    fr_op op = (fr_op)call->instr->op;
    double cold_bytes = 0, warm_bytes = 0;

    pthread_mutex_lock(&gpu->mutex);
    for (int i = 0; i < FR_INSTR_REFS; i++) {
        uint64_t n_bytes =
            call->ptr[i] != NULL ? fr_instr_ref_bytes(call->instr, i, 1) : 0;
        if (n_bytes == 0)
            continue;
        if (touch(gpu, call->ptr[i], n_bytes, false))
            warm_bytes += (double)n_bytes;
        else
            cold_bytes += (double)n_bytes;
    }
    double spent_s = law->kernel_s(call->instr, cold_bytes, warm_bytes);
    gpu->n_products = is_product(op) ? gpu->n_products + 1 : 0;
    if (law->n_hot > 0 && gpu->n_products > law->n_hot)
        spent_s *= law->hot;
    if (task->n != 0 && law->beside > 0)
        spent_s *= law->beside;
    task->stream->now_s += spent_s + law->kernel_gap_s;
    pthread_mutex_unlock(&gpu->mutex);
}

static gpu_fake_way way_of(const fr_gpu *gpu, const void *dst, const void *src)
{
    bool is_src_here = is_in(gpu->blocks, src);
    bool is_dst_here = is_in(gpu->blocks, dst);
    bool is_dst_device = gpu_fake_real(dst) != dst;

    if (is_src_here && is_dst_here)
        return GPU_FAKE_WITHIN;
    if (is_src_here && is_dst_device)
        return GPU_FAKE_TO_PEER;
    if (is_src_here)
        return is_in(gpu->fake->pinned, dst) ? GPU_FAKE_OUT_PINNED
                                             : GPU_FAKE_OUT_PAGEABLE;
    return is_in(gpu->fake->pinned, src) ? GPU_FAKE_IN_PINNED
                                         : GPU_FAKE_IN_PAGEABLE;
}

bool gpu_fake_is_pageable(fr_gpu *gpu, const void *dst, const void *src)
{
    pthread_mutex_lock(&gpu->mutex);
    gpu_fake_way way = way_of(gpu, dst, src);
    pthread_mutex_unlock(&gpu->mutex);
    return way == GPU_FAKE_IN_PAGEABLE || way == GPU_FAKE_OUT_PAGEABLE;
}

/* b NULL: memory is set. */
void gpu_fake_spend_copy(const gpu_fake_task *task)
{
    fr_gpu *gpu = task->stream->gpu;

    pthread_mutex_lock(&gpu->mutex);
    gpu->n_products = 0;
    gpu_fake_way way = GPU_FAKE_WITHIN;
    if (task->b != NULL) {
        way = way_of(gpu, task->a, task->b);
        (void)touch(gpu, task->b, task->n, true);
    }
    (void)touch(gpu, task->a, task->n, false);
    task->stream->now_s += gpu->fake->law->copy_s(way, (double)task->n);
    pthread_mutex_unlock(&gpu->mutex);
}
