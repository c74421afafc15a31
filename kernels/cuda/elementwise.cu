/*
 * elementwise.cu: kernels that touch each element once: activations
 * (kernels_activation.c has the formulas), sums, casts, clearing, copying.
 *
 * Bytes moved per element of w bytes (what bounds them): GELU 2 w, its
 * gradient 3 w, SwiGLU 3 w, its gradient 5 w, RESIDUAL_ADD 3 w, ADD 3 w, CAST
 * the two widths.  Each thread moves 16 bytes of every operand at a time.
 *
 * Kernels of 16-bit operands take the hardware's exponential and reciprocal:
 * with the library's they would be bound by arithmetic.
 */
#include "kernels/cuda/kernel_launch.cuh"
#include "kernels/cuda/ptx.cuh"

enum { THREADS = 256, PACKS = 2 /* of an operand that a thread moves */ };

/* ---- activations: value and slope, as kernels_activation.c has them ------ */

template <class T> FR_DEVICE float sigmoid(float x)
{
    if constexpr (sizeof(T) == sizeof(float))
        return 1.0F / (1.0F + expf(-x));
    else
        return fast_reciprocal(1.0F + exp_for<T>(-x));
}

/* Beyond 16 a GELU's slope is 0 or 1 to the last bit. */
FR_DEVICE float clamped(float x)
{
    return x > 16.0F ? 16.0F : x < -16.0F ? -16.0F : x;
}

struct gelu_tanh_of {
    static constexpr float A = 1.5957691216057308F; /* 2 sqrt(2 / pi) */
    static constexpr float B = 0.044715F;
    template <class T> static FR_DEVICE float value(float x)
    {
        return x * sigmoid<T>(A * (x + B * (x * x * x)));
    }
    template <class T> static FR_DEVICE float slope(float x)
    {
        const float v = clamped(x);
        const float s = sigmoid<T>(A * (v + B * (v * v * v)));
        return s + v * s * (1.0F - s) * (A * (1.0F + 3.0F * B * (v * v)));
    }
};

struct gelu_of {
    /* The share of the normal distribution below x. */
    static FR_DEVICE float share(float x)
    {
        return 0.5F * erfcf(-0.70710678F * x);
    }
    template <class T> static FR_DEVICE float value(float x)
    {
        return x * share(x);
    }
    template <class T> static FR_DEVICE float slope(float x)
    {
        const float v = clamped(x);
        return share(v) + v * (0.3989422804F * exp_for<T>(-0.5F * (v * v)));
    }
};

struct gelu_quick_of {
    static constexpr float STEEP = 1.702F;
    template <class T> static FR_DEVICE float value(float x)
    {
        return x * sigmoid<T>(STEEP * x);
    }
    template <class T> static FR_DEVICE float slope(float x)
    {
        const float s = sigmoid<T>(STEEP * x);
        return s + STEEP * x * s * (1.0F - s);
    }
};

struct silu_of {
    template <class T> static FR_DEVICE float value(float x)
    {
        return x * sigmoid<T>(x);
    }
    template <class T> static FR_DEVICE float slope(float x)
    {
        const float s = sigmoid<T>(x);
        return s + x * s * (1.0F - s);
    }
};

struct sigmoid_of {
    template <class T> static FR_DEVICE float value(float x)
    {
        return sigmoid<T>(x);
    }
    template <class T> static FR_DEVICE float slope(float x)
    {
        const float s = sigmoid<T>(x);
        return s * (1.0F - s);
    }
};

struct tanh_of {
    template <class T> static FR_DEVICE float value(float x)
    {
        return tanhf(x);
    }
    template <class T> static FR_DEVICE float slope(float x)
    {
        const float s = sigmoid<T>(2.0F * x);
        return 4.0F * s * (1.0F - s);
    }
};

struct relu_of { /* a NaN stays one */
    template <class T> static FR_DEVICE float value(float x)
    {
        return x < 0 ? 0.0F : x;
    }
    template <class T> static FR_DEVICE float slope(float x)
    {
        return x > 0 ? 1.0F : 0.0F;
    }
};

