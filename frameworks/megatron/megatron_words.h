/*
 * megatron_words.h: single values of a plan, its model and its job in the words
 * of Megatron-LM, which Megatron-Bridge has too.
 */
#ifndef FR_FRAMEWORKS_MEGATRON_MEGATRON_WORDS_H
#define FR_FRAMEWORKS_MEGATRON_MEGATRON_WORDS_H

#include "core/base/buffer.h"
#include "frameworks/megatron/target_megatron.h"

/* --ddp-bucket-size of one bucket for all: more parameters than any model. */
#define FR_MEGATRON_ONE_BUCKET INT64_C(1000000000000)

/* Are the job's data such as Megatron-LM reads, PREFIX.bin and PREFIX.idx of
 * tools/preprocess_data.py?  Files that are here and have no .idx are others.
 */
bool fr_megatron_takes_data(const fr_job *job);
/* Their PREFIX; returns buf. */
char *fr_megatron_data_prefix(const fr_job *job, char *buf, size_t n_buf);
/* Why others are left out. */
#define FR_MEGATRON_NO_DATA                                                    \
    "Megatron-LM reads PREFIX.bin and PREFIX.idx of "                          \
    "tools/preprocess_data.py, not this file; mock data take its place"

/* "Et*4|t*4|t*4|t*3mL": E embedding, t layer, m layer of later tokens, L loss.
 */
void fr_megatron_put_layout(const fr_plan *plan, const fr_model *model,
                            fr_buffer *out);
/* "[0]*3+[1]*58": which layers have experts. */
void fr_megatron_put_expert_layers(const fr_model *model, fr_buffer *out);
bool fr_megatron_has_dense_layers(const fr_model *model);
/* --moe-router-pre-softmax, without which weights of chosen experts add up to
 * 1.  Of one expert a token Megatron-LM takes no other. */
bool fr_megatron_has_pre_softmax(const fr_model *model);
/*
 * Can Megatron FSDP make the weights in parts (--init-model-with-meta-device)?
 * Modules that hold weights on the meta device must have a reset_parameters():
 * the router has one from core 0.13, the gate of shared experts none
 * (transformer/moe/shared_experts.py); buffers are not made at all, and the
 * router's bias is kept off that device from core 0.15 (router.py).
 */
bool fr_megatron_builds_on_meta(const fr_model *model, int version);
enum { FR_MEGATRON_MODULES_MAX = 8 };
/* Words of --cuda-graph-scope and --cuda-graph-modules for graphs of layers. */
int fr_megatron_graph_modules(const fr_plan *plan, const fr_model *model,
                              const char *out[FR_MEGATRON_MODULES_MAX]);
/* Elements of --ddp-bucket-size. */
int64_t fr_megatron_bucket(const fr_plan *plan);
/* --num-distributed-optimizer-instances, 1: one copy. */
int64_t fr_megatron_instances(const fr_plan *plan);
/* --attention-backend. */
const char *fr_megatron_attention_backend(const fr_plan *plan);
/* The table of the optimizer's moments, "sgd" or "adam". */
const char *fr_megatron_moments(const fr_job *job);
/* Is the layout written, the plan's stages not being even? */
bool fr_megatron_has_layout(const fr_plan *plan, const fr_model *model,
                            int version);

#endif
