#include "tuner/storey_lists.h"

#include <stdlib.h>
#include <string.h>

#include "core/hash.h"

enum { N_WORDS = 8, N_ROWS = 4096 };

typedef struct list {
    uint64_t words[N_WORDS];
    fr_plan_space_choices choices;
    struct list *next; /* of the same row */
} list;

struct fr_storey_lists {
    const fr_plan_space_request *request;
    list *rows[N_ROWS];
};

/* PIPELINE: schedules and splits see ranks and micro-batches, and lowering of
 * a split backward asks for context parallelism and TP overlap. */
static void set_words(const fr_plan_space_request *request,
                      fr_plan_space_storey storey, const fr_plan *plan,
                      uint64_t words[N_WORDS])
{
    const uint64_t of_pipeline[N_WORDS] = {
        (uint64_t)storey,
        (uint64_t)plan->pp,
        (uint64_t)fr_plan_micro_batches(plan, request->job),
        (uint64_t)plan->recompute,
        plan->cp > 1 ? 1 + (uint64_t)plan->cp_kind : 0,
        plan->is_tp_overlap};
    const uint64_t of_gradients[N_WORDS] = {
        (uint64_t)storey,
        (uint64_t)plan->dp,
        (uint64_t)plan->tp,
        (uint64_t)plan->pp,
        (uint64_t)plan->cp,
        (uint64_t)plan->ep,
        (uint64_t)plan->etp,
        (uint64_t)plan->precision};
    memcpy(words,
           storey == FR_STOREY_PIPELINE ? of_pipeline : of_gradients,
           sizeof of_pipeline);
}

fr_status fr_storey_lists_find(fr_storey_lists *lists,
                               fr_plan_space_storey storey, const fr_plan *plan,
                               const fr_plan_space_choices **out, fr_err *err)
{
    uint64_t words[N_WORDS];
    set_words(lists->request, storey, plan, words);
    list **row =
        &lists->rows[fr_hash_bytes(words, sizeof words, 7) % N_ROWS];
    for (list *l = *row; l != NULL; l = l->next)
        if (memcmp(l->words, words, sizeof words) == 0) {
            *out = &l->choices;
            return FR_OK;
        }
    list *fresh = calloc(1, sizeof *fresh);
    if (fresh == NULL)
        return fr_fail_no_memory(err);
    memcpy(fresh->words, words, sizeof words);
    fresh->next = *row;
    *row = fresh;
    *out = &fresh->choices;
    return fr_plan_space_list(lists->request, storey, plan, NULL, NULL,
                              &fresh->choices, err);
}

fr_status fr_storey_lists_create(const fr_plan_space_request *request,
                                 fr_storey_lists **out, fr_err *err)
{
    fr_storey_lists *lists = calloc(1, sizeof *lists);
    if (lists == NULL)
        return fr_fail_no_memory(err);
    lists->request = request;
    *out = lists;
    return FR_OK;
}

void fr_storey_lists_destroy(fr_storey_lists *lists)
{
    for (int i = 0; lists != NULL && i < N_ROWS; i++)
        while (lists->rows[i] != NULL) {
            list *l = lists->rows[i];
            lists->rows[i] = l->next;
            fr_vec_release(&l->choices);
            free(l);
        }
    free(lists);
}
