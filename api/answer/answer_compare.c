/*
 * answer_compare.c: two plans, predictions, tunings or runs side by side:
 * whatever holds a step time and its parts.
 */
#include "api/answer/answers.h"
#include "api/answer/compare_traces.h"
#include "api/fit/fit_answer.h"
#include "core/system/fileio.h"
#include "frameworks/framework.h"
#include "interop/trace/trace_losses.h"
#include "plan/decide/plan_json.h"
#include "report/prediction_report.h"
#include "spec/result/fit_advice.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct side {
    const char *path;
    char plan[256];
    const char *framework; /* of the list of frameworks; NULL: none named */
    double step_s, tokens_per_s;
    double breakdown_s[FR_PART_N];
    uint64_t peak_bytes;
    char verdict[FR_FIT_VERDICT]; /* of a plan that does not fit; else "" */
} side;

static const fr_json_value *find(const fr_json_value *object, const char *key)
{
    return object != NULL ? fr_json_find(object, key) : NULL;
}

/* The object with the numbers: the root, its prediction, its best plan's. */
static const fr_json_value *find_numbers(const fr_json_value *root)
{
    if (fr_json_find(root, "step_s") != NULL)
        return root;
    const fr_json_value *inner = fr_json_find(root, "prediction");
    if (inner == NULL)
        inner = find(find(root, "best"), "prediction");
    return inner;
}

static fr_status read_step(const fr_json_value *numbers, side *out, fr_err *err)
{
    const fr_json_value *step = fr_json_find(numbers, "expected_step_s");
    if (step == NULL)
        step = fr_json_find(numbers, "step_s");
    if (step == NULL)
        return fr_json_fail(numbers, err, "no step_s");
    if (fr_json_kind_of(step) == FR_JSON_OBJECT)
        return fr_json_get_double(step, "median", &out->step_s, err);
    return fr_json_as_double(step, &out->step_s, err);
}

static fr_status read_name(const fr_json_value *root, side *out, fr_err *err)
{
    const fr_json_value *name = fr_json_find(root, "name");
    const fr_json_value *plan = fr_json_find(root, "plan");
    const char *text = "";
    fr_plan decisions;
    if (plan != NULL && fr_json_kind_of(plan) == FR_JSON_OBJECT) {
        FR_TRY(fr_plan_json_read(plan, fr_json_find(root, "execution"),
                                 &decisions, err));
        fr_plan_describe(&decisions, out->plan, sizeof out->plan);
        return FR_OK;
    }
    if (name == NULL && plan != NULL && fr_json_kind_of(plan) == FR_JSON_STRING)
        name = plan;
    if (name == NULL)
        name = find(find(root, "best"), "name");
    if (name != NULL)
        FR_TRY(fr_json_as_string(name, &text, err));
    snprintf(out->plan, sizeof out->plan, "%s", text);
    return FR_OK;
}

static const char *framework_name(const char *text)
{
    const fr_framework *found = fr_framework_find(text);
    return found != NULL ? found->name : NULL;
}

/* Reads the framework of a tuning or of the setup of a prediction. */
static fr_status read_framework(const fr_json_value *root, side *out,
                                fr_err *err)
{
    const fr_json_value *name = fr_json_find(root, "framework");
    const char *text;
    if (name == NULL)
        name = find(fr_json_find(root, "setup"), "framework");
    if (name == NULL || fr_json_kind_of(name) == FR_JSON_NULL)
        return FR_OK;
    FR_TRY(fr_json_as_string(name, &text, err));
    out->framework = framework_name(text);
    return FR_OK;
}

/* Reads the verdict of a prediction; a run has none, because it fitted. */
static fr_status read_verdict(const fr_json_value *memory, side *out,
                              fr_err *err)
{
    fr_prediction p = {.memory.fits = true};
    const fr_json_value *fits = find(memory, "fits");
    if (fits == NULL)
        return FR_OK;
    FR_TRY(fr_json_as_bool(fits, &p.memory.fits, err));
    if (p.memory.fits)
        return FR_OK;
    FR_TRY(fr_json_get_double_or(memory, "p_fits", 0, &p.memory.p_fits, err));
    const struct {
        const char *key;
        uint64_t *out;
    } amounts[] = {{"peak_bytes", &p.memory.peak_bytes},
                   {"capacity_bytes", &p.memory.capacity_bytes},
                   {"host_bytes", &p.memory.host_bytes},
                   {"host_capacity_bytes", &p.memory.host_capacity_bytes}};
    for (size_t i = 0; i < FR_LENGTH(amounts); i++)
        FR_TRY(
            fr_json_get_u64_or(memory, amounts[i].key, 0, amounts[i].out, err));
    fr_fit_verdict(&p, out->verdict, sizeof out->verdict);
    return FR_OK;
}

