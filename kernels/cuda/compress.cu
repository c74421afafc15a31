/*
 * compress.cu: gradient compressors bf16, int8, top-k, onebit and random-k
 * (kernels_compress.c, kernels_onebit.c have what they do, compressor.h the
 * payloads).
 *
 * Bytes moved per gradient element, error feedback kept: bf16 6, int8 13 and
 * a bit (5 without feedback), top-k 12 for the sum and 4 for each of five
 * looks (three histograms, a count, the selection), onebit 16, random-k 12 for
 * the sum.  Decoding of p payloads: bf16 4 + 2 p, int8 4 + p, onebit 4 + p / 8,
 * top-k 4 and the k elements of each, random-k 4.
 */
#include "kernels/cuda/kernel_launch.cuh"

extern "C" {
#include "plan/codec/compressor.h"
#include "kernels/cuda/compress_cuda.h"
}

enum { THREADS = 256, N_WARPS = THREADS / 32 };

static const fr_compress_dims &dims_of(const fr_cuda_launch *launch)
{
    return launch->call.instr->compress;
}

static launch_shape shape_for(const fr_cuda_launch *launch, int64_t n,
                              int64_t per_block)
{
    return {dim3(blocks_of(n, per_block)), THREADS, 0, launch->stream};
}

static float *error_of(const fr_cuda_launch *launch)
{
    return fr_compressor_has_error(launch->call.plan)
               ? (float *)launch->call.ptr[1]
               : nullptr;
}

/* As a whole number, whose order is the same. */
FR_DEVICE uint32_t magnitude(float x)
{
    return __float_as_uint(x) & 0x7fffffffU;
}

struct max_bits {
    FR_DEVICE uint32_t operator()(uint32_t a, uint32_t b) const
    {
        return a > b ? a : b;
    }
};

/* ---- bf16 --------------------------------------------------------------- */

/* The payload ends at a multiple of 4 bytes. */
__global__ void bf16_encode(const float *g, bf16 *code, int64_t n)
{
    int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i < n)
        store(&code[i], g[i]);
    else if (i == n && n % 2)
        code[i].bits = 0;
}

__global__ void bf16_decode(const char *payloads, int64_t payload_bytes,
                            int64_t n_payloads, float *g, int64_t n)
{
    int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= n)
        return;
    float sum = 0;
    for (int64_t j = 0; j < n_payloads; j++) {
        float x = to_float(((const bf16 *)(payloads + j * payload_bytes))[i]);
        sum = j > 0 ? sum + x : x;
    }
    g[i] = sum;
}

extern "C" fr_status fr_cuda_bf16_compress(const fr_cuda_launch *launch,
                                           fr_err *err)
{
    int64_t n = dims_of(launch).n;
    start(shape_for(launch, n + 1, THREADS), bf16_encode,
          (const float *)launch->call.ptr[0], (bf16 *)launch->call.ptr[2], n);
    return launched(launch, err);
}

extern "C" fr_status fr_cuda_bf16_decompress(const fr_cuda_launch *launch,
                                             fr_err *err)
{
    int64_t n = dims_of(launch).n;
    start(shape_for(launch, n, THREADS), bf16_decode,
          (const char *)launch->call.ptr[0],
          dims_of(launch).payload_bytes,
          dims_of(launch).n_payloads,
          (float *)launch->call.ptr[2], n);
    return launched(launch, err);
}

/* ---- int8 --------------------------------------------------------------- */

constexpr int LANE_ELEMENTS = FR_INT8_BLOCK / 32; /* a warp has a block */

static int64_t n_int8_blocks(int64_t n)
{
    return (n + FR_INT8_BLOCK - 1) / FR_INT8_BLOCK;
}

struct int8_shape {
    int64_t n, n_blocks;
    uint64_t seed, coordinate, place; /* of the random rounding */
};

/* To the nearest code, ties to even. */
FR_DEVICE float nearest_code(float x, float inverse)
{
    float q = rintf(x * inverse);
    return q > 127.0F ? 127.0F : q < -127.0F ? -127.0F : q;
}

