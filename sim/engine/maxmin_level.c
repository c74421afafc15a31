/*
 * maxmin_level.c: progressive filling, restricted to what a change reaches.
 *
 * A flow moves at its level: that of the first of its links to fill up, or
 * its cap.  A link fills up at the smallest level x at which
 *
 *     sum over flows held back below x of a_il * level_i
 *       + (x + 1) * sum over the others of a_il  >  capacity_l
 *
 * so links that fill up at one level do so together and rounding cannot
 * depend on who is looked at first; by induction over rising levels the
 * solution is unique.  Links whose level may have changed wait in a queue,
 * each under a bound that its level is not below; the least is looked at
 * again (its members that are held back below the bound count as they are)
 * until bound and level meet.  When a link is decided, flows that it slows
 * down drag the other full links that they cross into the queue.  Links that
 * are not full are not in the queue: before a flow gets a level, those of its
 * links that could be full by then are looked at.
 */
#include "sim/engine/maxmin_state.h"

#include <assert.h>

enum { FAST_MEMBERS = 512 }; /* their rates add up without overflow */

/*
 * The level at which the link is full if flows below `trial` stay and all
 * others rise together; FR_NO_LEVEL when no others are left.
 */
static int64_t scan(fr_maxmin *m, const fr_level *level, int64_t trial)
{
    const fr_member *members = level->members;
    const int64_t *rate = m->rate;
    uint32_t n = level->n_members;

    m->n_scans++;
    if (level->n_odd == 0 && n <= FAST_MEMBERS) {
        int64_t sum = 0;
        uint32_t n_below = 0;
        for (uint32_t j = 0; j < n; j++) {
            int64_t x = rate[members[j].flow];
            int64_t is_below = x < trial;
            sum += x & -is_below;
            n_below += (uint32_t)is_below;
        }
        if (n_below == n)
            return FR_NO_LEVEL;
        return sum >= level->capacity ? 0
                                      : (level->capacity - sum) / (n - n_below);
    }
    fr_work sum = 0;
    uint64_t others = 0;
    for (uint32_t j = 0; j < n; j++) {
        int64_t x = rate[members[j].flow];
        if (x < trial)
            sum += (fr_work)x * members[j].coefficient;
        else
            others += members[j].coefficient;
    }
    if (others == 0)
        return FR_NO_LEVEL;
    fr_work capacity = (fr_work)level->capacity * FR_MAXMIN_ONE;
    fr_work x = sum >= capacity ? 0 : (capacity - sum) / others;
    return x > FR_MAXMIN_MAX_RATE ? FR_MAXMIN_MAX_RATE + 1 : (int64_t)x;
}

static void list_link(fr_maxmin *m, uint32_t link)
{
    if (!m->levels[link].is_listed) {
        m->levels[link].is_listed = true;
        m->dirty.items[m->dirty.n++] = link;
    }
}

void fr_maxmin_set_safe(fr_maxmin *m, uint32_t link)
{
    const fr_level *level = &m->levels[link];

    if (m->is_full[link] || level->state == FR_LINK_QUEUED)
        m->safe[link] = INT64_MAX; /* the queue sees to it */
    else if (level->n_members == 1)
        m->safe[link] = level->min_level; /* nobody to slow down but it */
    else
        m->safe[link] =
            level->min_level >= level->fastest ? level->min_level - 1 : -1;
}

static void enqueue(fr_maxmin *m, uint32_t link, int64_t key)
{
    m->levels[link].state = FR_LINK_QUEUED;
    m->levels[link].level = FR_NO_LEVEL;
    m->is_full[link] = false;
    m->safe[link] = INT64_MAX;
    fr_time_heap_set(&m->queue, link, key);
    list_link(m, link);
}

static void list_flow(fr_maxmin *m, uint32_t flow)
{
    if (!m->is_listed[flow]) {
        m->is_listed[flow] = true;
        m->listed.items[m->listed.n++] = flow;
    }
}

/*
 * Puts a full link into the queue with all that hangs on it: the flows that
 * it holds back are free again, so other full links that they cross may fill
 * up elsewhere too.  Nothing below `key` changes.
 */
