/*
 * torchtitan_keys.h: the keys of torchtitan, which its writers of TOML and of
 * Python and its reader of TOML share, and what follows from a plan for several
 * of them.
 */
#ifndef FR_FRAMEWORKS_TORCHTITAN_TORCHTITAN_KEYS_H
#define FR_FRAMEWORKS_TORCHTITAN_TORCHTITAN_KEYS_H

#include "frameworks/framework_keys.h"

/* Places in the list of versions: TOML up to 0.2, a Python recipe for main. */
enum { FR_TORCHTITAN_0_2_0, FR_TORCHTITAN_0_2, FR_TORCHTITAN_MAIN };

/* config/job_config.py of 0.2, config/configs.py of main. */
extern const fr_framework_keys fr_torchtitan_keys;

typedef struct fr_torchtitan_layout {
    int64_t n_replicas, n_shards; /* of data-parallel ranks */
    int64_t n_micro, local_batch;
    bool is_compiled; /* async TP is made by the compiler */
    bool is_fp8, is_mx;
} fr_torchtitan_layout;

fr_torchtitan_layout fr_torchtitan_layout_of(const fr_plan_file *file);

/* A schedule that torchtitan has no name for is a file, schedule.csv. */
bool fr_torchtitan_has_schedule_file(const fr_plan_file *file);

/* DeepEP is asked for only where experts are parallel. */
const char *fr_torchtitan_expert_backend(const fr_plan *plan);

#endif
