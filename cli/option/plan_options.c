/* plan_options.c: option values -> fields, by a table where they are plain. */
#include "cli/option/plan_options.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/text.h"
#include "core/base/units.h"
#include "plan/codec/compressor.h"
#include "plan/schedule/schedule.h"

/* Plain integer fields of fr_plan. */
static const struct {
    fr_option option;
    fr_pin pin;
    size_t offset;
} int_fields[] = {
    {FR_OPT_DP, FR_PIN_DP, offsetof(fr_plan, dp)},
    {FR_OPT_TP, FR_PIN_TP, offsetof(fr_plan, tp)},
    {FR_OPT_PP, FR_PIN_PP, offsetof(fr_plan, pp)},
    {FR_OPT_CP, FR_PIN_CP, offsetof(fr_plan, cp)},
    {FR_OPT_EP, FR_PIN_EP, offsetof(fr_plan, ep)},
    {FR_OPT_VPP, FR_PIN_VPP, offsetof(fr_plan, vpp)},
    {FR_OPT_ZERO, FR_PIN_ZERO, offsetof(fr_plan, zero_stage)},
    {FR_OPT_ZERO_GROUP, FR_PIN_ZERO_GROUP, offsetof(fr_plan, zero_group)},
    {FR_OPT_ZERO_PREFETCH, (fr_pin)0, offsetof(fr_plan, n_prefetch)},
    {FR_OPT_RECOMPUTE_LAYERS, FR_PIN_RECOMPUTE_LAYERS,
     offsetof(fr_plan, recompute_layers)},
    {FR_OPT_ETP, FR_PIN_ETP, offsetof(fr_plan, etp)},
    {FR_OPT_NCCL_CHANNELS, (fr_pin)0, offsetof(fr_plan, n_channels)},
    {FR_OPT_SERVERS, (fr_pin)0, offsetof(fr_plan, n_servers)},
    {FR_OPT_THREADS, FR_PIN_THREADS, offsetof(fr_plan, n_threads)},
};

/* Plain switches of fr_plan. */
static const struct {
    fr_option option;
    fr_pin pin;
    size_t offset;
} bool_fields[] = {
    {FR_OPT_SEQUENCE_PARALLEL, FR_PIN_SEQUENCE_PARALLEL,
     offsetof(fr_plan, is_sequence_parallel)},
    {FR_OPT_OVERLAP, FR_PIN_OVERLAP, offsetof(fr_plan, is_overlap)},
    {FR_OPT_ERROR_FEEDBACK, (fr_pin)0, offsetof(fr_plan, has_error_feedback)},
    {FR_OPT_FLASH_ATTENTION, (fr_pin)0, offsetof(fr_plan, is_flash)},
    {FR_OPT_ZERO_RESHARD, FR_PIN_RESHARD, offsetof(fr_plan, is_resharded)},
    {FR_OPT_GATHER_OVERLAP, FR_PIN_GATHER,
     offsetof(fr_plan, is_gather_overlap)},
    {FR_OPT_TP_OVERLAP, FR_PIN_TP_OVERLAP, offsetof(fr_plan, is_tp_overlap)},
    {FR_OPT_EP_OVERLAP, FR_PIN_EP_OVERLAP, offsetof(fr_plan, is_ep_overlap)},
    {FR_OPT_OFFLOAD_OPTIMIZER, FR_PIN_OFFLOAD,
     offsetof(fr_plan, is_optimizer_offloaded)},
};

static bool take(const fr_cli *cli, fr_option option, fr_pin pin,
                 unsigned *pins)
{
    if (!fr_cli_has(cli, option))
        return false;
    *pins |= (unsigned)pin;
    return true;
}

