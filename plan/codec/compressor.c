/*
 * compressor.c: the table of gradient compressors.
 */
#include <math.h>

#include "plan/codec/compressor.h"

static uint64_t round_up_4(uint64_t n)
{
    return (n + 3) / 4 * 4;
}

static uint64_t error_bytes(const fr_plan *plan, const fr_bucket *bucket)
{
    return plan->has_error_feedback ? bucket->n * sizeof(float) : 0;
}

static uint64_t no_state(const fr_plan *plan, const fr_bucket *bucket)
{
    (void)plan;
    (void)bucket;
    return 0;
}

static fr_status check_nothing(const fr_plan *plan, fr_err *err)
{
    (void)plan;
    (void)err;
    return FR_OK;
}

static fr_status check_no_zero(const fr_plan *plan, const char *name,
                               const char *why, fr_err *err)
{
    if (plan->zero_stage == 0)
        return FR_OK;
    return fr_fail(err, FR_INPUT,
                   "compressor %s does not go with ZeRO %d, which scatters "
                   "the reduced gradient: %s; choose zero 0, or bf16 or int8",
                   name, (int)plan->zero_stage, why);
}

/* none */

static uint64_t none_bytes(const fr_plan *plan, const fr_bucket *bucket,
                           int stage)
{
    (void)plan;
    return stage == 0 ? bucket->n * sizeof(float) : 0;
}

static double no_flop(const fr_plan *plan)
{
    (void)plan;
    return 0;
}

static const fr_compressor none = {
    .kind = FR_COMPRESSOR_NONE,
    .name = "none",
    .summary = "gradients as they are (fp32)",
    .is_elementwise = true,
    .wire = FR_WIRE_PLAIN,
    .n_stages = 1,
    .stage_bytes = none_bytes,
    .state_bytes = no_state,
    .check = check_nothing,
    .compress_flop = no_flop,
    .decompress_flop = no_flop,
};

/* bf16 */

static uint64_t bf16_bytes(const fr_plan *plan, const fr_bucket *bucket,
                           int stage)
{
    (void)plan;
    return stage == 0 ? round_up_4(bucket->n * sizeof(uint16_t)) : 0;
}

static double bf16_compress_flop(const fr_plan *plan)
{
    (void)plan;
    return 4;
}

static double bf16_decompress_flop(const fr_plan *plan)
{
    (void)plan;
    return 2;
}

static const fr_compressor bf16 = {
    .kind = FR_COMPRESSOR_BF16,
    .name = "bf16",
    .summary = "rounded to bfloat16, gathered, summed in fp32",
    .is_lossy = true,
    .is_elementwise = true,
    .wire = FR_WIRE_GATHER,
    .n_stages = 1,
    .stage_bytes = bf16_bytes,
    .state_bytes = no_state,
    .check = check_nothing,
    .compress_flop = bf16_compress_flop,
    .decompress_flop = bf16_decompress_flop,
};

/* int8: f32 scales of the blocks, then the codes */

static uint64_t int8_bytes(const fr_plan *plan, const fr_bucket *bucket,
                           int stage)
{
    (void)plan;
    uint64_t n_blocks = (bucket->n + FR_INT8_BLOCK - 1) / FR_INT8_BLOCK;
    return stage == 0 ? n_blocks * sizeof(float) + round_up_4(bucket->n) : 0;
}

static double int8_compress_flop(const fr_plan *plan)
{
    return plan->has_error_feedback ? 7 : 12;
}

static double int8_decompress_flop(const fr_plan *plan)
{
    (void)plan;
    return 2;
}

static const fr_compressor int8 = {
    .kind = FR_COMPRESSOR_INT8,
    .name = "int8",
    .summary = "8-bit codes, one scale per 256 elements",
    .is_lossy = true,
    .is_elementwise = true,
    .wants_error_feedback = true,
    .wire = FR_WIRE_GATHER,
    .n_stages = 1,
    .stage_bytes = int8_bytes,
    .state_bytes = error_bytes,
    .check = check_nothing,
    .compress_flop = int8_compress_flop,
    .decompress_flop = int8_decompress_flop,
};

