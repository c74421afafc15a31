/* prediction.c: the names of the parts of a step, as JSON keys. */
#include "spec/result/prediction.h"

static const char *const names[FR_PART_N] = {
    [FR_PART_COMPUTE] = "compute",
    [FR_PART_EXPOSED_TP] = "exposed_tp",
    [FR_PART_EXPOSED_CP] = "exposed_cp",
    [FR_PART_EXPOSED_EP] = "exposed_ep",
    [FR_PART_EXPOSED_PP] = "exposed_pp",
    [FR_PART_EXPOSED_DP] = "exposed_dp",
    [FR_PART_BUBBLE] = "bubble",
    [FR_PART_STRAGGLERS] = "stragglers",
    [FR_PART_OPTIMIZER] = "optimizer",
    [FR_PART_DATA] = "data",
    [FR_PART_EXPOSED_OFFLOAD] = "exposed_offload",
    [FR_PART_HOST] = "host",
    [FR_PART_OTHER] = "other",
};

const fr_names fr_part_names = FR_NAMES(names);

const char *fr_part_name(fr_part part)
{
    return fr_name_of(&fr_part_names, (int)part);
}

bool fr_prediction_lacks_host(const fr_prediction *prediction)
{
    return prediction->memory.host_capacity_bytes > 0 &&
           prediction->memory.host_bytes >
               prediction->memory.host_capacity_bytes;
}
