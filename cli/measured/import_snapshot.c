/* import_snapshot.c: snapshots of PyTorch's allocator as a table. */
#include "api/inputs.h"
#include "cli/answer.h"
#include "cli/measured/measured.h"
#include "core/base/units.h"
#include "interop/trace/snapshot.h"
#include "report/document/table.h"

#include <stdlib.h>

static void add_bytes(fr_table *table, double n_bytes)
{
    char text[FR_FORMAT_MAX];
    fr_table_text(
        table, n_bytes > 0 ? fr_format_bytes(text, sizeof text, n_bytes) : "-");
}

static fr_status print_text(const fr_cli *cli, const fr_snapshot *snapshot,
                            fr_err *err)
{
    static const char *const headings[] = {
        ">device",       ">allocated",      ">reserved",      ">free in it",
        ">in one piece", ">peak allocated", ">peak reserved", NULL};
    fr_buffer text;
    fr_table table;
    fr_answer_open(cli, &text);
    fr_table_init(&table, headings);
    for (int i = 0; i < snapshot->n_devices; i++) {
        const fr_snapshot_device *device = &snapshot->device[i];
        if (device->n_segments + device->n_events == 0)
            continue;
        fr_table_cell(&table, "%d", i);
        add_bytes(&table, device->allocated_bytes);
        add_bytes(&table, device->reserved_bytes);
        add_bytes(&table, device->free_bytes);
        add_bytes(&table, device->largest_free_bytes);
        add_bytes(&table, device->n_events > 0 ? device->peak_bytes : 0);
        add_bytes(&table,
                  device->n_events > 0 ? device->peak_reserved_bytes : 0);
    }
    fr_status status = fr_table_finish(&table, &text, err);
    return fr_answer_text(status, &text, cli, err);
}

static fr_status print_json(const fr_cli *cli, const fr_snapshot *snapshot,
                            fr_err *err)
{
    fr_answer answer;
    fr_json_writer *json = fr_answer_begin(&answer, "forerun.import/1");
    fr_json_put_string(json, "kind", "memory-snapshot");
    fr_json_open_array(json, "devices");
    for (int i = 0; i < snapshot->n_devices; i++) {
        const fr_snapshot_device *device = &snapshot->device[i];
        fr_json_begin_object(json);
        fr_json_put_i64(json, "device", i);
        fr_json_put_u64(json, "segments", device->n_segments);
        fr_json_put_u64(json, "blocks", device->n_blocks);
        fr_json_put_u64(json, "events", device->n_events);
        fr_json_put_double(json, "allocated_bytes", device->allocated_bytes);
        fr_json_put_double(json, "reserved_bytes", device->reserved_bytes);
        fr_json_put_double(json, "free_bytes", device->free_bytes);
        fr_json_put_double(json, "largest_free_bytes",
                           device->largest_free_bytes);
        fr_json_put_double(json, "peak_allocated_bytes", device->peak_bytes);
        fr_json_put_double(json, "peak_reserved_bytes",
                           device->peak_reserved_bytes);
        fr_json_end_object(json);
    }
    fr_json_end_array(json);
    return fr_answer_print(&answer, cli, err);
}

fr_status fr_import_snapshot(const fr_cli *cli, fr_err *err)
{
    fr_snapshot *snapshot;
    fr_infile *file;
    if (cli->request.n_positional > 2 ||
        fr_cli_text(cli, FR_OPT_OUTPUT) != NULL)
        return fr_fail(err, FR_USAGE,
                       "memory-snapshot takes one file and no -o: what it "
                       "holds is printed (--json)");
    FR_TRY(fr_as_input(fr_infile_open(cli->request.positional[1], &file, err),
                       err));
    snapshot = calloc(1, sizeof *snapshot);
    fr_status status = snapshot != NULL ? fr_snapshot_read(file, snapshot, err)
                                        : fr_fail_no_memory(err);
    fr_infile_close(file);
    if (status == FR_OK && fr_cli_on(cli, FR_OPT_JSON))
        status = print_json(cli, snapshot, err);
    else if (status == FR_OK)
        status = print_text(cli, snapshot, err);
    free(snapshot);
    return status;
}