/* top-k: u32 indices, then f32 values */

uint64_t fr_topk_kept(double density, uint64_t n)
{
    double kept = floor(density * (double)n + 0.5);
    uint64_t k = kept < 1 ? 1 : (uint64_t)kept;
    return k < n ? k : n;
}

static uint64_t topk_bytes(const fr_plan *plan, const fr_bucket *bucket,
                           int stage)
{
    return stage == 0 ? 8 * fr_topk_kept(plan->compressor_density, bucket->n)
                      : 0;
}

static fr_status topk_check(const fr_plan *plan, fr_err *err)
{
    if (!(plan->compressor_density > 0 && plan->compressor_density <= 1))
        return fr_fail(err, FR_INPUT,
                       "compressor topk: density %g is not in (0, 1]; choose "
                       "for example 0.01",
                       plan->compressor_density);
    return check_no_zero(plan, "topk",
                         "a bucket's largest elements lie in "
                         "any slice",
                         err);
}

static double topk_compress_flop(const fr_plan *plan)
{
    return plan->has_error_feedback ? 6 : 5;
}

static double topk_decompress_flop(const fr_plan *plan)
{
    return 1 + plan->compressor_density;
}

static const fr_compressor topk = {
    .kind = FR_COMPRESSOR_TOPK,
    .name = "topk",
    .summary = "the largest elements of each bucket",
    .is_lossy = true,
    .wants_error_feedback = true,
    .wire = FR_WIRE_GATHER,
    .n_stages = 1,
    .stage_bytes = topk_bytes,
    .state_bytes = error_bytes,
    .check = topk_check,
    .compress_flop = topk_compress_flop,
    .decompress_flop = topk_decompress_flop,
};

/* PowerSGD */

/* The tensor that ends after bucket element `first`; NULL: none. */
static const fr_tensor *tensor_at(const fr_bucket *bucket, uint64_t first)
{
    uint64_t at = bucket->first + first;
    for (uint32_t i = 0; i < bucket->n_tensors; i++) {
        const fr_tensor *tensor = &bucket->tensors[i];
        if (tensor->n > 0 && tensor->first + tensor->n > at)
            return tensor;
    }
    return NULL;
}

/* The whole rows of `tensor` in the bucket from `piece->first` on. */
static void place_matrix(const fr_bucket *bucket, const fr_tensor *tensor,
                         int64_t rank, fr_powersgd_piece *piece)
{
    uint64_t cols = (uint64_t)tensor->cols;
    uint64_t at = bucket->first + piece->first;
    uint64_t end = tensor->first + tensor->n;
    if (end > bucket->first + bucket->n)
        end = bucket->first + bucket->n;
    uint64_t skip = at > tensor->first ? at - tensor->first : 0;
    uint64_t row_begin = (skip + cols - 1) / cols;
    uint64_t row_end = (end > tensor->first ? end - tensor->first : 0) / cols;
    uint64_t rows = row_end > row_begin ? row_end - row_begin : 0;
    uint64_t r = (uint64_t)rank;
    r = r < rows ? r : rows;
    r = r < cols ? r : cols;
    piece->is_matrix = rows > 1 && cols > 1 && r * (rows + cols) < rows * cols;
    uint64_t matrix = tensor->first + row_begin * cols;
    if (piece->is_matrix && matrix > at) { /* raw up to the first whole row */
        piece->is_matrix = false;
        piece->n = matrix - at;
    } else if (piece->is_matrix) {
        piece->n = rows * cols;
        piece->rows = (int64_t)rows;
        piece->cols = (int64_t)cols;
        piece->rank = (int64_t)r;
        piece->tensor_id = tensor->id;
    } else {
        piece->n = end - at;
    }
}

