/* frameworks.c: one row per framework, one per rule. */
#include "tuner/space/frameworks.h"

#include "plan/lower/framework/framework.h"
#include "plan/schedule/schedule.h"

#include <string.h>

typedef bool (*rule_fn)(const fr_plan *plan, const fr_model *model,
                        const fr_job *job);

/* Does the plan obey? */
typedef struct rule {
    const char *text; /* what is asked for */
    fr_decision_level level;
    rule_fn holds;
} rule;

struct fr_framework_rules {
    fr_framework_kind framework;
    const rule *rules; /* text NULL at the end */
};

/* ---- rules --------------------------------------------------------------- */

static bool has_even_stages(const fr_plan *plan, const fr_model *model,
                            const fr_job *job)
{
    (void)job;
    return plan->n_split > 0 ||
           model->n_layers % ((int64_t)plan->pp * plan->vpp) == 0;
}

static bool has_no_split_backward(const fr_plan *plan, const fr_model *model,
                                  const fr_job *job)
{
    (void)model;
    (void)job;
    return !fr_schedules[plan->schedule]->is_split;
}

static bool has_no_gpipe(const fr_plan *plan, const fr_model *model,
                         const fr_job *job)
{
    (void)model;
    (void)job;
    return plan->pp == 1 || !fr_schedules[plan->schedule]->is_forward_first;
}

static bool is_plain_1f1b(const fr_plan *plan, const fr_model *model,
                          const fr_job *job)
{
    (void)model;
    (void)job;
    return plan->schedule == FR_SCHEDULE_1F1B;
}

static bool has_rows_of_experts(const fr_plan *plan, const fr_model *model,
                                const fr_job *job)
{
    (void)model;
    (void)job;
    return plan->tp == 1 || plan->ep == 1 || plan->is_sequence_parallel;
}

static bool overlaps_with_rows(const fr_plan *plan, const fr_model *model,
                               const fr_job *job)
{
    (void)model;
    (void)job;
    return !plan->is_tp_overlap || plan->is_sequence_parallel;
}

/* Of Megatron Core (transformer_config.py). */
static bool has_combined_1f1b_of_16_bits(const fr_plan *plan,
                                         const fr_model *model,
                                         const fr_job *job)
{
    (void)job;
    fr_dtype base = fr_plan_storage_dtype(plan);
    return !plan->is_ep_overlap ||
           ((base == FR_DTYPE_BF16 || base == FR_DTYPE_F16) &&
            model->n_mtp_layers <= 1);
}

static bool has_no_combined_1f1b(const fr_plan *plan, const fr_model *model,
                                 const fr_job *job)
{
    (void)model;
    (void)job;
    return !plan->is_ep_overlap;
}

static bool gathers_with_reduction(const fr_plan *plan, const fr_model *model,
                                   const fr_job *job)
{
    (void)model;
    (void)job;
    bool is_sharded = plan->zero_stage == 1 || plan->zero_stage == 2;
    return !is_sharded || !plan->is_gather_overlap || plan->is_overlap;
}

static bool shards_without_pipeline(const fr_plan *plan, const fr_model *model,
                                    const fr_job *job)
{
    (void)model;
    (void)job;
    return plan->zero_stage < 2 || plan->pp == 1;
}

static bool is_fsdp_or_ddp(const fr_plan *plan, const fr_model *model,
                           const fr_job *job)
{
    (void)model;
    (void)job;
    return plan->zero_stage == 0 || plan->zero_stage == 3;
}

static bool has_no_parts_of_chunks(const fr_plan *plan, const fr_model *model,
                                   const fr_job *job)
{
    (void)model;
    (void)job;
    return plan->recompute_layers == 0;
}

static bool has_no_ring(const fr_plan *plan, const fr_model *model,
                        const fr_job *job)
{
    (void)model;
    (void)job;
    return plan->cp == 1 || plan->cp_kind == FR_CP_ALL_TO_ALL;
}

static bool has_no_chunks(const fr_plan *plan, const fr_model *model,
                          const fr_job *job)
{
    (void)model;
    (void)job;
    return plan->vpp == 1;
}

/* ---- frameworks ---------------------------------------------------------- */

