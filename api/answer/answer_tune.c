/* answer_tune.c: the best plan of the space. */
#include "api/answer/answers.h"
#include "api/answer/measurer.h"
#include "api/fit/fit_answer.h"
#include "api/goodput/run_length.h"
#include "api/inputs.h"
#include "api/power_cap.h"
#include "api/resolve/framework_options.h"
#include "api/resolve/goal_options.h"
#include "api/resolve/no_effect.h"
#include "api/resolve/plan_options.h"
#include "api/resolve/plan_resolve.h"
#include "api/subject/plan_words.h"
#include "core/base/units.h"
#include "core/numbers/stats.h"
#include "report/fit_report.h"
#include "report/setup_report.h"
#include "report/tuning_report.h"
#include "spec/result/fit_advice.h"
#include "tuner/answer/tune.h"
#include "tuner/search/tune_quick.h"
#include "tuner/study/elastic_speeds.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The plan that runs today (PLAN, --from); the best plan is compared with it.
 */
typedef struct today {
    bool is_given;
    fr_plan plan;
    fr_prediction prediction;
} today;

/* The first lines of an answer that shows plans that do not fit. */
static void put_verdict(const char *which, const fr_prediction *prediction,
                        fr_document *out)
{
    char verdict[FR_FIT_VERDICT];
    if (!prediction->memory.fits && prediction->memory.peak_bytes > 0)
        fr_document_printf(out, "%s %s\n", which,
                           fr_fit_verdict(prediction, verdict, sizeof verdict));
}

static void put_today(const today *now, fr_document *out)
{
    char name[512], step[FR_FORMAT_MAX];
    if (!now->is_given)
        return;
    fr_plan_describe(&now->plan, name, sizeof name);
    fr_document_printf(
        out, "today %s a step, the memory %s: %s\n",
        fr_format_s(step, sizeof step, now->prediction.expected_step_s),
        now->prediction.memory.fits ? "fits" : "does not fit", name);
    fr_json_open_object(&out->data, "today");
    fr_json_put_string(&out->data, "plan", name);
    fr_json_put_double(&out->data, "step_s", now->prediction.expected_step_s);
    fr_json_put_bool(&out->data, "fits", now->prediction.memory.fits);
    fr_json_end_object(&out->data);
}

/* The setup of the best plan, for readers alone. */
static void put_setup(const fr_inputs *inputs, const fr_plan_choice *choice,
                      const fr_tuned *best, fr_document *out)
{
    fr_job job = choice->file.job;
    if (best->plan == NULL)
        return;
    job.global_batch = best->global_batch;
    const fr_report_setup setup = {&choice->file.model, &job, best->plan,
                                   &inputs->cluster, choice->file.framework};
    out->audience = FR_FOR_READERS;
    fr_report_put_setup(&setup, out);
    out->audience = FR_FOR_ALL;
}

/* Searches once more, with the optimizer on the hosts, which the space has only
 * if it is asked for. */
static fr_status try_offload(const fr_inputs *inputs,
                             const fr_tune_options *options, fr_fit_advice *out,
                             fr_err *err)
{
    fr_plan_space_request space = options->space;
    fr_quick found;
    fr_err why;
    if (!fr_cluster_is_all_gpu(&inputs->cluster) ||
        (space.pins & FR_PIN(OFFLOAD_OPTIMIZER)))
        return FR_OK;
    space.pins |= FR_PIN(OFFLOAD_OPTIMIZER);
    space.base.is_optimizer_offloaded = true;
    const fr_status status =
        fr_tune_quick(&space, inputs->costs, options->n_threads, &found, &why);
    if (fr_status_ends_all(status))
        return fr_fail(err, status, "%s", why.text);
    if (status != FR_OK || !found.fits)
        return FR_OK;
    fr_fit_change *change = &out->changes[out->n_changes++];
    *change = (fr_fit_change){.what = "another plan and --offload-optimizer",
                              .n_changes = 1,
                              .step_s = found.prediction.expected_step_s,
                              .p_fits = found.prediction.memory.p_fits,
                              .peak_bytes = found.prediction.memory.peak_bytes};
    fr_plan_describe(&found.plan, change->plan, sizeof change->plan);
    return FR_OK;
}

/* Nothing fits: finds what is short in the nearest plan, and the changes beyond
 * the space of the search with which it would fit. */
