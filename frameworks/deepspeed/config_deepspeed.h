/*
 * config_deepspeed.h: the parts of a ds_config.json, for its reader and its
 * writer.
 */
#ifndef FR_FRAMEWORKS_DEEPSPEED_CONFIG_DEEPSPEED_H
#define FR_FRAMEWORKS_DEEPSPEED_CONFIG_DEEPSPEED_H

#include "frameworks/read/config_parts.h"

/* "auto", as files for Hugging Face's Trainer have it? */
bool fr_deepspeed_is_auto(const fr_json_value *value);
/* A member; NULL where it is absent or auto.  `taken`, which a note says: what
 * that comes to.  A key stage3_X is an alias of the field X, which is found by
 * both (runtime/config_utils.py, populate_by_name). */
const fr_json_value *fr_deepspeed_find(const fr_json_value *object,
                                       const char *key, const char *taken,
                                       fr_buffer *notes);
/* A whole number in [low, high]; 5e8 is one as well. */
FR_CHECKED fr_status fr_deepspeed_read_count(const fr_json_value *value,
                                             const char *key, int64_t low,
                                             int64_t high, int64_t *out,
                                             fr_err *err);

/* Elements of one layer as a rank of tensor parallelism has them, at least 1:
 * prefetching counts in these. */
uint64_t fr_deepspeed_layer_elements(const fr_model *model,
                                     const fr_plan *plan);

/* expert_parallel. */
FR_CHECKED fr_status fr_deepspeed_read_experts(const fr_json_value *root,
                                               fr_config *out, fr_err *err);
/* zero_optimization; model, degrees and precision are known. */
FR_CHECKED fr_status fr_deepspeed_read_zero(const fr_json_value *root,
                                            fr_config *out, fr_err *err);
/* optimizer, scheduler, gradient_clipping. */
FR_CHECKED fr_status fr_deepspeed_read_job(const fr_json_value *root,
                                           fr_config *out, fr_err *err);

#endif