/* Up or down at random with the mean right. */
FR_DEVICE float random_code(float x, float inverse, uint32_t i, uint32_t key)
{
    float u = (float)(int32_t)(mix32(i + key) >> 8) * 0x1p-24F;
    int32_t q = (int32_t)(x * inverse + u + 128.0F) - 128;
    return (float)(q > 127 ? 127 : q < -127 ? -127 : q);
}

__global__ void int8_encode(int8_shape at, const float *g, float *error,
                            float *scales, const fr_cuda_step *step)
{
    int8_t *codes = (int8_t *)(scales + at.n_blocks);
    const int lane = threadIdx.x % 32;
    const int64_t block = (int64_t)blockIdx.x * N_WARPS + threadIdx.x / 32;
    const int64_t first = block * FR_INT8_BLOCK;
    if (block >= at.n_blocks)
        return;
    float x[LANE_ELEMENTS];
    uint32_t bits = 0; /* of the largest; a NaN is larger than all */
    for (int j = 0; j < LANE_ELEMENTS; j++) {
        const int64_t i = first + j * 32 + lane;
        x[j] = i < at.n ? g[i] + (error ? error[i] : 0.0F) : 0.0F;
        bits = max_bits()(bits, magnitude(x[j]));
    }
    bits = warp_reduce(bits, max_bits());
    const float largest = __uint_as_float(bits);
    const bool is_finite = bits < 0x7f800000U, is_tiny = largest < 1e-35F;
    const float scale = is_tiny ? 0.0F : largest / 127.0F;
    const float inverse = is_tiny ? 0.0F : 127.0F / largest;
    const uint32_t key = (uint32_t)hash_u64(
        hash_u64(at.seed, (uint64_t)step->i_step, at.coordinate, at.place),
        (uint64_t)block, 0, 0);
    if (lane == 0)
        scales[block] = is_finite ? scale : NAN;
    for (int j = 0; j < LANE_ELEMENTS; j++) {
        const int64_t i = first + j * 32 + lane;
        float q = 1.0F; /* of a block that is not finite */
        if (is_finite)
            q = error ? nearest_code(x[j], inverse)
                      : random_code(x[j], inverse, (uint32_t)(j * 32 + lane),
                                    key);
        if (i < at.n) {
            codes[i] = (int8_t)(int32_t)q;
            if (error)
                error[i] = is_finite ? x[j] - q * scale : x[j];
        } else if (i < (at.n + 3) / 4 * 4) {
            codes[i] = 0;
        }
    }
}

__global__ void int8_decode(const char *payloads, int64_t payload_bytes,
                            int64_t n_payloads, float *g, int64_t n,
                            int64_t n_blocks)
{
    int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= n)
        return;
    float sum = 0;
    for (int64_t j = 0; j < n_payloads; j++) {
        const float *scales = (const float *)(payloads + j * payload_bytes);
        const int8_t *codes = (const int8_t *)(scales + n_blocks);
        float x = (float)codes[i] * scales[i / FR_INT8_BLOCK];
        sum = j > 0 ? sum + x : x;
    }
    g[i] = sum;
}

extern "C" fr_status fr_cuda_int8_compress(const fr_cuda_launch *launch,
                                           fr_err *err)
{
    const fr_kernel_call *call = &launch->call;
    const int64_t n = dims_of(launch).n;
    int8_shape at = {n, n_int8_blocks(n), call->job->seed,
                     (uint64_t)call->coordinate,
                     (uint64_t)dims_of(launch).first +
                         ((uint64_t)call->tp_coordinate << 48)};
    start(shape_for(launch, at.n_blocks, N_WARPS), int8_encode, at,
          (const float *)call->ptr[0], error_of(launch), (float *)call->ptr[2],
          launch->step);
    return launched(launch, err);
}

extern "C" fr_status fr_cuda_int8_decompress(const fr_cuda_launch *launch,
                                             fr_err *err)
{
    const int64_t n = dims_of(launch).n;
    start(shape_for(launch, n, THREADS), int8_decode,
          (const char *)launch->call.ptr[0],
          dims_of(launch).payload_bytes,
          dims_of(launch).n_payloads,
          (float *)launch->call.ptr[2], n, n_int8_blocks(n));
    return launched(launch, err);
}

