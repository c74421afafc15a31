/* weight_uses.c: see weight_uses.h. */
#include "plan/outline/weight_uses.h"

#include "plan/outline/stages.h"

fr_weight_ends fr_weight_ends_of(const fr_model *model)
{
    const int32_t n = (int32_t)(model->n_layers + model->n_mtp_layers);
    return (fr_weight_ends){
        .embed = n, .head = model->is_tied ? n : n + 1, .n_sets = n + 2};
}

/* There is room for it. */
static inline void add(fr_weight_uses *uses, int32_t set, bool is_backward)
{
    uses->items[uses->n++] =
        (fr_weight_use){.set = set, .is_backward = is_backward};
}

/* Each token ahead has its loss, so the head is used before the layers that
 * predict later tokens, too. */
static void list_backward(const fr_model *model, const fr_stage_span *span,
                          fr_weight_uses *out)
{
    const fr_weight_ends ends = fr_weight_ends_of(model);
    const int32_t n = span->end - span->first;
    const int64_t n_heads = span->has_head ? 1 + model->n_mtp_layers : 0;
    for (int32_t i = 0; i <= n; i++) {
        if (i < n_heads)
            add(out, ends.head, true);
        if (i < n)
            add(out, span->end - 1 - i, true);
    }
    /* In backward only a norm uses the embedding's weights. */
    if (span->has_embed && model->has_embed_norm)
        add(out, ends.embed, true);
}

static void list_forward(const fr_model *model, const fr_stage_span *span,
                         fr_weight_uses *out)
{
    if (span->has_embed)
        add(out, fr_weight_ends_of(model).embed, false);
    for (int32_t i = span->first; i < span->end; i++)
        add(out, i, false);
}

static void link_uses(fr_weight_uses *uses, int32_t n_sets, int32_t *next)
{
    for (int32_t i = 0; i < n_sets; i++)
        next[i] = -1;
    for (size_t i = uses->n; i-- > 0;) {
        fr_weight_use *use = &uses->items[i];
        use->next = next[use->set];
        next[use->set] = (int32_t)i;
    }
}

/* Are the weights dropped after use `now`, when those of all uses before
 * n_gathered have been asked for? */
static bool is_dropped(const fr_plan *plan, const fr_weight_uses *uses,
                       size_t now, size_t n_gathered)
{
    const fr_weight_use *use = &uses->items[now];
    if (use->next < 0)
        return true;
    const size_t next = (size_t)use->next;
    bool is_next_back = uses->items[next].is_backward;
    bool is_next_round = use->is_backward && !is_next_back;
    if (next < n_gathered ||
        (next <= now + 1 + (size_t)plan->n_prefetch && !is_next_round))
        return false;
    /* The embedding has no use in backward. */
    return plan->is_resharded ||
           (plan->pp == 1 && (use->is_backward || !is_next_back));
}

static void decide(const fr_plan *plan, fr_weight_uses *uses, bool *is_there)
{
    size_t n_gathered = 0;
    for (size_t now = 0; now < uses->n; now++) {
        const size_t end = fr_weight_uses_reach(plan, uses, now);
        for (; n_gathered < end; n_gathered++) {
            fr_weight_use *use = &uses->items[n_gathered];
            use->is_gathered = !is_there[use->set];
            is_there[use->set] = true;
        }
        fr_weight_use *use = &uses->items[now];
        use->is_dropped = is_dropped(plan, uses, now, n_gathered);
        if (use->is_dropped)
            is_there[use->set] = false;
    }
}

fr_status fr_weight_uses_list(const fr_plan *plan, const fr_model *model,
                              int32_t rank, const fr_task *tasks,
                              size_t n_tasks, fr_weight_uses *out, fr_err *err)
{
    const int32_t n_sets = fr_weight_ends_of(model).n_sets;
    int32_t *next = malloc((size_t)n_sets * sizeof *next);
    bool *is_there = calloc((size_t)n_sets, sizeof *is_there);
    bool is_ok = next != NULL && is_there != NULL;
    for (size_t t = 0; is_ok && t < n_tasks; t++) {
        const fr_stage_span span =
            fr_stage_span_held(plan, model, rank, tasks[t].chunk);
        const size_t n_most =
            (size_t)(span.end - span.first + 2 + model->n_mtp_layers);
        is_ok = fr_vec_reserve(out, n_most) == FR_OK;
        if (is_ok && tasks[t].kind == FR_TASK_FORWARD)
            list_forward(model, &span, out);
        else if (is_ok && tasks[t].kind == FR_TASK_BACKWARD)
            list_backward(model, &span, out);
        /* The other part of a split backward reads no weights. */
    }
    if (is_ok) {
        link_uses(out, n_sets, next);
        decide(plan, out, is_there);
    }
    free(next);
    free(is_there);
    return is_ok ? FR_OK : fr_fail_no_memory(err);
}
