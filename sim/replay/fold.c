/* fold.c: colour refinement with commutative hashes. */
#include "sim/replay/fold.h"

#include "core/base/hash.h"

#include <stdlib.h>
#include <string.h>

/* Different roles of the same colour must not cancel out. */
enum {
    SALT_NODE = 101,
    SALT_RAIL = 102,
    SALT_PEER = 103,
    SALT_FABRIC = 104,
    SALT_AXIS = 128
};

typedef struct refinement {
    const fr_rank_layout *layout;
    const fr_fabric_uses *fabric;
    fr_fold *fold;
    uint64_t *hash;  /* [n_ranks] colours of this round */
    uint64_t *mixed; /* [n_ranks] the same, mixed */
    uint64_t *next;  /* [n_ranks] */
    int32_t *table;  /* [n_table] open addressing: colours by hash */
    size_t n_table;
} refinement;

static uint64_t add_salt(uint64_t x, uint64_t salt)
{
    return fr_hash_mix(x + salt * UINT64_C(0x9e3779b97f4a7c15));
}

static uint64_t bits_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* ---- the begin ----------------------------------------------------------- */

/* A key of what a node is, whoever runs on it. */
static uint64_t node_hash(const fr_rank_layout *layout, int32_t group)
{
    const fr_cluster *cluster = layout->cluster;
    int32_t node = layout->node_of_group[group];
    const fr_node_group *g = fr_cluster_group_of(cluster, node);
    uint64_t h = (uint64_t)g->i_node_type + 1;
    h = add_salt(h, (uint64_t)fr_rank_groups_size(&layout->node, group));
    h = add_salt(h, bits_of(fr_cluster_compute_frac(cluster, node, -1)));
    return add_salt(h, bits_of(fr_cluster_network_frac(cluster, node)));
}

static void begin_colors(refinement *f)
{
    const fr_rank_layout *layout = f->layout;
    bool has_slow = layout->cluster->n_slow > 0;
    uint64_t last_hash = 0;
    int32_t last = -1;
    for (int64_t r = 0; r < layout->n_ranks; r++) {
        int32_t group = layout->node.group_of_rank[r];
        if (group != last)
            last_hash = node_hash(layout, group);
        last = group;
        uint64_t h = last_hash + (uint64_t)layout->program_of_rank[r];
        if (has_slow)
            h = add_salt(
                h, bits_of(fr_rank_layout_compute_frac(layout, (int32_t)r)));
        f->hash[r] = fr_hash_mix(h);
    }
}

/* ---- a round ------------------------------------------------------------- */

/* Adds to the colour of every rank what its group is, which is left in
 * keys[g]. */
static void add_partition(refinement *f, const fr_rank_groups *p, uint64_t salt,
                          uint64_t *keys)
{
    int64_t n_ranks = f->layout->n_ranks;
    const int32_t *group = p->group_of_rank;
    memset(keys, 0, (size_t)p->n_groups * sizeof *keys);
    for (int64_t r = 0; r < n_ranks; r++)
        keys[group[r]] += f->mixed[r];
    for (int32_t g = 0; g < p->n_groups; g++) {
        uint64_t h = add_salt(keys[g], salt);
        if (p->scopes != NULL) {
            const fr_comm_scope *s = &p->scopes[g];
            h = add_salt(h, (uint64_t)s->n_group);
            h = add_salt(h, (uint64_t)s->n_nodes << 20 |
                                (uint64_t)s->ranks_on_node);
            h = add_salt(h, s->node_types);
        }
        keys[g] = h;
    }
    if (p->n_groups == 1)
        return; /* it would be the same for everybody */
    for (int64_t r = 0; r < n_ranks; r++)
        f->next[r] = fr_hash_mix(f->next[r] * 3 + keys[group[r]]);
}

static void add_peers(refinement *f)
{
    const fr_rank_layout *layout = f->layout;
    for (int64_t r = 0; r < layout->n_ranks; r++) {
        int32_t c = layout->program_of_rank[r];
        for (uint32_t i = layout->first_peer[c]; i < layout->first_peer[c + 1];
             i++) {
            fr_peer at = layout->peers.items[i];
            int32_t peer =
                fr_rank_layout_peer(layout, (int32_t)r, at.axis, at.coordinate);
            bool is_same_node = layout->node.group_of_rank[r] ==
                                layout->node.group_of_rank[peer];
            f->next[r] = fr_hash_mix(f->next[r] * 5 + f->mixed[peer] +
                                     SALT_PEER + is_same_node);
        }
    }
}

static uint64_t use_hash(const fr_fabric_flow *flow, size_t i_flow,
                         uint32_t i_use)
{
    return add_salt(i_flow << 32 | flow->uses[i_use].weight, SALT_FABRIC);
}

/* Colours links by who crosses them, and ranks by the links they cross. */
static void add_fabric(refinement *f)
{
    const fr_fabric_uses *fabric = f->fabric;
    uint64_t *keys = f->fold->fabric_key;
    for (int32_t l = 0; l < fabric->n_links; l++)
        keys[l] = 0;
    for (size_t i = 0; i < fabric->flows.n; i++) {
        const fr_fabric_flow *flow = &fabric->flows.items[i];
        for (int64_t r = 0; r < f->layout->n_ranks; r++)
            for (uint32_t u = flow->first[r]; u < flow->first[r + 1]; u++)
                keys[flow->uses[u].link] +=
                    fr_hash_mix(f->mixed[r] + use_hash(flow, i, u));
    }
    for (int32_t l = 0; l < fabric->n_links; l++)
        keys[l] = add_salt(keys[l], bits_of(fabric->link_Bps[l]));
    for (size_t i = 0; i < fabric->flows.n; i++) {
        const fr_fabric_flow *flow = &fabric->flows.items[i];
        for (int64_t r = 0; r < f->layout->n_ranks; r++) {
            uint64_t sum = 0;
            for (uint32_t u = flow->first[r]; u < flow->first[r + 1]; u++)
                sum += fr_hash_mix(keys[flow->uses[u].link] +
                                   use_hash(flow, i, u));
            f->next[r] = fr_hash_mix(f->next[r] * 7 + sum);
        }
    }
}

