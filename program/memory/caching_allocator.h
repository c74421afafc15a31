/*
 * caching_allocator.h: what a caching allocator takes from the driver.
 *
 * The CPU runtime packs a rank program's blocks into one slab.  Frameworks on
 * GPUs ask an allocator for each tensor as it comes, and that keeps what it has
 * got from the driver: memory is allocated (tensors), reserved (allocated and
 * cached, with what does not fit anybody) and, with everything beside it, seen
 * by the driver.  Here the blocks of a rank program are allocated and freed in
 * program order by the rules of PyTorch's CUDACachingAllocator.
 */
#ifndef FR_PROGRAM_MEMORY_CACHING_ALLOCATOR_H
#define FR_PROGRAM_MEMORY_CACHING_ALLOCATOR_H

#include "program/ir/program.h"

typedef struct fr_allocator_use {
    uint64_t allocated_bytes; /* most at once, each rounded up to 512 bytes */
    uint64_t reserved_bytes;  /* segments taken from the driver, never less */
} fr_allocator_use;

/*
 * Two steps of the rank program, as the second finds the cache of the first.
 * Rules and sizes: PyTorch 2.5, documentation of CUDA memory management
 * (docs.pytorch.org/docs/stable/notes/cuda.html): sizes in multiples of 512;
 * up to 1 MiB in segments of 2 MiB, up to 10 MiB in segments of 20 MiB, others
 * in segments of their own rounded up to 2 MiB; best fit, split where more
 * than 1 MiB (small: 512 bytes) is left, freed neighbours joined; nothing is
 * given back.  n_overhead allocations of overhead_bytes are never freed.
 *
 * What a call keeps and its scratch are blocks of many tensors: each tensor is
 * an allocation of its own here, as it can fill a hole of its own; what a call
 * hands on alone comes last, when its scratch is there.  program NULL: each
 * block is one tensor.  FR_NO_MEMORY.
 */
FR_CHECKED fr_status fr_rank_program_reserve(
    const fr_program *program, const fr_rank_program *rank_program,
    const uint64_t *overhead_bytes, int n_overhead, fr_allocator_use *out,
    fr_err *err);

#endif
