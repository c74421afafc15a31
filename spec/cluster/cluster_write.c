/* cluster_write.c: clusters as XML. */
#include "spec/cluster/cluster_write.h"

#include "core/base/text.h"
#include "core/base/units.h"
#include "spec/cluster/cluster_elements.h"

#include <stdio.h>
#include <string.h>

/* ---- values ------------------------------------------------------------- */

static void put_escaped(fr_buffer *out, const char *text)
{
    for (; *text; text++)
        switch (*text) {
        case '&':
            fr_buffer_puts(out, "&amp;");
            break;
        case '<':
            fr_buffer_puts(out, "&lt;");
            break;
        case '"':
            fr_buffer_puts(out, "&quot;");
            break;
        default:
            fr_buffer_putc(out, *text);
        }
}

static void put_text(fr_buffer *out, const char *name, const char *value)
{
    fr_buffer_printf(out, " %s=\"", name);
    put_escaped(out, value);
    fr_buffer_putc(out, '"');
}

static void put_count(fr_buffer *out, const char *name, int64_t value)
{
    fr_buffer_printf(out, " %s=\"%lld\"", name, (long long)value);
}

/* The units that a quantity is written in, from the largest. */
typedef struct unit {
    const char *name;
    double factor;
} unit;

static const unit units_of[FR_QUANTITY_N][8] = {
    [FR_QUANTITY_BPS] = {{"GB/s", 1e9},
                         {"MB/s", 1e6},
                         {"kB/s", 1e3},
                         {"B/s", 1.0}},
    [FR_QUANTITY_S] = {{"d", 86400},
                       {"h", 3600},
                       {"min", 60},
                       {"s", 1},
                       {"ms", 1e-3},
                       {"us", 1e-6},
                       {"ns", 1e-9}},
    [FR_QUANTITY_FLOPS] = {{"TFLOP/s", 1e12}, {"GFLOP/s", 1e9}, {"FLOP/s", 1}},
    [FR_QUANTITY_W] = {{"W", 1.0}},
    [FR_QUANTITY_USD_PER_H] = {{"USD/h", 1.0}},
    [FR_QUANTITY_FRAC] = {{"", 1.0}, {"%", 0.01}},
};

/* The fewest digits of this unit that are read back as `value`, without an
 * exponent unless all 17 are needed. */
static bool format_in(const unit *u, fr_quantity quantity, double value,
                      char *text, size_t n_text)
{
    for (int n_digits = 1; n_digits <= 17; n_digits++) {
        double back;
        snprintf(text, n_text, "%.*g", n_digits, value / u->factor);
        bool has_exponent = strchr(text, 'e') != NULL;
        strncat(text, u->name, n_text - strlen(text) - 1);
        if ((!has_exponent || n_digits == 17) &&
            fr_parse_quantity(quantity, text, FR_ZERO_IS_FINE, &back, NULL) ==
                FR_OK &&
            back == value)
            return true;
    }
    return false;
}

/*
 * The shortest decimal with one of the units that is read back as `value`; 17
 * digits of the plain unit where none is.
 */
static void put_quantity(fr_buffer *out, const char *name, fr_quantity quantity,
                         double value)
{
    const unit *units = units_of[quantity];
    char best[FR_FORMAT_MAX * 2] = "", text[FR_FORMAT_MAX * 2];
    for (const unit *u = units; u->name != NULL; u++) {
        if (value < u->factor && u[1].name != NULL)
            continue;
        if (format_in(u, quantity, value, text, sizeof text) &&
            (!best[0] || strlen(text) < strlen(best)))
            memcpy(best, text, sizeof best);
        if (best[0] && strlen(best) < 10)
            break; /* short enough */
    }
    for (const unit *u = units; u->name && !best[0]; u++)
        if (u->factor == 1.0)
            snprintf(best, sizeof best, "%.17g%s", value, u->name);
    put_text(out, name, best);
}

/* Zero is a multiple of every unit. */
static void put_s(fr_buffer *out, const char *name, double value)
{
    if (value == 0.0)
        put_text(out, name, "0s");
    else
        put_quantity(out, name, FR_QUANTITY_S, value);
}

