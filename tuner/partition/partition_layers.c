/* partition_layers.c: a recurrence over stages, and moves between chunks. */
#include "tuner/partition/partition_layers.h"

#include "core/base/minmax.h"

#include <stdlib.h>
#include <string.h>

static int32_t chunks_of(const fr_partition_problem *p)
{
    return p->n_stages / p->n_ranks;
}

static int64_t time_of(const fr_partition_stage *stage, int32_t i, int32_t j)
{
    return stage->pass_ps[j] - stage->pass_ps[i] + stage->end_ps;
}

static uint64_t bytes_of(const fr_partition_problem *p,
                         const fr_partition_stage *stage, int32_t i, int32_t j)
{
    uint64_t kept = stage->kept_bytes[j] - stage->kept_bytes[i];
    return stage->state_bytes[j] - stage->state_bytes[i] + stage->end_bytes +
           kept * stage->n_live / (uint64_t)chunks_of(p);
}

static double square(int64_t ps)
{
    double s = 1e-12 * (double)ps;
    return s * s;
}

/* ---- a split as it is ---------------------------------------------------- */

/* The time and the memory of a rank. */
typedef struct load {
    int64_t ps;
    uint64_t bytes, headroom_bytes;
} load;

static void measure_loads(const fr_partition_problem *p, const int32_t *split,
                          load *loads, fr_partition *out)
{
    *out = (fr_partition){.fits = true};
    memset(loads, 0, (size_t)p->n_ranks * sizeof *loads);
    for (int32_t s = 0, i = 0; s < p->n_stages; i += split[s++]) {
        const fr_partition_stage *stage = &p->stages[s];
        load *own = &loads[stage->rank];
        out->fits = out->fits && split[s] >= stage->n_least;
        own->ps += time_of(stage, i, i + split[s]);
        own->bytes += bytes_of(p, stage, i, i + split[s]);
        own->headroom_bytes = stage->headroom_bytes;
    }
    for (int32_t r = 0; r < p->n_ranks; r++) {
        const int64_t ps = loads[r].ps;
        out->fits = out->fits && loads[r].bytes <= loads[r].headroom_bytes;
        out->n_slowest =
            ps > out->slowest_ps ? 1 : out->n_slowest + (ps == out->slowest_ps);
        out->slowest_ps = fr_max_i64(out->slowest_ps, ps);
        out->sum_ps += ps;
        out->spread_s2 += square(ps);
    }
}

void fr_partition_measure(const fr_partition_problem *p, const int32_t *split,
                          fr_partition *out)
{
    load loads[FR_PARTITION_MOST];
    measure_loads(p, split, loads, out);
}

/* ---- the least there can be ---------------------------------------------- */

/* A stage of a rank with several has its part of the room. */
static bool is_held(const fr_partition_problem *p, int32_t s, int32_t i,
                    int32_t j)
{
    return bytes_of(p, &p->stages[s], i, j) <=
           p->stages[s].headroom_bytes / (uint64_t)chunks_of(p);
}

/* The last j up to which a stage that begins at i fits and takes less than
 * limit_ps. */
static int32_t reach_of(const fr_partition_problem *p, int32_t s, int32_t i,
                        int64_t limit_ps)
{
    int32_t low = i, high = p->n_layers;
    while (low < high) {
        int32_t mid = low + (high - low + 1) / 2;
        if (time_of(&p->stages[s], i, mid) < limit_ps && is_held(p, s, i, mid))
            low = mid;
        else
            high = mid - 1;
    }
    return low;
}

/* Finds the least time and the least bytes of a layer on a stage. */
static void shortest_layer(const fr_partition_problem *p,
                           const fr_partition_stage *stage, int64_t *least_ps,
                           uint64_t *least_bytes)
{
    *least_ps = INT64_MAX;
    *least_bytes = UINT64_MAX;
    for (int32_t l = 0; l < p->n_layers; l++) {
        int64_t ps = stage->pass_ps[l + 1] - stage->pass_ps[l];
        uint64_t bytes = bytes_of(p, stage, l, l + 1) - stage->end_bytes;
        *least_ps = ps < *least_ps ? ps : *least_ps;
        *least_bytes = bytes < *least_bytes ? bytes : *least_bytes;
    }
}

