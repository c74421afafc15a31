/*
 * hf_type.h: the model types that Hugging Face's config.json may have, a row
 * each, and what their readers share.
 *
 * A key that is absent or null takes the default of its class in transformers
 * (configuration_<type>.py); a size that no default should stand for is
 * required.  Keys that change the arithmetic in a way that is not modelled
 * are refused.
 */
#ifndef FR_SPEC_MODEL_HF_HF_TYPE_H
#define FR_SPEC_MODEL_HF_HF_TYPE_H

#include "core/document/json.h"
#include "spec/model/model.h"
#include "spec/model/model_traits.h"

/* The defaults of a class that a file may leave out. */
typedef struct fr_hf_defaults {
    int64_t n_layers, hidden, n_heads, ffn_hidden, vocab;
    int64_t n_kv_heads; /* 0: as many as heads */
    int64_t head_dim;   /* 0: hidden / heads */
    int64_t max_seq, sliding_window;
    double norm_eps;
} fr_hf_defaults;

typedef struct fr_hf_type {
    const char *name; /* model_type */
    fr_status (*read)(const fr_json_value *config, fr_model *model,
                      fr_err *err);
    fr_hf_defaults defaults;
} fr_hf_type;

/* The rows of a file. */
extern const fr_hf_type fr_hf_plain_types[], fr_hf_block_types[],
    fr_hf_expert_types[], fr_hf_window_types[], fr_hf_mixed_types[];
extern const size_t fr_n_hf_plain_types, fr_n_hf_block_types,
    fr_n_hf_expert_types, fr_n_hf_window_types, fr_n_hf_mixed_types;

/* ---- what readers share (hf_shared.c) ---- */

/* Is the key there with the value null? */
bool fr_hf_is_null(const fr_json_value *config, const char *key);
/* A size that stays as it is where its key is absent, and is required where it
 * is 0. */
FR_CHECKED fr_status fr_hf_get_size(const fr_json_value *config,
                                    const char *key, int64_t *inout,
                                    fr_err *err);
/* hidden_act and its like. */
FR_CHECKED fr_status fr_hf_get_activation(const fr_json_value *config,
                                          const char *key,
                                          const char *otherwise,
                                          fr_model *model, fr_err *err);
/* `key` has given a number of columns that products of sizes may use. */
FR_CHECKED fr_status fr_hf_check_hidden(const fr_json_value *config,
                                        const char *key, const fr_model *model,
                                        fr_err *err);
/* A switch that must stay off (on), because it is not modelled. */
FR_CHECKED fr_status fr_hf_refuse_unless(const fr_json_value *config,
                                         const char *key, bool expected,
                                         fr_err *err);
/* A size that must have one value, because others are not modelled. */
FR_CHECKED fr_status fr_hf_refuse_but(const fr_json_value *config,
                                      const char *key, int64_t expected,
                                      fr_err *err);
/* head_dim, or hidden / heads. */
FR_CHECKED fr_status fr_hf_derive_head_dim(const fr_json_value *config,
                                           const char *heads_key,
                                           fr_model *model, fr_err *err);
/* The sizes that all but gpt2 name alike. */
FR_CHECKED fr_status fr_hf_read_sizes(const fr_json_value *config,
                                      fr_model *model, fr_err *err);
/* A decoder with the names of llama: gated MLP, RMS norms, rotary positions. */
FR_CHECKED fr_status fr_hf_read_llama_like(const fr_json_value *config,
                                           fr_model *model, fr_err *err);
/* Tied unless the file says otherwise. */
FR_CHECKED fr_status fr_hf_read_tied(const fr_json_value *config,
                                     fr_model *model, fr_err *err);
/* The rotated share of a head. */
FR_CHECKED fr_status fr_hf_read_rotary_share(const fr_json_value *config,
                                             double otherwise, fr_model *model,
                                             fr_err *err);
/* LayerNorm, whose epsilon has a key of its own. */
FR_CHECKED fr_status fr_hf_read_layer_norm(const fr_json_value *config,
                                           const char *key, double otherwise,
                                           fr_model *model, fr_err *err);
/* A trait that a number other than the neutral one brings, or a switch. */
FR_CHECKED fr_status fr_hf_read_number_trait(const fr_json_value *config,
                                             const char *key, double neutral,
                                             fr_model_trait trait,
                                             fr_model *model, fr_err *err);
FR_CHECKED fr_status fr_hf_read_switch_trait(const fr_json_value *config,
                                             const char *key, bool otherwise,
                                             fr_model_trait trait,
                                             fr_model *model, fr_err *err);
/* attention_bias of q, k, v and the output; mlp_bias. */
FR_CHECKED fr_status fr_hf_read_biases(const fr_json_value *config,
                                       fr_model *model, fr_err *err);
/* Multi-head latent attention and the experts of DeepSeek's classes. */
FR_CHECKED fr_status fr_hf_read_deepseek(const fr_json_value *config,
                                         fr_model *model, fr_err *err);
/* Gemma: scaled embedding, tanh GELU, tied. */
FR_CHECKED fr_status fr_hf_read_gemma_like(const fr_json_value *config,
                                           fr_model *model, fr_err *err);
/* sliding_window, where null is none. */
FR_CHECKED fr_status fr_hf_read_window(const fr_json_value *config,
                                       fr_model *model, fr_err *err);

#endif
