/* catalog_rows.c: devices, nodes and where their numbers come from. */
#include "api/catalog/catalog_rows.h"

#include "core/document/fields.h"
#include "spec/catalog/catalog.h"

#include <stdio.h>

#define GIB (1024.0 * 1024.0 * 1024.0)

/* ---- devices ------------------------------------------------------------- */

static const fr_field device_fields[] = {
    {"name", FR_MEMBER(fr_catalog_device, type.id)},
    FR_FIELD(fr_catalog_device, summary),
    {"generation", FR_MEMBER(fr_catalog_device, type.generation)},
    {"cores", FR_MEMBER(fr_catalog_device, type.n_cores)},
    {"memory_bytes", FR_MEMBER(fr_catalog_device, type.memory_bytes)},
    {"memory_Bps", FR_MEMBER(fr_catalog_device, type.memory_Bps)},
    {"cache_bytes", FR_MEMBER(fr_catalog_device, type.cache_bytes)},
};

static const fr_field device_link_fields[] = {
    FR_FIELD(fr_catalog_device, link_Bps),
    FR_FIELD(fr_catalog_device, link_pair_Bps),
    FR_FIELD(fr_catalog_device, pcie_Bps),
    {"power_w", FR_MEMBER(fr_catalog_device, type.power_w)},
    FR_FIELD(fr_catalog_device, source),
    FR_FIELD(fr_catalog_device, date),
};

static void put_devices(fr_json_writer *json)
{
    fr_json_open_array(json, "devices");
    for (size_t i = 0; i < fr_catalog_n_devices(); i++) {
        const fr_catalog_device *device = fr_catalog_device_at(i);
        fr_json_begin_object(json);
        fr_fields_put(FR_FIELDS(device_fields), device, json);
        fr_json_open_object(json, "peak_flops");
        for (int32_t k = 0; k < device->type.n_peaks; k++)
            fr_json_put_double(json, device->type.peaks[k].dtype,
                               device->type.peaks[k].flops);
        fr_json_end_object(json);
        fr_fields_put(FR_FIELDS(device_link_fields), device, json);
        fr_json_end_object(json);
    }
    fr_json_end_array(json);
}

/* In so many units; an empty cell where nothing is known. */
static void number_cell(fr_table *table, double value, double unit,
                        int n_digits)
{
    if (value > 0.0)
        fr_table_number(table, FR_CELL_NUMBER, value, "%.*f", n_digits,
                        value / unit);
    else
        fr_table_blank(table, 1);
}

void fr_catalog_put_devices(fr_document *out)
{
    static const fr_column columns[] = {{"device", "name"},
                                        {"generation", "generation"},
                                        {">GiB", "memory_bytes"},
                                        {">GB/s", "memory_Bps"},
                                        {">fp16 TFLOP/s", "fp16_flops"},
                                        {">bf16", "bf16_flops"},
                                        {">fp8", "fp8_flops"},
                                        {">links GB/s", "link_Bps"},
                                        {">PCIe GB/s", "pcie_Bps"},
                                        {">W", "power_w"},
                                        {"sources", "source"}};
    fr_table *table =
        fr_document_records(out, NULL, columns, FR_LENGTH(columns));
    table->is_main = true;
    for (size_t i = 0; i < fr_catalog_n_devices(); i++) {
        const fr_catalog_device *device = fr_catalog_device_at(i);
        const fr_device_type *type = &device->type;
        fr_table_text(table, type->id);
        fr_table_text(table, type->generation);
        number_cell(table, (double)type->memory_bytes, GIB, 1);
        number_cell(table, type->memory_Bps, 1e9, 0);
        number_cell(table, fr_device_peak_flops(type, "fp16"), 1e12, 0);
        number_cell(table, fr_device_peak_flops(type, "bf16"), 1e12, 0);
        number_cell(table, fr_device_peak_flops(type, "fp8"), 1e12, 0);
        number_cell(table, device->link_Bps, 1e9, 0);
        number_cell(table, device->pcie_Bps, 1e9, 0);
        number_cell(table, type->power_w, 1, 0);
        fr_table_cell(table, "%s; %s", device->source, device->date);
    }
    put_devices(&out->data);
}

/* ---- nodes --------------------------------------------------------------- */

