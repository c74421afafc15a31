/*
 * plan_check.c: which plans are legal for a model and a job, and which have a
 * lowering.  Every refusal says the reason and the mend.
 */
#include "plan/codec/compressor.h"
#include "plan/collective/collective.h"
#include "plan/decide/grid.h"
#include "plan/decide/plan_fields.h"
#include "plan/decide/plan_refuse.h"
#include "plan/decide/plan_shares.h"
#include "plan/schedule/schedule.h"
#include "spec/model/mixers.h"

#include <stdio.h>
#include <string.h>

/* Writes the tensor-parallel degrees that divide all three numbers, such as
 * "1,2,3,4,6,12". */
static void list_divisors(const int64_t n[3], char *buf, size_t n_buf)
{
    size_t used = 0;
    int64_t least = n[0];
    for (int i = 1; i < 3; i++)
        least = n[i] < least ? n[i] : least;
    buf[0] = '\0';
    for (int64_t d = 1; d <= least && used + 8 < n_buf; d++) {
        if (n[0] % d != 0 || n[1] % d != 0 || n[2] % d != 0)
            continue;
        int wrote = snprintf(buf + used, n_buf - used, "%s%lld",
                             used ? "," : "", (long long)d);
        used += wrote > 0 ? (size_t)wrote : 0;
    }
}

static int64_t expert_tp(const fr_plan *plan)
{
    return plan->etp > 0 ? plan->etp : plan->tp;
}

/* The MLP width that tensor parallelism splits: that of an expert if experts
 * are split like the rest of the layer. */
static int64_t split_ffn(const fr_plan *plan, const fr_model *model)
{
    return model->n_experts > 0 && model->expert_ffn_hidden > 0 &&
                   expert_tp(plan) == plan->tp
               ? model->expert_ffn_hidden
               : model->ffn_hidden;
}

static fr_status check_ranks(const fr_plan *plan, fr_err *err)
{
    double world = (double)plan->tp * plan->pp * plan->dp * plan->cp;
    if (world > (double)INT32_MAX)
        return fr_fail(err, FR_INPUT,
                       "tp x pp x dp x cp = %.0f ranks; at most %d", world,
                       INT32_MAX);
    if ((int64_t)plan->pp * plan->vpp > FR_PLAN_MAX_STAGES)
        return fr_fail(err, FR_INPUT, "pp %d x vpp %d stages; at most %d",
                       plan->pp, plan->vpp, FR_PLAN_MAX_STAGES);
    if (plan->n_servers > world)
        return fr_fail(err, FR_INPUT,
                       "%d parameter servers for %.0f ranks; give 0 (all) to "
                       "as many as there are ranks",
                       plan->n_servers, world);
    return FR_OK;
}

/* Refuses choices of NCCL's that contradict the rest of the plan. */
static fr_status check_nccl(const fr_plan *plan, fr_err *err)
{
    bool is_told = plan->protocol != FR_PROTOCOL_AUTO || plan->n_channels > 0;
    if (is_told && fr_collective_is_by_servers(plan->collective))
        return fr_fail(err, FR_INPUT,
                       "parameter servers copy without NCCL; leave out "
                       "nccl_protocol and nccl_channels");
    const fr_collective *entry = fr_collectives[plan->collective];
    if (entry != NULL && entry->is_simple_only &&
        plan->protocol != FR_PROTOCOL_AUTO &&
        plan->protocol != FR_PROTOCOL_SIMPLE)
        return fr_fail(err, FR_INPUT,
                       "NCCL adds in the switch with protocol simple alone, "
                       "not %s; choose simple or auto",
                       fr_name_of(&fr_protocol_names, plan->protocol));
    return FR_OK;
}

