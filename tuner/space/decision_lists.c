#include "tuner/space/decision_lists.h"

#include "core/base/hash.h"
#include "tuner/partition/balance_layers.h"

#include <stdlib.h>
#include <string.h>

enum { N_WORDS = 8, N_ROWS = 4096 };

typedef struct known_list {
    uint64_t words[N_WORDS];
    fr_decision_list all;
    struct known_list *next; /* of the same row */
} known_list;

struct fr_decision_lists {
    const fr_plan_space_request *request;
    known_list *rows[N_ROWS];
    const known_list *last[FR_DECISION_N]; /* neighbours often want the same */
};

/* Writes down all that a level's list depends on.  For PIPELINE schedules and
 * splits depend on ranks and micro-batches, the legality of a split backward on
 * context parallelism and TP overlap, and that of combined 1F1B on chunks;
 * balanced splits depend on all, but are seldom there. */
static void set_words(const fr_plan_space_request *request,
                      fr_decision_level level, const fr_plan *plan,
                      uint64_t words[N_WORDS])
{
    const uint64_t of_pipeline[N_WORDS] = {
        (uint64_t)level,
        (uint64_t)plan->pp,
        (uint64_t)fr_plan_micro_batches(plan, request->job),
        (uint64_t)plan->recompute,
        plan->cp > 1 ? 1 + (uint64_t)plan->cp_kind : 0,
        (uint64_t)plan->is_tp_overlap | (uint64_t)plan->is_ep_overlap << 1,
        level == FR_DECISION_PIPELINE ? fr_balance_signature(request, plan)
                                      : 0};
    const uint64_t of_gradients[N_WORDS] = {
        (uint64_t)level,
        (uint64_t)plan->dp,
        (uint64_t)plan->tp,
        (uint64_t)plan->pp,
        (uint64_t)plan->cp,
        (uint64_t)plan->ep,
        (uint64_t)plan->etp,
        (uint64_t)plan->precision | (uint64_t)plan->is_ep_overlap << 8};
    memcpy(words, level == FR_DECISION_PIPELINE ? of_pipeline : of_gradients,
           sizeof of_pipeline);
}

static bool is_same_state(const fr_plan_space_choice *a,
                          const fr_plan_space_choice *b)
{
    static const fr_plan_space_axis axes[] = {
        FR_SPACE_AXIS_ZERO, FR_SPACE_AXIS_ZERO_GROUP,
        FR_SPACE_AXIS_ZERO_RESHARD, FR_SPACE_AXIS_OFFLOAD_OPTIMIZER,
        FR_SPACE_AXIS_COMPRESS};
    for (size_t i = 0; i < sizeof axes / sizeof axes[0]; i++)
        if (a->value[axes[i]] != b->value[axes[i]])
            return false;
    return true;
}

static fr_estimate_variant variant_of(const fr_plan_space_choice *choice)
{
    return (fr_estimate_variant){
        .is_overlap = choice->value[FR_SPACE_AXIS_OVERLAP] != 0,
        .is_gather_overlap = choice->value[FR_SPACE_AXIS_GATHER_OVERLAP] != 0,
        .bucket_bytes = (uint64_t)choice->value[FR_SPACE_AXIS_BUCKET]};
}

/* Does choice a wait less for gradients than choice b? */
static bool is_freer(const fr_estimate_variant *a, const fr_estimate_variant *b)
{
    if (a->is_overlap != b->is_overlap)
        return a->is_overlap;
    return a->bucket_bytes > 0 &&
           (b->bucket_bytes == 0 || a->bucket_bytes < b->bucket_bytes);
}

static fr_status add_group(const fr_decision_list *list, size_t first,
                           size_t end, fr_gradient_group *out, fr_err *err)
{
    fr_estimate_variant *at = calloc(end - first, sizeof *at);
    if (at == NULL)
        return fr_fail_no_memory(err);
    *out = (fr_gradient_group){.first = first,
                               .n = end - first,
                               .i_free = first,
                               .variants = {.at = at, .n = end - first}};
    for (size_t i = 0; i < end - first; i++) {
        at[i] = variant_of(&list->choices.items[first + i]);
        if (is_freer(&at[i], &at[out->i_free - first]))
            out->i_free = first + i;
    }
    return FR_OK;
}

