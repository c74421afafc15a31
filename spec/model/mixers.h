/*
 * mixers.h: what mixes the tokens of a layer: attention of several kinds, state
 * spaces, linear attention, short convolutions.  One table has a row for each.
 *
 * A mixer that is no attention is a product from the stream to `in` columns, a
 * core that works along the sequence, and a product of `inner` columns back to
 * the stream.  Tensor parallel ranks share the columns of both; its units
 * (heads, groups) are split between them.
 */
#ifndef FR_SPEC_MODEL_MIXERS_H
#define FR_SPEC_MODEL_MIXERS_H

#include "spec/model/model.h"

/* Amounts are of a token and of all tensor parallel ranks together. */
typedef struct fr_mixer_sizes {
    int64_t in, inner;
    int64_t split;     /* parameters beside both matrices, split by heads ... */
    int64_t whole;     /* ... and whole on each tensor parallel rank */
    int64_t kept;      /* elements of the core that backward needs, beside its
                          input and output */
    int64_t reduced;   /* elements that tensor parallel ranks add up in the
                          middle */
    int64_t units[2];  /* that tp divides; 0: none */
    double core_flop;  /* of forward */
    double core_moved; /* elements that forward's core reads and writes */
} fr_mixer_sizes;

typedef struct fr_mixer {
    char letter;      /* in fr_model.mixers */
    const char *name; /* "mamba2" */
    bool is_attention, is_windowed;
    bool is_chunked;         /* blocks of the window that see no other */
    bool has_side_attention; /* attention on the same input, outputs added */
    fr_mixer_sizes (*sizes)(const fr_model *model); /* NULL: attention, none */
    const char *refusal; /* what forerun's runtime lacks; NULL: nothing */
} fr_mixer;

/* NULL: no mixer has that letter. */
const fr_mixer *fr_mixer_find(char letter);
/* Never NULL in a checked model. */
const fr_mixer *fr_model_mixer(const fr_model *model, int64_t i_layer);

/* Mean number of keys that a query of `seq` sees in it. */
double fr_mixer_span(const fr_mixer *mixer, const fr_model *model, int64_t seq,
                     bool is_causal);

/* A model of state spaces alone has none. */
bool fr_model_has_attention(const fr_model *model);

/* Heads and groups of mixers that are no attention stay whole, as in
 * Megatron-LM's mixer of Mamba-2: FR_INPUT where tp would cut one. */
FR_CHECKED fr_status fr_mixers_check_tp(const fr_model *model, int64_t tp,
                                        fr_err *err);

#endif
