/*
 * hf_marks.h: layers that differ, as Hugging Face's config.json lists them:
 * layer_types, or a period that the class has.
 */
#ifndef FR_SPEC_MODEL_HF_HF_MARKS_H
#define FR_SPEC_MODEL_HF_HF_MARKS_H

#include "core/document/json.h"
#include "spec/model/model.h"

/* A word of layer_types, and the letter of the mixer that it stands for. */
typedef struct fr_hf_mark {
    const char *word;
    char letter;
} fr_hf_mark;

/* Marks every layer by the words of the list `key`, which may be absent (*out
 * false). */
FR_CHECKED fr_status fr_hf_read_marks(const fr_json_value *config,
                                      const char *key, const fr_hf_mark *marks,
                                      size_t n_marks, fr_model *model,
                                      bool *out, fr_err *err);

/* Marks layers `most`, and each layer i with i % period == offset `other`. */
FR_CHECKED fr_status fr_hf_mark_period(const fr_json_value *config,
                                       int64_t period, int64_t offset,
                                       char most, char other, fr_model *model,
                                       fr_err *err);

/* Marks what follows the mixer of all layers. */
FR_CHECKED fr_status fr_hf_mark_mlps(const fr_json_value *config, char mlp,
                                     fr_model *model, fr_err *err);

/* layer_types may be there, and says `only` of all layers. */
FR_CHECKED fr_status fr_hf_refuse_other_layers(const fr_json_value *config,
                                               const char *only, fr_err *err);

/* Windows in all layers but each `period`-th, or as the file lists them.  After
 * sliding_window, without which there are none. */
FR_CHECKED fr_status fr_hf_read_windows(const fr_json_value *config,
                                        int64_t period, fr_model *model,
                                        fr_err *err);
/* Llama 4's chunks of attention_chunk_size in layers with rotary positions. */
FR_CHECKED fr_status fr_hf_read_chunks(const fr_json_value *config,
                                       fr_model *model, fr_err *err);

/* One MLP as wide as n_shared experts. */
FR_CHECKED fr_status fr_hf_set_shared(const fr_json_value *config,
                                      int64_t n_shared, fr_model *model,
                                      fr_err *err);

#endif
