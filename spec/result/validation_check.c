/* validation_check.c: do the statistics keep their bounds? */
#include "core/base/buffer.h"
#include "core/base/text.h"
#include "core/base/units.h"
#include "spec/result/validation.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Numbers of learned rows of which bounds may be given, and bounds of each. */
static const int64_t shot_counts[] = {0, 1, 3, 10};
enum { N_OWN = 22, N_SHOTS = 4, N_OF_SHOTS = 3 };
enum { N_NAMES = N_OWN + N_SHOTS * N_OF_SHOTS };

typedef struct named {
    char name[40];
    double value;
} named;

/* Returns the means of k learned rows; NULL: nobody asked for them. */
static const fr_shots_macro *find_shots(const fr_shots *shots, int64_t k)
{
    for (int i = 0; shots != NULL && i < shots->n; i++)
        if (shots->k[i] == k)
            return &shots->macro[i];
    return NULL;
}

static void list_shots(const fr_shots *shots, named *out)
{
    for (int i = 0; i < N_SHOTS; i++) {
        const long long k = shot_counts[i];
        const fr_shots_macro *m = find_shots(shots, k);
        named *at = &out[N_OF_SHOTS * i];
        snprintf(at[0].name, sizeof at->name, "shots.%lld.macro_mape", k);
        snprintf(at[1].name, sizeof at->name, "shots.%lld.macro_coverage_90",
                 k);
        snprintf(at[2].name, sizeof at->name, "shots.%lld.macro_half_width", k);
        at[0].value = m != NULL ? m->macro_mape : NAN;
        at[1].value = m != NULL ? m->macro_coverage_90 : NAN;
        at[2].value = m != NULL ? m->macro_half_width : NAN;
    }
}

static void list_values(const fr_validation *v, const fr_shots *shots,
                        named out[N_NAMES])
{
    size_t right = v->fits_right[0] + v->fits_right[1];
    size_t all = right + v->fits_wrong[0] + v->fits_wrong[1];
    const named values[N_OWN] = {
        {"mape", v->step.mape},
        {"macro_mape", v->macro_mape},
        {"macro_bias", fabs(v->macro_bias)},
        {"macro_coverage_90", v->macro_coverage_90},
        {"macro_half_width", v->macro_half_width},
        {"experts_mape", v->experts.mape},
        {"large_mape", v->large.mape},
        {"median_ape", v->step.median_ape},
        {"worst_ape", v->step.worst_ape},
        {"bias", fabs(v->step.bias)},
        {"concordance", v->step.concordance},
        {"coverage_90", v->step.coverage_90},
        {"half_width_median", v->step.half_width_median},
        {"coverage_90_scaled", v->coverage_90_scaled},
        {"half_width_median_scaled", v->half_width_median_scaled},
        {"scored", (double)v->step.n},
        {"skipped", (double)v->n_skipped},
        {"memory.mape", v->memory.mape},
        {"memory.scored", (double)v->memory.n},
        {"memory.fits_frac", all > 0 ? (double)right / (double)all : NAN},
        {"memory.fits_balanced", v->fits_balanced},
        {"memory.confident_ran_out",
         v->n_confident > 0
             ? (double)v->n_confident_ran_out / (double)v->n_confident
             : NAN},
    };
    memcpy(out, values, sizeof values);
    list_shots(shots, &out[N_OWN]);
}

/* "10%", "0.1", "390" */
static fr_status parse_bound(const char *text, double *out, fr_err *err)
{
    fr_err why;
    if (fr_text_ends(text, "%"))
        return fr_parse_frac(text, out, err);
    if (fr_parse_double(text, out, &why) != FR_OK)
        return fr_fail(err, FR_USAGE, "'%.40s' is not a number", text);
    return FR_OK;
}

/* One "name<=value"; what fails is added to `failed`. */
static fr_status check_one(const named values[N_NAMES], char *bound,
                           fr_buffer *failed, fr_err *err)
{
    char *sign = strpbrk(bound, "<>");
    const char *names[N_NAMES];
    double limit;
    if (sign == NULL || sign[1] != '=')
        return fr_fail(err, FR_USAGE,
                       "--check '%.60s': give bounds such as mape<=10%% or "
                       "concordance>=0.88",
                       bound);
    bool is_upper = *sign == '<';
    *sign = '\0';
    const char *name = fr_text_trim(bound);
    for (int i = 0; i < N_NAMES; i++)
        names[i] = values[i].name;
    int i = fr_text_find(name, names, N_NAMES);
    if (i < 0) {
        const char *near = fr_text_nearest(name, names, N_NAMES);
        return fr_fail(err, FR_USAGE, "--check: '%.60s' is no statistic%s%s%s",
                       name, near != NULL ? "; did you mean '" : "",
                       near != NULL ? near : "", near != NULL ? "'?" : "");
    }
    fr_status status = parse_bound(fr_text_trim(sign + 2), &limit, err);
    if (status != FR_OK) {
        fr_err_prefix(err, "--check %s", name);
        err->status = FR_USAGE;
        return FR_USAGE;
    }
    double value = values[i].value;
    bool is_kept = is_upper ? value <= limit : value >= limit;
    if (!is_kept) /* NaN keeps no bound: nothing was scored */
        fr_buffer_printf(failed, "%s%s is %.4g, not %s %.4g",
                         failed->n > 0 ? "; " : "", name, value,
                         is_upper ? "at most" : "at least", limit);
    return FR_OK;
}

fr_status fr_validation_check(const fr_validation *validation,
                              const fr_shots *shots, const char *bounds,
                              fr_err *err)
{
    named values[N_NAMES];
    char text[1024];
    fr_buffer failed;
    fr_status status = FR_OK;
    if (!fr_text_copy(text, sizeof text, bounds))
        return fr_fail(err, FR_USAGE, "--check: more than %zu characters",
                       sizeof text - 1);
    list_values(validation, shots, values);
    fr_buffer_init(&failed);
    for (char *at = text; at != NULL && status == FR_OK;) {
        char *comma = strchr(at, ',');
        if (comma != NULL)
            *comma = '\0';
        status = check_one(values, at, &failed, err);
        at = comma != NULL ? comma + 1 : NULL;
    }
    if (status == FR_OK)
        status = fr_buffer_check(&failed, err);
    if (status == FR_OK && failed.n > 0)
        status = fr_fail(err, FR_CHECK, "%s", fr_buffer_text(&failed));
    fr_buffer_release(&failed);
    return status;
}
