/*
 * gpu_sensors.h: clock and power of an NVIDIA GPU, from the driver's
 * management library (NVML), which is looked for at run time: nothing is
 * missing but these numbers where it is absent.
 */
#ifndef FR_RUNTIME_GPU_GPU_SENSORS_H
#define FR_RUNTIME_GPU_GPU_SENSORS_H

#include "runtime/backend/gpu_driver.h"

/* bus_id as CUDA writes it.  false: no library, or it does not know it. */
bool fr_gpu_sensors_read(const char *bus_id, fr_gpu_readings *out);

#endif