static fr_status check_tp(const fr_plan *plan, const fr_model *model,
                          const fr_job *job, fr_err *err)
{
    if (plan->is_sequence_parallel && plan->tp == 1)
        return fr_fail(err, FR_INPUT,
                       "sequence parallel does nothing at tp 1; leave it out "
                       "or choose tp > 1");
    if (plan->tp == 1)
        return FR_OK;
    if (model->kind == FR_MODEL_LAYERS)
        return fr_fail(err, FR_INPUT,
                       "tp %d: a list of layers has no heads to split; choose "
                       "tp 1",
                       plan->tp);
    const int64_t n[3] = {model->n_heads, model->n_kv_heads,
                          split_ffn(plan, model)};
    const char *const names[3] = {"heads", "kv heads", "ffn"};
    for (int i = fr_model_has_attention(model) ? 0 : 2; i < 3; i++) {
        if (n[i] % plan->tp == 0)
            continue;
        char choices[256];
        list_divisors(n, choices, sizeof choices);
        return fr_fail(err, FR_INPUT,
                       "%s: %lld is not a multiple of tp %d; choose tp from %s",
                       names[i], (long long)n[i], plan->tp, choices);
    }
    FR_TRY(fr_mixers_check_tp(model, plan->tp, err));
    int64_t rows = plan->micro_batch * (job->seq / plan->cp);
    if (plan->is_sequence_parallel && rows % plan->tp != 0)
        return fr_fail(err, FR_INPUT,
                       "sequence parallel: rows %lld (micro_batch %lld x seq "
                       "%lld / cp %d) are not a multiple of tp %d; choose "
                       "micro_batch or seq a multiple of tp",
                       (long long)rows, (long long)plan->micro_batch,
                       (long long)job->seq, plan->cp, plan->tp);
    return FR_OK;
}

static fr_status check_batch(const fr_plan *plan, const fr_job *job,
                             fr_err *err)
{
    if (fr_plan_micro_batches(plan, job) > 0)
        return FR_OK;
    if (plan->n_shares > 0)
        return fr_plan_shares_refuse(plan, job, err);
    if (job->global_batch % plan->dp != 0)
        return fr_fail(err, FR_INPUT,
                       "global_batch %lld is not a multiple of dp %d; choose a "
                       "global batch "
                       "that is a multiple of dp",
                       (long long)job->global_batch, plan->dp);
    const int64_t share = job->global_batch / plan->dp;
    const int64_t n[3] = {share, share, share};
    char choices[256];
    list_divisors(n, choices, sizeof choices);
    return fr_fail(
        err, FR_INPUT,
        "global_batch %lld is not a multiple of dp %d x micro_batch %lld; "
        "choose micro_batch from %s",
        (long long)job->global_batch, plan->dp, (long long)plan->micro_batch,
        choices);
}

/* Chunks of a schedule that can have any number of them. */
static fr_status check_chunks(const fr_plan *plan, const char *name,
                              fr_err *err)
{
    if (plan->vpp == 1)
        return fr_fail(err, FR_INPUT,
                       "the %s schedule at vpp 1 is 1f1b; choose schedule 1f1b "
                       "or vpp > 1",
                       name);
    if (plan->pp == 1)
        return fr_fail(err, FR_INPUT,
                       "vpp %d at pp 1 has no pipeline to interleave; choose "
                       "vpp 1 or pp > 1",
                       plan->vpp);
    return FR_OK;
}

/* Chunks of a schedule that has a fixed number of them. */
static fr_status check_own_chunks(const fr_plan *plan,
                                  const fr_schedule *schedule, fr_err *err)
{
    const char *several = fr_name_of(&fr_schedule_names, fr_schedule_usual(2));
    if (schedule->needs_pipeline && plan->pp == 1)
        return fr_fail(err, FR_INPUT,
                       "%s at pp 1 has no pipeline; choose schedule 1f1b or "
                       "pp > 1",
                       schedule->name);
    if (plan->vpp == schedule->n_chunks)
        return FR_OK;
    if (schedule->n_chunks == 1 && !schedule->needs_pipeline)
        return fr_fail(err, FR_INPUT,
                       "vpp %d needs the %s schedule, not %s; choose vpp 1 or "
                       "schedule %s",
                       plan->vpp, several, schedule->name, several);
    return fr_fail(err, FR_INPUT, "%s has %d chunks per rank; choose vpp %d",
                   schedule->name, schedule->n_chunks, schedule->n_chunks);
}

