/* goal_options.c: options of the goal -> fr_goal. */
#include "api/resolve/goal_options.h"

#include "api/resolve/hazard_options.h"
#include "core/base/units.h"

static fr_status read_amount(const fr_request *request, fr_option option,
                             fr_quantity quantity, double *out, fr_err *err)
{
    fr_err why;
    const char *text = fr_request_text(request, option);
    if (text == NULL)
        return FR_OK;
    if (fr_parse_quantity(quantity, text, 0, out, &why) != FR_OK)
        return fr_fail(err, FR_USAGE, "--%s: %.400s",
                       fr_option_get((fr_option)option).name, why.text);
    if (*out <= 0)
        return fr_fail(err, FR_USAGE, "--%s %s: must be more than nothing",
                       fr_option_get((fr_option)option).name, text);
    return FR_OK;
}

/* One plan of ten that are called best may not fit. */
static const double usual_confidence = 0.9;

double fr_request_fit_confidence(const fr_request *request)
{
    return fr_request_has(request, FR_OPT_FIT_CONFIDENCE)
               ? request->option[FR_OPT_FIT_CONFIDENCE].real
               : usual_confidence;
}

static fr_status read_least_nodes(const fr_request *request,
                                  fr_run_choices *out, fr_err *err)
{
    const fr_option_value *least = &request->option[FR_OPT_LEAST_NODES];
    if (!fr_request_has(request, FR_OPT_SPARES))
        return fr_fail(err, FR_USAGE,
                       "--least-nodes goes with --spares: without it a spare "
                       "node is always there");
    out->n_least_nodes = least->n_list > 0 ? least->n_list : 1;
    out->least_nodes[0] = least->count;
    for (int i = 0; i < least->n_list; i++)
        out->least_nodes[i] = least->list[i];
    return FR_OK;
}

/* Reads the decisions of a run that a search may make: those that no option
 * pins, or that are lists. */
static fr_status read_choices(const fr_request *request, fr_run_choices *out,
                              fr_err *err)
{
    static const fr_option single[] = {FR_OPT_CHECKPOINT_KIND,
                                       FR_OPT_CHECKPOINT_EVERY};
    const fr_option_value *spares = &request->option[FR_OPT_SPARES];
    if (!fr_command_takes(request->command, FR_OPT_SEARCH))
        return FR_OK;
    for (size_t i = 0; i < FR_LENGTH(single); i++)
        if (request->option[single[i]].n_list > 0)
            return fr_fail(err, FR_USAGE,
                           "--%s takes one value; without it the best is found",
                           fr_option_get(single[i]).name);
    if (fr_request_on(request, FR_OPT_ON_DEMAND) &&
        !fr_request_on(request, FR_OPT_SPOT))
        return fr_fail(err, FR_USAGE,
                       "--on-demand goes with --spot: without it all nodes are "
                       "on demand");
    out->is_kind_free = !fr_request_has(request, FR_OPT_CHECKPOINT_KIND);
    out->is_spot_free = fr_request_on(request, FR_OPT_ON_DEMAND);
    out->n_spares = spares->n_list;
    for (int i = 0; i < spares->n_list; i++)
        out->spares[i] = spares->list[i];
    if (fr_request_has(request, FR_OPT_LEAST_NODES))
        FR_TRY(read_least_nodes(request, out, err));
    return FR_OK;
}

fr_status fr_request_make_goal(const fr_request *request, fr_goal *out,
                               fr_err *err)
{
    const fr_option_value *v = request->option;
    fr_goal goal;
    fr_goal_init(&goal);
    if (fr_request_has(request, FR_OPT_GOAL))
        goal.kind = (fr_goal_kind)v[FR_OPT_GOAL].count;
    goal.tokens = (double)v[FR_OPT_TOKENS].count;
    FR_TRY(read_amount(request, FR_OPT_CRITICAL_BATCH, FR_QUANTITY_COUNT,
                       &goal.critical_batch, err));
    FR_TRY(read_amount(request, FR_OPT_DEADLINE, FR_QUANTITY_S,
                       &goal.deadline_s, err));
    goal.is_spot = fr_request_on(request, FR_OPT_SPOT);
    goal.most_usd = v[FR_OPT_MAX_COST].real;
    goal.most_kwh = v[FR_OPT_MAX_ENERGY].real;
    goal.most_devices = v[FR_OPT_MAX_DEVICES].count;
    goal.least_headroom_frac = v[FR_OPT_MIN_HEADROOM].real;
    FR_TRY(fr_request_make_hazards(request, &goal.hazards, err));
    FR_TRY(read_choices(request, &goal.choices, err));
    goal.is_disturbed = true;
    FR_TRY(fr_goal_check(&goal, err));
    *out = goal;
    return FR_OK;
}