/* Names of the compressors, or how those that go by a number are written. */
static void list_compressors(bool is_by_number, const char *between, char *buf,
                             size_t n_buf)
{
    static const char *const numbers[] = {
        [FR_COMPRESSOR_BY_NOTHING] = "",
        [FR_COMPRESSOR_BY_RANK] = ":RANK",
        [FR_COMPRESSOR_BY_DENSITY] = ":DENSITY",
    };
    size_t used = 0;
    buf[0] = '\0';
    for (int i = 0; i < fr_n_compressors && used < n_buf; i++) {
        const fr_compressor *at = fr_compressors[i];
        if (is_by_number && at->number == FR_COMPRESSOR_BY_NOTHING)
            continue;
        int n = snprintf(buf + used, n_buf - used, "%s%s%s",
                         used > 0 ? between : "", at->name,
                         is_by_number ? numbers[at->number] : "");
        used += n > 0 ? (size_t)n : 0;
    }
}

/* "topk:0.01", "powersgd:4", "bf16" */
static fr_status apply_compress(const char *text, fr_plan *plan, fr_err *err)
{
    char name[32], number[32] = "", names[256];
    const char *colon = strchr(text, ':');
    size_t n_name = colon != NULL ? (size_t)(colon - text) : strlen(text);
    if (n_name >= sizeof name)
        n_name = sizeof name - 1;
    memcpy(name, text, n_name);
    name[n_name] = '\0';
    int kind = fr_compressor_kind_find(name);
    if (kind < 0) {
        list_compressors(false, ", ", names, sizeof names);
        return fr_fail(err, FR_USAGE, "--compress '%.80s' is not one of %s",
                       name, names);
    }
    plan->compressor = (fr_compressor_kind)kind;
    if (colon == NULL)
        return FR_OK;
    fr_text_copy_cut(number, sizeof number, colon + 1);
    if (fr_compressor_set_number(number, plan))
        return FR_OK;
    list_compressors(true, " and ", names, sizeof names);
    return fr_fail(err, FR_USAGE, "--compress '%.80s': only %s take a number",
                   text, names);
}

/* "attention,norm" */
static fr_status apply_parts(const char *text, fr_plan *plan, fr_err *err)
{
    static const char *const names[] = {"attention", "norm",    "activation",
                                        "mlp",       "experts", "products",
                                        "latent"};
    const size_t n_names = sizeof names / sizeof names[0];
    uint32_t parts = 0;
    for (const char *at = text;; at++) {
        size_t n = strcspn(at, ","), i = 0;
        while (i < n_names &&
               (strlen(names[i]) != n || memcmp(names[i], at, n) != 0))
            i++;
        if (i == n_names)
            return fr_fail(
                err, FR_USAGE,
                "--recompute-parts '%.80s': choose from attention, "
                "norm, activation, mlp, experts, products, latent, with "
                "commas",
                text);
        parts |= 1U << i;
        at += n;
        if (*at == '\0')
            break;
    }
    plan->recompute_parts = parts;
    return FR_OK;
}

bool fr_cli_is_split_auto(const fr_cli *cli)
{
    const char *text = fr_cli_text(cli, FR_OPT_LAYER_SPLIT);
    return text != NULL && strcmp(text, "auto") == 0;
}

/* "auto", "even", "3,3,2".  What auto is needs costs: it is decided later. */
static fr_status apply_split(const fr_cli *cli, fr_plan *plan, unsigned *pins,
                             fr_err *err)
{
    int32_t n = 0;
    const char *text = fr_cli_text(cli, FR_OPT_LAYER_SPLIT);
    if (fr_cli_is_split_auto(cli)) {
        if (fr_cli_on(cli, FR_OPT_FIXED))
            return fr_fail(err, FR_USAGE,
                           "--layer-split auto with --fixed: leave out --fixed "
                           "(then each plan has the split that suits it), or "
                           "give the layers of each stage");
        *pins &= ~(unsigned)FR_PIN_SPLIT;
    }
    if (fr_cli_is_split_auto(cli) || strcmp(text, "even") == 0) {
        plan->n_split = 0;
        return FR_OK;
    }
    for (const char *at = text;; at++) {
        char *end;
        long layers = strtol(at, &end, 10);
        if (end == at || layers < 0 || layers > INT32_MAX ||
            (*end != ',' && *end != '\0') || n == FR_PLAN_MAX_STAGES)
            return fr_fail(err, FR_USAGE,
                           "--layer-split '%.80s': auto, even, or the layers "
                           "of each stage, such as 3,3,2",
                           text);
        plan->layer_split[n++] = (int32_t)layers;
        at = end;
        if (*at == '\0')
            break;
    }
    plan->n_split = n;
    return FR_OK;
}