/* Returns how many of the shortest layers a rank has time and room for. */
static int64_t most_layers(const fr_partition_problem *p, int32_t rank,
                           int64_t limit_ps)
{
    int64_t own_ps = limit_ps - 1, least_ps;
    uint64_t end_bytes = 0, least_bytes;
    const fr_partition_stage *stage = NULL;
    for (int32_t s = 0; s < p->n_stages; s++)
        if (p->stages[s].rank == rank) {
            stage = &p->stages[s];
            own_ps -= stage->end_ps;
            end_bytes += stage->end_bytes;
        }
    if (stage == NULL || own_ps < 0 || end_bytes > stage->headroom_bytes)
        return -1;
    shortest_layer(p, stage, &least_ps, &least_bytes);
    int64_t n = least_ps > 0 ? own_ps / least_ps : p->n_layers;
    if (least_bytes == 0)
        return n;
    uint64_t n_held = (stage->headroom_bytes - end_bytes) / least_bytes;
    return n_held < (uint64_t)n ? (int64_t)n_held : n;
}

/* Several chunks: as if a rank could take any layers. */
static bool can_share(const fr_partition_problem *p, int64_t limit_ps)
{
    int64_t n_held = 0;
    for (int32_t r = 0; r < p->n_ranks; r++) {
        int64_t n = most_layers(p, r, limit_ps);
        if (n < chunks_of(p))
            return false;
        n_held += n;
    }
    return n_held >= p->n_layers;
}

bool fr_partition_may_beat(const fr_partition_problem *p, int64_t limit_ps)
{
    if (p->n_stages > p->n_ranks)
        return can_share(p, limit_ps);
    int32_t i = 0;
    for (int32_t s = 0; s < p->n_stages; s++) {
        if (time_of(&p->stages[s], i, i) >= limit_ps || !is_held(p, s, i, i))
            return false;
        i = reach_of(p, s, i, limit_ps);
    }
    return i == p->n_layers;
}

/* The least that fr_partition_may_beat() does not rule out. */
static int64_t least_limit(const fr_partition_problem *p, int64_t high_ps)
{
    int64_t low_ps = 0;
    while (low_ps < high_ps) {
        int64_t mid_ps = low_ps + (high_ps - low_ps) / 2;
        if (fr_partition_may_beat(p, mid_ps + 1))
            high_ps = mid_ps;
        else
            low_ps = mid_ps + 1;
    }
    return high_ps;
}

/* ---- the recurrence ------------------------------------------------------ */

/* The best way to give layers [0, j) to the stages up to one. */
typedef struct cell {
    int64_t slowest_ps; /* INT64_MAX: there is none */
    int64_t sum_ps;
    double spread_s2;
    int32_t from; /* first layer of the last of them */
} cell;

typedef struct table {
    const fr_partition_problem *problem;
    cell *cells; /* [n_stages + 1][n_layers + 1] */
    int64_t limit_ps;
    /* Layers that the stages before one can have had, so that those from it
     * on can still take the rest. */
    int32_t low[FR_PARTITION_MOST + 1], high[FR_PARTITION_MOST + 1];
} table;

static cell *cell_at(const table *t, int32_t s, int32_t j)
{
    return &t->cells[(size_t)s * ((size_t)t->problem->n_layers + 1) +
                     (size_t)j];
}

/* The first i from which a stage that ends at j fits into the limit. */
static int32_t begin_of(const table *t, int32_t s, int32_t j)
{
    const fr_partition_problem *p = t->problem;
    int32_t low = 0, high = j;
    while (low < high) {
        int32_t mid = low + (high - low) / 2;
        if (time_of(&p->stages[s], mid, j) <= t->limit_ps &&
            is_held(p, s, mid, j))
            high = mid;
        else
            low = mid + 1;
    }
    return low;
}

static void clear_table(table *t)
{
    const fr_partition_problem *p = t->problem;
    t->high[0] = 0;
    t->low[p->n_stages] = p->n_layers;
    for (int32_t s = 0; s < p->n_stages; s++)
        t->high[s + 1] = reach_of(p, s, t->high[s], t->limit_ps + 1);
    for (int32_t s = p->n_stages; s > 0; s--)
        t->low[s - 1] = begin_of(t, s - 1, t->low[s]);
    for (int32_t s = 0; s <= p->n_stages; s++)
        for (int32_t j = t->low[s]; j <= t->high[s]; j++)
            *cell_at(t, s, j) = (cell){.slowest_ps = INT64_MAX};
    if (t->low[0] == 0)
        cell_at(t, 0, 0)->slowest_ps = 0;
}

/* The last layers at which stage s can begin if it ends at j. */
static int32_t last_begin(const table *t, int32_t s, int32_t j)
{
    int32_t i = j - t->problem->stages[s].n_least;
    return i < t->high[s] ? i : t->high[s];
}

