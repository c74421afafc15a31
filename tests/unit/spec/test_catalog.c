/* test_catalog.c: rules that every row keeps, and how rows are found. */
#include "spec/catalog/catalog.h"
#include "tests/check.h"

#include <stdio.h>
#include <string.h>

/* Every word before a comma, blank or bracket is a source that is explained. */
static void check_sources(const char *list)
{
    while (*list) {
        bool is_known = false;
        size_t n = strcspn(list, ", (");
        for (size_t i = 0; i < fr_catalog_n_sources(); i++) {
            const char *name = fr_catalog_source_at(i)->name;
            is_known |= strlen(name) == n && strncmp(name, list, n) == 0;
        }
        CHECK(is_known);
        list += n;
        if (list[0] == ' ' && list[1] == '(')
            list = strchr(list, ')') + 1;
        list += strspn(list, ", ");
    }
}

static void check_product(const char *name, const char *id)
{
    const fr_catalog_device *d = fr_catalog_device_find_product(name);
    if (id)
        CHECK(d && strcmp(d->type.id, id) == 0);
    else
        CHECK(d == NULL);
}

/* Names as nvidia-smi and nccl-tests print them. */
static void test_products(void)
{
    check_product("NVIDIA H100 80GB HBM3", "h100-sxm");
    check_product("NVIDIA H100 PCIe", "h100-pcie");
    check_product("NVIDIA H100 NVL", "h100-nvl");
    check_product("NVIDIA H200", "h200-sxm");
    check_product("NVIDIA H200 NVL", "h200-nvl");
    check_product("Tesla V100-SXM2-16GB", "v100-sxm2-16g");
    check_product("NVIDIA A100-SXM4-80GB", "a100-sxm-80g");
    check_product("A100-SXM4-40GB", "a100-sxm-40g");
    check_product("NVIDIA A100 80GB PCIe", "a100-pcie-80g");
    check_product("NVIDIA GB200", "gb200");
    check_product("NVIDIA B200", "b200-sxm");
    check_product("NVIDIA GeForce RTX 4090", "rtx-4090");
    check_product("NVIDIA Graphics Device", NULL);
    check_product("", NULL);
    CHECK(fr_catalog_device_find_pci(0x10de, 0x2330) ==
          fr_catalog_device_find("h100-sxm"));
    CHECK(fr_catalog_device_find_pci(0x10de, 0x1234) == NULL);
    CHECK(fr_catalog_device_find_pci(0, 0) == NULL);
}

/* Facts that every row of the catalogue must obey. */
static void test_catalog(void)
{
    for (size_t i = 0; i < fr_catalog_n_devices(); i++) {
        const fr_catalog_device *d = fr_catalog_device_at(i);
        CHECK(d->summary[0] && d->source[0]);
        CHECK(d->type.memory_bytes > 1ull << 33);
        CHECK(d->type.memory_Bps > 2e11 && d->type.memory_Bps < 2e13);
        CHECK(fr_catalog_device_find(d->type.id) == d);
        CHECK(d->type.generation[0] && d->date[0]);
        CHECK(d->link_pair_Bps <= d->link_Bps && d->pcie_Bps > 1e10);
        for (size_t k = 0; k < FR_CATALOG_PCI_IDS && d->pci_ids[k]; k++)
            CHECK(fr_catalog_device_find_pci(d->pci_ids[k] >> 16,
                                             d->pci_ids[k] & 0xffff) == d);
        check_sources(d->source);
        for (int32_t k = 0; k < d->type.n_peaks; k++)
            CHECK(d->type.peaks[k].dtype[0] && d->type.peaks[k].flops > 1e12);
    }
    for (size_t i = 0; i < fr_catalog_n_nodes(); i++) {
        const fr_catalog_node *n = fr_catalog_node_at(i);
        fr_cluster c = {0};
        fr_err err = {0};
        CHECK(fr_catalog_node_find(n->type.id) == n);
        CHECK(fr_catalog_device_find(n->device) != NULL);
        CHECK(n->type.nic_kind != FR_NIC_UNKNOWN && n->type.n_hosts >= 1);
        CHECK((n->price_source != NULL) == (n->type.price_usd_per_h > 0.0));
        check_sources(n->source);
        CHECK_OK(fr_catalog_cluster(n->type.id, 3, &c, &err), &err);
        CHECK_OK(fr_cluster_check(&c, &err), &err);
        CHECK_NEAR(fr_cluster_path(&c, 0, 2).bandwidth_Bps,
                   n->type.n_nics * n->type.nic_Bps, 1e-14);
        fr_cluster_release(&c);
    }
    CHECK(fr_catalog_device_at(fr_catalog_n_devices()) == NULL);
}

static void check_vendor(const char *id, const char *generation,
                         fr_vendor vendor)
{
    fr_device_type device = {0};
    snprintf(device.id, sizeof device.id, "%s", id);
    snprintf(device.generation, sizeof device.generation, "%s", generation);
    CHECK_INT(fr_catalog_vendor(&device), vendor);
}

/* A cluster file may call a device as it likes. */
static void test_vendors(void)
{
    check_vendor("h100-sxm", "hopper", FR_VENDOR_NVIDIA);
    check_vendor("mi250x-gcd", "cdna2", FR_VENDOR_AMD);
    check_vendor("ours", "cdna4", FR_VENDOR_AMD);
    check_vendor("chip", "tpu-v7x", FR_VENDOR_GOOGLE);
    check_vendor("ours", "", FR_VENDOR_NVIDIA);
}

CHECK_MAIN({"catalog", test_catalog}, {"products", test_products},
           {"vendors", test_vendors})
