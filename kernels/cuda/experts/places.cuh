/*
 * places.cuh: where the copies of rows go that experts were chosen for: to
 * the order of the experts, of equal ones to that of the rows.  It follows from
 * `chosen` alone (kernels_moe.c).  For .cu files in runtime/ only.
 */
#ifndef FR_KERNELS_CUDA_EXPERTS_PLACES_CUH
#define FR_KERNELS_CUDA_EXPERTS_PLACES_CUH

#include "kernels/cuda/kernel_launch.cuh"

/* The router's choice for a row; expert -1 - e: expert e, which has no room. */
struct choice {
    float weight;
    int32_t expert;
};

FR_DEVICE bool is_dropped(const choice &copy)
{
    return copy.expert < 0;
}

FR_DEVICE int32_t expert_of(const choice &copy)
{
    return is_dropped(copy) ? -1 - copy.expert : copy.expert;
}

/* All copies, and the slots that they go to. */
struct copy_list {
    const choice *chosen;
    int64_t n, n_experts, n_slots, slot_rows;
};

/* Makes the row of each copy in the order of the experts, -1 for what was
 * dropped; they lie in the workspace.  FR_INPUT: they do not fit there. */
fr_status find_places(const fr_cuda_launch *launch, const copy_list &copies,
                      const int32_t **out, fr_err *err);

#endif
