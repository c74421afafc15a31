/* answer_validate.c: predictions against a file of measurements. */
#include "api/answer/answers.h"
#include "api/answer/explain_row.h"
#include "api/answer/learn_runs.h"
#include "api/answer/validate_shots.h"
#include "api/inputs.h"
#include "api/resolve/no_effect.h"
#include "core/base/log.h"
#include "core/base/text.h"
#include "core/system/fileio.h"
#include "cost_models/stack/stack.h"
#include "cost_models/stack/stack_features.h"
#include "interop/case/case.h"
#include "report/document/renderer.h"
#include "report/validation/shots_report.h"
#include "report/validation/validation_report.h"
#include "spec/result/cases.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef _OPENMP
#include <omp.h>
#else
#define omp_get_max_threads() 1
#endif

/* All rows of all files, and what became of them. */
typedef struct batch {
    fr_cases files[FR_MAX_POSITIONAL];
    fr_case *cases;
    fr_validation_row *rows;
    size_t n;
    int64_t max_ranks; /* 0: no limit */
    bool is_all;       /* grades do not count */
    const fr_profile *profile;
    const char *configs;
    const fr_log *log;
    size_t n_done;
} batch;

/* Memory of the rank that the row tells about, where that is known and stages
 * are told apart, else of the tightest one. */
static double predicted_bytes(const fr_prediction *p,
                              const fr_case_setup *setup)
{
    fr_stage_memory stage = {
        .allocated_bytes = p->memory.allocated_bytes,
        .reserved_bytes = p->memory.reserved_bytes,
        .device_bytes = p->memory.device_bytes,
    };
    if (p->memory.n_stages > 0 && setup->memory_rank == FR_CASE_RANK_FIRST)
        stage = p->memory.stages[0];
    if (p->memory.n_stages > 0 && setup->memory_rank == FR_CASE_RANK_LAST)
        stage = p->memory.stages[p->memory.n_stages - 1];
    switch (setup->memory_count) {
    case FR_MEMORY_COUNT_DEVICE:
        return (double)stage.device_bytes;
    case FR_MEMORY_COUNT_RESERVED:
        return (double)stage.reserved_bytes;
    default:
        return (double)stage.allocated_bytes;
    }
}

/* The step that a row of a published source is expected to take by the other
 * sources alone, over the predicted one, which knows this source, too. */
static double unseen_factor(const fr_prediction *prediction, const char *source)
{
    return prediction->expected_step_s > prediction->step_s
               ? exp(fr_stack_prior_without(source)->mean -
                     fr_stack_prior_without("")->mean)
               : 1;
}

static void fill_row(const batch *b, const fr_case_setup *setup,
                     const fr_prediction *prediction, fr_validation_row *row)
{
    row->has_run = true;
    row->framework = setup->framework;
    row->measured_s = setup->measured_s;
    const double unseen = unseen_factor(prediction, row->source);
    row->predicted_s = prediction->expected_step_s * unseen;
    row->p5_s = prediction->step_s_p5 * unseen;
    row->p95_s = prediction->step_s_p95 * unseen;
    row->prediction = *prediction;
    fr_stack_features(&setup->model, &setup->job, &setup->plan,
                      fr_cluster_device(&setup->cluster, 0),
                      prediction->breakdown_s, &row->features);
    row->is_step_scored = setup->measured_s > 0 &&
                          (b->is_all || setup->why_unscored_step[0] == '\0');
    if (!row->is_step_scored)
        snprintf(row->why, sizeof row->why, "%s", setup->why_unscored_step);
    row->measured_bytes = setup->peak_bytes;
    row->predicted_bytes = predicted_bytes(prediction, setup);
    row->is_memory_scored = setup->why_unscored_memory[0] == '\0' ||
                            (b->is_all && setup->peak_bytes > 0 &&
                             setup->memory_count != FR_MEMORY_COUNT_NONE);
    snprintf(row->why_memory, sizeof row->why_memory, "%s",
             setup->why_unscored_memory);
    if (setup->status != FR_CASE_STATUS_UNKNOWN)
        row->fits =
            setup->status == FR_CASE_STATUS_FITS ? FR_FITS_YES : FR_FITS_NO;
    row->predicted_fits = prediction->memory.fits ? FR_FITS_YES : FR_FITS_NO;
    row->p_fits = prediction->memory.p_fits;
}

