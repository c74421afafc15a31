/* gpu_system.c: what this build has for GPUs. */
#include "runtime/backend/gpu_driver.h"

#ifdef FR_HAVE_CUDA

static const fr_gpu_system cuda = {
    .name = "cuda",
    .driver = &fr_gpu_driver_cuda,
#ifdef FR_HAVE_NCCL
    .comm = &fr_gpu_comm_driver_nccl,
#endif
    .kernels = fr_kernels_cuda,
    .kernels_create = fr_cuda_kernels_create,
    .kernels_destroy = fr_cuda_kernels_destroy,
    .kernels_tune = fr_cuda_kernels_tune,
};

fr_status fr_gpu_system_cuda(const fr_gpu_system **out, fr_err *err)
{
    (void)err;
    *out = &cuda;
    return FR_OK;
}

#else

fr_status fr_gpu_system_cuda(const fr_gpu_system **out, fr_err *err)
{
    (void)out;
    return fr_fail(err, FR_FAILURE,
                   "backend cuda was left out of this build; install the CUDA "
                   "Toolkit (apt-get install nvidia-cuda-toolkit libnccl-dev) "
                   "and make again");
}

#endif
