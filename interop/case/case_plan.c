/*
 * case_plan.c: the plan and the batch of a row.
 */
#include "frameworks/framework_plan.h"
#include "interop/case/case_internal.h"
#include "interop/case/case_text.h"
#include "plan/schedule/schedule.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* A degree in [1, 2^20]; empty: 1. */
static fr_status read_degree(const fr_case *row, fr_case_column column,
                             int32_t *out, fr_err *err)
{
    int64_t value = *out;
    FR_TRY(fr_case_count(row, column, 1, &value, err));
    if (value > 1 << 20)
        return fr_fail(err, FR_INPUT, "%s:%d: %s %lld is too large", row->file,
                       row->line, fr_case_column_name(column),
                       (long long)value);
    *out = (int32_t)value;
    return FR_OK;
}

/* dp from the GPUs or the GPUs from dp; both must agree. */
static fr_status read_degrees(const fr_case *row, fr_case_setup *setup,
                              fr_err *err)
{
    fr_plan *plan = &setup->plan;
    int64_t n_gpus = 0, per_node = 8;
    plan->dp = 0;
    FR_TRY(read_degree(row, FR_CASE_TP, &plan->tp, err));
    FR_TRY(read_degree(row, FR_CASE_PP, &plan->pp, err));
    FR_TRY(read_degree(row, FR_CASE_CP, &plan->cp, err));
    FR_TRY(read_degree(row, FR_CASE_EP, &plan->ep, err));
    FR_TRY(read_degree(row, FR_CASE_VPP, &plan->vpp, err));
    FR_TRY(read_degree(row, FR_CASE_ETP, &plan->etp, err));
    FR_TRY(read_degree(row, FR_CASE_DP, &plan->dp, err));
    FR_TRY(fr_case_count(row, FR_CASE_NUM_GPUS, 1, &n_gpus, err));
    FR_TRY(fr_case_count(row, FR_CASE_GPUS_PER_NODE, 1, &per_node, err));
    double world = (double)plan->tp * plan->pp * plan->cp;
    world *= plan->dp > 0 ? plan->dp : 1;
    if (world > INT32_MAX || n_gpus > INT32_MAX || per_node > 4096)
        return fr_fail(err, FR_INPUT,
                       "%s:%d: more than %d ranks, or more than 4096 GPUs in a "
                       "node",
                       row->file, row->line, INT32_MAX);
    int64_t n_model = (int64_t)plan->tp * plan->pp * plan->cp;
    if (n_gpus == 0 && plan->dp == 0) {
        /* One node, or as many replicas as the experts are spread over. */
        int64_t dp = per_node / n_model;
        dp = dp < 1 ? 1 : dp;
        dp = (dp + plan->ep - 1) / plan->ep * plan->ep;
        plan->dp = (int32_t)dp;
        fr_case_guess(setup, FR_CASE_DP);
    } else if (plan->dp == 0) {
        plan->dp = (int32_t)(n_gpus / n_model);
    }
    if (n_gpus > 0 && plan->dp * n_model != n_gpus)
        return fr_fail(err, FR_INPUT,
                       "%s:%d: dp %d x tp %d x pp %d x cp %d are not num_gpus "
                       "%lld",
                       row->file, row->line, plan->dp, plan->tp, plan->pp,
                       plan->cp, (long long)n_gpus);
    return FR_OK;
}

/* "512", or a ramp-up such as "0:384 200B:768": its first batch. */
static fr_status read_global_batch(const fr_case *row, fr_case_setup *setup,
                                   fr_err *err)
{
    const char *text = row->field[FR_CASE_GBS];
    const char *colon = strchr(text, ':');
    setup->job.global_batch = 0;
    if (colon == NULL)
        return fr_case_count(row, FR_CASE_GBS, 1, &setup->job.global_batch,
                             err);
    if (!isdigit((unsigned char)colon[1]))
        return fr_fail(err, FR_INPUT, "%s:%d: gbs '%.60s' is not understood",
                       row->file, row->line, text);
    long first = strtol(colon + 1, NULL, 10);
    setup->job.global_batch = first < 1 ? 1 : first;
    fr_case_guess(setup, FR_CASE_GBS);
    return FR_OK;
}

