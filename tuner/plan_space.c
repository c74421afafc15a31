/* plan_space.c: the walk over the table of axes. */
#include "tuner/plan_space.h"

#include <stdlib.h>
#include <string.h>

typedef struct walk {
    fr_plan_space *space;
    fr_illegal_fn on_illegal;
    void *context;
    fr_err *err;
} walk;

static fr_status add(fr_plan_space *space, const fr_candidate *candidate,
                     fr_err *err)
{
    if (space->n == space->cap) {
        size_t cap = space->cap ? 2 * space->cap : 256;
        fr_candidate *at = realloc(space->at, cap * sizeof *at);
        if (at == NULL)
            return fr_fail_no_memory(err);
        space->at = at;
        space->cap = cap;
    }
    space->at[space->n++] = *candidate;
    return FR_OK;
}

static fr_status visit(walk *w, fr_candidate *candidate, const fr_plan *plan,
                       int i_axis)
{
    const fr_plan_space_request *request = &w->space->request;
    if (i_axis == FR_SPACE_AXIS_N) {
        fr_err why;
        fr_status status =
            fr_plan_check(plan, request->model, request->job, &why);
        if (status == FR_OK)
            return add(w->space, candidate, w->err);
        if (status == FR_NO_MEMORY)
            return fr_fail_no_memory(w->err);
        w->space->n_illegal++;
        if (w->on_illegal != NULL)
            w->on_illegal(w->context, why.text);
        return FR_OK;
    }
    const fr_plan_space_axis_row *axis = &fr_plan_space_axes[i_axis];
    fr_plan_space_values values = {0};
    axis->list(request, plan, &values);
    for (int i = 0; i < values.n; i++) {
        fr_plan next = *plan;
        axis->set(request, &next, values.at[i]);
        candidate->choice[i_axis] = (uint8_t)i;
        FR_TRY(visit(w, candidate, &next, i_axis + 1));
    }
    return FR_OK;
}

fr_status fr_plan_space_create(const fr_plan_space_request *request,
                               fr_illegal_fn on_illegal, void *context,
                               fr_plan_space *out, fr_err *err)
{
    fr_plan_space space = {.request = *request};
    walk w = {&space, on_illegal, context, err};
    fr_candidate candidate;
    memset(&candidate, 0, sizeof candidate);
    fr_status status = visit(&w, &candidate, &request->base, 0);
    if (status != FR_OK) {
        fr_plan_space_release(&space);
        return status;
    }
    *out = space;
    return FR_OK;
}

void fr_plan_space_release(fr_plan_space *space)
{
    free(space->at);
    space->at = NULL;
    space->n = space->cap = 0;
}

void fr_plan_space_at(const fr_plan_space *space, size_t i, fr_plan *out)
{
    fr_plan plan = space->request.base;
    for (int a = 0; a < FR_SPACE_AXIS_N; a++) {
        fr_plan_space_values values = {0};
        fr_plan_space_axes[a].list(&space->request, &plan, &values);
        fr_plan_space_axes[a].set(&space->request, &plan,
                                  values.at[space->at[i].choice[a]]);
    }
    *out = plan;
}