static void apply_names(const fr_cli *cli, fr_plan *plan, unsigned *pins)
{
    const fr_option_value *v = cli->option;
    if (take(cli, FR_OPT_SCHEDULE, FR_PIN_SCHEDULE, pins))
        plan->schedule = (fr_schedule_kind)v[FR_OPT_SCHEDULE].count;
    else if (plan->vpp > 1)
        plan->schedule = fr_schedule_usual(plan->vpp);
    if (take(cli, FR_OPT_RECOMPUTE, FR_PIN_RECOMPUTE, pins))
        plan->recompute = (fr_recompute)v[FR_OPT_RECOMPUTE].count;
    if (take(cli, FR_OPT_RANK_ORDER, FR_PIN_RANK_ORDER, pins))
        plan->rank_order = (fr_rank_order)v[FR_OPT_RANK_ORDER].count;
    if (take(cli, FR_OPT_PRECISION, FR_PIN_PRECISION, pins))
        plan->precision = (fr_dtype)v[FR_OPT_PRECISION].count;
    if (fr_cli_has(cli, FR_OPT_COLLECTIVE))
        plan->collective = (fr_collective_kind)v[FR_OPT_COLLECTIVE].count;
    if (fr_cli_has(cli, FR_OPT_NCCL_PROTOCOL))
        plan->protocol = (fr_protocol)v[FR_OPT_NCCL_PROTOCOL].count;
    if (fr_cli_has(cli, FR_OPT_SERVER_PLACE))
        plan->server_place = (fr_server_place)v[FR_OPT_SERVER_PLACE].count;
    if (fr_cli_has(cli, FR_OPT_GRAD_DTYPE))
        plan->grad_dtype = (fr_dtype)v[FR_OPT_GRAD_DTYPE].count;
    if (fr_cli_has(cli, FR_OPT_FLASH_KIND))
        plan->flash_kind = (fr_flash_kind)v[FR_OPT_FLASH_KIND].count;
    if (fr_cli_has(cli, FR_OPT_KERNELS))
        plan->kernels = (fr_kernel_set)v[FR_OPT_KERNELS].count;
    if (fr_cli_has(cli, FR_OPT_SCALING))
        plan->scaling = (fr_scaling)v[FR_OPT_SCALING].count;
    if (fr_cli_has(cli, FR_OPT_ZERO_UNIT))
        plan->zero_unit = (fr_zero_unit)v[FR_OPT_ZERO_UNIT].count;
    if (fr_cli_has(cli, FR_OPT_CUDA_GRAPHS))
        plan->cuda_graphs = (fr_cuda_graphs)v[FR_OPT_CUDA_GRAPHS].count;
    if (take(cli, FR_OPT_CP_KIND, FR_PIN_CP_KIND, pins))
        plan->cp_kind = (fr_cp_kind)v[FR_OPT_CP_KIND].count;
    if (fr_cli_has(cli, FR_OPT_EXPERT_DISPATCH))
        plan->expert_dispatch =
            (fr_dispatch_kind)v[FR_OPT_EXPERT_DISPATCH].count;
    if (fr_cli_has(cli, FR_OPT_EXPERT_IMBALANCE))
        plan->expert_imbalance = v[FR_OPT_EXPERT_IMBALANCE].real;
    if (fr_cli_has(cli, FR_OPT_OFFLOAD_ACTIVATIONS))
        plan->activation_offload_frac = v[FR_OPT_OFFLOAD_ACTIVATIONS].real;
    if (take(cli, FR_OPT_BUCKET, FR_PIN_BUCKET, pins))
        plan->bucket_bytes = v[FR_OPT_BUCKET].n_bytes;
    if (take(cli, FR_OPT_MICRO_BATCH, FR_PIN_MICRO_BATCH, pins))
        plan->micro_batch = v[FR_OPT_MICRO_BATCH].count;
}

