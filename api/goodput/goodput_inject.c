/* goodput_inject.c: see goodput_inject.h. */
#include "api/goodput/goodput_inject.h"

#include "api/fit/fit_answer.h"
#include "api/rebalance/slow_ranks.h"
#include "api/resolve/hazard_options.h"
#include "api/resolve/replan.h"
#include "core/base/vec.h"
#include "reliability/run_hazards.h"
#include "reliability/run_schedule.h"

#include <math.h>
#include <stdlib.h>

enum { MOST_FAULTS = 64 };

static const double usual_hang_s = 60;
/* A new plan is found in less than that (docs/tuner.md). */
static const double replan_s = 1;

/* A step under the same faults, with as many places, is predicted once. */
typedef struct known_step {
    int64_t n_places;
    uint64_t active; /* faults, a bit each */
    fr_schedule_step step;
} known_step;

typedef struct pricing {
    const fr_request *request;
    fr_inputs *inputs;
    const fr_plan_file *file;
    const fr_faults *faults;
    int64_t n_places; /* of the file's plan */
    double step_s;    /* undisturbed */
    fr_run_hazards hazards;
    fr_vec(known_step) known;
} pricing;

static uint64_t active_at(const fr_faults *faults, int64_t i_step)
{
    uint64_t active = 0;

    for (size_t i = 0; i < faults->n; i++) {
        const fr_fault *fault = &faults->items[i];
        if ((fault->kind == FR_FAULT_SLOW || fault->kind == FR_FAULT_READ) &&
            i_step >= fault->first_step &&
            i_step - fault->first_step < fault->n_steps)
            active |= (uint64_t)1 << i;
    }
    return active;
}

/* A step with some ranks slow, or its data at a rate of each rank's. */
static fr_status predict(const pricing *p, const fr_plan_file *file,
                         uint64_t active, double *step_s, fr_err *err)
{
    fr_cluster *cluster = &p->inputs->cluster;
    const double read_Bps = cluster->node_types[0].storage_read_Bps;
    fr_slow_ranks slow = {0};

    for (size_t i = 0; i < p->faults->n; i++) {
        const fr_fault *fault = &p->faults->items[i];
        if ((active >> i & 1) == 0)
            continue;
        if (fault->kind == FR_FAULT_READ)
            cluster->node_types[0].storage_read_Bps =
                fault->rate_Bps * file->plan.dp /
                (double)fr_cluster_n_nodes(cluster);
        else
            fr_slow_ranks_add(&slow, fault->rank, fault->factor);
    }
    fr_status status =
        fr_slow_ranks_predict(p->inputs, file, &slow, step_s, err);
    cluster->node_types[0].storage_read_Bps = read_Bps;
    return status;
}

static uint64_t of_kind(const fr_faults *faults, uint64_t active,
                        fr_fault_kind kind)
{
    for (size_t i = 0; i < faults->n; i++)
        if (faults->items[i].kind != kind)
            active &= ~((uint64_t)1 << i);
    return active;
}

/* As fr_replan_site asks for it. */
static fr_status check_fit(const void *context, const fr_plan_file *file,
                           fr_err *err)
{
    const fr_fit_place place = {.cluster = file->cluster};
    fr_fit_advice fit;
    return fr_fit_answer_check_file(context, file, &place, &fit, err);
}

/* Predicts the step with fewer places, slow ranks and slow reading; reading
 * is as slow where ranks are. */
static fr_status predict_all(const pricing *p, int64_t n_places,
                             uint64_t active, fr_schedule_step *out,
                             fr_err *err)
{
    const uint64_t slow = of_kind(p->faults, active, FR_FAULT_SLOW);
    fr_plan_file file = *p->file;
    double planned_s = p->step_s, slow_s, all_s;

    if (n_places != p->n_places) {
        const fr_replan_site site = {
            .request = p->request,
            .is_gpu = fr_cluster_is_all_gpu(&p->inputs->cluster),
            .check_fit = check_fit,
            .context = p->request};
        FR_TRY(fr_replan(&site, p->file, n_places, 1, &file, err));
        FR_TRY(predict(p, &file, 0, &planned_s, err));
    }
    slow_s = planned_s;
    if (slow != 0)
        FR_TRY(predict(p, &file, slow, &slow_s, err));
    all_s = slow_s;
    if (slow != active) {
        FR_TRY(predict(p, &file, active, &all_s, err));
        all_s = fmax(all_s, slow_s);
    }
    *out = (fr_schedule_step){.step_s = all_s,
                              .idle_s = planned_s - p->step_s,
                              .straggler_s = slow_s - planned_s,
                              .input_s = all_s - slow_s};
    return FR_OK;
}

