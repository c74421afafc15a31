/* actors.c: parties of colours from the keys of groups, of ranks from their
 * lists. */
#include "sim/replay/actors.h"

#include <stdlib.h>
#include <string.h>

int32_t fr_number_keys(const uint64_t *keys, int64_t n, int32_t *number)
{
    size_t n_table = 16;
    int32_t n_numbers = 0;
    while (n_table < 2 * (size_t)n)
        n_table *= 2;
    int32_t *table = malloc(n_table * sizeof *table); /* first place of a key */
    if (table == NULL)
        return -1;
    memset(table, 0xff, n_table * sizeof *table);
    for (int64_t i = 0; i < n; i++) {
        size_t at = keys[i] & (n_table - 1);
        while (table[at] >= 0 && keys[table[at]] != keys[i])
            at = (at + 1) & (n_table - 1);
        if (table[at] < 0) {
            table[at] = (int32_t)i;
            number[i] = n_numbers++;
        } else {
            number[i] = number[table[at]];
        }
    }
    free(table);
    return n_numbers;
}

fr_status fr_actors_init(const fr_rank_layout *layout, const fr_fold *fold,
                         bool is_folded, fr_actors *out, fr_err *err)
{
    fr_actors actors = {.layout = layout,
                        .fold = fold,
                        .is_folded = is_folded,
                        .n = is_folded ? fold->n_colors
                                       : (int32_t)layout->n_ranks};
    FR_TRY_CALLOC(actors.rank, (size_t)actors.n, err);
    for (int32_t i = 0; i < actors.n; i++)
        actors.rank[i] = is_folded ? fold->rank_of_color[i] : i;
    *out = actors;
    return FR_OK;
}

void fr_actors_release(fr_actors *actors)
{
    for (int32_t i = 0; i < actors->n_tables; i++) {
        free(actors->tables[i].party_of_actor);
        free(actors->tables[i].first);
        free(actors->tables[i].members);
    }
    free(actors->rank);
    *actors = (fr_actors){0};
}

/* ---- one axis ------------------------------------------------------------ */

/* Numbers the parties of one axis: groups that behave alike are one. */
static bool number_axis(const fr_actors *actors, int axis, fr_parties *out)
{
    const fr_rank_groups *p = &actors->layout->axes[axis];
    uint64_t *keys = malloc(((size_t)actors->n + 1) * sizeof *keys);
    if (keys == NULL)
        return false;
    for (int32_t i = 0; i < actors->n; i++) {
        int32_t group = p->group_of_rank[actors->rank[i]];
        keys[i] = actors->is_folded ? actors->fold->axis_key[axis][group]
                                    : (uint64_t)group;
    }
    out->n_parties = fr_number_keys(keys, actors->n, out->party_of_actor);
    free(keys);
    return out->n_parties >= 0;
}

/* ---- several axes -------------------------------------------------------- */

static int32_t find_root(int32_t *parent, int32_t i)
{
    while (parent[i] != i) {
        parent[i] = parent[parent[i]];
        i = parent[i];
    }
    return i;
}

/* Numbers the parties of several axes: actors that any of their groups join are
 * in one.  The root of each is its lowest actor. */
static fr_status number_joined(fr_actors *actors, fr_parties *out, fr_err *err)
{
    int32_t *parent = malloc(((size_t)actors->n + 1) * sizeof *parent);
    uint64_t *keys = malloc(((size_t)actors->n + 1) * sizeof *keys);
    fr_status status = FR_OK;
    if (parent == NULL || keys == NULL)
        status = fr_fail_no_memory(err);
    for (int32_t i = 0; status == FR_OK && i < actors->n; i++)
        parent[i] = i;
    for (int axis = 0; status == FR_OK && axis < FR_AXIS_N; axis++) {
        int32_t i_table;
        if (!(out->axes >> axis & 1u))
            continue;
        status = fr_actors_parties(actors, 1u << axis, &i_table, err);
        if (status != FR_OK)
            break;
        const fr_parties *one = &actors->tables[i_table];
        for (int32_t i = 0; i < actors->n; i++) {
            int32_t first = one->members[one->first[one->party_of_actor[i]]];
            int32_t a = find_root(parent, i), b = find_root(parent, first);
            parent[a > b ? a : b] = a > b ? b : a;
        }
    }
    if (status == FR_OK) {
        for (int32_t i = 0; i < actors->n; i++)
            keys[i] = (uint64_t)find_root(parent, i);
        out->n_parties = fr_number_keys(keys, actors->n, out->party_of_actor);
        if (out->n_parties < 0)
            status = fr_fail_no_memory(err);
    }
    free(parent);
    free(keys);
    return status;
}

/* Lists the members of each party in ascending order; false: there is no memory
 * for them. */
static bool list_members(const fr_actors *actors, fr_parties *out)
{
    out->first = calloc((size_t)out->n_parties + 1, sizeof *out->first);
    out->members = malloc(((size_t)actors->n + 1) * sizeof *out->members);
    if (out->first == NULL || out->members == NULL)
        return false;
    for (int32_t i = 0; i < actors->n; i++)
        out->first[out->party_of_actor[i] + 1]++;
    for (int32_t p = 0; p < out->n_parties; p++)
        out->first[p + 1] += out->first[p];
    for (int32_t i = 0; i < actors->n; i++)
        out->members[out->first[out->party_of_actor[i]]++] = i;
    for (int32_t p = out->n_parties; p > 0; p--)
        out->first[p] = out->first[p - 1];
    out->first[0] = 0;
    return true;
}

fr_status fr_actors_parties(fr_actors *actors, unsigned axes, int32_t *i_table,
                            fr_err *err)
{
    for (int32_t i = 0; i < actors->n_tables; i++) {
        if (actors->tables[i].axes == axes) {
            *i_table = i;
            return FR_OK;
        }
    }
    fr_parties table = {.axes = axes};
    fr_status status = FR_OK;
    FR_TRY_CALLOC(table.party_of_actor, (size_t)actors->n + 1, err);
    if ((axes & (axes - 1)) != 0) {
        status = number_joined(actors, &table, err);
    } else {
        int axis = 0;
        while (!(axes >> axis & 1u))
            axis++;
        if (!number_axis(actors, axis, &table))
            status = fr_fail_no_memory(err);
    }
    if (status == FR_OK && actors->n_tables == FR_ACTORS_TABLES)
        status = fr_fail(err, FR_FAILURE, "more than %d ways to meet",
                         FR_ACTORS_TABLES);
    if (status == FR_OK && !list_members(actors, &table))
        status = fr_fail_no_memory(err);
    if (status != FR_OK) {
        free(table.party_of_actor);
        free(table.first);
        free(table.members);
        return status;
    }
    *i_table = actors->n_tables;
    actors->tables[actors->n_tables++] = table;
    return FR_OK;
}
