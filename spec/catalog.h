/*
 * catalog.h: devices and node types that users can name without describing
 * them.  Dense peaks (no sparsity), bandwidths in one direction, capacities
 * as the driver can use them; each row of catalog.c has its source and date.
 */
#ifndef FR_SPEC_CATALOG_H
#define FR_SPEC_CATALOG_H

#include "spec/cluster.h"

/* Where a row comes from and when that was read. */
typedef struct fr_catalog_device {
    fr_device_type type;
    const char *summary; /* "NVIDIA H100 SXM5 80 GB" */
    const char *source;
} fr_catalog_device;

typedef struct fr_catalog_node {
    fr_node_type type;     /* i_device is 0 and means nothing */
    const char *device;    /* id of its device */
    fr_fabric_kind fabric; /* what joins several of them */
    const char *summary;
    const char *source;
} fr_catalog_node;

size_t fr_catalog_n_devices(void);
size_t fr_catalog_n_nodes(void);
const fr_catalog_device *fr_catalog_device_at(size_t i);
const fr_catalog_node *fr_catalog_node_at(size_t i);

/* NULL when absent. */
const fr_catalog_device *fr_catalog_device_find(const char *id);
const fr_catalog_node *fr_catalog_node_find(const char *id);

/* The nearest id for "did you mean", NULL when none is near. */
const char *fr_catalog_device_nearest(const char *id);
const char *fr_catalog_node_nearest(const char *id);

/* A cluster of n_nodes nodes of one type ("dgx-h100:16"). */
FR_CHECKED fr_status fr_catalog_cluster(const char *node_id, int64_t n_nodes,
                                        fr_cluster *out, fr_err *err);

#endif
