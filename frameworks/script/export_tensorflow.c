/* export_tensorflow.c: a training script for TensorFlow. */
#include "frameworks/framework_list.h"
#include "frameworks/script/export_script.h"

static fr_status write_script(const fr_export_request *request,
                              fr_export_files *out, fr_err *err)
{
    return fr_script_write(request, &fr_target_tensorflow,
                           "train_tensorflow.py", out, err);
}

static fr_status put_command(const fr_export_request *request, fr_buffer *out,
                             fr_err *err)
{
    (void)request;
    (void)err;
    fr_buffer_puts(out, "python3 \"$folder/train_tensorflow.py\"");
    return FR_OK;
}

const fr_exporter fr_exporter_tensorflow = {
    .target = &fr_target_tensorflow,
    .summary = "a training script for TensorFlow's strategies",
    .write = write_script,
    .start = FR_START_NODE,
    .takes_hosts = true,
    .put_command = put_command,
    .left = {[FR_EXPORT_CHECKPOINTS] = FR_SCRIPT_SAVES_NOTHING},
};
