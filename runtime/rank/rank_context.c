/* rank_context.c: see rank_context.h. */
#include "runtime/rank/rank_context.h"

#include "core/base/text.h"
#include "core/numbers/rng.h"
#include "kernels/cpu/kernels_simd.h"
#include "plan/decide/grid.h"
#include "plan/decide/plan_shares.h"
#include "spec/model/labels.h"

#include <stdlib.h>
#include <string.h>

fr_status fr_rank_context_init(const fr_program *program, int64_t rank,
                               fr_data *data, fr_rank_context *out, fr_err *err)
{
    const fr_plan *plan = &program->plan;
    int64_t *ranks;

    FR_TRY_CALLOC(ranks, (size_t)fr_plan_world(plan), err);
    *out = (fr_rank_context){.program = program,
                             .rank_program = fr_program_of_rank(program, rank),
                             .rank = rank,
                             .data = data};
    for (int axis = 0; axis < FR_AXIS_N; axis++) {
        int64_t position = 0, n = 1;
        if (axis != FR_AXIS_NONE)
            n = fr_plan_group(plan, rank, (fr_axis)axis, ranks, &position);
        out->coordinate[axis] = (int)position;
        out->n_group[axis] = (int)n;
    }
    free(ranks);
    return FR_OK;
}

static bool has_op(const fr_program *program,
                   const fr_rank_program *rank_program, fr_op op)
{
    fr_instr_walk at = {.program = program, .rank_program = rank_program};

    while (fr_instr_walk_next(&at))
        if (at.instr->op == op)
            return true;
    return false;
}

fr_status fr_rank_data_open(const fr_program *program,
                            const fr_rank_program *rank_program,
                            const char *path, fr_data **out, fr_err *err)
{
    const fr_model *model = &program->model;
    fr_job job = program->job;

    *out = NULL;
    if (!fr_text_copy(job.data, sizeof job.data, path))
        return fr_fail(err, FR_INPUT, "%.80s...: the path is too long", path);
    if (model->n_channels > 0 && path[0] != '\0' &&
        (has_op(program, rank_program, FR_OP_IMAGES) ||
         has_op(program, rank_program, FR_OP_PATCHES) ||
         has_op(program, rank_program, FR_OP_LABELS)))
        return fr_data_open_images(&job, model, out, err);
    if (model->n_channels > 0 ||
        !has_op(program, rank_program, FR_OP_LOAD_TOKENS))
        return FR_OK;
    FR_TRY(fr_data_open(&job, model->vocab, out, err));
    if (model->n_mtp_layers > 0)
        fr_data_look_ahead(*out);
    return FR_OK;
}

const fr_segment *fr_rank_segment(const fr_rank_context *rank, uint32_t i_call)
{
    return &rank->program
                ->segments[rank->rank_program->calls[i_call].i_segment];
}

static fr_sequence_share share_of(const fr_rank_context *rank)
{
    return (fr_sequence_share){rank->coordinate[FR_AXIS_CP],
                               rank->n_group[FR_AXIS_CP]};
}

/* The first sequence of a call's micro-batch in the global batch. */
static int64_t first_sequence(const fr_rank_context *rank, const fr_call *call)
{
    const fr_program *program = rank->program;
    const fr_plan *plan = &program->plan;
    const int32_t dp = fr_plan_coord(plan, rank->rank).dp;

    return (fr_plan_first_micro(plan, &program->job, dp) + call->micro_batch) *
           plan->micro_batch;
}

fr_kernel_call fr_rank_kernel_call(const fr_rank_context *rank,
                                   const fr_call *call, const fr_instr *instr,
                                   int n_threads, int64_t i_step)
{
    return (fr_kernel_call){
        .instr = instr,
        .coordinate = rank->coordinate[instr->axis],
        .n_group = rank->n_group[instr->axis],
        .tp_coordinate = rank->coordinate[FR_AXIS_TP],
        .share = share_of(rank),
        .n_threads = n_threads,
        .i_step = i_step,
        .dropout = rank->program->job.dropout,
        .layer = call != NULL ? call->layer : 0,
        .first_sequence = call != NULL ? first_sequence(rank, call) : 0,
        .job = &rank->program->job,
        .plan = &rank->program->plan,
        .model = &rank->program->model,
        .tensors = rank->rank_program->tensors,
        .n_tensors = rank->rank_program->n_tensors,
    };
}

/* The samples whose halves are swapped.  Of share i of n these are what share
 * n - 1 - i has of them as they are, its two pieces swapped. */
static fr_status swap_halves(const fr_rank_context *rank, int64_t i_step,
                             int64_t first, int64_t n, int32_t *tokens,
                             fr_err *err)
{
    const fr_job *job = &rank->program->job;
    fr_sequence_share share = share_of(rank);
    const int64_t len = fr_sequence_share_len(share, job->seq), half = len / 2;
    int32_t *room = tokens + n * len; /* of targets, which are still to come */

    share.i = share.n - 1 - share.i;
    for (int64_t i = 0; i < n; i++) {
        int32_t *sample = tokens + i * len, *from = sample;
        if (fr_sample_label(job->seed, i_step, first + i, FR_ORDER_LABELS) == 0)
            continue;
        if (share.n > 1) {
            from = n > 1 ? room : sample;
            FR_TRY(fr_data_load(rank->data, i_step, first + i, 1, share, from,
                                err));
        }
        for (int64_t t = 0; t < half; t++) {
            const int32_t token = from[t];
            sample[t] = from[half + t];
            sample[half + t] = token;
        }
    }
    return FR_OK;
}

