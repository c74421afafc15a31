/*
 * compute_fit.h: seconds of a kernel on a shape that was not measured.
 *
 * One fit per (op, dtype, variant, flags, threads, busy ranks): a sum of
 * physical amounts with coefficients >= 0,
 *
 *     t = launch + flop / rate + sum over places of bytes / bandwidth
 *         + what the op has besides (op_amounts in compute_fit.c),
 *
 * weighted for equal relative errors, then corrected by what the fit missed
 * at the measured shapes nearby (a kernel smoother over log dimensions).
 */
#ifndef FR_COST_MODELS_COMPUTE_COMPUTE_FIT_H
#define FR_COST_MODELS_COMPUTE_COMPUTE_FIT_H

#include "core/base/err.h"
#include "spec/profile/profile.h"

enum { FR_COMPUTE_AMOUNTS = 8 };

typedef struct fr_compute_fit fr_compute_fit;

/*
 * From points that share all that the list above names; points that are held
 * out are left out.  FR_INPUT when nothing is left.
 */
FR_CHECKED fr_status
fr_compute_fit_create(const fr_compute_point *const *points, size_t n,
                      fr_compute_fit **out, fr_err *err);
void fr_compute_fit_destroy(fr_compute_fit *fit); /* takes NULL */

/* Seconds > 0; *is_inside: within the measured range; *rel_err: one standard
 * error, relative.  Both may be NULL. */
double fr_compute_fit_at(const fr_compute_fit *fit, const fr_compute_point *key,
                         bool *is_inside, double *rel_err);

/* Bytes of the operands that are in memory (DRAM), each counted once. */
double fr_compute_key_memory_bytes(const fr_compute_point *key);

#endif
