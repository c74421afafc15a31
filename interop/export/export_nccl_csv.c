/* export_nccl_csv.c: see export_nccl_csv.h. */
#include "interop/export/export_nccl_csv.h"

#include "interop/export/export_list.h"

#include <assert.h>

const char *fr_nccl_csv_op(fr_op op)
{
    switch (op) {
    case FR_OP_ALL_REDUCE:
        return "allreduce";
    case FR_OP_REDUCE_SCATTER:
        return "reducescatter";
    case FR_OP_ALL_GATHER:
        return "allgather";
    case FR_OP_BROADCAST:
        return "broadcast";
    default:
        return NULL;
    }
}

fr_status fr_nccl_csv_format(const fr_nccl_rule *rows, size_t n,
                             const char *plan, const char *cluster,
                             fr_buffer *out, fr_err *err)
{
    fr_buffer_printf(out, "# forerun: %.160s on %.60s\n", plan, cluster);
    fr_buffer_puts(
        out,
        "# For NCCL's example tuner plugin: NCCL_TUNER_CONFIG_FILE is this\n"
        "# file.  As published the plugin gives one channel to what has no\n"
        "# line here, or channels -1: set *nChannels to 0, not 1, in its\n"
        "# pluginGetCollInfo().\n"
        "# collective_type,min_bytes,max_bytes,algorithm,protocol,channels,"
        "nNodes,nRanks,numPipeOps,regBuff\n");
    for (size_t i = 0; i < n; i++) {
        const fr_nccl_rule *row = &rows[i];
        assert(fr_nccl_csv_op(row->op) != NULL &&
               row->protocol != FR_PROTOCOL_AUTO);
        fr_buffer_printf(out, "%s,%llu,%llu,%s,%s,%d,%lld,%lld,-1,-1\n",
                         fr_nccl_csv_op(row->op),
                         (unsigned long long)row->min_bytes,
                         (unsigned long long)row->max_bytes, row->algorithm,
                         fr_name_of(&fr_protocol_names, row->protocol),
                         row->n_channels > 0 ? row->n_channels : -1,
                         (long long)row->n_nodes, (long long)row->n_ranks);
    }
    return fr_buffer_check(out, err);
}

const fr_exporter fr_exporter_nccl_csv = {
    .name = "nccl-csv",
    .summary = "the file of NCCL's example tuner plugin",
};
