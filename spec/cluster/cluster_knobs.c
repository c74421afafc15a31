/* cluster_knobs.c: one function per knob, and how their values are read. */
#include "spec/cluster/cluster_knobs.h"

#include "core/base/text.h"
#include "spec/catalog/catalog.h"
#include "spec/cluster/cluster_elements.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- knobs -------------------------------------------------------------- */

static double turned(double old, fr_knob_value to)
{
    return to.is_factor ? old * to.value : to.value;
}

/* "x1.5" of a count is none. */
static fr_status turned_count(const char *what, int64_t old, int64_t most,
                              fr_knob_value to, int64_t *out, fr_err *err)
{
    double value = turned((double)old, to);
    if (!(value >= 1 && value <= (double)most) || value != floor(value))
        return fr_fail(err, FR_INPUT, "%s: %g; give a whole number, 1 to %lld",
                       what, value, (long long)most);
    *out = (int64_t)value;
    return FR_OK;
}

static fr_node_type *node_at(fr_cluster *cluster, size_t i)
{
    return &cluster->node_types[i];
}

static fr_status swap_cluster(const char *configs, fr_cluster *cluster,
                              const char *name, fr_err *err)
{
    fr_cluster other;
    FR_TRY(fr_cluster_load(configs, name, &other, err));
    fr_cluster_release(cluster);
    *cluster = other;
    return FR_OK;
}

static fr_status swap_node(const char *configs, fr_cluster *cluster,
                           const char *name, fr_err *err)
{
    (void)configs;
    fr_cluster other;
    FR_TRY(fr_catalog_cluster(name, fr_cluster_n_nodes(cluster), &other, err));
    fr_cluster_release(cluster);
    *cluster = other;
    return FR_OK;
}

/* A tree grows at its top, where all branches meet. */
static void widen_tree(fr_fabric *net, int64_t n_nodes)
{
    int64_t below = 1;
    for (int32_t i = 0; i + 1 < net->n_levels; i++)
        below *= net->levels[i].n_down;
    if (net->n_levels == 0)
        return;
    fr_fabric_level *top = &net->levels[net->n_levels - 1];
    int64_t n_down = (n_nodes + below - 1) / below;
    if (top->n_down < n_down || net->n_levels == 1)
        top->n_down = n_down;
}

/* Alike in all that a file can say of them but their names; a device of one
 * name is one device. */
static bool is_like(const fr_cluster *cluster, const fr_node_type *a,
                    const fr_node_type *b)
{
    static const char *const names[] = {"node-type", "intra", "nic", "pcie",
                                        "storage"};
    if (strcmp(cluster->devices[a->i_device].id,
               cluster->devices[b->i_device].id) != 0)
        return false;
    for (size_t i = 0; i < FR_LENGTH(names); i++) {
        const fr_element *element = fr_element_find(names[i]);
        for (size_t k = 0; k < fr_element_n(element); k++) {
            const fr_field *field = &element->attributes[k].field;
            if (field->n_bytes > 0 && !fr_field_is_same(field, a, b))
                return false;
        }
    }
    return true;
}

static bool has_equal_groups(const fr_cluster *cluster)
{
    const fr_node_group *groups = cluster->groups;
    for (size_t i = 1; i < cluster->n_groups; i++)
        if (!is_like(cluster, &cluster->node_types[groups[i].i_node_type],
                     &cluster->node_types[groups[0].i_node_type]))
            return false;
    return true;
}

/* Groups of equal nodes are counted through: fewer nodes are those of the
 * first groups, more join the last one. */
static void resize_groups(fr_cluster *cluster, int64_t n_nodes)
{
    int64_t n_left = n_nodes;
    size_t n = 0;
    for (; n < cluster->n_groups && n_left > 0; n++) {
        fr_node_group *group = &cluster->groups[n];
        if (group->n_nodes > n_left || n + 1 == cluster->n_groups)
            group->n_nodes = n_left;
        n_left -= group->n_nodes;
    }
    cluster->n_groups = n;
}

