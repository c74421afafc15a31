/*
 * hf_get.h: short names for what readers of model types say most; for .c files
 * of this folder alone.
 */
#ifndef FR_SPEC_MODEL_HF_HF_GET_H
#define FR_SPEC_MODEL_HF_HF_GET_H

#include "core/document/json.h"
#include "spec/model/model.h"

#define HF_READER(name)                                                        \
    static fr_status read_##name(const fr_json_value *config, fr_model *model, \
                                 fr_err *err)

FR_CHECKED static inline fr_status
get(const fr_json_value *config, const char *key, int64_t *out, fr_err *err)
{
    return fr_json_get_i64(config, key, out, err);
}

FR_CHECKED static inline fr_status get_or(const fr_json_value *config,
                                          const char *key, int64_t otherwise,
                                          int64_t *out, fr_err *err)
{
    return fr_json_get_i64_or(config, key, otherwise, out, err);
}

FR_CHECKED static inline fr_status get_bool(const fr_json_value *config,
                                            const char *key, bool otherwise,
                                            bool *out, fr_err *err)
{
    return fr_json_get_bool_or(config, key, otherwise, out, err);
}

#endif