/* Can the schedule do so many micro-batches of a data-parallel rank? */
static fr_status check_share(const fr_plan *plan, int64_t n_micro, fr_err *err)
{
    const fr_schedule *schedule = fr_schedules[plan->schedule];
    const int64_t least =
        schedule->least_micro != NULL ? schedule->least_micro(plan->pp) : 1;
    if (n_micro < least)
        return fr_fail(err, FR_INPUT,
                       "%s needs at least %lld micro-batches at pp %d, not "
                       "%lld; choose a larger global_batch or another schedule",
                       schedule->name, (long long)least, plan->pp,
                       (long long)n_micro);
    if (schedule->is_grouped && n_micro % plan->pp != 0)
        return fr_fail(
            err, FR_INPUT,
            "%s: %lld micro-batches are not a multiple of pp %d; choose "
            "global_batch / (dp x micro_batch) a multiple of pp",
            schedule->name, (long long)n_micro, plan->pp);
    return FR_OK;
}

static fr_status check_schedule(const fr_plan *plan, const fr_job *job,
                                fr_err *err)
{
    const fr_schedule *schedule = fr_schedules[plan->schedule];
    FR_TRY(schedule->n_chunks == 0 ? check_chunks(plan, schedule->name, err)
                                   : check_own_chunks(plan, schedule, err));
    for (int32_t i = 0; i < plan->n_shares; i++)
        FR_TRY(check_share(plan, plan->batch_shares[i], err));
    return check_share(plan, fr_plan_micro_batches(plan, job), err);
}

/*
 * Exchanges of experts beside the passes of another micro-batch, as Megatron
 * Core asks (core/transformer/transformer_config.py, overlap_moe_expert_
 * parallel_comm): expert parallel, chunks where there is a pipeline, no
 * recompute of whole layers or of experts.
 */
static fr_status check_ep_overlap(const fr_plan *plan, fr_err *err)
{
    const fr_schedule_kind schedule = fr_schedule_usual(plan->pp > 1 ? 2 : 1);
    bool is_recomputed = plan->recompute == FR_RECOMPUTE_FULL ||
                         (plan->recompute == FR_RECOMPUTE_SELECTIVE &&
                          (plan->recompute_parts & FR_RECOMPUTE_PART_EXPERTS));
    if (!plan->is_ep_overlap)
        return FR_OK;
    if (plan->ep == 1)
        return fr_fail(err, FR_INPUT,
                       "ep-overlap at ep 1 has no exchange to hide; leave it "
                       "out or choose ep > 1");
    if (plan->schedule != schedule)
        return fr_fail(err, FR_INPUT,
                       "ep-overlap at pp %d pairs passes of %s only, not of "
                       "%s; choose schedule %s",
                       plan->pp, fr_name_of(&fr_schedule_names, schedule),
                       fr_name_of(&fr_schedule_names, plan->schedule),
                       plan->pp > 1 ? "interleaved with vpp > 1" : "1f1b");
    if (is_recomputed)
        return fr_fail(err, FR_INPUT,
                       "ep-overlap with experts made again would send their "
                       "tokens again; choose recompute none, or selective of "
                       "other parts");
    return FR_OK;
}

