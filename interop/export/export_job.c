/* export_job.c: see export_job.h. */
#include "interop/export/export_job.h"

#include "core/base/units.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The interval if the failures of the cluster are not known, and in steps if
 * nothing is predicted. */
static const double usual_every_s = 1800;
static const int64_t usual_every_steps = 1000;
static const char usual_dir[] = "checkpoints";
/* Of a limit, so that a submission loses at most this. */
static const double most_of_limit = 0.25;

double fr_export_run_s(const fr_export_request *request)
{
    const fr_plan_file *file = request->file;
    return file->has_prediction
               ? file->prediction.step_s * (double)file->job.n_steps
               : 0;
}

static int64_t choose_interval(const fr_export_wish *wish,
                               const fr_plan_file *file)
{
    double s = wish->best_every_s > 0 ? wish->best_every_s : usual_every_s;
    if (wish->checkpoint_every > 0)
        return wish->checkpoint_every;
    if (!file->has_prediction)
        return usual_every_steps;
    if (wish->time_limit_s > 0)
        s = fmin(s, most_of_limit * wish->time_limit_s);
    return (int64_t)fmax(1, floor(s / file->prediction.step_s));
}

fr_status fr_export_choose_job(const fr_export_wish *wish,
                               fr_export_request *request, fr_err *err)
{
    const fr_plan_file *file = request->file;
    const int64_t n_steps = file->job.n_steps;
    const int64_t every = choose_interval(wish, file);
    const double interval_s =
        file->has_prediction ? (double)every * file->prediction.step_s : 0;
    request->time_limit_s = wish->time_limit_s;
    if (wish->checkpoint_dir != NULL || wish->checkpoint_every > 0 ||
        every < n_steps) {
        request->checkpoint_dir =
            wish->checkpoint_dir != NULL ? wish->checkpoint_dir : usual_dir;
        request->checkpoint_every = every < n_steps ? every : n_steps;
    }
    if (wish->time_limit_s > 0 &&
        wish->time_limit_s < fr_export_run_s(request) &&
        interval_s >= wish->time_limit_s)
        return fr_fail(err, FR_USAGE,
                       "--time-limit ends a submission before its first "
                       "checkpoint, which %lld steps are predicted to reach "
                       "after %.3g h; give a longer limit%s",
                       (long long)every, interval_s / 3600,
                       wish->checkpoint_every > 0
                           ? ", or a smaller --checkpoint-every"
                           : "");
    return FR_OK;
}

int64_t fr_export_minutes(const fr_export_request *request)
{
    enum { START_MINUTES = 30, MOST_MINUTES = 1000000 };
    double minutes = ceil(2 * fr_export_run_s(request) / 60) + START_MINUTES;
    if (request->time_limit_s > 0)
        minutes = ceil(request->time_limit_s / 60);
    else if (!request->file->has_prediction)
        return 0;
    return minutes < MOST_MINUTES ? (int64_t)minutes : MOST_MINUTES;
}

bool fr_export_has_checkpoints(const fr_export_request *request)
{
    const fr_exporter *program =
        request->program != NULL ? request->program : request->writer;
    return request->checkpoint_dir != NULL && program != NULL &&
           program->left[FR_EXPORT_CHECKPOINTS] == NULL;
}

int64_t fr_export_submissions(const fr_export_request *request)
{
    const double run_s = fr_export_run_s(request);
    const double limit_s = 60 * (double)fr_export_minutes(request);
    if (!(limit_s > 0) || run_s <= limit_s ||
        !fr_export_has_checkpoints(request))
        return 1;
    /* The steps since the last checkpoint are lost. */
    const double lost_s =
        (double)request->checkpoint_every * request->file->prediction.step_s;
    return (int64_t)ceil(run_s / (limit_s - lost_s));
}

/* ---- what files say ------------------------------------------------------ */

static char *format_run(char buf[FR_FORMAT_MAX], double seconds)
{
    enum { DAY_S = 86400 };
    if (seconds < 2 * DAY_S)
        return fr_format_s(buf, FR_FORMAT_MAX, seconds);
    snprintf(buf, FR_FORMAT_MAX, "%.3g days", seconds / DAY_S);
    return buf;
}

