/* cluster_read.c: reads a cluster file; types and fabric have their own. */
#include "core/base/text.h"
#include "spec/catalog/catalog.h"
#include "spec/catalog/config_path.h"
#include "spec/cluster/cluster_reader.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

size_t fr_cluster_n_named(const fr_xml_node *node, const char *name)
{
    size_t n = 0;
    fr_xml_each (at, node, name)
        n++;
    return n;
}

static fr_status fail_node_type(const fr_xml_node *node,
                                const fr_cluster *cluster, const char *id,
                                fr_err *err)
{
    char hint[FR_HINT_MAX];
    const char *nearest = fr_catalog_node_nearest(id);
    size_t best =
        nearest != NULL ? fr_text_distance(id, nearest) : strlen(id) / 2 + 1;
    for (size_t i = 0; i < cluster->n_node_types; i++) {
        size_t distance = fr_text_distance(id, cluster->node_types[i].id);
        if (distance < best) {
            best = distance;
            nearest = cluster->node_types[i].id;
        }
    }
    return fr_xml_fail(node, err,
                       "no node-type '%s' in this file or the catalogue%s", id,
                       fr_text_hint(nearest, hint));
}

/* Appends a type of the catalogue with its device when the file uses it. */
static fr_status find_node_type(const fr_xml_node *node, const char *id,
                                fr_cluster *cluster, int32_t *out, fr_err *err)
{
    for (size_t i = 0; i < cluster->n_node_types; i++)
        if (strcmp(cluster->node_types[i].id, id) == 0) {
            *out = (int32_t)i;
            return FR_OK;
        }
    const fr_catalog_node *found = fr_catalog_node_find(id);
    if (found == NULL)
        return fail_node_type(node, cluster, id, err);
    fr_node_type *types =
        realloc(cluster->node_types,
                (cluster->n_node_types + 1) * sizeof *cluster->node_types);
    if (types == NULL)
        return fr_fail_no_memory(err);
    cluster->node_types = types;
    fr_device_type *devices = realloc(
        cluster->devices, (cluster->n_devices + 1) * sizeof *cluster->devices);
    if (devices == NULL)
        return fr_fail_no_memory(err);
    cluster->devices = devices;
    devices[cluster->n_devices] = fr_catalog_device_find(found->device)->type;
    types[cluster->n_node_types] = found->type;
    types[cluster->n_node_types].i_device = (int32_t)cluster->n_devices++;
    *out = (int32_t)cluster->n_node_types++;
    return FR_OK;
}

/* A node type that is not there, for what counts nodes. */
static fr_status add_stand_in(fr_cluster *cluster, int32_t *out, fr_err *err)
{
    fr_node_type *types =
        realloc(cluster->node_types,
                (cluster->n_node_types + 1) * sizeof *cluster->node_types);
    if (types == NULL)
        return fr_fail_no_memory(err);
    cluster->node_types = types;
    types[cluster->n_node_types] = (fr_node_type){0};
    *out = (int32_t)cluster->n_node_types++;
    return FR_OK;
}

/* The number of nodes is known if this returns FR_OK. */
static fr_status read_group(const fr_xml_node *node, fr_cluster *cluster,
                            fr_problems *problems, fr_err *err)
{
    fr_node_group *group = &cluster->groups[cluster->n_groups];
    const char *id, *type;
    fr_err problem;
    group->n_nodes = 1;
    FR_TRY(fr_xml_get_string(node, "id", &id, err));
    FR_TRY(fr_xml_get_string(node, "node-type", &type, err));
    for (size_t i = 0; i < cluster->n_groups; i++)
        if (strcmp(cluster->groups[i].id, id) == 0)
            return fr_xml_fail(node, err, "duplicate group id '%s'; rename one",
                               id);
    fr_text_copy_cut(group->id, sizeof group->id, id);
    fr_status status =
        find_node_type(node, type, cluster, &group->i_node_type, &problem);
    FR_TRY(
        fr_problems_take(problems, fr_xml_line(node), status, &problem, err));
    if (status != FR_OK)
        FR_TRY(add_stand_in(cluster, &group->i_node_type, err));
    FR_TRY(fr_element_read(node, group, err));
    if (group->n_nodes < 1 ||
        group->n_nodes + fr_cluster_n_nodes(cluster) > FR_CLUSTER_MAX_NODES)
        return fr_xml_fail(node, err,
                           "count is %lld; give 1 or more, %d nodes in all",
                           (long long)group->n_nodes, FR_CLUSTER_MAX_NODES);
    cluster->n_groups++;
    return FR_OK;
}