struct relu_squared_of {
    template <class T> static FR_DEVICE float value(float x)
    {
        return relu_of::value<T>(x) * relu_of::value<T>(x);
    }
    template <class T> static FR_DEVICE float slope(float x)
    {
        return 2.0F * relu_of::value<T>(x);
    }
};

/* Calls f with the activation of an instruction. */
template <class F>
static void with_activation(const fr_instr *instr, const F &f)
{
    switch (instr->activation) {
    case FR_ACTIVATION_GELU:
        f(gelu_of());
        break;
    case FR_ACTIVATION_GELU_QUICK:
        f(gelu_quick_of());
        break;
    case FR_ACTIVATION_SILU:
        f(silu_of());
        break;
    case FR_ACTIVATION_SIGMOID:
        f(sigmoid_of());
        break;
    case FR_ACTIVATION_TANH:
        f(tanh_of());
        break;
    case FR_ACTIVATION_RELU:
        f(relu_of());
        break;
    case FR_ACTIVATION_RELU_SQUARED:
        f(relu_squared_of());
        break;
    default:
        f(gelu_tanh_of());
    }
}

/* ---- functors: an output element from the elements at the same place ----- */

template <class A, class T> struct value_of {
    FR_DEVICE float operator()(float x) const
    {
        return A::template value<T>(x);
    }
};

template <class A, class T> struct slope_of {
    FR_DEVICE float operator()(float dy, float x) const
    {
        return dy * A::template slope<T>(x);
    }
};

struct plus_of {
    FR_DEVICE float operator()(float a, float b) const
    {
        return a + b;
    }
};

struct same_of {
    FR_DEVICE float operator()(float x) const
    {
        return x;
    }
};

/* First element of pack p of a thread; a block's packs lie side by side. */
template <int N> FR_DEVICE int64_t first_of(int p)
{
    return (((int64_t)blockIdx.x * PACKS + p) * THREADS + threadIdx.x) * N;
}

/* out[i] = f(a[i]); the last elements, in no whole pack, one by one. */
template <int N, class F, class T, class O>
__global__ void map_one(F f, const T *a, O *out, int64_t n)
{
    float x[PACKS][N];
#pragma unroll
    for (int p = 0; p < PACKS; p++)
        if (first_of<N>(p) + N <= n)
            load<N>(x[p], a + first_of<N>(p));
#pragma unroll
    for (int p = 0; p < PACKS; p++) {
        int64_t i = first_of<N>(p);
        if (i + N <= n) {
#pragma unroll
            for (int j = 0; j < N; j++)
                x[p][j] = f(x[p][j]);
            store<N>(out + i, x[p]);
        } else {
            for (; i < n; i++)
                store(&out[i], f(to_float(a[i])));
        }
    }
}

/* out[i] = f(a[i], b[i]); out may be a or b. */
template <int N, class F, class T>
__global__ void map_two(F f, const T *a, const T *b, T *out, int64_t n)
{
    float x[PACKS][N], y[PACKS][N];
#pragma unroll
    for (int p = 0; p < PACKS; p++)
        if (first_of<N>(p) + N <= n) {
            load<N>(x[p], a + first_of<N>(p));
            load<N>(y[p], b + first_of<N>(p));
        }
#pragma unroll
    for (int p = 0; p < PACKS; p++) {
        int64_t i = first_of<N>(p);
        if (i + N <= n) {
#pragma unroll
            for (int j = 0; j < N; j++)
                x[p][j] = f(x[p][j], y[p][j]);
            store<N>(out + i, x[p]);
        } else {
            for (; i < n; i++)
                store(&out[i], f(to_float(a[i]), to_float(b[i])));
        }
    }
}

template <int N>
static launch_shape shape_for(const fr_cuda_launch *launch, int64_t n)
{
    return {dim3(blocks_of(n, (int64_t)THREADS * N)), THREADS, 0,
            launch->stream};
}

template <int N>
static launch_shape map_shape(const fr_cuda_launch *launch, int64_t n)
{
    return shape_for<N * PACKS>(launch, n);
}