static fr_status find_groups(fr_decision_list *list, fr_err *err)
{
    const fr_plan_space_choices *all = &list->choices;
    for (size_t first = 0, end; first < all->n; first = end) {
        fr_gradient_group group;
        for (end = first + 1; end < all->n; end++)
            if (!is_same_state(&all->items[first], &all->items[end]))
                break;
        FR_TRY(add_group(list, first, end, &group, err));
        if (fr_vec_push(&list->groups, group) != FR_OK) {
            free(group.variants.at);
            return fr_fail_no_memory(err);
        }
    }
    return FR_OK;
}

static fr_status find_shares(const fr_plan_space_request *request,
                             const fr_plan *plan, fr_decision_list *list,
                             fr_err *err)
{
    fr_plan one = *plan;
    list->own_layers = INT32_MAX;
    for (size_t i = 0; i < list->choices.n; i++) {
        fr_plan_space_set(request, FR_DECISION_PIPELINE,
                          &list->choices.items[i], &one);
        fr_estimate_share share =
            fr_estimate_share_of(request->model, request->job, &one);
        list->has_split[share.is_split] = true;
        if (share.own_layers < list->own_layers)
            list->own_layers = share.own_layers;
        if (fr_vec_push(&list->shares, share) != FR_OK)
            return fr_fail_no_memory(err);
    }
    return FR_OK;
}

fr_status fr_decision_lists_find(fr_decision_lists *lists,
                                 fr_decision_level level, const fr_plan *plan,
                                 const fr_decision_list **out, fr_err *err)
{
    uint64_t words[N_WORDS];
    set_words(lists->request, level, plan, words);
    const known_list *last = lists->last[level];
    if (last != NULL && memcmp(last->words, words, sizeof words) == 0) {
        *out = &last->all;
        return FR_OK;
    }
    known_list **row =
        &lists->rows[fr_hash_bytes(words, sizeof words, 7) % N_ROWS];
    for (known_list *l = *row; l != NULL; l = l->next)
        if (memcmp(l->words, words, sizeof words) == 0) {
            lists->last[level] = l;
            *out = &l->all;
            return FR_OK;
        }
    known_list *fresh = calloc(1, sizeof *fresh);
    if (fresh == NULL)
        return fr_fail_no_memory(err);
    memcpy(fresh->words, words, sizeof words);
    fresh->next = *row;
    *row = fresh;
    lists->last[level] = fresh;
    *out = &fresh->all;
    FR_TRY(fr_plan_space_list(lists->request, level, plan, NULL, NULL,
                              &fresh->all.choices, err));
    return level == FR_DECISION_GRADIENTS
               ? find_groups(&fresh->all, err)
               : find_shares(lists->request, plan, &fresh->all, err);
}

fr_status fr_decision_lists_create(const fr_plan_space_request *request,
                                   fr_decision_lists **out, fr_err *err)
{
    fr_decision_lists *lists = calloc(1, sizeof *lists);
    if (lists == NULL)
        return fr_fail_no_memory(err);
    lists->request = request;
    *out = lists;
    return FR_OK;
}

void fr_decision_lists_destroy(fr_decision_lists *lists)
{
    for (int i = 0; lists != NULL && i < N_ROWS; i++)
        while (lists->rows[i] != NULL) {
            known_list *l = lists->rows[i];
            lists->rows[i] = l->next;
            for (size_t k = 0; k < l->all.groups.n; k++)
                free(l->all.groups.items[k].variants.at);
            fr_vec_release(&l->all.groups);
            fr_vec_release(&l->all.shares);
            fr_vec_release(&l->all.choices);
            free(l);
        }
    free(lists);
}
