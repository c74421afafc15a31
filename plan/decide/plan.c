/* plan.c: a plan's defaults, names, sizes and its one-line description. */
#include "plan/decide/plan.h"

#include "plan/codec/compressor.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const recompute_names[FR_RECOMPUTE_N] = {
    [FR_RECOMPUTE_NONE] = "none",
    [FR_RECOMPUTE_SELECTIVE] = "selective",
    [FR_RECOMPUTE_FULL] = "full",
};

static const char *const order_names[FR_RANK_ORDER_N] = {
    [FR_RANK_ORDER_TP_DP_PP] = "tp-dp-pp",
    [FR_RANK_ORDER_TP_PP_DP] = "tp-pp-dp",
    [FR_RANK_ORDER_DP_TP_PP] = "dp-tp-pp",
    [FR_RANK_ORDER_DP_PP_TP] = "dp-pp-tp",
    [FR_RANK_ORDER_PP_TP_DP] = "pp-tp-dp",
    [FR_RANK_ORDER_PP_DP_TP] = "pp-dp-tp",
};

static const char *const protocol_names[FR_PROTOCOL_N] = {"auto", "ll", "ll128",
                                                          "simple"};
static const char *const server_places[FR_SERVER_N] = {"host", "worker",
                                                       "device"};

static const char *const cp_names[FR_CP_N] = {
    [FR_CP_RING] = "ring",
    [FR_CP_ALL_GATHER] = "all-gather",
    [FR_CP_ALL_TO_ALL] = "all-to-all",
};

static const char *const flash_names[FR_FLASH_N] = {
    [FR_FLASH_NATIVE] = "native",
    [FR_FLASH_2] = "flash-2",
    [FR_FLASH_1] = "flash-1",
};

static const char *const scaling_names[FR_SCALING_N] = {
    [FR_SCALING_DELAYED] = "delayed",
    [FR_SCALING_CURRENT] = "current",
    [FR_SCALING_BLOCK] = "block"};

static const char *const zero_unit_names[FR_ZERO_UNIT_N] = {
    [FR_ZERO_UNIT_LAYER] = "layer",
    [FR_ZERO_UNIT_PARAMETER] = "parameter",
};

static const char *const cuda_graphs_names[FR_CUDA_GRAPHS_N] = {
    [FR_CUDA_GRAPHS_NONE] = "none",
    [FR_CUDA_GRAPHS_LAYER] = "layer",
    [FR_CUDA_GRAPHS_FULL] = "full",
};

static const char *const kernel_set_names[FR_KERNELS_N] = {
    [FR_KERNELS_FUSED] = "fused",
    [FR_KERNELS_COMPILED] = "compiled",
    [FR_KERNELS_EAGER] = "eager",
    [FR_KERNELS_OWN] = "forerun",
};

static const char *const dispatch_names[FR_DISPATCH_N] = {
    [FR_DISPATCH_ALL_TO_ALL] = "all-to-all",
    [FR_DISPATCH_BY_NODE] = "by-node",
};

static const char *name_at(const char *const *names, int n, unsigned i)
{
    return i < (unsigned)n ? names[i] : "unknown";
}

static int find_name(const char *const *names, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return -1;
}

const char *fr_recompute_name(fr_recompute recompute)
{
    return name_at(recompute_names, FR_RECOMPUTE_N, recompute);
}

const char *fr_rank_order_name(fr_rank_order order)
{
    return name_at(order_names, FR_RANK_ORDER_N, order);
}

const char *fr_protocol_name(fr_protocol protocol)
{
    return name_at(protocol_names, FR_PROTOCOL_N, protocol);
}

const char *fr_server_place_name(fr_server_place place)
{
    return name_at(server_places, FR_SERVER_N, place);
}

const char *fr_cp_kind_name(fr_cp_kind kind)
{
    return name_at(cp_names, FR_CP_N, kind);
}