static fr_status find_fit(const fr_request *request, const fr_inputs *inputs,
                          const fr_plan_choice *choice, const fr_tuning *tuning,
                          const fr_tune_options *options, fr_fit_advice *out,
                          fr_err *err)
{
    const fr_tuned *nearest = &tuning->nearest;
    fr_plan_file file = choice->file;
    memset(out, 0, sizeof *out);
    if (tuning->best.plan != NULL || nearest->plan == NULL ||
        nearest->prediction.memory.fits)
        return FR_OK;
    file.plan = *nearest->plan;
    file.job.global_batch = nearest->global_batch;
    FR_TRY(fr_fit_answer_find(request, inputs, &file, &nearest->prediction, out,
                              err));
    out->is_of_search = true;
    return out->n_changes == 0 ? try_offload(inputs, options, out, err) : FR_OK;
}

static void build(const fr_inputs *inputs, const fr_plan_choice *choice,
                  const today *now, const fr_tuning *tuning,
                  const fr_fit_advice *fit, fr_document *out)
{
    const fr_tuned *nearest = &tuning->nearest;
    fr_document_init(out, "forerun.tuning/1");
    if (now->is_given)
        put_verdict("today's plan", &now->prediction, out);
    if (tuning->best.plan == NULL && nearest->plan != NULL)
        put_verdict("the nearest plan", &nearest->prediction, out);
    fr_document_heading(out, "%s on %s", choice->file.model.name,
                        inputs->cluster_word);
    fr_json_put_string(
        &out->data, "framework",
        choice->file.framework[0] != '\0' ? choice->file.framework : NULL);
    fr_report_power_cap_json(&inputs->cluster, &out->data);
    put_setup(inputs, choice, &tuning->best, out);
    put_today(now, out);
    fr_document_puts(out, "\n");
    fr_report_tuning(tuning, out);
    if (fit->is_searched)
        fr_report_fit(fit, out);
    out->has_answer = true;
}

/* Do n nodes that are as efficient as a run's own break no limit but that on
 * time?  They take as many node hours. */
static bool keeps_others(const fr_goal *goal, const fr_goal_run *run, double n)
{
    const double n_devices = (double)run->n_devices / (double)run->n_nodes * n;
    return (goal->most_usd <= 0 || run->outlook.usd_p95 <= goal->most_usd) &&
           (goal->most_kwh <= 0 || run->outlook.kwh_p95 <= goal->most_kwh) &&
           (goal->most_devices <= 0 || n_devices <= (double)goal->most_devices);
}

/* Says how many nodes as efficient as those of the nearest plan would meet the
 * deadline that it misses; "" if it meets it, or if they would break another
 * limit.  Returns buf. */
static char *say_nodes(const fr_inputs *inputs, const fr_plan_choice *choice,
                       const fr_goal *goal, const fr_tuning *tuning, char *buf,
                       size_t n_buf)
{
    const fr_tuned *nearest = &tuning->nearest;
    fr_job job = fr_goal_job(&choice->file.model, &choice->file.job);
    buf[0] = '\0';
    job.global_batch = nearest->global_batch;
    const fr_goal_subject subject = {&choice->file.model, &job,
                                     &inputs->cluster};
    const fr_weighed_step step = fr_weighed_step_of(&nearest->prediction);
    const fr_goal_run run =
        fr_goal_run_of(goal, &step, nearest->plan, &subject);
    const double seconds = run.outlook.seconds_p95;
    const double n = ceil((double)run.n_nodes * seconds / goal->deadline_s);
    if (goal->deadline_s > 0 && seconds > goal->deadline_s &&
        keeps_others(goal, &run, n))
        snprintf(buf, n_buf,
                 "; %.0f nodes as efficient as its %lld would meet the "
                 "deadline",
                 n, (long long)run.n_nodes);
    return buf;
}

/* Sets the tokens that the plan needs with its own batch, since larger batches
 * need more. */
