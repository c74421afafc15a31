/*
 * import_slurm.c: Slurm's topology.conf (man 5 topology.conf): a tree of
 * switches, or blocks.  It names who is under which switch and nothing else:
 * the nodes come from --node-type or from a file of their own.  A regular tree
 * becomes a fat tree, another one a list of links that never block.
 */
#include "core/base/memo.h"
#include "core/base/text.h"
#include "interop/import/import_hostlist.h"
#include "interop/import/import_parts.h"
#include "spec/cluster/cluster_knobs.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* A few bytes of a file can name any number of hosts. */
enum { MAX_DEPTH = 16, MAX_GROUPS = 500, MAX_HOSTS = 1000000 };

typedef struct entry {
    const char *name;
    fr_hostlist nodes, children; /* one of them is empty */
    int line;
    int32_t parent; /* -1: none */
    int64_t first, n_below;
    int depth; /* switches below it on the way to a node; leaf: 1 */
    bool is_block;
} entry;

typedef struct slurm_file {
    const fr_import_text *in;
    fr_arena arena;
    fr_vec(entry) entries;
    fr_hostlist nodes; /* all, in the order of the tree */
    fr_vec(int32_t) leaves, roots;
    fr_memo by_name; /* of entries, in lower case: Slurm's do not differ */
    size_t n_hosts;
    bool has_blocks, has_switches, has_speeds;
} slurm_file;

/* ---- names -------------------------------------------------------------- */

/* The name as it is looked up; its bytes with the NUL. */
static size_t fold(const char *name, char out[FR_HOSTLIST_NAME])
{
    size_t n = 0;
    for (; name[n] != '\0' && n < FR_HOSTLIST_NAME - 1; n++)
        out[n] = (char)tolower((unsigned char)name[n]);
    out[n] = '\0';
    return n + 1;
}

static int32_t find_entry(const slurm_file *file, const char *name)
{
    char key[FR_HOSTLIST_NAME];
    size_t n = fold(name, key);
    const uint32_t *at = fr_memo_find(&file->by_name, key, n);
    return at != NULL ? (int32_t)*at : -1;
}

static fr_status add_name(slurm_file *file, const char *name, fr_err *err)
{
    char key[FR_HOSTLIST_NAME];
    uint32_t at = (uint32_t)file->entries.n;
    size_t n = fold(name, key);
    return fr_memo_add(&file->by_name, key, n, &at) != NULL
               ? FR_OK
               : fr_fail_no_memory(err);
}

/* ---- lines -------------------------------------------------------------- */

static fr_status read_pair(slurm_file *file, entry *at, char *key, char *value,
                           fr_err *err)
{
    if (strcasecmp(key, "SwitchName") == 0 ||
        strcasecmp(key, "BlockName") == 0) {
        if (at->name != NULL)
            return fr_import_fail(file->in, at->line, err,
                                  "two names in one line: '%.40s' and '%.40s'",
                                  at->name, value);
        at->is_block = strcasecmp(key, "BlockName") == 0;
        at->name = value;
        return FR_OK;
    }
    if (strcasecmp(key, "Nodes") == 0)
        return fr_hostlist_expand(file->in, at->line, value, &file->arena,
                                  &at->nodes, err);
    if (strcasecmp(key, "Switches") == 0)
        return fr_hostlist_expand(file->in, at->line, value, &file->arena,
                                  &at->children, err);
    file->has_speeds |= strcasecmp(key, "LinkSpeed") == 0;
    if (strcasecmp(key, "LinkSpeed") == 0 || strcasecmp(key, "BlockSizes") == 0)
        return FR_OK;
    return fr_import_fail(file->in, at->line, err,
                          "unknown key '%.40s'; SwitchName, Switches, Nodes, "
                          "LinkSpeed, BlockName and BlockSizes are known",
                          key);
}