static fr_status check_stages(const fr_plan *plan, const fr_model *model,
                              fr_err *err)
{
    int64_t n_stages = (int64_t)plan->pp * plan->vpp;
    if (model->n_layers < n_stages && plan->n_split == 0)
        return fr_fail(err, FR_INPUT,
                       "layers %lld < pp %d x vpp %d; choose pp x vpp of at "
                       "most %lld",
                       (long long)model->n_layers, plan->pp, plan->vpp,
                       (long long)model->n_layers);
    if (plan->n_split == 0)
        return FR_OK;
    if (plan->n_split != n_stages)
        return fr_fail(err, FR_INPUT,
                       "layer_split has %d entries for pp %d x vpp %d stages; "
                       "give %lld",
                       plan->n_split, plan->pp, plan->vpp, (long long)n_stages);
    int64_t sum = 0;
    for (int32_t i = 0; i < plan->n_split; i++) {
        /* The embedding or the loss may have a stage of its own. */
        int32_t least = i == 0 || i + 1 == plan->n_split ? 0 : 1;
        if (plan->layer_split[i] < least)
            return fr_fail(err, FR_INPUT,
                           "layer_split: stage %d has %d layers; give at least "
                           "%d",
                           i, plan->layer_split[i], least);
        sum += plan->layer_split[i];
    }
    if (sum != model->n_layers)
        return fr_fail(err, FR_INPUT,
                       "layer_split adds up to %lld layers, the model has "
                       "%lld; make them equal",
                       (long long)sum, (long long)model->n_layers);
    return FR_OK;
}

static fr_status check_compressor(const fr_plan *plan, const fr_model *model,
                                  fr_err *err)
{
    if (plan->compressor == FR_COMPRESSOR_NONE)
        return FR_OK;
    const char *name = fr_name_of(&fr_compressor_names, plan->compressor);
    if (plan->dp == 1)
        return fr_fail(err, FR_INPUT,
                       "compressor %s at dp 1 has no gradients to send; choose "
                       "compressor none or dp > 1",
                       name);
    if (fr_compressors[plan->compressor]->wants_matrices &&
        model->kind == FR_MODEL_LAYERS)
        return fr_fail(err, FR_INPUT,
                       "compressor %s needs the shapes of matrices, which a "
                       "list of layers does not tell: it would send all "
                       "gradients as they are; choose compressor none, bf16, "
                       "int8 or topk",
                       name);
    if (plan->zero_stage < 2)
        return fr_compressors[plan->compressor]->check(plan, err);
    fr_plan less = *plan;
    fr_err unused;
    less.zero_stage = 1;
    return fr_fail(
        err, FR_INPUT,
        "compressor %s does not go with ZeRO %d, which reduces gradients layer "
        "by layer as they come; choose zero 0%s, or compressor none with "
        "grad_dtype bf16",
        name, plan->zero_stage,
        fr_compressors[plan->compressor]->check(&less, &unused) == FR_OK
            ? " or 1"
            : "");
}

static fr_status check_data_parallel(const fr_plan *plan, const fr_model *model,
                                     fr_err *err)
{
    if (plan->zero_stage > 0 && plan->dp * (int64_t)plan->cp == 1)
        return fr_fail(err, FR_INPUT,
                       "zero %d at dp 1 has nobody to share the optimizer "
                       "state with and is the same as zero 0; choose zero 0 or "
                       "dp > 1",
                       plan->zero_stage);
    return check_compressor(plan, model, err);
}

