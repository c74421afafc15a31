/* fabric_load.c: counts by (flow, actor, link, weight) in one hash table. */
#include "sim/replay/fabric_load.h"

#include "core/base/hash.h"

#include <stdlib.h>
#include <string.h>

typedef struct load_entry {
    int32_t link; /* number here; -1: empty */
    int32_t actor;
    uint32_t i_flow, weight, n;
} load_entry;

struct fr_fabric_load {
    const fr_actors *actors;
    const fr_fabric_uses *fabric;
    int32_t *number; /* of the caller */
    load_entry *table;
    size_t n_table, n_used;
};

void fr_fabric_load_destroy(fr_fabric_load *load)
{
    if (load == NULL)
        return;
    free(load->table);
    free(load);
}

static load_entry *find_entry(const fr_fabric_load *load, const load_entry *key)
{
    uint64_t h = fr_hash_mix((uint64_t)key->link << 32 | (uint32_t)key->actor);
    h = fr_hash_mix(h + ((uint64_t)key->i_flow << 32 | key->weight));
    size_t at = h & (load->n_table - 1);
    for (;; at = (at + 1) & (load->n_table - 1)) {
        load_entry *entry = &load->table[at];
        if (entry->link < 0 ||
            (entry->link == key->link && entry->actor == key->actor &&
             entry->i_flow == key->i_flow && entry->weight == key->weight))
            return entry;
    }
}

static bool grow(fr_fabric_load *load)
{
    fr_fabric_load larger = *load;
    larger.n_table = load->n_table > 0 ? 2 * load->n_table : 1024;
    larger.table = malloc(larger.n_table * sizeof *larger.table);
    if (larger.table == NULL)
        return false;
    memset(larger.table, 0xff, larger.n_table * sizeof *larger.table);
    for (size_t i = 0; i < load->n_table; i++)
        if (load->table[i].link >= 0)
            *find_entry(&larger, &load->table[i]) = load->table[i];
    free(load->table);
    *load = larger;
    return true;
}

/*
 * Links with one key carry alike; the lowest of them that an actor's rank
 * crosses stands for them.  is_chosen[links of the fabric].
 */
static fr_status choose_links(const fr_fabric_load *load, bool *is_chosen,
                              int32_t *n_links, fr_err *err)
{
    const fr_fabric_uses *fabric = load->fabric;
    size_t n = (size_t)fabric->n_links + 1;
    uint64_t *keys = malloc(n * sizeof *keys);
    int32_t *lowest = malloc(n * sizeof *lowest);
    *n_links = -1;
    if (keys == NULL || lowest == NULL)
        goto out_free;
    for (int32_t l = 0; l < fabric->n_links; l++)
        keys[l] = load->actors->is_folded ? load->actors->fold->fabric_key[l]
                                          : (uint64_t)l;
    *n_links = fr_number_keys(keys, fabric->n_links, load->number);
    for (int32_t i = 0; i < *n_links; i++)
        lowest[i] = -1;
    for (int32_t l = 0; *n_links >= 0 && l < fabric->n_links; l++) {
        is_chosen[l] = lowest[load->number[l]] < 0;
        if (is_chosen[l])
            lowest[load->number[l]] = l;
    }
out_free:
    free(keys);
    free(lowest);
    return *n_links < 0 ? fr_fail_no_memory(err) : FR_OK;
}

static fr_status count_flow(fr_fabric_load *load, uint32_t i_flow,
                            const bool *is_chosen, fr_err *err)
{
    const fr_fabric_flow *flow = &load->fabric->flows.items[i_flow];
    for (int64_t r = 0; r < load->actors->layout->n_ranks; r++)
        for (uint32_t u = flow->first[r]; u < flow->first[r + 1]; u++) {
            const fr_fabric_use *use = &flow->uses[u];
            load_entry key = {.link = load->number[use->link],
                              .actor =
                                  fr_actors_of_rank(load->actors, (int32_t)r),
                              .i_flow = i_flow,
                              .weight = use->weight};
            if (!is_chosen[use->link])
                continue;
            if (2 * (load->n_used + 1) > load->n_table && !grow(load))
                return fr_fail_no_memory(err);
            load_entry *entry = find_entry(load, &key);
            if (entry->link < 0) {
                *entry = key;
                load->n_used++;
            }
            entry->n++;
        }
    return FR_OK;
}

fr_status fr_fabric_load_create(const fr_actors *actors,
                                const fr_fabric_uses *fabric, int32_t **number,
                                int32_t *n_links, fr_fabric_load **out,
                                fr_err *err)
{
    *number = NULL;
    *n_links = 0;
    *out = NULL;
    if (fabric->n_links == 0)
        return FR_OK;
    fr_fabric_load *load = calloc(1, sizeof *load);
    bool *is_chosen = calloc((size_t)fabric->n_links, sizeof *is_chosen);
    int32_t *numbers = malloc((size_t)fabric->n_links * sizeof *numbers);
    fr_status status = FR_OK;
    if (load == NULL || is_chosen == NULL || numbers == NULL) {
        status = fr_fail_no_memory(err);
        goto out_free;
    }
    *load =
        (fr_fabric_load){.actors = actors, .fabric = fabric, .number = numbers};
    status = choose_links(load, is_chosen, n_links, err);
    for (size_t i = 0; status == FR_OK && i < fabric->flows.n; i++)
        status = count_flow(load, (uint32_t)i, is_chosen, err);
out_free:
    free(is_chosen);
    if (status != FR_OK) {
        free(numbers);
        fr_fabric_load_destroy(load);
        return status;
    }
    *number = numbers;
    *out = load;
    return FR_OK;
}

bool fr_fabric_load_next(const fr_fabric_load *load, fr_fabric_crossing *at)
{
    if (load == NULL || at->flow == NULL)
        return false;
    const fr_fabric_flow *flow = at->flow;
    int32_t rank = load->actors->rank[at->actor];
    uint32_t first = flow->first[rank], n = flow->first[rank + 1] - first;
    for (; at->i_use < n; at->i_use++) {
        const fr_fabric_use *use = &flow->uses[first + at->i_use];
        load_entry key = {.link = load->number[use->link],
                          .actor = at->actor,
                          .i_flow =
                              (uint32_t)(flow - load->fabric->flows.items),
                          .weight = use->weight};
        bool is_again = false; /* over another link that is counted as this */
        for (uint32_t k = 0; k < at->i_use && !is_again; k++)
            is_again = load->number[flow->uses[first + k].link] == key.link &&
                       flow->uses[first + k].weight == key.weight;
        if (is_again)
            continue;
        at->link = key.link;
        at->link_Bps = load->fabric->link_Bps[use->link];
        at->weight = (double)use->weight / FR_FABRIC_ONE;
        at->n = find_entry(load, &key)->n;
        at->i_use++;
        return true;
    }
    return false;
}