/* ---- top-k -------------------------------------------------------------- */

/*
 * The k-th largest magnitude by radix selection on the bits without sign:
 * three histograms of 11 + 10 + 10 bits.  Counts are whole numbers: exact in
 * any order.
 */
enum { MAX_BINS = 2048, SELECT_BLOCK = 4096, SCAN_THREADS = 1024 };

struct radix {
    uint32_t prefix, mask; /* bits of the threshold that are known */
    uint64_t n_wanted;     /* still to be found among those with the prefix */
    uint32_t bins[MAX_BINS];
};

/* Counts elements of a block of SELECT_BLOCK above the threshold and equal to
 * it; after the scan, those of earlier blocks. */
struct topk_count {
    uint32_t n_above, n_equal;
};

__global__ void radix_begin(radix *at, uint64_t k)
{
    for (int i = threadIdx.x; i < MAX_BINS; i += THREADS)
        at->bins[i] = 0;
    if (threadIdx.x == 0) {
        at->prefix = at->mask = 0;
        at->n_wanted = k;
    }
}

__global__ void radix_count(radix *at, const float *x, int64_t n, int shift,
                            int n_bins)
{
    __shared__ uint32_t bins[MAX_BINS];
    for (int i = threadIdx.x; i < n_bins; i += THREADS)
        bins[i] = 0;
    __syncthreads();
    const uint32_t prefix = at->prefix, mask = at->mask;
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < n;
         i += (int64_t)gridDim.x * THREADS) {
        const uint32_t bits = magnitude(x[i]);
        if ((bits & mask) == prefix)
            atomicAdd(&bins[bits >> shift & (uint32_t)(n_bins - 1)], 1U);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < n_bins; i += THREADS)
        if (bins[i] > 0)
            atomicAdd(&at->bins[i], bins[i]);
}

/* Fixes the next bits of the threshold and clears the bins. */
__global__ void radix_narrow(radix *at, int shift, int n_bins)
{
    __shared__ uint32_t bins[MAX_BINS];
    for (int i = threadIdx.x; i < n_bins; i += THREADS) {
        bins[i] = at->bins[i];
        at->bins[i] = 0;
    }
    __syncthreads();
    if (threadIdx.x > 0)
        return;
    int bin = n_bins - 1;
    uint64_t n_wanted = at->n_wanted;
    while (bin > 0 && bins[bin] < n_wanted)
        n_wanted -= bins[bin--];
    at->n_wanted = n_wanted;
    at->prefix |= (uint32_t)bin << shift;
    at->mask |= (uint32_t)(n_bins - 1) << shift;
}

__global__ void topk_counts(const radix *at, const float *x, int64_t n,
                            topk_count *counts)
{
    __shared__ uint32_t room[N_WARPS];
    const uint32_t threshold = at->prefix;
    const int64_t first = (int64_t)blockIdx.x * SELECT_BLOCK;
    uint32_t n_above = 0, n_equal = 0;
    for (int64_t i = first + threadIdx.x; i < first + SELECT_BLOCK && i < n;
         i += THREADS) {
        n_above += magnitude(x[i]) > threshold;
        n_equal += magnitude(x[i]) == threshold;
    }
    n_above = team_sum<THREADS>(n_above, room);
    n_equal = team_sum<THREADS>(n_equal, room);
    if (threadIdx.x == 0)
        counts[blockIdx.x] = {n_above, n_equal};
}

