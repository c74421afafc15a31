/*
 * compressor_powersgd.c: low-rank factors (compressor.h has the paper
 * and the layout of a bucket).
 */
#include "plan/codec/compressor.h"

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
    if (tensor == NULL || tensor->first >= bucket->first + bucket->n)
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
    return fr_compressor_error_bytes(plan, bucket) +
           sizeof(float) * (total.p + total.q);
}

static fr_status powersgd_check(const fr_plan *plan, fr_err *err)
{
    if (plan->compressor_rank < 1 ||
        plan->compressor_rank > FR_POWERSGD_MAX_RANK)
        return fr_fail(err, FR_INPUT,
                       "compressor powersgd: rank %lld is not in 1..%d; "
                       "choose for example 4",
                       (long long)plan->compressor_rank, FR_POWERSGD_MAX_RANK);
    return fr_compressor_check_no_zero(plan, "powersgd",
                                       "its factors need whole matrices", err);
}

const fr_compressor fr_compressor_powersgd = {
    .name = "powersgd",
    .summary = "low-rank factors by one warm-started power iteration",
    .number = FR_COMPRESSOR_BY_RANK,
    .wants_matrices = true,
    .is_lossy = true,
    .wants_error_feedback = true,
    .wire = FR_WIRE_REDUCE,
    .wire_dtype = FR_DTYPE_F32,
    .n_stages = 2,
    .stage_bytes = powersgd_bytes,
    .state_bytes = powersgd_state,
    .check = powersgd_check,
    /* powersgd.py: one product of a stage, Gram-Schmidt of 4 columns */
    .encode = {.n_kernels = 12, .element_bytes = 4},
    .decode = {.n_kernels = 1, .element_bytes = 4},
};
