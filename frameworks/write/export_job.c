/* export_job.c: see export_job.h. */
#include "frameworks/write/export_job.h"

#include "core/base/units.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* The interval if the failures of the cluster are not known, and in steps if
 * nothing is predicted. */
static const double usual_every_s = 1800;
static const int64_t usual_every_steps = 1000;
static const char usual_dir[] = "checkpoints";
/* A submission loses at most this share of its limit. */
static const double most_of_limit = 0.25;

double fr_export_run_s(const fr_export_request *request)
{
    const fr_plan_file *file = request->file;
    return file->has_prediction
               ? file->prediction.expected_step_s * (double)file->job.n_steps
               : 0;
}

/* The exporter whose files have the job: a launcher's program. */
static const fr_exporter *program_of(const fr_export_request *request)
{
    return request->program != NULL ? request->program : request->writer;
}

static bool can_save(const fr_export_request *request)
{
    return program_of(request) != NULL &&
           program_of(request)->left[FR_EXPORT_CHECKPOINTS] == NULL;
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
    /* A step of no time would give more than a job can have. */
    return (int64_t)fmax(
        1, fmin(floor(s / file->prediction.expected_step_s), 1e15));
}

static char *format_run(char buf[FR_FORMAT_MAX], double seconds)
{
    enum { DAY_S = 86400 };
    if (seconds < 2 * DAY_S)
        return fr_format_s(buf, FR_FORMAT_MAX, seconds);
    snprintf(buf, FR_FORMAT_MAX, "%.3g days", seconds / DAY_S);
    return buf;
}

/* The program begins again in each submission. */
static fr_status fail_too_short(const fr_export_wish *wish,
                                const fr_export_request *request, fr_err *err)
{
    char limit[FR_FORMAT_MAX], run[FR_FORMAT_MAX];
    const fr_exporter *program = program_of(request);
    return fr_fail(err, FR_INFEASIBLE,
                   "--time-limit %s ends the run, which is predicted to take "
                   "%s, and %s cannot continue it: %s; leave out --time-limit, "
                   "or take --program forerun, megatron or torchtitan, which "
                   "continue from checkpoints; --force exports it anyway",
                   format_run(limit, wish->time_limit_s),
                   format_run(run, fr_export_run_s(request)),
                   fr_exporter_name_of(program),
                   program->left[FR_EXPORT_CHECKPOINTS]);
}

/* A path that shells and programs take as it is. */
static fr_status check_dir(const char *dir, fr_err *err)
{
    if (dir == NULL)
        return FR_OK;
    if (dir[0] == '~')
        return fr_fail(err, FR_USAGE,
                       "--checkpoint '%.200s': the job reads the path as it "
                       "is, and its '~' is no folder; give a whole path, such "
                       "as \"$HOME%.200s\"",
                       dir, dir[1] == '/' ? dir + 1 : "");
    if (dir[0] == '-')
        return fr_fail(err, FR_USAGE,
                       "--checkpoint '%.200s' looks like an option of the "
                       "program; give \"./%.200s\"",
                       dir, dir);
    for (const char *c = dir; *c != '\0'; c++)
        if (iscntrl((unsigned char)*c))
            return fr_fail(err, FR_USAGE,
                           "--checkpoint has a control character; give a path "
                           "of one line");
    return FR_OK;
}

fr_status fr_export_choose_job(const fr_export_wish *wish,
                               fr_export_request *request, fr_err *err)
{
    const fr_plan_file *file = request->file;
    const int64_t n_steps = file->job.n_steps;
    const int64_t every = choose_interval(wish, file);
    const double interval_s =
        file->has_prediction ? (double)every * file->prediction.expected_step_s
                             : 0;
    request->time_limit_s = wish->time_limit_s;
    if (wish->checkpoint_dir != NULL || wish->checkpoint_every > 0 ||
        every < n_steps) {
        request->checkpoint_dir =
            wish->checkpoint_dir != NULL ? wish->checkpoint_dir : usual_dir;
        request->checkpoint_every = every < n_steps ? every : n_steps;
    }
    FR_TRY(check_dir(wish->checkpoint_dir, err));
    const double limit_s = 60 * (double)fr_export_minutes(request);
    if (!(limit_s > 0) || limit_s >= fr_export_run_s(request))
        return FR_OK;
    if (wish->time_limit_s > 0 && !can_save(request) &&
        !program_of(request)->may_save && request->writer->limit_word != NULL &&
        !wish->is_forced)
        return fail_too_short(wish, request, err);
    if (can_save(request) &&
        interval_s >= limit_s - fr_export_margin_s(request))
        return fr_fail(err, FR_USAGE,
                       "the time limit ends a submission before its first "
                       "checkpoint, which %lld steps are predicted to reach "
                       "after %.3g h; give a longer --time-limit%s",
                       (long long)every, interval_s / 3600,
                       wish->checkpoint_every > 0
                           ? ", or a smaller --checkpoint-every"
                           : "");
    return FR_OK;
}

