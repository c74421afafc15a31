/*
 * catalog_frameworks.h: the list of frameworks and what forerun can do with
 * each, as 'forerun catalog frameworks' prints it.
 */
#ifndef FR_API_CATALOG_CATALOG_FRAMEWORKS_H
#define FR_API_CATALOG_CATALOG_FRAMEWORKS_H

#include "report/document/document.h"

/* A row for each framework; "frameworks" in the data. */
void fr_catalog_put_frameworks(fr_document *out);

#endif