void fr_export_put_job(const fr_export_request *request, const char *prefix,
                       fr_buffer *out)
{
    const fr_plan_file *file = request->file;
    const fr_job *job = &file->job;
    const bool has_tokens = file->model.kind != FR_MODEL_LAYERS;
    const int64_t each = fr_model_sample_tokens(&file->model, job->seq);
    char run[FR_FORMAT_MAX];
    fr_buffer_printf(out, "%sJob: %lld steps of %lld", prefix,
                     (long long)job->n_steps, (long long)job->global_batch);
    if (has_tokens)
        fr_buffer_printf(out, " x %lld tokens", (long long)each);
    else
        fr_buffer_puts(out, " samples");
    if (job->tokens > 0)
        fr_buffer_printf(out, ", which train on %lld %s",
                         (long long)job->tokens,
                         has_tokens ? "tokens" : "samples");
    if (file->has_prediction)
        fr_buffer_printf(out, "; predicted %s without failures",
                         format_run(run, fr_export_run_s(request)));
    fr_buffer_putc(out, '\n');
    if (fr_export_has_checkpoints(request))
        fr_buffer_printf(out,
                         "%sIt saves a checkpoint after each %lld steps; "
                         "started again, it continues from the newest.\n",
                         prefix, (long long)request->checkpoint_every);
    else if (request->checkpoint_dir == NULL)
        fr_buffer_printf(out,
                         "%sIt saves no checkpoint, because it is short; "
                         "--checkpoint DIR asks for them.\n",
                         prefix);
}

/* One thing of the job that the file lacks. */
static void put_one(const fr_export_request *request, fr_export_part part,
                    const char *prefix, fr_buffer *out)
{
    const fr_plan_file *file = request->file;
    const char *why = request->writer->left[part];
    if (why == NULL)
        return;
    switch (part) {
    case FR_EXPORT_CHECKPOINTS:
        if (request->checkpoint_dir != NULL)
            fr_buffer_printf(out, "%scheckpoint after each %lld steps: %s\n",
                             prefix, (long long)request->checkpoint_every, why);
        break;
    case FR_EXPORT_DATA:
        if (file->job.data[0] != '\0' &&
            (request->writer->takes_data == NULL ||
             !request->writer->takes_data(&file->job)))
            fr_buffer_printf(out, "%sdata: %s\n", prefix, why);
        break;
    case FR_EXPORT_TIME_LIMIT:
        if (request->time_limit_s > 0)
            fr_buffer_printf(out, "%stime limit of %lld minutes: %s\n", prefix,
                             (long long)fr_export_minutes(request), why);
        break;
    case FR_EXPORT_PARTS_N:
        break;
    }
}

void fr_export_put_left(const fr_export_request *request, const char *prefix,
                        fr_buffer *out)
{
    for (int i = 0; request->writer != NULL && i < FR_EXPORT_PARTS_N; i++)
        put_one(request, (fr_export_part)i, prefix, out);
}

void fr_export_put_word(const char *path, fr_buffer *out)
{
    const char *plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                        "0123456789/._-+:,@%";
    if (path[strspn(path, plain)] == '\0') {
        fr_buffer_puts(out, path);
        return;
    }
    fr_buffer_putc(out, '\'');
    for (const char *c = path; *c != '\0'; c++)
        if (*c == '\'')
            fr_buffer_puts(out, "'\\''");
        else
            fr_buffer_putc(out, *c);
    fr_buffer_putc(out, '\'');
}

void fr_export_put_string(const char *path, fr_buffer *out)
{
    fr_buffer_putc(out, '"');
    for (const char *c = path; *c != '\0'; c++) {
        if (*c == '"' || *c == '\\')
            fr_buffer_putc(out, '\\');
        if ((unsigned char)*c < ' ')
            fr_buffer_printf(out, "\\u%04x", (unsigned char)*c);
        else
            fr_buffer_putc(out, *c);
    }
    fr_buffer_putc(out, '"');
}
