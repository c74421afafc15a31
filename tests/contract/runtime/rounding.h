/*
 * rounding.h: how far layouts of one training in 16 bits may be apart.
 *
 * Layouts add in other orders, which in 16 bits turns some roundings the other
 * way: an error of half a unit of 8 bits (2^-9) each, independent of the
 * others, so n of them come to sqrt(n) 2^-9 of what they are in, and three
 * standard deviations are allowed.  On the way of a gradient through a layer
 * there are ten roundings forward and ten backward (norm, product, attention,
 * product, sum, norm, product, activation, product, sum), and six at the ends.
 * A loss has those of forward, and is the mean of tokens with errors of their
 * own.
 */
#ifndef FR_TESTS_ROUNDING_H
#define FR_TESTS_ROUNDING_H

#include <math.h>

/* A share of the largest gradient. */
static inline double rounding_of_gradients(double n_layers)
{
    return 3.0 * sqrt(20.0 * n_layers + 6.0) * 0x1p-9;
}

/* The error of gradients that are rounded after each sum: one for each token in
 * embeddings, one for each micro-batch and rank elsewhere. */
static inline double rounding_of_sums(double n_tokens)
{
    return 3.0 * sqrt(n_tokens) * 0x1p-9;
}

static inline double rounding_of_loss(double n_layers, double n_tokens)
{
    return 3.0 * sqrt(10.0 * n_layers + 3.0) * 0x1p-9 / sqrt(n_tokens);
}

#endif