/* Packs where all operands lie on 16 bytes, else one element at a time. */
template <class F, class T, class O>
static void run_one(const fr_cuda_launch *launch, F f, const T *a, O *out,
                    int64_t n)
{
    constexpr int N = pack_of<T>() > pack_of<O>() ? pack_of<T>() : pack_of<O>();
    if (is_aligned(a) && is_aligned(out))
        start(map_shape<N>(launch, n), map_one<N, F, T, O>, f, a, out, n);
    else
        start(map_shape<1>(launch, n), map_one<1, F, T, O>, f, a, out, n);
}

template <class F, class T>
static void run_two(const fr_cuda_launch *launch, F f, const T *a, const T *b,
                    T *out, int64_t n)
{
    constexpr int N = pack_of<T>();
    if (is_aligned(a) && is_aligned(b) && is_aligned(out))
        start(map_shape<N>(launch, n), map_two<N, F, T>, f, a, b, out, n);
    else
        start(map_shape<1>(launch, n), map_two<1, F, T>, f, a, b, out, n);
}

/* f(T()) is the functor. */
template <class F>
static fr_status one(const fr_cuda_launch *launch, const F &f, fr_err *err)
{
    const fr_kernel_call *call = &launch->call;
    bool is_known = with_type(call->instr->dtype, [&](auto t) {
        using T = decltype(t);
        run_one(launch, f(t), (const T *)call->ptr[0], (T *)call->ptr[1],
                call->instr->vector.n);
    });
    return is_known ? launched(launch, err) : refuse_dtype(launch, err);
}

template <class F>
static fr_status two(const fr_cuda_launch *launch, const F &f, const void *a,
                     const void *b, void *out, fr_err *err)
{
    const fr_instr *instr = launch->call.instr;
    bool is_known = with_type(instr->dtype, [&](auto t) {
        using T = decltype(t);
        run_two(launch, f(t), (const T *)a, (const T *)b, (T *)out,
                instr->vector.n);
    });
    return is_known ? launched(launch, err) : refuse_dtype(launch, err);
}

extern "C" fr_status fr_cuda_gelu_fwd(const fr_cuda_launch *launch, fr_err *err)
{
    fr_status status = FR_OK;
    with_activation(launch->call.instr, [&](auto a) {
        status = one(
            launch, [](auto t) { return value_of<decltype(a), decltype(t)>(); },
            err);
    });
    return status;
}

extern "C" fr_status fr_cuda_gelu_bwd(const fr_cuda_launch *launch, fr_err *err)
{
    void *const *ptr = launch->call.ptr;
    fr_status status = FR_OK;
    with_activation(launch->call.instr, [&](auto a) {
        status = two(
            launch, [](auto t) { return slope_of<decltype(a), decltype(t)>(); },
            ptr[FR_GELU_BWD_DY], ptr[FR_GELU_BWD_X], ptr[FR_GELU_BWD_DX], err);
    });
    return status;
}

extern "C" fr_status fr_cuda_add(const fr_cuda_launch *launch, fr_err *err)
{
    void *const *ptr = launch->call.ptr;
    return two(
        launch, [](auto) { return plus_of(); }, ptr[FR_ADD_DST],
        ptr[FR_ADD_SRC], ptr[FR_ADD_DST], err);
}

extern "C" fr_status fr_cuda_cast(const fr_cuda_launch *launch, fr_err *err)
{
    const fr_kernel_call *call = &launch->call;
    const int from = call->instr->scalar == 2 ? FR_DTYPE_BF16 : FR_DTYPE_F32;
    bool is_known =
        !(call->instr->flags & FR_INSTR_TRANSPOSE) &&
        with_type(call->instr->dtype, [&](auto o) {
            using O = decltype(o);
            with_type(from, [&](auto t) {
                using T = decltype(t);
                run_one(launch, same_of(), (const T *)call->ptr[FR_CAST_SRC],
                        (O *)call->ptr[FR_CAST_DST], call->instr->vector.n);
            });
        });
    return is_known ? launched(launch, err) : refuse_dtype(launch, err);
}

/* ---- rows --------------------------------------------------------------- */

