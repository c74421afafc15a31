/* goodput_backup.h: steps that do not wait for the last replicas. */
#ifndef FR_API_GOODPUT_GOODPUT_BACKUP_H
#define FR_API_GOODPUT_GOODPUT_BACKUP_H

#include "api/inputs.h"
#include "plan/decide/plan_json.h"

/*
 * With --backup-workers, the prediction of a step as the replicas that are
 * waited for see it; it counts for as many samples as a whole one, so what is
 * computed and dropped makes it longer, as stragglers do.  Else *prediction
 * stays.  FR_USAGE: the plan cannot do without a replica.
 */
FR_CHECKED fr_status fr_goodput_backups(const fr_request *request,
                                        const fr_inputs *inputs,
                                        const fr_plan_file *file,
                                        fr_prediction *prediction, fr_err *err);

#endif