static fr_status read_numbers(const fr_json_value *root, side *out, fr_err *err)
{
    const fr_json_value *numbers = find_numbers(root);
    if (numbers == NULL)
        return fr_json_fail(root, err,
                            "holds no step time; give a plan, or what "
                            "simulate, tune or run print with --json");
    FR_TRY(read_name(root, out, err));
    FR_TRY(read_framework(root, out, err));
    FR_TRY(read_step(numbers, out, err));
    FR_TRY(fr_json_get_double_or(numbers, "tokens_per_s", 0, &out->tokens_per_s,
                                 err));
    const fr_json_value *parts = fr_json_find(numbers, "breakdown_s");
    for (int i = 0; parts != NULL && i < FR_PART_N; i++)
        FR_TRY(fr_json_get_double_or(parts, fr_part_name((fr_part)i), 0,
                                     &out->breakdown_s[i], err));
    const fr_json_value *memory = fr_json_find(numbers, "memory");
    FR_TRY(read_verdict(memory, out, err));
    return fr_json_get_u64_or(memory != NULL ? memory : numbers, "peak_bytes",
                              0, &out->peak_bytes, err);
}

/* ---- plan files ---------------------------------------------------------- */

static void take_prediction(const fr_prediction *p, side *out)
{
    out->step_s = p->expected_step_s;
    out->tokens_per_s = p->tokens_per_s;
    out->peak_bytes = p->memory.peak_bytes;
    memcpy(out->breakdown_s, p->breakdown_s, sizeof out->breakdown_s);
    out->verdict[0] = '\0';
    if (!p->memory.fits)
        fr_fit_verdict(p, out->verdict, sizeof out->verdict);
}

/* A file that was changed by hand carries the prediction of another plan: the
 * numbers are then those of the plan that it has now. */
static fr_status renew(const fr_request *request, const fr_plan_file *file,
                       side *out, fr_err *err)
{
    const fr_fit_place place = {.cluster = file->cluster};
    fr_inputs inputs = {0};
    fr_prediction p;
    fr_cluster cluster;
    fr_err unused;
    if (file->cluster[0] == '\0' ||
        fr_cluster_load(fr_request_configs(request), file->cluster, &cluster,
                        &unused) != FR_OK)
        return FR_OK;
    const bool is_home = fr_cluster_hash(&cluster) == file->cluster_hash;
    fr_cluster_release(&cluster);
    if (!is_home)
        return FR_OK;
    fr_status status =
        fr_fit_answer_predict(request, file, &place, &inputs, &p, err);
    if (status != FR_OK)
        fr_err_prefix(err, "%s", out->path);
    if (status == FR_OK && !fr_fit_answer_is_carried(file, &inputs, &p)) {
        fr_request_note(request,
                        "%s: the prediction in the file belongs to another "
                        "plan; the plan was predicted anew on %s",
                        out->path, file->cluster);
        take_prediction(&p, out);
    }
    fr_inputs_release(&inputs);
    return status;
}

static fr_status check_plan(const fr_request *request, const char *text,
                            size_t n_text, side *out, fr_err *err)
{
    fr_plan_file file;
    FR_TRY(fr_plan_file_parse(out->path, text, n_text, &file, err));
    fr_status status = FR_OK;
    out->framework = framework_name(file.framework);
    if (file.has_prediction)
        status = renew(request, &file, out, err);
    fr_plan_file_release(&file);
    return status;
}

static bool is_plan_file(const fr_json_value *root)
{
    const fr_json_value *schema = find(root, "schema");
    const char *text;
    fr_err unused;
    return schema != NULL &&
           fr_json_as_string(schema, &text, &unused) == FR_OK &&
           (strcmp(text, FR_PLAN_SCHEMA) == 0 ||
            strcmp(text, FR_PLAN_SCHEMA_1) == 0);
}

