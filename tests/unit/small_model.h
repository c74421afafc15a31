/*
 * small_model.h: a plain decoder for tests that need some model.
 */
#ifndef FR_TESTS_SMALL_MODEL_H
#define FR_TESTS_SMALL_MODEL_H

#include "spec/model/model.h"

/* The defaults of fr_model_init(), hidden = n_heads x head_dim, an MLP four
 * times as wide. */
void small_model(fr_model *out, int64_t n_layers, int64_t n_heads,
                 int64_t head_dim, int64_t vocab, int64_t max_seq);

#endif
