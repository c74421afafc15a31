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
#include "core/base/minmax.h"
#include "cost_models/gpu/gpu_model.h"

#include <math.h>

/* Shapes of CUTLASS and cuBLAS: m, n, m n, m + n, root of m n. */
static const struct {
    double m, n, area, edge, side;
} tiles[] = {{256, 128, 32768, 384, 181.0193}, {128, 256, 32768, 384, 181.0193},
             {192, 128, 24576, 320, 156.7673}, {128, 192, 24576, 320, 156.7673},
             {160, 128, 20480, 288, 143.1084}, {128, 160, 20480, 288, 143.1084},
             {128, 128, 16384, 256, 128.0},    {256, 64, 16384, 320, 128.0},
             {64, 256, 16384, 320, 128.0},     {128, 96, 12288, 224, 110.8513},
             {96, 128, 12288, 224, 110.8513},  {128, 64, 8192, 192, 90.50967},
             {64, 128, 8192, 192, 90.50967},   {64, 64, 4096, 128, 64.0}};
enum { N_TILES = sizeof tiles / sizeof tiles[0] };
static const double most_splits = 8.0;

/* Without the library: this is where the time of a price goes. */
static double rounded_up(double x)
{
    double down = (double)(int64_t)x;
    return down < x ? down + 1.0 : down;
}

/* Fourth power of the mean: the longer hides most of the shorter. */
static double overlapped_4(double a, double b)
{
    a *= a;
    b *= b;
    return a * a + b * b;
}

/* The memory's part, C apart: operands at least once, or what each wave needs
 * of them when the cache cannot keep them. */
static double operand_bytes(const fr_gpu_model *model, double once,
                            double n_tiles, double wave_bytes)
{
    if (once <= model->cache_bytes)
        return once;
    return fr_max_double(once, n_tiles / model->n_cores * wave_bytes);
}

double fr_gpu_product_s(const fr_gpu_model *model, const fr_gpu_product *p)
{
    const fr_gpu_constants *c = model->constants;
    double m = (double)p->m, n = (double)p->n, k = (double)p->k;
    double groups = (double)p->groups, cores = model->n_cores;
    double rate = p->has_block_scales ? c->block_rate : 1.0;
    double s_per_flop = 2.0 * cores / (rate * model->flops[p->math]);
    double s_per_load =
        c->tile_traffic * p->in_bytes * cores / model->memory_Bps;
    double s_per_byte = 1.0 / (c->stream_frac * model->memory_Bps);
    double result_bytes = groups * m * n * p->out_bytes;
    double once = groups * (m + n) * k * p->in_bytes;
    double wave_bytes = 2.0 * sqrt(cores) * k * p->in_bytes;
    double best = INFINITY;

    for (int i = 0; i < N_TILES; i++) {
        double n_tiles =
            groups * rounded_up(m / tiles[i].m) * rounded_up(n / tiles[i].n);
        double per_k = s_per_flop * tiles[i].area + s_per_load * tiles[i].edge;
        double bytes = result_bytes + operand_bytes(model, once, n_tiles,
                                                    wave_bytes * tiles[i].side);
        for (double s = 1.0; s <= most_splits; s *= 2.0) {
            double waves = rounded_up(n_tiles * s / cores);
            double work_s = waves * (per_k * rounded_up(k / s) + c->tile_s);
            /* Parts are written and read again in fp32. */
            double parts = s > 1.0 ? 8.0 * s * groups * m * n : 0.0;
            double both = overlapped_4(work_s, (bytes + parts) * s_per_byte);
            best = both < best ? both : best;
            if (n_tiles * s >= cores)
                break;
        }
    }
    return c->kernel_s + sqrt(sqrt(best));
}

/*
 * Convolutions are products too (implicit ones), on shapes that fill tiles
 * less well; on the vector units Winograd's algorithm makes up for that
 * (Lavin and Gray, arXiv 1509.09308).
 */
double fr_gpu_layers_s(const fr_gpu_model *model, fr_gpu_math math, double flop,
                       double bytes, double extra_bytes)
{
    const fr_gpu_constants *c = model->constants;
    double flops = c->layers_rate[math != FR_GPU_MATH_F32] * model->flops[math];
    double memory_Bps = c->stream_frac * model->memory_Bps;

    return c->kernel_s + fr_max_double(flop / flops, bytes / memory_Bps) +
           extra_bytes / memory_Bps;
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
