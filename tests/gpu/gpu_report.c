/*
 * gpu_report.c: what the stages of tests/gpu/run left, as one report
 * (keys: docs/runtime-gpu.md).  Prints a table; exit 0: every stage passed and
 * every figure keeps its bound, 1 otherwise.
 *
 *   gpu_report DIR PLANS RANKS OUT
 *
 * DIR holds machine.tsv (key, value), stages.tsv (name, verdict, seconds,
 * detail), profile.json, NAME.simulate.json and NAME.run.json for the plans of
 * the list PLANS and for the layouts of the list RANKS; what is missing is a
 * figure that is not known.
 */
#include "core/base/buffer.h"
#include "core/document/json.h"
#include "core/system/fileio.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PLANS = 32, MAX_FIGURES = 48, MAX_LINE = 1024 };

static const double step_bound = 0.06, memory_bound = 0.03, loss_bound = 1e-4;

typedef struct plan_row {
    char name[64], model[64], options[256];
    double mfu_bound; /* NAN: none */
    double predicted_s, measured_s, measured_p5_s, measured_p95_s;
    double predicted_bytes, measured_bytes;
    double mfu; /* of the measured step */
} plan_row;

/* A number that is to be at most, or at least, its bound. */
typedef struct figure {
    char name[96];
    double value, bound; /* value NAN: not known */
    bool is_least;
} figure;

typedef struct report {
    const char *dir;
    plan_row plans[MAX_PLANS];
    size_t n_plans;
    figure figures[MAX_FIGURES];
    size_t n_figures;
    int n_failed_stages;
} report;

/* ---- reading ------------------------------------------------------------- */

static fr_json *open_json(const report *r, const char *name, const char *kind)
{
    char path[MAX_LINE];
    fr_json *json = NULL;
    fr_err err = {0};

    (void)snprintf(path, sizeof path, "%s/%s%s", r->dir, name, kind);
    if (!fr_file_exists(path))
        return NULL;
    if (fr_json_load(path, &json, &err) == FR_OK)
        return json;
    fprintf(stderr, "gpu_report: %s\n", err.text);
    return NULL;
}

/* Member `b` of member `a` (a NULL: of the root); NAN where it is not. */
static double number(const fr_json *json, const char *a, const char *b)
{
    double value = NAN;
    fr_err ignored;

    if (json == NULL)
        return NAN;
    const fr_json_value *at = fr_json_root(json);
    if (a != NULL)
        at = fr_json_find(at, a);
    if (at == NULL ||
        fr_json_get_double_or(at, b, NAN, &value, &ignored) != FR_OK)
        return NAN;
    return value;
}

static void read_plan(const report *r, plan_row *plan)
{
    fr_json *predicted = open_json(r, plan->name, ".simulate.json");
    fr_json *measured = open_json(r, plan->name, ".run.json");

    plan->predicted_s = number(predicted, NULL, "step_s");
    plan->measured_s = number(measured, "step_s", "median");
    plan->measured_p5_s = number(measured, "step_s", "p5");
    plan->measured_p95_s = number(measured, "step_s", "p95");
    plan->predicted_bytes = number(predicted, "memory", "peak_bytes");
    plan->measured_bytes = number(measured, NULL, "peak_bytes");
    /* Flop of the model over the dense peak: only the time is another. */
    plan->mfu =
        number(predicted, NULL, "mfu") * plan->predicted_s / plan->measured_s;
    fr_json_destroy(predicted);
    fr_json_destroy(measured);
}

static int read_cases(report *r, const char *path)
{
    char line[MAX_LINE], bound[32];
    FILE *file = fopen(path, "r");

    if (file == NULL) {
        fprintf(stderr, "gpu_report: cannot read %s\n", path);
        return 1;
    }
    while (r->n_plans < MAX_PLANS && fgets(line, sizeof line, file) != NULL) {
        plan_row *plan = &r->plans[r->n_plans];
        if (line[0] == '#' ||
            sscanf(line, "%63s %31s %63s %255[^\n]", plan->name, bound,
                   plan->model, plan->options) != 4)
            continue;
        plan->mfu_bound = strcmp(bound, "-") == 0 ? NAN : atof(bound);
        read_plan(r, plan);
        r->n_plans++;
    }
    (void)fclose(file);
    return 0;
}

