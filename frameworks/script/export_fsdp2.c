/* export_fsdp2.c: a training script for PyTorch's fully_shard. */
#include "frameworks/framework_list.h"
#include "frameworks/script/export_script.h"

static fr_status write_script(const fr_export_request *request,
                              fr_export_files *out, fr_err *err)
{
    return fr_script_write(request, &fr_target_fsdp2, "train_fsdp2.py", out,
                           err);
}

static fr_status put_command(const fr_export_request *request, fr_buffer *out,
                             fr_err *err)
{
    (void)request;
    (void)err;
    fr_buffer_puts(out, "\"$folder/train_fsdp2.py\"");
    return FR_OK;
}

const fr_exporter fr_exporter_fsdp2 = {
    .target = &fr_target_fsdp2,
    .summary = "a training script for PyTorch's fully_shard",
    .write = write_script,
    .start = FR_START_TORCHRUN,
    .put_command = put_command,
    .left = {[FR_EXPORT_CHECKPOINTS] = FR_SCRIPT_SAVES_WEIGHTS},
};
