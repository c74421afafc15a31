/* run_point.c: the members of a measured step, for readers and writers. */
#include "spec/profile/run_point.h"

#define SHARE_FIELD(symbol, key, summary)                                      \
    {key, FR_MEMBER(fr_run_features, share[FR_RUN_##symbol])},
#define SIZE_FIELD(symbol, key)                                                \
    {key, FR_MEMBER(fr_run_features, size[FR_RUN_SIZE_##symbol])},
#define KIND_FIELD(symbol, key)                                                \
    {key, FR_MEMBER(fr_run_features, kind[FR_RUN_KIND_##symbol])},

const fr_field fr_run_feature_fields[FR_RUN_FEATURES_N] = {FR_RUN_SHARE_LIST(
    SHARE_FIELD) FR_RUN_SIZE_LIST(SIZE_FIELD) FR_RUN_KIND_LIST(KIND_FIELD)};

#define SHARE_SUMMARY(symbol, key, summary) summary,
const char *const fr_run_share_summaries[FR_RUN_SHARE_N] = {
    FR_RUN_SHARE_LIST(SHARE_SUMMARY)};