/* ---- figures ------------------------------------------------------------- */

static bool keeps(const figure *f)
{
    if (isnan(f->value))
        return false;
    return f->is_least ? f->value >= f->bound : f->value <= f->bound;
}

static void add_figure(report *r, const char *name, const char *of,
                       double value, double bound, bool is_least)
{
    figure *f = &r->figures[r->n_figures];

    if (r->n_figures == MAX_FIGURES)
        return;
    (void)snprintf(f->name, sizeof f->name, "%s%s", name, of);
    f->value = value;
    f->bound = bound;
    f->is_least = is_least;
    r->n_figures++;
}

static double rel_err(double predicted, double measured)
{
    return predicted / measured - 1;
}

static bool is_trained(const plan_row *p)
{
    return !isnan(p->measured_s) && !isnan(p->predicted_s);
}

/* Means over the plans that were trained, which all should be. */
static void judge_plans(report *r)
{
    double step = 0, memory = 0, n = 0;

    for (size_t i = 0; i < r->n_plans; i++) {
        const plan_row *p = &r->plans[i];
        if (!is_trained(p))
            continue;
        step += fabs(rel_err(p->predicted_s, p->measured_s));
        memory += fabs(rel_err(p->predicted_bytes, p->measured_bytes));
        n++;
    }
    add_figure(r, "plans_trained", "", n, (double)r->n_plans, true);
    add_figure(r, "step_mape", "", n > 0 ? step / n : NAN, step_bound, false);
    add_figure(r, "memory_mape", "", n > 0 ? memory / n : NAN, memory_bound,
               false);
    for (size_t i = 0; i < r->n_plans; i++)
        if (!isnan(r->plans[i].mfu_bound))
            add_figure(r, "mfu ", r->plans[i].name, r->plans[i].mfu,
                       r->plans[i].mfu_bound, true);
}

/* The largest relative difference between the losses of two runs, of the
 * steps that the second one made; NAN: they cannot be compared. */
static double loss_difference(const fr_json *alone, const fr_json *other)
{
    const fr_json_value *a =
        alone != NULL ? fr_json_find(fr_json_root(alone), "loss") : NULL;
    const fr_json_value *b =
        other != NULL ? fr_json_find(fr_json_root(other), "loss") : NULL;
    const double resumed = number(other, NULL, "resumed_from_step");
    const size_t first = resumed > 0 ? (size_t)resumed : 0;
    double worst = 0;
    fr_err ignored;

    if (a == NULL || b == NULL || fr_json_n(b) == 0 ||
        fr_json_n(a) != first + fr_json_n(b))
        return NAN;
    for (size_t i = 0; i < fr_json_n(b); i++) {
        double x = NAN, y = NAN;
        if (fr_json_as_double(fr_json_at(a, first + i), &x, &ignored) !=
                FR_OK ||
            fr_json_as_double(fr_json_at(b, i), &y, &ignored) != FR_OK)
            return NAN;
        worst = fmax(worst, fabs(rel_err(y, x)));
    }
    return worst;
}

/* Ranks that share the GPU, and what goes on from their checkpoints, against
 * one that has it alone. */
static int judge_ranks(report *r, const char *path)
{
    char line[MAX_LINE], name[64];
    fr_json *alone = open_json(r, "alone", ".run.json");
    FILE *file = fopen(path, "r");

    if (file == NULL)
        fprintf(stderr, "gpu_report: cannot read %s\n", path);
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (line[0] == '#' || sscanf(line, "%63s", name) != 1 ||
            strcmp(name, "alone") == 0)
            continue;
        fr_json *other = open_json(r, name, ".run.json");
        add_figure(r, "loss ", name, loss_difference(alone, other), loss_bound,
                   false);
        fr_json_destroy(other);
    }
    fr_json_destroy(alone);
    if (file != NULL)
        (void)fclose(file);
    return file != NULL ? 0 : 1;
}

/* ---- writing ------------------------------------------------------------- */

static void put_number(fr_json_writer *w, const char *key, double value)
{
    if (isnan(value))
        fr_json_put_null(w, key);
    else
        fr_json_put_double(w, key, value);
}