/* Numbers the colours in the order of their lowest ranks. */
static int32_t number_colors(refinement *f)
{
    int32_t n = 0;
    memset(f->table, 0xff, f->n_table * sizeof *f->table);
    for (int64_t r = 0; r < f->layout->n_ranks; r++) {
        size_t at = f->hash[r] & (f->n_table - 1);
        while (f->table[at] >= 0 &&
               f->hash[f->fold->rank_of_color[f->table[at]]] != f->hash[r])
            at = (at + 1) & (f->n_table - 1);
        if (f->table[at] < 0) {
            f->table[at] = n;
            f->fold->rank_of_color[n++] = (int32_t)r;
        }
        f->fold->color_of_rank[r] = f->table[at];
    }
    return n;
}

static void refine_once(refinement *f)
{
    const fr_rank_layout *layout = f->layout;
    for (int64_t r = 0; r < layout->n_ranks; r++)
        f->next[r] = f->mixed[r] = fr_hash_mix(f->hash[r]);
    add_partition(f, &layout->node, SALT_NODE, f->fold->node_key);
    add_partition(f, &layout->rail, SALT_RAIL, f->fold->rail_key);
    for (int axis = 0; axis < FR_AXIS_N; axis++)
        if (layout->axes[axis].n_groups > 0)
            add_partition(f, &layout->axes[axis], SALT_AXIS + (uint64_t)axis,
                          f->fold->axis_key[axis]);
    add_peers(f);
    if (f->fabric->n_links > 0)
        add_fabric(f);
    uint64_t *last = f->hash;
    f->hash = f->next;
    f->next = last;
}

/* ---- set-up -------------------------------------------------------------- */

static fr_status alloc_fold(refinement *f, fr_err *err)
{
    const fr_rank_layout *layout = f->layout;
    fr_fold *fold = f->fold;
    size_t n = (size_t)layout->n_ranks;
    FR_TRY_CALLOC(fold->color_of_rank, n, err);
    FR_TRY_CALLOC(fold->rank_of_color, n, err);
    FR_TRY_CALLOC(fold->n_alike, n, err);
    FR_TRY_CALLOC(fold->node_key, (size_t)layout->node.n_groups + 1, err);
    FR_TRY_CALLOC(fold->rail_key, (size_t)layout->rail.n_groups + 1, err);
    FR_TRY_CALLOC(fold->fabric_key, (size_t)f->fabric->n_links + 1, err);
    for (int axis = 0; axis < FR_AXIS_N; axis++)
        if (layout->axes[axis].n_groups > 0)
            FR_TRY_CALLOC(fold->axis_key[axis],
                          (size_t)layout->axes[axis].n_groups + 1, err);
    for (f->n_table = 16; f->n_table < 2 * n;)
        f->n_table *= 2;
    FR_TRY_CALLOC(f->hash, n, err);
    FR_TRY_CALLOC(f->mixed, n, err);
    FR_TRY_CALLOC(f->next, n, err);
    FR_TRY_CALLOC(f->table, f->n_table, err);
    return FR_OK;
}

fr_status fr_fold_fail(int32_t n_colors, fr_err *err)
{
    return fr_fail(err, FR_INFEASIBLE,
                   "%d kinds of ranks take too long to simulate; choose a "
                   "rank_order or dp whose groups lie alike on the nodes",
                   n_colors);
}

fr_status fr_fold_init(const fr_rank_layout *layout,
                       const fr_fabric_uses *fabric, bool is_bounded,
                       const fr_log *log, fr_fold *out, fr_err *err)
{
    fr_fold fold = {0};
    refinement f = {.layout = layout, .fabric = fabric, .fold = &fold};
    fr_status status = alloc_fold(&f, err);
    if (status != FR_OK)
        goto out_free;
    begin_colors(&f);
    int32_t n = number_colors(&f), before = 0;
    for (int64_t visits = 0; n > before; visits += layout->n_ranks) {
        if (visits > (is_bounded ? 1 : 2) * FR_FOLD_MOST_VISITS) {
            status = fr_fold_fail(n, err);
            goto out_free;
        }
        FR_TRY_GOTO(status, fr_log_check(log, err), out_free);
        before = n;
        refine_once(&f);
        n = number_colors(&f);
    }
    fold.n_colors = n;
    for (int64_t r = 0; r < layout->n_ranks; r++)
        fold.n_alike[fold.color_of_rank[r]] += (int32_t)layout->n_copies;
out_free:
    free(f.hash);
    free(f.mixed);
    free(f.next);
    free(f.table);
    if (status != FR_OK)
        fr_fold_release(&fold);
    else
        *out = fold;
    return status;
}

void fr_fold_release(fr_fold *fold)
{
    free(fold->color_of_rank);
    free(fold->rank_of_color);
    free(fold->n_alike);
    free(fold->node_key);
    free(fold->rail_key);
    free(fold->fabric_key);
    for (int axis = 0; axis < FR_AXIS_N; axis++)
        free(fold->axis_key[axis]);
    *fold = (fr_fold){0};
}