static fr_status run_case(const batch *b, const fr_case *text,
                          fr_validation_row *row, fr_err *err)
{
    fr_case_setup setup;
    fr_prediction prediction;
    FR_TRY(fr_case_read(b->configs, text, &setup, err));
    row->n_gpus = fr_plan_world(&setup.plan);
    fr_plan_describe(&setup.plan, row->plan, sizeof row->plan);
    fr_status status;
    if (b->max_ranks > 0 && row->n_gpus > b->max_ranks)
        status = fr_fail(err, FR_INPUT, "more ranks than --max-ranks %lld",
                         (long long)b->max_ranks);
    else
        status = fr_predict_case(b->profile, &setup, b->log, &prediction, err);
    if (status == FR_OK)
        fill_row(b, &setup, &prediction, row);
    fr_case_setup_release(&setup);
    return status;
}

/* A row that cannot be run says why; only memory and the caller end the whole.
 */
static fr_status run_row(batch *b, size_t i, fr_err *err)
{
    fr_err why;
    fr_validation_row *row = &b->rows[i];
    row->fits = row->predicted_fits = FR_FITS_UNKNOWN;
    fr_case_name(&b->cases[i], row->name, sizeof row->name);
    snprintf(row->source, sizeof row->source, "%s",
             b->cases[i].field[FR_CASE_SOURCE]);
    fr_status status = run_case(b, &b->cases[i], row, &why);
    if (fr_status_ends_all(status))
        return fr_fail(err, status, "%s", why.text);
    if (status != FR_OK)
        fr_text_copy_cut(row->why, sizeof row->why, why.text);
    return FR_OK;
}

static fr_status run_rows(batch *b, int n_threads, fr_err *err)
{
    fr_status status = FR_OK;
    (void)n_threads; /* without OpenMP */
#pragma omp parallel for schedule(dynamic, 1) num_threads(n_threads)
    for (size_t i = 0; i < b->n; i++) {
        fr_err own;
        fr_status own_status = run_row(b, i, &own);
#pragma omp critical(fr_validate_progress)
        {
            if (own_status != FR_OK && status == FR_OK) {
                status = own_status;
                *err = own;
            }
            b->n_done++;
            fr_log_progress(b->log, (double)b->n_done / (double)b->n,
                            "%zu of %zu rows", b->n_done, b->n);
        }
    }
    fr_log_progress_end(b->log);
    return status;
}

/* Returns how many cells of the configuration a row fills. */
static size_t n_filled(const fr_case *text)
{
    size_t n = 0;
    for (int c = 0; c < FR_CASE_COLUMN_N; c++)
        n += text->field[c][0] != '\0';
    return n;
}

/* Do both say the memory of one measured row, each in a file of its own? */
static bool is_same_memory(const batch *b, size_t i, size_t j)
{
    const fr_case *x = &b->cases[i], *y = &b->cases[j];
    return x->file != y->file && *x->field[FR_CASE_ROW] != '\0' &&
           b->rows[i].is_memory_scored && b->rows[j].is_memory_scored &&
           fr_text_equal(x->field[FR_CASE_ROW], y->field[FR_CASE_ROW]) &&
           fr_text_equal(x->field[FR_CASE_SOURCE], y->field[FR_CASE_SOURCE]);
}

/*
 * A file of times and a file of memory may hold the same measurement: it
 * counts once, where the configuration is said more fully.
 */
static void drop_repeated(batch *b)
{
    for (size_t i = 0; i < b->n; i++)
        for (size_t j = i + 1; j < b->n; j++) {
            if (!is_same_memory(b, i, j))
                continue;
            size_t k = n_filled(&b->cases[i]) < n_filled(&b->cases[j]) ? i : j;
            b->rows[k].is_memory_scored = false;
            snprintf(b->rows[k].why_memory, sizeof b->rows[k].why_memory,
                     "the same row stands in another file");
        }
}

/* The row, of the framework that the command names where it names none. */
static fr_case take_row(const fr_request *request, const fr_case *row,
                        size_t *n_taken)
{
    fr_case taken = *row;
    if (fr_request_has(request, FR_OPT_FRAMEWORK) &&
        row->field[FR_CASE_FRAMEWORK][0] == '\0') {
        taken.field[FR_CASE_FRAMEWORK] = fr_case_framework_word(
            fr_framework_at((int)request->option[FR_OPT_FRAMEWORK].count));
        (*n_taken)++;
    }
    return taken;
}

