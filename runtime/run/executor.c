/* executor.c: what the executors of all backends have from the begin on. */
#include "runtime/run/executor.h"

#include <stdlib.h>

fr_status fr_executor_open(const fr_backend *backend, fr_transport *transport,
                           const fr_program *program,
                           const fr_run_options *options, fr_executor **out,
                           fr_err *err)
{
    fr_executor *executor = calloc(1, backend->executor_bytes);

    if (executor == NULL)
        return fr_fail_no_memory(err);
    *executor = (fr_executor){.backend = backend,
                              .ops = backend->ops,
                              .transport = transport,
                              .program = program,
                              .rank_program =
                                  fr_program_of_rank(program, transport->rank),
                              .options = options};
    fr_processor_set_allowed(&executor->allowed);
    fr_status status = executor->ops->open(executor, err);
    if (status != FR_OK) {
        fr_executor_destroy(executor);
        return status;
    }
    *out = executor;
    return FR_OK;
}

void fr_executor_destroy(fr_executor *executor)
{
    if (executor == NULL)
        return;
    executor->ops->close(executor);
    free(executor);
}
