/*
 * product_emulated.c: runtime/product_cuda.h by plain loops: operands as the
 * tensor cores read them, sums in double.
 */
#include "runtime/product_cuda.h"

#include <stdlib.h>
#include <string.h>

struct fr_cuda_products {
    int n_started;
};

fr_status fr_cuda_products_create(fr_cuda_products **out, fr_err *err)
{
    fr_cuda_products *products = calloc(1, sizeof *products);
    if (!products)
        return fr_fail_no_memory(err);
    *out = products;
    return FR_OK;
}

void fr_cuda_products_destroy(fr_cuda_products *products)
{
    free(products);
}

static float of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static float get(const void *at, int64_t i, fr_dtype dtype)
{
    uint32_t bits;
    if (dtype == FR_DTYPE_BF16)
        return of_bits((uint32_t)((const uint16_t *)at)[i] << 16);
    memcpy(&bits, (const float *)at + i, sizeof bits);
    if (dtype == FR_DTYPE_TF32)
        bits &= ~0x1fffU;
    return of_bits(bits);
}

static void put(void *at, int64_t i, fr_dtype dtype, float x)
{
    uint32_t bits;
    if (dtype != FR_DTYPE_BF16) {
        ((float *)at)[i] = x;
        return;
    }
    memcpy(&bits, &x, sizeof bits);
    bits += 0x7fffU + (bits >> 16 & 1);
    ((uint16_t *)at)[i] = (uint16_t)(bits >> 16);
}

fr_status fr_cuda_product_start(fr_cuda_kernels *kernels,
                                const fr_cuda_product *p, void *stream,
                                fr_err *err)
{
    (void)stream;
    (void)err;
    kernels->products->n_started++;
    for (int64_t i = 0; i < p->m; i++) {
        for (int64_t j = 0; j < p->n; j++) {
            double sum = 0;
            for (int64_t l = 0; l < p->k; l++)
                sum +=
                    (double)get(
                        p->a, p->is_a_transposed ? l * p->m + i : i * p->k + l,
                        p->dtype) *
                    (double)get(
                        p->b, p->is_b_transposed ? j * p->k + l : l * p->n + j,
                        p->dtype);
            sum *= (double)p->alpha;
            if (p->is_added)
                sum += (double)get(p->c, i * p->n + j, p->out_dtype);
            if (p->bias)
                sum += (double)get(p->bias, j, p->out_dtype);
            put(p->c, i * p->n + j, p->out_dtype, (float)sum);
        }
    }
    return FR_OK;
}
