/* sweep_points.c: keys and values -> clusters, jobs and plans. */
#include "api/sweep/sweep_points.h"

#include "api/resolve/framework_options.h"
#include "api/resolve/goal_options.h"
#include "api/resolve/plan_resolve.h"
#include "core/base/text.h"
#include "core/base/units.h"
#include "spec/cluster/cluster_knobs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_POINTS = 20000, MOST_STEPS = 10000 };

/* ---- keys --------------------------------------------------------------- */

typedef enum key_kind { KEY_NONE, KEY_MODEL, KEY_KNOB, KEY_OPTION } key_kind;

typedef struct key {
    key_kind kind;
    int index; /* of the knob or the option */
} key;

/* Options of the plan, the job or the hazards of a run are keys, except
 * those whose names are knobs of the cluster. */
static bool is_key_option(const fr_command *sweep, int i)
{
    const fr_option_row row = fr_option_get((fr_option)i);
    return (row.group == FR_GROUP_PLAN || row.group == FR_GROUP_JOB ||
            row.group == FR_GROUP_RUN || i == FR_OPT_RANKS ||
            i == FR_OPT_SPOT || i == FR_OPT_CHECKPOINT_EVERY) &&
           fr_command_takes(sweep, (fr_option)i) &&
           fr_cluster_knob_find(row.name) < 0;
}

static key find_key(const fr_command *sweep, const char *name)
{
    if (strcmp(name, "interval") == 0)
        name = fr_option_get(FR_OPT_CHECKPOINT_EVERY).name;
    int i = fr_cluster_knob_find(name);
    if (strcmp(name, "model") == 0)
        return (key){KEY_MODEL, 0};
    if (i >= 0)
        return (key){KEY_KNOB, i};
    for (i = 0; i < FR_OPT_N; i++)
        if (is_key_option(sweep, i) &&
            strcmp(fr_option_get((fr_option)i).name, name) == 0)
            return (key){KEY_OPTION, i};
    return (key){KEY_NONE, 0};
}

const char *fr_sweep_key_name(const fr_command *sweep, int i)
{
    if (i == 0)
        return "model";
    i--;
    for (int k = 0; fr_cluster_knob_at(k) != NULL; k++)
        if (i-- == 0)
            return fr_cluster_knob_at(k)->name;
    for (int k = 0; k < FR_OPT_N; k++)
        if (is_key_option(sweep, k) && i-- == 0)
            return fr_option_get((fr_option)k).name;
    return NULL;
}

static fr_status fail_unknown(const fr_command *sweep, const char *name,
                              fr_err *err)
{
    enum { MANY = 128 };
    const char *names[MANY];
    size_t n = 0;
    while (n < MANY && (names[n] = fr_sweep_key_name(sweep, (int)n)) != NULL)
        n++;
    const char *near = fr_text_nearest(name, names, n);
    return fr_fail(err, FR_USAGE,
                   "--vary %.80s: no such key%s%s%s; a key is one of the "
                   "cluster (nodes, gpu, nic, price ...) or an option of the "
                   "plan or the job",
                   name, near != NULL ? ", did you mean '" : "",
                   near != NULL ? near : "", near != NULL ? "'" : "");
}

/* ---- values ------------------------------------------------------------- */

/* "8", "x2", "200Gb/s": a number with what stands around it. */
typedef struct number {
    bool is_factor;
    double value;
    char unit[16];
} number;

static bool read_number(const char *text, size_t n, number *out)
{
    char copy[FR_SWEEP_VALUE], *end;
    if (n == 0 || n >= sizeof copy)
        return false;
    memcpy(copy, text, n);
    copy[n] = '\0';
    out->is_factor = copy[0] == 'x';
    const char *digits = copy + out->is_factor;
    if (digits[0] < '0' || digits[0] > '9')
        return false;
    out->value = strtod(digits, &end);
    return isfinite(out->value) &&
           fr_text_copy(out->unit, sizeof out->unit, end);
}

