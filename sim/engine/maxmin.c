/* maxmin.c: flows and the links that they use; the rest of the solver. */
#include "sim/engine/maxmin_state.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FLOWS = 1 << 28 };

/* Room for n items; `array` points at the pointer to them. */
static fr_status resize(void *array, size_t item_bytes, size_t n, fr_err *err)
{
    void *items;
    memcpy(&items, array, sizeof items);
    items = realloc(items, (n ? n : 1) * item_bytes);
    if (items == NULL)
        return fr_fail_no_memory(err);
    memcpy(array, &items, sizeof items);
    return FR_OK;
}

#define RESIZE(array, n, err) resize(&(array), sizeof *(array), (n), (err))

static fr_status create_links(fr_maxmin *m, const int64_t *capacity,
                              fr_err *err)
{
    size_t n = m->n_links ? m->n_links : 1;

    FR_TRY_CALLOC(m->levels, n, err);
    FR_TRY_CALLOC(m->coefficient_sum, n, err);
    FR_TRY_CALLOC(m->clocks, n, err);
    FR_TRY_CALLOC(m->safe, n, err);
    FR_TRY_CALLOC(m->is_full, n, err);
    for (size_t l = 0; l < m->n_links; l++) {
        assert(capacity[l] >= 0 && capacity[l] <= FR_MAXMIN_MAX_RATE);
        m->levels[l].capacity = capacity[l];
        m->levels[l].level = FR_NO_LEVEL;
        m->levels[l].min_level = FR_NO_LEVEL;
        m->clocks[l].root = FR_NOBODY;
    }
    FR_TRY(RESIZE(m->changed.items, n, err));
    FR_TRY(RESIZE(m->dirty.items, n, err));
    FR_TRY(RESIZE(m->stack.items, n, err));
    FR_TRY(fr_time_heap_reserve(&m->queue, n, err));
    return fr_time_heap_reserve(&m->ends, n, err);
}

fr_status fr_maxmin_create(size_t n_links, const int64_t *capacity,
                           fr_maxmin **out, fr_err *err)
{
    fr_maxmin *m;
    FR_TRY_CALLOC(m, 1, err);
    m->n_links = n_links;
    m->least_removed = INT64_MAX;
    fr_status status = create_links(m, capacity, err);
    if (status != FR_OK) {
        fr_maxmin_destroy(m);
        return status;
    }
    *out = m;
    return FR_OK;
}

void fr_maxmin_destroy(fr_maxmin *m)
{
    if (m == NULL)
        return;
    for (size_t l = 0; m->levels != NULL && l < m->n_links; l++)
        free(m->levels[l].members);
    for (size_t i = 0; i < m->n_used; i++) {
        free(m->flows[i].uses);
        free(m->flows[i].far);
    }
    free(m->levels);
    free(m->coefficient_sum);
    free(m->clocks);
    free(m->safe);
    free(m->is_full);
    free(m->held);
    free(m->rate);
    free(m->paths);
    free(m->bound);
    free(m->home);
    free(m->is_listed);
    free(m->flows);
    free(m->free_flows.items);
    free(m->changed.items);
    free(m->listed.items);
    free(m->dirty.items);
    free(m->stack.items);
    fr_time_heap_release(&m->queue);
    fr_time_heap_release(&m->ends);
    free(m);
}

static fr_status grow_flows(fr_maxmin *m, fr_err *err)
{
    size_t n = m->cap_flows ? 2 * m->cap_flows : 64;

    if (n > MAX_FLOWS)
        return fr_fail(err, FR_FAILURE, "more than %d flows at once",
                       MAX_FLOWS);
    FR_TRY(RESIZE(m->rate, n, err));
    FR_TRY(RESIZE(m->bound, n, err));
    FR_TRY(RESIZE(m->home, n, err));
    FR_TRY(RESIZE(m->is_listed, n, err));
    FR_TRY(RESIZE(m->paths, n, err));
    FR_TRY(RESIZE(m->flows, n, err));
    FR_TRY(RESIZE(m->held, n, err));
    FR_TRY(RESIZE(m->free_flows.items, n, err));
    FR_TRY(RESIZE(m->listed.items, n, err));
    FR_TRY(fr_time_heap_reserve(&m->ends, m->n_links + n, err));
    m->cap_flows = n;
    return FR_OK;
}

