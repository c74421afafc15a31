/* plan_balance.c: see plan_balance.h. */
#include "api/resolve/plan_balance.h"

#include "api/rebalance/moved_plan.h"
#include "api/resolve/plan_options.h"
#include "tuner/partition/balance_layers.h"

/* fr_move_layers() or fr_move_samples(). */
typedef fr_status (*mover)(const fr_inputs *inputs, const fr_plan_file *file,
                           const fr_slow_ranks *slow, fr_moved *out,
                           fr_err *err);

/* Moves work away from ranks that the cluster knows to be slow, where the
 * prediction of it is faster. */
static fr_status move_work(mover move, const fr_inputs *inputs,
                           const fr_model *model, const fr_job *job,
                           fr_plan *plan, fr_err *err)
{
    const fr_plan_file file = {.model = *model, .job = *job, .plan = *plan};
    const fr_slow_ranks beside = {0};
    fr_moved moved;
    fr_err why;
    const fr_status status = move(inputs, &file, &beside, &moved, &why);

    if (status == FR_OK)
        *plan = moved.plan;
    else if (status != FR_INFEASIBLE)
        return fr_fail(err, status, "%s", why.text);
    return FR_OK;
}

/* The faster of two plans by their predictions; a plan that cannot be predicted
 * loses. */
static const fr_plan *faster_of(const fr_inputs *inputs, const fr_model *model,
                                const fr_job *job, const fr_plan *a,
                                const fr_plan *b)
{
    fr_prediction of_a, of_b;
    fr_err why;
    if (fr_forecast_predict(inputs, model, job, b, &of_b, &why) != FR_OK)
        return a;
    if (fr_forecast_predict(inputs, model, job, a, &of_a, &why) != FR_OK)
        return b;
    if (of_a.memory.fits != of_b.memory.fits)
        return of_a.memory.fits ? a : b;
    return of_b.expected_step_s < of_a.expected_step_s ? b : a;
}

/* The time of a stage depends on the type of its devices and on which of them
 * are slow: layers are moved from the even split and from the balanced one. */
static fr_status split_beside_slow(const fr_inputs *inputs,
                                   const fr_model *model, const fr_job *job,
                                   fr_plan *plan, fr_err *err)
{
    fr_plan balanced = *plan, moved = *plan;
    fr_err why;
    const fr_status status = fr_balance_plan(model, job, &inputs->cluster,
                                             inputs->costs, &balanced, &why);
    if (status != FR_OK && status != FR_INFEASIBLE)
        return fr_fail(err, status, "%s", why.text);
    FR_TRY(move_work(fr_move_layers, inputs, model, job, &moved, err));
    if (status == FR_OK && balanced.n_split > 0) {
        FR_TRY(move_work(fr_move_layers, inputs, model, job, &balanced, err));
        *plan = *faster_of(inputs, model, job, &moved, &balanced);
    } else {
        *plan = moved;
    }
    return FR_OK;
}

static fr_status balance_layers(const fr_request *request,
                                const fr_inputs *inputs, const fr_model *model,
                                const fr_job *job, fr_plan *plan, fr_err *err)
{
    if (!fr_request_is_split_auto(request))
        return FR_OK;
    if (inputs->cluster.n_slow > 0 && plan->pp > 1)
        FR_TRY(split_beside_slow(inputs, model, job, plan, err));
    else
        FR_TRY(fr_balance_plan(model, job, &inputs->cluster, inputs->costs,
                               plan, err));
    if (plan->n_split == 0 && plan->pp > 1)
        fr_request_note(request, "--layer-split auto: no split of the layers "
                                 "is predicted to be faster than the even one");
    return FR_OK;
}

fr_status fr_plan_balance(const fr_request *request, const fr_inputs *inputs,
                          const fr_model *model, const fr_job *job,
                          fr_plan *plan, fr_err *err)
{
    FR_TRY(balance_layers(request, inputs, model, job, plan, err));
    return fr_request_are_shares_auto(request)
               ? move_work(fr_move_samples, inputs, model, job, plan, err)
               : FR_OK;
}