static void reopen(fr_maxmin *m, uint32_t link, int64_t key)
{
    const fr_level *levels = m->levels;

    m->stack.n = 0;
    m->stack.items[m->stack.n++] = link;
    enqueue(m, link,
            key > levels[link].min_level ? key : levels[link].min_level);
    while (m->stack.n) {
        uint32_t from = m->stack.items[--m->stack.n];
        const fr_level *level = &levels[from];
        for (uint32_t j = 0; j < level->n_members; j++) {
            uint32_t i = level->members[j].flow;
            if (m->bound[i] != from)
                continue;
            const uint32_t *links = fr_maxmin_links(m, i);
            uint32_t n_links = m->paths[i].n_links;
            m->rate[i] = FR_UNKNOWN_RATE;
            m->bound[i] = FR_NOBODY;
            list_flow(m, i);
            for (uint32_t u = 0; u < n_links; u++) {
                uint32_t to = links[u];
                if (!m->is_full[to])
                    continue;
                enqueue(m, to,
                        key > levels[to].min_level ? key
                                                   : levels[to].min_level);
                m->stack.items[m->stack.n++] = to;
            }
        }
    }
}

/*
 * The level of a link outside of the queue if it is not above `most`, else
 * some bound above `most`.  From below: where links tie, the level is the
 * smallest of several that fit.
 */
static int64_t bound_level(fr_maxmin *m, const fr_level *level, int64_t most)
{
    int64_t x = level->min_level, previous = -1;

    while (x <= most && x != previous) {
        previous = x;
        x = scan(m, level, x);
    }
    return x;
}

/* The fastest flow of the link, those left out that wait for a rate. */
static int64_t find_fastest(const fr_maxmin *m, const fr_level *level)
{
    int64_t fastest = 0;

    for (uint32_t j = 0; j < level->n_members; j++) {
        int64_t rate = m->rate[level->members[j].flow];
        if (rate > fastest && rate != FR_UNKNOWN_RATE)
            fastest = rate;
    }
    return fastest;
}

/*
 * May a flow of this link get `level`?  A link outside of the queue that is
 * full by then goes into the queue, and one that could have to slow down a
 * flow that nobody else asks about.
 */
static bool ask(fr_maxmin *m, uint32_t link, int64_t level)
{
    fr_level *other = &m->levels[link];
    int64_t bound = bound_level(m, other, level);
    int64_t fastest = find_fastest(m, other);

    if (bound > level && bound >= fastest) {
        other->fastest = fastest > level ? fastest : level;
        fr_maxmin_set_safe(m, link);
        return true;
    }
    enqueue(m, link, bound);
    return bound >= level;
}

static bool is_open(fr_maxmin *m, uint32_t i, int64_t level)
{
    const uint32_t *links = fr_maxmin_links(m, i);
    uint32_t n_links = m->paths[i].n_links;
    bool is_free = true;

    for (uint32_t u = 0; u < n_links; u++)
        if (m->safe[links[u]] < level)
            is_free = ask(m, links[u], level) && is_free;
    return is_free;
}

static void give_cap(fr_maxmin *m, uint32_t i)
{
    m->rate[i] = m->paths[i].cap;
    m->bound[i] = FR_OWN_CAP;
    list_flow(m, i);
}

/*
 * Collects the flows that the link holds back if it fills up at `key`.
 * UINT32_MAX when something comes first: flows with a lower cap, which get it
 * here, or another link, which is queued here.
 */
static uint32_t collect_held(fr_maxmin *m, const fr_level *level, int64_t key)
{
    bool is_first = true;
    uint32_t n = 0;

    for (uint32_t j = 0; j < level->n_members; j++) {
        uint32_t i = level->members[j].flow;
        if (m->rate[i] <= key)
            continue;
        int64_t cap = m->paths[i].cap;
        bool is_capped = cap < key;
        if (!is_open(m, i, is_capped ? cap : key)) {
            is_first = false;
        } else if (is_capped) {
            give_cap(m, i);
            is_first = false;
        }
        m->held[n++] = i;
    }
    return is_first ? n : UINT32_MAX;
}

/* The link is full at `key`: it holds back the n flows in `held`. */
static void fill(fr_maxmin *m, uint32_t link, int64_t key, uint32_t n)
{
    fr_level *level = &m->levels[link];

    fr_time_heap_set(&m->queue, link, INT64_MAX);
    level->state = FR_LINK_DONE;
    for (uint32_t j = 0; j < n; j++) {
        uint32_t i = m->held[j];
        /* One that waits for its rate has no full link left. */
        uint32_t n_links = 0;
        if (m->rate[i] != FR_UNKNOWN_RATE)
            n_links = m->paths[i].n_links;
        const uint32_t *links = fr_maxmin_links(m, i);
        m->rate[i] = key;
        m->bound[i] = link;
        list_flow(m, i);
        for (uint32_t u = 0; u < n_links; u++)
            if (m->is_full[links[u]])
                reopen(m, links[u], key);
    }
    level->level = key;
    m->is_full[link] = true;
}