static fr_status check_experts_and_context(const fr_plan *plan,
                                           const fr_model *model,
                                           const fr_job *job, fr_err *err)
{
    if (plan->cp > 1 && job->seq % (2 * (int64_t)plan->cp) != 0)
        return fr_fail(
            err, FR_INPUT,
            "seq %lld is not a multiple of 2 x cp %d; causal load is balanced "
            "over 2 cp pieces: choose seq a multiple of %lld",
            (long long)job->seq, plan->cp, 2 * (long long)plan->cp);
    if (model->n_experts == 0 && plan->ep == 1)
        return FR_OK;
    if (model->n_experts == 0)
        return fr_fail(err, FR_INPUT,
                       "ep %d: the model has no experts; choose ep 1",
                       plan->ep);
    if (model->n_experts % plan->ep != 0)
        return fr_fail(
            err, FR_INPUT,
            "experts: %lld is not a multiple of ep %d; choose ep a divisor",
            (long long)model->n_experts, plan->ep);
    int64_t n_stage = (int64_t)plan->tp * plan->cp * plan->dp;
    int64_t etp = expert_tp(plan);
    if (model->expert_ffn_hidden % etp != 0)
        return fr_fail(err, FR_INPUT,
                       "expert ffn: %lld is not a multiple of etp %lld; choose "
                       "etp a divisor",
                       (long long)model->expert_ffn_hidden, (long long)etp);
    if (n_stage % (etp * plan->ep) != 0)
        return fr_fail(
            err, FR_INPUT,
            "tp %d x cp %d x dp %d is not a multiple of etp %lld x ep %d: "
            "experts are spread over the ranks of a stage; choose "
            "etp x ep a divisor of %lld",
            plan->tp, plan->cp, plan->dp, (long long)etp, plan->ep,
            (long long)n_stage);
    return FR_OK;
}

static fr_status check_sequence(const fr_model *model, const fr_job *job,
                                fr_err *err)
{
    if (model->kind == FR_MODEL_LAYERS || !fr_model_has_position_table(model) ||
        model->max_seq == 0 || job->seq <= model->max_seq)
        return FR_OK;
    return fr_fail(err, FR_INPUT,
                   "seq %lld > max_seq %lld of the learned positions; choose "
                   "seq of at most %lld",
                   (long long)job->seq, (long long)model->max_seq,
                   (long long)model->max_seq);
}

static fr_status check_zero_group(const fr_plan *plan, fr_err *err)
{
    int64_t n_data = (int64_t)plan->dp * plan->cp;
    if (plan->zero_group > 0 && n_data % plan->zero_group != 0)
        return fr_fail(err, FR_INPUT,
                       "zero_group %d: choose a divisor of dp x cp = %lld, or "
                       "0 for all of them",
                       plan->zero_group, (long long)n_data);
    return FR_OK;
}

fr_status fr_plan_check(const fr_plan *plan, const fr_model *model,
                        const fr_job *job, fr_err *err)
{
    FR_TRY(fr_job_check(job, err));
    FR_TRY(fr_plan_check_ranges(plan, err));
    FR_TRY(check_ranks(plan, err));
    FR_TRY(check_nccl(plan, err));
    FR_TRY(check_batch(plan, job, err));
    FR_TRY(check_sequence(model, job, err));
    FR_TRY(check_experts_and_context(plan, model, job, err));
    FR_TRY(check_tp(plan, model, job, err));
    FR_TRY(check_stages(plan, model, err));
    FR_TRY(check_schedule(plan, job, err));
    FR_TRY(check_ep_overlap(plan, err));
    FR_TRY(check_zero_group(plan, err));
    FR_TRY(fr_plan_check_size(plan, model, job, err));
    return check_data_parallel(plan, model, err);
}