/* Tries all begins i of stage s, and keeps in *best the least time of the
 * slowest stage up to s. */
static void try_slowest(const table *t, int32_t s, int32_t j, cell *best)
{
    const fr_partition_problem *p = t->problem;
    for (int32_t i = last_begin(t, s, j); i >= t->low[s]; i--) {
        int64_t ps = time_of(&p->stages[s], i, j);
        if (ps > t->limit_ps || ps >= best->slowest_ps || !is_held(p, s, i, j))
            return; /* more layers take and need no less */
        int64_t slowest_ps = fr_max_i64(cell_at(t, s, i)->slowest_ps, ps);
        if (slowest_ps < best->slowest_ps)
            *best = (cell){.slowest_ps = slowest_ps, .from = i};
    }
}

static bool is_better(const cell *a, const cell *b)
{
    if (b->slowest_ps == INT64_MAX || a->sum_ps != b->sum_ps)
        return b->slowest_ps == INT64_MAX || a->sum_ps < b->sum_ps;
    return a->spread_s2 < b->spread_s2;
}

/* Tries all begins of stage s that keep the slowest stage within the limit, and
 * keeps in *best the least sum, then the least spread. */
static void try_sum(const table *t, int32_t s, int32_t j, cell *best)
{
    const fr_partition_problem *p = t->problem;
    for (int32_t i = last_begin(t, s, j); i >= t->low[s]; i--) {
        int64_t ps = time_of(&p->stages[s], i, j);
        if (ps > t->limit_ps || !is_held(p, s, i, j))
            return;
        const cell *before = cell_at(t, s, i);
        if (before->slowest_ps == INT64_MAX)
            continue;
        cell next = {.slowest_ps = fr_max_i64(before->slowest_ps, ps),
                     .sum_ps = before->sum_ps + ps,
                     .spread_s2 = before->spread_s2 + square(ps),
                     .from = i};
        if (is_better(&next, best))
            *best = next;
    }
}

/* The least of all in the last cell; INT64_MAX: there is none. */
static int64_t fill(table *t,
                    void (*try_last)(const table *, int32_t, int32_t, cell *))
{
    const fr_partition_problem *p = t->problem;
    clear_table(t);
    for (int32_t s = 0; s < p->n_stages; s++)
        for (int32_t j = t->low[s + 1]; j <= t->high[s + 1]; j++)
            try_last(t, s, j, cell_at(t, s + 1, j));
    return t->high[p->n_stages] == p->n_layers
               ? cell_at(t, p->n_stages, p->n_layers)->slowest_ps
               : INT64_MAX;
}

/* One stage after the other, each by itself. */
static fr_status cut(const fr_partition_problem *p, int32_t *split,
                     fr_partition *out, fr_err *err)
{
    size_t n = ((size_t)p->n_stages + 1) * ((size_t)p->n_layers + 1);
    table t = {.problem = p};
    t.cells = malloc(n * sizeof *t.cells);
    if (t.cells == NULL)
        return fr_fail_no_memory(err);
    /* The least without n_least is nearly always the least. */
    t.limit_ps = least_limit(p, INT64_MAX / 2);
    if (fill(&t, try_sum) == INT64_MAX) {
        t.limit_ps = INT64_MAX / 2;
        t.limit_ps = fill(&t, try_slowest);
        if (t.limit_ps < INT64_MAX)
            t.limit_ps = fill(&t, try_sum);
    }
    if (t.limit_ps < INT64_MAX) {
        for (int32_t s = p->n_stages, j = p->n_layers; s > 0; s--) {
            int32_t from = cell_at(&t, s, j)->from;
            split[s - 1] = j - from;
            j = from;
        }
        fr_partition_measure(p, split, out);
        out->least_ps = out->slowest_ps;
    }
    free(t.cells);
    return FR_OK;
}

/* ---- several chunks on a rank -------------------------------------------- */

static bool is_faster(const fr_partition *a, const fr_partition *b)
{
    if (a->fits != b->fits)
        return a->fits;
    if (a->slowest_ps != b->slowest_ps)
        return a->slowest_ps < b->slowest_ps;
    if (a->n_slowest != b->n_slowest)
        return a->n_slowest < b->n_slowest;
    if (a->sum_ps != b->sum_ps)
        return a->sum_ps < b->sum_ps;
    return a->spread_s2 < b->spread_s2;
}