int fr_cp_kind_find(const char *name)
{
    return find_name(cp_names, FR_CP_N, name);
}

const char *fr_flash_kind_name(fr_flash_kind kind)
{
    return name_at(flash_names, FR_FLASH_N, kind);
}

const char *fr_zero_unit_name(fr_zero_unit unit)
{
    return name_at(zero_unit_names, FR_ZERO_UNIT_N, unit);
}

const char *fr_cuda_graphs_name(fr_cuda_graphs graphs)
{
    return name_at(cuda_graphs_names, FR_CUDA_GRAPHS_N, graphs);
}

const char *fr_kernel_set_name(fr_kernel_set kernels)
{
    return name_at(kernel_set_names, FR_KERNELS_N, kernels);
}

int fr_flash_kind_find(const char *name)
{
    return find_name(flash_names, FR_FLASH_N, name);
}

const char *fr_scaling_name(fr_scaling scaling)
{
    return name_at(scaling_names, FR_SCALING_N, scaling);
}

int fr_scaling_find(const char *name)
{
    return find_name(scaling_names, FR_SCALING_N, name);
}

int fr_zero_unit_find(const char *name)
{
    return find_name(zero_unit_names, FR_ZERO_UNIT_N, name);
}

int fr_cuda_graphs_find(const char *name)
{
    return find_name(cuda_graphs_names, FR_CUDA_GRAPHS_N, name);
}

int fr_kernel_set_find(const char *name)
{
    return find_name(kernel_set_names, FR_KERNELS_N, name);
}

const char *fr_dispatch_kind_name(fr_dispatch_kind kind)
{
    return name_at(dispatch_names, FR_DISPATCH_N, kind);
}

int fr_dispatch_kind_find(const char *name)
{
    return find_name(dispatch_names, FR_DISPATCH_N, name);
}

int fr_recompute_find(const char *name)
{
    return find_name(recompute_names, FR_RECOMPUTE_N, name);
}

int fr_rank_order_find(const char *name)
{
    return find_name(order_names, FR_RANK_ORDER_N, name);
}

int fr_protocol_find(const char *name)
{
    return find_name(protocol_names, FR_PROTOCOL_N, name);
}

int fr_server_place_find(const char *name)
{
    return find_name(server_places, FR_SERVER_N, name);
}

void fr_plan_init(fr_plan *plan)
{
    memset(plan, 0, sizeof *plan);
    plan->tp = plan->pp = plan->dp = plan->cp = plan->ep = 1;
    plan->vpp = 1;
    plan->micro_batch = 1;
    plan->schedule = FR_SCHEDULE_1F1B;
    plan->recompute = FR_RECOMPUTE_NONE;
    plan->recompute_parts = FR_RECOMPUTE_PART_ATTENTION;
    plan->is_resharded = true;
    plan->n_prefetch = 1;
    plan->expert_imbalance = 1.0;
    plan->is_overlap = true;
    plan->is_gather_overlap = true;
    plan->bucket_bytes = 25000000; /* PyTorch DDP's 25 MB */
    plan->compressor_rank = 4;
    plan->compressor_density = 0.01;
    plan->has_error_feedback = true;
    plan->collective = FR_COLLECTIVE_AUTO;
    plan->precision = FR_DTYPE_F32;
    plan->grad_dtype = FR_DTYPE_F32;
    plan->n_threads = 1;
}

int64_t fr_plan_world(const fr_plan *plan)
{
    return (int64_t)plan->tp * plan->pp * plan->dp * plan->cp;
}

fr_dtype fr_plan_storage_dtype(const fr_plan *plan)
{
    switch (plan->precision) {
    case FR_DTYPE_F16:
        return FR_DTYPE_F16;
    case FR_DTYPE_BF16:
    case FR_DTYPE_FP8:
    case FR_DTYPE_FP4:
        return FR_DTYPE_BF16;
    default:
        return FR_DTYPE_F32;
    }
}

