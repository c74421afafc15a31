/* decision_lists.c: see decision_lists.h. */
#include "tuner/space/decision_lists.h"

#include "core/base/memo.h"
#include "tuner/partition/balance_layers.h"

#include <stdlib.h>
#include <string.h>

enum { N_FIELDS = 8 };

/* The values that the list of a level depends on. */
typedef struct list_key {
    int64_t level, fields[N_FIELDS];
    /* Only level PIPELINE uses these; balanced splits depend on all of them,
     * but are rare. */
    int64_t n_micro, cp_kind;
    uint64_t splits;
    uint64_t shares; /* of the batch; 0: even */
} list_key;

/* For PIPELINE schedules and splits depend on ranks and micro-batches, the
 * legality of a split backward on context parallelism and TP overlap, and that
 * of combined 1F1B on chunks. */
static const fr_plan_field_id of_pipeline[N_FIELDS] = {
    FR_PLAN_PP, FR_PLAN_RECOMPUTE, FR_PLAN_TP_OVERLAP, FR_PLAN_EP_OVERLAP};
enum { N_OF_PIPELINE = 4 };
static const fr_plan_field_id of_gradients[N_FIELDS] = {
    FR_PLAN_DP, FR_PLAN_TP,  FR_PLAN_PP,        FR_PLAN_CP,
    FR_PLAN_EP, FR_PLAN_ETP, FR_PLAN_PRECISION, FR_PLAN_EP_OVERLAP};

typedef struct known_list {
    list_key key;
    fr_decision_list all;
} known_list;

struct fr_decision_lists {
    const fr_plan_space_request *request;
    fr_memo known;                         /* list_key -> known_list * */
    const known_list *last[FR_DECISION_N]; /* neighbours often want the same */
};

static void set_key(const fr_plan_space_request *request,
                    fr_decision_level level, const fr_plan *plan, list_key *key)
{
    const bool is_pipeline = level == FR_DECISION_PIPELINE;
    const fr_plan_field_id *ids = is_pipeline ? of_pipeline : of_gradients;
    const int n = is_pipeline ? N_OF_PIPELINE : N_FIELDS;
    *key = (list_key){.level = level};
    for (int i = 0; i < n; i++)
        key->fields[i] = fr_field_get_i64(&fr_plan_fields[ids[i]].field, plan);
    if (plan->n_shares > 0)
        key->shares =
            fr_field_hash(&fr_plan_fields[FR_PLAN_BATCH_SHARES].field, plan, 1);
    if (!is_pipeline)
        return;
    key->n_micro = fr_plan_micro_batches(plan, request->job);
    key->cp_kind = plan->cp > 1 ? 1 + (int64_t)plan->cp_kind : 0;
    key->splits = fr_balance_signature(request, plan);
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
    list_key key;
    set_key(lists->request, level, plan, &key);
    const known_list *last = lists->last[level];
    if (last != NULL && memcmp(&last->key, &key, sizeof key) == 0) {
        *out = &last->all;
        return FR_OK;
    }
    known_list **known = fr_memo_find(&lists->known, &key, sizeof key);
    if (known != NULL) {
        lists->last[level] = *known;
        *out = &(*known)->all;
        return FR_OK;
    }
    known_list *fresh = calloc(1, sizeof *fresh);
    if (fresh == NULL ||
        fr_memo_add(&lists->known, &key, sizeof key, &fresh) == NULL) {
        free(fresh);
        return fr_fail_no_memory(err);
    }
    fresh->key = key;
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
    lists->known.value_bytes = sizeof(known_list *);
    *out = lists;
    return FR_OK;
}

static void destroy_list(known_list *l)
{
    for (size_t k = 0; k < l->all.groups.n; k++)
        free(l->all.groups.items[k].variants.at);
    fr_vec_release(&l->all.groups);
    fr_vec_release(&l->all.shares);
    fr_vec_release(&l->all.choices);
    free(l);
}

void fr_decision_lists_destroy(fr_decision_lists *lists)
{
    if (lists == NULL)
        return;
    known_list **l = NULL;
    while ((l = fr_memo_next(&lists->known, l)) != NULL)
        destroy_list(*l);
    fr_memo_release(&lists->known);
    free(lists);
}