/* Counts -> counts before each block; one block. */
__global__ __launch_bounds__(SCAN_THREADS) void topk_scan(topk_count *counts,
                                                          int64_t n)
{
    __shared__ topk_count totals[SCAN_THREADS];
    const int64_t each = (n + SCAN_THREADS - 1) / SCAN_THREADS;
    const int64_t first = threadIdx.x * each;
    const int64_t last = first + each < n ? first + each : n;
    topk_count sum = {0, 0};
    for (int64_t i = first; i < last; i++) {
        sum.n_above += counts[i].n_above;
        sum.n_equal += counts[i].n_equal;
    }
    totals[threadIdx.x] = sum;
    __syncthreads();
    sum = {0, 0};
    for (int i = 0; i < (int)threadIdx.x; i++) {
        sum.n_above += totals[i].n_above;
        sum.n_equal += totals[i].n_equal;
    }
    for (int64_t i = first; i < last; i++) {
        topk_count mine = counts[i];
        counts[i] = sum;
        sum.n_above += mine.n_above;
        sum.n_equal += mine.n_equal;
    }
}

/* Returns for how many threads before this one is_true holds; *total: all. */
FR_DEVICE uint32_t rank_in_block(bool is_true, uint32_t *room, uint32_t *total)
{
    const uint32_t bits = __ballot_sync(0xffffffffU, is_true);
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    uint32_t before = (uint32_t)__popc(bits & ((1U << lane) - 1U));
    if (lane == 0)
        room[warp] = (uint32_t)__popc(bits);
    __syncthreads();
    *total = 0;
    for (int i = 0; i < N_WARPS; i++) {
        before += i < warp ? room[i] : 0;
        *total += room[i];
    }
    __syncthreads();
    return before;
}

/* In the order of the elements; of those equal to the threshold the first. */
__global__ void topk_take(const radix *at, float *x, int64_t n,
                          const topk_count *counts, uint32_t *indices,
                          float *values, bool is_cleared)
{
    __shared__ uint32_t room[N_WARPS];
    const uint32_t threshold = at->prefix;
    const uint64_t n_ties = at->n_wanted;
    uint64_t n_above = counts[blockIdx.x].n_above;
    uint64_t n_equal = counts[blockIdx.x].n_equal;
    for (int j = 0; j < SELECT_BLOCK; j += THREADS) {
        const int64_t i = (int64_t)blockIdx.x * SELECT_BLOCK + j + threadIdx.x;
        const float value = i < n ? x[i] : 0.0F;
        const bool is_above = i < n && magnitude(value) > threshold;
        const bool is_equal = i < n && magnitude(value) == threshold;
        uint32_t more_above, more_equal;
        uint64_t above = n_above + rank_in_block(is_above, room, &more_above);
        uint64_t equal = n_equal + rank_in_block(is_equal, room, &more_equal);
        if (is_above || (is_equal && equal < n_ties)) {
            const uint64_t to = above + (equal < n_ties ? equal : n_ties);
            indices[to] = (uint32_t)i;
            values[to] = value;
            if (is_cleared)
                x[i] = 0.0F;
        }
        n_above += more_above;
        n_equal += more_equal;
    }
}

__global__ void topk_add(const uint32_t *indices, const float *values,
                         int64_t k, float *g)
{
    int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i < k)
        g[indices[i]] += values[i];
}

static int64_t kept_of(const fr_cuda_launch *launch)
{
    return (int64_t)fr_topk_kept(launch->call.plan->compressor_density,
                                 (uint64_t)dims_of(launch).n);
}

static void select(const fr_cuda_launch *launch, radix *at, const float *x,
                   int64_t n, int64_t k)
{
    static const int shifts[] = {20, 10, 0}, bins[] = {2048, 1024, 1024};
    const unsigned n_blocks = blocks_of(n, THREADS * 16);
    start({dim3(1), THREADS, 0, launch->stream}, radix_begin, at, (uint64_t)k);
    for (int i = 0; i < 3; i++) {
        start({dim3(n_blocks < 1024 ? n_blocks : 1024), THREADS, 0,
               launch->stream},
              radix_count, at, x, n, shifts[i], bins[i]);
        start({dim3(1), THREADS, 0, launch->stream}, radix_narrow, at,
              shifts[i], bins[i]);
    }
}

