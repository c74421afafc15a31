/* gradient_dump.c: from ranges of flat lists to whole tensors and a file. */
#include "runtime/run/gradient_dump.h"

#include "core/base/buffer.h"
#include "core/system/fileio.h"
#include "plan/decide/grid.h"
#include "runtime/rank/rank_context.h"

#include <stdlib.h>
#include <string.h>

static const char magic[8] = {'F', 'R', 'G', 'R', 'A', 'D', '1', '\n'};

struct fr_gradient_dump {
    const fr_program *program;
    const fr_rank_program *rank_program;
    fr_rank_context rank;
    float *flat;        /* [n_parameters] */
    unsigned char *has; /* [n_parameters] */
};

fr_status fr_gradient_dump_create(const fr_program *program, int64_t rank,
                                  fr_gradient_dump **out, fr_err *err)
{
    fr_gradient_dump *dump;

    FR_TRY_CALLOC(dump, 1, err);
    fr_status status =
        fr_rank_context_init(program, rank, NULL, &dump->rank, err);
    if (status != FR_OK) {
        free(dump);
        return status;
    }
    dump->program = program;
    dump->rank_program = fr_program_of_rank(program, rank);
    dump->flat =
        calloc(dump->rank_program->n_parameters + 1, sizeof *dump->flat);
    dump->has = calloc(dump->rank_program->n_parameters + 1, 1);
    if (dump->flat == NULL || dump->has == NULL) {
        fr_gradient_dump_destroy(dump);
        return fr_fail_no_memory(err);
    }
    *out = dump;
    return FR_OK;
}

void fr_gradient_dump_destroy(fr_gradient_dump *dump)
{
    if (dump == NULL)
        return;
    free(dump->flat);
    free(dump->has);
    free(dump);
}

void fr_gradient_dump_note(fr_gradient_dump *dump, const fr_instr_view *view)
{
    const fr_instr *instr = view->instr;

    if (instr->op != FR_OP_OPT_STEP || view->ptr[FR_OPT_STEP_G] == NULL)
        return;
    uint64_t n = (uint64_t)instr->range.n;
    uint64_t first = (uint64_t)fr_instr_range_first(
        instr, dump->rank.coordinate[instr->axis]);
    if (first + n > dump->rank_program->n_parameters)
        return;
    memcpy(dump->flat + first, view->ptr[FR_OPT_STEP_G],
           n * sizeof *dump->flat);
    memset(dump->has + first, 1, n);
}

typedef struct whole {
    const fr_tensor *tensor; /* of any rank program */
    float *at;
    unsigned char *has;
} whole;

typedef struct wholes {
    whole *at; /* [n] by rising id, which is not dense */
    size_t n;
} wholes;

static void add_tensor(const fr_tensor *tensor, const float *flat,
                       const unsigned char *has, const fr_tensor_place *place,
                       whole *to)
{
    int64_t cols = tensor->cols, global_cols = tensor->global_cols;

    for (int64_t row = 0; row < tensor->rows; row++) {
        int64_t whole_row = fr_tensor_global_row(tensor, row, place);
        if (whole_row >= tensor->global_rows)
            continue; /* padding of the vocabulary */
        for (int64_t col = 0; col < cols; col++) {
            uint64_t from = tensor->first + (uint64_t)(row * cols + col);
            int64_t whole_col = fr_tensor_global_col(tensor, col, place);
            uint64_t into = (uint64_t)(whole_row * global_cols + whole_col);
            if (whole_col >= global_cols || !has[from])
                continue; /* a bias of the vocabulary is padded too */
            to->at[into] = flat[from];
            to->has[into] = 1;
        }
    }
}

static void wholes_release(wholes *all)
{
    for (size_t i = 0; i < all->n; i++) {
        free(all->at[i].at);
        free(all->at[i].has);
    }
    free(all->at);
}

static int by_id(const void *a, const void *b)
{
    const uint32_t x = ((const whole *)a)->tensor->id;
    const uint32_t y = ((const whole *)b)->tensor->id;

    return (x > y) - (x < y);
}

static whole *wholes_find(const wholes *all, const fr_tensor *tensor)
{
    const whole wanted = {.tensor = tensor};

    return bsearch(&wanted, all->at, all->n, sizeof *all->at, by_id);
}

