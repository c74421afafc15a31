/*
 * catalog_targets.h: the programs that a plan can be taken to, and what becomes
 * of each field of it there, as 'forerun catalog targets' prints them.
 */
#ifndef FR_API_CATALOG_CATALOG_TARGETS_H
#define FR_API_CATALOG_CATALOG_TARGETS_H

#include "report/document/document.h"

/* A line for each target; the data have "targets", with fields and rules. */
void fr_catalog_put_targets(fr_document *out);
/* Fields and rules of one; the same data.  FR_USAGE: there is none of this
 * name.
 */
FR_CHECKED fr_status fr_catalog_put_target(const char *name, fr_document *out,
                                           fr_err *err);

#endif