static void put_bytes(fr_buffer *out, const char *name, uint64_t value)
{
    static const struct {
        const char *name;
        unsigned shift;
    } units[] = {{"GiB", 30}, {"MiB", 20}, {"KiB", 10}, {"B", 0}};
    size_t i = 0;
    while (value % (1ull << units[i].shift) != 0)
        i++;
    fr_buffer_printf(out, " %s=\"%llu%s\"", name,
                     (unsigned long long)(value >> units[i].shift),
                     units[i].name);
}

/* A plain number without a unit, as short as it can be. */
static void put_number(fr_buffer *out, const char *name, double value)
{
    char text[FR_FORMAT_MAX];
    double back = 0.0;
    for (int n_digits = 1; n_digits <= 17; n_digits++) {
        snprintf(text, sizeof text, "%.*g", n_digits, value);
        if (fr_parse_double(text, &back, NULL) == FR_OK && back == value)
            break;
    }
    put_text(out, name, text);
}

/* ---- elements ----------------------------------------------------------- */

static void put_attribute(fr_buffer *out, const fr_attribute *row,
                          const void *owner)
{
    const fr_field *field = &row->field;
    const void *at = fr_field_at(field, owner);
    double value = fr_field_get(field, owner);
    if (field->kind == FR_FIELD_TEXT) {
        if (*(const char *)at != '\0')
            put_text(out, field->key, at);
    } else if (!row->is_always_written &&
               (!(value > 0) || value == row->absent)) {
        return;
    } else if (field->kind == FR_FIELD_U64) {
        put_bytes(out, field->key, *(const uint64_t *)at);
    } else if (field->kind == FR_FIELD_U32) {
        put_text(out, field->key, fr_name_of(field->names, value));
    } else if (field->kind != FR_FIELD_DOUBLE) {
        put_count(out, field->key, fr_field_get_i64(field, owner));
    } else if (row->quantity == FR_QUANTITY_N) {
        put_number(out, field->key, value);
    } else if (row->quantity == FR_QUANTITY_S) {
        put_s(out, field->key, value);
    } else {
        put_quantity(out, field->key, row->quantity, value);
    }
}

/* The attributes that are members, behind what the caller has written. */
static void put_attributes(fr_buffer *out, const char *name, const void *owner)
{
    const fr_element *element = fr_element_find(name);
    for (size_t i = 0; i < fr_element_n(element); i++) {
        const fr_attribute *row = &element->attributes[i];
        if (row->field.n_bytes > 0 && fr_attribute_is_of(row, owner))
            put_attribute(out, row, owner);
    }
}

/* An element that is nothing but its attributes. */
static void put_element(fr_buffer *out, int indent, const char *name,
                        const void *owner)
{
    fr_buffer_printf(out, "%*s<%s", indent, "", name);
    put_attributes(out, name, owner);
    fr_buffer_puts(out, "/>\n");
}

static void put_device(fr_buffer *out, const fr_device_type *device)
{
    fr_buffer_puts(out, "  <device");
    put_attributes(out, "device", device);
    fr_buffer_puts(out, device->n_peaks > 0 ? ">\n" : "/>\n");
    for (int32_t i = 0; i < device->n_peaks; i++)
        put_element(out, 4, "peak", &device->peaks[i]);
    if (device->n_peaks > 0)
        fr_buffer_puts(out, "  </device>\n");
}

static void put_node_children(fr_buffer *out, const fr_node_type *type)
{
    if (type->n_nics > 0)
        put_element(out, 4, "nic", type);
    if (type->n_pcie_switches > 0)
        put_element(out, 4, "pcie", type);
    if (type->storage_read_Bps > 0.0 || type->storage_write_Bps > 0.0 ||
        type->storage_latency_s > 0.0)
        put_element(out, 4, "storage", type);
}

static void put_node_type(fr_buffer *out, const fr_cluster *cluster,
                          const fr_node_type *type)
{
    fr_buffer_puts(out, "  <node-type");
    put_text(out, "id", type->id);
    put_text(out, "device", cluster->devices[type->i_device].id);
    put_attributes(out, "node-type", type);
    fr_buffer_puts(out, ">\n");
    put_element(out, 4, "intra", type);
    put_node_children(out, type);
    fr_buffer_puts(out, "  </node-type>\n");
}

