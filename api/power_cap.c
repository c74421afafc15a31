/* power_cap.c: see power_cap.h. */
#include "api/power_cap.h"

#include "core/base/units.h"
#include "cost_models/gpu/gpu_model.h"
#include "spec/cluster/cluster_power.h"
#include "tuner/study/elastic_speeds.h"

#include <math.h>
#include <string.h>

/* The least share that the model was fitted to: an A100 of 250 W among those of
 * 400 (gpu_model.c). */
static const double least_known_frac = 250.0 / 400.0;

static fr_status parse_one(const char *word, double *out, fr_err *err)
{
    fr_err why;
    *out = 0;
    if (strcmp(word, "none") == 0)
        return FR_OK;
    if (fr_parse_quantity(FR_QUANTITY_W, word, 0, out, &why) != FR_OK)
        return fr_fail(err, FR_USAGE, "--power-cap: %.400s", why.text);
    if (!(*out > 0))
        return fr_fail(err, FR_USAGE,
                       "--power-cap %s: must be more than nothing", word);
    return FR_OK;
}

fr_status fr_power_caps_parse(const fr_request *request, fr_power_caps *out,
                              fr_err *err)
{
    const char *text = fr_request_text(request, FR_OPT_POWER_CAP);
    fr_power_caps caps = {.n = 0};
    for (const char *at = text; at != NULL; at = *at == ',' ? at + 1 : NULL) {
        char word[40];
        const size_t n = strcspn(at, ",");
        if (caps.n == FR_POWER_CAPS || n >= sizeof word)
            return fr_fail(err, FR_USAGE,
                           "--power-cap '%.80s': at most %d caps", text,
                           FR_POWER_CAPS);
        memcpy(word, at, n);
        word[n] = '\0';
        FR_TRY(parse_one(word, &caps.at_w[caps.n++], err));
        at += n;
    }
    if (caps.n > 1 && !fr_command_takes(request->command, FR_OPT_SEARCH))
        return fr_fail(err, FR_USAGE,
                       "--power-cap '%.80s': this command takes one cap", text);
    *out = caps;
    return FR_OK;
}

fr_status fr_power_cap_apply(const fr_request *request, double cap_w,
                             fr_cluster *cluster, fr_err *err)
{
    const bool is_measured = fr_request_has(request, FR_OPT_PROFILE);
    for (size_t i = 0; i < cluster->n_devices; i++) {
        const fr_device_type *device = &cluster->devices[i];
        if (is_measured || !fr_gpu_knows_power(device))
            return fr_fail(err, FR_INPUT,
                           "--power-cap: how fast '%s' is with less power is "
                           "not known%s; leave it out",
                           device->id,
                           is_measured ? ", as the profile was measured without"
                                       : "");
        if (cap_w > 0 && cap_w < least_known_frac * device->power_w)
            fr_request_note(request,
                            "a cap of %g W is less than the model of GPUs "
                            "was fitted to, %.0f %% of the %g W of '%s'",
                            cap_w, 100 * least_known_frac, device->power_w,
                            device->id);
    }
    for (size_t i = 0; i < cluster->n_devices; i++)
        if (cap_w >= cluster->devices[i].power_w)
            fr_request_note(request,
                            "--power-cap %g W is ignored: '%s' draws %g W "
                            "at most",
                            cap_w, cluster->devices[i].id,
                            cluster->devices[i].power_w);
    return fr_cluster_cap_power(cluster, cap_w, err);
}

/* The value of the best plan under a cap; HUGE_VAL: there is none. */
static fr_status value_under(const fr_tune_options *options,
                             const fr_inputs *inputs, double *out, fr_err *err)
{
    fr_tune_options with = *options;
    fr_goal goal = *options->goal;
    fr_elastic_table elastic = {0};
    fr_tuning tuning;
    fr_status status = FR_OK;
    fr_tuning_init(&tuning);
    with.goal = &goal;
    with.is_best_only = true;
    with.n_alternatives = 0;
    *out = HUGE_VAL;
    if (goal.choices.n_least_nodes > 0)
        FR_TRY_GOTO(status,
                    fr_elastic_table_make(&with.space, inputs->costs, &elastic,
                                          &goal, err),
                    out_table);
    FR_TRY_GOTO(status, fr_tune(&with, inputs->costs, &tuning, err), out_table);
    if (tuning.best.plan != NULL)
        *out = tuning.best.value;
out_table:
    fr_tuning_release(&tuning);
    fr_elastic_table_release(&elastic);
    return status;
}

static fr_status recap(const fr_request *request, double cap_w,
                       fr_inputs *inputs, fr_err *err)
{
    FR_TRY(fr_power_cap_apply(request, cap_w, &inputs->cluster, err));
    fr_cost_model_destroy(inputs->costs);
    inputs->costs = NULL;
    return fr_cost_model_create(NULL, &inputs->cluster, &inputs->costs, err);
}

fr_status fr_power_cap_choose(const fr_request *request,
                              fr_tune_options *options, fr_inputs *inputs,
                              fr_err *err)
{
    fr_power_caps caps;
    double best = HUGE_VAL, value;
    int i_best = 0;
    FR_TRY(fr_power_caps_parse(request, &caps, err));
    if (caps.n < 2)
        return FR_OK;
    options->budget_s /= caps.n + 1;
    for (int i = 0; i < caps.n; i++) {
        FR_TRY(recap(request, caps.at_w[i], inputs, err));
        FR_TRY(value_under(options, inputs, &value, err));
        if (value < best) {
            best = value;
            i_best = i;
        }
    }
    return recap(request, caps.at_w[i_best], inputs, err);
}
