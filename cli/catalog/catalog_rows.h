/*
 * catalog_rows.h: the built-in devices and node types with their sources, as
 * 'forerun catalog' prints them.
 */
#ifndef FR_CLI_CATALOG_CATALOG_ROWS_H
#define FR_CLI_CATALOG_CATALOG_ROWS_H

#include "core/base/buffer.h"
#include "core/document/json.h"

/* "devices", "nodes" and "sources": arrays of the open JSON object. */
void fr_catalog_put_devices(fr_json_writer *json);
void fr_catalog_put_nodes(fr_json_writer *json);
void fr_catalog_put_sources(fr_json_writer *json);

/* The same as tables. */
FR_CHECKED fr_status fr_catalog_print_devices(fr_buffer *out, fr_err *err);
FR_CHECKED fr_status fr_catalog_print_nodes(fr_buffer *out, fr_err *err);
FR_CHECKED fr_status fr_catalog_print_sources(fr_buffer *out, fr_err *err);

#endif
