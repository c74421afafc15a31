/*
 * cluster_elements.c: which elements and attributes a cluster file may have,
 * and the members that hold them.  The schema says the former, too; this table
 * says it with "did you mean".
 */
#include "spec/cluster/cluster_elements.h"

#include "core/base/text.h"
#include "spec/cluster/cluster.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define AT(name, owner, member)                                                \
    .field = {.key = (name), FR_MEMBER(owner, member)}
#define KIND(owner, member, kinds)                                             \
    .field = {.key = "kind", FR_MEMBER(owner, member), .names = &(kinds)}
/* A count of 1 to `most`. */
#define RANGE(name, owner, member, most)                                       \
    .field = {(name), FR_MEMBER(owner, member), .min = 1, .max = (most)}
#define REFERENCE(name) .field = {.key = (name)}
#define NAMED(name) REFERENCE(name), .form = FR_FORM_ID
#define ONE_OF(name, choices) .field = {.key = (name), .names = &(choices)}
#define IN_Bps .quantity = FR_QUANTITY_BPS
#define IN_s .quantity = FR_QUANTITY_S
#define IN_flops .quantity = FR_QUANTITY_FLOPS
#define IN_w .quantity = FR_QUANTITY_W
#define IN_usd .quantity = FR_QUANTITY_USD_PER_H
#define IN_frac .quantity = FR_QUANTITY_FRAC
#define PLAIN .quantity = FR_QUANTITY_N
#define REQUIRED .is_required = true
#define ALWAYS .is_always_written = true
#define OF_SWITCHES                                                            \
    .fabrics = 1u << FR_FABRIC_SWITCH | 1u << FR_FABRIC_FAT_TREE |             \
               1u << FR_FABRIC_RAIL | 1u << FR_FABRIC_LINKS
#define OF_ROUTERS .fabrics = 1u << FR_FABRIC_DRAGONFLY
#define OF_BOTH .fabrics = 1u << FR_FABRIC_TORUS | 1u << FR_FABRIC_DRAGONFLY

static const char *const switch_words[] = {"yes", "no"};
static const char *const duplex_words[] = {"full", "half"};
static const char *const dtype_words[] = {"fp64", "fp32", "tf32", "fp16",
                                          "bf16", "fp8",  "int8", "fp4"};
static const fr_names switches = FR_NAMES(switch_words);
static const fr_names duplexes = FR_NAMES(duplex_words);
static const fr_names dtypes = FR_NAMES(dtype_words);

