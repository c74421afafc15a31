/* config_megatron_memory.c: data parallelism, recompute, offload, precision and
 * kernels of arguments of Megatron-LM. */
#include "core/base/text.h"
#include "frameworks/megatron/read/megatron_flags.h"
#include "frameworks/megatron/target_megatron.h"

#include <string.h>
#include <strings.h>

/* ---- data parallel ------------------------------------------------------- */

static fr_status read_sharding(fr_megatron_flags *flags, int version,
                               fr_plan_file *file, fr_err *err)
{
    fr_plan *plan = &file->plan;
    const char *word;
    FR_TRY(fr_megatron_read_rows(flags, "sharding", file, err));
    if (fr_megatron_has(flags, "use-distributed-optimizer"))
        plan->zero_stage = 1;
    if (fr_megatron_has(flags, "use-custom-fsdp") ||
        fr_megatron_has(flags, "use-megatron-fsdp")) {
        plan->zero_stage = version < FR_MEGATRON_0_18 ? 0 : 3;
        FR_TRY(fr_megatron_read_key(flags, "data-parallel-sharding-strategy",
                                    file, err));
    }
    FR_TRY(fr_megatron_word(flags, "data-parallel-sharding-strategy", NULL,
                            &word, err));
    plan->is_resharded =
        !fr_megatron_has(flags, "torch-fsdp2-no-reshard-after-forward");
    if (fr_megatron_has(flags, "use-torch-fsdp2"))
        plan->zero_stage = 3;
    return FR_OK;
}

static fr_status read_copies(fr_megatron_flags *flags, fr_config *out,
                             fr_err *err)
{
    fr_plan *plan = &out->file.plan;
    int64_t n_data = (int64_t)plan->dp * plan->cp, n_copies = 1;
    FR_TRY(fr_megatron_i64(flags, "num-distributed-optimizer-instances", 1,
                           &n_copies, err));
    if (plan->zero_stage > 0 && n_copies > 1) {
        if (n_data % n_copies != 0)
            return fr_megatron_refuse(
                flags,
                fr_megatron_find(flags, "num-distributed-optimizer-instances"),
                "does not divide the data-parallel ranks", err);
        plan->zero_group = (int32_t)(n_data / n_copies);
    }
    if (plan->zero_stage > 0 && n_data == 1) {
        fr_buffer_puts(&out->notes, "one data-parallel rank has nothing to "
                                    "share: zero 0\n");
        plan->zero_stage = 0;
    }
    return FR_OK;
}

static fr_status read_buckets(fr_megatron_flags *flags, fr_plan *plan,
                              fr_err *err)
{
    /* distributed_data_parallel.py, __init__ */
    int64_t n_data = (int64_t)plan->dp * plan->cp;
    int64_t n = 1000000 * n_data > 40000000 ? 1000000 * n_data : 40000000;
    enum { NONE_ENDS = 1000000000 }; /* no bucket ends before */
    FR_TRY(fr_megatron_i64(flags, "ddp-bucket-size", 1, &n, err));
    plan->bucket_bytes = n / 1000 >= NONE_ENDS
                             ? 0
                             : (uint64_t)n * fr_dtype_bytes(plan->grad_dtype);
    return FR_OK;
}

static fr_status read_gradients(fr_megatron_flags *flags, fr_plan_file *file,
                                fr_err *err)
{
    fr_plan *plan = &file->plan;
    fr_dtype base = fr_plan_storage_dtype(plan);
    bool is_f32 = fr_megatron_has(flags, "accumulate-allreduce-grads-in-fp32");
    bool is_bf16 = fr_megatron_has(flags, "grad-reduce-in-bf16");
    plan->grad_dtype = FR_DTYPE_F32;
    if (base == FR_DTYPE_BF16 && is_bf16)
        plan->grad_dtype = FR_DTYPE_BF16;
    if (base == FR_DTYPE_F16 && !is_f32)
        plan->grad_dtype = FR_DTYPE_F16;
    FR_TRY(fr_megatron_read_rows(flags, "gradients", file, err));
    return fr_megatron_read_rows(flags, "reduction", file, err);
}

/* ---- recompute and offload ----------------------------------------------- */

static fr_status read_full(fr_megatron_flags *flags, fr_config *out,
                           fr_err *err)
{
    fr_plan *plan = &out->file.plan;
    const char *method;
    int32_t n = 1;
    FR_TRY(
        fr_megatron_word(flags, "recompute-method", "uniform", &method, err));
    const bool is_block = strcmp(method, "block") == 0;
    FR_TRY(fr_megatron_i32(flags, "recompute-num-layers", is_block ? 0 : 1, &n,
                           err));
    if (n == 0)
        return FR_OK; /* of no layer */
    plan->recompute = FR_RECOMPUTE_FULL;
    if (is_block)
        plan->recompute_layers = n;
    else if (n > 1)
        fr_buffer_printf(&out->notes,
                         "inputs of every %d layers are kept: predicted as of "
                         "every layer\n",
                         n);
    return FR_OK;
}

