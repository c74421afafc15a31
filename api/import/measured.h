/*
 * measured.h: what runs left behind, read by `forerun import`: files that are
 * too large for memory, unlike the descriptions that cmd_import.c reads whole.
 * A kind is a row of measured.c.
 */
#ifndef FR_API_IMPORT_MEASURED_H
#define FR_API_IMPORT_MEASURED_H

#include "api/request/request.h"
#include "api/resolve/config_choice.h"
#include "report/document/document.h"

typedef struct fr_measured_kind {
    const char *name; /* the word before FILE */
    fr_status (*import)(const fr_request *request, fr_document *out,
                        fr_err *err);
} fr_measured_kind;

/* In the order of the list, NULL past its end. */
const char *fr_measured_name(int i);
/* NULL: no such kind. */
const fr_measured_kind *fr_measured_find(const char *name);

/* positional[1...]: logs; a row of cases each. */
FR_CHECKED fr_status fr_import_runlog(const fr_request *request,
                                      fr_document *out, fr_err *err);
/* positional[1]: a trace of PyTorch's profiler; a table or a profile. */
FR_CHECKED fr_status fr_import_kineto(const fr_request *request,
                                      fr_document *out, fr_err *err);
FR_CHECKED fr_status fr_import_nsys(const fr_request *request, fr_document *out,
                                    fr_err *err);
FR_CHECKED fr_status fr_import_chakra(const fr_request *request,
                                      fr_document *out, fr_err *err);
/* positional[1]: a snapshot of PyTorch's allocator as JSON. */
FR_CHECKED fr_status fr_import_snapshot(const fr_request *request,
                                        fr_document *out, fr_err *err);

/* A configuration of a framework: the plan file, or with --json what it holds.
 */
FR_CHECKED fr_status fr_import_config(const fr_request *request,
                                      const fr_config_source *source,
                                      fr_document *out, fr_err *err);

#endif
