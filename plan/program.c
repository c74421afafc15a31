/*
 * program.c: a program as data: who belongs to which class, its peak, its end.
 */
#include "plan/program.h"

#include <stdlib.h>
#include <string.h>

void fr_program_destroy(fr_program *program)
{
    if (!program)
        return;
    for (uint32_t i = 0; i < program->n_classes; i++) {
        fr_class *klass = &program->classes[i];
        free(klass->calls);
        free(klass->deps);
        free(klass->blocks);
        free(klass->tensors);
    }
    free(program->classes);
    free(program->segments);
    free(program->instrs);
    free(program->model.layers);
    free(program);
}

const fr_class *fr_program_class(const fr_program *program, int64_t rank)
{
    return &program->classes[fr_plan_coord(&program->plan, rank).pp];
}

const char *fr_memory_kind_name(fr_memory_kind kind)
{
    static const char *const names[FR_MEMORY_N] = {
        [FR_MEMORY_PARAMETERS] = "parameters",
        [FR_MEMORY_GRADIENTS] = "gradients",
        [FR_MEMORY_OPTIMIZER] = "optimizer",
        [FR_MEMORY_ACTIVATIONS] = "activations",
        [FR_MEMORY_BUFFERS] = "buffers",
    };
    return (unsigned)kind < FR_MEMORY_N ? names[kind] : "?";
}

/* A block comes at its first call or goes after its last one. */
typedef struct memory_event {
    uint64_t call; /* 2 * call when it comes, 2 * call + 1 when it goes */
    uint32_t i_block;
} memory_event;

static int compare_events(const void *va, const void *vb)
{
    const memory_event *a = va, *b = vb;
    if (a->call != b->call)
        return a->call < b->call ? -1 : 1;
    return a->i_block < b->i_block ? -1 : a->i_block > b->i_block;
}

fr_status fr_class_peak(const fr_class *klass, uint64_t bytes[FR_MEMORY_N],
                        uint64_t *peak_bytes, fr_err *err)
{
    uint64_t live[FR_MEMORY_N] = {0}, best[FR_MEMORY_N] = {0};
    uint64_t sum = 0, peak = 0;
    size_t n = 2 * (size_t)klass->n_blocks;
    memory_event *events = calloc(n + 1, sizeof *events);
    if (!events)
        return fr_fail_no_memory(err);
    for (uint32_t i = 0; i < klass->n_blocks; i++) {
        const fr_block *block = &klass->blocks[i];
        events[2 * i] = (memory_event){2 * (uint64_t)block->first_call, i};
        events[2 * i + 1] =
            (memory_event){2 * (uint64_t)block->last_call + 1, i};
    }
    qsort(events, n, sizeof *events, compare_events);
    for (size_t i = 0; i < n; i++) {
        const fr_block *block = &klass->blocks[events[i].i_block];
        if (events[i].call % 2 == 1) {
            live[block->kind] -= block->n_bytes;
            sum -= block->n_bytes;
            continue;
        }
        live[block->kind] += block->n_bytes;
        sum += block->n_bytes;
        if (sum > peak) {
            peak = sum;
            memcpy(best, live, sizeof best);
        }
    }
    free(events);
    memcpy(bytes, best, sizeof best);
    *peak_bytes = peak;
    return FR_OK;
}
