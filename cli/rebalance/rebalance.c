/* rebalance.c: see rebalance.h. */
#include "cli/rebalance/rebalance.h"

#include "cli/inputs.h"
#include "cli/rebalance/moved_layers.h"
#include "cli/rebalance/slow_news.h"
#include "plan/decide/grid.h"

/* Less is not worth starting again. */
static const double least_gain = 0.05;
/* What is measured of a plan begins after the first steps. */
enum { WARM_UP_STEPS = 4 };

fr_status fr_rebalance_check(const fr_cli *cli, const fr_plan_file *file,
                             fr_err *err)
{
    if (!fr_cli_on(cli, FR_OPT_REBALANCE))
        return FR_OK;
    if (!fr_cli_has(cli, FR_OPT_ELASTIC))
        return fr_fail(err, FR_USAGE,
                       "--rebalance needs --elastic MIN:MAX and --checkpoint "
                       "DIR");
    if (file->plan.pp == 1)
        return fr_fail(err, FR_USAGE,
                       "--rebalance moves layers between the stages of a "
                       "pipeline; the plan has pp 1");
    if (file->cluster[0] == '\0')
        return fr_fail(err, FR_USAGE,
                       "--rebalance predicts before it moves, and the plan "
                       "names no cluster");
    return FR_OK;
}

void fr_rebalance_begin(fr_rebalance *r, const fr_cli *cli,
                        const fr_plan_file *file, const fr_plan *plan,
                        int64_t first_step)
{
    *r = (fr_rebalance){.cli = cli,
                        .file = file,
                        .plan = *plan,
                        .looked_at = first_step,
                        .first_step = first_step};
    fr_slow_news_forget(cli);
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

static fr_status find_move(const fr_rebalance *r, const fr_slow_ranks *slow,
                           fr_moved_layers *out, fr_err *err)
{
    fr_cli quiet = *r->cli;
    fr_plan_file file = *r->file;
    fr_inputs inputs = {0};

    quiet.option[FR_OPT_QUIET].is_on = true;
    file.plan = r->plan;
    fr_status status = fr_inputs_load(&quiet, file.cluster, &inputs, err);
    if (status == FR_OK)
        status = fr_move_layers(&inputs, &file, slow, out, err);
    fr_inputs_release(&inputs);
    return status;
}

/* Predicts what moving would gain, and says what comes of it. */
static bool consider(fr_rebalance *r, const fr_slow_news *news)
{
    const fr_slow_ranks slow = slow_ranks_of(r, news);
    char before[FR_SPLIT_TEXT], after[FR_SPLIT_TEXT];
    fr_moved_layers move;
    fr_err why = {0};

    if (slow.n == 0)
        return false;
    if (find_move(r, &slow, &move, &why) != FR_OK) {
        fr_cli_note(r->cli, "forerun: nothing is moved: %s", why.text);
        r->state = FR_REBALANCE_OVER;
        return false;
    }
    const double gain = 1 - move.after_s / move.before_s;
    const bool is_worth_it = gain >= least_gain;
    fr_cli_note(r->cli,
                "forerun: step %lld: layers %s instead of %s: steps are "
                "predicted to be %.0f %% shorter%s",
                (long long)news->step,
                fr_layer_split_text(&move.plan, &r->file->model, after),
                fr_layer_split_text(&r->plan, &r->file->model, before),
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
    fr_cli_note(r->cli,
                "forerun: step %lld: steps of %.3g s instead of %.3g s: %s",
                (long long)news->step, news->step_s, r->before_s,
                gain > 0 ? "the other layers stay" : "back to what was");
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
    if (r->state == FR_REBALANCE_OVER || !fr_slow_news_read(r->cli, &news) ||
        news.step <= r->looked_at)
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
    fr_slow_news_forget(r->cli);
    return &r->plan;
}