static fr_status turn_nodes(fr_cluster *cluster, fr_knob_value to, fr_err *err)
{
    fr_fabric *net = &cluster->fabric;
    const fr_catalog_node *listed;
    int64_t n_nodes, n_old = fr_cluster_n_nodes(cluster);
    FR_TRY(turned_count("nodes", n_old, 1000000, to, &n_nodes, err));
    if (!has_equal_groups(cluster))
        return fr_fail(err, FR_INPUT,
                       "cluster '%s' has %zu groups of different nodes: which "
                       "of them should change?  Describe each in a file",
                       cluster->name, cluster->n_groups);
    bool is_drawn = net->kind == FR_FABRIC_TORUS ||
                    net->kind == FR_FABRIC_DRAGONFLY ||
                    net->kind == FR_FABRIC_LINKS || cluster->n_slow > 0;
    if (n_nodes != n_old && is_drawn)
        return fr_fail(err, FR_INPUT,
                       "cluster '%s' is drawn for %lld nodes (%s); describe "
                       "others in a file",
                       cluster->name, (long long)n_old,
                       cluster->n_slow > 0 ? "slow ones are named"
                                           : fr_fabric_kind_name(net->kind));
    if (n_nodes == n_old)
        return FR_OK;
    resize_groups(cluster, n_nodes);
    if (net->kind == FR_FABRIC_NONE && n_nodes > 1) {
        /* One node of the catalogue: its usual network. */
        listed = fr_catalog_node_find(node_at(cluster, 0)->id);
        net->kind = listed != NULL ? listed->fabric : FR_FABRIC_SWITCH;
        if (net->kind == FR_FABRIC_RAIL) {
            net->n_levels = 1;
            net->levels[0] = (fr_fabric_level){.oversubscription = 1.0};
        }
    }
    if (net->kind == FR_FABRIC_FAT_TREE || net->kind == FR_FABRIC_RAIL)
        widen_tree(net, n_nodes);
    if (n_nodes > 1 && node_at(cluster, 0)->n_nics == 0)
        return fr_fail(err, FR_INPUT,
                       "node-type '%s' has no NIC: %lld of them cannot work "
                       "together",
                       node_at(cluster, 0)->id, (long long)n_nodes);
    fr_cluster_count_nodes(cluster);
    return FR_OK;
}

/* By its id, or the first that begins with the name: "h100" is the module. */
static const fr_catalog_device *find_device(const char *name)
{
    const fr_catalog_device *found = fr_catalog_device_find(name);
    size_t n = strlen(name);
    for (size_t i = 0; found == NULL && i < fr_catalog_n_devices(); i++) {
        const fr_catalog_device *row = fr_catalog_device_at(i);
        if (strncmp(row->type.id, name, n) == 0 && row->type.id[n] == '-')
            found = row;
    }
    return found;
}

/* With the links that such GPUs have among themselves; what was paid for the
 * node is no price of the new one. */
static fr_status swap_gpu(const char *configs, fr_cluster *cluster,
                          const char *name, fr_err *err)
{
    (void)configs;
    const fr_catalog_device *device = find_device(name);
    if (device == NULL) {
        char hint[FR_HINT_MAX];
        const char *near = fr_catalog_device_nearest(name);
        return fr_fail(err, FR_INPUT,
                       "no device '%s' in the catalogue%s; 'forerun "
                       "catalog devices' lists them",
                       name, fr_text_hint(near, hint));
    }
    for (size_t i = 0; i < cluster->n_devices; i++) {
        if (cluster->devices[i].kind != FR_DEVICE_GPU)
            return fr_fail(err, FR_INPUT,
                           "cluster '%s' has no GPUs to exchange",
                           cluster->name);
        cluster->devices[i] = device->type;
    }
    for (size_t i = 0; i < cluster->n_node_types; i++) {
        fr_node_type *node = node_at(cluster, i);
        node->price_usd_per_h = node->spot_usd_per_h = 0;
        if (device->pcie_Bps > 0)
            node->host_link_Bps = device->pcie_Bps;
        node->intra_kind =
            device->link_Bps > 0 ? device->link_kind : FR_INTRA_PCIE;
        node->intra_Bps =
            device->link_Bps > 0 ? device->link_Bps : device->pcie_Bps;
        node->intra_p2p_Bps =
            device->link_Bps > 0 ? device->link_pair_Bps : device->pcie_Bps;
    }
    return FR_OK;
}