fr_status fr_cli_apply_plan(const fr_cli *cli, fr_plan *plan, unsigned *pins,
                            fr_err *err)
{
    fr_plan changed = *plan;
    unsigned given = 0;
    for (size_t i = 0; i < sizeof int_fields / sizeof int_fields[0]; i++) {
        if (!take(cli, int_fields[i].option, int_fields[i].pin, &given))
            continue;
        int32_t value = (int32_t)cli->option[int_fields[i].option].count;
        memcpy((char *)&changed + int_fields[i].offset, &value, sizeof value);
    }
    for (size_t i = 0; i < sizeof bool_fields / sizeof bool_fields[0]; i++) {
        if (!take(cli, bool_fields[i].option, bool_fields[i].pin, &given))
            continue;
        bool value = cli->option[bool_fields[i].option].is_on;
        memcpy((char *)&changed + bool_fields[i].offset, &value, sizeof value);
    }
    apply_names(cli, &changed, &given);
    if (fr_cli_has(cli, FR_OPT_RECOMPUTE_PARTS))
        FR_TRY(apply_parts(fr_cli_text(cli, FR_OPT_RECOMPUTE_PARTS), &changed,
                           err));
    if (take(cli, FR_OPT_COMPRESS, FR_PIN_COMPRESSOR, &given))
        FR_TRY(
            apply_compress(fr_cli_text(cli, FR_OPT_COMPRESS), &changed, err));
    if (take(cli, FR_OPT_LAYER_SPLIT, FR_PIN_SPLIT, &given))
        FR_TRY(apply_split(cli, &changed, &given, err));
    *plan = changed;
    if (pins != NULL)
        *pins = given;
    return FR_OK;
}

/* Options whose lists are ranges of an axis. */
static const struct {
    fr_option option;
    fr_plan_space_axis axis;
} list_axes[] = {
    {FR_OPT_RANKS, FR_SPACE_AXIS_WORLD},
    {FR_OPT_CP, FR_SPACE_AXIS_CP},
    {FR_OPT_TP, FR_SPACE_AXIS_TP},
    {FR_OPT_PP, FR_SPACE_AXIS_PP},
    {FR_OPT_EP, FR_SPACE_AXIS_EP},
    {FR_OPT_ETP, FR_SPACE_AXIS_ETP},
    {FR_OPT_RANK_ORDER, FR_SPACE_AXIS_RANK_ORDER},
    {FR_OPT_MICRO_BATCH, FR_SPACE_AXIS_MICRO_BATCH},
    {FR_OPT_CP_KIND, FR_SPACE_AXIS_CP_KIND},
    {FR_OPT_RECOMPUTE, FR_SPACE_AXIS_RECOMPUTE},
    {FR_OPT_PRECISION, FR_SPACE_AXIS_PRECISION},
    {FR_OPT_VPP, FR_SPACE_AXIS_VPP},
    {FR_OPT_SCHEDULE, FR_SPACE_AXIS_SCHEDULE},
    {FR_OPT_RECOMPUTE_LAYERS, FR_SPACE_AXIS_RECOMPUTE_LAYERS},
    {FR_OPT_ZERO, FR_SPACE_AXIS_ZERO},
    {FR_OPT_ZERO_GROUP, FR_SPACE_AXIS_ZERO_GROUP},
    {FR_OPT_BUCKET, FR_SPACE_AXIS_BUCKET},
};