static const fr_element elements[] = {
    {"cluster",
     {{NAMED("name"), REQUIRED}, {ONE_OF("one-machine", switches)}},
     .children = {"device", "node-type", "machine", "group", "fabric", "slow",
                  "jitter", "reliability", "site"}},
    {"device",
     {{NAMED("like")},
      {AT("id", fr_device_type, id), .form = FR_FORM_ID, REQUIRED},
      {KIND(fr_device_type, kind, fr_device_kinds), ALWAYS},
      {AT("generation", fr_device_type, generation),
       .form = FR_FORM_GENERATION},
      {AT("cores", fr_device_type, n_cores)},
      {AT("memory", fr_device_type, memory_bytes)},
      {AT("memory-bandwidth", fr_device_type, memory_Bps), IN_Bps},
      {AT("cache", fr_device_type, cache_bytes)},
      {AT("power", fr_device_type, power_w), IN_w},
      {AT("idle-power", fr_device_type, idle_w), IN_w},
      {AT("price", fr_device_type, price_usd_per_h), IN_usd}},
     .children = {"peak"}},
    {"peak",
     .attributes = {{.field = {.key = "dtype",
                               FR_MEMBER(fr_device_peak, dtype),
                               .names = &dtypes},
                     REQUIRED},
                    {AT("rate", fr_device_peak, flops), REQUIRED, IN_flops}}},
    {"node-type",
     {{NAMED("id"), REQUIRED},
      {NAMED("like")},
      {NAMED("device")},
      {AT("devices", fr_node_type, n_devices), ALWAYS},
      {AT("host-memory", fr_node_type, host_memory_bytes)},
      {AT("host-memory-bandwidth", fr_node_type, host_memory_Bps), IN_Bps},
      {AT("sockets", fr_node_type, n_sockets)},
      {AT("hosts", fr_node_type, n_hosts), .absent = 1},
      {AT("price", fr_node_type, price_usd_per_h), IN_usd},
      {AT("spot-price", fr_node_type, spot_usd_per_h), IN_usd},
      {AT("power", fr_node_type, power_w), IN_w},
      {AT("host-speed", fr_node_type, host_speed_frac), IN_frac}},
     .children = {"intra", "nic", "pcie", "storage"}},
    {"intra",
     .attributes =
         {{KIND(fr_node_type, intra_kind, fr_intra_kinds), REQUIRED, ALWAYS},
          {AT("bandwidth", fr_node_type, intra_Bps), IN_Bps},
          {AT("pair-bandwidth", fr_node_type, intra_p2p_Bps), IN_Bps},
          {AT("latency", fr_node_type, intra_latency_s), IN_s, ALWAYS},
          {AT("host-bandwidth", fr_node_type, host_link_Bps), IN_Bps}}},
    {"nic",
     .attributes = {{RANGE("count", fr_node_type, n_nics, 4096), ALWAYS},
                    {KIND(fr_node_type, nic_kind, fr_nic_kinds)},
                    {AT("bandwidth", fr_node_type, nic_Bps), IN_Bps, REQUIRED},
                    {AT("latency", fr_node_type, nic_latency_s), IN_s, REQUIRED,
                     ALWAYS},
                    {AT("rails", fr_node_type, n_rails), .absent = 1},
                    {AT("efficiency", fr_node_type, nic_efficiency_frac),
                     IN_frac}}},
    {"pcie",
     .attributes = {{RANGE("switches", fr_node_type, n_pcie_switches, 4096),
                     REQUIRED},
                    {AT("uplink", fr_node_type, pcie_uplink_Bps), IN_Bps,
                     REQUIRED}}},
    {"storage",
     .attributes = {{AT("read", fr_node_type, storage_read_Bps), IN_Bps},
                    {AT("write", fr_node_type, storage_write_Bps), IN_Bps},
                    {AT("latency", fr_node_type, storage_latency_s), IN_s}}},
    {"machine",
     {{NAMED("id")},
      {ONE_OF("detect", switches), REQUIRED},
      {RANGE("parts", fr_node_group, n_nodes, 1024), ALWAYS}},
     .children = {"nic", "storage"}},
    {"group", .attributes = {{NAMED("id"), REQUIRED},
                             {NAMED("node-type"), REQUIRED},
                             {AT("count", fr_node_group, n_nodes), ALWAYS}}},
    {"fabric",
     {{ONE_OF("kind", fr_fabric_kinds), REQUIRED},
      {ONE_OF("sharp", switches), OF_SWITCHES},
      {REFERENCE("dims"), REQUIRED, .form = FR_FORM_DIMS,
       .fabrics = 1u << FR_FABRIC_TORUS},
      {AT("groups", fr_fabric, n_groups), REQUIRED, ALWAYS, OF_ROUTERS},
      {AT("routers", fr_fabric, n_routers), REQUIRED, ALWAYS, OF_ROUTERS},
      {AT("nodes-per-router", fr_fabric, n_per_router), REQUIRED, ALWAYS,
       OF_ROUTERS},
      {AT("bandwidth", fr_fabric, link_Bps), IN_Bps, REQUIRED, OF_BOTH},
      {AT("latency", fr_fabric, link_latency_s), IN_s, REQUIRED, ALWAYS,
       OF_BOTH},
      {AT("global-bandwidth", fr_fabric, global_Bps), IN_Bps, OF_ROUTERS},
      {AT("global-latency", fr_fabric, global_latency_s), IN_s, ALWAYS,
       OF_ROUTERS}},
     .children = {"level", "switch", "link"}},
    {"level",
     .attributes = {{RANGE("down", fr_fabric_level, n_down,
                           FR_CLUSTER_MAX_NODES),
                     REQUIRED},
                    {AT("oversubscription", fr_fabric_level, oversubscription),
                     PLAIN, ALWAYS},
                    {AT("latency", fr_fabric_level, latency_s), IN_s, ALWAYS},
                    {AT("power", fr_fabric_level, power_w), IN_w}}},
    {"switch", .attributes = {{AT("id", fr_fabric_switch, id),
                               .form = FR_FORM_ID, REQUIRED},
                              {AT("power", fr_fabric_switch, power_w), IN_w}}},
    {"link", .attributes = {{NAMED("id"), REQUIRED},
                            {REFERENCE("from"), REQUIRED},
                            {REFERENCE("to"), REQUIRED},
                            {AT("bandwidth", fr_fabric_link, bandwidth_Bps),
                             IN_Bps, REQUIRED},
                            {AT("latency", fr_fabric_link, latency_s), IN_s,
                             REQUIRED, ALWAYS},
                            {ONE_OF("duplex", duplexes)}}},
    {"slow", .attributes = {{REFERENCE("node")},
                            {REFERENCE("device"), .form = FR_FORM_INDEX},
                            {NAMED("link")},
                            {AT("compute", fr_slow, compute_frac), IN_frac,
                             .absent = 1},
                            {AT("network", fr_slow, network_frac), IN_frac,
                             .absent = 1}}},
    {"jitter",
     .attributes = {{AT("compute", fr_cluster, jitter_compute_frac), IN_frac,
                     ALWAYS},
                    {AT("network", fr_cluster, jitter_network_frac), IN_frac}}},
    {"reliability",
     .attributes = {{AT("device-mtbf", fr_cluster, device_mtbf_s), IN_s},
                    {AT("node-mtbf", fr_cluster, node_mtbf_s), IN_s},
                    {AT("restart", fr_cluster, restart_s), IN_s},
                    {REFERENCE("spot-interruption-every"),
                     .form = FR_FORM_DURATION}}},
    {"site",
     .attributes = {{AT("pue", fr_cluster, pue), PLAIN, ALWAYS},
                    {AT("carbon-g-per-kwh", fr_cluster, carbon_g_per_kwh),
                     PLAIN, ALWAYS}}},
};

