/* trust.c: see trust.h. */
#include "calibrate/trust.h"

#include "core/base/units.h"

#include <string.h>

/* Nothing is measured before and after. */
static bool is_measurement(const fr_others_point *point)
{
    return strcmp(point->phase, "before") != 0 &&
           strcmp(point->phase, "after") != 0;
}

void fr_calibrate_sum_others(const fr_profile *profile,
                             fr_processor_share *disturbed, double *all_s)
{
    *disturbed = (fr_processor_share){0};
    *all_s = 0;
    for (size_t i = 0; i < profile->n_others; i++) {
        const fr_others_point *point = &profile->others[i];
        const fr_processor_share share = {.elapsed_s = point->elapsed_s,
                                          .own_s = point->own_s,
                                          .others_s = point->others_s,
                                          .steal_s = point->stolen_s,
                                          .n_processors = point->n_processors,
                                          .n_runnable = point->n_runnable};
        if (!is_measurement(point))
            continue;
        *all_s += point->elapsed_s;
        if (point->is_disturbed)
            fr_processor_share_add(disturbed, &share);
    }
}

void fr_calibrate_describe_others(const fr_profile *profile, fr_buffer *out)
{
    fr_processor_share disturbed;
    double all_s;

    fr_calibrate_sum_others(profile, &disturbed, &all_s);
    if (disturbed.elapsed_s <= 0.0)
        return;
    fr_buffer_printf(
        out,
        "others used %.1f of %d processor%s during %.0f of %.0f s "
        "of measurements",
        fr_processor_share_others(&disturbed), disturbed.n_processors,
        disturbed.n_processors == 1 ? "" : "s", disturbed.elapsed_s, all_s);
}

fr_status fr_calibrate_judge(const fr_profile *profile, fr_err *err)
{
    const fr_held_out *worst = NULL;
    fr_buffer others;

    for (size_t i = 0; i < profile->n_held_out; i++)
        if (worst == NULL || profile->held_out[i].mean_ape > worst->mean_ape)
            worst = &profile->held_out[i];
    if (worst == NULL || worst->mean_ape <= FR_MOST_HELD_OUT_APE)
        return FR_OK;
    fr_buffer_init(&others);
    fr_calibrate_describe_others(profile, &others);
    const fr_status status =
        fr_fail(err, FR_CHECK,
                "the fit of '%s' misses sizes that it never saw by %.0f %% (at "
                "most %.0f %%)%s%s",
                worst->what, 100 * worst->mean_ape, 100 * FR_MOST_HELD_OUT_APE,
                others.n > 0 ? "; " : "", fr_buffer_text(&others));
    fr_buffer_release(&others);
    return status;
}
