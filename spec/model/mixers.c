/*
 * mixers.c: see mixers.h.
 *
 * Elements that a core moves are those of fused kernels as they are in common
 * use (mamba_ssm, flash-linear-attention); a float32 state counts twice.
 */
#include "spec/model/mixers.h"

/* Mamba (Gu and Dao 2023, arXiv 2312.00752): inner channels i, state N, rank R
 * of the step; the products from i to R + 2 N and from R to i belong to the
 * core.  Jamba (2403.19887) norms step, B and C. */
static fr_mixer_sizes mamba_sizes(const fr_model *m)
{
    const int64_t i = m->mix_heads * m->mix_head_dim, n = m->mix_state;
    const int64_t r = m->mix_rank, c = m->mix_conv;
    const int64_t middle = r + 2 * n;
    return (fr_mixer_sizes){
        .in = 2 * i,
        .inner = i,
        .split = i * (c + 1) + i * middle + r * i + i + i * n + i,
        .whole = m->has_mix_norm ? middle : 0,
        .kept = middle,
        .reduced = middle,
        .units = {i, 0},
        .core_flop = 2.0 * (double)(i * middle + r * i) +
                     (double)(2 * c * i + 9 * i * n),
        .core_moved = (double)(2 * i + 4 * i + 2 * n + 2 * middle + 2 * i)};
}

/* Mamba-2's state space duality (Dao and Gu 2024, arXiv 2405.21060): H heads of
 * P columns, B and C of N columns for each of G groups, chunks of Q tokens. */
static fr_mixer_sizes mamba2_sizes(const fr_model *m)
{
    const int64_t h = m->mix_heads, p = m->mix_head_dim, g = m->mix_groups;
    const int64_t n = m->mix_state, q = m->mix_chunk, c = m->mix_conv;
    const int64_t d = h * p, conv = d + 2 * g * n;
    return (fr_mixer_sizes){
        .in = d + conv + h,
        .inner = d,
        .split = conv * (c + 1) + 3 * h + (m->has_mix_norm ? d : 0),
        .units = {h, g},
        .core_flop = (double)(2 * c * conv) +
                     2.0 * (double)q * (double)(g * n + h * p) +
                     4.0 * (double)(h * n * p),
        .core_moved = (double)(2 * conv + d + conv + h + 3 * d) +
                      4.0 * (double)(h * p * n) / (double)(q > 0 ? q : 1)};
}

/* Gated DeltaNet (Yang et al. 2024, arXiv 2412.06464): groups are the heads of
 * keys; mix_state is their width. */
static fr_mixer_sizes delta_sizes(const fr_model *m)
{
    const int64_t n = m->mix_heads, dv = m->mix_head_dim, dk = m->mix_state;
    const int64_t a = m->mix_groups * dk, b = n * dv, c = m->mix_conv;
    const int64_t q = m->mix_chunk > 0 ? m->mix_chunk : 1;
    return (fr_mixer_sizes){
        .in = 2 * a + 2 * b + 2 * n,
        .inner = b,
        .split = c * (2 * a + b) + 2 * n,
        .whole = dv,
        .kept = 2 * a + b,
        .units = {n, m->mix_groups},
        .core_flop = (double)(2 * c * (2 * a + b)) +
                     (double)n * (double)(q * (6 * dk + 4 * dv) + 6 * dk * dv),
        .core_moved = (double)(2 * (2 * a + b) + 2 * a + 2 * b + 2 * n +
                               2 * n * (dk + dv) + 3 * b) +
                      4.0 * (double)(n * dk * dv) / (double)q};
}

/* Lightning attention (Qin et al. 2024, arXiv 2405.17381; MiniMax-01,
 * 2501.08313), with a gate and a norm over all heads of its output. */
static fr_mixer_sizes lightning_sizes(const fr_model *m)
{
    enum { BLOCK = 256 };
    const int64_t d = m->head_dim, nd = m->n_heads * d;
    return (fr_mixer_sizes){
        .in = 4 * nd,
        .inner = nd,
        .split = nd,
        .reduced = 1,
        .units = {m->n_heads, 0},
        .core_flop = (double)m->n_heads *
                     (2.0 * BLOCK * (double)d + 4.0 * (double)(d * d)),
        .core_moved = (double)(7 * nd) + 4.0 * (double)(nd * d) / BLOCK};
}

