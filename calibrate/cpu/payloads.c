/* payloads.c: see payloads.h. */
#include "calibrate/cpu/payloads.h"

#include "core/base/vec.h"

#include <stdlib.h>
#include <string.h>

enum { PAYLOADS_MAX = 24 };

typedef struct payload {
    uint64_t n_bytes;
    size_t n_uses;
} payload;

typedef fr_vec(payload) payload_list;

static int by_bytes(const void *left, const void *right)
{
    const payload *a = left, *b = right;

    return (a->n_bytes > b->n_bytes) - (a->n_bytes < b->n_bytes);
}

static int by_uses(const void *left, const void *right)
{
    const payload *a = left, *b = right;

    if (a->n_uses != b->n_uses)
        return a->n_uses > b->n_uses ? -1 : 1;
    return by_bytes(left, right);
}

static fr_status note(payload_list *list, uint64_t n_bytes)
{
    payload fresh = {n_bytes, 1};

    for (size_t i = 0; i < list->n; i++) {
        if (list->items[i].n_bytes == n_bytes) {
            list->items[i].n_uses++;
            return FR_OK;
        }
    }
    return fr_vec_push(list, fresh);
}

static fr_status note_program(payload_list *list, const fr_program *program)
{
    for (uint32_t k = 0; k < program->n_instrs; k++) {
        const fr_instr *instr = &program->instrs[k];
        uint64_t n_bytes = fr_instr_payload_bytes(instr);
        if (fr_instr_communicates(instr) && n_bytes > 0)
            FR_TRY(note(list, n_bytes));
    }
    return FR_OK;
}

fr_status fr_payloads_collect(const fr_shapes *shapes, fr_payloads *out,
                              fr_err *err)
{
    payload_list list = {0};
    fr_payloads payloads = {0};

    for (size_t i = 0; i < shapes->programs.n; i++) {
        if (note_program(&list, shapes->programs.items[i]) != FR_OK) {
            fr_vec_release(&list);
            return fr_fail_no_memory(err);
        }
    }
    if (list.n > 0)
        qsort(list.items, list.n, sizeof *list.items, by_uses);
    if (list.n > PAYLOADS_MAX)
        list.n = PAYLOADS_MAX;
    if (list.n > 0)
        qsort(list.items, list.n, sizeof *list.items, by_bytes);
    payloads.n_bytes = calloc(list.n + 1, sizeof *payloads.n_bytes);
    if (payloads.n_bytes == NULL) {
        fr_vec_release(&list);
        return fr_fail_no_memory(err);
    }
    for (size_t i = 0; i < list.n; i++)
        payloads.n_bytes[payloads.n++] = list.items[i].n_bytes;
    fr_vec_release(&list);
    *out = payloads;
    return FR_OK;
}

void fr_payloads_release(fr_payloads *payloads)
{
    free(payloads->n_bytes);
    memset(payloads, 0, sizeof *payloads);
}