static void put_group(fr_buffer *out, const fr_cluster *cluster,
                      const fr_node_group *group)
{
    fr_buffer_puts(out, "  <group");
    put_text(out, "id", group->id);
    put_text(out, "node-type", cluster->node_types[group->i_node_type].id);
    put_attributes(out, "group", group);
    fr_buffer_puts(out, "/>\n");
}

/* The machine this runs on: its parts, what joins them. */
static void put_machine(fr_buffer *out, const fr_cluster *cluster)
{
    fr_buffer_puts(out, "  <machine");
    put_text(out, "id", cluster->groups[0].id);
    put_text(out, "detect", "yes");
    put_attributes(out, "machine", &cluster->groups[0]);
    fr_buffer_puts(out, ">\n");
    put_node_children(out, &cluster->node_types[0]);
    fr_buffer_puts(out, "  </machine>\n");
}

/* ---- the network -------------------------------------------------------- */

static void put_vertex(fr_buffer *out, const char *name,
                       const fr_cluster *cluster, int64_t vertex)
{
    char text[FR_CLUSTER_ID + 32];
    int64_t n_nodes = fr_cluster_n_nodes(cluster);
    if (vertex < n_nodes)
        fr_cluster_node_name(cluster, vertex, text, sizeof text);
    else
        snprintf(text, sizeof text, "%s",
                 cluster->fabric.switches[vertex - n_nodes].id);
    put_text(out, name, text);
}

static void put_links(fr_buffer *out, const fr_cluster *cluster)
{
    const fr_fabric *fabric = &cluster->fabric;
    for (size_t i = 0; i < fabric->n_switches; i++)
        put_element(out, 4, "switch", &fabric->switches[i]);
    for (size_t i = 0; i < fabric->n_links; i++) {
        const fr_fabric_link *link = &fabric->links[i];
        fr_buffer_puts(out, "    <link");
        put_text(out, "id", link->id);
        put_vertex(out, "from", cluster, link->from);
        put_vertex(out, "to", cluster, link->to);
        put_attributes(out, "link", link);
        if (link->is_half_duplex)
            put_text(out, "duplex", "half");
        fr_buffer_puts(out, "/>\n");
    }
}

static void put_fabric(fr_buffer *out, const fr_cluster *cluster)
{
    const fr_fabric *fabric = &cluster->fabric;
    bool has_children = fabric->n_levels > 0 || fabric->kind == FR_FABRIC_LINKS;
    fr_buffer_puts(out, "  <fabric");
    put_text(out, "kind", fr_fabric_kind_name(fabric->kind));
    if (fabric->has_sharp)
        put_text(out, "sharp", "yes");
    for (int32_t i = 0; i < fabric->n_dims; i++)
        fr_buffer_printf(out, "%s%lld", i > 0 ? "x" : " dims=\"",
                         (long long)fabric->dims[i]);
    if (fabric->n_dims > 0)
        fr_buffer_putc(out, '"');
    put_attributes(out, "fabric", fabric);
    fr_buffer_puts(out, has_children ? ">\n" : "/>\n");
    for (int32_t i = 0; i < fabric->n_levels; i++)
        put_element(out, 4, "level", &fabric->levels[i]);
    put_links(out, cluster);
    if (has_children)
        fr_buffer_puts(out, "  </fabric>\n");
}

/* ---- the rest ----------------------------------------------------------- */

static void put_slow(fr_buffer *out, const fr_cluster *cluster,
                     const fr_slow *slow)
{
    fr_buffer_puts(out, "  <slow");
    if (slow->link >= 0)
        put_text(out, "link", cluster->fabric.links[slow->link].id);
    else
        put_vertex(out, "node", cluster, slow->node);
    if (slow->device >= 0)
        put_count(out, "device", slow->device);
    put_attributes(out, "slow", slow);
    fr_buffer_puts(out, "/>\n");
}

/* Files say the time between interruptions, the cluster their rate: the time
 * that gives back the very rate, if there is one. */