/*
 * Hides some of the tokens that an encoder learns to restore (Devlin et al.
 * 2018, arXiv 1810.04805, of whose 15 % all are masked here; the loss is over
 * all positions).  The choice does not depend on the layout.
 */
static void mask(const fr_rank_context *rank, int64_t i_step, int64_t first,
                 int64_t n, int32_t *tokens)
{
    const fr_program *program = rank->program;
    const fr_sequence_share share = share_of(rank);
    const int64_t len = fr_sequence_share_len(share, program->job.seq);
    int32_t *targets = tokens + n * len;

    memcpy(targets, tokens, (size_t)(n * len) * sizeof *tokens);
    for (int64_t i = 0; i < n * len; i++) {
        const int64_t at = fr_sequence_position(share, len, i % len);
        if (fr_hash_uniform(program->job.seed, (uint64_t)i_step,
                            (uint64_t)(first + i / len),
                            (uint64_t)at + 1) < 0.15)
            tokens[i] = (int32_t)program->model.vocab - 1;
    }
}

static fr_status load_tokens(const fr_rank_context *rank, const fr_call *call,
                             const fr_instr *instr, int64_t i_step,
                             void *tokens, fr_err *err)
{
    const int64_t first = first_sequence(rank, call);

    if (rank->program->model.n_channels > 0) { /* images, which have none */
        memset(tokens, 0,
               2 * sizeof(int32_t) *
                   (size_t)(instr->tokens.batch * instr->tokens.seq));
        return FR_OK;
    }
    if (rank->data == NULL)
        return fr_fail(err, FR_CHECK, "no data for load_tokens");
    FR_TRY(fr_data_load(rank->data, i_step, first, instr->tokens.batch,
                        share_of(rank), tokens, err));
    if (rank->program->model.has_pooler)
        FR_TRY(
            swap_halves(rank, i_step, first, instr->tokens.batch, tokens, err));
    if (rank->program->model.kind == FR_MODEL_ENCODER)
        mask(rank, i_step, first, instr->tokens.batch, tokens);
    return FR_OK;
}

/* Patches in bfloat16 are rounded from float32. */
static fr_status load_patches(const fr_rank_context *rank,
                              const fr_instr *instr, int64_t i_step,
                              int64_t first, void *out, fr_err *err)
{
    const fr_first_rows_dims *d = &instr->first_rows;
    const bool is_rounded =
        fr_instr_ref_dtype(instr, FR_PATCHES_OUT) == FR_DTYPE_BF16;
    const int64_t n = d->rows * d->cols;
    float *numbers = out;

    if (is_rounded)
        FR_TRY_CALLOC(numbers, (size_t)n, err);
    fr_status status = fr_data_load_images(rank->data, i_step, first, d->batch,
                                           share_of(rank), numbers, err);
    if (is_rounded) {
        if (status == FR_OK)
            fr_floats_to_bf16(out, numbers, n);
        free(numbers);
    }
    return status;
}

static fr_status load_labels(const fr_rank_context *rank, const fr_instr *instr,
                             int64_t i_step, int64_t first, int32_t *tokens,
                             fr_err *err)
{
    const int64_t n = instr->labels.n;
    int32_t *labels = tokens + n;

    memset(tokens, 0, (size_t)n * sizeof *tokens);
    FR_TRY(fr_data_load_labels(rank->data, i_step, first, n, labels, err));
    /* Only the rank with the first token has labels; a row without a target
     * counts nothing. */
    for (int64_t i = 0; share_of(rank).i > 0 && i < n; i++)
        labels[i] = -1;
    return FR_OK;
}

uint64_t fr_rank_input_bytes(const fr_rank_context *rank, const fr_instr *instr)
{
    switch ((fr_op)instr->op) {
    case FR_OP_LOAD_TOKENS: {
        const bool has_later =
            instr->ref[FR_LOAD_TOKENS_LATER].space != FR_SPACE_NONE;
        return (has_later ? 3 : 2) *
               (uint64_t)(instr->tokens.batch * instr->tokens.seq) *
               sizeof(int32_t);
    }
    case FR_OP_IMAGES:
    case FR_OP_PATCHES:
    case FR_OP_LABELS:
        return fr_data_has_images(rank->data) ? fr_instr_ref_bytes(instr, 0, 1)
                                              : 0;
    default:
        return 0;
    }
}

fr_status fr_rank_load(const fr_rank_context *rank, const fr_call *call,
                       const fr_instr *instr, int64_t i_step, void *out,
                       fr_err *err)
{
    const int64_t first = first_sequence(rank, call);

    switch ((fr_op)instr->op) {
    case FR_OP_IMAGES:
        return fr_data_load_images(rank->data, i_step, first,
                                   instr->images.batch,
                                   (fr_sequence_share){0, 1}, out, err);
    case FR_OP_PATCHES:
        return load_patches(rank, instr, i_step, first, out, err);
    case FR_OP_LABELS:
        return load_labels(rank, instr, i_step, first, out, err);
    default:
        return load_tokens(rank, call, instr, i_step, out, err);
    }
}
