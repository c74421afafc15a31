/* cluster_fabric.c: reads <fabric>. */
#include "core/base/text.h"
#include "spec/cluster/cluster_reader.h"

#include <stdlib.h>
#include <string.h>

/* Attributes and children that mean nothing for this kind are refused. */
static fr_status check_foreign(const fr_xml_node *node, const fr_fabric *fabric,
                               fr_err *err)
{
    const fr_element *element = fr_element_find("fabric");
    static const struct {
        const char *name;
        unsigned kinds; /* bit set */
    } children[] = {
        {"level", 1u << FR_FABRIC_FAT_TREE | 1u << FR_FABRIC_RAIL},
        {"switch", 1u << FR_FABRIC_LINKS},
        {"link", 1u << FR_FABRIC_LINKS},
    };
    for (size_t i = 0; i < fr_element_n(element); i++) {
        const fr_attribute *attribute = &element->attributes[i];
        if (fr_xml_find(node, attribute->field.key) != NULL &&
            !fr_attribute_is_of(attribute, fabric))
            return fr_xml_fail(node, err,
                               "'%s' means nothing in a fabric of kind %s; "
                               "remove it",
                               attribute->field.key,
                               fr_fabric_kind_name(fabric->kind));
    }
    for (size_t i = 0; i < FR_LENGTH(children); i++) {
        const fr_xml_node *at = fr_xml_first_named(node, children[i].name);
        if (at != NULL && !(children[i].kinds & 1u << fabric->kind))
            return fr_xml_fail(at, err,
                               "<%s> means nothing in a fabric of kind %s; "
                               "remove it",
                               children[i].name,
                               fr_fabric_kind_name(fabric->kind));
    }
    return FR_OK;
}

static fr_status read_levels(const fr_xml_node *node, int64_t n_nodes,
                             fr_fabric *fabric, fr_err *err)
{
    double below = 1.0;
    fr_xml_each (at, node, "level") {
        if (fabric->n_levels == FR_CLUSTER_LEVELS)
            return fr_xml_fail(at, err, "more than %d levels",
                               FR_CLUSTER_LEVELS);
        fr_fabric_level *level = &fabric->levels[fabric->n_levels];
        level->oversubscription = 1.0;
        FR_TRY(fr_element_read(at, level, err));
        if (!(level->oversubscription >= 1.0 && level->oversubscription <= 1e6))
            return fr_xml_fail(at, err,
                               "oversubscription is %g; give 1 (none) or more",
                               level->oversubscription);
        below *= (double)level->n_down;
        fabric->n_levels++;
    }
    if (fabric->n_levels == 0)
        return fr_xml_fail(node, err,
                           "a fabric of kind %s needs <level "
                           "down=\"...\"/> from the leaves up",
                           fr_fabric_kind_name(fabric->kind));
    if (below < (double)n_nodes)
        return fr_xml_fail(node, err,
                           "the levels reach %.0f nodes, the cluster has "
                           "%lld; raise 'down' or add a level",
                           below, (long long)n_nodes);
    return FR_OK;
}

static fr_status check_attribute(const fr_xml_node *node, const char *name,
                                 fr_err *err)
{
    const fr_element *element = fr_element_find(fr_xml_name(node));
    for (size_t i = 0; i < fr_element_n(element); i++)
        if (strcmp(element->attributes[i].field.key, name) == 0)
            return fr_attribute_check(node, &element->attributes[i], err);
    return FR_OK;
}