static void train_on_more(const fr_inputs *inputs, const fr_goal *goal,
                          fr_plan_choice *choice, fr_prediction *prediction)
{
    const fr_job job = fr_goal_job(&choice->file.model, &choice->file.job);
    const double n_before = (double)choice->file.job.n_steps;
    const fr_goal_subject subject = {&choice->file.model, &job,
                                     &inputs->cluster};
    if (!(goal->critical_batch > 0) || choice->file.job.tokens == 0)
        return;
    const fr_weighed_step step = fr_weighed_step_of(prediction);
    choice->file.job.tokens = (int64_t)ceil(
        fr_goal_run_of(goal, &step, &choice->file.plan, &subject).tokens);
    fr_job_count_steps(&choice->file.job, &choice->file.model);
    const double times = (double)choice->file.job.n_steps / n_before;
    prediction->cost.usd_total *= times;
    prediction->cost.kwh *= times;
}

/* The best plan's file, and notes on it; or why there is none. */
static fr_status finish(const fr_request *request, const fr_inputs *inputs,
                        fr_plan_choice *choice, const fr_goal *goal,
                        const fr_tuning *tuning, const fr_fit_advice *fit,
                        fr_err *err)
{
    char more[96];
    char lack[FR_FORMAT_MAX];
    const char *output = fr_request_text(request, FR_OPT_OUTPUT);
    const bool is_sure = isinf(tuning->certificate.bound);
    if (tuning->best.plan == NULL && tuning->broken[0] != '\0')
        return fr_fail(
            err, FR_INFEASIBLE,
            "no plan %s the limits: %s, with the nearest, %s%s",
            is_sure ? "keeps" : "was found that keeps", tuning->broken,
            tuning->nearest.name,
            say_nodes(inputs, choice, goal, tuning, more, sizeof more));
    if (tuning->best.plan == NULL && tuning->nearest.plan == NULL)
        return fr_fail(err, FR_INFEASIBLE, "no plan can be placed: %s",
                       tuning->n_reasons > 0 ? tuning->reasons[0].text : "");
    if (tuning->best.plan == NULL)
        return fr_fail(
            err, FR_INFEASIBLE,
            "no plan %s with %.4g %%: the nearest, %s, lacks %s on a rank; "
            "%s%s",
            is_sure ? "fits" : "was found that fits",
            100 * fr_request_fit_confidence(request), tuning->nearest.name,
            fr_format_bytes(lack, sizeof lack, (double)tuning->short_by_bytes),
            fit->n_changes > 0
                ? "it fits with "
                : "more ranks that share a model's state, a smaller "
                  "--global-batch or --seq need less",
            fit->n_changes > 0 ? fit->changes[0].what : "");
    fr_note_untaken_options(request, &inputs->cluster, &choice->file.plan,
                            tuning->best.plan);
    choice->file.plan = *tuning->best.plan;
    choice->file.job.global_batch = tuning->best.global_batch;
    fr_job_count_steps(&choice->file.job, &choice->file.model);
    fr_note_idle_options(request, inputs, &choice->file.model,
                         &choice->file.job, &choice->file.plan,
                         &tuning->best.prediction);
    if (output == NULL)
        return FR_OK;
    fr_prediction prediction = tuning->best.prediction;
    train_on_more(inputs, goal, choice, &prediction);
    FR_TRY(fr_plan_choice_save(choice, inputs, &prediction, output, err));
    fr_request_note(request, "wrote %s", output);
    return FR_OK;
}

static fr_status apply_budget(const fr_request *request, double *out_s,
                              fr_err *err)
{
    const char *text = fr_request_text(request, FR_OPT_BUDGET);
    fr_err why;
    *out_s = 0;
    if (text != NULL && (fr_parse_s(text, out_s, &why) != FR_OK || *out_s <= 0))
        return fr_fail(err, FR_USAGE,
                       "--budget '%.80s': a time such as 2s or 500ms", text);
    return FR_OK;
}

/* As many as are shown, and as are measured. */
static int n_alternatives(const fr_request *request)
{
    const fr_option_value *v = request->option;
    int n = fr_request_has(request, FR_OPT_TOP) ? (int)v[FR_OPT_TOP].count : 10;
    int n_measured = (int)v[FR_OPT_MEASURE].count;
    return n_measured - 1 > n ? n_measured - 1 : n;
}

