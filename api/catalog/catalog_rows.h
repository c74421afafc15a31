/*
 * catalog_rows.h: the built-in devices and node types with their sources, as
 * 'forerun catalog' prints them.
 */
#ifndef FR_API_CATALOG_CATALOG_ROWS_H
#define FR_API_CATALOG_CATALOG_ROWS_H

#include "report/document/document.h"

/* Tables, and "devices", "nodes" and "sources" of the data. */
void fr_catalog_put_devices(fr_document *out);
void fr_catalog_put_nodes(fr_document *out);
void fr_catalog_put_sources(fr_document *out);

#endif
