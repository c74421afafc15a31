/*
 * gpu_choice.h: which device a rank gets: of those that it sees, the one of
 * its number among the ranks of its machine (launchers that show each rank its
 * own device are fine too).
 */
#ifndef FR_RUNTIME_GPU_GPU_CHOICE_H
#define FR_RUNTIME_GPU_GPU_CHOICE_H

#include "runtime/backend/gpu_driver.h"
#include "runtime/comm/transport.h"

/*
 * Collective; opens it.  All ranks come to the same end: FR_FAILURE where a
 * rank has no device, FR_INFEASIBLE where two have the same one and may not
 * share it.
 */
FR_CHECKED fr_status fr_gpu_choose(const fr_gpu_system *system,
                                   fr_transport *transport, bool is_shared,
                                   fr_gpu **out, fr_err *err);

#endif
