/*
 * cluster_structure.c: which elements and attributes a cluster file may have.
 * The schema says the same; this table says it with "did you mean".
 */
#include "core/base/text.h"
#include "spec/cluster/cluster_reader.h"

#define MAX_NAMES 12

typedef struct element {
    const char *name;
    const char *attributes[MAX_NAMES];
    const char *children[MAX_NAMES];
} element;

static const element elements[] = {
    {"cluster",
     {"name", "one-machine"},
     {"device", "node-type", "machine", "group", "fabric", "slow", "jitter",
      "reliability", "site"}},
    {"device",
     {"id", "like", "kind", "generation", "cores", "memory", "memory-bandwidth",
      "cache", "power", "idle-power", "price"},
     {"peak"}},
    {"peak", {"dtype", "rate"}, {NULL}},
    {"node-type",
     {"id", "like", "device", "devices", "host-memory", "sockets", "price",
      "spot-price", "power", "hosts", "host-speed"},
     {"intra", "nic", "pcie", "storage"}},
    {"intra",
     {"kind", "bandwidth", "pair-bandwidth", "latency", "host-bandwidth"},
     {NULL}},
    {"nic",
     {"count", "kind", "bandwidth", "latency", "rails", "efficiency"},
     {NULL}},
    {"pcie", {"switches", "uplink"}, {NULL}},
    {"storage", {"read", "write"}, {NULL}},
    {"machine", {"id", "detect", "parts"}, {"nic", "storage"}},
    {"group", {"id", "node-type", "count"}, {NULL}},
    {"fabric",
     {"kind", "dims", "bandwidth", "latency", "groups", "routers",
      "nodes-per-router", "global-bandwidth", "global-latency"},
     {"level", "switch", "link"}},
    {"level", {"down", "oversubscription", "latency"}, {NULL}},
    {"switch", {"id"}, {NULL}},
    {"link", {"id", "from", "to", "bandwidth", "latency", "duplex"}, {NULL}},
    {"slow", {"node", "device", "link", "compute", "network"}, {NULL}},
    {"jitter", {"compute", "network"}, {NULL}},
    {"reliability",
     {"device-mtbf", "node-mtbf", "restart", "spot-interruption-every"},
     {NULL}},
    {"site", {"pue", "carbon-g-per-kwh"}, {NULL}},
};
enum { N_ELEMENTS = FR_LENGTH(elements) };

static size_t count(const char *const names[MAX_NAMES])
{
    size_t n = 0;
    while (n < MAX_NAMES && names[n] != NULL)
        n++;
    return n;
}

static const element *find_element(const char *name)
{
    for (size_t i = 0; i < N_ELEMENTS; i++)
        if (fr_text_equal(elements[i].name, name))
            return &elements[i];
    return NULL;
}

static fr_status check_child(const fr_xml_node *child, const element *parent,
                             fr_err *err)
{
    size_t n = count(parent->children);
    const char *name = fr_xml_name(child);
    if (fr_text_find(name, parent->children, n) >= 0)
        return FR_OK;
    const char *nearest = fr_text_nearest(name, parent->children, n);
    if (nearest != NULL)
        return fr_xml_fail(child, err,
                           "unknown element <%s> in <%s>: did you mean <%s>?",
                           name, parent->name, nearest);
    return fr_xml_fail(child, err, "unknown element <%s> in <%s>; remove it",
                       name, parent->name);
}

/* Only as deep as the table: what is unknown is not entered. */
static fr_status check_node(const fr_xml_node *node, const element *kind,
                            fr_err *err)
{
    FR_TRY(fr_xml_check_attributes(node, kind->attributes,
                                   count(kind->attributes), err));
    for (const fr_xml_node *at = fr_xml_first(node); at != NULL;
         at = fr_xml_next(at)) {
        FR_TRY(check_child(at, kind, err));
        FR_TRY(check_node(at, find_element(fr_xml_name(at)), err));
    }
    return FR_OK;
}

/* Roots of files that 'forerun import' reads. */
static const char *const foreign[][2] = {
    {"platform", "SimGrid"},
    {"system", "NCCL"},
    {"topology", "hwloc"},
};

fr_status fr_cluster_check_structure(const fr_xml_node *root, fr_err *err)
{
    for (size_t i = 0; i < FR_LENGTH(foreign); i++)
        if (fr_xml_is(root, foreign[i][0]))
            return fr_xml_fail(root, err,
                               "the root is <%s>, a file of %s: make a cluster "
                               "of it with 'forerun import FILE -o "
                               "cluster.xml'",
                               foreign[i][0], foreign[i][1]);
    if (!fr_xml_is(root, "cluster"))
        return fr_xml_fail(root, err,
                           "the root is <%s>, a cluster file has <cluster>",
                           fr_xml_name(root));
    return check_node(root, &elements[0], err);
}
