/*
 * export_forerun.c: forerun's own runtime as a program that launchers start:
 * the plan file itself, which is all that a run needs.
 */
#include "core/document/json.h"
#include "frameworks/framework_list.h"
#include "frameworks/write/export_job.h"

#define RESUME_OPTIONS "--checkpoint-async --resume"

static fr_status write_plan(const fr_export_request *request,
                            fr_export_files *out, fr_err *err)
{
    fr_json_writer json;
    fr_export_file *file = fr_export_add(out, "plan.json", false);
    if (file == NULL)
        return fr_fail_no_memory(err);
    fr_json_writer_init(&json, &file->text);
    fr_plan_file_write(request->file, &json);
    fr_buffer_putc(&file->text, '\n');
    return fr_buffer_check(&file->text, err);
}

static fr_status put_command(const fr_export_request *request, fr_buffer *out,
                             fr_err *err)
{
    (void)err;
    fr_buffer_printf(out, "forerun run \"$folder/plan.json\" --backend %s",
                     request->has_gpus ? "cuda" : "cpu");
    if (request->checkpoint_dir == NULL)
        return FR_OK;
    fr_buffer_puts(out, " --checkpoint ");
    fr_export_put_word(request->checkpoint_dir, out);
    fr_buffer_printf(out, " --checkpoint-every %lld " RESUME_OPTIONS,
                     (long long)request->checkpoint_every);
    return FR_OK;
}

const fr_exporter fr_exporter_forerun = {
    .target = &fr_target_forerun,
    .summary = "a plan of forerun's own runtime",
    .write = write_plan,
    .start = FR_START_MPI,
    .resume_options = "--checkpoint checkpoints " RESUME_OPTIONS,
    .put_command = put_command,
    .n_kept = 2, /* --keep */
};
