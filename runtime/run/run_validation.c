/* run_validation.c: see run_validation.h. */
#include "runtime/run/run_validation.h"

#include "core/base/text.h"
#include "core/base/vec.h"

#include <math.h>

enum { BATCHES = 4 };

struct fr_run_validation {
    fr_executor *executor;
    fr_data *data; /* NULL: this rank loads no tokens */
    int64_t every, n_batches;
    fr_vec(fr_run_evaluation) losses;
};

static fr_status open_data(fr_run_validation *validation, const char *path,
                           fr_err *err)
{
    const fr_program *program = validation->executor->program;
    fr_job job = program->job;

    if (!fr_text_copy(job.data, sizeof job.data, path))
        return fr_fail(err, FR_USAGE, "--eval-data: the path is too long");
    FR_TRY(fr_data_open(&job, program->model.vocab, &validation->data, err));
    if (program->model.n_mtp_layers > 0)
        fr_data_look_ahead(validation->data);
    return FR_OK;
}

fr_status fr_run_validation_open(fr_executor *executor, bool loads_tokens,
                                 fr_run_validation **out, fr_err *err)
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
    if (executor->program->model.n_channels > 0 &&
        options->eval_data[0] != '\0')
        return fr_fail(err, FR_USAGE,
                       "--eval-data: images are made up, %s is not read; "
                       "leave it out",
                       options->eval_data);
    FR_TRY_CALLOC(validation, 1, err);
    validation->executor = executor;
    validation->every = options->eval_every;
    validation->n_batches =
        options->eval_batches > 0 ? options->eval_batches : BATCHES;
    fr_status status =
        loads_tokens ? open_data(validation, options->eval_data, err) : FR_OK;
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