/* Splits a line at tabs; n parts. */
static int split(char *line, char *parts[4])
{
    int n = 0;

    line[strcspn(line, "\n")] = '\0';
    for (char *at = line; at != NULL && n < 4; n++) {
        char *tab = n < 3 ? strchr(at, '\t') : NULL;
        parts[n] = at;
        if (tab != NULL)
            *tab = '\0';
        at = tab != NULL ? tab + 1 : NULL;
    }
    return n;
}

static FILE *open_list(const report *r, const char *name)
{
    char path[MAX_LINE];

    (void)snprintf(path, sizeof path, "%s/%s", r->dir, name);
    return fopen(path, "r");
}

static void put_machine(const report *r, fr_json_writer *w)
{
    char line[MAX_LINE], *part[4];
    FILE *file = open_list(r, "machine.tsv");

    fr_json_key(w, "machine");
    fr_json_begin_object(w);
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (split(line, part) >= 2)
            fr_json_put_string(w, part[0], part[1]);
    fr_json_end_object(w);
    if (file != NULL)
        (void)fclose(file);
}

static void put_stages(report *r, fr_json_writer *w)
{
    char line[MAX_LINE], *part[4];
    FILE *file = open_list(r, "stages.tsv");

    fr_json_key(w, "stages");
    fr_json_begin_array(w);
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (split(line, part) != 4)
            continue;
        r->n_failed_stages += strcmp(part[1], "failed") == 0;
        fr_json_begin_object(w);
        fr_json_put_string(w, "name", part[0]);
        fr_json_put_string(w, "verdict", part[1]);
        fr_json_put_double(w, "seconds", atof(part[2]));
        fr_json_put_string(w, "detail", part[3]);
        fr_json_end_object(w);
        printf("%-28s %-8s %6.0f s  %s\n", part[0], part[1], atof(part[2]),
               part[3]);
    }
    fr_json_end_array(w);
    if (file != NULL)
        (void)fclose(file);
    else
        r->n_failed_stages++;
}

/* A value of another document, as it stands there. */
static void put_value(fr_json_writer *w, const fr_json_value *value)
{
    const char *text = "";
    double x = 0;
    bool is_true = false;
    fr_err ignored;

    switch (fr_json_kind_of(value)) {
    case FR_JSON_OBJECT:
    case FR_JSON_ARRAY: {
        bool is_object = fr_json_kind_of(value) == FR_JSON_OBJECT;
        if (is_object)
            fr_json_begin_object(w);
        else
            fr_json_begin_array(w);
        for (size_t i = 0; i < fr_json_n(value); i++) {
            if (is_object)
                fr_json_key(w, fr_json_key_at(value, i));
            put_value(w, fr_json_at(value, i));
        }
        if (is_object)
            fr_json_end_object(w);
        else
            fr_json_end_array(w);
        return;
    }
    case FR_JSON_STRING:
        if (fr_json_as_string(value, &text, &ignored) == FR_OK)
            fr_json_string(w, text);
        return;
    case FR_JSON_NUMBER:
        if (fr_json_as_double(value, &x, &ignored) == FR_OK)
            fr_json_double(w, x);
        return;
    case FR_JSON_BOOL:
        if (fr_json_as_bool(value, &is_true, &ignored) == FR_OK)
            fr_json_bool(w, is_true);
        return;
    case FR_JSON_NULL:
        fr_json_null(w);
    }
}

/* The machine, and the errors of its fits. */
static void put_profile(const report *r, fr_json_writer *w)
{
    static const char *const keys[] = {"fingerprint", "held_out"};
    fr_json *profile = open_json(r, "profile", ".json");

    for (int i = 0; i < 2; i++) {
        const fr_json_value *value =
            profile != NULL ? fr_json_find(fr_json_root(profile), keys[i])
                            : NULL;
        fr_json_key(w, keys[i]);
        if (value != NULL)
            put_value(w, value);
        else
            fr_json_null(w);
    }
    fr_json_destroy(profile);
}

