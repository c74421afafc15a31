/* goodput_backup.c: see goodput_backup.h. */
#include "api/goodput/goodput_backup.h"

#include "reliability/backup_workers.h"

fr_status fr_goodput_backups(const fr_request *request, const fr_inputs *inputs,
                             const fr_plan_file *file,
                             fr_prediction *prediction, fr_err *err)
{
    const int64_t n = request->option[FR_OPT_BACKUP_WORKERS].count;
    fr_inputs seen = *inputs;
    fr_prediction with;

    if (n == 0)
        return FR_OK;
    FR_TRY(fr_backup_check(&file->plan, n, err));
    FR_TRY(fr_backup_cluster(&inputs->cluster, &file->plan, n, &seen.cluster,
                             err));
    fr_status status = fr_forecast_predict(&seen, &file->model, &file->job,
                                           &file->plan, &with, err);
    fr_cluster_release(&seen.cluster);
    if (status != FR_OK)
        return status;
    const double dropped = (double)n / (double)(file->plan.dp - n);
    with.breakdown_s[FR_PART_STRAGGLERS] += dropped * with.step_s;
    with.step_s *= 1 + dropped;
    with.expected_step_s *= 1 + dropped;
    with.cost.kwh *= 1 + dropped;
    *prediction = with;
    return FR_OK;
}