static fr_status read_torus(const fr_xml_node *node, int64_t n_nodes,
                            fr_fabric *fabric, fr_err *err)
{
    const char *text;
    double product = 1.0;
    FR_TRY(fr_xml_get_string(node, "dims", &text, err));
    FR_TRY(check_attribute(node, "dims", err));
    while (*text && fabric->n_dims < FR_CLUSTER_DIMS) {
        char *end;
        fabric->dims[fabric->n_dims] = strtoll(text, &end, 10);
        product *= (double)fabric->dims[fabric->n_dims++];
        text = *end == 'x' ? end + 1 : end;
        if (end == text && *end)
            break;
    }
    if (product != (double)n_nodes)
        return fr_xml_fail(node, err,
                           "dims make %.0f nodes, the cluster has %lld; make "
                           "them equal",
                           product, (long long)n_nodes);
    return fr_element_read(node, fabric, err);
}

static fr_status read_dragonfly(const fr_xml_node *node, int64_t n_nodes,
                                fr_fabric *fabric, fr_err *err)
{
    FR_TRY(fr_element_read(node, fabric, err));
    if (fr_xml_find(node, "global-bandwidth") == NULL)
        fabric->global_Bps = fabric->link_Bps;
    if (fr_xml_find(node, "global-latency") == NULL)
        fabric->global_latency_s = fabric->link_latency_s;
    const int64_t counts[] = {fabric->n_groups, fabric->n_routers,
                              fabric->n_per_router};
    double product = 1.0;
    for (size_t i = 0; i < 3; i++) {
        if (counts[i] < 1 || counts[i] > FR_CLUSTER_MAX_NODES)
            return fr_xml_fail(node, err,
                               "groups, routers, nodes-per-router: give 1 to "
                               "%d each",
                               FR_CLUSTER_MAX_NODES);
        product *= (double)counts[i];
    }
    if (product < (double)n_nodes)
        return fr_xml_fail(node, err,
                           "groups x routers x nodes-per-router = %.0f, the "
                           "cluster has %lld nodes; raise one",
                           product, (long long)n_nodes);
    return FR_OK;
}

/* ---- explicit links ------------------------------------------------------ */

static fr_status read_switches(const fr_xml_node *node, fr_cluster *cluster,
                               fr_err *err)
{
    fr_fabric *fabric = &cluster->fabric;
    fr_xml_each (at, node, "switch") {
        const char *id;
        FR_TRY(fr_xml_get_string(at, "id", &id, err));
        if (fr_cluster_node_find(cluster, id) >= 0)
            return fr_xml_fail(at, err,
                               "duplicate id '%s': a node has it; rename the "
                               "switch",
                               id);
        for (size_t i = 0; i < fabric->n_switches; i++)
            if (strcmp(fabric->switches[i].id, id) == 0)
                return fr_xml_fail(at, err,
                                   "duplicate switch id '%s'; rename one", id);
        fr_text_copy_cut(fabric->switches[fabric->n_switches++].id,
                         FR_CLUSTER_ID, id);
    }
    return FR_OK;
}

static fr_status fail_unknown_host(const fr_xml_node *node,
                                   const fr_cluster *cluster, const char *id,
                                   fr_err *err)
{
    char first[FR_CLUSTER_ID + 32];
    return fr_xml_fail(node, err,
                       "link to unknown host '%s'; nodes are called '%s' and "
                       "so on, switches need a <switch id=\"...\"/>",
                       id,
                       fr_cluster_node_name(cluster, 0, first, sizeof first));
}

static fr_status find_vertex(const fr_xml_node *node, const char *attribute,
                             const fr_cluster *cluster, int64_t *out,
                             fr_err *err)
{
    const char *id;
    FR_TRY(fr_xml_get_string(node, attribute, &id, err));
    int64_t found = fr_cluster_node_find(cluster, id);
    for (size_t i = 0; found < 0 && i < cluster->fabric.n_switches; i++)
        if (strcmp(cluster->fabric.switches[i].id, id) == 0)
            found = fr_cluster_n_nodes(cluster) + (int64_t)i;
    if (found < 0)
        return fail_unknown_host(node, cluster, id, err);
    *out = found;
    return FR_OK;
}