static const fr_field node_fields[] = {
    {"name", FR_MEMBER(fr_catalog_node, type.id)},
    FR_FIELD(fr_catalog_node, summary),
    FR_FIELD(fr_catalog_node, device),
    {"devices", FR_MEMBER(fr_catalog_node, type.n_devices)},
    {"hosts", FR_MEMBER(fr_catalog_node, type.n_hosts)},
    {"intra", FR_MEMBER(fr_catalog_node, type.intra_kind),
     .names = &fr_intra_kinds},
    {"intra_Bps", FR_MEMBER(fr_catalog_node, type.intra_Bps)},
    {"intra_pair_Bps", FR_MEMBER(fr_catalog_node, type.intra_p2p_Bps)},
    {"nics", FR_MEMBER(fr_catalog_node, type.n_nics)},
    {"nic_Bps", FR_MEMBER(fr_catalog_node, type.nic_Bps)},
    {"nic_kind", FR_MEMBER(fr_catalog_node, type.nic_kind),
     .names = &fr_nic_kinds},
    {"rails", FR_MEMBER(fr_catalog_node, type.n_rails)},
    {"pcie_switches", FR_MEMBER(fr_catalog_node, type.n_pcie_switches)},
    {"fabric", FR_MEMBER(fr_catalog_node, fabric), .names = &fr_fabric_kinds},
    {"usd_per_h", FR_MEMBER(fr_catalog_node, type.price_usd_per_h)},
    {"spot_usd_per_h", FR_MEMBER(fr_catalog_node, type.spot_usd_per_h)},
    {"price_source", FR_MEMBER(fr_catalog_node, price_source),
     .is_optional = true},
    FR_FIELD(fr_catalog_node, source),
    FR_FIELD(fr_catalog_node, date),
};

static void put_nodes(fr_json_writer *json)
{
    fr_json_open_array(json, "nodes");
    for (size_t i = 0; i < fr_catalog_n_nodes(); i++)
        fr_fields_write(FR_FIELDS(node_fields), fr_catalog_node_at(i), json);
    fr_json_end_array(json);
}

static void node_row(fr_table *table, const fr_catalog_node *node)
{
    const fr_node_type *type = &node->type;
    fr_table_text(table, type->id);
    fr_table_cell(table, "%d x %s", type->n_devices, node->device);
    fr_table_text(table, fr_intra_kind_name(type->intra_kind));
    number_cell(table, type->intra_Bps, 1e9, 0);
    fr_table_cell(table, "%d x %.0f", type->n_nics, type->nic_Bps * 8e-9);
    fr_table_text(table, fr_nic_kind_name(type->nic_kind));
    number_cell(table, type->price_usd_per_h, 1, 2);
    number_cell(table, type->spot_usd_per_h, 1, 2);
    fr_table_cell(table, "%s; %s", node->source, node->date);
}

/* Every source of prices once, with the nodes of the last one before it. */
static void print_prices(fr_document *out)
{
    fr_document_puts(out, "prices per node and hour, override them with price "
                          "and spot-price in a cluster file:\n");
    for (size_t i = 0; i < fr_catalog_n_nodes(); i++) {
        const char *source = fr_catalog_node_at(i)->price_source;
        bool is_new = source != NULL;
        for (size_t k = 0; k < i && is_new; k++)
            is_new = fr_catalog_node_at(k)->price_source != source;
        if (is_new)
            fr_document_printf(out, "  %s\n", source);
    }
}

void fr_catalog_put_nodes(fr_document *out)
{
    static const fr_column columns[] = {
        {"node", "name"},        {"devices", "devices"},
        {"inside", "intra"},     {">GB/s", "intra_Bps"},
        {">NICs Gb/s", "nics"},  {"network", "nic_kind"},
        {">USD/h", "usd_per_h"}, {">spot", "spot_usd_per_h"},
        {"sources", "source"}};
    fr_table *table =
        fr_document_records(out, NULL, columns, FR_LENGTH(columns));
    table->is_main = true;
    for (size_t i = 0; i < fr_catalog_n_nodes(); i++)
        node_row(table, fr_catalog_node_at(i));
    print_prices(out);
    put_nodes(&out->data);
}

/* ---- sources ------------------------------------------------------------- */

void fr_catalog_put_sources(fr_document *out)
{
    static const char *const headings[] = {"source", "what it is", NULL};
    fr_table *table = fr_document_table(out, headings);
    fr_json_open_object(&out->data, "sources");
    for (size_t i = 0; i < fr_catalog_n_sources(); i++) {
        const fr_catalog_source *source = fr_catalog_source_at(i);
        fr_table_text(table, source->name);
        fr_table_text(table, source->meaning);
        fr_json_put_string(&out->data, source->name, source->meaning);
    }
    fr_json_end_object(&out->data);
}