static fr_status read_batch(const fr_case *row, const fr_framework *how,
                            fr_case_setup *setup, fr_err *err)
{
    fr_plan *plan = &setup->plan;
    int64_t mbs = 0, n_accum = 0;
    FR_TRY(read_global_batch(row, setup, err));
    FR_TRY(fr_case_count(row, FR_CASE_MBS, 1, &mbs, err));
    FR_TRY(fr_case_count(row, FR_CASE_GRAD_ACCUM, 1, &n_accum, err));
    int64_t gbs = setup->job.global_batch;
    if (mbs > 1 << 20 || n_accum > 1 << 20 || gbs > 1 << 30)
        return fr_fail(err, FR_INPUT,
                       "%s:%d: mbs, grad_accum or gbs is too large", row->file,
                       row->line);
    double given = (double)mbs * (double)n_accum * plan->dp;
    if (gbs == 0 && given > 1 << 30)
        return fr_fail(err, FR_INPUT,
                       "%s:%d: a global batch of %.3g is too "
                       "large",
                       row->file, row->line, given);
    if (mbs == 0 && gbs > 0 && n_accum > 0)
        mbs = gbs / (plan->dp * n_accum);
    if (mbs == 0) {
        mbs = 1;
        fr_case_guess(setup, FR_CASE_MBS);
    }
    if (how->facts->is_mbs_local && plan->pp > 1 && n_accum <= 1) {
        /* As many micro-batches as the pipeline has ranks. */
        mbs = mbs % plan->pp == 0 ? mbs / plan->pp : 1;
        fr_case_guess(setup, FR_CASE_MBS);
        if (gbs == 0)
            gbs = mbs * plan->pp * plan->dp;
    }
    if (gbs == 0) {
        gbs = mbs * plan->dp * (n_accum > 0 ? n_accum : 1);
        if (n_accum == 0)
            fr_case_guess(setup, FR_CASE_GBS);
    }
    plan->micro_batch = mbs;
    setup->job.global_batch = gbs;
    return FR_OK;
}

/*
 * Layers that do not divide by the stages: embedding and loss stand for a
 * layer each where that makes them even (Megatron's
 * --account-for-embedding-in-pipeline-split and -loss-), else only the loss.
 * At one layer a stage the first and the last hold nothing else.
 */
static void split_layers(const fr_case_setup *setup, fr_plan *plan)
{
    int64_t n_layers = setup->model.n_layers;
    int64_t n_stages = (int64_t)plan->pp * plan->vpp;
    if (n_stages < 2 || n_stages > FR_PLAN_MAX_STAGES ||
        n_layers % n_stages == 0)
        return;
    int64_t n_extra = (n_layers + 2) % n_stages == 0   ? 2
                      : (n_layers + 1) % n_stages == 0 ? 1
                                                       : 0;
    int64_t each = (n_layers + n_extra) / n_stages;
    if (n_extra == 0)
        return;
    plan->n_split = (int32_t)n_stages;
    for (int32_t i = 0; i < plan->n_split; i++)
        plan->layer_split[i] = (int32_t)each;
    plan->layer_split[n_stages - 1]--;
    if (n_extra == 2)
        plan->layer_split[0]--;
}

