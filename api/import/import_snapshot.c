/* import_snapshot.c: snapshots of PyTorch's allocator as a table. */
#include "api/import/measured.h"
#include "api/inputs.h"
#include "core/document/fields.h"
#include "interop/trace/snapshot.h"

#include <stdlib.h>

static void add_bytes(fr_table *table, double n_bytes)
{
    if (n_bytes > 0)
        fr_table_bytes(table, n_bytes);
    else
        fr_table_number(table, FR_CELL_BYTES, n_bytes, "-");
}

static void print_devices(const fr_snapshot *snapshot, fr_document *out)
{
    static const fr_column columns[] = {
        {">device", "device"},
        {">allocated", "allocated_bytes"},
        {">reserved", "reserved_bytes"},
        {">free in it", "free_bytes"},
        {">in one piece", "largest_free_bytes"},
        {">peak allocated", "peak_allocated_bytes"},
        {">peak reserved", "peak_reserved_bytes"}};
    fr_table *table =
        fr_document_records(out, NULL, columns, FR_LENGTH(columns));
    table->is_main = true;
    for (int i = 0; i < snapshot->n_devices; i++) {
        const fr_snapshot_device *device = &snapshot->device[i];
        if (device->n_segments + device->n_events == 0)
            continue;
        fr_table_count(table, i);
        add_bytes(table, device->allocated_bytes);
        add_bytes(table, device->reserved_bytes);
        add_bytes(table, device->free_bytes);
        add_bytes(table, device->largest_free_bytes);
        add_bytes(table, device->n_events > 0 ? device->peak_bytes : 0);
        add_bytes(table,
                  device->n_events > 0 ? device->peak_reserved_bytes : 0);
    }
}

static const fr_field device_fields[] = {
    {"segments", FR_MEMBER(fr_snapshot_device, n_segments)},
    {"blocks", FR_MEMBER(fr_snapshot_device, n_blocks)},
    {"events", FR_MEMBER(fr_snapshot_device, n_events)},
    FR_FIELD(fr_snapshot_device, allocated_bytes),
    FR_FIELD(fr_snapshot_device, reserved_bytes),
    FR_FIELD(fr_snapshot_device, free_bytes),
    FR_FIELD(fr_snapshot_device, largest_free_bytes),
    {"peak_allocated_bytes", FR_MEMBER(fr_snapshot_device, peak_bytes)},
    FR_FIELD(fr_snapshot_device, peak_reserved_bytes),
};

static void put_data(const fr_snapshot *snapshot, fr_json_writer *json)
{
    fr_json_put_string(json, "kind", "memory-snapshot");
    fr_json_open_array(json, "devices");
    for (int i = 0; i < snapshot->n_devices; i++) {
        fr_json_begin_object(json);
        fr_json_put_i64(json, "device", i);
        fr_fields_put(FR_FIELDS(device_fields), &snapshot->device[i], json);
        fr_json_end_object(json);
    }
    fr_json_end_array(json);
}

fr_status fr_import_snapshot(const fr_request *request, fr_document *out,
                             fr_err *err)
{
    fr_snapshot *snapshot;
    fr_infile *file;
    if (request->n_positional > 2 ||
        fr_request_text(request, FR_OPT_OUTPUT) != NULL)
        return fr_fail(err, FR_USAGE,
                       "memory-snapshot takes one file and no -o: what it "
                       "holds is printed (--json)");
    FR_TRY(
        fr_as_input(fr_infile_open(request->positional[1], &file, err), err));
    snapshot = calloc(1, sizeof *snapshot);
    fr_status status = snapshot != NULL ? fr_snapshot_read(file, snapshot, err)
                                        : fr_fail_no_memory(err);
    fr_infile_close(file);
    fr_document_init(out, "forerun.import/1");
    if (status == FR_OK) {
        put_data(snapshot, &out->data);
        print_devices(snapshot, out);
    }
    free(snapshot);
    return status;
}
