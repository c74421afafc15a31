/* megatron_words.c: see megatron_words.h. */
#include "frameworks/megatron/megatron_words.h"

#include "core/base/vec.h"
#include "core/system/fileio.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A letter and how often: nothing, "t", "t*4". */
static void put_repeated(fr_buffer *out, char letter, int64_t n)
{
    if (n == 1)
        fr_buffer_putc(out, letter);
    else if (n > 1)
        fr_buffer_printf(out, "%c*%lld", letter, (long long)n);
}

void fr_megatron_put_layout(const fr_plan *plan, const fr_model *model,
                            fr_buffer *out)
{
    int32_t n = plan->pp * plan->vpp;
    for (int32_t i = 0; i < n; i++) {
        if (i == 0)
            fr_buffer_putc(out, 'E');
        else
            fr_buffer_putc(out, '|');
        put_repeated(out, 't', fr_plan_stage_layers(plan, model, i));
    }
    put_repeated(out, 'm', model->n_mtp_layers);
    fr_buffer_putc(out, 'L');
}

bool fr_megatron_has_layout(const fr_plan *plan, const fr_model *model,
                            int version)
{
    return version >= FR_MEGATRON_0_13 && plan->pp > 1 &&
           (plan->n_split > 0 || !fr_megatron_is_even(plan, model));
}

bool fr_megatron_has_dense_layers(const fr_model *model)
{
    for (int64_t i = 0; i < model->n_layers; i++)
        if (!fr_model_layer_is_moe(model, i))
            return true;
    return false;
}

bool fr_megatron_has_pre_softmax(const fr_model *model)
{
    return !model->has_sigmoid_router &&
           (model->has_softmax_over_all || model->n_experts_per_token == 1);
}

bool fr_megatron_builds_on_meta(const fr_model *model, int version)
{
    if (model->n_experts == 0)
        return true;
    if (version < FR_MEGATRON_0_13 || model->has_shared_expert_gate)
        return false;
    return version >= FR_MEGATRON_0_15 || !model->has_router_bias;
}

void fr_megatron_put_expert_layers(const fr_model *model, fr_buffer *out)
{
    for (int64_t i = 0; i < model->n_layers;) {
        bool has_experts = fr_model_layer_is_moe(model, i);
        int64_t n = 1;
        while (i + n < model->n_layers &&
               fr_model_layer_is_moe(model, i + n) == has_experts)
            n++;
        fr_buffer_printf(out, "%s[%d]*%lld", i > 0 ? "+" : "", has_experts,
                         (long long)n);
        i += n;
    }
}

int fr_megatron_graph_modules(const fr_plan *plan, const fr_model *model,
                              const char *out[FR_MEGATRON_MODULES_MAX])
{
    int n = 0;
    if (model->n_experts == 0)
        return 0; /* the whole layer */
    out[n++] = "attn";
    /* Not beside the passes of another micro-batch (transformer_config.py). */
    bool is_merged = plan->is_ep_overlap && plan->ep > 1;
    if (fr_megatron_has_dense_layers(model) && !is_merged)
        out[n++] = "mlp";
    out[n++] = "moe_router";
    return n;
}

int64_t fr_megatron_bucket(const fr_plan *plan)
{
    uint64_t n = plan->bucket_bytes / fr_dtype_bytes(plan->grad_dtype);
    if (plan->bucket_bytes == 0 || n > (uint64_t)FR_MEGATRON_ONE_BUCKET)
        return FR_MEGATRON_ONE_BUCKET;
    return n > 0 ? (int64_t)n : 1;
}

int64_t fr_megatron_instances(const fr_plan *plan)
{
    int64_t n_data = (int64_t)plan->dp * plan->cp;
    return plan->zero_stage > 0 && plan->zero_group > 0
               ? n_data / plan->zero_group
               : 1;
}

const char *fr_megatron_attention_backend(const fr_plan *plan)
{
    return !plan->is_flash                            ? "unfused"
           : plan->execution.flash_kind == FR_FLASH_2 ? "flash"
                                                      : "auto";
}

const char *fr_megatron_moments(const fr_job *job)
{
    return job->optimizer == FR_OPTIMIZER_SGD ? "sgd" : "adam";
}

/* Length of job->data before .bin or .idx; 0: it has no such ending. */
static size_t find_ending(const fr_job *job)
{
    static const char *const endings[] = {".bin", ".idx"};
    const size_t n = strlen(job->data);
    for (size_t i = 0; i < FR_LENGTH(endings); i++) {
        const size_t n_ending = strlen(endings[i]);
        if (n > n_ending && !strcmp(job->data + n - n_ending, endings[i]))
            return n - n_ending;
    }
    return 0;
}

bool fr_megatron_takes_data(const fr_job *job)
{
    char index[sizeof job->data + sizeof ".idx"];
    snprintf(index, sizeof index, "%s.idx", job->data);
    return job->data[0] != '\0' &&
           (find_ending(job) > 0 || fr_file_exists(index) ||
            !fr_file_exists(job->data));
}

char *fr_megatron_data_prefix(const fr_job *job, char *buf, size_t n_buf)
{
    const size_t n = find_ending(job);
    snprintf(buf, n_buf, "%.*s", (int)(n > 0 ? n : strlen(job->data)),
             job->data);
    return buf;
}