/* From `low` to `high`, each step times or plus. */
static fr_status add_range(const char *text, const number *low,
                           const number *high, bool is_product, double step,
                           fr_sweep *sweep, fr_err *err)
{
    double value = low->value, most = high->value * (1 + 1e-9);
    if (!(step > (is_product ? 1 : 0)))
        return fr_fail(err, FR_USAGE, "%s: %s does not get on", text,
                       is_product ? "a product" : "a step");
    if (!(low->value > 0 || !is_product) || high->value < low->value)
        return fr_fail(err, FR_USAGE, "%s: no number lies in it", text);
    for (int i = 0; value <= most; i++) {
        char shown[FR_SWEEP_VALUE];
        if (i == MOST_STEPS)
            return fr_fail(err, FR_USAGE, "%s: more than %d values", text,
                           MOST_STEPS);
        snprintf(shown, sizeof shown, "%s%.12g%s", high->is_factor ? "x" : "",
                 value, high->unit);
        FR_TRY(fr_sweep_add_value(sweep, shown, err));
        value = is_product ? value * step : low->value + (i + 1) * step;
    }
    return FR_OK;
}

/* "1-8", as people write 1..8. */
static bool is_dashed_range(const char *text)
{
    size_t n_low = strspn(text, "0123456789");
    size_t n_high =
        text[n_low] == '-' ? strspn(text + n_low + 1, "0123456789") : 0;
    return n_low > 0 && n_high > 0 && text[n_low + 1 + n_high] == '\0';
}

fr_status fr_sweep_read_value(const char *text, fr_sweep *sweep, fr_err *err)
{
    number low, high;
    char range[FR_SWEEP_VALUE + 8];
    if (is_dashed_range(text) && strlen(text) < FR_SWEEP_VALUE) {
        int n_low = (int)strcspn(text, "-");
        snprintf(range, sizeof range, "%.*s..%s", n_low, text,
                 text + n_low + 1);
        text = range;
    }
    const char *dots = strstr(text, "..");
    if (dots == NULL || !read_number(text, (size_t)(dots - text), &low))
        return fr_sweep_add_value(sweep, text, err);
    const char *to = dots + 2, *how = strpbrk(to, "*+");
    double step = 1;
    fr_err why;
    if (!read_number(to, how != NULL ? (size_t)(how - to) : strlen(to), &high))
        return fr_fail(err, FR_USAGE, "%.80s: where does it end?", text);
    if (low.unit[0] != '\0' && strcmp(low.unit, high.unit) != 0)
        return fr_fail(err, FR_USAGE, "%.80s: both ends in one unit", text);
    if (low.is_factor != high.is_factor)
        return fr_fail(err, FR_USAGE, "%.80s: is it a multiple or not?", text);
    if (how == NULL && (low.unit[0] != '\0' || high.unit[0] != '\0' ||
                        low.value != floor(low.value)))
        return fr_fail(err, FR_USAGE,
                       "%.80s: in what steps?  Such as %.40s*2 or +1", text,
                       text);
    if (how != NULL && fr_parse_double(how + 1, &step, &why) != FR_OK)
        return fr_fail(err, FR_USAGE, "%.80s: '%.40s' is no step", text, how);
    return add_range(text, &low, &high, how != NULL && *how == '*', step, sweep,
                     err);
}

/* Each value of an option must be one: told before anything is simulated. */
static fr_status check_option_values(const fr_request *request,
                                     const fr_sweep *sweep, int option,
                                     fr_err *err)
{
    const fr_sweep_key *last = &sweep->keys[sweep->n_keys - 1];
    for (size_t i = 0; i < last->n_values; i++) {
        fr_request tried = *request;
        FR_TRY(fr_request_set(&tried, (fr_option)option, last->values[i], err));
    }
    return FR_OK;
}

/* By an option, which a knob of that name would lose against. */
static bool is_given(const fr_request *request, key found, const char *name)
{
    if (found.kind == KEY_OPTION)
        return request->option[found.index].source == FR_SOURCE_FLAG;
    for (int i = 0; i < FR_OPT_N; i++)
        if (request->option[i].source == FR_SOURCE_FLAG &&
            strcmp(fr_option_get((fr_option)i).name, name) == 0)
            return true;
    return false;
}