static fr_status read_side(const fr_request *request, const char *path,
                           side *out, fr_err *err)
{
    fr_json *json;
    char *text; /* read once: a pipe ends */
    size_t n_text;
    side result = {.path = path};
    FR_TRY(fr_as_input(
        fr_file_read(path, FR_FILE_BYTES_MAX, &text, &n_text, err), err));
    fr_status status = fr_json_parse(path, text, n_text, &json, err);
    if (status == FR_OK) {
        const bool is_plan = is_plan_file(fr_json_root(json));
        status = read_numbers(fr_json_root(json), &result, err);
        fr_json_destroy(json);
        if (status == FR_OK && is_plan)
            status = check_plan(request, text, n_text, &result, err);
    }
    free(text);
    if (status == FR_OK)
        *out = result;
    return status;
}

static void put_side(const char *key, const char *name, const side *s,
                     fr_document *out)
{
    fr_json_writer *json = &out->data;
    fr_json_open_object(json, key);
    fr_json_put_string(json, "file", s->path);
    fr_json_put_string(json, "plan", s->plan);
    fr_json_put_string(json, "framework", s->framework);
    fr_json_put_double(json, "step_s", s->step_s);
    fr_json_put_double(json, "tokens_per_s", s->tokens_per_s);
    fr_json_put_u64(json, "peak_bytes", s->peak_bytes);
    fr_json_put_string(json, "verdict",
                       s->verdict[0] != '\0' ? s->verdict : NULL);
    fr_report_breakdown_json("breakdown_s", s->breakdown_s, json);
    fr_json_end_object(json);
    fr_document_printf(out, "%s: %s %s", name, s->path, s->plan);
    if (s->framework != NULL)
        fr_document_printf(out, ", framework %s", s->framework);
    fr_document_puts(out, "\n");
}

static void add_amount(fr_table *table, double value, bool is_bytes)
{
    if (value == 0)
        fr_table_number(table, FR_CELL_NUMBER, NAN, "-");
    else if (is_bytes)
        fr_table_bytes(table, value);
    else
        fr_table_s(table, value);
}

static void add_row(fr_table *table, const char *name, double a, double b,
                    bool is_bytes)
{
    fr_table_text(table, name);
    add_amount(table, a, is_bytes);
    add_amount(table, b, is_bytes);
    if (a > 0 && b > 0)
        fr_table_change(table, b / a - 1);
    else
        fr_table_blank(table, 1);
}

static void print_verdict(const char *name, const side *s, fr_document *out)
{
    if (s->verdict[0] != '\0')
        fr_document_printf(out, "%s %s\n", name, s->verdict);
}

static void build(const side *a, const side *b, fr_document *out)
{
    static const char *const headings[] = {"", ">A", ">B", ">B against A",
                                           NULL};
    char title[32];
    print_verdict("A", a, out);
    print_verdict("B", b, out);
    put_side("a", "A", a, out);
    put_side("b", "B", b, out);
    fr_json_put_double(&out->data, "step_ratio", b->step_s / a->step_s);
    fr_document_puts(out, "\n");
    fr_table *table = fr_document_table(out, headings);
    for (int i = 0; i < FR_PART_N; i++)
        if (a->breakdown_s[i] != 0 || b->breakdown_s[i] != 0)
            add_row(table,
                    fr_report_part_title((fr_part)i, title, sizeof title),
                    a->breakdown_s[i], b->breakdown_s[i], false);
    add_row(table, "step", a->step_s, b->step_s, false);
    add_row(table, "peak memory", (double)a->peak_bytes, (double)b->peak_bytes,
            true);
}

fr_status fr_api_compare(const fr_request *request, fr_document *out,
                         fr_err *err)
{
    side a, b;
    if (fr_trace_is_file(request->positional[1]))
        return fr_compare_traces(request, out, err);
    if (request->n_positional > 2)
        return fr_fail(err, FR_USAGE,
                       "'%.200s': only traces may be more than two",
                       request->positional[2]);
    FR_TRY(read_side(request, request->positional[0], &a, err));
    FR_TRY(read_side(request, request->positional[1], &b, err));
    fr_document_init(out, "forerun.comparison/1");
    build(&a, &b, out);
    return FR_OK;
}