extern "C" fr_status fr_cuda_topk_compress(const fr_cuda_launch *launch,
                                           fr_err *err)
{
    const fr_kernel_call *call = &launch->call;
    const int64_t n = dims_of(launch).n, k = kept_of(launch);
    const int64_t n_blocks = blocks_of(n, SELECT_BLOCK);
    float *g = (float *)call->ptr[0], *error = error_of(launch);
    uint32_t *indices = (uint32_t *)call->ptr[2];
    void *workspace = nullptr;
    FR_TRY(take_workspace(
        launch, sizeof(radix) + (uint64_t)n_blocks * sizeof(topk_count),
        &workspace, err));
    radix *at = (radix *)workspace;
    topk_count *counts = (topk_count *)(at + 1);
    float *x = error ? error : g;
    if (error)
        fr_cuda_add_floats(launch->stream, error, g, n);
    select(launch, at, x, n, k);
    start(shape_for(launch, n, SELECT_BLOCK), topk_counts, at, x, n, counts);
    start({dim3(1), SCAN_THREADS, 0, launch->stream}, topk_scan, counts,
          n_blocks);
    start(shape_for(launch, n, SELECT_BLOCK), topk_take, at, x, n, counts,
          indices, (float *)(indices + k), error != nullptr);
    return launched(launch, err);
}

extern "C" fr_status fr_cuda_topk_decompress(const fr_cuda_launch *launch,
                                             fr_err *err)
{
    const fr_kernel_call *call = &launch->call;
    const int64_t n = dims_of(launch).n, k = kept_of(launch);
    const char *payloads = (const char *)call->ptr[0];
    float *g = (float *)call->ptr[2];
    cudaMemsetAsync(g, 0, (size_t)n * sizeof *g, (cudaStream_t)launch->stream);
    for (int64_t i = 0; i < dims_of(launch).n_payloads; i++) {
        const uint32_t *indices =
            (const uint32_t *)(payloads +
                               i * dims_of(launch).payload_bytes);
        start(shape_for(launch, k, THREADS), topk_add, indices,
              (const float *)(indices + k), k, g);
    }
    return launched(launch, err);
}

/* ---- onebit ------------------------------------------------------------- */

/* A warp has a block; its lanes' sums are added as the CPU's kernel does. */
__global__ void onebit_encode(const float *g, float *error, float *scales,
                              int64_t n, int64_t n_blocks)
{
    uint32_t *words = (uint32_t *)(scales + n_blocks);
    const int lane = threadIdx.x % 32;
    const int64_t block = (int64_t)blockIdx.x * N_WARPS + threadIdx.x / 32;
    const int64_t first = block * FR_ONEBIT_BLOCK;
    if (block >= n_blocks)
        return;
    const int n_here =
        (int)(n - first < FR_ONEBIT_BLOCK ? n - first : FR_ONEBIT_BLOCK);
    float mine = 0, sum = 0;
    for (int i = lane; i < n_here; i += 32)
        mine += fabsf(g[first + i] + (error ? error[first + i] : 0.0F));
    for (int i = 0; i < 32; i++)
        sum += __shfl_sync(0xffffffffU, mine, i);
    const float mean = sum / (float)n_here;
    const float scale = isfinite(mean) ? mean : NAN;
    if (lane == 0)
        scales[block] = scale;
    for (int i = 0; i < n_here; i += 32) {
        const bool is_here = i + lane < n_here;
        const int64_t at = first + i + lane;
        const float x =
            is_here ? g[at] + (error ? error[at] : 0.0F) : 0.0F;
        const bool is_negative = x < 0.0F;
        const uint32_t word = __ballot_sync(0xffffffffU, is_negative);
        if (lane == 0)
            words[(first + i) / 32] = word;
        if (error && is_here)
            error[at] = x - (is_negative ? -scale : scale);
    }
}

__global__ void onebit_decode(const char *payloads, int64_t payload_bytes,
                              int64_t n_payloads, float *g, int64_t n,
                              int64_t n_blocks)
{
    int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= n)
        return;
    float sum = 0;
    for (int64_t j = 0; j < n_payloads; j++) {
        const float *scales = (const float *)(payloads + j * payload_bytes);
        const uint32_t *words = (const uint32_t *)(scales + n_blocks);
        const float scale = scales[i / FR_ONEBIT_BLOCK];
        const float x = words[i / 32] >> (i % 32) & 1U ? -scale : scale;
        sum = j > 0 ? sum + x : x;
    }
    g[i] = sum;
}