/* Finds the version of the target: --version, else the newest. */
static fr_status choose_version(const fr_request *request,
                                const fr_cluster *cluster, int *out,
                                fr_err *err)
{
    const fr_target *target = fr_request_executor(request, cluster);
    const char *version = fr_request_text(request, FR_OPT_VERSION);
    *out = 0;
    if (version != NULL &&
        (target == NULL || !fr_request_has(request, FR_OPT_FOR)))
        return fr_fail(err, FR_USAGE,
                       "--version %.40s of what? give --for torchtitan, "
                       "megatron ...",
                       version);
    if (target == NULL)
        return FR_OK;
    FR_TRY(fr_target_check_device(target, fr_cluster_device(cluster, 0), err));
    return fr_target_version(target, version, out, err);
}

static fr_tune_options make_options(const fr_request *request,
                                    const fr_inputs *inputs,
                                    const fr_plan_choice *choice,
                                    const fr_axis_range *ranges,
                                    const fr_goal *goal)
{
    const fr_option_value *v = request->option;
    const fr_target *target = fr_request_executor(request, &inputs->cluster);
    fr_tune_options options = {
        .space = {.model = &choice->file.model,
                  .job = &choice->file.job,
                  .cluster = &inputs->cluster,
                  .base = choice->file.plan,
                  .pins = choice->pins,
                  .world = v[FR_OPT_RANKS].count,
                  .ranges = ranges,
                  .target = target,
                  .allow_lossy = fr_request_has(request, FR_OPT_ALLOW),
                  .fit_confidence = fr_request_fit_confidence(request),
                  .log = fr_request_log(request)},
        .goal = goal,
        .is_batch_free = fr_goal_rows[goal->kind]->chooses_batch &&
                         !fr_request_has(request, FR_OPT_GLOBAL_BATCH),
        .search = fr_request_has(request, FR_OPT_SEARCH)
                      ? fr_search_name((int)v[FR_OPT_SEARCH].count)
                      : NULL,
        .is_exact = fr_request_on(request, FR_OPT_EXACT),
        .n_alternatives = n_alternatives(request),
        .n_threads = fr_request_threads(request),
    };
    return options;
}

/* Refuses options that contradict each other, and a question that no law
 * answers: how many more steps a lossy compressor takes. */
static fr_status check_options(const fr_request *request, const fr_goal *goal,
                               fr_err *err)
{
    if (fr_request_has(request, FR_OPT_BUDGET) &&
        fr_request_on(request, FR_OPT_EXACT))
        return fr_fail(err, FR_USAGE,
                       "--exact continues until the proof is done; leave "
                       "it or --budget out");
    if (fr_goal_rows[goal->kind]->chooses_batch &&
        fr_request_has(request, FR_OPT_ALLOW))
        return fr_fail(err, FR_USAGE,
                       "--allow lossy and --goal loss: nobody knows how many "
                       "more steps compression takes; leave one out, or pin "
                       "it with --compress");
    return FR_OK;
}

/* Predicts the plan that runs today. */
static fr_status ask_today(const fr_inputs *inputs,
                           const fr_plan_choice *choice, today *out,
                           fr_err *err)
{
    out->is_given = choice->is_given;
    if (!out->is_given)
        return FR_OK;
    out->plan = choice->file.plan;
    return fr_forecast_predict(inputs, &choice->file.model, &choice->file.job,
                               &choice->file.plan, &out->prediction, err);
}

/* Says that it was not asked who has to be able to execute the plan. */
static fr_status fail_for(const fr_target *target, fr_err *err)
{
    const fr_err why = *err;
    return fr_fail(err, why.status,
                   "%s (plans that %s can execute; --for any predicts others "
                   "too)",
                   why.text, target->name);
}

/* Compares the steps of this model in the profile with their predictions. */
static fr_status put_correction(const fr_inputs *inputs, const fr_model *model,
                                fr_tuning *tuning, fr_err *err)
{
    const fr_profile *profile = &inputs->profile;
    size_t n = 0;
    if (!inputs->has_profile || profile->n_step == 0)
        return FR_OK;
    double *ratios = malloc(profile->n_step * sizeof *ratios);
    if (ratios == NULL)
        return fr_fail_no_memory(err);
    for (size_t i = 0; i < profile->n_step; i++) {
        const fr_step_point *p = &profile->step[i];
        if (strcmp(p->model, model->name) == 0)
            ratios[n++] = p->sample.median_s / p->predicted_s;
    }
    if (n > 0) {
        tuning->correction.n = n;
        tuning->correction.median = fr_stats_quantile(ratios, n, 0.5);
        tuning->correction.least = fr_stats_quantile(ratios, n, 0);
        tuning->correction.most = fr_stats_quantile(ratios, n, 1);
    }
    free(ratios);
    return FR_OK;
}