fr_status fr_cli_apply_ranges(const fr_cli *cli,
                              fr_axis_range out[FR_SPACE_AXIS_N], fr_err *err)
{
    memset(out, 0, FR_SPACE_AXIS_N * sizeof *out);
    for (int o = 0; o < FR_OPT_N; o++) {
        const fr_option_value *v = &cli->option[o];
        size_t i = 0;
        if (v->n_list == 0)
            continue;
        while (i < sizeof list_axes / sizeof list_axes[0] &&
               (int)list_axes[i].option != o)
            i++;
        if (i == sizeof list_axes / sizeof list_axes[0])
            return fr_fail(err, FR_USAGE,
                           "--%s '%.80s': this option takes one value",
                           fr_options[o].name, v->text);
        out[list_axes[i].axis].n = v->n_list;
        memcpy(out[list_axes[i].axis].at, v->list, sizeof v->list);
    }
    return FR_OK;
}

fr_status fr_cli_apply_job(const fr_cli *cli, fr_job *job, fr_err *err)
{
    const fr_option_value *v = cli->option;
    fr_job changed = *job;
    if (fr_cli_has(cli, FR_OPT_GLOBAL_BATCH))
        changed.global_batch = v[FR_OPT_GLOBAL_BATCH].count;
    if (fr_cli_has(cli, FR_OPT_SEQ))
        changed.seq = v[FR_OPT_SEQ].count;
    if (fr_cli_has(cli, FR_OPT_STEPS))
        changed.n_steps = v[FR_OPT_STEPS].count;
    if (fr_cli_has(cli, FR_OPT_SEED))
        changed.seed = (uint64_t)v[FR_OPT_SEED].count;
    if (fr_cli_has(cli, FR_OPT_OPTIMIZER))
        changed.optimizer = (fr_optimizer_kind)v[FR_OPT_OPTIMIZER].count;
    if (fr_cli_has(cli, FR_OPT_LR))
        changed.lr = v[FR_OPT_LR].real;
    if (fr_cli_has(cli, FR_OPT_LR_SCHEDULE))
        changed.lr_schedule = (fr_lr_schedule)v[FR_OPT_LR_SCHEDULE].count;
    if (fr_cli_has(cli, FR_OPT_LR_RULE))
        changed.lr_rule = (fr_lr_rule)v[FR_OPT_LR_RULE].count;
    if (fr_cli_has(cli, FR_OPT_LR_BASE_BATCH))
        changed.lr_base_batch = v[FR_OPT_LR_BASE_BATCH].count;
    if (fr_cli_has(cli, FR_OPT_WARMUP))
        changed.warmup_steps = v[FR_OPT_WARMUP].count;
    if (fr_cli_has(cli, FR_OPT_DROPOUT))
        changed.dropout = v[FR_OPT_DROPOUT].real;
    if (fr_cli_has(cli, FR_OPT_CLIP))
        changed.clip_norm = v[FR_OPT_CLIP].real;
    if (fr_cli_has(cli, FR_OPT_WEIGHT_DECAY))
        changed.weight_decay = v[FR_OPT_WEIGHT_DECAY].real;
    const char *data = fr_cli_text(cli, FR_OPT_DATA);
    if (data != NULL && !fr_text_copy(changed.data, sizeof changed.data, data))
        return fr_fail(err, FR_USAGE, "--data: the path is too long");
    *job = changed;
    return FR_OK;
}

fr_status fr_cli_make_job(const fr_cli *cli, const fr_model *model, fr_job *out,
                          fr_err *err)
{
    fr_job job;
    fr_job_init(&job);
    if (model->max_seq > 0 && job.seq > model->max_seq)
        job.seq = model->max_seq;
    FR_TRY(fr_cli_apply_job(cli, &job, err));
    *out = job;
    return FR_OK;
}

int32_t fr_cli_default_threads(const fr_cluster *cluster, int64_t n_ranks)
{
    const fr_device_type *device = fr_cluster_device(cluster, 0);
    if (device->kind != FR_DEVICE_CPU || n_ranks < 1)
        return 1;
    int64_t n_nodes = fr_cluster_n_nodes(cluster);
    int64_t n_per_node = (n_ranks + n_nodes - 1) / n_nodes;
    int64_t n_threads = device->n_cores / n_per_node;
    return n_threads > 1 ? (int32_t)n_threads : 1;
}