static fr_status read_link(const fr_xml_node *node, fr_cluster *cluster,
                           fr_err *err)
{
    fr_fabric *fabric = &cluster->fabric;
    fr_fabric_link link = {0};
    const char *id, *duplex = fr_xml_find(node, "duplex");
    FR_TRY(fr_xml_get_string(node, "id", &id, err));
    fr_text_copy_cut(link.id, sizeof link.id, id);
    FR_TRY(find_vertex(node, "from", cluster, &link.from, err));
    FR_TRY(find_vertex(node, "to", cluster, &link.to, err));
    if (link.from == link.to)
        return fr_xml_fail(node, err,
                           "link '%s' goes from '%s' to itself: a cycle of "
                           "one; name two hosts",
                           id, fr_xml_find(node, "from"));
    FR_TRY(fr_element_read(node, &link, err));
    link.is_half_duplex = duplex != NULL && strcmp(duplex, "half") == 0;
    fabric->links[fabric->n_links++] = link;
    return FR_OK;
}

typedef struct link_name {
    const char *id;
    const fr_xml_node *node;
} link_name;

/* By id, then by line. */
static int compare_names(const void *a, const void *b)
{
    const link_name *x = a, *y = b;
    int by_id = strcmp(x->id, y->id);
    return by_id != 0 ? by_id : fr_xml_line(x->node) - fr_xml_line(y->node);
}

/* Lists may be long: names are sorted, not compared with each other. */
static fr_status check_link_names(const fr_xml_node *node, size_t n_links,
                                  fr_err *err)
{
    link_name *names = calloc(n_links + 1, sizeof *names);
    fr_status status = FR_OK;
    size_t n = 0;
    if (names == NULL)
        return fr_fail_no_memory(err);
    fr_xml_each (at, node, "link")
        if (fr_xml_find(at, "id") != NULL)
            names[n++] = (link_name){fr_xml_find(at, "id"), at};
    qsort(names, n, sizeof *names, compare_names);
    for (size_t i = 1; i < n && status == FR_OK; i++)
        if (strcmp(names[i - 1].id, names[i].id) == 0)
            status =
                fr_xml_fail(names[i].node, err,
                            "duplicate link id '%s'; rename one", names[i].id);
    free(names);
    return status;
}

/* Every node must be reachable from the first one: flood along the links. */
static fr_status check_connected(const fr_xml_node *node,
                                 const fr_cluster *cluster, fr_err *err)
{
    const fr_fabric *fabric = &cluster->fabric;
    int64_t n_nodes = fr_cluster_n_nodes(cluster);
    bool *is_reached = calloc((size_t)n_nodes + fabric->n_switches, 1);
    if (is_reached == NULL)
        return fr_fail_no_memory(err);
    is_reached[0] = true;
    for (bool has_changed = true; has_changed;) {
        has_changed = false;
        for (size_t i = 0; i < fabric->n_links; i++) {
            bool *from = &is_reached[fabric->links[i].from];
            bool *to = &is_reached[fabric->links[i].to];
            if (*from != *to)
                *from = *to = has_changed = true;
        }
    }
    int64_t lost = 0;
    while (lost < n_nodes && is_reached[lost])
        lost++;
    free(is_reached);
    if (lost == n_nodes)
        return FR_OK;
    char first[FR_CLUSTER_ID + 32], name[FR_CLUSTER_ID + 32];
    return fr_xml_fail(node, err, "no way from '%s' to '%s'; add a <link>",
                       fr_cluster_node_name(cluster, 0, first, sizeof first),
                       fr_cluster_node_name(cluster, lost, name, sizeof name));
}