/* LFM2's gated short convolution (arXiv 2511.23404). */
static fr_mixer_sizes convolution_sizes(const fr_model *m)
{
    const int64_t h = m->hidden, c = m->mix_conv;
    return (fr_mixer_sizes){.in = 3 * h,
                            .inner = h,
                            .split = c * h,
                            .kept = 2 * h,
                            .units = {h, 0},
                            .core_flop = (double)(2 * c * h + 2 * h),
                            .core_moved = (double)(4 * h)};
}

static const fr_mixer mixers[] = {
    {'a', "attention", .is_attention = true},
    {'w', "window", .is_attention = true, .is_windowed = true,
     .refusal = "windows of attention in some layers only"},
    {'c', "chunk", .is_attention = true, .is_windowed = true,
     .is_chunked = true, .refusal = "attention within chunks"},
    {'s', "mamba", .sizes = mamba_sizes, .refusal = "Mamba layers"},
    {'m', "mamba2", .sizes = mamba2_sizes, .refusal = "Mamba-2 layers"},
    {'h', "attention_mamba2", .is_attention = true, .has_side_attention = true,
     .sizes = mamba2_sizes, .refusal = "Mamba-2 next to attention"},
    {'d', "delta", .sizes = delta_sizes, .refusal = "gated DeltaNet layers"},
    {'l', "lightning", .sizes = lightning_sizes,
     .refusal = "lightning attention"},
    {'k', "convolution", .sizes = convolution_sizes,
     .refusal = "short convolutions"},
    {'-', "none", .refusal = "layers of an MLP alone"},
};

const fr_mixer *fr_mixer_find(char letter)
{
    for (int i = 0; i < (int)FR_LENGTH(mixers); i++)
        if (mixers[i].letter == letter)
            return &mixers[i];
    return NULL;
}

const fr_mixer *fr_model_mixer(const fr_model *model, int64_t i_layer)
{
    const bool is_marked = model->mixers[0] != '\0' && i_layer >= 0 &&
                           i_layer < FR_MODEL_MOST_MARKS;
    const fr_mixer *mixer =
        is_marked ? fr_mixer_find(model->mixers[i_layer]) : &mixers[0];
    return mixer != NULL ? mixer : &mixers[0];
}

/* A chunk of C tokens is a triangle of its own; the last may be shorter. */
static double chunk_span(double chunk, double s)
{
    const double n_whole = (double)(int64_t)(s / chunk);
    const double rest = s - n_whole * chunk;
    return (n_whole * chunk * chunk + rest * rest) / (2.0 * s);
}

double fr_mixer_span(const fr_mixer *mixer, const fr_model *model, int64_t seq,
                     bool is_causal)
{
    const double s = (double)seq, window = (double)model->sliding_window;
    const bool has_window = model->mixers[0] == '\0' || mixer->is_windowed;
    if (!has_window || model->sliding_window == 0 ||
        model->sliding_window >= seq)
        return is_causal ? s / 2.0 : s;
    if (mixer->is_chunked)
        return chunk_span(window, s) * (is_causal ? 1.0 : 2.0);
    return is_causal ? window - window * window / (2.0 * s) : window;
}

bool fr_model_has_attention(const fr_model *model)
{
    if (model->mixers[0] == '\0')
        return true;
    for (int64_t i = 0; i < model->n_layers; i++)
        if (fr_model_mixer(model, i)->is_attention)
            return true;
    return false;
}

fr_status fr_mixers_check_tp(const fr_model *model, int64_t tp, fr_err *err)
{
    for (int64_t i = 0; model->mixers[0] != '\0' && i < model->n_layers; i++) {
        const fr_mixer *mixer = fr_model_mixer(model, i);
        if (mixer->sizes == NULL)
            continue;
        const fr_mixer_sizes sizes = mixer->sizes(model);
        for (int k = 0; k < 2; k++)
            if (sizes.units[k] % tp != 0)
                return fr_fail(err, FR_INPUT,
                               "%s: %lld heads or groups of layer %lld are not "
                               "a multiple of tp %lld; choose a smaller tp",
                               mixer->name, (long long)sizes.units[k],
                               (long long)i, (long long)tp);
    }
    return FR_OK;
}