bool fr_powersgd_next(const fr_bucket *bucket, int64_t rank,
                      fr_powersgd_piece *piece)
{
    if (piece->is_matrix) {
        piece->p += (uint64_t)(piece->rows * piece->rank);
        piece->q += (uint64_t)(piece->cols * piece->rank);
    } else {
        piece->raw += piece->n;
    }
    piece->first += piece->n;
    piece->n = 0;
    piece->is_matrix = false;
    piece->rows = piece->cols = piece->rank = 0;
    if (piece->first >= bucket->n)
        return false;
    const fr_tensor *tensor = tensor_at(bucket, piece->first);
    if (!tensor || tensor->first >= bucket->first + bucket->n)
        piece->n = bucket->n - piece->first; /* padding at the end */
    else
        place_matrix(bucket, tensor, rank, piece);
    return true;
}

static fr_powersgd_piece powersgd_totals(const fr_plan *plan,
                                         const fr_bucket *bucket)
{
    fr_powersgd_piece piece = {0};
    while (fr_powersgd_next(bucket, plan->compressor_rank, &piece))
        ;
    return piece;
}

static uint64_t powersgd_bytes(const fr_plan *plan, const fr_bucket *bucket,
                               int stage)
{
    fr_powersgd_piece total = powersgd_totals(plan, bucket);
    return sizeof(float) *
           (stage == 0 ? total.raw + total.p : (stage == 1 ? total.q : 0));
}

static uint64_t powersgd_state(const fr_plan *plan, const fr_bucket *bucket)
{
    fr_powersgd_piece total = powersgd_totals(plan, bucket);
    return error_bytes(plan, bucket) + sizeof(float) * (total.p + total.q);
}

static fr_status powersgd_check(const fr_plan *plan, fr_err *err)
{
    if (plan->compressor_rank < 1 ||
        plan->compressor_rank > FR_POWERSGD_MAX_RANK)
        return fr_fail(err, FR_INPUT,
                       "compressor powersgd: rank %lld is not in 1..%d; "
                       "choose for example 4",
                       (long long)plan->compressor_rank, FR_POWERSGD_MAX_RANK);
    return check_no_zero(plan, "powersgd", "its factors need whole matrices",
                         err);
}

static double powersgd_compress_flop(const fr_plan *plan)
{
    double products = plan->has_error_feedback ? 3 : 2;
    return 2 * products * (double)plan->compressor_rank;
}

static double powersgd_decompress_flop(const fr_plan *plan)
{
    return 2 * (double)plan->compressor_rank;
}

static const fr_compressor powersgd = {
    .kind = FR_COMPRESSOR_POWERSGD,
    .name = "powersgd",
    .summary = "low-rank factors by one warm-started power iteration",
    .is_lossy = true,
    .wants_error_feedback = true,
    .wire = FR_WIRE_REDUCE,
    .n_stages = 2,
    .stage_bytes = powersgd_bytes,
    .state_bytes = powersgd_state,
    .check = powersgd_check,
    .compress_flop = powersgd_compress_flop,
    .decompress_flop = powersgd_decompress_flop,
};

const fr_compressor *const fr_compressors[FR_COMPRESSOR_N] = {
    [FR_COMPRESSOR_NONE] = &none,         [FR_COMPRESSOR_BF16] = &bf16,
    [FR_COMPRESSOR_INT8] = &int8,         [FR_COMPRESSOR_TOPK] = &topk,
    [FR_COMPRESSOR_POWERSGD] = &powersgd,
};

const fr_compressor *fr_compressor_of(const fr_plan *plan)
{
    return fr_compressors[plan->compressor];
}

uint64_t fr_compressor_payload_bytes(const fr_plan *plan,
                                     const fr_bucket *bucket)
{
    const fr_compressor *compressor = fr_compressor_of(plan);
    uint64_t n_bytes = 0;
    for (int stage = 0; stage < compressor->n_stages; stage++)
        n_bytes += compressor->stage_bytes(plan, bucket, stage);
    return n_bytes;
}

bool fr_compressor_has_error(const fr_plan *plan)
{
    return plan->has_error_feedback &&
           fr_compressor_of(plan)->wants_error_feedback;
}
