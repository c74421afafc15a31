/* run_validation.c: see run_validation.h. */
#include "runtime/run/run_validation.h"

#include "core/base/vec.h"
#include "runtime/rank/rank_context.h"

#include <math.h>

enum { BATCHES = 4 };

struct fr_run_validation {
    fr_executor *executor;
    fr_data *data; /* NULL: this rank reads none */
    int64_t every, n_batches;
    fr_vec(fr_run_evaluation) losses;
};

fr_status fr_run_validation_open(fr_executor *executor, fr_run_validation **out,
                                 fr_err *err)
{
    const fr_run_options *options = executor->options;
    fr_run_validation *validation;

    *out = NULL;
    if (options->eval_data == NULL)
        return FR_OK;
    if (executor->ops->evaluate == NULL)
        return fr_fail(err, FR_USAGE,
                       "--eval-data: backend %s does not evaluate; run "
                       "without it",
                       executor->backend->name);
    FR_TRY_CALLOC(validation, 1, err);
    validation->executor = executor;
    validation->every = options->eval_every;
    validation->n_batches =
        options->eval_batches > 0 ? options->eval_batches : BATCHES;
    fr_status status =
        fr_rank_data_open(executor->program, executor->rank_program,
                          options->eval_data, &validation->data, err);
    if (status == FR_OK)
        *out = validation;
    else
        fr_run_validation_close(validation);
    return status;
}

void fr_run_validation_close(fr_run_validation *validation)
{
    if (validation == NULL)
        return;
    fr_data_close(validation->data);
    fr_vec_release(&validation->losses);
    free(validation);
}

/* The same batches each time. */
fr_status fr_run_validation_step(fr_run_validation *validation, int64_t n_done,
                                 int64_t n_steps, fr_err *err)
{
    fr_run_evaluation mean = {.n_steps_done = n_done};

    if (validation == NULL ||
        (n_done != n_steps &&
         (validation->every == 0 || n_done % validation->every != 0)))
        return FR_OK;
    fr_executor *executor = validation->executor;
    for (int64_t i = 0; i < validation->n_batches; i++) {
        FR_TRY(executor->ops->evaluate(executor, validation->data, i, err));
        mean.loss += executor->ops->scalars(executor)->loss_sum /
                     (double)validation->n_batches;
    }
    FR_TRY_PUSH(&validation->losses, mean, err);
    return FR_OK;
}

size_t fr_run_validation_losses(const fr_run_validation *validation,
                                const fr_run_evaluation **out)
{
    *out = validation != NULL ? validation->losses.items : NULL;
    return validation != NULL ? validation->losses.n : 0;
}