static fr_status check_entry(const slurm_file *file, const entry *at,
                             fr_err *err)
{
    if (at->nodes.n > 0 && at->children.n > 0)
        return fr_import_fail(file->in, at->line, err,
                              "'%.60s' has nodes and switches; Slurm allows "
                              "one of them",
                              at->name);
    if (at->nodes.n == 0 && at->children.n == 0)
        return fr_import_fail(file->in, at->line, err,
                              "'%.60s' has neither Nodes nor Switches",
                              at->name);
    if (strlen(at->name) >= FR_HOSTLIST_NAME)
        return fr_import_fail(file->in, at->line, err,
                              "a name of more than %d bytes: '%.60s...'",
                              FR_HOSTLIST_NAME - 1, at->name);
    int32_t first = find_entry(file, at->name);
    if (first >= 0)
        return fr_import_fail(file->in, at->line, err,
                              "a second '%.60s'; the first is in line %d",
                              at->name, file->entries.items[first].line);
    return FR_OK;
}

static fr_status read_pairs(slurm_file *file, entry *at, char *line,
                            fr_err *err)
{
    char *save = NULL;
    line[strcspn(line, "#")] = '\0';
    for (char *pair = strtok_r(line, " \t\r", &save); pair != NULL;
         pair = strtok_r(NULL, " \t\r", &save)) {
        char *value = strchr(pair, '=');
        if (value == NULL || value[1] == '\0')
            return fr_import_fail(file->in, at->line, err,
                                  "'%.60s' is not KEY=VALUE", pair);
        *value++ = '\0';
        FR_TRY(read_pair(file, at, pair, value, err));
    }
    if (at->name == NULL && (at->nodes.n > 0 || at->children.n > 0))
        return fr_import_fail(file->in, at->line, err,
                              "no SwitchName or BlockName in this line");
    file->n_hosts += at->nodes.n + at->children.n;
    if (file->n_hosts > MAX_HOSTS)
        return fr_import_fail(file->in, at->line, err,
                              "more than %d names in this file", MAX_HOSTS);
    return at->name != NULL ? check_entry(file, at, err) : FR_OK;
}

/* A line without a name, such as BlockSizes, adds nothing. */
static fr_status read_line(slurm_file *file, char *line, int n_line,
                           fr_err *err)
{
    entry at = {.line = n_line, .parent = -1};
    fr_status status = read_pairs(file, &at, line, err);
    if (status == FR_OK && at.name != NULL) {
        file->has_blocks |= at.is_block;
        file->has_switches |= !at.is_block;
        status = add_name(file, at.name, err);
        if (status == FR_OK && fr_vec_push(&file->entries, at) == FR_OK)
            return FR_OK;
        status = fr_fail_no_memory(err);
    }
    fr_vec_release(&at.nodes);
    fr_vec_release(&at.children);
    return status;
}

static fr_status read_lines(slurm_file *file, char *text, fr_err *err)
{
    int n_line = 0;
    while (*text) {
        char *end = strchr(text, '\n');
        if (end != NULL)
            *end = '\0';
        FR_TRY(read_line(file, text, ++n_line, err));
        text = end != NULL ? end + 1 : text + strlen(text);
    }
    if (file->entries.n == 0)
        return fr_import_fail(file->in, n_line, err,
                              "no SwitchName and no BlockName (topology.yaml "
                              "is not read: write topology.conf)");
    if (file->has_blocks && file->has_switches)
        return fr_import_fail(file->in, n_line, err,
                              "switches and blocks in one file; give one of "
                              "the two topologies");
    return FR_OK;
}

/* ---- the tree ----------------------------------------------------------- */

static fr_status set_parents(slurm_file *file, fr_err *err)
{
    for (size_t i = 0; i < file->entries.n; i++) {
        const entry *at = &file->entries.items[i];
        for (size_t k = 0; k < at->children.n; k++) {
            int32_t child = find_entry(file, at->children.items[k]);
            if (child < 0)
                return fr_import_fail(file->in, at->line, err,
                                      "no switch '%.60s' in this file",
                                      at->children.items[k]);
            if (file->entries.items[child].parent >= 0)
                return fr_import_fail(file->in, at->line, err,
                                      "'%.60s' is under two switches; only "
                                      "trees are read",
                                      at->children.items[k]);
            file->entries.items[child].parent = (int32_t)i;
        }
    }
    return FR_OK;
}

