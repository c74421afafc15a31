/*
 * megatron_arguments.c: a plan as arguments of pretrain_gpt.py: the rows of
 * megatron_keys.c, and what no single argument says
 * (https://github.com/NVIDIA/Megatron-LM, megatron/training/arguments.py).
 */
#include "frameworks/megatron/write/megatron_arguments.h"

#include "frameworks/megatron/megatron_keys.h"
#include "frameworks/write/export_job.h"
#include "plan/decide/plan_fields.h"

static void put_rows(const fr_export_request *of, const char *table,
                     fr_buffer *out)
{
    fr_framework_keys_put(fr_megatron_keys, table, of->version,
                          &fr_key_style_arguments, of->file, out);
}

static void put_number(fr_buffer *out, const char *flag, int64_t value)
{
    fr_buffer_printf(out, "    --%s %lld\n", flag, (long long)value);
}

static void put_comment(fr_buffer *out, const char *text)
{
    fr_buffer_printf(out, "    # %s\n", text);
}

/* ---- the model and the job ----------------------------------------------- */

void fr_megatron_put_model(const fr_export_request *of, fr_buffer *out)
{
    const fr_model *model = &of->file->model;
    put_rows(of, "shape", out);
    if (model->kv_lora_rank > 0) {
        put_rows(of, "latent", out);
        put_rows(of, "latent norms", out);
    }
    put_rows(of, "layers", out);
    if (model->n_experts > 0) {
        put_rows(of, "router", out);
        put_rows(of, "router bias", out);
        put_rows(of, "experts", out);
        put_rows(of, "expert layers", out);
    }
    put_rows(of, "tokens", out);
}

void fr_megatron_put_training(const fr_export_request *of, fr_buffer *out)
{
    put_rows(of, "batch", out);
    put_rows(of, fr_megatron_moments(&of->file->job), out);
    put_rows(of, "decay", out);
    put_rows(of, "rates", out);
    put_rows(of, "schedule", out);
    put_rows(of, "dropout", out);
}

/* It loads from a folder that holds none as if nothing were asked for
 * (training/checkpointing.py, load_checkpoint).  Of a submission's time a
 * tenth, 15 minutes at most, is for its start and its last checkpoint. */
void fr_megatron_put_checkpoints(const fr_export_request *request,
                                 fr_buffer *out)
{
    const int64_t minutes = fr_export_minutes(request);
    if (request->checkpoint_dir == NULL)
        return;
    fr_buffer_puts(out, "    --save ");
    fr_export_put_word(request->checkpoint_dir, out);
    fr_buffer_puts(out, "\n    --load ");
    fr_export_put_word(request->checkpoint_dir, out);
    fr_buffer_putc(out, '\n');
    put_number(out, "save-interval", request->checkpoint_every);
    if (request->time_limit_s > 0)
        put_number(out, "exit-duration-in-mins",
                   minutes > 1
                       ? minutes - (minutes < 150 ? (minutes + 9) / 10 : 15)
                       : 1);
}

void fr_megatron_put_data(const fr_export_request *of, fr_buffer *out)
{
    put_rows(of, "data", out);
}

/* ---- parallel degrees ---------------------------------------------------- */

static void put_stages(const fr_export_request *of, fr_buffer *out)
{
    const fr_plan *plan = &of->file->plan;
    const fr_model *model = &of->file->model;
    int32_t first = 0, last = 0;
    if (fr_megatron_has_layout(plan, model, of->version)) {
        fr_buffer_puts(out, "    --pipeline-model-parallel-layout '");
        fr_megatron_put_layout(plan, model, out);
        fr_buffer_puts(out, "'\n");
        return;
    }
    bool has_ends = plan->pp > 1 && !fr_megatron_is_even(plan, model) &&
                    fr_megatron_ends(plan, model, &first, &last);
    if (plan->vpp > 1 && of->version >= FR_MEGATRON_0_11)
        put_number(out, "num-virtual-stages-per-pipeline-rank", plan->vpp);
    else if (plan->vpp > 1)
        put_number(out, "num-layers-per-virtual-pipeline-stage",
                   fr_plan_stage_layers(plan, model, 0));
    if (has_ends) {
        put_number(out, "decoder-first-pipeline-num-layers", first);
        if (plan->pp > 2) /* of two, the last has the rest */
            put_number(out, "decoder-last-pipeline-num-layers", last);
    }
}

void fr_megatron_put_parallel(const fr_export_request *of, fr_buffer *out)
{
    put_rows(of, "parallel", out);
    put_stages(of, out);
    put_rows(of, "context", out);
    if (of->file->model.n_experts > 0)
        put_rows(of, "expert parallel", out);
    put_rows(of, "order", out);
}

/* ---- data parallel, memory, kernels -------------------------------------- */

static void put_buckets(const fr_export_request *of, fr_buffer *out)
{
    const fr_plan *plan = &of->file->plan;
    uint64_t n_bytes = fr_dtype_bytes(plan->grad_dtype);
    if (!fr_plan_field_is_used(plan, FR_PLAN_BUCKET))
        return;
    if (plan->bucket_bytes > 0 && plan->bucket_bytes % n_bytes != 0)
        fr_buffer_printf(out, "    # %llu bytes are no whole elements\n",
                         (unsigned long long)plan->bucket_bytes);
    if (!plan->is_overlap)
        put_comment(out, "without --overlap-grad-reduce all goes as one "
                         "bucket, whatever its size");
    put_number(out, "ddp-bucket-size", fr_megatron_bucket(plan));
}

void fr_megatron_put_memory(const fr_export_request *of, fr_buffer *out)
{
    put_rows(of, "sharding", out);
    if (of->file->plan.zero_stage > 1 &&
        fr_megatron_builds_on_meta(&of->file->model, of->version))
        fr_buffer_puts(out, "    --init-model-with-meta-device\n");
    else if (of->file->plan.zero_stage > 1)
        put_comment(out, "before it is sharded each GPU holds the whole model: "
                         "its router or the gate of its shared expert cannot "
                         "be made in parts");
    put_rows(of, "reduction", out);
    put_buckets(of, out);
    put_rows(of, "gradients", out);
    put_rows(of, "recompute", out);
    put_rows(of, "offload", out);
    put_rows(of, "memory", out);
}
