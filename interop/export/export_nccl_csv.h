/*
 * export_nccl_csv.h: choices of algorithm, protocol and channels as the
 * configuration file of NVIDIA's example tuner plugin, for programs that are
 * not forerun: NCCL_TUNER_PLUGIN names the plugin, NCCL_TUNER_CONFIG_FILE the
 * file.
 *
 * The format is what plugins/tuner/example of https://github.com/NVIDIA/nccl
 * says in README.md and reads in plugin.c (read 2026-11-22): lines of fewer
 * than 256 characters; '#' in the first column begins a comment; ten fields
 *     collective_type,min_bytes,max_bytes,algorithm,protocol,channels,
 *     nNodes,nRanks,numPipeOps,regBuff
 * with -1 for "any" in the last four and for NCCL's own number of channels.
 * The first line that fits a call, and whose algorithm can have its protocol
 * there, is taken.
 */
#ifndef FR_INTEROP_EXPORT_EXPORT_NCCL_CSV_H
#define FR_INTEROP_EXPORT_EXPORT_NCCL_CSV_H

#include "core/base/buffer.h"
#include "plan/decide/plan.h"
#include "plan/op/op.h"

typedef struct fr_nccl_rule {
    fr_op op; /* ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER, BROADCAST */
    uint64_t min_bytes, max_bytes; /* both in it */
    const char *algorithm; /* in the plugin's words: ring, nvls_tree ... */
    fr_protocol protocol;  /* not AUTO */
    int32_t n_channels;    /* 0: NCCL's choice */
    int64_t n_nodes, n_ranks;
} fr_nccl_rule;

/* The plugin's word for an operation; NULL: it has none. */
const char *fr_nccl_csv_op(fr_op op);

/*
 * Appends the file; `plan` and `cluster`, which stand in its first comment,
 * are cut where they are long.
 */
FR_CHECKED fr_status fr_nccl_csv_format(const fr_nccl_rule *rows, size_t n,
                                        const char *plan, const char *cluster,
                                        fr_buffer *out, fr_err *err);

#endif