/* Its flows are all held back elsewhere. */
static void leave_open(fr_maxmin *m, uint32_t link)
{
    fr_level *level = &m->levels[link];

    fr_time_heap_set(&m->queue, link, INT64_MAX);
    level->state = FR_LINK_DONE;
    level->fastest = find_fastest(m, level);
    fr_maxmin_set_safe(m, link);
}

/* A new flow must be seen by a link of the queue, or be free. */
static void place_new_flow(fr_maxmin *m, uint32_t i)
{
    const uint32_t *links = fr_maxmin_links(m, i);
    uint32_t narrowest = FR_NOBODY;

    for (uint32_t u = 0; u < m->paths[i].n_links; u++) {
        uint32_t link = links[u];
        if (m->levels[link].state == FR_LINK_QUEUED)
            return;
        if (narrowest == FR_NOBODY ||
            m->levels[link].min_level < m->levels[narrowest].min_level)
            narrowest = link;
    }
    if (narrowest != FR_NOBODY) {
        enqueue(m, narrowest, m->levels[narrowest].min_level);
        return;
    }
    give_cap(m, i);
}

static bool is_new(const fr_maxmin *m, uint32_t i)
{
    return m->flows[i].is_alive && m->home[i] == FR_NOBODY;
}

/* Nothing is held back at a lower level than before below this one. */
static int64_t least_change(const fr_maxmin *m)
{
    int64_t least = m->least_removed;

    for (size_t j = 0; j < m->listed.n; j++) {
        uint32_t i = m->listed.items[j];
        const uint32_t *links = fr_maxmin_links(m, i);
        if (!is_new(m, i))
            continue;
        least = m->paths[i].cap < least ? m->paths[i].cap : least;
        for (uint32_t u = 0; u < m->paths[i].n_links; u++) {
            int64_t level = m->levels[links[u]].min_level;
            least = level < least ? level : least;
        }
    }
    return least;
}

static void open_changed(fr_maxmin *m)
{
    int64_t least = least_change(m);
    size_t n_new = m->listed.n;

    for (size_t c = 0; c < m->changed.n; c++) {
        uint32_t link = m->changed.items[c];
        fr_level *level = &m->levels[link];
        level->is_changed = false;
        if (m->is_full[link])
            reopen(m, link, least);
    }
    m->changed.n = 0;
    for (size_t j = 0; j < n_new; j++)
        if (is_new(m, m->listed.items[j]))
            place_new_flow(m, m->listed.items[j]);
}

static void open_all(fr_maxmin *m)
{
    for (size_t c = 0; c < m->changed.n; c++)
        m->levels[m->changed.items[c]].is_changed = false;
    m->changed.n = 0;
    for (uint32_t i = 0; i < m->n_used; i++) {
        bool has_links = m->paths[i].n_links > 0;
        if (!m->flows[i].is_alive)
            continue;
        list_flow(m, i);
        m->rate[i] = has_links ? FR_UNKNOWN_RATE : m->paths[i].cap;
        m->bound[i] = has_links ? FR_NOBODY : FR_OWN_CAP;
    }
    for (uint32_t link = 0; link < m->n_links; link++)
        if (m->levels[link].n_members || m->levels[link].is_listed)
            enqueue(m, link, m->levels[link].min_level);
        else
            m->is_full[link] = false, m->levels[link].level = FR_NO_LEVEL;
}

/* Decides the links of the queue; false when it takes too many looks. */
static bool drain(fr_maxmin *m, uint64_t max_scans)
{
    while (m->queue.n) {
        int64_t key = fr_time_heap_next_ps(&m->queue);
        uint32_t link = fr_time_heap_next(&m->queue);
        fr_level *level = &m->levels[link];
        int64_t x = scan(m, level, key);
        if (x == FR_NO_LEVEL) {
            leave_open(m, link);
        } else if (x != key) {
            fr_time_heap_set(&m->queue, link, x);
        } else {
            uint32_t n_held = collect_held(m, level, key);
            if (n_held != UINT32_MAX)
                fill(m, link, key, n_held);
        }
        if (m->n_scans > max_scans)
            return false;
    }
    return true;
}

void fr_maxmin_find_levels(fr_maxmin *m, bool is_all)
{
    /* Enough for all links several times over; rising levels need less. */
    uint64_t max_scans = m->n_scans + 1000 + 64 * m->n_links;

    if (is_all) {
        open_all(m);
        max_scans = UINT64_MAX;
    } else {
        open_changed(m);
    }
    if (drain(m, max_scans))
        return;
    open_all(m);
    (void)drain(m, UINT64_MAX);
}