double fr_export_margin_s(const fr_export_request *request)
{
    const double most_s = 300;
    const int64_t minutes = fr_export_minutes(request);
    return minutes > 0 ? fmin(most_s, 60 * (double)minutes / 10) : most_s;
}

int64_t fr_export_minutes(const fr_export_request *request)
{
    enum { START_MINUTES = 30 };
    double minutes = ceil(2 * fr_export_run_s(request) / 60) + START_MINUTES;
    if (request->time_limit_s > 0)
        minutes = ceil(request->time_limit_s / 60);
    else if (!request->file->has_prediction)
        return 0;
    return minutes < FR_EXPORT_MINUTES_MAX ? (int64_t)minutes
                                           : FR_EXPORT_MINUTES_MAX;
}

bool fr_export_has_checkpoints(const fr_export_request *request)
{
    return request->checkpoint_dir != NULL && can_save(request);
}

int64_t fr_export_submissions(const fr_export_request *request)
{
    const double run_s = fr_export_run_s(request);
    const double limit_s = 60 * (double)fr_export_minutes(request);
    if (!(limit_s > 0) || run_s <= limit_s ||
        !fr_export_has_checkpoints(request))
        return 1;
    /* The steps since the last checkpoint are lost, or the time after the one
     * that the program saves when it is asked to stop. */
    const double lost_s = (double)request->checkpoint_every *
                              request->file->prediction.expected_step_s +
                          fr_export_margin_s(request);
    return (int64_t)fmin(ceil(run_s / fmax(limit_s - lost_s, 1)), 1e15);
}

/* ---- what files say ------------------------------------------------------ */

/* "after each step", "after each 250 steps". */
static void put_interval(const fr_export_request *request, fr_buffer *out)
{
    fr_buffer_puts(out, "after each ");
    if (request->checkpoint_every > 1)
        fr_buffer_printf(out, "%lld steps",
                         (long long)request->checkpoint_every);
    else
        fr_buffer_puts(out, "step");
}

/* Says how large the checkpoints are, and the folder with those that are kept.
 */
static void put_sizes(const fr_export_request *request, const char *prefix,
                      fr_buffer *out)
{
    const fr_plan_file *file = request->file;
    const double bytes =
        (double)fr_plan_checkpoint_bytes(&file->plan, &file->model, &file->job);
    const int64_t n = file->job.n_steps / request->checkpoint_every +
                      (file->job.n_steps % request->checkpoint_every != 0);
    const int64_t n_kept = program_of(request)->n_kept;
    const int64_t n_left = n_kept > 0 && n_kept < n ? n_kept : n;
    char each[FR_FORMAT_MAX], all[FR_FORMAT_MAX];
    fr_format_bytes(each, sizeof each, bytes);
    fr_format_bytes(all, sizeof all, bytes * (double)n_left);
    if (n_left == 1)
        fr_buffer_printf(out, "%sIts checkpoint takes about %s.\n", prefix,
                         each);
    else if (n_kept > 0)
        fr_buffer_printf(out,
                         "%sThe newest %lld checkpoints stay, about %s of %s "
                         "each.\n",
                         prefix, (long long)n_left, all, each);
    else
        fr_buffer_printf(out,
                         "%sNothing deletes checkpoints: %lld of about %s each "
                         "are %s.\n",
                         prefix, (long long)n, each, all);
}

static void put_checkpoints(const fr_export_request *request,
                            const char *prefix, fr_buffer *out)
{
    if (!can_save(request))
        return;
    if (request->checkpoint_dir == NULL) {
        fr_buffer_printf(out,
                         "%sIt saves no checkpoint, because it is short; "
                         "--checkpoint DIR asks for them.\n",
                         prefix);
        return;
    }
    fr_buffer_printf(out, "%sIt saves a checkpoint ", prefix);
    put_interval(request, out);
    fr_buffer_puts(out, "; started again, it continues from the newest.\n");
    put_sizes(request, prefix, out);
}

