/* export_horovod.c: a training script for Horovod. */
#include "frameworks/framework_list.h"
#include "frameworks/script/export_script.h"

static fr_status write_script(const fr_export_request *request,
                              fr_export_files *out, fr_err *err)
{
    return fr_script_write(request, &fr_target_horovod, "train_horovod.py", out,
                           err);
}

static fr_status put_command(const fr_export_request *request, fr_buffer *out,
                             fr_err *err)
{
    (void)request;
    (void)err;
    fr_buffer_puts(out, "python3 \"$folder/train_horovod.py\"");
    return FR_OK;
}

const fr_exporter fr_exporter_horovod = {
    .target = &fr_target_horovod,
    .summary = "a training script for Horovod",
    .write = write_script,
    .start = FR_START_MPI,
    .put_command = put_command,
    .left = {[FR_EXPORT_CHECKPOINTS] = FR_SCRIPT_SAVES_WEIGHTS},
};
