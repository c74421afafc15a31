/*
 * catalog.h: devices and node types that users can name without describing
 * them.  Dense peaks (no sparsity), bandwidths in one direction, capacities
 * as the driver shows them.  Each row names its sources (fr_catalog_sources
 * says what a short name stands for) and when they were read; prices have a
 * source and a date of their own, because they are the first to be wrong.
 * A cluster file may override every number.
 */
#ifndef FR_SPEC_CATALOG_CATALOG_H
#define FR_SPEC_CATALOG_CATALOG_H

#include "spec/cluster/cluster.h"

#define FR_CATALOG_PCI_IDS 4

typedef enum fr_vendor {
    FR_VENDOR_NVIDIA, /* of rows that name none */
    FR_VENDOR_AMD,
    FR_VENDOR_GOOGLE
} fr_vendor;

typedef struct fr_catalog_device {
    fr_device_type type;
    fr_vendor vendor;
    const char *summary; /* "NVIDIA H100 SXM5 80 GB" */
    const char *source;  /* short names: "nvidia, mlbook" */
    const char *date;    /* "2026-08": when they were read */
    const char *product; /* words in the name that a driver shows; or NULL */
    /* vendor << 16 | device of the PCI function, 0 at the end. */
    uint32_t pci_ids[FR_CATALOG_PCI_IDS];
    /* The link to devices of the same type in the default node; link_Bps 0:
     * PCIe. */
    fr_intra_kind link_kind;
    double link_Bps;      /* all links of one device */
    double link_pair_Bps; /* between two of a full node; <= link_Bps */
    int32_t n_links;
    double pcie_Bps; /* to the host, as NCCL rates it: 24 GB/s is 4.0 x16 */
    int32_t compute_capability; /* NVIDIA's sm, 90 is 9.0; 0: none */
    int32_t n_in_card; /* > 1: devices of one card, whose name is the card's */
} fr_catalog_device;

typedef struct fr_catalog_node {
    fr_node_type type;     /* i_device is 0 and means nothing */
    const char *device;    /* id of its device */
    fr_fabric_kind fabric; /* the network between several of them */
    const char *summary;
    const char *source;
    const char *date;
    const char *price_source; /* NULL: no price is known */
} fr_catalog_node;

/* "nvidia", "datasheets of the products at nvidia.com; ..." */
typedef struct fr_catalog_source {
    const char *name;
    const char *meaning;
} fr_catalog_source;

size_t fr_catalog_n_devices(void);
size_t fr_catalog_n_nodes(void);
size_t fr_catalog_n_sources(void);
const fr_catalog_device *fr_catalog_device_at(size_t i);
const fr_catalog_node *fr_catalog_node_at(size_t i);
const fr_catalog_source *fr_catalog_source_at(size_t i);

/* NULL when absent. */
const fr_catalog_device *fr_catalog_device_find(const char *id);
const fr_catalog_node *fr_catalog_node_find(const char *id);
/* Returns the vendor of a device of a cluster, by the row with its id or a row
 * of its generation; NVIDIA if no row matches. */
fr_vendor fr_catalog_vendor(const fr_device_type *device);
/* By the ids of its PCI function (0x10de, 0x2330). */
const fr_catalog_device *fr_catalog_device_find_pci(uint32_t vendor,
                                                    uint32_t device);

/*
 * By a name that a driver or a benchmark prints ("NVIDIA H100 80GB HBM3",
 * "Tesla V100-SXM2-32GB"): the row whose words are all in it.  NULL when none
 * or several fit.
 */
const fr_catalog_device *fr_catalog_device_find_product(const char *name);

/* The nearest id for "did you mean", NULL when none is near. */
const char *fr_catalog_device_nearest(const char *id);
const char *fr_catalog_node_nearest(const char *id);

/* A cluster of n_nodes nodes of one type ("dgx-h100:16"). */
FR_CHECKED fr_status fr_catalog_cluster(const char *node_id, int64_t n_nodes,
                                        fr_cluster *out, fr_err *err);

#endif