/* A slot for a flow with n_uses uses; nothing has changed on failure. */
static fr_status take_slot(fr_maxmin *m, size_t n_uses, uint32_t *out,
                           fr_err *err)
{
    uint32_t i;

    if (m->free_flows.n) {
        i = m->free_flows.items[m->free_flows.n - 1];
    } else {
        if (m->n_used == m->cap_flows)
            FR_TRY(grow_flows(m, err));
        i = (uint32_t)m->n_used;
        memset(&m->flows[i], 0, sizeof m->flows[i]);
        m->bound[i] = FR_NOBODY;
        m->home[i] = FR_NOBODY;
        m->is_listed[i] = false;
        m->free_flows.items[m->free_flows.n++] = i;
        m->n_used++;
    }
    fr_flow *flow = &m->flows[i];
    if (n_uses > flow->cap_uses) {
        FR_TRY(RESIZE(flow->uses, n_uses, err));
        FR_TRY(RESIZE(flow->far, n_uses, err));
        flow->cap_uses = (uint32_t)n_uses;
    }
    *out = i;
    return FR_OK;
}

static fr_status reserve_members(fr_maxmin *m, const fr_maxmin_use *uses,
                                 size_t n_uses, fr_err *err)
{
    for (size_t u = 0; u < n_uses; u++) {
        assert(uses[u].link < m->n_links && uses[u].coefficient > 0);
        fr_level *level = &m->levels[uses[u].link];
        if (level->n_members < level->cap_members)
            continue;
        uint32_t n = level->cap_members ? 2 * level->cap_members : 4;
        FR_TRY(RESIZE(level->members, n, err));
        level->cap_members = n;
    }
    return FR_OK;
}

/* The level that the link cannot fill up below, whoever does what. */
static void set_min_level(fr_maxmin *m, uint32_t link)
{
    fr_level *level = &m->levels[link];
    uint64_t sum = m->coefficient_sum[link];

    if (level->min_level > level->fastest && level->min_level != FR_NO_LEVEL)
        level->fastest = level->min_level;
    if (level->n_members == 0) {
        level->min_level = FR_NO_LEVEL;
        level->fastest = 0;
    } else if (level->n_odd == 0) {
        level->min_level = level->capacity / level->n_members;
    } else {
        fr_work least = (fr_work)level->capacity * FR_MAXMIN_ONE / sum;
        level->min_level = least > FR_MAXMIN_MAX_RATE ? FR_MAXMIN_MAX_RATE + 1
                                                      : (int64_t)least;
    }
    fr_maxmin_set_safe(m, link);
}

static void note_change(fr_maxmin *m, uint32_t link)
{
    fr_level *level = &m->levels[link];
    if (!level->is_changed) {
        level->is_changed = true;
        m->changed.items[m->changed.n++] = link;
    }
    set_min_level(m, link);
}

static void list_flow(fr_maxmin *m, uint32_t flow)
{
    if (!m->is_listed[flow]) {
        m->is_listed[flow] = true;
        m->listed.items[m->listed.n++] = flow;
    }
}

fr_status fr_maxmin_add(fr_maxmin *m, fr_work work, int64_t cap,
                        const fr_maxmin_use *uses, size_t n_uses, uint32_t tag,
                        uint32_t *out, fr_err *err)
{
    uint32_t i = 0;

    assert(cap >= 0 && cap <= FR_MAXMIN_MAX_RATE);
    FR_TRY(take_slot(m, n_uses, &i, err));
    FR_TRY(reserve_members(m, uses, n_uses, err));
    m->free_flows.n--;
    fr_flow *flow = &m->flows[i];
    fr_flow_path *path = &m->paths[i];
    uint32_t *links = n_uses <= FR_NEAR_LINKS ? path->near : flow->far;
    path->cap = cap;
    path->n_links = (uint32_t)n_uses;
    for (size_t u = 0; u < n_uses; u++) {
        uint32_t link = uses[u].link;
        uint64_t coefficient = uses[u].coefficient;
        fr_level *level = &m->levels[link];
        links[u] = link;
        flow->uses[u] = (fr_use){link, level->n_members, coefficient};
        level->members[level->n_members++] =
            (fr_member){i, (uint32_t)u, coefficient};
        level->n_odd += coefficient != FR_MAXMIN_ONE;
        m->coefficient_sum[link] += coefficient;
        note_change(m, link);
    }
    flow->mark = work;
    m->home[i] = FR_NOBODY;
    flow->tag = tag;
    flow->is_alive = true;
    m->rate[i] = FR_UNKNOWN_RATE;
    m->bound[i] = FR_NOBODY;
    list_flow(m, i);
    m->n_flows++;
    if (out != NULL)
        *out = i;
    return FR_OK;
}