static fr_status price(void *context, int64_t n_places, int64_t i_step,
                       fr_schedule_step *out, fr_err *err)
{
    pricing *p = context;
    const uint64_t active = active_at(p->faults, i_step);

    for (size_t i = 0; i < p->known.n; i++) {
        const known_step *known = &p->known.items[i];
        if (known->n_places == n_places && known->active == active) {
            *out = known->step;
            return FR_OK;
        }
    }
    known_step found = {.n_places = n_places, .active = active};
    FR_TRY(predict_all(p, n_places, active, &found.step, err));
    FR_TRY_PUSH(&p->known, found, err);
    *out = found.step;
    return FR_OK;
}

static fr_status check(const fr_request *request, const fr_plan_file *file,
                       const fr_faults *faults, fr_err *err)
{
    static const fr_option of_weeks[] = {
        FR_OPT_FOR_DAYS, FR_OPT_RUNS,   FR_OPT_MTBF, FR_OPT_SPARES,
        FR_OPT_SPOT,     FR_OPT_TOKENS, FR_OPT_MEETS};

    for (size_t i = 0; i < FR_LENGTH(of_weeks); i++)
        if (request->option[of_weeks[i]].source == FR_SOURCE_FLAG)
            return fr_fail(err, FR_USAGE,
                           "--inject is of one run of --steps, in which "
                           "nothing happens by chance: leave out --%s",
                           fr_option_get(of_weeks[i]).name);
    if (faults->n > MOST_FAULTS)
        return fr_fail(err, FR_USAGE, "--inject: %zu faults; give %d at most",
                       faults->n, MOST_FAULTS);
    return fr_faults_check(faults, fr_plan_world(&file->plan),
                           file->job.n_steps, err);
}

static fr_status walk(pricing *p, fr_schedule_told *out, fr_err *err)
{
    const fr_option_value *v = p->request->option;
    const int64_t n_places = p->n_places;
    const fr_run_conditions c =
        fr_run_meet(&p->hazards, &p->inputs->cluster,
                    fr_cluster_n_nodes(&p->inputs->cluster), n_places,
                    fr_plan_checkpoint_bytes(&p->file->plan, &p->file->model,
                                             &p->file->job))
            .conditions;
    const fr_fault_schedule schedule = {
        .faults = p->faults,
        .n_steps = p->file->job.n_steps,
        .n_places = n_places,
        .every_steps = v[FR_OPT_CHECKPOINT_EVERY].count,
        .blocked_s = c.blocked_s,
        .drain_s = c.drain_s,
        .start_s = c.start_s,
        .end_s = p->hazards.measured.end_s,
        .restart_s = c.restart_s,
        .replan_s = replan_s,
        .hang_s = fr_request_has(p->request, FR_OPT_TIMEOUT)
                      ? v[FR_OPT_TIMEOUT].real
                      : usual_hang_s,
        .price = price,
        .context = p};
    fr_schedule_result result;
    FR_TRY(fr_schedule_walk(&schedule, &result, err));
    *out = (fr_schedule_told){.result = result,
                              .step_s = p->step_s,
                              .n_steps = schedule.n_steps,
                              .every_steps = schedule.every_steps,
                              .blocked_s = schedule.blocked_s,
                              .restart_s = schedule.restart_s};
    return FR_OK;
}

static fr_status make_hazards(pricing *p, fr_err *err)
{
    const fr_cluster *cluster = &p->inputs->cluster;

    FR_TRY(fr_request_make_hazards(p->request, &p->hazards, err));
    fr_hazards_take_profile(p->inputs->has_profile ? &p->inputs->profile : NULL,
                            cluster, fr_cluster_n_nodes(cluster), &p->hazards);
    return FR_OK;
}

fr_status fr_goodput_inject(const fr_request *request, fr_inputs *inputs,
                            const fr_plan_file *file, double step_s,
                            fr_schedule_told *out, fr_err *err)
{
    fr_faults faults = {0};
    pricing p = {.request = request,
                 .inputs = inputs,
                 .file = file,
                 .faults = &faults,
                 .n_places = fr_plan_world(&file->plan),
                 .step_s = step_s};
    fr_status status =
        fr_faults_parse(fr_request_text(request, FR_OPT_INJECT), &faults, err);

    if (status == FR_OK)
        status = check(request, file, &faults, err);
    if (status == FR_OK)
        status = make_hazards(&p, err);
    if (status == FR_OK)
        status = walk(&p, out, err);
    fr_vec_release(&p.known);
    fr_vec_release(&faults);
    return status;
}
