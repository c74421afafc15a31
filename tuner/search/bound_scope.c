/* bound_scope.c: see bound_scope.h. */
#include "tuner/search/bound_scope.h"

#include "tuner/space/plan_space_lists.h"

#include <string.h>

/* LAYERS that some seconds of two threads are enough for, and those that a side
 * search may have.  One whose layers are balanced over stages takes as long as
 * OF_A_BALANCED others. */
enum { MOST_LAYERS = 1 << 17, MOST_ON_THE_SIDE = 1 << 15, OF_A_BALANCED = 8 };

static const fr_plan_space_axis of_layout[FR_SCOPE_AXES] = {
    FR_SPACE_AXIS_WORLD, FR_SPACE_AXIS_TP, FR_SPACE_AXIS_PP,
    FR_SPACE_AXIS_CP,    FR_SPACE_AXIS_EP, FR_SPACE_AXIS_ETP};

/* These choices change a step less than a layout does; the first value that is
 * listed is the default. */
static const fr_plan_space_axis with_default[] = {
    FR_SPACE_AXIS_RANK_ORDER, FR_SPACE_AXIS_CP_KIND, FR_SPACE_AXIS_TP_OVERLAP};

bool fr_bound_scope_is_vast(const fr_plan_space_request *request,
                            const fr_plan_space_choices *layers,
                            bool is_side_search)
{
    const size_t each = request->balance != NULL ? OF_A_BALANCED : 1;
    return each * layers->n > (is_side_search ? MOST_ON_THE_SIDE : MOST_LAYERS);
}

void fr_bound_scope_coarse(const fr_plan_space_request *request,
                           const fr_plan_space_choices *layers,
                           fr_bound_scope *out)
{
    *out = (fr_bound_scope){.request = request};
    for (size_t i = 0; i < layers->n; i++)
        if (layers->items[i].value[FR_SPACE_AXIS_WORLD] > out->world)
            out->world = layers->items[i].value[FR_SPACE_AXIS_WORLD];
}

static fr_scope_layout layout_of(const int64_t value[FR_SPACE_AXIS_N])
{
    fr_scope_layout layout;
    for (int i = 0; i < FR_SCOPE_AXES; i++)
        layout.value[i] = value[of_layout[i]];
    return layout;
}

static bool is_in(const fr_bound_scope *scope, const fr_scope_layout *layout)
{
    for (int i = 0; i < scope->n_layouts; i++)
        if (memcmp(&scope->layouts[i], layout, sizeof *layout) == 0)
            return true;
    return false;
}

/*
 * Kinds of plans whose estimates cannot be compared well: they seem to fit or
 * not, and a rank has whole gradients (ZeRO 0, 1) or each for a while.
 */
enum { N_KINDS = 4 };

static int kind_of(const fr_bounded *entry, const fr_plan *plan)
{
    return (entry->seems_to_fit ? 0 : 2) + (plan->zero_stage < 2 ? 0 : 1);
}

/* Adds the first layout of a kind that is not in the scope; false: there is
 * none. */
static bool add_first(const fr_bounded_list *list, int kind,
                      fr_bound_scope *scope)
{
    for (size_t i = 0; i < list->n; i++) {
        fr_plan plan;
        fr_plan_space_plan(scope->request, &list->items[i].candidate, &plan);
        const fr_scope_layout layout = {{fr_plan_world(&plan), plan.tp, plan.pp,
                                         plan.cp, plan.ep, plan.etp}};
        if (kind_of(&list->items[i], &plan) != kind || is_in(scope, &layout))
            continue;
        scope->layouts[scope->n_layouts++] = layout;
        return true;
    }
    return false;
}

void fr_bound_scope_add(const fr_bounded_list *list, int n_max,
                        fr_bound_scope *scope)
{
    bool is_added = true;
    while (is_added) {
        is_added = false;
        for (int kind = 0; kind < N_KINDS; kind++)
            if (scope->n_layouts < n_max)
                is_added |= add_first(list, kind, scope);
    }
}

/* The smallest micro-batch, or one whose tokens a device has a use for. */
static bool has_fair_micro_batch(const fr_plan_space_request *request,
                                 const fr_plan_space_choice *layers)
{
    const int64_t tokens = layers->value[FR_SPACE_AXIS_MICRO_BATCH] *
                           request->job->seq / layers->value[FR_SPACE_AXIS_CP];
    return layers->candidate.choice[FR_SPACE_AXIS_MICRO_BATCH] == 0 ||
           fr_is_ranged(request, FR_SPACE_AXIS_MICRO_BATCH) ||
           tokens <= FR_SPACE_MOST_TOKENS;
}

static bool is_default(const fr_plan_space_request *request,
                       const fr_plan_space_choice *layers)
{
    for (size_t i = 0; i < FR_LENGTH(with_default); i++)
        if (layers->candidate.choice[with_default[i]] != 0)
            return false;
    const bool is_sequence_parallel =
        layers->value[FR_SPACE_AXIS_SEQUENCE_PARALLEL] != 0 ||
        layers->value[FR_SPACE_AXIS_TP] == 1 ||
        fr_is_pinned(request, FR_PLAN_SEQUENCE_PARALLEL);
    return is_sequence_parallel && has_fair_micro_batch(request, layers);
}

bool fr_bound_scope_has(const void *context, const fr_plan_space_choice *layers)
{
    const fr_bound_scope *scope = context;
    if (scope->n_layouts == 0)
        return 4 * layers->value[FR_SPACE_AXIS_WORLD] > 3 * scope->world &&
               is_default(scope->request, layers);
    const fr_scope_layout layout = layout_of(layers->value);
    return is_in(scope, &layout);
}