/* "layer_split=4,4,2": layers of each stage, in the model's order. */
static fr_status read_split(const fr_case *row, fr_case_setup *setup,
                            fr_err *err)
{
    static const char name[] = "layer_split=";
    fr_plan *plan = &setup->plan;
    const char *at = strcasestr(row->field[FR_CASE_OTHER_OPTS], name);
    int64_t sum = 0;
    if (at == NULL)
        return FR_OK;
    plan->n_split = 0;
    for (at += sizeof name - 1; isdigit((unsigned char)*at); at += *at == ',') {
        char *end;
        long n = strtol(at, &end, 10);
        if (n > setup->model.n_layers)
            n = setup->model.n_layers + 1;
        if (plan->n_split < FR_PLAN_MAX_STAGES)
            plan->layer_split[plan->n_split] = (int32_t)n;
        plan->n_split++;
        sum += n;
        at = end;
    }
    if (plan->n_split == (int64_t)plan->pp * plan->vpp &&
        plan->n_split <= FR_PLAN_MAX_STAGES && sum == setup->model.n_layers)
        return FR_OK;
    return fr_fail(err, FR_INPUT,
                   "%s:%d: layer_split has %lld layers in %d stages, not %lld "
                   "in %d x %d",
                   row->file, row->line, (long long)sum, plan->n_split,
                   (long long)setup->model.n_layers, plan->pp, plan->vpp);
}

static fr_status read_schedule(const fr_case *row, fr_case_setup *setup,
                               fr_err *err)
{
    fr_plan *plan = &setup->plan;
    int schedule;
    fr_status status =
        fr_case_parse_schedule(row->field[FR_CASE_SCHEDULE], &schedule, err);
    if (status != FR_OK)
        return fr_case_fail_at(row, status, err);
    if (plan->pp == 1) {
        plan->vpp = 1; /* nothing to interleave */
        return FR_OK;
    }
    if (schedule >= 0 && fr_schedules[schedule]->n_chunks == 0 &&
        plan->vpp == 1) {
        plan->vpp = 2; /* the fewest chunks that interleave */
        fr_case_guess(setup, FR_CASE_VPP);
    }
    const int plain = (int)fr_schedule_usual(1);
    bool is_plain = schedule < 0 || schedule == plain;
    if (is_plain && plan->vpp > 1)
        schedule = (int)fr_schedule_usual(plan->vpp);
    plan->schedule = (fr_schedule_kind)(schedule < 0 ? plain : schedule);
    split_layers(setup, plan);
    return read_split(row, setup, err);
}

static fr_status read_zero(const fr_case *row, fr_case_setup *setup,
                           fr_err *err)
{
    fr_plan *plan = &setup->plan;
    int64_t per_node = 8;
    fr_case_zero zero;
    fr_status status =
        fr_case_parse_zero(row->field[FR_CASE_ZERO_STAGE], &zero, err);
    if (status != FR_OK)
        return fr_case_fail_at(row, status, err);
    FR_TRY(fr_case_count(row, FR_CASE_GPUS_PER_NODE, 1, &per_node, err));
    int64_t n_data = (int64_t)plan->dp * plan->cp;
    int64_t group = zero.group >= 0 ? zero.group : per_node;
    /* The same as no sharding where nobody is there to share with. */
    plan->zero_stage = n_data > 1 ? zero.stage : 0;
    if (plan->zero_stage > 0 && group > 0 && group < n_data)
        plan->zero_group = (int32_t)group;
    return FR_OK;
}

/* -1: nothing is said of it. */
static void read_switch(int is_on, uint64_t field, bool *out, uint64_t *given)
{
    if (is_on < 0)
        return;
    *out = is_on == 1;
    *given |= field;
}