/* *is_complete: every node has its number. */
static fr_status read_groups(const fr_xml_node *root, fr_cluster *cluster,
                             fr_problems *problems, bool *is_complete,
                             fr_err *err)
{
    fr_err problem;
    fr_status status = FR_OK;
    *is_complete = true;
    fr_xml_each (at, root, "group") {
        status = read_group(at, cluster, problems, &problem);
        *is_complete = *is_complete && status == FR_OK;
        FR_TRY(
            fr_problems_take(problems, fr_xml_line(at), status, &problem, err));
    }
    fr_cluster_count_nodes(cluster);
    if (cluster->n_groups > 0 || !*is_complete)
        return FR_OK;
    *is_complete = false;
    status = fr_xml_fail(root, &problem,
                         "the cluster has no nodes; add a <group id=\"...\" "
                         "node-type=\"...\" count=\"...\"/>");
    return fr_problems_take(problems, fr_xml_line(root), status, &problem, err);
}

/* ---- what is slow, how things fail --------------------------------------- */

static fr_status read_slow_node(const fr_xml_node *node,
                                const fr_cluster *cluster, fr_slow *slow,
                                fr_err *err)
{
    const char *name;
    int64_t device = -1;
    FR_TRY(fr_xml_get_string(node, "node", &name, err));
    slow->node = fr_cluster_node_find(cluster, name);
    if (slow->node < 0) {
        char first[FR_CLUSTER_ID + 32];
        return fr_xml_fail(
            node, err, "unknown node '%s'; nodes are called '%s' and so on",
            name, fr_cluster_node_name(cluster, 0, first, sizeof first));
    }
    FR_TRY(fr_xml_maybe_i64(node, "device", &device, err));
    const fr_node_type *type = fr_cluster_node_type(cluster, slow->node);
    if (FR_IS_STAND_IN_NODE(type) ||
        FR_IS_STAND_IN_DEVICE(&cluster->devices[type->i_device]))
        return FR_SKIPPED;
    int64_t n_slots = fr_cluster_node_slots(cluster, slow->node, 1);
    if (device >= n_slots)
        return fr_xml_fail(node, err, "device %lld: '%s' has 0 to %lld",
                           (long long)device, name, (long long)n_slots - 1);
    if (device >= 0 && fr_xml_find(node, "network") != NULL)
        return fr_xml_fail(node, err,
                           "network is of the whole node; leave device out");
    slow->device = (int32_t)device;
    return FR_OK;
}

static fr_status read_slow(const fr_xml_node *node, fr_cluster *cluster,
                           fr_err *err)
{
    fr_slow *slow = &cluster->slow[cluster->n_slow];
    const char *link = fr_xml_find(node, "link");
    *slow = (fr_slow){-1, -1, -1, 1.0, 1.0};
    if (link != NULL && fr_xml_find(node, "node") != NULL)
        return fr_xml_fail(node, err,
                           "<slow> names a node or a link, not "
                           "both");
    if (link == NULL)
        FR_TRY(read_slow_node(node, cluster, slow, err));
    for (size_t i = 0; link && i < cluster->fabric.n_links; i++)
        if (strcmp(cluster->fabric.links[i].id, link) == 0)
            slow->link = (int64_t)i;
    if (link != NULL && slow->link < 0)
        return fr_xml_fail(node, err,
                           "unknown link '%s'; only links of a "
                           "fabric of kind links have names",
                           link);
    FR_TRY(fr_element_read(node, slow, err));
    if (slow->compute_frac <= 0.0 || slow->network_frac <= 0.0)
        return fr_xml_fail(node, err,
                           "a speed of 0; give what is left of the "
                           "normal one, e.g. 80%%");
    if (slow->compute_frac == 1.0 && slow->network_frac == 1.0)
        return fr_xml_fail(node, err,
                           "<slow> needs compute=\"80%%\" or "
                           "network=\"50%%\"");
    cluster->n_slow++;
    return FR_OK;
}