bool fr_plan_has_master(const fr_plan *plan)
{
    return fr_plan_storage_dtype(plan) != FR_DTYPE_F32;
}

int64_t fr_plan_micro_batches(const fr_plan *plan, const fr_job *job)
{
    int64_t per_round = plan->micro_batch * plan->dp;
    if (per_round < 1 || job->global_batch % per_round != 0)
        return 0;
    return job->global_batch / per_round;
}

int32_t fr_plan_stage_layers(const fr_plan *plan, const fr_model *model,
                             int32_t i_stage)
{
    if (plan->n_split > 0)
        return plan->layer_split[i_stage];
    int64_t n_stages = (int64_t)plan->pp * plan->vpp;
    int64_t rest = model->n_layers % n_stages;
    return (int32_t)(model->n_layers / n_stages + (i_stage < rest));
}

/* A buffer that is appended to and cut where it ends. */
typedef struct text {
    char *buf;
    size_t n, used;
} text;

static void add(text *t, const char *format, ...) FR_PRINTF(2, 3);

static void add(text *t, const char *format, ...)
{
    if (t->used >= t->n)
        return;
    va_list args;
    va_start(args, format);
    int n = vsnprintf(t->buf + t->used, t->n - t->used, format, args);
    va_end(args);
    if (n > 0)
        t->used += (size_t)n;
}

/* The shortest digits that read back as the same number. */
static void add_double(text *t, const char *key, double value)
{
    char digits[40];
    for (int precision = 1; precision <= 17; precision++) {
        snprintf(digits, sizeof digits, "%.*g", precision, value);
        if (strtod(digits, NULL) == value)
            break;
    }
    add(t, " %s%s", key, digits);
}

static void add_compressor(text *t, const fr_plan *plan)
{
    if (plan->compressor == FR_COMPRESSOR_NONE)
        return;
    add(t, " %s", fr_compressor_kind_name(plan->compressor));
    if ((unsigned)plan->compressor >= (unsigned)fr_n_compressors)
        return;
    const fr_compressor *compressor = fr_compressors[plan->compressor];
    if (compressor->number == FR_COMPRESSOR_BY_RANK)
        add(t, "-r%lld", (long long)plan->compressor_rank);
    if (compressor->number == FR_COMPRESSOR_BY_DENSITY)
        add_double(t, "density", plan->compressor_density);
    if (compressor->wants_error_feedback && !plan->has_error_feedback)
        add(t, " no-ef");
}