const fr_element *fr_element_find(const char *name)
{
    for (size_t i = 0; i < FR_LENGTH(elements); i++)
        if (fr_text_equal(elements[i].name, name))
            return &elements[i];
    return NULL;
}

size_t fr_element_n(const fr_element *element)
{
    size_t n = 0;
    while (n < FR_ELEMENT_NAMES && element->attributes[n].field.key != NULL)
        n++;
    return n;
}

bool fr_attribute_is_of(const fr_attribute *attribute, const void *owner)
{
    const fr_fabric *fabric = owner;
    return attribute->fabrics == 0 ||
           (attribute->fabrics & 1u << fabric->kind) != 0;
}

/* ---- values ------------------------------------------------------------- */

/* A count that no int32_t holds becomes the nearest one, which is out of every
 * range, too. */
static fr_status read_count(const fr_xml_node *node, const fr_field *field,
                            void *owner, fr_err *err)
{
    int64_t count;
    FR_TRY(fr_xml_get_i64(node, field->key, &count, err));
    if (field->max > 0 &&
        !((double)count >= field->min && (double)count <= field->max))
        return fr_xml_fail(node, err, "<%s> %s is %lld; give %.0f to %.0f",
                           fr_xml_name(node), field->key, (long long)count,
                           field->min, field->max);
    if (count < 1)
        return fr_xml_fail(node, err, "<%s> %s is %lld; give 1 or more",
                           fr_xml_name(node), field->key, (long long)count);
    if (field->kind == FR_FIELD_I32)
        count = count > INT32_MAX ? INT32_MAX : count;
    fr_field_set_i64(field, count, owner);
    return FR_OK;
}

static fr_status check_name(const fr_xml_node *node, const fr_field *field,
                            const char *text, fr_err *err)
{
    enum { LIST = 200 };
    const char *names[FR_ELEMENT_NAMES];
    char list[LIST] = "";
    size_t n = 0, used = 0;
    if (fr_name_find(field->names, text) >= 0)
        return FR_OK;
    for (; n < FR_ELEMENT_NAMES; n++) {
        names[n] = fr_name_at(field->names, (int)n);
        if (names[n] == NULL)
            break;
        used += (size_t)snprintf(list + used, LIST - used, "%s%s",
                                 n > 0 ? ", " : "", names[n]);
        assert(used < LIST);
    }
    const char *nearest = fr_text_nearest(text, names, n);
    return fr_xml_fail(node, err, "<%s> %s is '%.60s'; %s%s", fr_xml_name(node),
                       field->key, text,
                       nearest != NULL ? "did you mean " : "give one of ",
                       nearest != NULL ? nearest : list);
}

