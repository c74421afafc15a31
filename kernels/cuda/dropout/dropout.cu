/*
 * dropout.cu: sums of which elements of one side are dropped, and the gradient
 * (kernels_dropout.c).
 *
 * A thread draws four words at a time for as many neighbouring elements.
 * Bytes moved per element of w bytes: DROPOUT_ADD 3 w + 1, DROPOUT_BWD 2 w + 1;
 * bound by memory, or by the ten rounds of the generator.
 */
#include "kernels/cuda/dropout/dropout.cuh"

enum { THREADS = 256 };

/* The position of the rows of an operand in training. */
struct drop_rows {
    drop_place place;
    int64_t rows, cols;
    int64_t first, len; /* row of the micro-batch; rows of a sequence */
    uint32_t first_sequence;
    fr_sequence_share share;
};

static drop_rows rows_of(const fr_cuda_launch *launch)
{
    const fr_kernel_call *call = &launch->call;
    const fr_matrix_dims *dim = &call->instr->matrix;
    const fr_plan *plan = call->plan;
    const int64_t len = fr_sequence_share_len(call->share, call->job->seq);
    int64_t first = call->first_row;
    /* Sequence parallel ranks have a part of the rows each. */
    if (plan->is_sequence_parallel && plan->tp > 1)
        first += call->tp_coordinate * (plan->micro_batch * len / plan->tp);
    return {drop_place_of(launch, call->instr->place, call->dropout),
            dim->rows,
            dim->cols,
            first,
            len,
            (uint32_t)call->first_sequence,
            call->share};
}

template <class T> struct drop_operands {
    const T *a, *b, *bias, *bias2; /* but for a may be null */
    T *out;
    uint8_t *mask;
};

/* Four elements, of which `n` are there; packed: all are, on 4-byte words of
 * the mask. */
template <bool IS_PACKED, class T>
FR_DEVICE void load_four(float (&out)[4], const T *x, int n)
{
    if constexpr (IS_PACKED) {
        load<4>(out, x);
    } else {
        for (int j = 0; j < n; j++)
            out[j] = to_float(x[j]);
    }
}

template <bool IS_PACKED, class T>
__global__ void drop_add(drop_rows at, drop_operands<T> of)
{
    const int64_t groups = (at.cols + 3) / 4;
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= at.rows * groups)
        return;
    const int64_t row = i / groups, c = i % groups * 4;
    const int64_t in = at.first + row, from = row * at.cols + c;
    const int n = at.cols - c < 4 ? (int)(at.cols - c) : 4;
    const uint4 words = drop_words(
        at.place, (uint32_t)(c / 4),
        (uint32_t)fr_sequence_position(at.share, at.len, in % at.len),
        at.first_sequence + (uint32_t)(in / at.len));
    float x[4] = {}, y[4] = {}, z[4] = {}, z2[4] = {};
    load_four<IS_PACKED>(x, of.a + from, n);
    if (of.b)
        load_four<IS_PACKED>(y, of.b + from, n);
    if (of.bias)
        load_four<IS_PACKED>(z, of.bias + c, n);
    if (of.bias2)
        load_four<IS_PACKED>(z2, of.bias2 + c, n);
    for (int j = 0; j < n; j++) {
        const float factor = drop_factor(at.place, words, j);
        of.mask[from + j] = factor != 0.0F;
        store(&of.out[from + j], (x[j] + z[j] + z2[j]) * factor + y[j]);
    }
}

/* Whether rows of `cols` elements begin on 16 bytes. */
static bool is_packed(const fr_kernel_call *call, int64_t cols)
{
    for (int i = 0; i < FR_DROPOUT_ADD_N_REFS; i++)
        if (!is_aligned(call->ptr[i]))
            return false;
    return cols % 8 == 0;
}

extern "C" fr_status fr_cuda_dropout_add(const fr_cuda_launch *launch,
                                         fr_err *err)
{
    const fr_kernel_call *call = &launch->call;
    const drop_rows at = rows_of(launch);
    const launch_shape shape = {
        dim3(blocks_of(at.rows * ((at.cols + 3) / 4), THREADS)), THREADS, 0,
        launch->stream};
    bool is_known = with_type(call->instr->dtype, [&](auto t) {
        using T = decltype(t);
        const drop_operands<T> of = {(const T *)call->ptr[FR_DROPOUT_ADD_A],
                                     (const T *)call->ptr[FR_DROPOUT_ADD_B],
                                     (const T *)call->ptr[FR_DROPOUT_ADD_BIAS],
                                     (const T *)call->ptr[FR_DROPOUT_ADD_BIAS2],
                                     (T *)call->ptr[FR_DROPOUT_ADD_OUT],
                                     (uint8_t *)call->ptr[FR_DROPOUT_ADD_MASK]};
        if (is_packed(call, at.cols))
            start(shape, drop_add<true, T>, at, of);
        else
            start(shape, drop_add<false, T>, at, of);
    });
    return is_known ? launched(launch, err) : refuse_dtype(launch, err);
}

template <class T>
__global__ void drop_grad(const T *dy, const uint8_t *mask, T *dx, int64_t n,
                          float scale)
{
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i < n)
        store(&dx[i], mask[i] ? to_float(dy[i]) * scale : 0.0F);
}

extern "C" fr_status fr_cuda_dropout_bwd(const fr_cuda_launch *launch,
                                         fr_err *err)
{
    const fr_kernel_call *call = &launch->call;
    const int64_t n = call->instr->matrix.rows * call->instr->matrix.cols;
    const float scale = (float)(1.0 / (1.0 - call->job->dropout));
    bool is_known = with_type(call->instr->dtype, [&](auto t) {
        using T = decltype(t);
        start({dim3(blocks_of(n, THREADS)), THREADS, 0, launch->stream},
              drop_grad<T>, (const T *)call->ptr[FR_DROPOUT_BWD_DY],
              (const uint8_t *)call->ptr[FR_DROPOUT_BWD_MASK],
              (T *)call->ptr[FR_DROPOUT_BWD_DX], n, scale);
    });
    return is_known ? launched(launch, err) : refuse_dtype(launch, err);
}