/* "KEY=A,B"; lists of values that hold commas are separated by ';'. */
static fr_status read_key(const fr_request *request, char *text,
                          fr_sweep *sweep, fr_err *err)
{
    char *values = strchr(text, '=');
    if (values == NULL || values == text || values[1] == '\0')
        return fr_fail(err, FR_USAGE,
                       "--vary %.80s: give a key and its values, such as "
                       "nodes=8,16,32",
                       text);
    *values++ = '\0';
    key found = find_key(request->command, text);
    if (found.kind == KEY_NONE)
        return fail_unknown(request->command, text, err);
    if (is_given(request, found, text))
        return fr_fail(err, FR_USAGE, "--%s is given, and varied", text);
    const char *name = found.kind == KEY_OPTION
                           ? fr_option_get((fr_option)found.index).name
                           : text;
    FR_TRY(fr_sweep_add_key(sweep, name, err));
    char separator = strchr(values, ';') != NULL ? ';' : ',';
    while (values != NULL) {
        char *next = strchr(values, separator);
        if (next != NULL)
            *next++ = '\0';
        if (values[0] != '\0')
            FR_TRY(fr_sweep_read_value(values, sweep, err));
        else if (separator == ',')
            return fr_fail(err, FR_USAGE, "--vary %s: an empty value", text);
        values = next;
    }
    if (sweep->keys[sweep->n_keys - 1].n_values == 0)
        return fr_fail(err, FR_USAGE, "--vary %s: no value", text);
    if (found.kind == KEY_OPTION)
        return check_option_values(request, sweep, found.index, err);
    return FR_OK;
}

/* One --vary may hold several keys, with blanks between them. */
static fr_status read_keys(const fr_request *request, const char *text,
                           fr_sweep *sweep, fr_err *err)
{
    char *copy = strdup(text), *rest = NULL;
    fr_status status = FR_OK;
    if (copy == NULL)
        return fr_fail_no_memory(err);
    for (char *word = strtok_r(copy, " \t\n", &rest);
         word != NULL && status == FR_OK; word = strtok_r(NULL, " \t\n", &rest))
        status = read_key(request, word, sweep, err);
    free(copy);
    return status;
}

/* The curve runs along the first of these that is varied. */
static int find_scale_key(const fr_sweep *sweep)
{
    static const char *const names[] = {"nodes", "ranks", "gpus-per-node",
                                        "dp"};
    for (size_t i = 0; i < FR_LENGTH(names); i++) {
        int k = fr_sweep_find_key(sweep, names[i]);
        if (k >= 0 && sweep->keys[k].n_values > 1)
            return k;
    }
    return -1;
}

/* ---- models and clusters ------------------------------------------------ */

/* Tokens, or what all lists of layers count, or samples. */
static void set_counted(fr_sweep_points *out)
{
    const char *counted = NULL;
    out->sweep.has_tokens = true;
    for (size_t i = 0; i < out->n_models; i++) {
        const fr_model *model = &out->models[i];
        const bool is_list = model->kind == FR_MODEL_LAYERS;
        const char *one = is_list ? fr_model_counted(model) : "tokens";
        out->sweep.has_tokens &= !is_list;
        counted =
            counted == NULL || strcmp(counted, one) == 0 ? one : "samples";
    }
    out->sweep.counted = counted;
}

fr_status fr_sweep_load_model(const fr_request *request, const char *name,
                              fr_sweep_points *out, fr_err *err)
{
    fr_model *grown =
        realloc(out->models, (out->n_models + 1) * sizeof *out->models);
    if (grown == NULL)
        return fr_fail_no_memory(err);
    out->models = grown;
    FR_TRY(fr_inputs_load_model(request, name, &grown[out->n_models], err));
    out->n_models++;
    set_counted(out);
    return FR_OK;
}

static fr_status load_models(const fr_request *request, fr_sweep_points *out,
                             fr_err *err)
{
    int k = fr_sweep_find_key(&out->sweep, "model");
    if (k < 0)
        return fr_sweep_load_model(request, request->positional[0], out, err);
    for (size_t i = 0; i < out->sweep.keys[k].n_values; i++)
        FR_TRY(fr_sweep_load_model(request, out->sweep.keys[k].values[i], out,
                                   err));
    return FR_OK;
}

static bool is_knob(const fr_sweep *sweep, int i_key)
{
    return fr_cluster_knob_find(sweep->keys[i_key].name) >= 0;
}