static bool is_id(const char *text)
{
    size_t n = strlen(text);
    return n > 0 && n < FR_CLUSTER_ID && text[0] != '-' &&
           strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                        "0123456789_.-") == n;
}

static bool is_generation(const char *text)
{
    size_t n = strlen(text);
    return n > 0 && n < 16 && text[0] != '-' &&
           strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-") == n;
}

/* "4x4x4": at most FR_CLUSTER_DIMS numbers without leading zeros. */
static bool is_dims(const char *text)
{
    for (int n_dims = 0; n_dims < FR_CLUSTER_DIMS; n_dims++) {
        size_t n = strspn(text, "0123456789");
        if (n == 0 || n > 7 || text[0] == '0')
            return false;
        text += n;
        if (*text == '\0')
            return true;
        if (*text++ != 'x')
            return false;
    }
    return false;
}

static fr_status check_form(const fr_xml_node *node, const fr_attribute *row,
                            const char *text, fr_err *err)
{
    static const struct {
        bool (*is_one)(const char *text);
        const char *mend;
    } forms[] = {
        [FR_FORM_ID] = {is_id, "a name has letters, digits, '_', '.' and '-', "
                               "no blanks, 63 at most"},
        [FR_FORM_GENERATION] = {is_generation,
                                "give small letters, digits and '-', such as "
                                "hopper"},
        [FR_FORM_DIMS] = {is_dims, "give nodes by dimension, such as 4x4x4"},
    };
    int64_t index = 0;
    if (row->form == FR_FORM_INDEX) {
        FR_TRY(fr_xml_maybe_i64(node, row->field.key, &index, err));
        if (index < 0 || index > INT32_MAX)
            return fr_xml_fail(node, err, "<%s> %s is %lld; give 0 or more",
                               fr_xml_name(node), row->field.key,
                               (long long)index);
        return FR_OK;
    }
    if (row->form == FR_FORM_ANY || forms[row->form].is_one(text))
        return FR_OK;
    return fr_xml_fail(node, err, "<%s> %s is '%.60s': %s", fr_xml_name(node),
                       row->field.key, text, forms[row->form].mend);
}

fr_status fr_attribute_check(const fr_xml_node *node, const fr_attribute *row,
                             fr_err *err)
{
    const char *text = fr_xml_find(node, row->field.key);
    double value;
    if (row->is_required)
        FR_TRY(fr_xml_get_string(node, row->field.key, &text, err));
    if (text == NULL)
        return FR_OK;
    if (row->field.names != NULL)
        return check_name(node, &row->field, text, err);
    if (row->form == FR_FORM_DURATION)
        return fr_xml_maybe_quantity(node, row->field.key, FR_QUANTITY_S, 0,
                                     &value, err);
    return check_form(node, row, text, err);
}

static fr_status read_attribute(const fr_xml_node *node,
                                const fr_attribute *row, void *owner,
                                fr_err *err)
{
    const fr_field *field = &row->field;
    const char *text = fr_xml_find(node, field->key);
    void *at = (char *)owner + field->offset;
    FR_TRY(fr_attribute_check(node, row, err));
    if (text == NULL)
        return FR_OK;
    switch (field->kind) {
    case FR_FIELD_TEXT:
        fr_text_copy_cut(at, field->n_bytes, text);
        return FR_OK;
    case FR_FIELD_U32:
        fr_field_set_i64(field, fr_name_find(field->names, text), owner);
        return FR_OK;
    case FR_FIELD_U64:
        return fr_xml_maybe_bytes(node, field->key, at, err);
    case FR_FIELD_DOUBLE:
        if (row->quantity == FR_QUANTITY_N)
            return fr_xml_maybe_double(node, field->key, at, err);
        return fr_xml_maybe_quantity(node, field->key, row->quantity, 0, at,
                                     err);
    default:
        return read_count(node, field, owner, err);
    }
}