static fr_status wholes_init(const fr_program *program, wholes *all,
                             fr_err *err)
{
    size_t n = 0;

    for (uint32_t c = 0; c < program->n_rank_programs; c++)
        n += program->rank_programs[c].n_tensors;
    FR_TRY_CALLOC(all->at, n + 1, err);
    n = 0;
    for (uint32_t c = 0; c < program->n_rank_programs; c++)
        for (uint32_t i = 0; i < program->rank_programs[c].n_tensors; i++)
            all->at[n++].tensor = &program->rank_programs[c].tensors[i];
    qsort(all->at, n, sizeof *all->at, by_id);
    for (size_t i = 0; i < n; i++)
        if (all->n == 0 || by_id(&all->at[all->n - 1], &all->at[i]) != 0)
            all->at[all->n++].tensor = all->at[i].tensor;
    for (size_t i = 0; i < all->n; i++) {
        const fr_tensor *tensor = all->at[i].tensor;
        size_t size = (size_t)(tensor->global_rows * tensor->global_cols);
        FR_TRY_CALLOC(all->at[i].at, size, err);
        FR_TRY_CALLOC(all->at[i].has, size, err);
    }
    return FR_OK;
}

static fr_status write_file(const wholes *all, const char *path, fr_err *err)
{
    fr_buffer buffer;

    fr_buffer_init(&buffer);
    fr_buffer_append(&buffer, magic, sizeof magic);
    fr_status status = FR_OK;
    for (size_t i_whole = 0; i_whole < all->n && status == FR_OK; i_whole++) {
        const whole *w = &all->at[i_whole];
        int64_t shape[2] = {w->tensor->global_rows, w->tensor->global_cols};
        size_t size = (size_t)(shape[0] * shape[1]);
        for (size_t i = 0; i < size && status == FR_OK; i++)
            if (!w->has[i])
                status = fr_fail(err, FR_CHECK,
                                 "no gradient of %s, element %zu of %zu",
                                 w->tensor->name, i, size);
        fr_buffer_append(&buffer, w->tensor->name, sizeof w->tensor->name);
        fr_buffer_append(&buffer, shape, sizeof shape);
        fr_buffer_append(&buffer, w->at, size * sizeof *w->at);
    }
    if (status == FR_OK)
        return fr_file_write_buffer(path, &buffer, err);
    fr_buffer_release(&buffer);
    return status;
}

/* Rank 0 puts whole tensors together from the flat lists and masks of all
 * ranks, which lie one after the other. */
static fr_status assemble(const fr_program *program, int64_t world,
                          const unsigned char *bytes, const uint64_t *first,
                          const char *path, fr_err *err)
{
    wholes all = {0};
    fr_status status = wholes_init(program, &all, err);

    for (int64_t rank = 0; rank < world && status == FR_OK; rank++) {
        const fr_rank_program *rank_program = fr_program_of_rank(program, rank);
        const fr_tensor_place place = fr_tensor_place_of(&program->plan, rank);
        uint64_t n = rank_program->n_parameters;
        float *flat = malloc(n * sizeof *flat + 1);
        if (flat == NULL) {
            status = fr_fail_no_memory(err);
            break;
        }
        memcpy(flat, bytes + first[rank], n * sizeof *flat);
        const unsigned char *has = bytes + first[rank] + n * sizeof *flat;
        for (uint32_t i = 0; i < rank_program->n_tensors; i++)
            add_tensor(&rank_program->tensors[i], flat, has, &place,
                       wholes_find(&all, &rank_program->tensors[i]));
        free(flat);
    }
    if (status == FR_OK)
        status = write_file(&all, path, err);
    wholes_release(&all);
    return status;
}

fr_status fr_gradient_dump_write(fr_gradient_dump *dump,
                                 fr_transport *transport, const char *path,
                                 fr_err *err)
{
    uint64_t n = dump->rank_program->n_parameters;
    uint64_t n_bytes = n * (sizeof(float) + 1);
    unsigned char *mine = malloc(n_bytes + 1), *all = NULL;
    uint64_t *first = calloc((size_t)transport->world + 1, sizeof *first);
    fr_status status = FR_OK;

    if (mine == NULL || first == NULL) {
        free(mine);
        free(first);
        return fr_fail_no_memory(err);
    }
    memcpy(mine, dump->flat, n * sizeof *dump->flat);
    memcpy(mine + n * sizeof *dump->flat, dump->has, n);
    status = fr_transport_gather(transport, mine, n_bytes, &all, first, err);
    if (status == FR_OK && transport->rank == 0)
        status =
            assemble(dump->program, transport->world, all, first, path, err);
    free(all);
    free(mine);
    free(first);
    return status;
}