static fr_status check_context_lowerable(const fr_plan *plan,
                                         const fr_model *model, fr_err *err)
{
    bool is_latent = model->kv_lora_rank > 0;
    int64_t heads = is_latent ? model->n_heads : model->n_kv_heads;
    bool is_core_recomputed =
        plan->recompute == FR_RECOMPUTE_SELECTIVE &&
        plan->recompute_parts & FR_RECOMPUTE_PART_ATTENTION;
    bool is_plain = model->kind == FR_MODEL_DECODER &&
                    !model->is_parallel_block && model->sliding_window == 0;
    if (plan->cp == 1)
        return FR_OK;
    for (int64_t i = 0; model->mixers[0] != '\0' && i < model->n_layers; i++)
        if (fr_model_mixer(model, i)->sizes != NULL)
            return fr_plan_refuse(err,
                                  "context parallel layers of state spaces, "
                                  "linear attention or convolutions",
                                  "choose cp 1");
    if (plan->cp_kind == FR_CP_ALL_TO_ALL &&
        heads % ((int64_t)plan->tp * plan->cp) != 0)
        return fr_fail(
            err, FR_INPUT,
            "kv heads: %lld is not a multiple of tp %d x cp %d: all-to-all "
            "gives each rank whole heads; choose cp-kind ring or "
            "all-gather",
            (long long)heads, plan->tp, plan->cp);
    if (plan->cp_kind != FR_CP_RING)
        return FR_OK;
    if (!plan->is_flash)
        return fr_plan_refuse(err, "a ring of keys with unfused attention",
                              "choose flash attention, or cp-kind all-gather");
    if (is_core_recomputed)
        return fr_plan_refuse(err, "recompute of attention's core in a ring",
                              "choose cp-kind all-gather, or other parts");
    if (!is_plain)
        return fr_plan_refuse(
            err,
            "a ring of keys with sliding windows, parallel blocks or "
            "encoders",
            "choose cp-kind all-gather");
    return FR_OK;
}

/* Refuses what has no lowering in the layers. */
static fr_status check_layers_lowerable(const fr_plan *plan,
                                        const fr_model *model, fr_err *err)
{
    int64_t etp = plan->etp > 0 ? plan->etp : plan->tp;
    if (model->kind == FR_MODEL_LAYERS && plan->cp > 1)
        return fr_plan_refuse(err, "context parallel lists of layers",
                              "choose cp 1");
    if (model->n_experts > 0 && !plan->is_sequence_parallel && etp != plan->tp)
        return fr_plan_refuse(
            err,
            "experts split otherwise than the layer without sequence "
            "parallelism",
            "choose sequence parallel, or etp = tp");
    if (etp > plan->tp)
        return fr_fail(err, FR_INPUT,
                       "etp %d > tp %d; choose etp of at most tp", plan->etp,
                       plan->tp);
    FR_TRY(check_context_lowerable(plan, model, err));
    bool is_split = fr_schedules[plan->schedule]->is_split;
    if (is_split && plan->is_tp_overlap)
        return fr_plan_refuse(err, "a split backward with products in pieces",
                              "leave tp-overlap out or choose schedule 1f1b");
    if (plan->is_tp_overlap && plan->tp > 8)
        return fr_plan_refuse(err,
                              "tensor-parallel overlap over more than 8 ranks",
                              "leave it out");
    return FR_OK;
}

/* A backward can be split only if a layer is one call forward and one
 * backward. */
static fr_status check_split_lowerable(const fr_plan *plan,
                                       const fr_model *model, fr_err *err)
{
    if (!fr_schedules[plan->schedule]->is_split)
        return FR_OK;
    if (plan->cp > 1 && plan->cp_kind == FR_CP_RING)
        return fr_plan_refuse(err,
                              "a backward in two parts around a ring of keys",
                              "choose cp-kind all-gather, or schedule 1f1b");
    if (plan->is_tp_overlap)
        return fr_plan_refuse(err, "a backward in two parts with TP overlap",
                              "leave the overlap out, or choose schedule 1f1b");
    if (model->kind == FR_MODEL_LAYERS)
        return fr_plan_refuse(err,
                              "a backward in two parts of a list of layers",
                              "choose schedule 1f1b");
    return FR_OK;
}

/* Combined 1F1B: gathers, rings and offload go layer by layer and do not know
 * the order of two passes that are merged. */
static fr_status check_combined_lowerable(const fr_plan *plan, fr_err *err)
{
    if (!plan->is_ep_overlap)
        return FR_OK;
    if (plan->zero_stage > 1)
        return fr_plan_refuse(err, "ep-overlap with ZeRO 2 and 3",
                              "choose zero 0 or 1");
    if (plan->cp > 1 && plan->cp_kind == FR_CP_RING)
        return fr_plan_refuse(err, "ep-overlap around a ring of keys",
                              "choose cp-kind all-gather");
    if (plan->activation_offload_frac > 0)
        return fr_plan_refuse(err, "ep-overlap with offloaded activations",
                              "leave one of them out");
    return FR_OK;
}