static size_t count_variants(const fr_sweep *sweep)
{
    size_t n = 1;
    for (int k = 0; k < sweep->n_keys; k++)
        n *= is_knob(sweep, k) ? sweep->keys[k].n_values : 1;
    return n;
}

/* Returns the variant of a point: its knobs alone count, the last fastest. */
static size_t variant_of(const fr_sweep *sweep, size_t point)
{
    size_t variant = 0;
    for (int k = 0; k < sweep->n_keys; k++)
        if (is_knob(sweep, k))
            variant = variant * sweep->keys[k].n_values +
                      fr_sweep_value_of(sweep, point, k);
    return variant;
}

/* Knobs in the order of their table: another cluster before its NICs. */
static fr_status turn_knobs(const char *configs, const fr_sweep *sweep,
                            size_t point, fr_cluster *cluster, fr_err *err)
{
    const fr_cluster_knob *knob;
    for (int i = 0; (knob = fr_cluster_knob_at(i)) != NULL; i++) {
        int k = fr_sweep_find_key(sweep, knob->name);
        if (k < 0)
            continue;
        const char *text = fr_sweep_text_of(sweep, point, k);
        fr_status status =
            fr_cluster_knob_turn(configs, knob, cluster, text, err);
        /* A name that is none is a mistake, not a point. */
        if (status == FR_INPUT && knob->swap != NULL)
            return fr_fail(err, FR_USAGE, "--vary %s=%s: %.400s", knob->name,
                           text, err->text);
        if (status != FR_OK)
            return fr_as_input(status, err);
    }
    return FR_OK;
}

static fr_status make_variant(const char *configs, const fr_sweep *sweep,
                              size_t point, const fr_inputs *inputs,
                              fr_sweep_variant *out, fr_err *err)
{
    fr_err why = {FR_OK, ""};
    FR_TRY(fr_cluster_copy(&inputs->cluster, &out->cluster, err));
    fr_status status = turn_knobs(configs, sweep, point, &out->cluster, &why);
    if (status == FR_OK)
        return fr_cost_model_create(inputs->has_profile ? &inputs->profile
                                                        : NULL,
                                    &out->cluster, &out->costs, err);
    if (status != FR_INPUT)
        return fr_fail(err, status, "%s", why.text);
    fr_text_copy_cut(out->why, sizeof out->why, why.text);
    return FR_OK;
}

static fr_status make_variants(const char *configs, const fr_inputs *inputs,
                               fr_sweep_points *out, fr_err *err)
{
    size_t n = count_variants(&out->sweep);
    out->variants = calloc(n, sizeof *out->variants);
    if (out->variants == NULL)
        return fr_fail_no_memory(err);
    out->n_variants = n;
    /* The first point that has each variant. */
    for (size_t i = 0, n_made = 0; i < out->sweep.n_points; i++) {
        size_t v = variant_of(&out->sweep, i);
        if (out->variants[v].cluster.n_groups > 0 ||
            out->variants[v].why[0] != '\0')
            continue;
        FR_TRY(fr_log_check(inputs->log, err));
        FR_TRY(make_variant(configs, &out->sweep, i, inputs, &out->variants[v],
                            err));
        if (++n_made == n)
            break;
    }
    return FR_OK;
}

/* The batch is the same everywhere: a sequence for each rank of the largest
 * cluster, or of the smallest where it grows with them. */
static int64_t count_usual_ranks(const fr_request *request,
                                 const fr_sweep_points *at)
{
    int64_t n = 0;
    for (size_t v = 0; v < at->n_variants; v++) {
        if (at->variants[v].costs == NULL)
            continue;
        int64_t n_here = fr_cluster_slots(&at->variants[v].cluster);
        bool is_better =
            fr_request_on(request, FR_OPT_WEAK) ? n_here < n : n_here > n;
        n = n == 0 || is_better ? n_here : n;
    }
    return n;
}

/* ---- cases -------------------------------------------------------------- */

static fr_status set_options(const fr_sweep *sweep, size_t point,
                             fr_request *request, fr_err *err)
{
    for (int k = 0; k < sweep->n_keys; k++) {
        key found = find_key(request->command, sweep->keys[k].name);
        if (found.kind == KEY_OPTION)
            FR_TRY(fr_request_put(request, sweep->keys[k].name,
                                  fr_sweep_text_of(sweep, point, k), err));
    }
    return FR_OK;
}

