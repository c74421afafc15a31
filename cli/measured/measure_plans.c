/* measure_plans.c: see measure_plans.h. */
#include "cli/measured/measure_plans.h"

#include "api/answer/learn_runs.h"
#include "cli/spawn_self.h"
#include "core/base/text.h"
#include "core/document/json.h"
#include "cost_models/stack/stack_features.h"
#include "runtime/backend/gpu_driver.h"
#include "runtime/launch/launch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* As few as tell a median: two of them warm up, and on GPUs five more are
 * traced, which slows them (run.h). */
enum { STEPS_CPU = 12, STEPS_GPU = 17, WARM_UP = 2, TRACED = 5 };

static bool is_gpu(const fr_inputs *inputs)
{
    return fr_cluster_device(&inputs->cluster, 0)->kind == FR_DEVICE_GPU;
}

/* ---- may it be measured? ------------------------------------------------- */

/* Returns the number of devices, and the memory of the first; 0: none, or no
 * driver, or built without. */
static int look_at_gpus(double *memory_bytes)
{
    const fr_gpu_system *system = NULL;
    fr_gpu_properties here;
    fr_gpu *gpu = NULL;
    fr_err unused;
    int n = 0;
    if (fr_gpu_system_cuda(&system, &unused) != FR_OK ||
        system->driver->count(system->context, &n, &unused) != FR_OK ||
        n == 0 ||
        system->driver->open(system->context, 0, &gpu, &unused) != FR_OK)
        return 0;
    if (system->driver->properties(gpu, &here, &unused) != FR_OK)
        n = 0;
    system->driver->close(gpu);
    *memory_bytes = (double)here.memory_bytes;
    return n;
}

/*
 * A cluster of GPUs is a file or a catalogue entry: is it like what is here,
 * one node of so many devices of about that memory?  What a driver keeps of
 * it is less than a tenth.
 */
static bool has_such_gpus(const fr_cluster *cluster)
{
    double here_bytes = 0;
    double bytes = (double)fr_cluster_device(cluster, 0)->memory_bytes;
    int64_t n = look_at_gpus(&here_bytes);
    return fr_cluster_n_nodes(cluster) == 1 && n >= fr_cluster_slots(cluster) &&
           fabs(here_bytes / bytes - 1) < 0.1;
}

static fr_status check(const fr_request *request, const fr_inputs *inputs,
                       fr_err *err)
{
    fr_launch launch;
    if (fr_request_on(request, FR_OPT_UPDATE_PROFILE) &&
        (!fr_request_has(request, FR_OPT_MEASURE) || !inputs->has_profile))
        return fr_fail(err, FR_USAGE,
                       "--update-profile needs --measure K and --profile FILE");
    if (!fr_request_has(request, FR_OPT_MEASURE))
        return FR_OK;
    fr_launch_detect(&launch);
    if (launch.role != FR_LAUNCH_STANDALONE)
        return fr_fail(err, FR_USAGE,
                       "--measure starts the ranks itself: leave %s out",
                       launch.launcher);
    if (is_gpu(inputs) ? has_such_gpus(&inputs->cluster)
                       : inputs->cluster.is_this_machine &&
                             fr_cluster_n_nodes(&inputs->cluster) == 1)
        return FR_OK;
    return fr_fail(err, FR_USAGE,
                   "--measure runs plans here, and '%s' is not this machine; "
                   "give %s, or leave it out",
                   inputs->cluster.name,
                   is_gpu(inputs) ? "a node of the GPUs that are here"
                                  : "this-machine");
}

/* ---- one run ------------------------------------------------------------- */

/* Files of a run, in a folder of its own. */
typedef struct scratch {
    char folder[256];
    char plan[300], out[300], chatter[300];
} scratch;

static fr_status make_scratch(scratch *s, fr_err *err)
{
    const char *root = getenv("TMPDIR");
    snprintf(s->folder, sizeof s->folder, "%.200s/forerun-measure-XXXXXX",
             root != NULL && root[0] != '\0' ? root : "/tmp");
    if (mkdtemp(s->folder) == NULL)
        return fr_fail(err, FR_IO, "%s: no folder can be made", s->folder);
    snprintf(s->plan, sizeof s->plan, "%s/plan.json", s->folder);
    snprintf(s->out, sizeof s->out, "%s/run.json", s->folder);
    snprintf(s->chatter, sizeof s->chatter, "%s/run.err", s->folder);
    return FR_OK;
}

