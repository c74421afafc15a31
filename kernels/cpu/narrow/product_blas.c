/*
 * product_blas.c: matrix products of float32 and bfloat16.
 *
 * Of bfloat16 a tile of each operand is widened, the product of the tiles is
 * OpenBLAS's in float32, and the sum over all tiles is rounded once: the
 * result is that of units which multiply bfloat16 and add in float32.
 * (cblas_sbgemm, which would use those of the CPU, is in no OpenBLAS that
 * distributions build.)
 */
#include "kernels/cpu/kernels_simd.h"
#include "kernels/cpu/narrow/narrow.h"

#include <cblas.h>

/* A tile of the result and what is summed at once: 4 and twice 2 MiB. */
enum { TILE = 1024, TILE_K = 512 };

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Floats of the tiles of a, b and c. */
static void tile_sizes(int64_t m, int64_t n, int64_t k, int64_t out[3])
{
    m = least(m, TILE);
    n = least(n, TILE);
    k = least(k, TILE_K);
    out[0] = m * k;
    out[1] = k * n;
    out[2] = m * n;
}

uint64_t fr_product_scratch_bytes(int64_t m, int64_t n, int64_t k)
{
    int64_t sizes[3];
    tile_sizes(m, n, k, sizes);
    return (uint64_t)(sizes[0] + sizes[1] + sizes[2]) * sizeof(float);
}

typedef struct tile {
    int64_t row, n_rows, col, n_cols;
} tile;

/* A tile in float32 and the length of its rows: in place, or in `room`. */
typedef struct floats {
    float *at;
    blasint ld;
} floats;

static tile in_memory(const fr_narrow_matrix *matrix, tile t)
{
    return matrix->is_transposed ? (tile){t.col, t.n_cols, t.row, t.n_rows} : t;
}

static void copy_tile(const fr_kernel_call *call, const fr_narrow_matrix *from,
                      tile t, float *room, bool is_in)
{
    int n_team = fr_team(call, t.n_rows * t.n_cols);
    FR_FOR_TEAM(n_team);
#pragma omp parallel for num_threads(n_team) schedule(static)
    for (int64_t i = 0; i < t.n_rows; i++) {
        int64_t first = (t.row + i) * from->ld + t.col;
        if (is_in)
            fr_narrow_load(room + i * t.n_cols, from->at, from->dtype, first,
                           t.n_cols);
        else
            fr_narrow_store(from->at, from->dtype, first, room + i * t.n_cols,
                            t.n_cols);
    }
}

static floats tile_of(const fr_kernel_call *call,
                      const fr_narrow_matrix *matrix, tile t, float *room,
                      bool is_read)
{
    t = in_memory(matrix, t);
    if (matrix->dtype == FR_DTYPE_F32)
        return (floats){(float *)matrix->at + t.row * matrix->ld + t.col,
                        (blasint)matrix->ld};
    if (is_read)
        copy_tile(call, matrix, t, room, true);
    return (floats){room, (blasint)t.n_cols};
}

/* The bias in every row: the product is then added to it, which costs nothing,
 * because OpenBLAS would clear the result first otherwise. */
static void fill_rows(const fr_kernel_call *call, const fr_product *p, tile t,
                      floats c)
{
    int n_team = fr_team(call, t.n_rows * t.n_cols);
    FR_FOR_TEAM(n_team);
#pragma omp parallel for num_threads(n_team) schedule(static)
    for (int64_t i = 0; i < t.n_rows; i++)
        fr_narrow_load(c.at + i * c.ld, p->bias, p->c.dtype, t.col, t.n_cols);
}

static enum CBLAS_TRANSPOSE transpose_of(const fr_narrow_matrix *matrix)
{
    return matrix->is_transposed ? CblasTrans : CblasNoTrans;
}

/* One tile of the result. */
static void run_tile(const fr_kernel_call *call, const fr_product *p, tile t,
                     int64_t k_step)
{
    int64_t sizes[3];
    tile_sizes(p->m, p->n, p->k, sizes);
    float *room = call->scratch;
    const floats c =
        tile_of(call, &p->c, t,
                room != NULL ? room + sizes[0] + sizes[1] : NULL, p->is_added);
    if (p->bias != NULL)
        fill_rows(call, p, t, c);
    for (int64_t k = 0; k < p->k; k += k_step) {
        const int64_t n_k = least(p->k - k, k_step);
        const floats a =
            tile_of(call, &p->a, (tile){t.row, t.n_rows, k, n_k}, room, true);
        const floats b = tile_of(call, &p->b, (tile){k, n_k, t.col, t.n_cols},
                                 room != NULL ? room + sizes[0] : NULL, true);
        bool is_sum = p->is_added || p->bias != NULL || k > 0;
        fr_team_set(call->n_threads < 1 ? 1 : call->n_threads);
        cblas_sgemm(CblasRowMajor, transpose_of(&p->a), transpose_of(&p->b),
                    (blasint)t.n_rows, (blasint)t.n_cols, (blasint)n_k, 1.0F,
                    a.at, a.ld, b.at, b.ld, is_sum ? 1.0F : 0.0F, c.at, c.ld);
    }
    if (p->c.dtype != FR_DTYPE_F32)
        copy_tile(call, &p->c, t, c.at, false);
}

void fr_product_run(const fr_kernel_call *call, const fr_product *p)
{
    bool is_wide = p->a.dtype == FR_DTYPE_F32 && p->b.dtype == FR_DTYPE_F32 &&
                   p->c.dtype == FR_DTYPE_F32;
    if (is_wide) {
        run_tile(call, p, (tile){0, p->m, 0, p->n}, p->k);
        return;
    }
    for (int64_t col = 0; col < p->n; col += TILE)
        for (int64_t row = 0; row < p->m; row += TILE)
            run_tile(call, p,
                     (tile){row, least(p->m - row, TILE), col,
                            least(p->n - col, TILE)},
                     TILE_K);
}
