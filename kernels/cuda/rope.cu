/*
 * rope.cu: rotary positions (kernels_rope.c), of q and k in place, or of latent
 * attention, which makes keys and values beside.
 *
 * Bytes moved per element of w bytes: ROPE 2 w of what is turned, LATENT 2 w of
 * keys, values and the queries' turned columns; bound by memory, and by the
 * angles, which are found in double, as positions times frequencies have many
 * digits.
 */
#include "kernels/cuda/kernel_launch.cuh"

extern "C" {
#include "spec/model/rope.h"
}

enum { THREADS = 256, MOST_PAIRS = 128 /* of heads of 256 columns */ };

/* Angles of pairs of columns in rows of a share of sequences: their frequencies
 * are found once, on the host, as models rescale them in many ways. */
struct rope_angles {
    int64_t half, seq;
    float sign;
    fr_sequence_share share;
    double magnitude, frequency[MOST_PAIRS];
};

/* Cosine and sine of a pair in a row. */
struct turn {
    float c, s;
};

FR_DEVICE turn turn_of(const rope_angles &at, int64_t row, int64_t pair)
{
    const int64_t position =
        fr_sequence_position(at.share, at.seq, row % at.seq);
    const double angle = (double)position * at.frequency[pair];
    return {(float)(at.magnitude * cos(angle)),
            at.sign * (float)(at.magnitude * sin(angle))};
}

/* Neighbouring heads of a row, of all rows. */
struct rope_heads {
    int64_t n, stride; /* heads; elements from row to row */
};

/* q and k, which may lie apart. */
struct rope_shape {
    rope_angles angles;
    int64_t rows, width;
    rope_heads q, k;
};

template <int N, class T>
FR_DEVICE void turn_heads(T *x, int64_t n_heads, const rope_shape &at,
                          const turn (&by)[N])
{
    float low[N], high[N];
    for (int64_t head = 0; head < n_heads; head++, x += at.width) {
        load<N>(low, x);
        load<N>(high, x + at.angles.half);
        for (int j = 0; j < N; j++) {
            float a = low[j], b = high[j];
            low[j] = a * by[j].c - b * by[j].s;
            high[j] = b * by[j].c + a * by[j].s;
        }
        store<N>(x, low);
        store<N>(x + at.angles.half, high);
    }
}

/* A thread turns N neighbouring pairs of a row in all heads. */
template <int N, class T> __global__ void rope(rope_shape at, T *q, T *k)
{
    const int64_t packs = at.angles.half / N;
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= at.rows * packs)
        return;
    const int64_t row = i / packs, first = i % packs * N;
    turn by[N];
    for (int j = 0; j < N; j++)
        by[j] = turn_of(at.angles, row, first + j);
    turn_heads<N>(q + row * at.q.stride + first, at.q.n, at, by);
    turn_heads<N>(k + row * at.k.stride + first, at.k.n, at, by);
}

/* FR_INPUT where there are too many pairs. */
static fr_status set_frequencies(const fr_cuda_launch *launch, bool is_scaled,
                                 rope_angles *at, fr_err *err)
{
    const fr_kernel_call *call = &launch->call;
    const fr_rope rope =
        fr_rope_of(is_scaled ? call->model : nullptr, call->instr->scalar,
                   at->half, call->job != nullptr ? call->job->seq : 0);
    if (at->half > MOST_PAIRS)
        return fr_fail(err, FR_INPUT, "%s of more than %d columns of a head",
                       fr_op_name((fr_op)call->instr->op), 2 * MOST_PAIRS);
    at->magnitude = fr_rope_magnitude(&rope);
    for (int64_t i = 0; i < at->half; i++)
        at->frequency[i] = fr_rope_frequency(&rope, i);
    return FR_OK;
}

static fr_status run_rope(const fr_cuda_launch *launch, float sign, fr_err *err)
{
    const fr_kernel_call *call = &launch->call;
    const fr_rope_dims *dim = &call->instr->rope;
    const bool is_apart = call->instr->flags & FR_INSTR_KEYS_APART;
    const int64_t q = dim->q_heads * dim->head_dim,
                  kv = 2 * dim->kv_heads * dim->head_dim;
    const int64_t turned = dim->rotated > 0 ? dim->rotated : dim->head_dim;
    rope_shape at = {{turned / 2, dim->seq, sign, call->share, 1, {}},
                     dim->rows,
                     dim->head_dim,
                     {dim->q_heads, is_apart ? q : q + kv},
                     {dim->kv_heads, is_apart ? kv : q + kv}};
    FR_TRY(set_frequencies(launch, dim->is_scaled != 0, &at.angles, err));
    launch_shape shape = {dim3(1), THREADS, 0, launch->stream};
    bool is_known = with_type(call->instr->dtype, [&](auto t) {
        using T = decltype(t);
        constexpr int N = pack_of<T>();
        T *first = (T *)call->ptr[FR_ROPE_FWD_QKV];
        T *keys = first + (is_apart ? dim->rows * q : q);
        const bool is_pack = is_aligned(first) && is_aligned(keys) &&
                             at.angles.half % N == 0 && at.width % N == 0;
        shape.grid = dim3(
            blocks_of(at.rows * (is_pack ? at.angles.half / N : at.angles.half),
                      THREADS));
        if (is_pack)
            start(shape, rope<N, T>, at, first, keys);
        else
            start(shape, rope<1, T>, at, first, keys);
    });
    return is_known ? launched(launch, err) : refuse_dtype(launch, err);
}

