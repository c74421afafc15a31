/* rope.c: see rope.h; constants as in transformers, modeling_rope_utils.py. */
#include "spec/model/rope.h"

#include <math.h>

static const char *const names[FR_ROPE_N] = {
    [FR_ROPE_LLAMA3] = "llama3",
    [FR_ROPE_YARN] = "yarn",
    [FR_ROPE_DYNAMIC] = "dynamic",
};
const fr_names fr_rope_names = FR_NAMES(names);

static const double turn = 6.283185307179586;

/* The pair that turns `n_turns` times within the original sequence. */
static double pair_of(const fr_rope *rope, double n_turns)
{
    return (double)rope->n_pairs *
           log((double)rope->model->rope_original_seq / (n_turns * turn)) /
           log(rope->theta);
}

static bool is_rescaled(const fr_rope *rope, fr_rope_kind kind)
{
    return rope->model != NULL && rope->model->has_rope_scaling &&
           rope->model->rope_kind == kind;
}

fr_rope fr_rope_of(const fr_model *model, double theta, int64_t n_pairs,
                   int64_t seq)
{
    fr_rope rope = {.model = model, .theta = theta, .n_pairs = n_pairs};

    if (is_rescaled(&rope, FR_ROPE_YARN)) {
        rope.first = fmax(floor(pair_of(&rope, model->rope_high_factor)), 0);
        rope.last = fmin(ceil(pair_of(&rope, model->rope_low_factor)),
                         (double)(2 * n_pairs - 1));
        if (rope.first == rope.last)
            rope.last += 0.001;
    }
    if (is_rescaled(&rope, FR_ROPE_DYNAMIC) && seq > model->rope_original_seq) {
        const double n = (double)n_pairs, factor = model->rope_factor;
        const double longer = (double)seq / (double)model->rope_original_seq;
        rope.theta *= pow(factor * longer - (factor - 1), n / (n - 1));
    }
    return rope;
}

/* Returns the share of its own frequency f that pair i keeps. */
static double kept(const fr_rope *rope, double i, double f)
{
    const fr_model *model = rope->model;
    double share;

    if (model->rope_kind == FR_ROPE_YARN) {
        share = 1 - (i - rope->first) / (rope->last - rope->first);
    } else {
        const double ratio = (double)model->rope_original_seq / (turn / f);
        share = (ratio - model->rope_low_factor) /
                (model->rope_high_factor - model->rope_low_factor);
    }
    return share < 0 ? 0 : share > 1 ? 1 : share;
}

double fr_rope_frequency(const fr_rope *rope, int64_t i)
{
    const double f = pow(rope->theta, -(double)i / (double)rope->n_pairs);

    if (rope->model == NULL || is_rescaled(rope, FR_ROPE_DYNAMIC))
        return f;
    const double share = kept(rope, (double)i, f);
    return f * (share + (1 - share) / rope->model->rope_factor);
}

double fr_rope_magnitude(const fr_rope *rope)
{
    const double magnitude =
        rope->model != NULL ? rope->model->rope_attention_factor : 0;
    return magnitude > 0 ? magnitude : 1;
}

double fr_rope_yarn_magnitude(double factor, double m)
{
    return factor > 1 ? 0.1 * m * log(factor) + 1 : 1;
}

double fr_rope_score_scale(const fr_model *model, int64_t head_dim)
{
    const double factor = model != NULL ? model->score_factor : 0;
    return (factor > 0 ? factor : 1.0) / sqrt((double)head_dim);
}