static void leave_links(fr_maxmin *m, uint32_t i)
{
    const fr_flow *flow = &m->flows[i];

    for (uint32_t u = 0; u < m->paths[i].n_links; u++) {
        const fr_use *use = &flow->uses[u];
        fr_level *level = &m->levels[use->link];
        fr_member last = level->members[--level->n_members];
        level->members[use->position] = last;
        m->flows[last.flow].uses[last.i_use].position = use->position;
        level->n_odd -= use->coefficient != FR_MAXMIN_ONE;
        m->coefficient_sum[use->link] -= use->coefficient;
        note_change(m, use->link);
    }
}

void fr_maxmin_remove(fr_maxmin *m, uint32_t i)
{
    int64_t rate = m->rate[i] == FR_UNKNOWN_RATE ? 0 : m->rate[i];

    assert(i < m->n_used && m->flows[i].is_alive);
    (void)fr_maxmin_detach(m, i, m->now_ps);
    leave_links(m, i);
    if (rate < m->least_removed)
        m->least_removed = rate;
    m->bound[i] = FR_NOBODY;
    m->flows[i].is_alive = false;
    m->free_flows.items[m->free_flows.n++] = i;
    m->n_flows--;
}

/* The next flow of `server` that has ended by now_ps, FR_NOBODY: none. */
static uint32_t find_finished(const fr_maxmin *m, uint32_t server,
                              int64_t now_ps)
{
    if (server >= m->n_links)
        return server - (uint32_t)m->n_links;
    const fr_link_clock *clock = &m->clocks[server];
    return m->flows[clock->root].mark <= fr_link_clock_progress(clock, now_ps)
               ? clock->root
               : FR_NOBODY;
}

size_t fr_maxmin_take_finished(fr_maxmin *m, int64_t now_ps, uint32_t *tags,
                               size_t n_max)
{
    size_t n = 0;

    assert(now_ps >= m->now_ps);
    m->now_ps = now_ps;
    while (n < n_max && fr_time_heap_next_ps(&m->ends) <= now_ps) {
        uint32_t i = find_finished(m, fr_time_heap_next(&m->ends), now_ps);
        assert(i != FR_NOBODY);
        tags[n++] = m->flows[i].tag;
        fr_maxmin_remove(m, i);
    }
    return n;
}

void fr_maxmin_solve(fr_maxmin *m, int64_t now_ps)
{
    assert(now_ps >= m->now_ps);
    m->now_ps = now_ps;
    fr_maxmin_find_levels(m, false);
    fr_maxmin_commit(m, now_ps);
}

int64_t fr_maxmin_next_ps(const fr_maxmin *m)
{
    return fr_time_heap_next_ps(&m->ends);
}

fr_work fr_maxmin_remaining(const fr_maxmin *m, uint32_t i, int64_t now_ps)
{
    const fr_flow *flow = &m->flows[i];
    fr_work done = 0;

    if (m->home[i] == FR_OWN_CAP)
        done = (fr_work)m->paths[i].cap * (fr_work)(now_ps - flow->since_ps);
    else if (m->home[i] != FR_NOBODY)
        done = fr_link_clock_progress(&m->clocks[m->home[i]], now_ps);
    return flow->mark > done ? flow->mark - done : 0;
}

size_t fr_maxmin_n_flows(const fr_maxmin *m)
{
    return m->n_flows;
}
