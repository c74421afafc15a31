/*
 * rope.h: how fast rotary positions turn (Su et al., arXiv 2104.09864), and how
 * models stretch them to longer sequences than they were first trained on.
 *
 * Pair i of n turns by theta^(-i/n) a position.  A pair that turns r times
 * within the original sequence keeps its frequency f where r is high, has f /
 * factor where it is low, and a mix in between:
 *
 *   linear   f / factor for all
 *   llama3   mixed in proportion to r between low and high (arXiv 2407.21783)
 *   yarn     mixed in proportion to i between the pairs that turn high and low
 *            times; cosines and sines are multiplied (arXiv 2309.00071)
 *   dynamic  theta grows with what the sequence has beyond the original
 */
#ifndef FR_SPEC_MODEL_ROPE_H
#define FR_SPEC_MODEL_ROPE_H

#include "spec/model/model.h"

typedef struct fr_rope {
    const fr_model *model; /* NULL: nothing is rescaled */
    double theta;
    int64_t n_pairs;
    double first, last; /* YARN: pairs between which is mixed */
} fr_rope;

/* `model` may be NULL, and is borrowed; seq: positions of a sequence. */
fr_rope fr_rope_of(const fr_model *model, double theta, int64_t n_pairs,
                   int64_t seq);

/* Returns the frequency of pair i, in radians per position. */
double fr_rope_frequency(const fr_rope *rope, int64_t i);

/* Returns the factor of cosines and sines. */
double fr_rope_magnitude(const fr_rope *rope);

/* YaRN's 0.1 m ln(factor) + 1, for factors above 1. */
double fr_rope_yarn_magnitude(double factor, double m);

/* Returns the factor of attention's scores over heads of so many columns;
 * models stretched as YARN change it too. model NULL: 1 / sqrt(head_dim). */
double fr_rope_score_scale(const fr_model *model, int64_t head_dim);

#endif