static fr_status turn_devices(fr_cluster *cluster, fr_knob_value to,
                              fr_err *err)
{
    for (size_t i = 0; i < cluster->n_node_types; i++) {
        fr_node_type *node = node_at(cluster, i);
        int64_t n_devices;
        if (cluster->devices[node->i_device].kind != FR_DEVICE_GPU)
            return fr_fail(err, FR_INPUT, "cluster '%s' has no GPUs to count",
                           cluster->name);
        FR_TRY(turned_count("gpus-per-node", node->n_devices, 1024, to,
                            &n_devices, err));
        node->n_devices = (int32_t)n_devices;
    }
    fr_cluster_count_nodes(cluster);
    return FR_OK;
}

static fr_status turn_nvlink(fr_cluster *cluster, fr_knob_value to, fr_err *err)
{
    for (size_t i = 0; i < cluster->n_node_types; i++) {
        fr_node_type *node = node_at(cluster, i);
        double old_Bps = node->intra_Bps;
        if (old_Bps <= 0)
            return fr_fail(err, FR_INPUT,
                           "node-type '%s': the rate of its fabric is not "
                           "stated",
                           node->id);
        node->intra_Bps = turned(old_Bps, to);
        node->intra_p2p_Bps *= node->intra_Bps / old_Bps;
    }
    return FR_OK;
}

/* If each GPU had a rail of switches, it keeps one. */
static fr_status turn_nics(fr_cluster *cluster, fr_knob_value to, fr_err *err)
{
    for (size_t i = 0; i < cluster->n_node_types; i++) {
        fr_node_type *node = node_at(cluster, i);
        int64_t n_nics;
        if (node->nic_Bps <= 0)
            return fr_fail(err, FR_INPUT, "node-type '%s' has no NIC",
                           node->id);
        FR_TRY(turned_count("nics", node->n_nics, 1024, to, &n_nics, err));
        if (node->n_rails == node->n_nics)
            node->n_rails = (int32_t)n_nics;
        node->n_nics = (int32_t)n_nics;
    }
    return FR_OK;
}

static fr_status turn_nic(fr_cluster *cluster, fr_knob_value to, fr_err *err)
{
    for (size_t i = 0; i < cluster->n_node_types; i++) {
        fr_node_type *node = node_at(cluster, i);
        if (node->n_nics == 0)
            return fr_fail(err, FR_INPUT, "node-type '%s' has no NIC",
                           node->id);
        node->nic_Bps = turned(node->nic_Bps, to);
    }
    return FR_OK;
}

/* Sets the oversubscription of the links up from the switches of level `i`, 0
 * the leaves. */
static fr_status turn_level(fr_cluster *cluster, int32_t i, fr_knob_value to,
                            fr_err *err)
{
    fr_fabric *net = &cluster->fabric;
    int32_t n_up = net->n_levels > 0 ? net->n_levels - 1 : 0;
    if (n_up == 0)
        return fr_fail(err, FR_INPUT,
                       "cluster '%s' (network: %s) has no switches above "
                       "others; in a file of it write <level down=\"8\" "
                       "oversubscription=\"2\"/><level down=\"%lld\"/> into a "
                       "<fabric kind=\"fat-tree\"> (forerun catalog "
                       "--template two-tier)",
                       cluster->name, fr_fabric_kind_name(net->kind),
                       (long long)((fr_cluster_n_nodes(cluster) + 7) / 8));
    if (i >= n_up)
        return fr_fail(err, FR_INPUT,
                       "cluster '%s' has %d level%s with links up: "
                       "oversubscription.1 is that of the leaves",
                       cluster->name, n_up, n_up == 1 ? "" : "s");
    fr_fabric_level *level = &net->levels[i];
    level->oversubscription = turned(level->oversubscription, to);
    if (level->oversubscription >= 1)
        return FR_OK;
    return fr_fail(err, FR_INPUT, "oversubscription %g: 1 is none",
                   level->oversubscription);
}