/* More chunks than these: moves from the slowest ranks alone. */
enum { FEW_CHUNKS = 24 };

/* The best move of one layer from a stage to another; those between keep their
 * numbers and shift.  false: none helps. */
static bool move_one(const fr_partition_problem *p, int32_t *split,
                     fr_partition *at)
{
    load loads[FR_PARTITION_MOST], fresh[FR_PARTITION_MOST];
    int32_t best_from = -1, best_to = -1;
    const int64_t slowest_ps = at->slowest_ps;
    measure_loads(p, split, loads, &(fr_partition){0});
    for (int32_t a = 0; a < p->n_stages; a++) {
        const load *own = &loads[p->stages[a].rank];
        bool is_full = own->bytes > own->headroom_bytes;
        if (split[a] <= p->stages[a].n_least ||
            (p->n_stages > FEW_CHUNKS && own->ps < slowest_ps && !is_full))
            continue;
        for (int32_t b = 0; b < p->n_stages; b++) {
            fr_partition next;
            if (b == a)
                continue;
            split[a]--;
            split[b]++;
            measure_loads(p, split, fresh, &next);
            split[a]++;
            split[b]--;
            if (!is_faster(&next, at))
                continue;
            *at = next;
            best_from = a;
            best_to = b;
        }
    }
    if (best_from < 0)
        return false;
    split[best_from]--;
    split[best_to]++;
    return true;
}

/* Splits layers of equal time: each layer goes to the rank that would finish it
 * first.  All chunks of a rank are equal, except that the first ones may be
 * larger. */
static void share_alike(const fr_partition_problem *p, int32_t *split)
{
    int64_t ps[FR_PARTITION_MOST] = {0}, each_ps[FR_PARTITION_MOST];
    int32_t n[FR_PARTITION_MOST] = {0}, done[FR_PARTITION_MOST] = {0};
    const int32_t v = chunks_of(p);
    for (int32_t s = 0; s < p->n_stages; s++) {
        const fr_partition_stage *stage = &p->stages[s];
        each_ps[stage->rank] = stage->pass_ps[p->n_layers] / p->n_layers;
        ps[stage->rank] += stage->end_ps;
    }
    for (int32_t r = 0; r < p->n_ranks; r++) {
        n[r] = v;
        ps[r] += v * each_ps[r];
    }
    for (int32_t k = p->n_stages; k < p->n_layers; k++) {
        int32_t first = 0;
        for (int32_t r = 1; r < p->n_ranks; r++)
            if (ps[r] + each_ps[r] < ps[first] + each_ps[first])
                first = r;
        n[first]++;
        ps[first] += each_ps[first];
    }
    for (int32_t s = 0; s < p->n_stages; s++) {
        int32_t r = p->stages[s].rank;
        split[s] = n[r] / v + (done[r]++ < n[r] % v);
    }
}

/* From the better of two, by ranks as if layers were alike and the even one,
 * by moves of single layers. */
static void share(const fr_partition_problem *p, int32_t *at, int32_t *other,
                  fr_partition *out)
{
    const size_t n_bytes = (size_t)p->n_stages * sizeof *at;
    const int32_t rest = p->n_layers % p->n_stages;
    fr_partition even;
    share_alike(p, at);
    for (int32_t s = 0; s < p->n_stages; s++)
        other[s] = p->n_layers / p->n_stages + (s < rest);
    fr_partition_measure(p, at, out);
    fr_partition_measure(p, other, &even);
    if (is_faster(&even, out)) {
        memcpy(at, other, n_bytes);
        *out = even;
    }
    out->least_ps = least_limit(p, out->slowest_ps);
    while ((!out->fits || out->slowest_ps > out->least_ps) &&
           move_one(p, at, out))
        ;
}

fr_status fr_partition_layers(const fr_partition_problem *p, int32_t *split,
                              fr_partition *out, fr_err *err)
{
    fr_status status = FR_OK;
    size_t n_bytes = (size_t)p->n_stages * sizeof *split;
    *out = (fr_partition){0};
    if (p->n_stages > p->n_layers || !fr_partition_may_beat(p, INT64_MAX))
        return FR_OK;
    int32_t *at = malloc(2 * n_bytes);
    if (at == NULL)
        return fr_fail_no_memory(err);
    if (p->n_stages > p->n_ranks)
        share(p, at, at + p->n_stages, out);
    else
        status = cut(p, at, out, err);
    if (status == FR_OK && out->fits)
        memcpy(split, at, n_bytes);
    free(at);
    return status;
}
