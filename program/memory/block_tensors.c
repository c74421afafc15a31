/* block_tensors.c: see block_tensors.h. */
#include "program/memory/block_tensors.h"

#include <string.h>

/* Spaces whose base is a block of many tensors. */
static const uint8_t spaces[] = {FR_SPACE_TEMP, FR_SPACE_SAVED, FR_SPACE_CARRY};
enum { N_SPACES = sizeof spaces / sizeof spaces[0] };

/* Puts `at` among items[first .. n), which ascend and differ. */
static bool add_sorted(fr_tensor_marks *marks, size_t first, uint64_t at)
{
    size_t i = marks->offsets.n;
    while (i > first && marks->offsets.items[i - 1] > at)
        i--;
    if (i > first && marks->offsets.items[i - 1] == at)
        return true;
    if (fr_vec_push(&marks->offsets, at) != FR_OK)
        return false;
    uint64_t *items = marks->offsets.items;
    memmove(&items[i + 1], &items[i],
            (marks->offsets.n - 1 - i) * sizeof *items);
    items[i] = at;
    return true;
}

static bool list_offsets(fr_tensor_marks *marks, const fr_segment *segment,
                         uint8_t space)
{
    const fr_instr *instrs = &marks->program->instrs[segment->first_instr];
    size_t first = marks->offsets.n;
    for (uint32_t i = 0; i < segment->n_instrs; i++)
        for (int k = 0; k < FR_INSTR_REFS; k++)
            if (instrs[i].ref[k].space == space &&
                !add_sorted(marks, first, instrs[i].ref[k].offset_bytes))
                return false;
    return true;
}

fr_status fr_tensor_marks_init(const fr_program *program, fr_tensor_marks *out,
                               fr_err *err)
{
    *out = (fr_tensor_marks){.program = program};
    if (program == NULL)
        return FR_OK;
    size_t n = (size_t)program->n_segments * N_SPACES;
    bool is_ok = true;
    out->first = malloc((n + 1) * sizeof *out->first);
    if (out->first == NULL)
        return fr_fail_no_memory(err);
    for (size_t i = 0; is_ok && i < n; i++) {
        out->first[i] = (uint32_t)out->offsets.n;
        is_ok = list_offsets(out, &program->segments[i / N_SPACES],
                             spaces[i % N_SPACES]);
    }
    out->first[n] = (uint32_t)out->offsets.n;
    if (is_ok)
        return FR_OK;
    fr_tensor_marks_release(out);
    return fr_fail_no_memory(err);
}

void fr_tensor_marks_release(fr_tensor_marks *marks)
{
    free(marks->first);
    fr_vec_release(&marks->offsets);
    fr_vec_release(&marks->cuts);
}

/* Adds `at` to the cuts, which ascend and differ. */
static void add_cut(fr_tensor_marks *marks, uint64_t at)
{
    uint64_t *cuts = marks->cuts.items;
    size_t i = marks->cuts.n;
    while (cuts[i - 1] > at) /* the first is 0 */
        i--;
    if (cuts[i - 1] == at)
        return;
    memmove(&cuts[i + 1], &cuts[i], (marks->cuts.n - i) * sizeof *cuts);
    cuts[i] = at;
    marks->cuts.n++;
}

/* Cuts a block where the segment of a call points into it with one of its
 * spaces. */
static void cut_block(fr_tensor_marks *marks,
                      const fr_rank_program *rank_program,
                      const fr_block *block, int i_space)
{
    const fr_call *call = &rank_program->calls[block->first_call];
    size_t list = (size_t)call->i_segment * N_SPACES + (size_t)i_space;
    uint32_t i = marks->first[list], end = marks->first[list + 1];
    const uint64_t *offsets = marks->offsets.items;
    uint64_t begin = block->offset_bytes;
    if (i == end)
        return;
    uint64_t base = fr_call_base_bytes(rank_program, call, spaces[i_space]);
    if (base + offsets[end - 1] < begin)
        return;
    while (base + offsets[i] < begin)
        i++;
    for (; i < end && base + offsets[i] - begin < block->n_bytes; i++)
        add_cut(marks, base + offsets[i] - begin);
}

size_t fr_block_tensors(fr_tensor_marks *marks,
                        const fr_rank_program *rank_program,
                        const fr_block *block)
{
    size_t n_most = 2; /* one tensor, and the end */
    const fr_call *call = NULL;
    if (marks->program != NULL && !block->is_persistent &&
        block->first_call < rank_program->n_calls) {
        call = &rank_program->calls[block->first_call];
        const uint32_t *first = &marks->first[call->i_segment * N_SPACES];
        n_most += first[N_SPACES] - first[0];
    }
    marks->cuts.n = 0;
    if (fr_vec_reserve(&marks->cuts, n_most) != FR_OK)
        return 0;
    marks->cuts.items[marks->cuts.n++] = 0;
    for (int i = 0; call != NULL && i < N_SPACES; i++)
        cut_block(marks, rank_program, block, i);
    marks->cuts.items[marks->cuts.n] = block->n_bytes;
    return marks->cuts.n;
}
