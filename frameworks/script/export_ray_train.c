/* export_ray_train.c: a training script for Ray Train. */
#include "frameworks/framework_list.h"
#include "frameworks/script/export_script.h"

static fr_status write_script(const fr_export_request *request,
                              fr_export_files *out, fr_err *err)
{
    const fr_target *target = &fr_target_ray_train;
    bool is_ddp =
        target->backend_of(&request->file->plan)->base == &fr_target_ddp;
    return fr_script_write(request, target,
                           is_ddp ? "train_ray.py" : "train_ray_fsdp2.py", out,
                           err);
}

const fr_exporter fr_exporter_ray_train = {
    .target = &fr_target_ray_train,
    .summary = "a training script for Ray Train, with PyTorch DDP or FSDP2",
    .write = write_script,
    .left = {[FR_EXPORT_CHECKPOINTS] = FR_SCRIPT_SAVES_WEIGHTS},
};