extern "C" fr_status fr_cuda_onebit_compress(const fr_cuda_launch *launch,
                                             fr_err *err)
{
    const int64_t n = dims_of(launch).n;
    const int64_t n_blocks = (int64_t)fr_onebit_blocks((uint64_t)n);
    start(shape_for(launch, n_blocks, N_WARPS), onebit_encode,
          (const float *)launch->call.ptr[0], error_of(launch),
          (float *)launch->call.ptr[2], n, n_blocks);
    return launched(launch, err);
}

extern "C" fr_status fr_cuda_onebit_decompress(const fr_cuda_launch *launch,
                                               fr_err *err)
{
    const int64_t n = dims_of(launch).n;
    start(shape_for(launch, n, THREADS), onebit_decode,
          (const char *)launch->call.ptr[0], dims_of(launch).payload_bytes,
          dims_of(launch).n_payloads, (float *)launch->call.ptr[2], n,
          (int64_t)fr_onebit_blocks((uint64_t)n));
    return launched(launch, err);
}

/* ---- random-k ----------------------------------------------------------- */

struct randomk_shape {
    uint64_t n, k;
    uint64_t seed, first, tp_coordinate; /* of the key */
};

/* The step is known on the device alone. */
FR_DEVICE uint64_t randomk_index(const randomk_shape &at, uint64_t i,
                                 const fr_cuda_step *step)
{
    const uint64_t key = hash_u64(at.seed, (uint64_t)step->i_step, at.first,
                                  at.tp_coordinate);
    const uint64_t each = at.n / at.k, rest = at.n % at.k;
    const uint64_t first = i * each + i * rest / at.k;
    const uint64_t last = (i + 1) * each + (i + 1) * rest / at.k;
    return first + (hash_u64(key, i, 0, 0) >> 32) % (last - first);
}

__global__ void randomk_take(randomk_shape at, float *x, float *values,
                             bool is_cleared, const fr_cuda_step *step)
{
    const uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= at.k)
        return;
    const uint64_t from = randomk_index(at, i, step);
    values[i] = x[from];
    if (is_cleared)
        x[from] = 0.0F;
}

__global__ void randomk_put(randomk_shape at, const float *values, float *g,
                            const fr_cuda_step *step)
{
    const uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i < at.k)
        g[randomk_index(at, i, step)] = values[i];
}

static randomk_shape randomk_of(const fr_cuda_launch *launch)
{
    const fr_kernel_call *call = &launch->call;
    return {(uint64_t)dims_of(launch).n, (uint64_t)kept_of(launch),
            call->job->seed, (uint64_t)dims_of(launch).first,
            (uint64_t)call->tp_coordinate};
}

extern "C" fr_status fr_cuda_randomk_compress(const fr_cuda_launch *launch,
                                              fr_err *err)
{
    float *g = (float *)launch->call.ptr[0], *error = error_of(launch);
    const randomk_shape at = randomk_of(launch);
    if (error)
        fr_cuda_add_floats(launch->stream, error, g, dims_of(launch).n);
    start(shape_for(launch, (int64_t)at.k, THREADS), randomk_take, at,
          error ? error : g, (float *)launch->call.ptr[2], error != nullptr,
          launch->step);
    return launched(launch, err);
}

extern "C" fr_status fr_cuda_randomk_decompress(const fr_cuda_launch *launch,
                                                fr_err *err)
{
    const randomk_shape at = randomk_of(launch);
    float *g = (float *)launch->call.ptr[2];
    cudaMemsetAsync(g, 0, (size_t)at.n * sizeof *g,
                    (cudaStream_t)launch->stream);
    start(shape_for(launch, (int64_t)at.k, THREADS), randomk_put, at,
          (const float *)launch->call.ptr[0], g, launch->step);
    return launched(launch, err);
}