static fr_status check_measurer(const fr_request *request,
                                const fr_inputs *inputs, fr_err *err)
{
    const fr_measurer *measurer =
        request->session != NULL ? request->session->measurer : NULL;
    if (measurer != NULL)
        return measurer->check(request, inputs, err);
    return fr_request_has(request, FR_OPT_MEASURE)
               ? fr_fail(err, FR_USAGE,
                         "--measure starts processes, which this caller of "
                         "forerun cannot; leave it out")
               : FR_OK;
}

fr_status fr_api_tune(const fr_request *request, fr_document *out, fr_err *err)
{
    fr_goal goal;
    double budget_s;
    int version;
    fr_inputs inputs = {0};
    fr_plan_choice choice = {0};
    fr_elastic_table elastic = {0};
    fr_tuning tuning;
    fr_fit_advice fit;
    today now;
    fr_plan_words words;
    fr_status status;
    fr_tuning_init(&tuning);
    FR_TRY(fr_request_make_goal(request, &goal, err));
    FR_TRY(check_options(request, &goal, err));
    FR_TRY(apply_budget(request, &budget_s, err));
    FR_TRY(fr_plan_words_of(request, &words, err));
    FR_TRY_GOTO(status, fr_inputs_load(request, words.cluster, &inputs, err),
                out_inputs);
    FR_TRY_GOTO(status, choose_version(request, &inputs.cluster, &version, err),
                out_inputs);
    FR_TRY_GOTO(status, check_measurer(request, &inputs, err), out_inputs);
    const fr_plan_question question = {
        .purpose = FR_PLAN_TO_SEARCH,
        .model_word = words.model,
        .plan_path = words.plan,
        .cluster = &inputs.cluster,
        .n_ranks_max = fr_request_has(request, FR_OPT_RANKS)
                           ? request->option[FR_OPT_RANKS].count
                           : fr_cluster_slots(&inputs.cluster)};
    FR_TRY_GOTO(status, fr_plan_resolve(request, &question, &choice, err),
                out_inputs);
    fr_axis_range ranges[FR_SPACE_AXIS_N];
    FR_TRY_GOTO(status, fr_request_apply_ranges(request, ranges, err),
                out_inputs);
    fr_tune_options options =
        make_options(request, &inputs, &choice, ranges, &goal);
    options.budget_s = budget_s;
    options.space.target_version = version;
    FR_TRY_GOTO(status, fr_power_cap_choose(request, &options, &inputs, err),
                out_inputs);
    FR_TRY_GOTO(status, ask_today(&inputs, &choice, &now, err), out_inputs);
    if (goal.choices.n_least_nodes > 0)
        FR_TRY_GOTO(status,
                    fr_elastic_table_make(&options.space, inputs.costs,
                                          &elastic, &goal, err),
                    out_inputs);
    status = fr_tune(&options, inputs.costs, &tuning, err);
    if (status == FR_INPUT && !fr_request_has(request, FR_OPT_FOR) &&
        options.space.target != NULL)
        status = fail_for(options.space.target, err);
    FR_TRY_GOTO(status, status, out_inputs);
    if (fr_request_has(request, FR_OPT_MEASURE))
        FR_TRY_GOTO(status,
                    request->session->measurer->measure(
                        request, &inputs, &choice, &goal, &tuning, err),
                    out_inputs);
    FR_TRY_GOTO(status,
                put_correction(&inputs, &choice.file.model, &tuning, err),
                out_inputs);
    tuning.counts = fr_run_counts_of(
        &goal, &inputs.cluster,
        tuning.best.run.kwh > 0 ? fr_cluster_n_nodes(&inputs.cluster) : 0);
    FR_TRY_GOTO(
        status,
        find_fit(request, &inputs, &choice, &tuning, &options, &fit, err),
        out_inputs);
    build(&inputs, &choice, &now, &tuning, &fit, out);
    status = finish(request, &inputs, &choice, &goal, &tuning, &fit, err);
out_inputs:
    fr_tuning_release(&tuning);
    fr_elastic_table_release(&elastic);
    fr_plan_choice_release(&choice);
    fr_inputs_release(&inputs);
    return status;
}
