/*
 * attention.cuh: what the two families of attention kernels share.  Inside
 * runtime/, for .cu files only.
 */
#ifndef FR_RUNTIME_KERNELS_CUDA_ATTENTION_ATTENTION_CUH
#define FR_RUNTIME_KERNELS_CUDA_ATTENTION_ATTENTION_CUH

#include "runtime/kernels_cuda/kernel_launch.cuh"

/* Strides in elements; a row of qkv: q heads, then k heads, then v heads. */
struct attn_shape {
    int batch, seq, n_q, n_kv, head_dim, q_per_kv;
    int64_t qkv_stride, o_stride;
    float scale;
    bool is_causal;
};

template <class T> struct attn_forward {
    attn_shape shape;
    const T *qkv;
    T *o;
    float *lse; /* [batch, n_q, seq], natural logarithm */
};

template <class T> struct attn_backward {
    attn_shape shape;
    const T *d_o, *qkv, *o;
    const float *lse, *delta; /* delta = sum of do * o per row and head */
    T *dqkv;
};

/* Element 0 of a head's q (head < n_q), k (from n_q) or v (from n_q + n_kv). */
template <class T>
FR_DEVICE T *head_at(T *qkv, const attn_shape &shape, int b, int head)
{
    return qkv + (int64_t)b * shape.seq * shape.qkv_stride +
           (int64_t)head * shape.head_dim;
}

template <class T>
FR_DEVICE T *output_at(T *o, const attn_shape &shape, int b, int head)
{
    return o + (int64_t)b * shape.seq * shape.o_stride +
           (int64_t)head * shape.head_dim;
}

FR_DEVICE int64_t row_at(const attn_shape &shape, int b, int head)
{
    return ((int64_t)b * shape.n_q + head) * shape.seq;
}

/* By tensor cores (attention_mma.cu), float32 as tf32; false: not of this
 * size or place. */
bool attention_mma_forward(const attn_forward<bf16> &at, void *stream);
bool attention_mma_forward(const attn_forward<float> &at, void *stream);
bool attention_mma_backward(const attn_backward<bf16> &at, void *stream);
bool attention_mma_backward(const attn_backward<float> &at, void *stream);

#endif