static fr_status load(const fr_request *request, batch *b, fr_err *err)
{
    size_t n = 0, n_taken = 0;
    for (int i = 0; i < request->n_positional; i++) {
        FR_TRY(fr_as_input(
            fr_cases_load(request->positional[i], &b->files[i], err), err));
        n += b->files[i].n;
    }
    b->cases = calloc(n + 1, sizeof *b->cases);
    b->rows = calloc(n + 1, sizeof *b->rows);
    if (b->cases == NULL || b->rows == NULL)
        return fr_fail_no_memory(err);
    const char *source = fr_request_text(request, FR_OPT_SOURCE);
    for (int i = 0; i < request->n_positional; i++)
        for (size_t j = 0; j < b->files[i].n; j++) {
            const fr_case *row = &b->files[i].at[j];
            if (source == NULL ||
                strcasestr(row->field[FR_CASE_SOURCE], source) != NULL)
                b->cases[b->n++] = take_row(request, row, &n_taken);
        }
    if (fr_request_has(request, FR_OPT_FRAMEWORK) && n_taken == 0)
        fr_note_ignored(request, "--framework", "every row names its own");
    return FR_OK;
}

static void build(const fr_request *request, const fr_validation *v,
                  const fr_shots *shots, fr_document *out)
{
    const size_t n_worst = fr_request_has(request, FR_OPT_TOP)
                               ? (size_t)request->option[FR_OPT_TOP].count
                               : 10;
    out->audience = FR_FOR_DATA; /* which stand in front */
    fr_report_shots(shots, out);
    out->audience = FR_FOR_ALL;
    fr_report_validation(v, n_worst, fr_request_on(request, FR_OPT_ROWS), out);
    out->audience = FR_FOR_READERS;
    fr_report_shots(shots, out);
    out->audience = FR_FOR_ALL;
}

/* The answer as JSON in the file of --output. */
static fr_status save(const fr_document *document, const char *path,
                      fr_err *err)
{
    fr_buffer text;
    fr_buffer_init(&text);
    fr_status status =
        fr_document_render(document, &fr_render_json, NULL, &text, err);
    if (status == FR_OK)
        status = fr_file_write(path, text.data, text.n, err);
    fr_buffer_release(&text);
    return status;
}

static fr_status answer(const fr_request *request, const fr_validation *v,
                        fr_shots *shots, fr_document *out, fr_err *err)
{
    const char *output = fr_request_text(request, FR_OPT_OUTPUT);
    const char *bounds = fr_request_text(request, FR_OPT_CHECK);
    FR_TRY(fr_shots_draw(v, fr_request_log(request), shots, err));
    fr_document_init(out, "forerun.validation/1");
    build(request, v, shots, out);
    if (output != NULL)
        FR_TRY(save(out, output, err));
    out->has_answer = true;
    return bounds != NULL ? fr_validation_check(v, shots, bounds, err) : FR_OK;
}

/* Bounds that are not understood are said before anything runs. */
static fr_status check_bounds(const fr_request *request, fr_err *err)
{
    const char *bounds = fr_request_text(request, FR_OPT_CHECK);
    const fr_validation nothing = {0};
    fr_err why;
    if (bounds == NULL ||
        fr_validation_check(&nothing, NULL, bounds, &why) != FR_USAGE)
        return FR_OK;
    *err = why;
    return FR_USAGE;
}

fr_status fr_api_validate(const fr_request *request, fr_document *out,
                          fr_err *err)
{
    fr_status status;
    fr_profile profile;
    fr_validation validation = {0};
    batch b = {.max_ranks = request->option[FR_OPT_MAX_RANKS].count,
               .is_all = fr_request_on(request, FR_OPT_ALL)};
    const char *path = fr_request_text(request, FR_OPT_PROFILE);
    int n_threads = fr_request_threads(request);
    fr_shots shots;
    FR_TRY(check_bounds(request, err));
    FR_TRY(fr_shots_asked(request, &shots, err));
    b.configs = fr_request_configs(request);
    b.log = fr_request_log(request);
    if (path != NULL) {
        FR_TRY(fr_as_input(fr_profile_load(path, &profile, err), err));
        b.profile = &profile;
    }
    FR_TRY_GOTO(status, load(request, &b, err), out_batch);
    if (fr_request_has(request, FR_OPT_EXPLAIN_ROW)) {
        status = fr_explain_row(request, b.cases, b.n, out, err);
        goto out_batch;
    }
    FR_TRY_GOTO(
        status,
        run_rows(&b, n_threads > 0 ? n_threads : omp_get_max_threads(), err),
        out_batch);
    drop_repeated(&b);
    status = fr_validation_make(b.rows, b.n, &validation, err);
    b.rows = NULL;
    if (status == FR_OK)
        status = answer(request, &validation, &shots, out, err);
out_batch:
    fr_validation_release(&validation);
    fr_shots_release(&shots);
    free(b.rows);
    free(b.cases);
    for (int i = 0; i < FR_MAX_POSITIONAL; i++)
        fr_cases_release(&b.files[i]);
    if (b.profile != NULL)
        fr_profile_release(&profile);
    return status;
}
