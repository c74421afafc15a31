/* measure_running.c: see measure_running.h. */
#include "cli/measured/measure_running.h"

#include "cli/spawn_self.h"
#include "core/document/json.h"
#include "core/numbers/stats.h"
#include "core/system/fileio.h"
#include "plan/decide/plan_json.h"
#include "spec/profile/profile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A rank is killed when a step has been made that is not saved yet. */
enum { STEPS = 8, EVERY = 2, KILLED_AT = 5, MOST_ROWS = 2 * STEPS, TRIES = 5 };

/* Next to no work, and next to nothing to save. */
static const char model_text[] =
    "{\"schema\": \"forerun.model/1\", \"name\": \"almost-nothing\", "
    "\"kind\": \"decoder\", \"n_layers\": 1, \"hidden\": 8, \"n_heads\": 1, "
    "\"ffn_hidden\": 8, \"vocab\": 16, \"max_seq\": 8}";

typedef struct trial {
    const fr_request *request;
    int64_t n_ranks, i_try;
    char folder[1024];
    char plan[1100], saves[1100], metrics[1100], out[1100], chatter[1100];
} trial;

/* Unix time, as rows of metrics have it. */
static double unix_s(void)
{
    struct timespec now = {0};

    (void)timespec_get(&now, TIME_UTC);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static fr_status begin(trial *t, const char *storage, fr_err *err)
{
    (void)snprintf(t->folder, sizeof t->folder, "%.900s/forerun-start-XXXXXX",
                   storage);
    if (mkdtemp(t->folder) == NULL)
        return fr_fail(err, FR_IO, "%s: no folder can be made", t->folder);
    (void)snprintf(t->plan, sizeof t->plan, "%s/plan.json", t->folder);
    (void)snprintf(t->saves, sizeof t->saves, "%s/checkpoints", t->folder);
    (void)snprintf(t->metrics, sizeof t->metrics, "%s/metrics", t->folder);
    (void)snprintf(t->out, sizeof t->out, "%s/out.json", t->folder);
    (void)snprintf(t->chatter, sizeof t->chatter, "%s/chatter", t->folder);
    return FR_OK;
}

static fr_status write_plan(const trial *t, fr_err *err)
{
    fr_plan_file file;

    fr_plan_file_init(&file);
    fr_status status = fr_model_parse("almost-nothing", model_text,
                                      sizeof model_text - 1, &file.model, err);
    file.plan.dp = (int32_t)t->n_ranks;
    file.plan.micro_batch = 1;
    file.plan.n_threads = 1;
    file.job.global_batch = (int32_t)t->n_ranks;
    file.job.seq = file.model.max_seq;
    if (status == FR_OK)
        status = fr_plan_file_save(&file, t->plan, err);
    fr_plan_file_release(&file);
    return status;
}

/* ---- one run ------------------------------------------------------------- */

static fr_status start(const trial *t, fr_err *err)
{
    char steps[16], every[16], elastic[48], fault[64], why[512];
    const char *hostfile = fr_request_text(t->request, FR_OPT_HOSTFILE);
    int code = 0;
    char *argv[24] = {NULL,
                      "run",
                      (char *)t->plan,
                      "--json",
                      "-q",
                      "--steps",
                      steps,
                      "--checkpoint",
                      (char *)t->saves,
                      "--checkpoint-every",
                      every,
                      "--elastic",
                      elastic,
                      "--inject",
                      fault,
                      "--metrics",
                      (char *)t->metrics};
    if (hostfile != NULL) {
        argv[17] = "--hostfile";
        argv[18] = (char *)hostfile;
    }
    (void)snprintf(steps, sizeof steps, "%d", STEPS);
    (void)snprintf(every, sizeof every, "%d", EVERY);
    (void)snprintf(elastic, sizeof elastic, "%lld:%lld", (long long)t->n_ranks,
                   (long long)t->n_ranks);
    /* Each time another rank: mpirun sees some die sooner than others. */
    (void)snprintf(fault, sizeof fault, "kill:rank=%lld@%d",
                   (long long)(t->i_try % t->n_ranks), KILLED_AT);
    FR_TRY(fr_spawn_self(argv, t->out, t->chatter, &code, err));
    if (code == 0)
        return FR_OK;
    fr_spawn_reason(t->chatter, why, sizeof why);
    return fr_fail(err, FR_FAILURE, "%s", why);
}

typedef struct row {
    int64_t step;
    double ended_s, step_s; /* ended_s: Unix time */
} row;

static fr_status read_row(const char *line, size_t n_line, row *out,
                          fr_err *err)
{
    fr_json *json = NULL;

    FR_TRY(fr_json_parse("metrics", line, n_line, &json, err));
    const fr_json_value *root = fr_json_root(json);
    fr_status status = fr_json_get_i64(root, "step", &out->step, err);
    if (status == FR_OK)
        status = fr_json_get_double(root, "time_s", &out->ended_s, err);
    if (status == FR_OK)
        status = fr_json_get_double(root, "step_s", &out->step_s, err);
    fr_json_destroy(json);
    return status;
}

static fr_status read_rows(const trial *t, row rows[MOST_ROWS], size_t *n,
                           fr_err *err)
{
    char *text = NULL, *at;
    fr_status status = FR_OK;

    *n = 0;
    FR_TRY(fr_file_read(t->metrics, 1 << 20, &text, NULL, err));
    at = text;
    for (char *line; status == FR_OK && (line = strsep(&at, "\n")) != NULL;)
        if (line[0] != '\0' && *n < MOST_ROWS)
            status = read_row(line, strlen(line), &rows[(*n)++], err);
    free(text);
    return status;
}

static fr_status read_stall(const trial *t, double *out, fr_err *err)
{
    fr_json *json = NULL;
    const fr_json_value *saves;

    FR_TRY(fr_json_load(t->out, &json, err));
    fr_status status =
        fr_json_get_object(fr_json_root(json), "checkpoints", &saves, err);
    if (status == FR_OK)
        status = fr_json_get_double(saves, "stall_s", out, err);
    fr_json_destroy(json);
    return status;
}

/* The last step is saved before the run ends. */
static fr_status measure_once(const trial *t, fr_running_costs *out,
                              fr_err *err)
{
    row rows[MOST_ROWS];
    double step_s[MOST_ROWS];
    size_t n = 0, again = 1; /* again: the first row after the failure */

    fr_dir_remove(t->saves);
    (void)remove(t->metrics);
    const double began_s = unix_s();
    FR_TRY(start(t, err));
    const double ended_s = unix_s();
    FR_TRY(read_rows(t, rows, &n, err));
    while (again < n && rows[again].step > rows[again - 1].step)
        again++;
    if (again >= n)
        return fr_fail(err, FR_FAILURE, "a rank that was killed is not seen");
    for (size_t i = 0; i < n; i++)
        step_s[i] = rows[i].step_s;
    const double usual_s = fr_stats_median(step_s, n);
    FR_TRY(read_stall(t, &out->checkpoint_s, err));
    out->start_s = rows[0].ended_s - usual_s - began_s;
    out->restart_s = rows[again].ended_s - usual_s - rows[again - 1].ended_s;
    out->end_s = ended_s - rows[n - 1].ended_s - out->checkpoint_s;
    return FR_OK;
}

/* ---- all of them --------------------------------------------------------- */

static double median_of(const fr_running_costs *costs, int n, size_t offset)
{
    double values[TRIES];

    for (int i = 0; i < n; i++)
        memcpy(&values[i], (const char *)&costs[i] + offset, sizeof(double));
    const double median = fr_stats_median(values, (size_t)n);
    return median > 0 ? median : 0;
}

static fr_status measure(trial *t, int n_tries, fr_running_costs *out,
                         fr_err *err)
{
    fr_running_costs all[TRIES] = {{0}};

    FR_TRY(write_plan(t, err));
    for (t->i_try = 0; t->i_try < n_tries; t->i_try++)
        FR_TRY(measure_once(t, &all[t->i_try], err));
#define TAKE(member)                                                           \
    (out->member = median_of(all, n_tries, offsetof(fr_running_costs, member)))
    TAKE(start_s);
    TAKE(restart_s);
    TAKE(end_s);
    TAKE(checkpoint_s);
#undef TAKE
    out->n_ranks = (int32_t)t->n_ranks;
    return FR_OK;
}

fr_status fr_measure_running(const fr_request *request, int64_t n_ranks,
                             const char *path, const char *storage, fr_err *err)
{
    trial t = {.request = request, .n_ranks = n_ranks};
    fr_profile profile;

    FR_TRY(fr_profile_load(path, &profile, err));
    fr_status status = begin(&t, storage, err);
    if (status == FR_OK) {
        status = measure(&t, fr_request_on(request, FR_OPT_QUICK) ? 1 : TRIES,
                         &profile.running, err);
        fr_dir_remove(t.folder);
    }
    if (status == FR_OK)
        status = fr_profile_save(&profile, path, err);
    fr_profile_release(&profile);
    return status;
}
