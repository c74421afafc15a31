/*
 * megatron_arguments.h: a plan, its model and its job as arguments of
 * Megatron-LM's pretrain_gpt.py, by version.
 */
#ifndef FR_FRAMEWORKS_MEGATRON_WRITE_MEGATRON_ARGUMENTS_H
#define FR_FRAMEWORKS_MEGATRON_WRITE_MEGATRON_ARGUMENTS_H

#include "frameworks/megatron/megatron_words.h"
#include "frameworks/write/export.h"

/* Lines of a bash array, each with four spaces before it. */
void fr_megatron_put_model(const fr_export_request *of, fr_buffer *out);
void fr_megatron_put_training(const fr_export_request *of, fr_buffer *out);
void fr_megatron_put_data(const fr_export_request *of, fr_buffer *out);
/* Folder and interval of checkpoints, and when a submission ends. */
void fr_megatron_put_checkpoints(const fr_export_request *request,
                                 fr_buffer *out);
void fr_megatron_put_parallel(const fr_export_request *of, fr_buffer *out);
void fr_megatron_put_memory(const fr_export_request *of, fr_buffer *out);

#endif
