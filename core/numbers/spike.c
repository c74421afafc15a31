/* spike.c: see spike.h. */
#include "core/numbers/spike.h"

#include "core/numbers/stats.h"

#include <math.h>
#include <string.h>

#define LEAST 16         /* values before one can be too high */
#define HIGH_Z 6.0       /* by the median absolute deviation, ... */
#define LEAST_SHARE 0.02 /* ... which is at least this of the median */

fr_spike fr_spike_add(fr_spike_watch *watch, double value, double *usual)
{
    const size_t n =
        watch->n < FR_SPIKE_WINDOW ? (size_t)watch->n : FR_SPIKE_WINDOW;
    double scratch[FR_SPIKE_WINDOW];
    fr_spike spike = FR_SPIKE_NONE;

    memcpy(scratch, watch->at, n * sizeof *scratch);
    const double median = fr_stats_median(scratch, n);
    const double spread =
        fmax(fr_stats_mad(scratch, n), LEAST_SHARE * fabs(median));
    if (!isfinite(value))
        spike = FR_SPIKE_NOT_FINITE;
    else if (n >= LEAST && value - median > HIGH_Z * spread)
        spike = FR_SPIKE_HIGH;
    else
        watch->at[watch->n++ % FR_SPIKE_WINDOW] = value;
    if (usual != NULL)
        *usual = median;
    const bool is_new = spike != FR_SPIKE_NONE && !watch->is_out;
    watch->is_out = spike != FR_SPIKE_NONE;
    return is_new ? spike : FR_SPIKE_NONE;
}
