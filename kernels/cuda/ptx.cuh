/*
 * ptx.cuh: instructions that CUDA's C++ has no word for: products of tensor
 * cores, loads of 8x8 matrices into their operands, asynchronous copies (PTX
 * ISA 8.5, sections 9.7.14.5 and 9.7.9; which lane holds what was checked at
 * ptx.poole.ai/docs/09-instruction-set/14-warp-level-mma/mma/mma-fragments,
 * November 2026).  The emulation has loops in their place
 * (device_side.h).
 */
#ifndef FR_KERNELS_CUDA_PTX_CUH
#define FR_KERNELS_CUDA_PTX_CUH

#include "kernels/cuda/device.cuh"

#ifdef FR_EMULATED

#define mma_bf16 emulator_mma_bf16
#define mma_tf32 emulator_mma_tf32
#define copy_commit emulator_copy_commit

template <int N_BYTES = 16>
FR_DEVICE void copy_async(void *to, const void *from, bool is_zero)
{
    emulator_copy_async(to, from, N_BYTES, is_zero);
}

template <int N_LEFT> FR_DEVICE void copy_wait()
{
    emulator_copy_wait(N_LEFT);
}

template <bool IS_TRANSPOSED>
FR_DEVICE void load_matrices(uint32_t (&out)[4], const void *row)
{
    emulator_load_matrices(out, row, IS_TRANSPOSED);
}

FR_DEVICE uint32_t pack_bf16(float low, float high)
{
    return bf16_bits(low) | (uint32_t)bf16_bits(high) << 16;
}

FR_DEVICE uint32_t round_tf32(float x)
{
    return (__float_as_uint(x) + 0x1000U) & ~0x1fffU;
}

FR_DEVICE float fast_exp2(float x)
{
    return exp2f(x);
}

FR_DEVICE float fast_reciprocal(float x)
{
    return 1.0F / x;
}

#else

/* c[16,8] += a[16,16] b[16,8] of a warp: row r = lane / 4, t = lane % 4;
 * c: (r, 2t), (r, 2t+1), (r+8, 2t), (r+8, 2t+1); a: pairs of k at (r, 2t),
 * (r+8, 2t), (r, 2t+8), (r+8, 2t+8); b: pairs of k at (2t, r), (2t+8, r). */
FR_DEVICE void mma_bf16(float (&c)[4], const uint32_t (&a)[4],
                        const uint32_t *b)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};\n"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]),
                   "r"(b[1]));
}

/* c[16,8] += a[16,8] b[8,8]; c as above; a: (r, t), (r+8, t), (r, t+4),
 * (r+8, t+4); b: (t, r), (t+4, r). */
FR_DEVICE void mma_tf32(float (&c)[4], const uint32_t (&a)[4],
                        const uint32_t *b)
{
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};\n"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]),
                   "r"(b[1]));
}

/* Four 8x8 matrices of 16 bits; lane i names row i % 8 of matrix i / 8, and
 * gets of each the pair at (lane / 4, 2 (lane % 4)), or of its transpose. */
template <bool IS_TRANSPOSED>
FR_DEVICE void load_matrices(uint32_t (&out)[4], const void *row)
{
    unsigned at = (unsigned)__cvta_generic_to_shared(row);
    if constexpr (IS_TRANSPOSED)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 "
                     "{%0, %1, %2, %3}, [%4];\n"
                     : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                     : "r"(at)
                     : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 "
                     "{%0, %1, %2, %3}, [%4];\n"
                     : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                     : "r"(at)
                     : "memory");
}

/* 16 or 4 aligned bytes to shared memory, zeros if is_zero, when nothing is
 * read of `from`; there after copy_wait. */
template <int N_BYTES = 16>
FR_DEVICE void copy_async(void *to, const void *from, bool is_zero)
{
    unsigned at = (unsigned)__cvta_generic_to_shared(to);
    int n_bytes = is_zero ? 0 : N_BYTES;
    if constexpr (N_BYTES == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n"
                     :
                     : "r"(at), "l"(from), "r"(n_bytes)
                     : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %3, %2;\n"
                     :
                     : "r"(at), "l"(from), "r"(n_bytes), "n"(N_BYTES)
                     : "memory");
}

/* Ends a group of copies; copy_wait: until N_LEFT groups are under way. */
FR_DEVICE void copy_commit()
{
    asm volatile("cp.async.commit_group;\n" ::: "memory");
}

template <int N_LEFT> FR_DEVICE void copy_wait()
{
    asm volatile("cp.async.wait_group %0;\n" ::"n"(N_LEFT) : "memory");
}

FR_DEVICE uint32_t pack_bf16(float low, float high)
{
    uint32_t out;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;\n" : "=r"(out) : "f"(high), "f"(low));
    return out;
}

/* To 10 bits of mantissa, ties away from 0. */
FR_DEVICE uint32_t round_tf32(float x)
{
    uint32_t out;
    asm("cvt.rna.tf32.f32 %0, %1;\n" : "=r"(out) : "f"(x));
    return out;
}

FR_DEVICE float fast_exp2(float x)
{
    float out;
    asm("ex2.approx.ftz.f32 %0, %1;\n" : "=f"(out) : "f"(x));
    return out;
}

FR_DEVICE float fast_reciprocal(float x)
{
    float out;
    asm("rcp.approx.ftz.f32 %0, %1;\n" : "=f"(out) : "f"(x));
    return out;
}

#endif

constexpr float LOG2_E = 1.4426950408889634F;

/* exp(x) for operands of type T: to the last bits of float32, or far within
 * half a unit of the last of bf16's 8. */
template <class T> FR_DEVICE float exp_for(float x)
{
    if constexpr (sizeof(T) == sizeof(float))
        return expf(x);
    else
        return fast_exp2(LOG2_E * x);
}

#endif
