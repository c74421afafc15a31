/*
 * first.cu: the first token of each sequence, what is to be told of a sequence,
 * and images as sequences of patches (kernels_first.c).
 *
 * Bytes moved: the rows that are named, once; PATCHES is bound by the numbers
 * that it draws.
 */
#include "kernels/cuda/kernel_launch.cuh"

enum { THREADS = 256 };

/* Rows of sequences as an operand has them. */
struct first_shape {
    fr_first_rows_dims dim;
    int64_t first; /* row of the operand among the rank's */
    bool is_later; /* the first ones are another context parallel rank's */
};

static first_shape shape_of(const fr_kernel_call *call)
{
    const fr_first_rows_dims *dim = &call->instr->first_rows;
    const bool is_part = dim->rows < dim->batch * dim->seq;
    return {*dim, is_part ? call->tp_coordinate * dim->rows : 0,
            call->share.i > 0};
}

/* The row that sequence i begins with; -1: another rank's. */
FR_DEVICE int64_t row_of(const first_shape &at, int64_t i)
{
    const int64_t row = i * at.dim.seq - at.first;
    return !at.is_later && row >= 0 && row < at.dim.rows ? row : -1;
}

template <class T>
__global__ void take_first(first_shape at, const T *src, T *dst)
{
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= at.dim.batch * at.dim.cols)
        return;
    const int64_t row = row_of(at, i / at.dim.cols);
    store(&dst[i],
          row >= 0 ? to_float(src[row * at.dim.cols + i % at.dim.cols]) : 0.0F);
}

template <class T> __global__ void add_first(first_shape at, const T *dy, T *dx)
{
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= at.dim.batch * at.dim.cols)
        return;
    const int64_t row = row_of(at, i / at.dim.cols);
    if (row < 0)
        return;
    T *to = &dx[row * at.dim.cols + i % at.dim.cols];
    store(to, to_float(*to) + to_float(dy[i]));
}

static launch_shape threads_for(const fr_cuda_launch *launch, int64_t n)
{
    return {dim3(blocks_of(n, THREADS)), THREADS, 0, launch->stream};
}

extern "C" fr_status fr_cuda_first_rows_fwd(const fr_cuda_launch *launch,
                                            fr_err *err)
{
    const first_shape at = shape_of(&launch->call);
    void *const *ptr = launch->call.ptr;
    bool is_known = with_type(launch->call.instr->dtype, [&](auto t) {
        using T = decltype(t);
        start(threads_for(launch, at.dim.batch * at.dim.cols), take_first<T>,
              at, (const T *)ptr[FR_FIRST_ROWS_FWD_SRC],
              (T *)ptr[FR_FIRST_ROWS_FWD_DST]);
    });
    return is_known ? launched(launch, err) : refuse_dtype(launch, err);
}

extern "C" fr_status fr_cuda_first_rows_bwd(const fr_cuda_launch *launch,
                                            fr_err *err)
{
    const first_shape at = shape_of(&launch->call);
    void *const *ptr = launch->call.ptr;
    bool is_known = with_type(launch->call.instr->dtype, [&](auto t) {
        using T = decltype(t);
        start(threads_for(launch, at.dim.batch * at.dim.cols), add_first<T>, at,
              (const T *)ptr[FR_FIRST_ROWS_BWD_DY],
              (T *)ptr[FR_FIRST_ROWS_BWD_DX]);
    });
    return is_known ? launched(launch, err) : refuse_dtype(launch, err);
}

/* ---- labels and images -------------------------------------------------- */

/* The source of samples; the step is read where the kernel runs. */
struct sample_source {
    const fr_cuda_step *step;
    uint64_t seed;
    int64_t first, n_labels; /* first: sample of the global batch */
};

static sample_source source_of(const fr_cuda_launch *launch, int64_t n_labels)
{
    const fr_kernel_call *call = &launch->call;
    return {launch->step, call->job->seed, call->first_sequence, n_labels};
}

/* fr_sample_label(). */
FR_DEVICE int32_t label_of(const sample_source &of, int64_t i)
{
    const double x = hash_unit(hash_u64(of.seed, (uint64_t)of.step->i_step,
                                        (uint64_t)(of.first + i), 0));
    return (int32_t)(x * (double)of.n_labels);
}

/* Only the rank with the first token writes labels; a row without a target
 * counts nothing. */
__global__ void write_labels(sample_source of, int64_t n, bool is_later,
                             int32_t *tokens)
{
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= n)
        return;
    tokens[i] = 0;
    tokens[n + i] = is_later ? -1 : label_of(of, i);
}

extern "C" fr_status fr_cuda_labels(const fr_cuda_launch *launch, fr_err *err)
{
    const fr_labels_dims *dim = &launch->call.instr->labels;
    start(threads_for(launch, dim->n), write_labels,
          source_of(launch, dim->n_labels), dim->n, launch->call.share.i > 0,
          (int32_t *)launch->call.ptr[FR_LABELS_TOKENS]);
    return launched(launch, err);
}