/* What differs from the defaults of fr_plan_init() only. */
static void add_rest(text *t, const fr_plan *plan)
{
    fr_plan plain;
    fr_plan_init(&plain);
    if (plan->is_overlap != plain.is_overlap)
        add(t, " no-overlap");
    if (plan->bucket_bytes != plain.bucket_bytes)
        add(t, " bucket%llu", (unsigned long long)plan->bucket_bytes);
    if (plan->collective != plain.collective)
        add(t, " %s", fr_collective_kind_name(plan->collective));
    if (plan->protocol != plain.protocol)
        add(t, " %s", fr_protocol_name(plan->protocol));
    if (plan->n_channels != plain.n_channels)
        add(t, " channels%d", plan->n_channels);
    if (plan->server_place != plain.server_place)
        add(t, " at-%s", fr_server_place_name(plan->server_place));
    if (plan->n_servers != plain.n_servers)
        add(t, " servers%d", plan->n_servers);
    if (plan->rank_order != plain.rank_order)
        add(t, " %s", fr_rank_order_name(plan->rank_order));
    if (plan->precision != plain.precision)
        add(t, " %s", fr_dtype_name(plan->precision));
    if (plan->scaling != plain.scaling)
        add(t, " %s-scaling", fr_scaling_name(plan->scaling));
    if (plan->grad_dtype != plain.grad_dtype)
        add(t, " grad-%s", fr_dtype_name(plan->grad_dtype));
    if (plan->is_flash)
        add(t, " flash");
    if (plan->is_flash && plan->flash_kind != plain.flash_kind)
        add(t, "%s", plan->flash_kind == FR_FLASH_2 ? "2" : "1");
    if (plan->kernels != plain.kernels)
        add(t, " %s", fr_kernel_set_name(plan->kernels));
    if (plan->cuda_graphs != plain.cuda_graphs)
        add(t, " graphs-%s", fr_cuda_graphs_name(plan->cuda_graphs));
    if (plan->is_loss_fused)
        add(t, " fused-loss");
    if (plan->n_loss_metrics > 0)
        add(t, " metrics%d", plan->n_loss_metrics);
    if (plan->is_grad_added_apart)
        add(t, " grad-adds");
    if (plan->zero_group != plain.zero_group)
        add(t, " zg%d", plan->zero_group);
    if (plan->zero_stage == 3 && !plan->is_resharded)
        add(t, " no-reshard");
    if (plan->n_prefetch != plain.n_prefetch)
        add(t, " prefetch%d", plan->n_prefetch);
    if (plan->zero_unit != plain.zero_unit)
        add(t, " by-%s", fr_zero_unit_name(plan->zero_unit));
    if (plan->is_gather_overlap != plain.is_gather_overlap)
        add(t, " no-gather-overlap");
    if (plan->is_tp_overlap)
        add(t, " tp-overlap");
    if (plan->is_ep_overlap)
        add(t, " ep-overlap");
    if (plan->cp_kind != plain.cp_kind)
        add(t, " cp-%s", fr_cp_kind_name(plan->cp_kind));
    if (plan->expert_dispatch != plain.expert_dispatch)
        add(t, " %s", fr_dispatch_kind_name(plan->expert_dispatch));
    if (plan->etp != plain.etp)
        add(t, " etp%d", plan->etp);
    if (plan->expert_imbalance != plain.expert_imbalance)
        add_double(t, "imbalance", plan->expert_imbalance);
    if (plan->is_optimizer_offloaded)
        add(t, " offload-optimizer");
    if (plan->activation_offload_frac > 0)
        add_double(t, "offload-activations", plan->activation_offload_frac);
    if (plan->n_threads != plain.n_threads)
        add(t, " th%d", plan->n_threads);
    for (int32_t i = 0; i < plan->n_split; i++)
        add(t, "%s%d", i == 0 ? " split" : "-", plan->layer_split[i]);
}

char *fr_plan_describe(const fr_plan *plan, char *buf, size_t n_buf)
{
    text t = {.buf = buf, .n = n_buf};
    if (n_buf > 0)
        buf[0] = '\0';
    add(&t, "dp%d tp%d pp%d", plan->dp, plan->tp, plan->pp);
    if (plan->cp != 1)
        add(&t, " cp%d", plan->cp);
    if (plan->ep != 1)
        add(&t, " ep%d", plan->ep);
    add(&t, " mb%lld", (long long)plan->micro_batch);
    add(&t, " %s", fr_schedule_kind_name(plan->schedule));
    if (plan->vpp != 1)
        add(&t, " vpp%d", plan->vpp);
    if (plan->zero_stage != 0)
        add(&t, " zero%d", plan->zero_stage);
    if (plan->is_sequence_parallel)
        add(&t, " sp");
    if (plan->recompute != FR_RECOMPUTE_NONE)
        add(&t, " rc-%s", fr_recompute_name(plan->recompute));
    if (plan->recompute == FR_RECOMPUTE_SELECTIVE &&
        plan->recompute_parts != FR_RECOMPUTE_PART_ATTENTION)
        add(&t, "-%x", (unsigned)plan->recompute_parts);
    if (plan->recompute == FR_RECOMPUTE_FULL && plan->recompute_layers > 0)
        add(&t, "-%d", plan->recompute_layers);
    add_compressor(&t, plan);
    add_rest(&t, plan);
    return buf;
}