static double interruption_every_s(double per_h)
{
    double every_s = 3600.0 / per_h;
    char text[FR_FORMAT_MAX];
    for (int n_digits = 1; n_digits <= 17; n_digits++) {
        double back;
        snprintf(text, sizeof text, "%.*g", n_digits, every_s);
        if (fr_parse_double(text, &back, NULL) == FR_OK &&
            3600.0 / back == per_h)
            return back;
    }
    return every_s;
}

static void put_rest(fr_buffer *out, const fr_cluster *cluster)
{
    double per_h = cluster->spot_interruption_per_h;
    for (size_t i = 0; i < cluster->n_slow; i++)
        put_slow(out, cluster, &cluster->slow[i]);
    if (cluster->jitter_compute_frac !=
            fr_cluster_default_jitter_frac(cluster) ||
        cluster->jitter_compute_frac > 0.0 ||
        cluster->jitter_network_frac > 0.0)
        put_element(out, 2, "jitter", cluster);
    if (cluster->device_mtbf_s > 0.0 || cluster->node_mtbf_s > 0.0 ||
        cluster->restart_s > 0.0 || per_h > 0.0) {
        fr_buffer_puts(out, "  <reliability");
        put_attributes(out, "reliability", cluster);
        if (per_h > 0.0)
            put_s(out, "spot-interruption-every", interruption_every_s(per_h));
        fr_buffer_puts(out, "/>\n");
    }
    if (cluster->pue != 1.0 || cluster->carbon_g_per_kwh > 0.0)
        put_element(out, 2, "site", cluster);
}

/* Bytes at `at` that XML may hold, as one character; 0: none. */
static size_t xml_character(const char *at)
{
    size_t n = 1;
    unsigned char first = (unsigned char)at[0];
    if (first < 0x80)
        return first >= 0x20 || first == '\n' || first == '\t' ? 1 : 0;
    while (n < 4 && ((unsigned char)at[n] & 0xc0) == 0x80)
        n++;
    bool is_valid = fr_text_utf8_valid(at, n) == n;
    bool is_none = strncmp(at, "\xef\xbf\xbe", 3) == 0 ||
                   strncmp(at, "\xef\xbf\xbf", 3) == 0;
    return is_valid && !is_none ? n : 0;
}

/* Two hyphens may not stand in a comment. */
static void put_comment(fr_buffer *out, const char *comment)
{
    fr_buffer_puts(out, "<!-- ");
    for (const char *at = comment; *at;) {
        size_t n = xml_character(at);
        if (n > 0)
            fr_buffer_append(out, at, n);
        else
            fr_buffer_putc(out, '?');
        if (at[0] == '-' && (at[1] == '-' || at[1] == '\0'))
            fr_buffer_putc(out, ' ');
        if (at[0] == '\n' && at[1] != '\0')
            fr_buffer_puts(out, "     ");
        at += n > 0 ? n : 1;
    }
    fr_buffer_puts(out, " -->\n");
}

fr_status fr_cluster_format(const fr_cluster *cluster, const char *comment,
                            fr_buffer *out, fr_err *err)
{
    fr_buffer_puts(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    if (comment != NULL && comment[0])
        put_comment(out, comment);
    fr_buffer_puts(out, "<cluster");
    put_text(out, "name", cluster->name);
    if (cluster->is_one_machine)
        put_text(out, "one-machine", "yes");
    fr_buffer_puts(out, ">\n");
    size_t i_first = cluster->is_this_machine ? 1 : 0;
    for (size_t i = i_first; i < cluster->n_devices; i++)
        put_device(out, &cluster->devices[i]);
    for (size_t i = i_first; i < cluster->n_node_types; i++)
        put_node_type(out, cluster, &cluster->node_types[i]);
    if (cluster->is_this_machine)
        put_machine(out, cluster);
    for (size_t i = i_first; i < cluster->n_groups; i++)
        put_group(out, cluster, &cluster->groups[i]);
    put_fabric(out, cluster);
    put_rest(out, cluster);
    fr_buffer_puts(out, "</cluster>\n");
    return fr_buffer_check(out, err);
}