extern "C" fr_status fr_cuda_rope_fwd(const fr_cuda_launch *launch, fr_err *err)
{
    return run_rope(launch, 1.0F, err);
}

extern "C" fr_status fr_cuda_rope_bwd(const fr_cuda_launch *launch, fr_err *err)
{
    return run_rope(launch, -1.0F, err);
}

/* ---- latent attention --------------------------------------------------- */

/* Columns of a head: own ones, then those that are turned, two by two. */
struct latent_shape {
    rope_angles angles;
    int64_t rows, heads, head_dim, own, rotated, v_dim;
};

/* Elements of a row in each operand. */
template <class T> struct latent_row {
    T *q, *up, *shared, *keys, *values;
};

template <class T>
FR_DEVICE latent_row<T> row_of(const latent_shape &at, const latent_row<T> &of,
                               int64_t row)
{
    const int64_t up = at.own + at.v_dim, kv = at.head_dim + at.v_dim;
    T *keys = of.keys + row * at.heads * kv;
    return {of.q + row * at.heads * at.head_dim, of.up + row * at.heads * up,
            of.shared + row * at.rotated, keys, keys + at.heads * at.head_dim};
}

template <class T> FR_DEVICE void turn_pair(T *x, const turn &by)
{
    const float a = to_float(x[0]), b = to_float(x[1]);
    store(&x[0], a * by.c - b * by.s);
    store(&x[1], b * by.c + a * by.s);
}

/* Copies the columns that are not rotated: a head's own key columns, then its
 * values. */
template <bool IS_BACKWARD, class T>
FR_DEVICE void move_plain(const latent_shape &at, const latent_row<T> &row,
                          int64_t h)
{
    const int64_t n = at.own + at.v_dim;
    for (int64_t c = threadIdx.x; c < n; c += THREADS) {
        T *up = row.up + h * n + c;
        T *to = c < at.own ? row.keys + h * at.head_dim + c
                           : row.values + h * at.v_dim + c - at.own;
        if (IS_BACKWARD)
            *up = *to;
        else
            *to = *up;
    }
}

/* A block has a row. */
template <bool IS_BACKWARD, class T>
__global__ void latent(latent_shape at, latent_row<T> of)
{
    const int64_t i = blockIdx.x;
    const latent_row<T> row = row_of(at, of, i);
    for (int64_t h = 0; h < at.heads; h++)
        move_plain<IS_BACKWARD>(at, row, h);
    for (int64_t pair = threadIdx.x; pair < at.angles.half; pair += THREADS) {
        const turn by = turn_of(at.angles, i, pair);
        T *shared = row.shared + 2 * pair;
        float sum[2] = {};
        for (int64_t h = 0; h < at.heads; h++) {
            T *q = row.q + h * at.head_dim + at.own + 2 * pair;
            T *key = row.keys + h * at.head_dim + at.own + 2 * pair;
            turn_pair(q, by);
            for (int j = 0; j < 2; j++) {
                if (IS_BACKWARD)
                    sum[j] += to_float(key[j]);
                else
                    key[j] = shared[j];
            }
            if (!IS_BACKWARD)
                turn_pair(key, by);
        }
        if (IS_BACKWARD) {
            store(&shared[0], sum[0] * by.c - sum[1] * by.s);
            store(&shared[1], sum[1] * by.c + sum[0] * by.s);
        }
    }
}

template <bool IS_BACKWARD>
static fr_status run_latent(const fr_cuda_launch *launch, fr_err *err)
{
    const fr_kernel_call *call = &launch->call;
    const fr_latent_dims *dim = &call->instr->latent;
    const int64_t own = dim->head_dim - dim->rotated;
    latent_shape at = {{dim->rotated / 2,
                        dim->seq,
                        IS_BACKWARD ? -1.0F : 1.0F,
                        call->share,
                        1,
                        {}},
                       dim->rows,
                       dim->heads,
                       dim->head_dim,
                       own,
                       dim->rotated,
                       dim->up_cols - own};
    FR_TRY(set_frequencies(launch, dim->is_scaled != 0, &at.angles, err));
    bool is_known = with_type(call->instr->dtype, [&](auto t) {
        using T = decltype(t);
        void *const *ptr = call->ptr;
        /* The operands of backward are in the same places. */
        const latent_row<T> of = {(T *)ptr[FR_LATENT_FWD_Q],
                                  (T *)ptr[FR_LATENT_FWD_UP],
                                  (T *)ptr[FR_LATENT_FWD_SHARED],
                                  (T *)ptr[FR_LATENT_FWD_KEYS], nullptr};
        start({dim3((unsigned)at.rows), THREADS, 0, launch->stream},
              latent<IS_BACKWARD, T>, at, of);
    });
    return is_known ? launched(launch, err) : refuse_dtype(launch, err);
}

extern "C" fr_status fr_cuda_latent_fwd(const fr_cuda_launch *launch,
                                        fr_err *err)
{
    return run_latent<false>(launch, err);
}

extern "C" fr_status fr_cuda_latent_bwd(const fr_cuda_launch *launch,
                                        fr_err *err)
{
    return run_latent<true>(launch, err);
}
