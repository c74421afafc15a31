/*
 * nccl_rows.h: the choices of a plan for NCCL on a cluster as rows of a table:
 * the algorithm and the protocol of each kind of collective that carries
 * gradients or parameters, by size.
 */
#ifndef FR_API_NCCL_ROWS_H
#define FR_API_NCCL_ROWS_H

#include "api/inputs.h"
#include "core/base/vec.h"
#include "interop/export/export_nccl_csv.h"

typedef struct fr_nccl_rows {
    fr_vec(fr_nccl_rule) rows;
    /* Other collectives that the same lines fit, a line of text each. */
    fr_buffer also;
} fr_nccl_rows;

/*
 * FR_INPUT: the plan leaves everything to NCCL, asks for what NCCL cannot do
 * there, or the cluster is of CPUs.  fr_nccl_rows_release() frees, also after
 * a failure.
 */
FR_CHECKED fr_status fr_nccl_rows_make(fr_inputs *inputs,
                                       const fr_plan_file *file,
                                       fr_nccl_rows *out, fr_err *err);
void fr_nccl_rows_release(fr_nccl_rows *rows);

#endif