void fr_export_put_job(const fr_export_request *request, const char *prefix,
                       fr_buffer *out)
{
    const fr_plan_file *file = request->file;
    const fr_job *job = &file->job;
    const bool has_tokens = file->model.kind != FR_MODEL_LAYERS;
    const int64_t each = fr_model_sample_tokens(&file->model, job->seq);
    char run[FR_FORMAT_MAX];
    fr_buffer_printf(out, "%sJob: %lld step%s of %lld", prefix,
                     (long long)job->n_steps, job->n_steps == 1 ? "" : "s",
                     (long long)job->global_batch);
    if (has_tokens)
        fr_buffer_printf(out, " x %lld tokens", (long long)each);
    else
        fr_buffer_printf(out, " %s", fr_model_counted(&file->model));
    if (job->tokens > 0)
        fr_buffer_printf(
            out, ", which train on %lld %s%s", (long long)job->tokens,
            has_tokens ? "token" : "sample", job->tokens == 1 ? "" : "s");
    if (file->has_prediction)
        fr_buffer_printf(out, "; predicted %s without failures",
                         format_run(run, fr_export_run_s(request)));
    fr_buffer_putc(out, '\n');
    put_checkpoints(request, prefix, out);
}

/* One thing of the job that the files of an exporter lack. */
static void put_one(const fr_export_request *request,
                    const fr_exporter *exporter, fr_export_part part,
                    const char *prefix, fr_buffer *out)
{
    const fr_plan_file *file = request->file;
    const char *why = exporter->left[part];
    if (why == NULL)
        return;
    switch (part) {
    case FR_EXPORT_CHECKPOINTS:
        if (request->checkpoint_dir == NULL)
            break;
        fr_buffer_printf(out, "%sno checkpoint ", prefix);
        put_interval(request, out);
        fr_buffer_printf(out, ": %s\n", why);
        break;
    case FR_EXPORT_DATA:
        if (file->job.data[0] != '\0' &&
            (exporter->takes_data == NULL || !exporter->takes_data(&file->job)))
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
    for (int i = 0; request->writer != NULL && i < FR_EXPORT_PARTS_N; i++) {
        if (request->program != NULL)
            put_one(request, request->program, (fr_export_part)i, prefix, out);
        put_one(request, request->writer, (fr_export_part)i, prefix, out);
    }
}

void fr_export_put_unknown(const fr_export_request *request, const char *prefix,
                           fr_buffer *out)
{
    const fr_exporter *writer = request->writer;
    if (!request->file->has_prediction)
        fr_buffer_printf(out, "%smemory was not checked: %s\n", prefix,
                         request->cluster != NULL
                             ? "the plan cannot be predicted on its cluster"
                             : "no cluster is named, and the plan has no "
                               "prediction; forerun export PLAN CLUSTER "
                               "checks it");
    if (writer == NULL)
        return;
    if (writer->limit_word != NULL && fr_export_minutes(request) == 0)
        fr_buffer_printf(out,
                         "%s%s: the time that the run takes is not predicted\n",
                         prefix, writer->limit_word);
    if (writer->devices_word != NULL && request->cluster == NULL &&
        !request->has_gpus)
        fr_buffer_printf(out,
                         "%s%s: no cluster is named, so that the devices of a "
                         "node are not known\n",
                         prefix, writer->devices_word);
}

void fr_export_put_warnings(const fr_export_wish *wish,
                            const fr_export_request *request, fr_buffer *out)
{
    const fr_exporter *program = program_of(request);
    const double run_s = fr_export_run_s(request);
    char run[FR_FORMAT_MAX];
    if (program == NULL)
        return;
    const char *why = program->left[FR_EXPORT_CHECKPOINTS];
    if (why != NULL && wish->checkpoint_dir != NULL)
        fr_buffer_printf(out, "--checkpoint has no effect here: %s\n", why);
    if (why != NULL && wish->checkpoint_every > 0)
        fr_buffer_printf(out, "--checkpoint-every has no effect here: %s\n",
                         why);
    if (why != NULL && wish->time_limit_s > 0 && wish->time_limit_s < run_s)
        fr_buffer_printf(out,
                         "warning: --time-limit ends the run before its end, "
                         "which is predicted after %s: %s\n",
                         format_run(run, run_s), why);
    if (request->writer->limit_word != NULL && wish->time_limit_s == 0 &&
        2 * run_s > 60.0 * FR_EXPORT_MINUTES_MAX)
        fr_buffer_printf(out,
                         "warning: the time limit is %d minutes, the longest "
                         "that is written, and the run is predicted to take "
                         "%s\n",
                         FR_EXPORT_MINUTES_MAX, format_run(run, run_s));
}

/* ---- words --------------------------------------------------------------- */

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