/* The level that is oversubscribed; none is: the leaves, where it is usual. */
static fr_status turn_oversubscription(fr_cluster *cluster, fr_knob_value to,
                                       fr_err *err)
{
    const fr_fabric *net = &cluster->fabric;
    int32_t found = -1;
    for (int32_t i = 0; i + 1 < net->n_levels; i++) {
        if (net->levels[i].oversubscription <= 1)
            continue;
        if (found >= 0)
            return fr_fail(err, FR_INPUT,
                           "cluster '%s' is oversubscribed at levels %d and "
                           "%d: say which, oversubscription.%d or "
                           "oversubscription.%d",
                           cluster->name, found + 1, i + 1, found + 1, i + 1);
        found = i;
    }
    return turn_level(cluster, found >= 0 ? found : 0, to, err);
}

static fr_status turn_level_1(fr_cluster *cluster, fr_knob_value to,
                              fr_err *err)
{
    return turn_level(cluster, 0, to, err);
}

static fr_status turn_level_2(fr_cluster *cluster, fr_knob_value to,
                              fr_err *err)
{
    return turn_level(cluster, 1, to, err);
}

static fr_status turn_level_3(fr_cluster *cluster, fr_knob_value to,
                              fr_err *err)
{
    return turn_level(cluster, 2, to, err);
}

static fr_status turn_memory_rate(fr_cluster *cluster, fr_knob_value to,
                                  fr_err *err)
{
    for (size_t i = 0; i < cluster->n_devices; i++) {
        fr_device_type *device = &cluster->devices[i];
        if (to.is_factor && device->memory_Bps <= 0)
            return fr_fail(err, FR_INPUT,
                           "device '%s': the rate of its memory is not known",
                           device->id);
        device->memory_Bps = turned(device->memory_Bps, to);
    }
    return FR_OK;
}

/* Dense peaks of all types, at the power that they need: the share of the
 * peak that a device sustains stays. */
static fr_status turn_flops(fr_cluster *cluster, fr_knob_value to, fr_err *err)
{
    if (!to.is_factor)
        return fr_fail(err, FR_USAGE,
                       "flops: give a multiple, such as x1.5; peaks differ by "
                       "data type");
    for (size_t i = 0; i < cluster->n_devices; i++) {
        fr_device_type *device = &cluster->devices[i];
        device->power_w *= to.value;
        for (int32_t k = 0; k < device->n_peaks; k++)
            device->peaks[k].flops *= to.value;
    }
    return FR_OK;
}

static fr_status turn_gpu_price(fr_cluster *cluster, fr_knob_value to,
                                fr_err *err)
{
    (void)err;
    for (size_t i = 0; i < cluster->n_devices; i++)
        cluster->devices[i].price_usd_per_h =
            turned(cluster->devices[i].price_usd_per_h, to);
    for (size_t i = 0; i < cluster->n_node_types; i++)
        node_at(cluster, i)->price_usd_per_h = 0;
    return FR_OK;
}

/* Scales or sets a value of the cluster.  0 means that the file does not give
 * it, so it has no multiple, and the request is refused. */
static fr_status turn_said(const char *what, double *member, fr_knob_value to,
                           fr_err *err)
{
    if (to.is_factor && !(*member > 0))
        return fr_fail(err, FR_INPUT,
                       "%s: the cluster says none that could be multiplied; "
                       "give a value",
                       what);
    if (!(to.value > 0))
        return fr_fail(err, FR_INPUT, "%s: %g; give more than 0", what,
                       to.value);
    *member = turned(*member, to);
    return FR_OK;
}