static fr_status read_recompute(fr_megatron_flags *flags, fr_config *out,
                                fr_err *err)
{
    fr_plan *plan = &out->file.plan;
    const char *word;
    bool is_old = fr_megatron_has(flags, "recompute-activations");
    FR_TRY(fr_megatron_word(flags, "recompute-granularity",
                            is_old ? "selective" : "", &word, err));
    if (strcmp(word, "full") == 0)
        return read_full(flags, out, err);
    if (strcmp(word, "selective") == 0) {
        plan->recompute = FR_RECOMPUTE_SELECTIVE;
        plan->recompute_parts = FR_RECOMPUTE_PART_ATTENTION;
        FR_TRY(
            fr_megatron_read_key(flags, "recompute-modules", &out->file, err));
    }
    if (fr_megatron_has(flags, "moe-layer-recompute")) {
        if (plan->recompute == FR_RECOMPUTE_NONE)
            plan->recompute_parts = 0;
        plan->recompute = FR_RECOMPUTE_SELECTIVE;
        plan->recompute_parts |= FR_RECOMPUTE_PART_EXPERTS;
    }
    return FR_OK;
}

static fr_status read_offload(fr_megatron_flags *flags, fr_config *out,
                              fr_err *err)
{
    fr_plan *plan = &out->file.plan;
    double share = 1;
    int64_t n_layers = 0;
    FR_TRY(fr_megatron_real(flags, "optimizer-offload-fraction", &share, err));
    FR_TRY(fr_megatron_read_rows(flags, "offload", &out->file, err));
    plan->is_optimizer_offloaded = plan->is_optimizer_offloaded && share > 0;
    if (plan->is_optimizer_offloaded && share < 1)
        fr_buffer_printf(&out->notes,
                         "--optimizer-offload-fraction %g: predicted as all "
                         "of it\n",
                         share);
    FR_TRY(
        fr_megatron_i64(flags, "cpu-offloading-num-layers", 0, &n_layers, err));
    if (n_layers > 0 && n_layers < out->file.model.n_layers)
        plan->activation_offload_frac =
            (double)n_layers / (double)out->file.model.n_layers;
    return FR_OK;
}

/* ---- kernels ------------------------------------------------------------- */

/* A variable of the script that is "0". */
static bool is_zero(const fr_megatron_flags *flags, const char *name)
{
    const fr_shell_variable *v = fr_shell_find(&flags->shell, name);
    return v != NULL && v->words.n == 1 &&
           strcmp(v->words.items[0].text, "0") == 0;
}

static fr_status read_scales(fr_megatron_flags *flags, fr_config *out,
                             fr_err *err)
{
    const char *recipe;
    out->file.plan.precision = FR_DTYPE_FP8;
    out->file.plan.execution.scaling = FR_SCALING_DELAYED;
    FR_TRY(fr_megatron_read_key(flags, "fp8-recipe", &out->file, err));
    FR_TRY(fr_megatron_word(flags, "fp8-recipe", "", &recipe, err));
    if (strcmp(recipe, "blockwise") == 0)
        fr_buffer_puts(&out->notes, "--fp8-recipe blockwise: predicted as "
                                    "blocks of 32, mxfp8\n");
    return FR_OK;
}

static fr_status read_precision(fr_megatron_flags *flags, fr_config *out,
                                fr_err *err)
{
    fr_plan *plan = &out->file.plan;
    plan->precision =
        is_zero(flags, "NVIDIA_TF32_OVERRIDE") ? FR_DTYPE_F32 : FR_DTYPE_TF32;
    if (fr_megatron_has(flags, "fp16"))
        plan->precision = FR_DTYPE_F16;
    if (fr_megatron_has(flags, "bf16"))
        plan->precision = FR_DTYPE_BF16;
    if (plan->precision == FR_DTYPE_TF32)
        fr_buffer_puts(&out->notes, "neither --bf16 nor --fp16: Transformer "
                                    "Engine multiplies float32 in tf32\n");
    if (fr_megatron_has(flags, "fp8-format"))
        FR_TRY(read_scales(flags, out, err));
    if (fr_megatron_has(flags, "fp4-format"))
        plan->precision = FR_DTYPE_FP4;
    return FR_OK;
}