/* Refuses what has no lowering in parameters, gradients and optimizer. */
static fr_status check_states_lowerable(const fr_plan *plan,
                                        const fr_model *model,
                                        const fr_job *job, fr_err *err)
{
    bool has_norms = job->optimizer == FR_OPTIMIZER_LARS ||
                     job->optimizer == FR_OPTIMIZER_LAMB;
    int64_t n_shards = fr_plan_group_size(plan, FR_AXIS_SHARD);
    if (plan->precision > FR_DTYPE_FP4)
        return fr_plan_refuse(err, "products in this precision",
                              "choose f32, tf32, bf16, f16, fp8 or fp4");
    if (!fr_dtype_is_of_gradients(plan->grad_dtype))
        return fr_plan_refuse(err, "gradients in this dtype",
                              "choose grad_dtype f32, bf16 or f16");
    if (plan->compressor != FR_COMPRESSOR_NONE &&
        plan->grad_dtype != FR_DTYPE_F32)
        return fr_plan_refuse(err, "compressors of gradients other than f32",
                              "choose grad_dtype f32 or compressor none");
    if (plan->zero_stage > 0 && n_shards == 1)
        return fr_fail(err, FR_INPUT,
                       "zero %d over groups of one rank shards nothing; choose "
                       "zero 0 or a zero_group of more",
                       plan->zero_stage);
    if (plan->zero_stage > 0 && model->n_experts > 0 &&
        fr_plan_group_size(plan, FR_AXIS_REPLICA) > 1)
        return fr_plan_refuse(err, "ZeRO over a part of dp with experts",
                              "choose zero_group 0");
    if (plan->is_optimizer_offloaded && has_norms)
        return fr_plan_refuse(err, "LARS and LAMB on the host",
                              "choose adamw or sgd, or leave the offload out");
    return FR_OK;
}

/* Does the algorithm do what the groups of the gradients ask of it? */
static fr_status check_collective_lowerable(const fr_plan *plan, fr_err *err)
{
    static const fr_op plain[] = {FR_OP_ALL_REDUCE, FR_OP_N};
    static const fr_op sharded[] = {FR_OP_REDUCE_SCATTER, FR_OP_ALL_GATHER,
                                    FR_OP_N};
    const fr_op *ops = plan->zero_stage > 0 ? sharded : plain;
    int64_t n_group = fr_plan_group_size(
        plan, plan->zero_stage > 0 ? FR_AXIS_SHARD : FR_AXIS_DP);
    if (plan->collective == FR_COLLECTIVE_AUTO || n_group == 1)
        return FR_OK;
    const fr_collective *entry = fr_collectives[plan->collective];
    for (int i = 0; ops[i] != FR_OP_N; i++)
        if (!entry->fits(ops[i], n_group))
            return fr_fail(err, FR_INPUT,
                           "collective %s does not do %s over dp %d; choose "
                           "ring or auto",
                           entry->name, fr_op_name(ops[i]), (int)n_group);
    return FR_OK;
}

fr_status fr_plan_check_lowerable(const fr_plan *plan, const fr_model *model,
                                  const fr_job *job, fr_err *err)
{
    FR_TRY(fr_plan_check(plan, model, job, err));
    FR_TRY(check_layers_lowerable(plan, model, err));
    FR_TRY(check_split_lowerable(plan, model, err));
    FR_TRY(check_combined_lowerable(plan, err));
    FR_TRY(fr_plan_shares_check_lowerable(plan, err));
    FR_TRY(check_collective_lowerable(plan, err));
    return check_states_lowerable(plan, model, job, err);
}