void fr_sweep_fill_case(const fr_request *request, const fr_plan_choice *choice,
                        fr_sweep_points *points, size_t i)
{
    fr_sweep_case *out = &points->cases[i];
    points->case_models[i] = choice->file.model;
    out->model = &points->case_models[i];
    out->job = choice->file.job;
    out->plan = choice->file.plan;
    out->pins = choice->pins;
    out->n_ranks = request->option[FR_OPT_RANKS].count;
    out->allow_lossy = fr_request_has(request, FR_OPT_ALLOW);
    out->fit_confidence = fr_request_fit_confidence(request);
    out->framework = fr_request_framework(request, out->cluster);
    out->given = fr_request_given_fields(request, &out->facts);
    out->target = out->framework != NULL ? out->framework->checks : NULL;
}

fr_status fr_sweep_make_cases(fr_sweep_points *points, fr_err *err)
{
    const size_t n = points->sweep.n_points;
    points->cases = calloc(n, sizeof *points->cases);
    points->case_models = calloc(n, sizeof *points->case_models);
    return points->cases != NULL && points->case_models != NULL
               ? FR_OK
               : fr_fail_no_memory(err);
}

static fr_status make_case(const fr_request *request, fr_sweep_points *points,
                           size_t i, fr_err *err)
{
    fr_request varied = *request;
    fr_plan_choice choice;
    const fr_sweep *sweep = &points->sweep;
    fr_sweep_variant *variant = &points->variants[variant_of(sweep, i)];
    fr_sweep_case *out = &points->cases[i];
    int k = fr_sweep_find_key(sweep, "model");
    out->model = &points->models[k >= 0 ? fr_sweep_value_of(sweep, i, k) : 0];
    out->cluster = &variant->cluster;
    out->costs = variant->costs;
    fr_job_init(&out->job);
    fr_plan_init(&out->plan);
    FR_TRY(set_options(sweep, i, &varied, err));
    FR_TRY(fr_request_make_goal(&varied, &out->goal, err));
    if (variant->costs == NULL) {
        out->why = variant->why;
        return FR_OK;
    }
    const fr_plan_question question = {
        .purpose = FR_PLAN_TO_SEARCH,
        .model = out->model,
        .plan_path = request->n_positional > 2 ? request->positional[2] : NULL,
        .cluster = out->cluster,
        .n_ranks_max = points->n_usual_ranks,
        .is_quiet = true};
    fr_status status = fr_plan_resolve(&varied, &question, &choice, err);
    if (status == FR_OK)
        fr_sweep_fill_case(&varied, &choice, points, i);
    fr_plan_choice_release(&choice);
    return status;
}

fr_status fr_sweep_points_make(const fr_request *request,
                               const fr_inputs *inputs, fr_sweep_points *out,
                               fr_err *err)
{
    fr_sweep_init(&out->sweep);
    for (int i = 0; i < request->n_repeats; i++)
        FR_TRY(read_keys(request, request->repeats[i], &out->sweep, err));
    FR_TRY(fr_sweep_make_points(&out->sweep, MOST_POINTS, err));
    out->sweep.i_scale_key = find_scale_key(&out->sweep);
    FR_TRY(load_models(request, out, err));
    FR_TRY(make_variants(fr_request_configs(request), inputs, out, err));
    out->n_usual_ranks = count_usual_ranks(request, out);
    FR_TRY(fr_sweep_make_cases(out, err));
    for (size_t i = 0; i < out->sweep.n_points; i++)
        FR_TRY(make_case(request, out, i, err));
    return FR_OK;
}

void fr_sweep_points_release(fr_sweep_points *points)
{
    for (size_t i = 0; i < points->n_models; i++)
        fr_model_release(&points->models[i]);
    for (size_t i = 0; i < points->n_variants; i++) {
        fr_cost_model_destroy(points->variants[i].costs);
        fr_cluster_release(&points->variants[i].cluster);
    }
    free(points->models);
    free(points->variants);
    free(points->cases);
    free(points->case_models);
    fr_sweep_release(&points->sweep);
}