/* Sets the MTBF of a device; nothing else fails then. */
static fr_status turn_mtbf(fr_cluster *cluster, fr_knob_value to, fr_err *err)
{
    cluster->node_mtbf_s = 0;
    return turn_said("mtbf", &cluster->device_mtbf_s, to, err);
}

static fr_status turn_restart(fr_cluster *cluster, fr_knob_value to,
                              fr_err *err)
{
    return turn_said("restart", &cluster->restart_s, to, err);
}

static fr_status turn_spot_every(fr_cluster *cluster, fr_knob_value to,
                                 fr_err *err)
{
    double *per_h = &cluster->spot_interruption_per_h;
    double every_s = *per_h > 0 ? 3600 / *per_h : 0;
    FR_TRY(turn_said("spot-every", &every_s, to, err));
    *per_h = 3600 / every_s;
    return FR_OK;
}

static fr_status turn_jitter(fr_cluster *cluster, fr_knob_value to, fr_err *err)
{
    if (to.value < 0 || to.value > 0)
        return turn_said("jitter", &cluster->jitter_compute_frac, to, err);
    cluster->jitter_compute_frac = 0;
    return FR_OK;
}

/* The first device is so many times slower. */
static fr_status turn_slow(fr_cluster *cluster, fr_knob_value to, fr_err *err)
{
    if (!(to.value >= 1 && to.value <= 1e6))
        return fr_fail(err, FR_INPUT,
                       "slow: %g; give how many times slower, 1 or more",
                       to.value);
    const size_t n = cluster->n_slow;
    fr_slow *slow = realloc(cluster->slow, (n + 1) * sizeof *slow);
    if (slow == NULL)
        return fr_fail_no_memory(err);
    slow[n] = (fr_slow){.node = 0,
                        .device = 0,
                        .link = -1,
                        .compute_frac = 1 / to.value,
                        .network_frac = 1};
    cluster->slow = slow;
    cluster->n_slow = n + 1;
    return FR_OK;
}

static void turn_member(const fr_field *member, fr_knob_value to, void *owner)
{
    if (member->n_bytes > 0)
        fr_field_set(member, turned(fr_field_get(member, owner), to), owner);
}

/* ---- the table ---------------------------------------------------------- */

