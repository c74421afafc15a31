/*
 * import_parts.h: what the readers of import_*.c share.
 */
#ifndef FR_INTEROP_IMPORT_IMPORT_PARTS_H
#define FR_INTEROP_IMPORT_IMPORT_PARTS_H

#include "core/base/vec.h"
#include "core/document/xml.h"
#include "interop/import/import.h"
#include "spec/catalog/catalog.h"

/* The input of a reader, and the place of its notes. */
typedef struct fr_import_text {
    const char *name; /* of the file, for messages */
    const char *text; /* NUL-terminated */
    size_t n;
    const fr_import_options *options;
    fr_buffer *notes;
} fr_import_text;

typedef struct fr_importer {
    const char *name;
    fr_import_subject subject;
    /* Words in the first 4096 bytes of such a file: any of them, or all. */
    const char *marks[3];
    bool has_all;
    /* Fills cluster or profile of *out (zeroed before, released by the
     * caller on failure). */
    fr_status (*read)(const fr_import_text *in, fr_import *out, fr_err *err);
} fr_importer;

extern const fr_importer fr_import_nccl, fr_import_nccl_graph, fr_import_hwloc,
    fr_import_topo_matrix, fr_import_slurm, fr_import_simgrid,
    fr_import_nccl_tests, fr_import_nvidia_smi, fr_import_amd_topo,
    fr_import_slurm_nodes;

/* One line. */
void fr_import_note(const fr_import_text *in, const char *format, ...)
    FR_PRINTF(2, 3);

/* FR_INPUT "name:line: ..." */
void fr_import_err_write(const fr_import_text *in, int line, fr_err *err,
                         const char *format, ...) FR_PRINTF(4, 5);
#define fr_import_fail(in, line, err, ...)                                     \
    (fr_import_err_write((in), (line), (err), __VA_ARGS__),                    \
     fr_status_same(FR_INPUT))

/* A name made into an id of cluster files; returns out[FR_CLUSTER_ID]. */
char *fr_import_id(const char *name, char *out);

/* Splits a line in place at its blanks, into n_max words at most. */
int fr_import_words(char *line, char **words, int n_max);

/*
 * The results of a reader from the description of one node.  Zero or NULL: the
 * file does not say it, the catalogue shall.
 */
typedef struct fr_import_node {
    const fr_catalog_device *device;
    fr_device_type cpu; /* when there are no GPUs: n_cores > 0 */
    int32_t n_gpus;
    int line;        /* where the first GPU stands */
    bool has_fabric; /* intra_kind, link_Bps and pair_Bps are known */
    fr_intra_kind intra_kind;
    double link_Bps, pair_Bps;
    double host_Bps; /* PCIe of a GPU */
    int32_t n_nics;
    fr_nic_kind nic_kind;
    double nic_Bps, nic_latency_s;
    double nic_rated_Bps; /* what its model can at most */
    double nic_pcie_Bps;  /* PCIe of a NIC: no NIC is faster */
    int32_t n_sockets;
    int32_t n_switches; /* PCIe switches that GPUs hang on */
    double uplink_Bps;
    uint64_t host_memory_bytes;
} fr_import_node;

/* --gpu, or else `found`; FR_INPUT when neither is there or known. */
FR_CHECKED fr_status fr_import_choose_gpu(const fr_import_text *in,
                                          fr_import_node *node, fr_err *err);
/* --node-type; *out is NULL when it was not given. */
FR_CHECKED fr_status fr_import_choose_node(const fr_import_text *in,
                                           const fr_catalog_node **out,
                                           fr_err *err);

/* A cluster of options->n_nodes such nodes; the GPU must be chosen. */
FR_CHECKED fr_status fr_import_finish(const fr_import_text *in,
                                      const fr_import_node *node,
                                      fr_cluster *out, fr_err *err);

/*
 * One direction of a PCIe link as NCCL 2.30 rates it (src/graph/topo.cc): 0.75
 * GB/s for a lane of 8 GT/s, so 12 GB/s for 16 of them.  `speed` begins with
 * the GT/s; 0 when it is not known.
 */
double fr_import_pcie_Bps(const char *speed, int64_t n_lanes);

/* The fastest port of a NIC of this PCI id; 0: unknown. */
double fr_import_nic_Bps(uint32_t vendor, uint32_t device);

/* Describes the fabric of n_gpus GPUs whose pairs have n_links[i * n_gpus + j]
 * NVLinks. */
void fr_import_nvlinks(const fr_import_text *in, const int32_t *n_links,
                       fr_import_node *node);

#endif