fr_status fr_element_read(const fr_xml_node *node, void *owner, fr_err *err)
{
    const fr_element *element = fr_element_find(fr_xml_name(node));
    assert(element != NULL);
    for (size_t i = 0; i < fr_element_n(element); i++) {
        const fr_attribute *row = &element->attributes[i];
        if (row->field.n_bytes > 0 && fr_attribute_is_of(row, owner))
            FR_TRY(read_attribute(node, row, owner, err));
    }
    return FR_OK;
}

/* ---- structure ---------------------------------------------------------- */

static fr_status check_child(const fr_xml_node *child, const fr_element *parent,
                             fr_err *err)
{
    size_t n = 0;
    while (n < FR_ELEMENT_NAMES && parent->children[n] != NULL)
        n++;
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

/* Returns the kinds of fabric that a row of <fabric> applies to; rows of other
 * elements have one. */
static unsigned fabric_of(const fr_xml_node *node, const fr_element *kind)
{
    const char *text = fr_xml_find(node, "kind");
    int i = text != NULL && fr_text_equal(kind->name, "fabric")
                ? fr_name_find(&fr_fabric_kinds, text)
                : -1;
    return i >= 0 ? 1u << i : 0;
}

/* Every value is read into a place that nobody looks at. */
static fr_status check_values(const fr_xml_node *node, const fr_element *kind,
                              fr_problems *problems, fr_err *err)
{
    static const fr_cluster nothing;
    union {
        fr_cluster cluster;
        fr_device_type device;
        fr_node_type type;
        fr_fabric fabric;
        fr_fabric_link link;
    } unused;
    unsigned fabric = fabric_of(node, kind);
    unused.cluster = nothing;
    for (size_t i = 0; i < fr_element_n(kind); i++) {
        const fr_attribute *row = &kind->attributes[i];
        fr_err problem;
        if (row->fabrics != 0 && !(row->fabrics & fabric))
            continue; /* the reader says that it has no meaning here */
        fr_status status = row->field.n_bytes > 0
                               ? read_attribute(node, row, &unused, &problem)
                               : fr_attribute_check(node, row, &problem);
        FR_TRY(fr_problems_take(problems, fr_xml_line(node), status, &problem,
                                err));
    }
    return FR_OK;
}

static fr_status check_names(const fr_xml_node *node, const fr_element *kind,
                             fr_problems *problems, fr_err *err)
{
    const char *known[FR_ELEMENT_NAMES];
    size_t n = fr_element_n(kind), n_given = fr_xml_n_attributes(node);
    for (size_t i = 0; i < n; i++)
        known[i] = kind->attributes[i].field.key;
    for (size_t i = 0; i < n_given; i++) {
        fr_err problem;
        fr_status status = fr_xml_check_attribute(node, i, known, n, &problem);
        FR_TRY(fr_problems_take(problems, fr_xml_line(node), status, &problem,
                                err));
    }
    return FR_OK;
}

/* Only as deep as the table: what is unknown is not entered. */
static fr_status check_node(const fr_xml_node *node, const fr_element *kind,
                            fr_problems *problems, fr_err *err)
{
    fr_err problem;
    const char *text = fr_xml_text(node);
    FR_TRY(check_names(node, kind, problems, err));
    FR_TRY(check_values(node, kind, problems, err));
    if (text != NULL) {
        fr_status status = fr_xml_fail(
            node, &problem, "<%s> has text in it: put it into <!-- -->",
            fr_xml_name(node));
        FR_TRY(fr_problems_take(problems, fr_xml_line(node), status, &problem,
                                err));
    }
    for (const fr_xml_node *at = fr_xml_first(node); at != NULL;
         at = fr_xml_next(at)) {
        fr_status status = check_child(at, kind, &problem);
        FR_TRY(
            fr_problems_take(problems, fr_xml_line(at), status, &problem, err));
        if (status == FR_OK)
            FR_TRY(check_node(at, fr_element_find(fr_xml_name(at)), problems,
                              err));
    }
    return FR_OK;
}

/* Roots of files that 'forerun import' reads. */
static const char *const foreign[][2] = {
    {"platform", "SimGrid"},
    {"system", "NCCL"},
    {"topology", "hwloc"},
};

fr_status fr_cluster_check_structure(const fr_xml_node *root,
                                     fr_problems *problems, fr_err *err)
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
    return check_node(root, &elements[0], problems, err);
}
