/*
 * gpu_measured.h: kernels of a GPU that was measured: the times of a profile
 * where they were taken, between them the model of gpu_model.h times what the
 * measured shapes nearby take over what it says of them.
 *
 *     t = model(shape) * exp(r),   r: line through log(measured / model) of
 *                                  the kind's points, weighted by nearness
 *
 * The model has the device's own rates for that: the best that any of the
 * profile's points reaches, so that it knows tiles, waves and launches and
 * the points say the rest.
 */
#ifndef FR_COST_MODELS_GPU_GPU_MEASURED_H
#define FR_COST_MODELS_GPU_GPU_MEASURED_H

#include "cost_models/gpu/gpu_model.h"

typedef struct fr_gpu_measured fr_gpu_measured;

/* Borrows the profile, whose kernels are a GPU's. */
FR_CHECKED fr_status fr_gpu_measured_create(const fr_profile *profile,
                                            fr_gpu_measured **out, fr_err *err);
void fr_gpu_measured_destroy(fr_gpu_measured *measured); /* takes NULL */

/* Is it the kind of device that was measured? */
bool fr_gpu_measured_is_of(const fr_gpu_measured *measured,
                           const fr_device_type *device);

/*
 * The cost of a compute instruction, as fr_gpu_cost_compute(); products and
 * attention as they are once the clock has settled under load.  false: no
 * kernel like it was measured.
 */
bool fr_gpu_measured_ask(const fr_gpu_measured *measured, const fr_instr *instr,
                         fr_cost *out);

/* A shape by its key, whether measured or not, as it was timed; < 0: nothing
 * alike was. */
double fr_gpu_measured_fit_s(const fr_gpu_measured *measured,
                             const fr_compute_point *key);

/* A copy of so many bytes between device and page-locked host memory; false:
 * none was measured. */
bool fr_gpu_measured_copy(const fr_gpu_measured *measured, double n_bytes,
                          bool is_to_host, fr_cost *out);

#endif