static void put_plans(const report *r, fr_json_writer *w)
{
    fr_json_key(w, "plans");
    fr_json_begin_array(w);
    for (size_t i = 0; i < r->n_plans; i++) {
        const plan_row *p = &r->plans[i];
        double step = rel_err(p->predicted_s, p->measured_s);
        double memory = rel_err(p->predicted_bytes, p->measured_bytes);
        fr_json_begin_object(w);
        fr_json_put_string(w, "name", p->name);
        fr_json_put_string(w, "model", p->model);
        fr_json_put_string(w, "options", p->options);
        put_number(w, "predicted_s", p->predicted_s);
        put_number(w, "measured_s", p->measured_s);
        put_number(w, "measured_p5_s", p->measured_p5_s);
        put_number(w, "measured_p95_s", p->measured_p95_s);
        put_number(w, "rel_err", step);
        put_number(w, "predicted_bytes", p->predicted_bytes);
        put_number(w, "measured_bytes", p->measured_bytes);
        put_number(w, "memory_rel_err", memory);
        put_number(w, "mfu", p->mfu);
        fr_json_end_object(w);
        if (is_trained(p))
            printf("%-20s step %7.2f ms, predicted %7.2f ms (%+6.1f %%); "
                   "memory %+6.1f %%; MFU %5.1f %%\n",
                   p->name, p->measured_s * 1e3, p->predicted_s * 1e3,
                   100 * step, 100 * memory, 100 * p->mfu);
        else
            printf("%-20s not trained\n", p->name);
    }
    fr_json_end_array(w);
}

static int put_figures(const report *r, fr_json_writer *w)
{
    int n_broken = 0;

    fr_json_key(w, "figures");
    fr_json_begin_array(w);
    for (size_t i = 0; i < r->n_figures; i++) {
        const figure *f = &r->figures[i];
        n_broken += !keeps(f);
        fr_json_begin_object(w);
        fr_json_put_string(w, "name", f->name);
        put_number(w, "value", f->value);
        fr_json_put_string(w, "bound", f->is_least ? "at least" : "at most");
        fr_json_put_double(w, "of", f->bound);
        fr_json_put_bool(w, "passed", keeps(f));
        fr_json_end_object(w);
        printf("%-28s %-8s ", f->name, keeps(f) ? "passed" : "failed");
        if (isnan(f->value))
            printf("not known, ");
        else
            printf("%.4g, ", f->value);
        printf("%s %g\n", f->is_least ? "at least" : "at most", f->bound);
    }
    fr_json_end_array(w);
    return n_broken;
}

static fr_status write_report(report *r, const char *path, bool *has_passed,
                              fr_err *err)
{
    fr_buffer buffer;
    fr_json_writer w;

    fr_buffer_init(&buffer);
    fr_json_writer_init(&w, &buffer);
    fr_json_begin_object(&w);
    fr_json_put_string(&w, "schema", "forerun.gpu-report/1");
    put_machine(r, &w);
    put_profile(r, &w);
    put_stages(r, &w);
    put_plans(r, &w);
    int n_broken = put_figures(r, &w);
    *has_passed = n_broken == 0 && r->n_failed_stages == 0;
    fr_json_put_bool(&w, "passed", *has_passed);
    fr_json_end_object(&w);
    fr_buffer_putc(&buffer, '\n');
    return fr_file_write_buffer(path, &buffer, err);
}

int main(int argc, char **argv)
{
    bool has_passed = false;
    fr_err err = {0};

    if (argc != 5) {
        fprintf(stderr, "usage: gpu_report DIR PLANS RANKS OUT\n");
        return 2;
    }
    report *r = calloc(1, sizeof *r);
    if (r == NULL)
        return 1;
    r->dir = argv[1];
    if (read_cases(r, argv[2]) != 0) {
        free(r);
        return 1;
    }
    judge_plans(r);
    if (judge_ranks(r, argv[3]) != 0) {
        free(r);
        return 1;
    }
    fr_status status = write_report(r, argv[4], &has_passed, &err);
    free(r);
    if (status != FR_OK) {
        fprintf(stderr, "gpu_report: %s\n", err.text);
        return 1;
    }
    printf("%s: %s\n", argv[4], has_passed ? "passed" : "failed");
    return has_passed ? 0 : 1;
}
