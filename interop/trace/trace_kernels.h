/*
 * trace_kernels.h: what ran how often and for how long, by name and shape:
 * kernels of a GPU, or operators of a CPU where a trace has no kernels.  The
 * memory that it takes hangs on how many different ones there are.
 */
#ifndef FR_INTEROP_TRACE_TRACE_KERNELS_H
#define FR_INTEROP_TRACE_TRACE_KERNELS_H

#include "core/base/buffer.h"
#include "interop/trace/trace.h"
#include "spec/profile/profile.h"

enum { FR_KERNEL_SAMPLES = 128 };

/* One kernel on one shape; texts belong to the table. */
typedef struct fr_kernel_row {
    const char *name;
    const char *op;             /* that launched it, "aten::mm"; "" unknown */
    const char *shapes, *types; /* of its operands; "" unknown */
    bool is_kernel;             /* else an operator of the CPU */
    bool is_backward;
    const char *collective, *ranks; /* NCCL's; "" else */
    double n_in, n_out, n_group;    /* elements; ranks */
    uint64_t n;
    /* An operator's time is without those that it calls. */
    double total_s, least_s, most_s;
    /* Durations, every stride-th, for the median; ascending once the table is
     * finished. */
    uint64_t stride;
    int32_t n_samples;
    double sample_s[FR_KERNEL_SAMPLES];
} fr_kernel_row;

typedef struct fr_kernel_table fr_kernel_table;

/* FR_INPUT "path:line: ..." where the file is no trace or has neither. */
FR_CHECKED fr_status fr_kernel_table_read(fr_infile *file,
                                          fr_kernel_table **out, fr_err *err);
/* The same from a file of another kind. */
FR_CHECKED fr_status fr_kernel_table_load(const char *path,
                                          fr_trace_reader_fn read,
                                          fr_kernel_table **out, fr_err *err);
void fr_kernel_table_destroy(fr_kernel_table *table); /* takes NULL */

/* The longest first in total. */
const fr_kernel_row *fr_kernel_table_rows(const fr_kernel_table *table,
                                          size_t *n);
const fr_trace_about *fr_kernel_table_about(const fr_kernel_table *table);
double fr_kernel_row_quantile_s(const fr_kernel_row *row, double p);

/*
 * Products of forward whose shapes are known and collectives whose sizes are,
 * as points of a profile of that GPU; what is left out is said in `notes`,
 * line by line.  FR_INPUT where nothing is left: `name` is the file.
 */
FR_CHECKED fr_status fr_kernel_table_profile(const fr_kernel_table *table,
                                             const char *name, fr_profile *out,
                                             fr_buffer *notes, fr_err *err);

#endif