static fr_status read_attention(fr_megatron_flags *flags, fr_plan *plan,
                                fr_err *err)
{
    const char *backend;
    bool has_flash = !is_zero(flags, "NVTE_FLASH_ATTN");
    bool has_fused = !is_zero(flags, "NVTE_FUSED_ATTN");
    FR_TRY(fr_megatron_word(flags, "attention-backend",
                            has_fused   ? "auto"
                            : has_flash ? "flash"
                                        : "unfused",
                            &backend, err));
    bool is_asked = fr_megatron_has(flags, "use-flash-attn");
    plan->is_flash =
        (strcmp(backend, "unfused") != 0 && strcmp(backend, "local") != 0) ||
        is_asked;
    plan->execution.flash_kind =
        strcmp(backend, "flash") == 0 ? FR_FLASH_2 : FR_FLASH_NATIVE;
    return FR_OK;
}

static fr_status read_graphs(fr_megatron_flags *flags, fr_plan *plan,
                             fr_err *err)
{
    const char *impl, *scope;
    FR_TRY(fr_megatron_word(flags, "cuda-graph-impl", "none", &impl, err));
    FR_TRY(fr_megatron_word(flags, "cuda-graph-scope", "", &scope, err));
    bool is_on = strcmp(impl, "none") != 0;
    is_on = fr_megatron_has(flags, "enable-cuda-graph") || is_on;
    is_on = fr_megatron_has(flags, "external-cuda-graph") || is_on;
    bool is_full = strcmp(impl, "full_iteration") == 0 ||
                   strcmp(scope, "full_iteration") == 0;
    plan->execution.cuda_graphs = !is_on    ? FR_CUDA_GRAPHS_NONE
                                  : is_full ? FR_CUDA_GRAPHS_FULL
                                            : FR_CUDA_GRAPHS_LAYER;
    return FR_OK;
}

static void read_nccl(const fr_megatron_flags *flags, fr_plan *plan)
{
    static const char *const protocols[] = {"LL", "LL128", "Simple"};
    const fr_shell_variable *v = fr_shell_find(&flags->shell, "NCCL_ALGO");
    const char *word =
        v != NULL && v->words.n == 1 ? v->words.items[0].text : "";
    /* An algorithm for all operations, or the first of all-reduce's. */
    static const char of_all_reduce[] = "allreduce:";
    const size_t n_prefix = strlen(of_all_reduce);
    if (strncasecmp(word, of_all_reduce, n_prefix) == 0)
        word += n_prefix;
    const size_t n_word = strcspn(word, ",;");
    if (n_word == 4 && strncasecmp(word, "Ring", n_word) == 0)
        plan->collective = FR_COLLECTIVE_RING;
    else if (n_word == 4 && strncasecmp(word, "Tree", n_word) == 0)
        plan->collective = FR_COLLECTIVE_DOUBLE_TREE;
    else if (n_word == 4 && strncasecmp(word, "NVLS", n_word) == 0)
        plan->collective = FR_COLLECTIVE_NVLS;
    v = fr_shell_find(&flags->shell, "NCCL_COLLNET_ENABLE");
    if (v != NULL && v->words.n == 1 &&
        strcmp(v->words.items[0].text, "1") == 0)
        plan->collective = FR_COLLECTIVE_SHARP;
    v = fr_shell_find(&flags->shell, "NCCL_PROTO");
    word = v != NULL && v->words.n == 1 ? v->words.items[0].text : "";
    int protocol = fr_text_find(word, protocols, FR_LENGTH(protocols));
    if (protocol >= 0)
        plan->protocol = (fr_protocol)(FR_PROTOCOL_LL + protocol);
    v = fr_shell_find(&flags->shell, "NCCL_MAX_CTAS");
    long n = v != NULL && v->words.n == 1
                 ? strtol(v->words.items[0].text, NULL, 10)
                 : 0;
    if (n > 0 && n <= FR_MAX_CHANNELS)
        plan->n_channels = (int32_t)n;
}

fr_status fr_megatron_read_memory(fr_megatron_flags *flags, int version,
                                  fr_config *out, fr_err *err)
{
    fr_plan *plan = &out->file.plan;
    const char *loss;
    FR_TRY(fr_megatron_read_rows(flags, "memory", &out->file, err));
    FR_TRY(read_precision(flags, out, err));
    FR_TRY(read_attention(flags, plan, err));
    FR_TRY(read_sharding(flags, version, &out->file, err));
    FR_TRY(fr_megatron_read_deepspeed(flags, out, err));
    FR_TRY(read_copies(flags, out, err));
    FR_TRY(read_gradients(flags, &out->file, err));
    FR_TRY(read_buckets(flags, plan, err));
    FR_TRY(read_recompute(flags, out, err));
    FR_TRY(read_offload(flags, out, err));
    FR_TRY(read_graphs(flags, plan, err));
    FR_TRY(fr_megatron_word(flags, "cross-entropy-fusion-impl", "native", &loss,
                            err));
    plan->execution.is_loss_fused =
        fr_megatron_has(flags, "cross-entropy-loss-fusion") &&
        strcmp(loss, "te") == 0;
    read_nccl(flags, plan);
    return FR_OK;
}