/* Reads which collectives overlap compute. */
static void read_overlap(const fr_case *row, const fr_framework *how,
                         fr_plan *plan, uint64_t *given)
{
    const char *other = row->field[FR_CASE_OTHER_OPTS];
    const bool is_async_tp =
        fr_case_has(other, "async tp") || fr_case_has(other, "asynctp");
    /* Megatron's own DDP reduces after backward. */
    if (how->facts->is_local_ddp && fr_case_has(other, "DDP-impl=torch"))
        read_switch(1, FR_GIVEN(OVERLAP), &plan->is_overlap, given);
    read_switch(fr_case_find_switch(other, "overlap_grad_reduce"),
                FR_GIVEN(OVERLAP), &plan->is_overlap, given);
    read_switch(fr_case_find_switch(other, "overlap_param_gather"),
                FR_GIVEN(GATHER_OVERLAP), &plan->is_gather_overlap, given);
    read_switch(is_async_tp ? 1 : -1, FR_GIVEN(TP_OVERLAP),
                &plan->is_tp_overlap, given);
    read_switch(fr_case_find_switch(other, "tp_comm_overlap"),
                FR_GIVEN(TP_OVERLAP), &plan->is_tp_overlap, given);
    if (plan->tp == 1)
        plan->is_tp_overlap = false;
    if (fr_case_has(other, "deepep") || fr_case_has(other, "hybridep"))
        plan->expert_dispatch = FR_DISPATCH_BY_NODE;
    plan->is_ep_overlap =
        fr_case_has(other, "1f1b overlap") ||
        fr_case_find_switch(other, "overlap_moe_expert_parallel_comm") == 1;
    plan->is_optimizer_offloaded =
        fr_case_find_switch(other, "optimizer offload") == 1 ||
        fr_case_find_switch(other, "offload_optimizer") == 1;
}

static fr_status read_recompute(const fr_case *row, fr_case_setup *setup,
                                uint64_t *given, fr_err *err)
{
    fr_plan *plan = &setup->plan;
    fr_case_recompute recompute;
    fr_status status =
        fr_case_parse_recompute(row->field[FR_CASE_RECOMPUTE], &recompute, err);
    if (status != FR_OK)
        return fr_case_fail_at(row, status, err);
    plan->recompute = recompute.recompute;
    plan->recompute_layers = recompute.layers;
    if (recompute.recompute != FR_RECOMPUTE_SELECTIVE || recompute.parts == 0)
        return FR_OK;
    plan->recompute_parts = recompute.parts;
    *given |= FR_GIVEN(RECOMPUTE_PARTS);
    return FR_OK;
}

static fr_status read_precision(const fr_case *row, fr_case_setup *setup,
                                uint64_t *given, fr_err *err)
{
    fr_plan *plan = &setup->plan;
    fr_case_precision precision = {FR_DTYPE_BF16, false, FR_DTYPE_F32};
    if (row->field[FR_CASE_PRECISION][0] == '\0') {
        fr_case_guess(setup, FR_CASE_PRECISION);
    } else {
        fr_status status = fr_case_parse_precision(
            row->field[FR_CASE_PRECISION], &precision, err);
        if (status != FR_OK)
            return fr_case_fail_at(row, status, err);
    }
    plan->precision = precision.precision;
    if (precision.has_grad_dtype) {
        plan->grad_dtype = precision.grad_dtype;
        *given |= FR_GIVEN(GRAD_DTYPE);
    }
    return FR_OK;
}

static void read_switches(const fr_case *row, fr_plan *plan, uint64_t *given)
{
    /* It came with the A100: arXiv 2205.14135. */
    plan->is_flash = !fr_case_has(row->field[FR_CASE_GPU], "V100");
    read_switch(fr_case_parse_flash(row->field[FR_CASE_FLASH_ATTN]),
                FR_GIVEN(FLASH_ATTENTION), &plan->is_flash, given);
    read_switch(fr_case_parse_switch(row->field[FR_CASE_SP]),
                FR_GIVEN(SEQUENCE_PARALLEL), &plan->is_sequence_parallel,
                given);
    if (plan->tp == 1)
        plan->is_sequence_parallel = false;
}

