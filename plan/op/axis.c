/*
 * axis.c: names of the axes.
 */
#include "plan/op/axis.h"

const char *fr_axis_name(fr_axis axis)
{
    static const char *const names[FR_AXIS_N] = {
        [FR_AXIS_NONE] = "none",       [FR_AXIS_TP] = "tp",
        [FR_AXIS_CP] = "cp",           [FR_AXIS_EP] = "ep",
        [FR_AXIS_DP] = "dp",           [FR_AXIS_PP] = "pp",
        [FR_AXIS_EMBED] = "embed",     [FR_AXIS_MODEL] = "model",
        [FR_AXIS_WORLD] = "world",     [FR_AXIS_SHARD] = "shard",
        [FR_AXIS_REPLICA] = "replica", [FR_AXIS_ETP] = "etp",
        [FR_AXIS_EDP] = "edp",
    };
    return (unsigned)axis < FR_AXIS_N ? names[axis] : "?";
}