static void drop_scratch(const scratch *s)
{
    (void)unlink(s->plan);
    (void)unlink(s->out);
    (void)unlink(s->chatter);
    (void)rmdir(s->folder);
}

static fr_status read_steps(const scratch *s, fr_tuning_measured *out,
                            fr_err *err)
{
    fr_json *json = NULL;
    const fr_json_value *step;
    FR_TRY(fr_json_load(s->out, &json, err));
    fr_status status =
        fr_json_get_object(fr_json_root(json), "step_s", &step, err);
    if (status == FR_OK)
        status = fr_json_get_double(step, "median", &out->median_s, err);
    if (status == FR_OK)
        status = fr_json_get_double(step, "p5", &out->p5_s, err);
    if (status == FR_OK)
        status = fr_json_get_double(step, "p95", &out->p95_s, err);
    fr_json_destroy(json);
    return status;
}

/* A run that fails is a reason; an error is that nothing could be started. */
static fr_status run_plan(const fr_request *request, const scratch *s,
                          bool is_on_gpu, fr_tuning_measured *out, fr_err *err)
{
    char steps[16];
    char *argv[16] = {NULL,      "run", (char *)s->plan, "--json", "-q",
                      "--steps", steps};
    int n = 7, code = 0;
    const int n_steps = is_on_gpu ? STEPS_GPU : STEPS_CPU;
    snprintf(steps, sizeof steps, "%d", n_steps);
    if (is_on_gpu) {
        argv[n++] = "--backend";
        argv[n++] = "cuda";
    }
    if (fr_request_has(request, FR_OPT_TIMEOUT)) {
        argv[n++] = "--timeout";
        argv[n++] = (char *)fr_request_text(request, FR_OPT_TIMEOUT);
    }
    FR_TRY(fr_spawn_self(argv, s->out, s->chatter, &code, err));
    out->n_steps = n_steps - WARM_UP - (is_on_gpu ? TRACED : 0);
    if (code != 0)
        fr_spawn_reason(s->chatter, out->why_not, sizeof out->why_not);
    else
        return read_steps(s, out, err);
    return FR_OK;
}

static fr_status measure(const fr_request *request, const fr_inputs *inputs,
                         const fr_plan_choice *tuned_from,
                         const fr_tuned *tuned, const scratch *s,
                         fr_tuning_measured *out, fr_err *err)
{
    fr_plan_choice choice = *tuned_from;
    fr_err why;
    const bool is_on_gpu = is_gpu(inputs);
    choice.file.plan = *tuned->plan;
    choice.file.job.global_batch = tuned->global_batch;
    fr_job_count_steps(&choice.file.job, &choice.file.model);
    fr_text_copy_cut(out->name, sizeof out->name, tuned->name);
    out->predicted_s = tuned->prediction.expected_step_s;
    out->value = HUGE_VAL;
    fr_status status =
        is_on_gpu
            ? fr_plan_check_executable_gpu(
                  &choice.file.plan, &choice.file.model, &choice.file.job, &why)
            : fr_plan_check_executable(&choice.file.plan, &choice.file.model,
                                       &choice.file.job, &why);
    if (status == FR_NO_MEMORY)
        return fr_fail_no_memory(err);
    if (status != FR_OK) {
        fr_text_copy_cut(out->why_not, sizeof out->why_not, why.text);
        return FR_OK;
    }
    FR_TRY(
        fr_plan_choice_save(&choice, inputs, &tuned->prediction, s->plan, err));
    return run_plan(request, s, is_on_gpu, out, err);
}

/* ---- all of them --------------------------------------------------------- */

/* The goal at the measured step. */
static double value_of(const fr_inputs *inputs, const fr_plan_choice *choice,
                       const fr_goal *goal, const fr_tuned *tuned,
                       const fr_tuning_measured *m)
{
    fr_job job = fr_goal_job(&choice->file.model, &choice->file.job);
    fr_prediction at = tuned->prediction;
    job.global_batch = tuned->global_batch;
    /* It is no longer uncertain. */
    at.expected_step_s = at.step_s_p5 = at.step_s_p95 = m->median_s;
    const fr_goal_subject subject = {&choice->file.model, &job,
                                     &inputs->cluster};
    return fr_goal_value(goal, &at, tuned->plan, &subject);
}