/* out = a + b + bias (+ bias2), n columns; N divides them. */
template <int N, class T>
__global__ void add_bias(const T *a, const T *b, const T *bias, const T *bias2,
                         T *out, int64_t rows, int64_t cols)
{
    int64_t i = ((int64_t)blockIdx.x * THREADS + threadIdx.x) * N;
    if (i >= rows * cols)
        return;
    float x[N], y[N], z[N], z2[N] = {};
    load<N>(x, a + i);
    load<N>(y, b + i);
    load<N>(z, bias + i % cols);
    if (bias2)
        load<N>(z2, bias2 + i % cols);
#pragma unroll
    for (int j = 0; j < N; j++)
        x[j] = x[j] + y[j] + z[j] + z2[j];
    store<N>(out + i, x);
}

/* h[R, 2F] = gate, up; y[R, F]; N divides F.  weights[R] or null: one for each
 * row. */
template <class A, int N, class T>
__global__ void gated(const T *h, T *y, const float *weights, int64_t rows,
                      int64_t cols)
{
    int64_t i = ((int64_t)blockIdx.x * THREADS + threadIdx.x) * N;
    if (i >= rows * cols)
        return;
    const T *at = h + i / cols * 2 * cols + i % cols;
    float gate[N], up[N];
    load<N>(gate, at);
    load<N>(up, at + cols);
#pragma unroll
    for (int j = 0; j < N; j++)
        gate[j] = A::template value<T>(gate[j]) * up[j];
    for (int j = 0; weights && j < N; j++)
        gate[j] *= weights[i / cols];
    store<N>(y + i, gate);
}

template <class A, int N, class T>
__global__ void gated_grad(const T *dy, const T *h, T *dh, const float *weights,
                           int64_t rows, int64_t cols)
{
    int64_t i = ((int64_t)blockIdx.x * THREADS + threadIdx.x) * N;
    if (i >= rows * cols)
        return;
    int64_t at = i / cols * 2 * cols + i % cols;
    float d[N], gate[N], up[N];
    load<N>(d, dy + i);
    load<N>(gate, h + at);
    load<N>(up, h + at + cols);
#pragma unroll
    for (int j = 0; j < N; j++) {
        const float g = gate[j];
        if (weights)
            d[j] *= weights[i / cols];
        gate[j] = d[j] * up[j] * A::template slope<T>(g);
        up[j] = d[j] * A::template value<T>(g);
    }
    store<N>(dh + at, gate);
    store<N>(dh + at + cols, up);
}

/* dweights[R] = the sums over a row of dy y; a block has a row. */
template <class A, class T>
__global__ void gated_weight_grad(const T *dy, const T *h, float *dweights,
                                  int64_t cols)
{
    __shared__ float room[THREADS / 32];
    const int64_t row = blockIdx.x;
    const T *gate = h + row * 2 * cols, *up = gate + cols;
    float sum = 0;
    for (int64_t c = threadIdx.x; c < cols; c += THREADS)
        sum += to_float(dy[row * cols + c]) *
               A::template value<T>(to_float(gate[c])) * to_float(up[c]);
    sum = team_sum<THREADS>(sum, room);
    if (threadIdx.x == 0)
        dweights[row] = sum;
}

template <int N, class T>
static void run_rows(const fr_cuda_launch *launch, int64_t rows, int64_t cols)
{
    void *const *ptr = launch->call.ptr;
    launch_shape shape = shape_for<N>(launch, rows * cols);
    if (launch->call.instr->op == FR_OP_RESIDUAL_ADD) {
        start(shape, add_bias<N, T>, (const T *)ptr[FR_RESIDUAL_ADD_A],
              (const T *)ptr[FR_RESIDUAL_ADD_B],
              (const T *)ptr[FR_RESIDUAL_ADD_BIAS],
              (const T *)ptr[FR_RESIDUAL_ADD_BIAS2],
              (T *)ptr[FR_RESIDUAL_ADD_OUT], rows, cols);
        return;
    }
    with_activation(launch->call.instr, [&](auto a) {
        using A = decltype(a);
        if (launch->call.instr->op == FR_OP_SWIGLU_FWD)
            start(shape, gated<A, N, T>, (const T *)ptr[FR_SWIGLU_FWD_H],
                  (T *)ptr[FR_SWIGLU_FWD_Y],
                  (const float *)ptr[FR_SWIGLU_FWD_WEIGHTS], rows, cols);
        else
            start(shape, gated_grad<A, N, T>, (const T *)ptr[FR_SWIGLU_BWD_DY],
                  (const T *)ptr[FR_SWIGLU_BWD_H], (T *)ptr[FR_SWIGLU_BWD_DH],
                  (const float *)ptr[FR_SWIGLU_BWD_WEIGHTS], rows, cols);
    });
}