/* Each that cannot be read is a problem; what they join is then not asked. */
static fr_status read_links(const fr_xml_node *node, fr_cluster *cluster,
                            fr_problems *problems, fr_err *err)
{
    bool is_complete = true;
    fr_fabric *fabric = &cluster->fabric;
    size_t n_links = fr_cluster_n_named(node, "link");
    size_t n_switches = fr_cluster_n_named(node, "switch");
    if (n_links > FR_CLUSTER_MAX_LINKS || n_switches > FR_CLUSTER_MAX_LINKS)
        return fr_xml_fail(node, err, "more than %d links or switches",
                           FR_CLUSTER_MAX_LINKS);
    fabric->links = calloc(n_links + 1, sizeof *fabric->links);
    fabric->switches = calloc(n_switches + 1, sizeof *fabric->switches);
    if (fabric->links == NULL || fabric->switches == NULL)
        return fr_fail_no_memory(err);
    FR_TRY(read_switches(node, cluster, err));
    fr_xml_each (at, node, "link") {
        fr_err problem;
        fr_status status = read_link(at, cluster, &problem);
        is_complete = is_complete && status == FR_OK;
        FR_TRY(
            fr_problems_take(problems, fr_xml_line(at), status, &problem, err));
    }
    FR_TRY(check_link_names(node, n_links, err));
    return is_complete ? check_connected(node, cluster, err) : FR_OK;
}

/* ---- all kinds ----------------------------------------------------------- */

/* All but torus and explicit links begin and end at a NIC. */
static fr_status check_nics(const fr_xml_node *node, const fr_cluster *cluster,
                            fr_err *err)
{
    fr_fabric_kind kind = cluster->fabric.kind;
    if (kind == FR_FABRIC_NONE || kind == FR_FABRIC_TORUS ||
        kind == FR_FABRIC_LINKS)
        return FR_OK;
    for (size_t i = 0; i < cluster->n_groups; i++) {
        const fr_node_type *type =
            &cluster->node_types[cluster->groups[i].i_node_type];
        if (type->n_nics < 1 && !FR_IS_STAND_IN_NODE(type))
            return fr_xml_fail(node, err,
                               "node-type '%s' has no <nic> to reach this "
                               "fabric with",
                               type->id);
    }
    return FR_OK;
}

fr_status fr_cluster_read_fabric(const fr_xml_node *root, fr_cluster *cluster,
                                 fr_problems *problems, fr_err *err)
{
    const fr_xml_node *node = fr_xml_first_named(root, "fabric");
    fr_fabric *fabric = &cluster->fabric;
    int64_t n_nodes = fr_cluster_n_nodes(cluster);
    const char *kind;
    if (node == NULL && n_nodes > 1)
        return fr_xml_fail(root, err, "%lld nodes need a <fabric>",
                           (long long)n_nodes);
    if (node == NULL)
        return FR_OK;
    if (fr_xml_next_named(node, "fabric") != NULL)
        return fr_xml_fail(fr_xml_next_named(node, "fabric"), err,
                           "a second <fabric>; a cluster has one");
    FR_TRY(fr_xml_get_string(node, "kind", &kind, err));
    if (fr_name_find(&fr_fabric_kinds, kind) < 0)
        return FR_SKIPPED; /* the check of the values says so */
    fabric->kind = (fr_fabric_kind)fr_name_find(&fr_fabric_kinds, kind);
    FR_TRY(check_foreign(node, fabric, err));
    FR_TRY(fr_xml_maybe_bool(node, "sharp", &fabric->has_sharp, err));
    FR_TRY(check_nics(node, cluster, err));
    switch (fabric->kind) {
    case FR_FABRIC_FAT_TREE:
    case FR_FABRIC_RAIL:
        return read_levels(node, n_nodes, fabric, err);
    case FR_FABRIC_TORUS:
        return read_torus(node, n_nodes, fabric, err);
    case FR_FABRIC_DRAGONFLY:
        return read_dragonfly(node, n_nodes, fabric, err);
    case FR_FABRIC_LINKS:
        return read_links(node, cluster, problems, err);
    case FR_FABRIC_NONE:
    case FR_FABRIC_SWITCH:
    case FR_FABRIC_N:
        break;
    }
    return FR_OK;
}