/* Lays the kernels of the row over the framework's. */
static void read_kernels(const fr_case *row, const fr_framework *how,
                         fr_case_setup *setup)
{
    const char *other = row->field[FR_CASE_OTHER_OPTS];
    fr_plan *plan = &setup->plan;
    int flash_kind = fr_case_parse_flash_kind(row->field[FR_CASE_FLASH_ATTN]);
    if (flash_kind >= 0)
        plan->execution.flash_kind = (fr_flash_kind)flash_kind;
    plan->execution.scaling = fr_case_parse_scaling(
        row->field[FR_CASE_PRECISION], plan->execution.scaling);
    plan->execution.is_grad_added_apart |=
        fr_case_find_switch(other, "gradient_accumulation_fusion") == 0;
    if (plan->execution.kernels == FR_KERNELS_EAGER &&
        fr_case_has(other, "compile")) {
        plan->execution.kernels = FR_KERNELS_COMPILED;
        plan->execution.is_loss_fused = fr_case_has(other, "compiled loss");
    }
    /* Megatron's own fusion keeps float32 as before. */
    if (fr_case_has(other, "cross_entropy_fusion_impl=te"))
        plan->execution.is_loss_fused = true;
    if (fr_case_find_switch(other, "moe_router_fusion") == 1 &&
        fr_case_find_switch(other, "moe_permute_fusion") == 1)
        plan->execution.is_routing_fused = true;
    if (fr_case_has(other, "cuda graphs"))
        plan->execution.cuda_graphs = fr_case_has(other, "full cuda graphs")
                                          ? FR_CUDA_GRAPHS_FULL
                                          : FR_CUDA_GRAPHS_LAYER;
    setup->job.dropout = fr_framework_dropout(how, row->field[FR_CASE_MODEL]);
    if (fr_case_find_switch(other, "dropout") == 0)
        setup->job.dropout = 0.0;
}

/* Reads offloading of all layers, or of some of a rank's. */
static void read_offload(const fr_case *row, fr_case_setup *setup)
{
    const char *other = row->field[FR_CASE_OTHER_OPTS];
    double n_own = (double)setup->model.n_layers / setup->plan.pp;
    double n = (double)fr_case_find_number(other, "cpu_offloading_num_layers");
    if (fr_case_find_switch(other, "activation_offload") == 1 || n > n_own)
        n = n_own;
    if (n > 0)
        setup->plan.activation_offload_frac = n / n_own;
}

/* Experts are split as tp is (Megatron's default), as far as the ranks of a
 * stage go round: etp x ep divides them. */
static void read_expert_split(const fr_case *row, fr_plan *plan)
{
    int64_t n_ranks = (int64_t)plan->tp * plan->cp * plan->dp;
    bool is_given = row->field[FR_CASE_ETP][0] != '\0';
    int64_t etp = is_given ? plan->etp : plan->tp;
    while (!is_given && plan->ep > 1 && etp > 1 &&
           (plan->tp % etp != 0 || n_ranks % (etp * plan->ep) != 0))
        etp--;
    plan->etp = etp == plan->tp ? 0 : (int32_t)etp;
}

fr_status fr_case_read_plan(const fr_case *row, fr_case_setup *setup,
                            fr_err *err)
{
    const fr_framework *how = fr_case_framework_of(row);
    fr_plan *plan = &setup->plan;
    fr_model *model = &setup->model;
    uint64_t given = 0;
    setup->framework = how->name;
    FR_TRY(read_degrees(row, setup, err));
    FR_TRY(read_batch(row, how, setup, err));
    FR_TRY(read_schedule(row, setup, err));
    FR_TRY(read_zero(row, setup, err));
    FR_TRY(read_recompute(row, setup, &given, err));
    FR_TRY(read_precision(row, setup, &given, err));
    read_overlap(row, how, plan, &given);
    read_switches(row, plan, &given);
    fr_framework_set_plan(how, given, 0, plan);
    read_kernels(row, how, setup);
    read_offload(row, setup);
    read_expert_split(row, plan);
    model->vocab = fr_framework_vocab(how, plan, model);
    return FR_OK;
}