/* A class has a picture of its own, a sample as much noise. */
template <class T>
__global__ void draw_patches(sample_source of, fr_first_rows_dims dim,
                             fr_sequence_share share, T *out)
{
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= dim.rows * dim.cols)
        return;
    const int64_t row = i / dim.cols, b = row / dim.seq;
    const int64_t t = fr_sequence_position(share, dim.seq, row % dim.seq);
    const uint64_t pixel = (uint64_t)(t * dim.cols + i % dim.cols);
    if (t == 0) {
        store(&out[i], 0.0F);
        return;
    }
    const uint64_t label = (uint64_t)label_of(of, b);
    const double own = hash_unit(hash_u64(of.seed, label, UINT64_MAX, pixel));
    const double noise = hash_unit(hash_u64(of.seed, (uint64_t)of.step->i_step,
                                            (uint64_t)(of.first + b), pixel));
    store(&out[i], (float)(own + noise - 1.0));
}

extern "C" fr_status fr_cuda_patches(const fr_cuda_launch *launch, fr_err *err)
{
    const fr_kernel_call *call = &launch->call;
    const fr_first_rows_dims dim = call->instr->first_rows;
    bool is_known = with_type(call->instr->dtype, [&](auto t) {
        using T = decltype(t);
        start(threads_for(launch, dim.rows * dim.cols), draw_patches<T>,
              source_of(launch, call->model->n_labels), dim, call->share,
              (T *)call->ptr[FR_PATCHES_OUT]);
    });
    return is_known ? launched(launch, err) : refuse_dtype(launch, err);
}

/* ---- positions of patches ----------------------------------------------- */

template <class T>
__global__ void embed_patches(fr_first_rows_dims dim, fr_sequence_share share,
                              T *sum, const T *wpe, const T *first)
{
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= dim.rows * dim.cols)
        return;
    const int64_t c = i % dim.cols;
    const int64_t t =
        fr_sequence_position(share, dim.seq, i / dim.cols % dim.seq);
    store(&sum[i], to_float(t == 0 ? first[c] : sum[i]) +
                       to_float(wpe[t * dim.cols + c]));
}

extern "C" fr_status fr_cuda_patch_embed_fwd(const fr_cuda_launch *launch,
                                             fr_err *err)
{
    const fr_first_rows_dims dim = launch->call.instr->first_rows;
    void *const *ptr = launch->call.ptr;
    bool is_known = with_type(launch->call.instr->dtype, [&](auto t) {
        using T = decltype(t);
        start(threads_for(launch, dim.rows * dim.cols), embed_patches<T>, dim,
              launch->call.share, (T *)ptr[FR_PATCH_EMBED_FWD_SUM],
              (const T *)ptr[FR_PATCH_EMBED_FWD_WPE],
              (const T *)ptr[FR_PATCH_EMBED_FWD_FIRST]);
    });
    return is_known ? launched(launch, err) : refuse_dtype(launch, err);
}

/* A thread has a column of a place in all sequences: every sum runs in the
 * order of the rows. */
template <class T, class G>
__global__ void embed_patches_grad(fr_first_rows_dims dim,
                                   fr_sequence_share share, T *dy, G *dwpe,
                                   G *dfirst)
{
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    const int64_t per_sequence = dim.seq * dim.cols;
    if (i >= per_sequence)
        return;
    const int64_t c = i % dim.cols;
    const int64_t t = fr_sequence_position(share, dim.seq, i / dim.cols);
    float sum = 0;
    for (int64_t at = i; at < dim.rows * dim.cols; at += per_sequence) {
        sum += to_float(dy[at]);
        if (t == 0)
            store(&dy[at], 0.0F);
    }
    G *place = &dwpe[t * dim.cols + c];
    store(place, to_float(*place) + sum);
    if (t == 0)
        store(&dfirst[c], to_float(dfirst[c]) + sum);
}

extern "C" fr_status fr_cuda_patch_embed_bwd(const fr_cuda_launch *launch,
                                             fr_err *err)
{
    const fr_first_rows_dims dim = launch->call.instr->first_rows;
    void *const *ptr = launch->call.ptr;
    bool is_known = with_types(launch->call.instr, [&](auto t, auto g) {
        using T = decltype(t);
        using G = decltype(g);
        start(threads_for(launch, dim.seq * dim.cols), embed_patches_grad<T, G>,
              dim, launch->call.share, (T *)ptr[FR_PATCH_EMBED_BWD_DY],
              (G *)ptr[FR_PATCH_EMBED_BWD_DWPE],
              (G *)ptr[FR_PATCH_EMBED_BWD_DFIRST]);
    });
    return is_known ? launched(launch, err) : refuse_dtype(launch, err);
}
