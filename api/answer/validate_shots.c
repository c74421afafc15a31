/* validate_shots.c: see validate_shots.h. */
#include "api/answer/validate_shots.h"

#include "core/base/text.h"
#include "core/base/units.h"
#include "cost_models/stack/stack_shots.h"

#include <stdlib.h>
#include <string.h>

static const int64_t usual_draws = 40;

static fr_status parse_numbers(const char *text, fr_shots *out, fr_err *err)
{
    char copy[128], *fields[FR_SHOTS_MOST];
    size_t n = 0;
    if (fr_text_copy(copy, sizeof copy, text))
        n = fr_text_split(copy, ',', fields, FR_SHOTS_MOST);
    if (n < 1 || n > FR_SHOTS_MOST)
        return fr_fail(err, FR_USAGE,
                       "--shots '%.60s': give 1 to %d numbers of rows: 0,1,3",
                       text, (int)FR_SHOTS_MOST);
    for (size_t i = 0; i < n; i++) {
        fr_err why;
        if (fr_parse_i64(fr_text_trim(fields[i]), &out->k[i], &why) != FR_OK ||
            out->k[i] < 0 || out->k[i] > FR_STACK_MOST_RUNS)
            return fr_fail(err, FR_USAGE,
                           "--shots: '%.30s' is no number of rows from 0 to "
                           "%d: give 0,1,3",
                           fields[i], (int)FR_STACK_MOST_RUNS);
    }
    out->n = (int)n;
    return FR_OK;
}

fr_status fr_shots_asked(const fr_request *request, fr_shots *out, fr_err *err)
{
    const char *text = fr_request_text(request, FR_OPT_SHOTS);
    fr_shots asked = {.n = 0};
    bool has_draws = fr_request_has(request, FR_OPT_DRAWS);
    if (text == NULL) {
        if (has_draws || fr_request_has(request, FR_OPT_SEED))
            return fr_fail(err, FR_USAGE,
                           "--draws and --seed go with --shots 0,1,3");
        *out = asked;
        return FR_OK;
    }
    asked.n_draws =
        has_draws ? request->option[FR_OPT_DRAWS].count : usual_draws;
    asked.seed = fr_request_has(request, FR_OPT_SEED)
                     ? request->option[FR_OPT_SEED].count
                     : 1;
    FR_TRY(parse_numbers(text, &asked, err));
    *out = asked;
    return FR_OK;
}

fr_status fr_shots_draw(const fr_validation *v, const fr_log *log,
                        fr_shots *shots, fr_err *err)
{
    size_t n = 0;
    fr_sourced_run *runs;
    if (shots->n == 0)
        return FR_OK;
    FR_TRY_CALLOC(runs, v->n_rows + 1, err);
    for (size_t i = 0; i < v->n_rows; i++) {
        const fr_validation_row *row = &v->rows[i];
        if (!row->is_step_scored || row->predicted_s <= 0)
            continue;
        runs[n].source = row->source;
        runs[n].run = (fr_run_point){.measured_s = row->measured_s,
                                     .predicted_s = row->prediction.step_s,
                                     .features = row->features};
        n++;
    }
    fr_status status = fr_stack_try_shots(runs, n, log, shots, err);
    free(runs);
    return status;
}