static fr_status by_rows(const fr_cuda_launch *launch, fr_err *err)
{
    const fr_kernel_call *call = &launch->call;
    int64_t rows = call->instr->matrix.rows, cols = call->instr->matrix.cols;
    bool is_known = with_type(call->instr->dtype, [&](auto t) {
        using T = decltype(t);
        if (is_packed(call, cols, pack_of<T>()))
            run_rows<pack_of<T>(), T>(launch, rows, cols);
        else
            run_rows<1, T>(launch, rows, cols);
    });
    return is_known ? launched(launch, err) : refuse_dtype(launch, err);
}

extern "C" fr_status fr_cuda_residual_add(const fr_cuda_launch *launch,
                                          fr_err *err)
{
    const fr_kernel_call *call = &launch->call;
    if (call->ptr[FR_RESIDUAL_ADD_BIAS])
        return by_rows(launch, err);
    int64_t n = call->instr->matrix.rows * call->instr->matrix.cols;
    bool is_known = with_type(call->instr->dtype, [&](auto t) {
        using T = decltype(t);
        run_two(launch, plus_of(), (const T *)call->ptr[FR_RESIDUAL_ADD_A],
                (const T *)call->ptr[FR_RESIDUAL_ADD_B],
                (T *)call->ptr[FR_RESIDUAL_ADD_OUT], n);
    });
    return is_known ? launched(launch, err) : refuse_dtype(launch, err);
}

extern "C" fr_status fr_cuda_swiglu_fwd(const fr_cuda_launch *launch,
                                        fr_err *err)
{
    return by_rows(launch, err);
}

extern "C" fr_status fr_cuda_swiglu_bwd(const fr_cuda_launch *launch,
                                        fr_err *err)
{
    const fr_kernel_call *call = &launch->call;
    void *const *ptr = call->ptr;
    const fr_matrix_dims *dim = &call->instr->matrix;
    if (ptr[FR_SWIGLU_BWD_DWEIGHTS])
        (void)with_type(call->instr->dtype, [&](auto t) {
            using T = decltype(t);
            with_activation(call->instr, [&](auto a) {
                start({dim3((unsigned)dim->rows), THREADS, 0, launch->stream},
                      gated_weight_grad<decltype(a), T>,
                      (const T *)ptr[FR_SWIGLU_BWD_DY],
                      (const T *)ptr[FR_SWIGLU_BWD_H],
                      (float *)ptr[FR_SWIGLU_BWD_DWEIGHTS], dim->cols);
            });
        });
    return by_rows(launch, err);
}

/* ---- whole memory ------------------------------------------------------- */

extern "C" fr_status fr_cuda_zero(const fr_cuda_launch *launch, fr_err *err)
{
    cudaMemsetAsync(launch->call.ptr[FR_ZERO_DST], 0,
                    (size_t)launch->call.instr->copy.n_bytes,
                    (cudaStream_t)launch->stream);
    return launched(launch, err);
}

extern "C" fr_status fr_cuda_copy(const fr_cuda_launch *launch, fr_err *err)
{
    cudaMemcpyAsync(launch->call.ptr[FR_COPY_DST],
                    launch->call.ptr[FR_COPY_SRC],
                    (size_t)launch->call.instr->copy.n_bytes,
                    cudaMemcpyDeviceToDevice, (cudaStream_t)launch->stream);
    return launched(launch, err);
}