static fr_status choose(fr_tuning *t, fr_err *err)
{
    size_t best = 0;
    for (size_t i = 1; i < t->n_measured; i++) {
        const fr_tuning_measured *a = &t->measured[i], *b = &t->measured[best];
        bool is_run = a->why_not[0] == '\0', was_run = b->why_not[0] == '\0';
        if (is_run && (!was_run || a->value < b->value))
            best = i;
    }
    if (t->measured[best].why_not[0] != '\0')
        return fr_fail(err, FR_FAILURE, "no plan could be measured: %s: %s",
                       t->measured[best].name, t->measured[best].why_not);
    t->measured[best].is_chosen = true;
    fr_tuning_choose(t, best);
    return FR_OK;
}

/* The standard error of a median of n: 1.2533 sigma / sqrt(n); 90 % of a
 * normal distribution is 3.29 sigma wide. */
static double median_rel_err(const fr_tuning_measured *m)
{
    double sigma_s = (m->p95_s - m->p5_s) / 3.29;
    return 1.2533 * sigma_s / sqrt((double)m->n_steps) / m->median_s;
}

static fr_status update_profile(const fr_request *request, fr_inputs *inputs,
                                const fr_plan_choice *choice,
                                const fr_tuning *t, fr_err *err)
{
    const char *path = fr_request_text(request, FR_OPT_PROFILE);
    for (size_t i = 0; i < t->n_measured; i++) {
        const fr_tuning_measured *m = &t->measured[i];
        /* The chosen one moved to the front of its list. */
        const fr_tuned *tuned = &t->best;
        for (size_t k = 0; k < t->alternatives.n; k++)
            if (strcmp(t->alternatives.at[k].name, m->name) == 0)
                tuned = &t->alternatives.at[k];
        fr_step_point point = {
            .global_batch = (uint64_t)tuned->global_batch,
            .seq = (uint64_t)choice->file.job.seq,
            .n_ranks = (int32_t)tuned->n_ranks,
            .predicted_s = m->predicted_s,
            .sample = {.median_s = m->median_s, .n_samples = m->n_steps}};
        if (m->why_not[0] != '\0')
            continue;
        point.sample.rel_err = median_rel_err(m);
        fr_text_copy_cut(point.model, sizeof point.model,
                         choice->file.model.name);
        fr_text_copy_cut(point.plan, sizeof point.plan, m->name);
        FR_TRY(fr_profile_add_step(&inputs->profile, &point, err));
        fr_run_point run;
        fr_job job = choice->file.job;
        job.global_batch = tuned->global_batch;
        fr_stack_run_of(&choice->file.model, &job, tuned->plan,
                        fr_cluster_device(&inputs->cluster, 0),
                        &tuned->prediction, m->median_s, &run);
        snprintf(run.name, sizeof run.name, "%s: %s", choice->file.model.name,
                 m->name);
        FR_TRY(fr_profile_put_run(&inputs->profile, &run, err));
    }
    FR_TRY(fr_profile_save(&inputs->profile, path, err));
    fr_request_note(request, "wrote %s", path);
    return FR_OK;
}

static fr_status measure_all(const fr_request *request, const fr_inputs *inputs,
                             const fr_plan_choice *choice, const fr_goal *goal,
                             const scratch *s, fr_tuning *t, fr_err *err)
{
    const size_t n = (size_t)request->option[FR_OPT_MEASURE].count;
    for (size_t i = 0; i < n && i <= t->alternatives.n; i++) {
        const fr_tuned *tuned = i == 0 ? &t->best : &t->alternatives.at[i - 1];
        fr_tuning_measured *m = &t->measured[t->n_measured];
        fr_request_note(request, "running %s", tuned->name);
        FR_TRY(measure(request, inputs, choice, tuned, s, m, err));
        if (m->why_not[0] == '\0')
            m->value = value_of(inputs, choice, goal, tuned, m);
        t->n_measured++;
    }
    return FR_OK;
}

static fr_status measure_plans(const fr_request *request, fr_inputs *inputs,
                               const fr_plan_choice *choice,
                               const fr_goal *goal, fr_tuning *tuning,
                               fr_err *err)
{
    scratch s;
    if (!fr_request_has(request, FR_OPT_MEASURE) || tuning->best.plan == NULL)
        return FR_OK;
    FR_TRY(make_scratch(&s, err));
    fr_status status =
        measure_all(request, inputs, choice, goal, &s, tuning, err);
    drop_scratch(&s);
    if (status == FR_OK)
        status = choose(tuning, err);
    if (status == FR_OK && fr_request_on(request, FR_OPT_UPDATE_PROFILE))
        status = update_profile(request, inputs, choice, tuning, err);
    return status;
}

const fr_measurer fr_local_measurer = {.check = check,
                                       .measure = measure_plans};
