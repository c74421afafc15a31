/* export_ray_train.c: a training script for Ray Train. */
#include "interop/export/export_list.h"
#include "interop/export/script/export_script.h"
#include "plan/target/target_list.h"

static fr_status write_script(const fr_export_request *request,
                              fr_export_files *out, fr_err *err)
{
    return fr_script_write(request, &fr_target_ray_train, "train_ray.py", out,
                           err);
}

const fr_exporter fr_exporter_ray_train = {
    .name = "ray-train",
    .summary = "a training script for Ray Train, with PyTorch DDP",
    .target = &fr_target_ray_train,
    .write = write_script,
};