/*
 * megatron/training/arguments.py and megatron/core/transformer/
 * transformer_config.py, Megatron-LM of August 2026.  Sharding of gradients
 * and parameters is Megatron FSDP, which has no pipeline.
 */
static const rule megatron_rules[] = {
    {"layers % (pp x vpp) == 0, or a layout of its own", FR_DECISION_PIPELINE,
     has_even_stages},
    {"a schedule whose backward is whole", FR_DECISION_PIPELINE,
     has_no_split_backward},
    {"1f1b or interleaved", FR_DECISION_PIPELINE, has_no_gpipe},
    {"sequence parallel with tp and ep", FR_DECISION_LAYERS,
     has_rows_of_experts},
    {"sequence parallel with tp-comm-overlap", FR_DECISION_LAYERS,
     overlaps_with_rows},
    {"bf16 or f16 and at most one layer of later tokens with ep-overlap",
     FR_DECISION_LAYERS, has_combined_1f1b_of_16_bits},
    {"overlap-grad-reduce with overlap-param-gather", FR_DECISION_GRADIENTS,
     gathers_with_reduction},
    {"pp 1 with sharded gradients or parameters", FR_DECISION_GRADIENTS,
     shards_without_pipeline},
    {NULL, FR_DECISION_N, NULL}};

/*
 * deepspeed/runtime/pipe/engine.py: "ZeRO-2 and ZeRO-3 are incompatible with
 * pipeline parallelism"; its schedule is 1F1B (runtime/pipe/schedule.py,
 * TrainSchedule); sequence parallelism is Ulysses.
 */
static const rule deepspeed_rules[] = {
    {"pp 1 with ZeRO 2 and 3", FR_DECISION_GRADIENTS, shards_without_pipeline},
    {"schedule 1f1b", FR_DECISION_PIPELINE, is_plain_1f1b},
    {"one chunk per rank", FR_DECISION_PIPELINE, has_no_chunks},
    {"cp-kind all-to-all (Ulysses)", FR_DECISION_LAYERS, has_no_ring},
    {"whole chunks made again", FR_DECISION_PIPELINE, has_no_parts_of_chunks},
    {"no ep-overlap", FR_DECISION_LAYERS, has_no_combined_1f1b},
    {NULL, FR_DECISION_N, NULL}};

/*
 * torchtitan/config and docs/fsdp.md: FSDP2 shards parameters, gradients and
 * optimizer together (reshard_after_forward never: they stay gathered), or
 * DDP; schedules of torch.distributed.pipelining; activation checkpoints of
 * whole layers, or of all.
 */
static const rule torchtitan_rules[] = {
    {"zero 3 (FSDP) or 0 (DDP)", FR_DECISION_GRADIENTS, is_fsdp_or_ddp},
    {"whole chunks made again", FR_DECISION_PIPELINE, has_no_parts_of_chunks},
    {"no ep-overlap", FR_DECISION_LAYERS, has_no_combined_1f1b},
    {NULL, FR_DECISION_N, NULL}};

static const fr_framework_rules frameworks[] = {
    {FR_FRAMEWORK_MEGATRON, megatron_rules},
    {FR_FRAMEWORK_DEEPSPEED, deepspeed_rules},
    {FR_FRAMEWORK_TORCHTITAN, torchtitan_rules}};
enum { N_FRAMEWORKS = FR_LENGTH(frameworks) };

const char *fr_framework_rules_name(int i)
{
    return i >= 0 && i < N_FRAMEWORKS
               ? fr_frameworks[frameworks[i].framework].name
               : NULL;
}

const fr_framework_rules *fr_framework_rules_find(const char *name)
{
    for (int i = 0; i < N_FRAMEWORKS; i++)
        if (strcmp(fr_framework_rules_name(i), name) == 0)
            return &frameworks[i];
    return NULL;
}

fr_status fr_framework_check(const fr_framework_rules *framework,
                             fr_decision_level level, const fr_plan *plan,
                             const fr_model *model, const fr_job *job,
                             fr_err *err)
{
    for (const rule *r = framework->rules; r->text != NULL; r++)
        if (r->level == level && !r->holds(plan, model, job))
            return fr_fail(err, FR_INPUT, "%s asks for %s",
                           fr_frameworks[framework->framework].name, r->text);
    return FR_OK;
}
