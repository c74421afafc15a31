/*
 * nemo_reader.h: what the readers of NeMo 1, NeMo 2 and Megatron-Bridge share.
 * Private to this folder.
 */
#ifndef FR_FRAMEWORKS_NEMO_NEMO_READER_H
#define FR_FRAMEWORKS_NEMO_NEMO_READER_H

#include "frameworks/megatron/read/megatron_settings.h"

/* The settings of a file, and the arguments of Megatron Core that they come
 * to. */
typedef struct fr_nemo_reader {
    const fr_config_request *request;
    fr_settings settings;
    fr_megatron_flags flags;
    fr_megatron_source source;
    fr_config *out;
    fr_err *err;
} fr_nemo_reader;

/* Lets `body` read the settings of the request's file, and frees them. */
FR_CHECKED fr_status fr_nemo_read_config(const fr_config_request *request,
                                         fr_status (*body)(fr_nemo_reader *),
                                         fr_config *out, fr_err *err);

/* Puts an argument where a switch of the settings is on; the setting counts as
 * read. */
FR_CHECKED fr_status fr_nemo_put_switch(fr_nemo_reader *r, const char *path,
                                        const char *flag);
/* trainer.devices x trainer.num_nodes; -1 of either: nobody says. */
FR_CHECKED fr_status fr_nemo_read_world(fr_nemo_reader *r);
/* A list of two numbers, (0.9, 0.95), as two arguments. */
FR_CHECKED fr_status fr_nemo_put_betas(fr_nemo_reader *r, const char *path);
/* "16-mixed", "bf16", 32. */
FR_CHECKED fr_status fr_nemo_put_precision(fr_nemo_reader *r, const char *path);
/* The model of the catalog that a class of configurations is ("Llama3Config8B",
 * "Llama3ModelProvider8B"); NULL: none. */
const char *fr_nemo_known_model(const char *target);
/* The last part of a name of a class. */
const char *fr_nemo_class(const char *target);
/* Does no prediction depend on the setting? */
fr_setting_test fr_nemo_is_plain;

/* Are these the names of NeMo 2's file? */
bool fr_nemo_2_looks_like(const char *text);
FR_CHECKED fr_status fr_nemo_2_read(fr_nemo_reader *r);
FR_CHECKED fr_status fr_nemo_1_read(fr_nemo_reader *r);

#endif
