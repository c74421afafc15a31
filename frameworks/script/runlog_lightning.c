/*
 * runlog_lightning.c: the progress bar of Lightning (lightning/pytorch/
 * callbacks/progress/tqdm_progress.py): "Epoch 0:  10%| | 100/1000
 * [00:50<07:30,  2.00it/s, v_num=3]".  Its rate is the mean since the begin of
 * the epoch.
 */
#include "frameworks/log/runlog_format.h"

#include <string.h>

/* "Starting with 8 processes", "GLOBAL_RANK: 0, MEMBER: 1/8". */
static void read_lightning(fr_runlog_reader *reader, const char *line)
{
    const char *at = strstr(line, "Starting with ");
    if (at != NULL && strstr(at, " processes") != NULL) {
        at += strlen("Starting with ");
        fr_runlog_set(reader, FR_RUNLOG_WORLD, at, strspn(at, "0123456789"));
    }
    at = strstr(line, ", MEMBER: ");
    at = at != NULL ? strchr(at, '/') : NULL;
    if (at != NULL)
        fr_runlog_set(reader, FR_RUNLOG_WORLD, at + 1,
                      strspn(at + 1, "0123456789"));
}

const fr_runlog_format fr_runlog_lightning = {
    .what = "Lightning",
    .cell = "Lightning",
    .step_mark = "v_num=",
    .other_mark = "Validat",
    .numbers = {{"it/s", FR_RUNLOG_STEP_S, 1, true}},
    .note = "a step is an iteration of the progress bar: with accumulation of "
            "gradients it is a micro-batch",
    .is_unit = true,
    .is_weak = true,
    .read = read_lightning,
};