static fr_status read_all_slow(const fr_xml_node *root, fr_cluster *cluster,
                               fr_problems *problems, fr_err *err)
{
    size_t n = fr_cluster_n_named(root, "slow");
    if (n == 0)
        return FR_OK;
    cluster->slow = calloc(n, sizeof *cluster->slow);
    if (cluster->slow == NULL)
        return fr_fail_no_memory(err);
    fr_xml_each (at, root, "slow") {
        fr_err problem;
        fr_status status = read_slow(at, cluster, &problem);
        FR_TRY(
            fr_problems_take(problems, fr_xml_line(at), status, &problem, err));
    }
    return FR_OK;
}

static fr_status read_reliability(const fr_xml_node *node, fr_cluster *cluster,
                                  fr_err *err)
{
    double every_s = 0.0;
    FR_TRY(fr_element_read(node, cluster, err));
    FR_TRY(fr_xml_maybe_quantity(node, "spot-interruption-every", FR_QUANTITY_S,
                                 0, &every_s, err));
    if (every_s > 0.0)
        cluster->spot_interruption_per_h = 3600.0 / every_s;
    return FR_OK;
}

static fr_status read_site(const fr_xml_node *node, fr_cluster *cluster,
                           fr_err *err)
{
    FR_TRY(fr_element_read(node, cluster, err));
    if (!(cluster->pue >= 1.0 && cluster->pue <= 10.0))
        return fr_xml_fail(node, err, "pue is %g; give 1 to 10", cluster->pue);
    if (!(cluster->carbon_g_per_kwh >= 0.0))
        return fr_xml_fail(node, err, "carbon-g-per-kwh is %g; give 0 or more",
                           cluster->carbon_g_per_kwh);
    return FR_OK;
}

static fr_status read_jitter(const fr_xml_node *node, fr_cluster *cluster,
                             fr_err *err)
{
    return fr_element_read(node, cluster, err);
}

static fr_status read_rest(const fr_xml_node *root, fr_cluster *cluster,
                           fr_problems *problems, fr_err *err)
{
    static const struct {
        const char *name;
        fr_status (*read)(const fr_xml_node *, fr_cluster *, fr_err *);
    } rest[] = {{"jitter", read_jitter},
                {"reliability", read_reliability},
                {"site", read_site}};
    cluster->jitter_compute_frac = fr_cluster_default_jitter_frac(cluster);
    for (size_t i = 0; i < FR_LENGTH(rest); i++) {
        const fr_xml_node *at = fr_xml_first_named(root, rest[i].name);
        fr_err problem;
        if (at == NULL)
            continue;
        fr_status status = rest[i].read(at, cluster, &problem);
        FR_TRY(
            fr_problems_take(problems, fr_xml_line(at), status, &problem, err));
    }
    return FR_OK;
}

/* On failure the caller releases the members that were filled. */
static fr_status read_root(const fr_xml_node *root, fr_cluster *cluster,
                           fr_problems *problems, fr_err *err)
{
    size_t n_groups = fr_cluster_n_named(root, "group");
    const char *name = fr_xml_find(root, "name");
    bool is_complete;
    cluster->pue = 1.0;
    fr_text_copy_cut(cluster->name, sizeof cluster->name,
                     name != NULL ? name : "");
    if (n_groups > FR_CLUSTER_MAX_TYPES)
        return fr_xml_fail(root, err, "more than %d groups",
                           FR_CLUSTER_MAX_TYPES);
    cluster->groups = calloc(n_groups + 1, sizeof *cluster->groups);
    if (cluster->groups == NULL)
        return fr_fail_no_memory(err);
    FR_TRY(fr_cluster_read_types(root, cluster, problems, err));
    FR_TRY(read_groups(root, cluster, problems, &is_complete, err));
    if (is_complete) {
        fr_err problem;
        fr_status status =
            fr_cluster_read_fabric(root, cluster, problems, &problem);
        FR_TRY(fr_problems_take(problems, fr_xml_line(root), status, &problem,
                                err));
        FR_TRY(read_all_slow(root, cluster, problems, err));
    }
    FR_TRY(read_rest(root, cluster, problems, err));
    return fr_xml_maybe_bool(root, "one-machine", &cluster->is_one_machine,
                             err);
}

