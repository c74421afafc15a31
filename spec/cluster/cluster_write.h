/*
 * cluster_write.h: a cluster as the XML that fr_cluster_parse() reads.
 * Everything stands in the file itself, nothing is "like" the catalogue, and
 * numbers are written so that reading gives back the very same ones: hashes of
 * both clusters are equal.
 */
#ifndef FR_SPEC_CLUSTER_CLUSTER_WRITE_H
#define FR_SPEC_CLUSTER_CLUSTER_WRITE_H

#include "core/base/buffer.h"
#include "spec/cluster/cluster.h"

/*
 * Appends the file.  `comment` (lines, may be NULL) stands at its top.  A
 * detected machine is written as one to detect again.
 */
FR_CHECKED fr_status fr_cluster_format(const fr_cluster *cluster,
                                       const char *comment, fr_buffer *out,
                                       fr_err *err);

#endif
