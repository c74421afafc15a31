/*
 * nccl_tuner.h: the plan's choice of algorithm, protocol and channels reaches
 * NCCL through its tuner interface (versions 3 to 5: NCCL 2.21 to 2.28).
 *
 * The program itself is the plugin: NCCL_TUNER_PLUGIN=STATIC_PLUGIN makes
 * NCCL look ncclTunerPlugin_v5 (v4, v3) up in the running program, which
 * exports it.  NCCL asks for every operation that it plans and shows what it
 * expects each algorithm to cost; what is wanted stays as it is, the rest
 * becomes dearer than all of it.
 */
#ifndef FR_RUNTIME_GPU_COMM_NCCL_TUNER_H
#define FR_RUNTIME_GPU_COMM_NCCL_TUNER_H

#include "runtime/backend/gpu_driver.h"

/*
 * For the communicators that this process makes from now on; NULL: NCCL's own
 * choice.  Borrowed as long as they live.  The interface has no argument for
 * it: one word of the process.
 */
void fr_nccl_tuner_use(fr_gpu_choices *choices);

#endif
