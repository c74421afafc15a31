/* rebalance.c: see rebalance.h. */
#include "cli/train/rebalance.h"

#include "api/inputs.h"
#include "api/rebalance/moved_plan.h"
#include "cli/train/run_fit.h"
#include "cli/train/slow_news.h"
#include "plan/decide/grid.h"

/* Less is not worth starting again. */
static const double least_gain = 0.05;
/* Measurements of a plan begin after these steps. */
enum { WARM_UP_STEPS = 4 };

fr_status fr_rebalance_check(const fr_request *request,
                             const fr_plan_file *file, fr_err *err)
{
    if (!fr_request_on(request, FR_OPT_REBALANCE))
        return FR_OK;
    if (!fr_request_has(request, FR_OPT_ELASTIC))
        return fr_fail(err, FR_USAGE,
                       "--rebalance needs --elastic MIN:MAX and --checkpoint "
                       "DIR");
    if (file->plan.pp == 1 && file->plan.dp == 1)
        return fr_fail(err, FR_USAGE,
                       "--rebalance moves layers between the stages of a "
                       "pipeline, or samples between data-parallel ranks; the "
                       "plan has pp 1 and dp 1");
    if (file->cluster[0] == '\0')
        return fr_fail(err, FR_USAGE,
                       "--rebalance predicts before it moves, and the plan "
                       "names no cluster");
    return FR_OK;
}

void fr_rebalance_begin(fr_rebalance *r, const fr_request *request,
                        const fr_plan_file *file, const fr_plan *plan,
                        int64_t first_step)
{
    *r = (fr_rebalance){.request = request,
                        .file = file,
                        .plan = *plan,
                        .looked_at = first_step,
                        .first_step = first_step};
    fr_slow_news_forget(request);
}

static fr_slow_ranks slow_ranks_of(const fr_rebalance *r,
                                   const fr_slow_news *news)
{
    fr_slow_ranks slow = {0};
    const int64_t world = fr_plan_world(&r->plan);

    for (int i = 0; i < news->n_stragglers; i++) {
        const fr_straggler *at = &news->stragglers[i];
        for (int64_t rank = 0; rank < world; rank++)
            if ((at->kind == FR_SLOW_RANK && rank == at->index) ||
                (at->kind == FR_SLOW_STAGE &&
                 fr_plan_coord(&r->plan, rank).pp == at->index))
                fr_slow_ranks_add(&slow, rank, at->factor);
    }
    return slow;
}

/* Moves layers or samples, whichever is predicted to be faster; if neither is,
 * the reason is that of the kind which the plan has. */
static fr_status find_faster(const fr_inputs *inputs, const fr_plan_file *file,
                             const fr_slow_ranks *slow, fr_moved *out,
                             fr_err *err)
{
    fr_moved layers, samples;
    fr_err why[2] = {0};
    const fr_status of_layers =
        fr_move_layers(inputs, file, slow, &layers, &why[0]);
    const fr_status of_samples =
        fr_move_samples(inputs, file, slow, &samples, &why[1]);
    const bool has_stages = file->plan.pp > 1;

    if (of_layers != FR_OK && of_samples != FR_OK)
        return fr_fail(err, has_stages ? of_layers : of_samples, "%s",
                       why[has_stages ? 0 : 1].text);
    *out = of_layers != FR_OK ||
                   (of_samples == FR_OK && samples.after_s < layers.after_s)
               ? samples
               : layers;
    return FR_OK;
}

static fr_status find_move(const fr_rebalance *r, const fr_slow_ranks *slow,
                           fr_moved *out, fr_err *err)
{
    fr_request quiet = *r->request;
    fr_plan_file file = *r->file;
    fr_inputs inputs = {0};
    fr_fit_advice fit;

    quiet.option[FR_OPT_QUIET].is_on = true;
    file.plan = r->plan;
    fr_status status = fr_inputs_load(&quiet, file.cluster, &inputs, err);
    if (status == FR_OK)
        status = find_faster(&inputs, &file, slow, out, err);
    fr_inputs_release(&inputs);
    if (status != FR_OK)
        return status;
    file.plan = out->plan;
    return fr_run_fit_check(r->request, &file, &fit, err);
}

/* Predicts what moving would gain, and says what comes of it. */
static bool consider(fr_rebalance *r, const fr_slow_news *news)
{
    const fr_slow_ranks slow = slow_ranks_of(r, news);
    char text[FR_MOVED_TEXT];
    fr_moved move;
    fr_err why = {0};

    if (slow.n == 0)
        return false;
    if (find_move(r, &slow, &move, &why) != FR_OK) {
        fr_request_note(r->request, "nothing is moved: %s", why.text);
        r->state = FR_REBALANCE_OVER;
        return false;
    }
    const double gain = 1 - move.after_s / move.before_s;
    const bool is_worth_it = gain >= least_gain;
    fr_request_note(r->request,
                    "step %lld: %s: steps are predicted to be %.0f %% "
                    "shorter%s",
                    (long long)news->step,
                    fr_moved_text(r->file, &r->plan, &move.plan, text),
                    100 * gain, is_worth_it ? "" : ", which is not worth it");
    r->state = is_worth_it ? FR_REBALANCE_ASKED : FR_REBALANCE_OVER;
    r->next = move.plan;
    r->before_s = news->step_s;
    return is_worth_it;
}

/* Kept only if it is faster. */
static bool judge(fr_rebalance *r, const fr_slow_news *news)
{
    const double gain = 1 - news->step_s / r->before_s;

    if (news->step - r->first_step < WARM_UP_STEPS + FR_NEWS_STEPS)
        return false;
    fr_request_note(r->request,
                    "step %lld: steps of %.3g s instead of %.3g s: %s",
                    (long long)news->step, news->step_s, r->before_s,
                    gain > 0 ? "the other plan stays" : "back to what was");
    r->state = gain > 0 ? FR_REBALANCE_OVER : FR_REBALANCE_ASKED;
    r->is_back = gain <= 0;
    r->next = r->last;
    return gain <= 0;
}

bool fr_rebalance_look(fr_rebalance *r)
{
    fr_slow_news news;

    if (r->state == FR_REBALANCE_ASKED)
        return true;
    if (r->state == FR_REBALANCE_OVER ||
        !fr_slow_news_read(r->request, &news) || news.step <= r->looked_at)
        return false;
    r->looked_at = news.step;
    return r->state == FR_REBALANCE_WATCHING ? consider(r, &news)
                                             : judge(r, &news);
}

const fr_plan *fr_rebalance_take(fr_rebalance *r, int64_t step)
{
    if (r->state != FR_REBALANCE_ASKED)
        return NULL;
    r->last = r->plan;
    r->plan = r->next;
    r->first_step = r->looked_at = step;
    r->state = r->is_back ? FR_REBALANCE_OVER : FR_REBALANCE_MEASURING;
    fr_slow_news_forget(r->request);
    return &r->plan;
}
