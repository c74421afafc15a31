/*
 * gpt_neox_reader.h: what the readers of the parts of a configuration of
 * GPT-NeoX share.  Private to this folder.
 */
#ifndef FR_FRAMEWORKS_GPT_NEOX_GPT_NEOX_READER_H
#define FR_FRAMEWORKS_GPT_NEOX_GPT_NEOX_READER_H

#include "frameworks/read/config_parts.h"
#include "frameworks/read/settings.h"

typedef struct fr_gpt_neox_reader {
    const fr_config_request *request;
    fr_settings settings;
    const fr_json_value *root;
    fr_config *out;
    fr_err *err;
} fr_gpt_neox_reader;

/* The model of the file, or that of the request; FR_INPUT names a key that it
 * is made of and that is not there. */
FR_CHECKED fr_status fr_gpt_neox_read_model(fr_gpt_neox_reader *r);

#endif
