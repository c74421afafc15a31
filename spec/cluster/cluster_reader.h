/*
 * cluster_reader.h: the parts of the cluster reader, known to its own files
 * only.  Order: structure (names of elements and attributes), schema, then
 * values and what refers to what.
 */
#ifndef FR_SPEC_CLUSTER_CLUSTER_READER_H
#define FR_SPEC_CLUSTER_CLUSTER_READER_H

#include "spec/cluster/cluster.h"
#include "spec/cluster/cluster_elements.h"

enum {
    FR_CLUSTER_MAX_TYPES = 512, /* devices, node types, groups */
    FR_CLUSTER_MAX_LINKS = 65536
};

/* configs/schema/cluster.xsd, made into C by the build. */
extern const unsigned char fr_cluster_xsd[];
extern const size_t fr_cluster_xsd_n;

/*
 * An element that cannot be read adds a problem and leaves a stand-in, so that
 * references to it are no further problems: a device without memory, a node
 * type without devices.
 */
#define FR_IS_STAND_IN_DEVICE(device) ((device)->memory_bytes == 0)
#define FR_IS_STAND_IN_NODE(type) ((type)->n_devices == 0)

/* <device>, <node-type>, <machine>: the arrays devices and node_types.  A
 * machine also appends its group. */
FR_CHECKED fr_status fr_cluster_read_types(const fr_xml_node *root,
                                           fr_cluster *cluster,
                                           fr_problems *problems, fr_err *err);

/* <fabric>; the groups must be there. */
FR_CHECKED fr_status fr_cluster_read_fabric(const fr_xml_node *root,
                                            fr_cluster *cluster,
                                            fr_problems *problems, fr_err *err);

/* Child elements of one name. */
size_t fr_cluster_n_named(const fr_xml_node *node, const char *name);

#endif