/* ---- files --------------------------------------------------------------- */

/*
 * All that is wrong is said at once.  The schema, which says less than the
 * readers and says it in words of XML, has the last word.
 */
static fr_status read_all(const fr_xml *xml, fr_problems *problems,
                          fr_cluster *out, fr_err *err)
{
    const fr_xml_node *root = fr_xml_root(xml);
    fr_err problem;
    FR_TRY(fr_cluster_check_structure(root, problems, err));
    fr_status status = read_root(root, out, problems, &problem);
    FR_TRY(
        fr_problems_take(problems, fr_xml_line(root), status, &problem, err));
    FR_TRY(fr_problems_check(problems, fr_xml_path(root), err));
    return fr_xml_validate(xml, (const char *)fr_cluster_xsd, fr_cluster_xsd_n,
                           err);
}

static fr_status read_xml(const fr_xml *xml, fr_cluster *out, fr_err *err)
{
    fr_cluster cluster = {0};
    fr_problems problems = {0};
    fr_status status = read_all(xml, &problems, &cluster, err);
    fr_problems_release(&problems);
    if (status != FR_OK) {
        fr_cluster_release(&cluster);
        return status;
    }
    *out = cluster;
    return FR_OK;
}

fr_status fr_cluster_parse(const char *name, const char *text, size_t n_text,
                           fr_cluster *out, fr_err *err)
{
    fr_xml *xml;
    FR_TRY(fr_xml_parse(name, text, n_text, &xml, err));
    fr_status status = read_xml(xml, out, err);
    fr_xml_destroy(xml);
    return status;
}

/* "dgx-h100:16" */
static fr_status load_catalog(const char *text, const char *colon,
                              fr_cluster *out, fr_err *err)
{
    char id[FR_CLUSTER_ID];
    uint64_t n_nodes;
    fr_err inner = {0};
    size_t n = (size_t)(colon - text);
    if (n == 0 || n >= sizeof id)
        return fr_fail(err, FR_INPUT,
                       "%s: give a node type and a count, e.g. dgx-h100:16",
                       text);
    memcpy(id, text, n);
    id[n] = '\0';
    if (fr_parse_count(colon + 1, &n_nodes, &inner) != FR_OK)
        return fr_fail(err, FR_INPUT, "%s: %s; give e.g. dgx-h100:16", text,
                       inner.text);
    if (n_nodes > FR_CLUSTER_MAX_NODES)
        return fr_fail(err, FR_INPUT, "%s: give 1 to %d nodes", text,
                       FR_CLUSTER_MAX_NODES);
    return fr_catalog_cluster(id, (int64_t)n_nodes, out, err);
}

fr_status fr_cluster_load(const char *configs, const char *name_or_path,
                          fr_cluster *out, fr_err *err)
{
    char path[FR_CONFIG_PATH];
    fr_xml *xml;
    const char *colon = strrchr(name_or_path, ':');
    bool is_path =
        strchr(name_or_path, '/') || fr_text_ends(name_or_path, ".xml");
    if (colon != NULL && !is_path)
        return load_catalog(name_or_path, colon, out, err);
    if (!is_path && fr_catalog_node_find(name_or_path) != NULL)
        return fr_catalog_cluster(name_or_path, 1, out, err);
    FR_TRY(fr_config_resolve(configs, name_or_path, "clusters", ".xml", path,
                             err));
    FR_TRY(fr_xml_load(path, &xml, err));
    fr_status status = read_xml(xml, out, err);
    fr_xml_destroy(xml);
    return status;
}
