/* export_deepspeed.c: ds_config.json (docs/_pages/config-json.md of
 * DeepSpeed), for a script that calls deepspeed.initialize(). */
#include "core/document/json.h"
#include "interop/export/export_list.h"
#include "plan/target/target_list.h"

static void put_zero(const fr_plan *plan, fr_json_writer *json)
{
    fr_json_open_object(json, "zero_optimization");
    fr_json_put_i64(json, "stage", plan->zero_stage);
    fr_json_put_bool(json, "overlap_comm", plan->is_overlap);
    fr_json_end_object(json);
}

static fr_status write_config(const fr_export_request *request,
                              fr_export_files *out, fr_err *err)
{
    const fr_plan *plan = &request->file->plan;
    const fr_job *job = &request->file->job;
    fr_json_writer json;
    fr_export_file *file = fr_export_add(out, "ds_config.json", false);
    if (file == NULL)
        return fr_fail_no_memory(err);
    fr_json_writer_init(&json, &file->text);
    fr_json_begin_object(&json);
    fr_json_put_i64(&json, "train_batch_size", job->global_batch);
    fr_json_put_i64(&json, "train_micro_batch_size_per_gpu", plan->micro_batch);
    fr_json_put_i64(&json, "gradient_accumulation_steps",
                    fr_plan_micro_batches(plan, job));
    put_zero(plan, &json);
    fr_json_end_object(&json);
    fr_buffer_putc(&file->text, '\n');
    return fr_buffer_check(&file->text, err);
}

static fr_status put_command(const fr_export_request *request, fr_buffer *out,
                             fr_err *err)
{
    (void)request;
    (void)err;
    fr_buffer_puts(out, "train.py --deepspeed_config ds_config.json");
    return FR_OK;
}

const fr_exporter fr_exporter_deepspeed = {
    .name = "deepspeed",
    .summary = "ds_config.json of DeepSpeed",
    .target = &fr_target_deepspeed,
    .write = write_config,
    .start = FR_START_TORCHRUN,
    .put_command = put_command,
};
