/*
 * maxmin_clock.c: when flows end.  All flows that one full link holds back
 * move at the same rate, so they share a clock: its progress is the work that
 * each has done since it came under it, a flow ends when the progress reaches
 * its mark.  Marks stand in a pairing heap for each link (Fredman et al.,
 * Algorithmica 1, 1986), the first of each link in one heap of times.
 */
#include "sim/engine/maxmin_state.h"

#include <assert.h>

fr_work fr_link_clock_progress(const fr_link_clock *clock, int64_t now_ps)
{
    return clock->progress +
           (fr_work)clock->rate * (fr_work)(now_ps - clock->since_ps);
}

int64_t fr_maxmin_duration_ps(fr_work work, int64_t rate)
{
    fr_work divisor = (fr_work)rate;

    if (work == 0)
        return 0;
    if (rate <= 0)
        return INT64_MAX;
    fr_work duration = work / divisor;
    duration += (fr_work)(duration * divisor != work);
    return duration > INT64_MAX ? INT64_MAX : (int64_t)duration;
}

static int64_t end_ps(int64_t now_ps, fr_work work, int64_t rate)
{
    int64_t duration_ps = fr_maxmin_duration_ps(work, rate);
    return duration_ps > INT64_MAX - now_ps ? INT64_MAX : now_ps + duration_ps;
}

/* ---- pairing heap of flows by mark --------------------------------------- */

static uint32_t meld(fr_flow *flows, uint32_t a, uint32_t b)
{
    if (a == FR_NOBODY)
        return b;
    if (b == FR_NOBODY)
        return a;
    if (flows[b].mark < flows[a].mark) {
        uint32_t other = a;
        a = b;
        b = other;
    }
    flows[b].next = flows[a].child;
    flows[b].previous = a;
    if (flows[a].child != FR_NOBODY)
        flows[flows[a].child].previous = b;
    flows[a].child = b;
    flows[a].next = FR_NOBODY;
    flows[a].previous = FR_NOBODY;
    return a;
}

/* Siblings in pairs from the left, then the pairs from the right. */
static uint32_t meld_siblings(fr_flow *flows, uint32_t first)
{
    uint32_t pairs = FR_NOBODY, root = FR_NOBODY;

    while (first != FR_NOBODY) {
        uint32_t second = flows[first].next, rest = FR_NOBODY;
        if (second != FR_NOBODY)
            rest = flows[second].next;
        uint32_t pair = meld(flows, first, second);
        flows[pair].previous = pairs;
        pairs = pair;
        first = rest;
    }
    while (pairs != FR_NOBODY) {
        uint32_t left = flows[pairs].previous;
        flows[pairs].next = FR_NOBODY;
        flows[pairs].previous = FR_NOBODY;
        root = meld(flows, pairs, root);
        pairs = left;
    }
    return root;
}

static uint32_t cut_out(fr_flow *flows, uint32_t root, uint32_t i)
{
    fr_flow *flow = &flows[i];
    uint32_t below = meld_siblings(flows, flow->child);

    flow->child = FR_NOBODY;
    if (i == root)
        return below;
    fr_flow *previous = &flows[flow->previous];
    if (previous->child == i)
        previous->child = flow->next;
    else
        previous->next = flow->next;
    if (flow->next != FR_NOBODY)
        flows[flow->next].previous = flow->previous;
    return meld(flows, root, below);
}

/* ---- flows on clocks ----------------------------------------------------- */

static void set_end(fr_maxmin *m, uint32_t link, int64_t now_ps)
{
    fr_link_clock *clock = &m->clocks[link];
    int64_t time_ps = INT64_MAX;

    if (clock->root != FR_NOBODY) {
        fr_work mark = m->flows[clock->root].mark;
        fr_work progress = fr_link_clock_progress(clock, now_ps);
        fr_work left = mark > progress ? mark - progress : 0;
        time_ps = end_ps(now_ps, left, clock->rate);
    }
    fr_time_heap_set(&m->ends, link, time_ps);
}

static void detach_from_link(fr_maxmin *m, uint32_t i, int64_t now_ps)
{
    uint32_t link = m->home[i];
    fr_link_clock *clock = &m->clocks[link];
    bool is_first = clock->root == i;

    clock->root = cut_out(m->flows, clock->root, i);
    if (is_first)
        set_end(m, link, now_ps);
}

fr_work fr_maxmin_detach(fr_maxmin *m, uint32_t i, int64_t now_ps)
{
    fr_work left = fr_maxmin_remaining(m, i, now_ps);

    if (m->home[i] == FR_OWN_CAP)
        fr_time_heap_set(&m->ends, (uint32_t)m->n_links + i, INT64_MAX);
    else if (m->home[i] != FR_NOBODY)
        detach_from_link(m, i, now_ps);
    m->home[i] = FR_NOBODY;
    return left;
}

static void attach(fr_maxmin *m, uint32_t i, fr_work left, int64_t now_ps)
{
    fr_flow *flow = &m->flows[i];
    uint32_t home = m->bound[i];

    m->home[i] = home;
    if (home == FR_OWN_CAP) {
        flow->mark = left;
        flow->since_ps = now_ps;
        fr_time_heap_set(&m->ends, (uint32_t)m->n_links + i,
                         end_ps(now_ps, left, m->paths[i].cap));
        return;
    }
    fr_link_clock *clock = &m->clocks[home];
    assert(clock->since_ps == now_ps);
    if (clock->root == FR_NOBODY)
        clock->progress = 0;
    flow->mark = clock->progress + left;
    flow->child = flow->next = flow->previous = FR_NOBODY;
    clock->root = meld(m->flows, clock->root, i);
}

void fr_maxmin_commit(fr_maxmin *m, int64_t now_ps)
{
    for (size_t d = 0; d < m->dirty.n; d++) {
        fr_link_clock *clock = &m->clocks[m->dirty.items[d]];
        clock->progress = fr_link_clock_progress(clock, now_ps);
        clock->since_ps = now_ps;
    }
    for (size_t j = 0; j < m->listed.n; j++) {
        uint32_t i = m->listed.items[j];
        m->is_listed[i] = false;
        if (m->bound[i] == m->home[i]) /* dead ones have neither */
            continue;
        attach(m, i, fr_maxmin_detach(m, i, now_ps), now_ps);
    }
    for (size_t d = 0; d < m->dirty.n; d++) {
        uint32_t link = m->dirty.items[d];
        fr_level *level = &m->levels[link];
        fr_link_clock *clock = &m->clocks[link];
        level->is_listed = false;
        level->state = FR_LINK_CLEAN;
        assert(clock->root == FR_NOBODY || level->level != FR_NO_LEVEL);
        clock->rate = clock->root == FR_NOBODY ? 0 : level->level;
        set_end(m, link, now_ps);
    }
    m->listed.n = 0;
    m->dirty.n = 0;
    m->least_removed = INT64_MAX;
}