/* Numbers the nodes below an entry, leaf by leaf. */
static fr_status walk(slurm_file *file, int32_t i, int level, fr_err *err)
{
    entry *at = &file->entries.items[i];
    at->first = (int64_t)file->nodes.n;
    at->depth = 1;
    if (level > MAX_DEPTH)
        return fr_import_fail(file->in, at->line, err,
                              "more than %d levels of switches", MAX_DEPTH);
    for (size_t k = 0; k < at->nodes.n; k++)
        if (fr_vec_push(&file->nodes, at->nodes.items[k]) != FR_OK)
            return fr_fail_no_memory(err);
    if (at->nodes.n > 0 && fr_vec_push(&file->leaves, i) != FR_OK)
        return fr_fail_no_memory(err);
    for (size_t k = 0; k < at->children.n; k++) {
        int32_t child = find_entry(file, at->children.items[k]);
        FR_TRY(walk(file, child, level + 1, err));
        int below = file->entries.items[child].depth + 1;
        at->depth = below > at->depth ? below : at->depth;
    }
    at->n_below = (int64_t)file->nodes.n - at->first;
    return FR_OK;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static fr_status check_nodes(const slurm_file *file, fr_err *err)
{
    const char **sorted = malloc((file->nodes.n + 1) * sizeof *sorted);
    fr_status status = FR_OK;
    if (sorted == NULL)
        return fr_fail_no_memory(err);
    memcpy(sorted, file->nodes.items, file->nodes.n * sizeof *sorted);
    qsort(sorted, file->nodes.n, sizeof *sorted, compare_names);
    for (size_t i = 1; i < file->nodes.n && status == FR_OK; i++)
        if (strcmp(sorted[i - 1], sorted[i]) == 0)
            status =
                fr_import_fail(file->in, 1, err,
                               "node '%.60s' is under two switches", sorted[i]);
    free(sorted);
    return status;
}

static fr_status make_tree(slurm_file *file, fr_err *err)
{
    FR_TRY(set_parents(file, err));
    for (size_t i = 0; i < file->entries.n; i++)
        if (file->entries.items[i].parent < 0) {
            if (fr_vec_push(&file->roots, (int32_t)i) != FR_OK)
                return fr_fail_no_memory(err);
            FR_TRY(walk(file, (int32_t)i, 1, err));
        }
    size_t n_walked = 0;
    for (size_t i = 0; i < file->entries.n; i++)
        n_walked += file->entries.items[i].depth > 0;
    if (n_walked < file->entries.n)
        return fr_import_fail(file->in, 1, err,
                              "switches contain each other: a cycle");
    if (file->roots.n > 1 && !file->has_blocks)
        fr_import_note(file->in,
                       "%zu switches have none above them: a core that joins "
                       "them without blocking is assumed",
                       file->roots.n);
    return check_nodes(file, err);
}

/* ---- the cluster -------------------------------------------------------- */

/* All switches of one depth alike?  Then levels, from the leaves up. */
static bool make_levels(const slurm_file *file, fr_fabric *fabric)
{
    int depth = file->entries.items[file->roots.items[0]].depth;
    int64_t down[MAX_DEPTH + 2] = {0};
    for (size_t i = 0; i < file->entries.n; i++) {
        const entry *at = &file->entries.items[i];
        int64_t n = (int64_t)(at->nodes.n + at->children.n);
        if (at->parent >= 0 &&
            file->entries.items[at->parent].depth != at->depth + 1)
            return false;
        if (at->parent < 0 && at->depth != depth)
            return false;
        if (down[at->depth] != 0 && down[at->depth] != n)
            return false;
        down[at->depth] = n;
    }
    if (file->roots.n > 1)
        down[++depth] = (int64_t)file->roots.n;
    if (depth > FR_CLUSTER_LEVELS)
        return false;
    fabric->kind = FR_FABRIC_FAT_TREE;
    fabric->n_levels = depth;
    for (int i = 0; i < depth; i++)
        fabric->levels[i] =
            (fr_fabric_level){.n_down = down[i + 1], .oversubscription = 1.0};
    return true;
}

static void set_link(fr_fabric *fabric, int64_t from, int64_t to,
                     double bandwidth_Bps)
{
    fr_fabric_link *link = &fabric->links[fabric->n_links];
    snprintf(link->id, sizeof link->id, "l%zu", fabric->n_links++);
    link->from = from;
    link->to = to;
    link->bandwidth_Bps = bandwidth_Bps;
}

/* Every link carries all nodes below it. */
static fr_status make_links(const slurm_file *file, const fr_node_type *type,
                            fr_fabric *fabric, fr_err *err)
{
    int64_t n_nodes = (int64_t)file->nodes.n;
    double node_Bps = type->n_nics * type->nic_Bps;
    size_t n_entries = file->entries.n;
    fabric->kind = FR_FABRIC_LINKS;
    fabric->switches = calloc(n_entries + 1, sizeof *fabric->switches);
    fabric->links =
        calloc(file->nodes.n + n_entries + 1, sizeof *fabric->links);
    if (fabric->switches == NULL || fabric->links == NULL)
        return fr_fail_no_memory(err);
    for (size_t i = 0; i < n_entries; i++) {
        char id[FR_CLUSTER_ID];
        fr_import_id(file->entries.items[i].name, id);
        snprintf(fabric->switches[i].id, FR_CLUSTER_ID, "%.40s_sw%zu", id, i);
    }
    fabric->n_switches = n_entries;
    if (file->roots.n > 1)
        fr_text_copy_cut(fabric->switches[fabric->n_switches++].id,
                         FR_CLUSTER_ID, "core_sw");
    for (size_t i = 0; i < n_entries; i++) {
        const entry *at = &file->entries.items[i];
        int64_t vertex = n_nodes + (int64_t)i;
        for (size_t k = 0; k < at->nodes.n; k++)
            set_link(fabric, at->first + (int64_t)k, vertex, node_Bps);
        int64_t up = at->parent >= 0 ? n_nodes + at->parent
                                     : n_nodes + (int64_t)n_entries;
        if (at->parent >= 0 || file->roots.n > 1)
            set_link(fabric, vertex, up, (double)at->n_below * node_Bps);
    }
    return FR_OK;
}

/* A group for each leaf, named after it, or one for all. */
static fr_status make_groups(const slurm_file *file, fr_cluster *out,
                             fr_err *err)
{
    bool is_one = file->leaves.n > MAX_GROUPS;
    size_t n = is_one ? 1 : file->leaves.n;
    out->groups = calloc(n, sizeof *out->groups);
    if (out->groups == NULL)
        return fr_fail_no_memory(err);
    for (size_t i = 0; i < n; i++) {
        const entry *leaf = &file->entries.items[file->leaves.items[i]];
        fr_node_group *group = &out->groups[i];
        char id[FR_CLUSTER_ID];
        fr_import_id(is_one ? "node" : leaf->name, id);
        snprintf(group->id, sizeof group->id, "%.50s", id);
        for (size_t k = 0; k < i; k++)
            if (strcmp(out->groups[k].id, group->id) == 0)
                snprintf(group->id, sizeof group->id, "%.40s_%zu", id, i);
        group->n_nodes = is_one ? (int64_t)file->nodes.n : leaf->n_below;
        group->first_node = leaf->first;
    }
    out->n_groups = n;
    return FR_OK;
}

/* A rack of several hosts is one node: a block is so many of them. */
static fr_status merge_hosts(slurm_file *file, int32_t n_hosts, fr_err *err)
{
    int64_t first = 0;
    for (size_t i = 0; i < file->leaves.n; i++) {
        entry *leaf = &file->entries.items[file->leaves.items[i]];
        if (leaf->n_below % n_hosts != 0)
            return fr_import_fail(file->in, leaf->line, err,
                                  "'%.60s' has %lld hosts, a node of this "
                                  "--node-type is %d of them",
                                  leaf->name, (long long)leaf->n_below,
                                  n_hosts);
        leaf->n_below /= n_hosts;
        leaf->nodes.n = (size_t)leaf->n_below;
        leaf->first = first;
        first += leaf->n_below;
    }
    for (size_t i = 0; i < file->entries.n; i++)
        if (file->entries.items[i].children.n > 0)
            file->entries.items[i].n_below /= n_hosts;
    file->nodes.n = (size_t)first;
    fr_import_note(file->in, "%d hosts are one node", n_hosts);
    return FR_OK;
}

/* Nodes of the type that another file describes, or of the catalogue. */
static fr_status start_cluster(const slurm_file *file,
                               const fr_catalog_node *row, int64_t n_nodes,
                               fr_cluster *out, fr_err *err)
{
    const fr_cluster *node = file->in->options->node;
    if (node == NULL)
        return fr_catalog_cluster(row->type.id, n_nodes, out, err);
    if (n_nodes > 1 && node->node_types[0].n_nics == 0)
        return fr_import_fail(file->in, 1, err,
                              "the other file shows no NIC, and %lld nodes are "
                              "joined; give --node-type NAME, whose NICs are "
                              "taken",
                              (long long)n_nodes);
    FR_TRY(fr_cluster_copy(node, out, err));
    if (n_nodes > 1)
        out->fabric.kind = FR_FABRIC_SWITCH;
    return FR_OK;
}

static fr_status make_cluster(slurm_file *file, const fr_catalog_node *row,
                              fr_cluster *out, fr_err *err)
{
    const fr_node_type *type =
        row != NULL ? &row->type : &file->in->options->node->node_types[0];
    int32_t n_hosts = type->n_hosts;
    if (n_hosts > 1)
        FR_TRY(merge_hosts(file, n_hosts, err));
    int64_t n_nodes = (int64_t)file->nodes.n;
    FR_TRY(start_cluster(file, row, n_nodes, out, err));
    free(out->groups);
    out->groups = NULL;
    out->n_groups = 0;
    FR_TRY(make_groups(file, out, err));
    fr_text_copy_cut(out->name, sizeof out->name, "slurm");
    fr_import_note(file->in,
                   "%lld nodes of type %s; nodes are numbered switch by "
                   "switch: %.60s is %s-0",
                   (long long)n_nodes, out->node_types[0].id,
                   file->nodes.items[0], out->groups[0].id);
    if (file->has_speeds)
        fr_import_note(file->in, "LinkSpeed has no unit in Slurm and is "
                                 "passed over");
    if (n_nodes == 1 || (n_hosts > 1 && file->has_blocks))
        return FR_OK; /* racks, joined as the catalogue says */
    fr_import_note(file->in, "switches do not block (oversubscription 1): "
                             "change it in the file where they do");
    out->fabric.kind = FR_FABRIC_NONE;
    out->fabric.n_levels = 0;
    if (make_levels(file, &out->fabric))
        return FR_OK;
    fr_import_note(file->in, "the switches are not all alike: a list of links");
    return make_links(file, &out->node_types[0], &out->fabric, err);
}

static fr_status read_file(slurm_file *file, char *text, fr_import *out,
                           fr_err *err)
{
    const fr_import_options *options = file->in->options;
    const fr_catalog_node *row = NULL;
    FR_TRY(read_lines(file, text, err));
    FR_TRY(make_tree(file, err));
    if (options->node == NULL)
        FR_TRY(fr_import_choose_node(file->in, &row, err));
    if (row == NULL && options->node == NULL)
        return fr_import_fail(file->in, 1, err,
                              "Slurm does not say what the %zu nodes are; give "
                              "--node-type NAME ('forerun catalog nodes' lists "
                              "them), or a second file that describes one "
                              "(nccl, hwloc, topo-m)",
                              file->nodes.n);
    if (options->n_nodes > 0)
        fr_import_note(file->in, "--nodes is ignored: the file names %zu nodes",
                       file->nodes.n);
    if (options->gpu != NULL && options->node == NULL)
        fr_import_note(file->in, "--gpu is ignored: --node-type names "
                                 "the GPUs");
    return make_cluster(file, row, &out->cluster, err);
}

static fr_status read_slurm(const fr_import_text *in, fr_import *out,
                            fr_err *err)
{
    slurm_file file = {.in = in, .by_name.value_bytes = sizeof(uint32_t)};
    fr_arena_init(&file.arena);
    char *copy = fr_arena_strndup(&file.arena, in->text, in->n);
    fr_status status =
        copy ? read_file(&file, copy, out, err) : fr_fail_no_memory(err);
    for (size_t i = 0; i < file.entries.n; i++) {
        fr_vec_release(&file.entries.items[i].nodes);
        fr_vec_release(&file.entries.items[i].children);
    }
    fr_vec_release(&file.entries);
    fr_vec_release(&file.nodes);
    fr_vec_release(&file.leaves);
    fr_vec_release(&file.roots);
    fr_memo_release(&file.by_name);
    fr_arena_release(&file.arena);
    return status;
}

const fr_importer fr_import_slurm = {
    .name = "slurm",
    .subject = FR_IMPORT_OF_TOPOLOGY,
    .marks = {"SwitchName=", "switchname=", "BlockName="},
    .read = read_slurm};
