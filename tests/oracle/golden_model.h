/*
 * golden_model.h: golden numbers of two tiny models from PyTorch (float64),
 * made by make_torch_golden.py and committed as torch_golden.h; the tests
 * need no PyTorch.
 *
 * How to use them: fill the weight of the tensor named golden_tensor.name
 * (the names that lowering gives, see fr_tensor.name) with golden_weight() at
 * its global row and column, the tokens with golden_token(), and compare
 * losses and gradients.  Biases and norms have one row.  Loss is the mean
 * over all batch * seq targets.  The loss curve continues with AdamW steps
 * (learning rate etc. in golden_model; weight decay on tensors with more than
 * one row; gradients clipped to clip_norm); losses[0] is before any step.
 */
#ifndef FR_TESTS_GOLDEN_MODEL_H
#define FR_TESTS_GOLDEN_MODEL_H

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { GOLDEN_SAMPLES = 6, GOLDEN_STEPS = 5 };

typedef struct golden_sample {
    int row, col;
    double gradient;
} golden_sample;

typedef struct golden_tensor {
    const char *name;
    int rows, cols;
    double base, amplitude, phase; /* of the weights */
    double gradient_norm;
    golden_sample samples[GOLDEN_SAMPLES];
} golden_tensor;

typedef struct golden_model {
    const char *name;
    int batch, seq, n_layers, hidden, n_heads, n_kv_heads, head_dim;
    int ffn_hidden, vocab, max_seq;
    int is_llama; /* RMSNorm, RoPE, SwiGLU, no biases, untied; else GPT-2 */
    double norm_eps, rope_theta;
    double lr, beta1, beta2, optimizer_eps, weight_decay, clip_norm;
    double gradient_norm; /* of all tensors, first step, before clipping */
    double losses[GOLDEN_STEPS];
    int n_tensors;
    const golden_tensor *tensors;
} golden_model;

/* One weight over n steps of SGD or AdamW. */
typedef struct golden_weight_path {
    double w0, lr, beta1, beta2, eps, weight_decay;
    int n_steps;
    double gradients[8];
    double w_sgd, w_adamw; /* after the last step */
} golden_weight_path;

static inline float golden_weight(const golden_tensor *tensor, int64_t row,
                                  int64_t col)
{
    double angle = tensor->phase + 1.61803398875 * (double)row +
                   2.39996322973 * (double)col +
                   0.0137 * (double)(row * row + 3 * col * col);
    return (float)(tensor->base + tensor->amplitude * sin(angle));
}

/* Token i of the flat batch (sequence by sequence, seq + 1 tokens each: the
 * targets are the tokens one further on). */
static inline int32_t golden_token(const golden_model *model, int64_t i)
{
    return (int32_t)((7 * i * i + 3 * i + 11) % model->vocab);
}

#include "tests/oracle/torch_golden.h"

static inline const golden_tensor *golden_find(const golden_model *model,
                                               const char *name)
{
    for (int i = 0; i < model->n_tensors; i++)
        if (strcmp(model->tensors[i].name, name) == 0)
            return &model->tensors[i];
    return NULL;
}

#endif
