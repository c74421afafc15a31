/*
 * gpu_product.c: matrix products and plain memory-bound kernels.
 *
 * A product is cut into output tiles of tm x tn, each made by one
 * multiprocessor in a loop over k (NVIDIA, Matrix Multiplication Background
 * User's Guide: tile and wave quantisation; Kerr et al., CUTLASS, GTC 2018).
 * With F the sustained rate, B the memory's bandwidth, S multiprocessors and
 * b bytes of an element, one tile over k' of the k (split s ways) takes
 *     2 tm tn k' / (F/S)  +  c (tm+tn) k' b / (B/S)  +  tile_s
 * and the product ceil(tiles / S) times that, the last wave being as long as
 * the others.  c says how much of the tile's loads from the cache is not
 * hidden: the cache's bandwidth follows the memory's.  Beside that the memory
 * moves each operand once, or, when they do not fit into the cache, what each
 * wave needs of them (a square block of tiles: 2 sqrt(S tm tn) k b), and C.
 * Library and hardware hide the shorter behind the longer: their fourth-power
 * mean.  The best tile and split counts, as a tuned library would choose.
 */
#include "cost_models/gpu_model.h"

#include <math.h>

static const struct {
    int m, n;
} tiles[] = {{256, 128}, {128, 256}, {192, 128}, {128, 192}, {160, 128},
             {128, 160}, {128, 128}, {256, 64},  {64, 256},  {128, 96},
             {96, 128},  {128, 64},  {64, 128},  {64, 64}};
enum { N_TILES = sizeof tiles / sizeof tiles[0], MOST_SPLITS = 8 };

static double up(int64_t n, int64_t unit)
{
    return (double)((n + unit - 1) / unit);
}

/* Fourth powers of what must not be added: the longer hides the other. */
static double overlapped_4(double a, double b)
{
    a *= a;
    b *= b;
    return a * a + b * b;
}

static double root_4(double x)
{
    return sqrt(sqrt(x));
}

/* The memory's part, C apart: operands at least once. */
static double operand_bytes(const fr_gpu_model *model, const fr_gpu_product *p,
                            double n_tiles, double tile_area)
{
    double groups = (double)p->groups, k = (double)p->k;
    double once = groups * ((double)p->m + (double)p->n) * k * p->in_bytes;
    double waves = n_tiles / model->n_cores;

    if (once <= model->cache_bytes || waves <= 1.0)
        return once;
    return fmax(once, waves * 2.0 * sqrt(model->n_cores * tile_area) * k *
                          p->in_bytes);
}

double fr_gpu_product_s(const fr_gpu_model *model, const fr_gpu_product *p)
{
    const fr_gpu_constants *c = model->constants;
    double core_flops = model->flops[p->math] / model->n_cores;
    double core_Bps = model->memory_Bps / model->n_cores;
    double memory_Bps = c->stream_frac * model->memory_Bps;
    double c_elements = (double)p->groups * (double)p->m * (double)p->n;
    double best = INFINITY;

    for (int i = 0; i < N_TILES; i++) {
        double area = (double)(tiles[i].m * tiles[i].n);
        double edge = (double)(tiles[i].m + tiles[i].n);
        double n_tiles =
            (double)p->groups * up(p->m, tiles[i].m) * up(p->n, tiles[i].n);
        double per_k = 2.0 * area / core_flops +
                       c->tile_traffic * edge * p->in_bytes / core_Bps;
        double bytes =
            operand_bytes(model, p, n_tiles, area) + c_elements * p->out_bytes;
        for (int s = 1; s <= MOST_SPLITS; s *= 2) {
            double waves = ceil(n_tiles * s / model->n_cores);
            double work_s = waves * (per_k * up(p->k, s) + c->tile_s);
            /* Parts are written and read again in fp32. */
            double parts = s > 1 ? 8.0 * s * c_elements : 0.0;
            best =
                fmin(best, overlapped_4(work_s, (bytes + parts) / memory_Bps));
            if (n_tiles * s >= model->n_cores)
                break;
        }
    }
    return c->kernel_s + root_4(best);
}

/*
 * A roofline of memory alone.  What fills the device late and empties it
 * early is in kernel_s.
 */
double fr_gpu_memory_s(const fr_gpu_model *model, double bytes,
                       fr_gpu_family family)
{
    const fr_gpu_constants *c = model->constants;
    double frac = family == FR_GPU_ROWS ? c->rows_frac : c->stream_frac;

    return c->kernel_s + bytes / (frac * model->memory_Bps);
}