static const fr_cluster_knob knobs[] = {
    {"cluster", "another cluster: dgx-h100:16, or a file", FR_QUANTITY_N,
     .swap = swap_cluster},
    {"node", "as many nodes of another type (catalog nodes)", FR_QUANTITY_N,
     .swap = swap_node},
    {"nodes", "how many", FR_QUANTITY_COUNT, .turn = turn_nodes},
    {"gpu", "another GPU, with its own links (catalog devices)", FR_QUANTITY_N,
     .swap = swap_gpu},
    {"gpus-per-node", "how many", FR_QUANTITY_COUNT, .turn = turn_devices},
    {"nvlink", "of one device into the fabric of its node: 450GB/s",
     FR_QUANTITY_BPS, .turn = turn_nvlink},
    {"nics", "of a node", FR_QUANTITY_COUNT, .turn = turn_nics},
    {"nic", "rate of one NIC: 400Gb/s", FR_QUANTITY_BPS, .turn = turn_nic},
    {"nic-latency", "of a message between nodes: 5us", FR_QUANTITY_S,
     .node_member = {FR_MEMBER(fr_node_type, nic_latency_s)}},
    {"oversubscription",
     "of the level that is oversubscribed, or the leaves: 2", FR_QUANTITY_N,
     .turn = turn_oversubscription},
    {"oversubscription.1", "of the links up from the leaves", FR_QUANTITY_N,
     .turn = turn_level_1},
    {"oversubscription.2", "of those of the level above", FR_QUANTITY_N,
     .turn = turn_level_2},
    {"oversubscription.3", "and of the one above that", FR_QUANTITY_N,
     .turn = turn_level_3},
    {"memory", "of a device: 141GiB", FR_QUANTITY_BYTES,
     .device_member = {FR_MEMBER(fr_device_type, memory_bytes)}},
    {"memory-bandwidth", "of a device: 4.8TB/s", FR_QUANTITY_BPS,
     .turn = turn_memory_rate},
    {"flops", "all peaks, and the power for them: x1.5", FR_QUANTITY_FLOPS,
     .turn = turn_flops},
    {"price", "of a node: 20USD/h", FR_QUANTITY_USD_PER_H,
     .node_member = {FR_MEMBER(fr_node_type, price_usd_per_h)}},
    {"gpu-price", "of a device, the rest of the node free: 2.5USD/h",
     FR_QUANTITY_USD_PER_H, .turn = turn_gpu_price},
    {"power", "of a device: 700W", FR_QUANTITY_W,
     .device_member = {FR_MEMBER(fr_device_type, power_w)}},
    {"mtbf", "mean time between failures of a device: 50000h", FR_QUANTITY_S,
     .turn = turn_mtbf},
    {"restart", "from a failure to training again: 10min", FR_QUANTITY_S,
     .turn = turn_restart},
    {"storage-write", "of a node: 2GB/s", FR_QUANTITY_BPS,
     .node_member = {FR_MEMBER(fr_node_type, storage_write_Bps)}},
    {"storage-read", "of a node: 2GB/s", FR_QUANTITY_BPS,
     .node_member = {FR_MEMBER(fr_node_type, storage_read_Bps)}},
    {"storage-latency", "until a sample begins to come: 2ms", FR_QUANTITY_S,
     .node_member = {FR_MEMBER(fr_node_type, storage_latency_s)}},
    {"spot-every", "mean time until a spot node is taken away: 200h",
     FR_QUANTITY_S, .turn = turn_spot_every},
    {"jitter", "of compute, the standard deviation: 1.5%", FR_QUANTITY_FRAC,
     .turn = turn_jitter},
    {"slow", "the first device is so many times slower: 1.2", FR_QUANTITY_N,
     .turn = turn_slow},
};
enum { N_KNOBS = FR_LENGTH(knobs) };

const fr_cluster_knob *fr_cluster_knob_at(int i)
{
    return i >= 0 && i < N_KNOBS ? &knobs[i] : NULL;
}

int fr_cluster_knob_find(const char *name)
{
    for (int i = 0; i < N_KNOBS; i++)
        if (strcmp(knobs[i].name, name) == 0)
            return i;
    return -1;
}

static fr_status read_value(const fr_cluster_knob *knob, const char *text,
                            fr_knob_value *out, fr_err *err)
{
    fr_err why;
    fr_status status;
    out->is_factor = text[0] == 'x';
    if (out->is_factor || knob->quantity == FR_QUANTITY_N)
        status = fr_parse_double(text + out->is_factor, &out->value, &why);
    else
        status = fr_parse_quantity(knob->quantity, text, 0, &out->value, &why);
    if (status != FR_OK)
        return fr_fail(err, FR_USAGE, "%s: %.400s", knob->name, why.text);
    if (out->is_factor && !(out->value > 0 && out->value <= 1e6))
        return fr_fail(err, FR_USAGE, "%s: '%.80s' is no multiple", knob->name,
                       text);
    return FR_OK;
}

fr_status fr_cluster_knob_turn(const char *configs, const fr_cluster_knob *knob,
                               fr_cluster *cluster, const char *text,
                               fr_err *err)
{
    fr_knob_value to;
    if (knob->swap != NULL)
        return knob->swap(configs, cluster, text, err);
    FR_TRY(read_value(knob, text, &to, err));
    if (knob->turn != NULL)
        FR_TRY(knob->turn(cluster, to, err));
    for (size_t i = 0; i < cluster->n_devices; i++)
        turn_member(&knob->device_member, to, &cluster->devices[i]);
    for (size_t i = 0; i < cluster->n_node_types; i++)
        turn_member(&knob->node_member, to, node_at(cluster, i));
    return fr_cluster_check(cluster, err);
}
