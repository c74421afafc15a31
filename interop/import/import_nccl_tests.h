/*
 * import_nccl_tests.h: what the text and the JSON reader of nccl-tests share.
 */
#ifndef FR_INTEROP_IMPORT_IMPORT_NCCL_TESTS_H
#define FR_INTEROP_IMPORT_IMPORT_NCCL_TESTS_H

#include "interop/import/import_parts.h"

typedef struct fr_nccl_run {
    const char *op; /* of a profile; NULL: not said */
    int n_ranks, n_hosts, n_iterations;
    char device[96]; /* "NVIDIA H100 80GB HBM3" */
} fr_nccl_run;

typedef struct fr_nccl_timing {
    int line;
    uint64_t n_bytes;
    double time_s[2]; /* out of place, in place */
    int64_t n_wrong;  /* of both */
} fr_nccl_timing;

/* The operation that a test's name in `text` stands for, or NULL. */
const char *fr_nccl_op_of(const char *text);

/* Sets run->op where the file did not say it: from --test, or the name of the
 * file.  FR_INPUT: nobody says it, or both say another test. */
FR_CHECKED fr_status fr_nccl_take_test(const fr_import_text *in,
                                       fr_nccl_run *run, int line, fr_err *err);

/* Appends a point; a row of no bytes is passed over, wrong values refused. */
FR_CHECKED fr_status fr_nccl_add(const fr_import_text *in,
                                 const fr_nccl_timing *row, fr_import *out,
                                 fr_err *err);
/* Fills what all points share, once all are there. */
FR_CHECKED fr_status fr_nccl_finish(const fr_import_text *in,
                                    const fr_nccl_run *run, int line,
                                    fr_import *out, fr_err *err);

/* import_nccl_json.c */
FR_CHECKED fr_status fr_nccl_read_json(const fr_import_text *in, fr_import *out,
                                       fr_err *err);

#endif
