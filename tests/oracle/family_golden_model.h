/*
 * family_golden_model.h: golden numbers of tiny models of many families from
 * PyTorch (float64), made by make_family_golden.py and committed as
 * family_golden.h and, of models that read images alone, image_golden.h; the
 * tests need no PyTorch.
 *
 * How to use them: load `config`, a Hugging Face file, train it for
 * FAMILY_STEPS steps on one sequence of FAMILY_SEQ tokens.  Weights:
 * family_weight() of the tensor's name at its global row and column; tokens:
 * family_token(), the targets are the tokens one further on.  AdamW as below,
 * decay on tensors with more than one row, nothing clipped; losses[0] is
 * before any step.
 */
#ifndef FR_TESTS_FAMILY_GOLDEN_MODEL_H
#define FR_TESTS_FAMILY_GOLDEN_MODEL_H

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { FAMILY_SAMPLES = 3, FAMILY_STEPS = 4, FAMILY_SEQ = 24 };

#define FAMILY_LR 0.0031
#define FAMILY_BETA1 0.87
#define FAMILY_BETA2 0.963
#define FAMILY_EPS 1.3e-7
#define FAMILY_DECAY 0.071

typedef struct family_sample {
    int row, col;
    double gradient;
} family_sample;

typedef struct family_tensor {
    const char *name;
    int rows, cols;
    double base, amplitude, phase; /* of the weights */
    double gradient_norm;          /* of the first step */
    family_sample samples[FAMILY_SAMPLES];
} family_tensor;

typedef struct family_golden {
    const char *name, *config;
    double losses[FAMILY_STEPS];
    int n_tensors;
    const family_tensor *tensors;
} family_golden;

static inline float family_weight(const family_tensor *tensor, int64_t row,
                                  int64_t col)
{
    double angle = tensor->phase + 1.61803398875 * (double)row +
                   2.39996322973 * (double)col +
                   0.0137 * (double)(row * row + 3 * col * col);
    return (float)(tensor->base + tensor->amplitude * sin(angle));
}

static inline int32_t family_token(int64_t i, int64_t vocab)
{
    return (int32_t)((7 * i * i + 3 * i + 11) % vocab);
}

#include "tests/oracle/family_golden.h"
#include "tests/oracle/image_golden.h"

static inline const family_tensor *family_find(const family_golden *family,
                                               const char *name)
{
    for (int i = 0; i < family->n_tensors; i++)
        if (strcmp(family->tensors[i].name, name) == 0)
            return &family->tensors[i];
    return NULL;
}

#endif
