/* small_model.c: a plain decoder for tests that need some model. */
#include "tests/unit/small_model.h"

#include <stdio.h>

void small_model(fr_model *out, int64_t n_layers, int64_t n_heads,
                 int64_t head_dim, int64_t vocab, int64_t max_seq)
{
    fr_model_init(out);
    snprintf(out->name, sizeof out->name, "small");
    out->n_layers = n_layers;
    out->n_heads = out->n_kv_heads = n_heads;
    out->head_dim = head_dim;
    out->hidden = n_heads * head_dim;
    out->ffn_hidden = 4 * out->hidden;
    out->vocab = vocab;
    out->max_seq = max_seq;
}
