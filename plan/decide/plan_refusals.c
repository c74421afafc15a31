/* plan_refusals.c: see plan_refusals.h. */
#include "plan/decide/plan_refusals.h"

#include "plan/codec/compressor.h"
#include "plan/collective/collective.h"
#include "plan/decide/plan_refuse.h"
#include "spec/model/layer_ops.h"
#include "spec/model/mixers.h"
#include "spec/model/model_traits.h"

#define REFUSAL(name)                                                          \
    static bool name(const fr_plan *plan, const fr_model *model,               \
                     const fr_job *job)
#define UNUSED_BUT(used) (void)plan, (void)model, (void)job, (void)(used)

/* ---- models and jobs ----------------------------------------------------- */

REFUSAL(is_list)
{
    UNUSED_BUT(model);
    return model->kind == FR_MODEL_LAYERS;
}

REFUSAL(is_list_of_amounts)
{
    UNUSED_BUT(model);
    return model->kind == FR_MODEL_LAYERS && !fr_model_has_layer_ops(model);
}

/* A framework's own treatment of a list of layers is only known by its
 * amounts. */
REFUSAL(is_list_of_others)
{
    UNUSED_BUT(job);
    return model->kind == FR_MODEL_LAYERS &&
           plan->execution.kernels != FR_KERNELS_OWN;
}

REFUSAL(is_narrow_list)
{
    UNUSED_BUT(job);
    return model->kind == FR_MODEL_LAYERS && (plan->precision != FR_DTYPE_F32 ||
                                              plan->grad_dtype != FR_DTYPE_F32);
}

/* Running statistics go the way of gradients, and must arrive as they are. */
REFUSAL(compresses_list)
{
    UNUSED_BUT(job);
    return model->kind == FR_MODEL_LAYERS &&
           plan->compressor != FR_COMPRESSOR_NONE;
}

/* A single value is its own mean, so its norm is always 0; PyTorch refuses it
 * too. */
REFUSAL(norms_single_values)
{
    UNUSED_BUT(job);
    return plan->micro_batch == 1 && fr_model_norms_one_pixel(model);
}

REFUSAL(is_other_encoder)
{
    UNUSED_BUT(model);
    return model->kind == FR_MODEL_ENCODER && !model->has_mlm_head &&
           model->n_labels == 0;
}

/*
 * Every tensor parallel rank holds the router and decides alone where a row
 * goes.  What codecs leave of a gradient depends on its neighbours in the
 * bucket, of which each rank has its own part: the copies part after one step,
 * and ranks add up rows of different experts.
 */
REFUSAL(parts_routers)
{
    UNUSED_BUT(job);
    const fr_compressor *codec = fr_compressor_of(plan);
    return model->n_experts > 0 && plan->tp > 1 &&
           !plan->is_sequence_parallel && codec->is_lossy &&
           codec->wire == FR_WIRE_GATHER;
}

REFUSAL(has_plain_experts)
{
    UNUSED_BUT(model);
    return model->n_experts > 0 &&
           (!model->is_gated_mlp || model->has_mlp_bias);
}

REFUSAL(has_many_experts)
{
    UNUSED_BUT(model);
    return model->n_experts > FR_MOST_EXPERTS;
}

/* One token further on, whose embedding has no position of its own. */
REFUSAL(predicts_otherwise)
{
    UNUSED_BUT(model);
    return model->n_mtp_layers > 1 ||
           (model->n_mtp_layers > 0 && !model->is_rope);
}

/* The last stage uses the embedding and the head side by side. */
REFUSAL(predicts_later_gathered)
{
    UNUSED_BUT(job);
    return model->n_mtp_layers > 0 && plan->zero_stage == 3;
}

enum { GPU_HEAD_COLUMNS = 256 }; /* the most of kernels/cuda/ */

REFUSAL(has_wide_heads)
{
    UNUSED_BUT(model);
    return model->head_dim > GPU_HEAD_COLUMNS ||
           model->v_head_dim > GPU_HEAD_COLUMNS;
}

REFUSAL(has_other_rope_scaling)
{
    UNUSED_BUT(model);
    return model->has_rope_scaling && !(model->rope_factor > 0.0);
}

/* A row of the table of traits, and one of mixers. */
#define TRAIT(symbol, name, refusal)                                           \
    REFUSAL(has_##symbol)                                                      \
    {                                                                          \
        UNUSED_BUT(model);                                                     \
        return fr_model_has(model, FR_TRAIT_##symbol);                         \
    }
#include "spec/model/model_traits.inc"
#undef TRAIT

REFUSAL(has_other_mixers)
{
    UNUSED_BUT(model);
    for (int64_t i = 0; model->mixers[0] != '\0' && i < model->n_layers; i++)
        if (fr_model_mixer(model, i)->refusal != NULL)
            return true;
    return false;
}

REFUSAL(has_marked_mlps)
{
    UNUSED_BUT(model);
    return model->mlps[0] != '\0';
}

REFUSAL(norms_embedding)
{
    UNUSED_BUT(model);
    return model->kind == FR_MODEL_DECODER && model->has_embed_norm;
}

/* ---- precision and memory ------------------------------------------------ */

REFUSAL(is_unknown_to_cpus)
{
    UNUSED_BUT(plan);
    return plan->precision != FR_DTYPE_F32 && plan->precision != FR_DTYPE_BF16;
}

REFUSAL(adds_up_otherwise)
{
    UNUSED_BUT(plan);
    return plan->grad_dtype != FR_DTYPE_F32 &&
           plan->grad_dtype != plan->precision;
}

REFUSAL(is_narrow_of_others)
{
    UNUSED_BUT(plan);
    return plan->precision == FR_DTYPE_BF16 &&
           (plan->execution.kernels != FR_KERNELS_OWN || !plan->is_flash);
}

REFUSAL(is_other_precision)
{
    UNUSED_BUT(plan);
    return plan->precision != FR_DTYPE_F32 &&
           plan->precision != FR_DTYPE_TF32 && plan->precision != FR_DTYPE_BF16;
}

REFUSAL(has_other_gradients)
{
    UNUSED_BUT(plan);
    return plan->grad_dtype != FR_DTYPE_F32 &&
           plan->grad_dtype != FR_DTYPE_BF16;
}

REFUSAL(gathers_parameters)
{
    UNUSED_BUT(plan);
    return plan->zero_stage == 3 &&
           plan->execution.zero_unit == FR_ZERO_UNIT_PARAMETER;
}

/* ---- gradients ----------------------------------------------------------- */

REFUSAL(is_not_executed)
{
    UNUSED_BUT(plan);
    const fr_collective *entry = fr_collectives[plan->collective];
    return entry != NULL && entry->not_executable != NULL;
}

/* A server is a rank; on the host, of a node, of which there are as many at
 * most. */
REFUSAL(has_servers_apart)
{
    UNUSED_BUT(plan);
    const int64_t n_ranks = (int64_t)plan->dp * plan->cp;
    return fr_collective_is_by_servers(plan->collective) && n_ranks > 1 &&
           plan->n_servers > n_ranks;
}

/* Between GPUs the collectives are NCCL's. */
REFUSAL(lacks_nccl)
{
    UNUSED_BUT(plan);
    const fr_collective *entry = fr_collectives[plan->collective];
    return entry != NULL && !entry->has_nccl && plan->dp * plan->cp > 1;
}

REFUSAL(asks_nccl)
{
    UNUSED_BUT(plan);
    return plan->protocol != FR_PROTOCOL_AUTO || plan->n_channels > 0;
}

/* ---- the table ----------------------------------------------------------- */

enum {
    CPU = FR_RUNTIME_CPU,
    GPU = FR_RUNTIME_GPU,
    BOTH = FR_RUNTIME_BOTH,
    CPU_START = FR_RUNTIME_CPU_START
};
#define BIT FR_PLAN_BIT

const fr_plan_refusal fr_plan_refusals[] = {
    {"a list of layers without their operations", "give its layers ops", CPU, 0,
     is_list_of_amounts},
    {"a list of layers, on GPUs", "choose a decoder transformer", GPU, 0,
     is_list},
    {"a list of layers with other kernels than forerun's",
     "choose --kernels forerun", CPU, 0, is_list_of_others},
    {"a list of layers in other precisions than f32",
     "choose precision f32 and grad-dtype f32", CPU,
     BIT(PRECISION) | BIT(GRAD_DTYPE), is_narrow_list},
    {"compressed gradients of a list of layers", "choose compress none", CPU,
     BIT(COMPRESS), compresses_list},
    {"a batch norm of a single value, that of one image of one pixel",
     "choose micro-batch 2 or more, or larger images", CPU, BIT(MICRO_BATCH),
     norms_single_values},
    {"an encoder with neither a masked-token head nor labels",
     "choose BertForMaskedLM, BertForPreTraining or a vit with num_labels",
     BOTH, 0, is_other_encoder},
    {"compressed gradients of experts with tensor parallelism",
     "choose compress none or bf16, sequence parallelism, or tp 1", BOTH,
     BIT(COMPRESS) | BIT(TP) | BIT(SEQUENCE_PARALLEL), parts_routers},
    {"experts without gates or with biases", "choose gated experts", BOTH, 0,
     has_plain_experts},
    {"more than 1024 experts", "choose fewer", BOTH, 0, has_many_experts},
    {"more than one layer that predicts later tokens, or learned positions "
     "with one",
     "choose n_mtp_layers 1 with rotary positions", BOTH, 0,
     predicts_otherwise},
    {"ZeRO 3 with a layer that predicts later tokens", "choose zero 2", BOTH,
     BIT(ZERO), predicts_later_gathered},
    {"rotary frequencies rescaled otherwise than linear, llama3, yarn, dynamic",
     "leave rope scaling out", BOTH, 0, has_other_rope_scaling},
    {"attention heads of more than 256 columns, on GPUs",
     "choose a model with narrower heads", GPU, 0, has_wide_heads},
    {"layers of other kinds than attention: windows or chunks in turn, state "
     "spaces, linear attention, convolutions",
     "choose a model with attention in all layers", BOTH, 0, has_other_mixers},
    {"experts in layers without a period", "choose another model", BOTH, 0,
     has_marked_mlps},
    {"a decoder whose embedding is normed", "choose another model", BOTH, 0,
     norms_embedding},
#define TRAIT(symbol, name, refusal)                                           \
    {refusal, "choose another model", BOTH, 0, has_##symbol},
#include "spec/model/model_traits.inc"
#undef TRAIT
    {"precisions other than f32 and bf16", "choose precision f32 or bf16", CPU,
     BIT(PRECISION), is_unknown_to_cpus},
    {"gradients that are neither f32 nor of the plan's precision",
     "choose grad-dtype f32", CPU, BIT(PRECISION) | BIT(GRAD_DTYPE),
     adds_up_otherwise},
    {"bf16 with other kernels than forerun's, or attention that is not fused",
     "choose --kernels forerun --flash-attention", CPU,
     BIT(PRECISION) | BIT(FLASH_ATTENTION), is_narrow_of_others},
    {"precisions other than f32, tf32 and bf16", "choose precision bf16", GPU,
     BIT(PRECISION), is_other_precision},
    {"gradients other than f32 and bf16", "choose grad-dtype f32 or bf16", GPU,
     BIT(GRAD_DTYPE), has_other_gradients},
    {"ZeRO 3 parameter by parameter", "choose zero_unit layer", BOTH, BIT(ZERO),
     gathers_parameters},
    {"adding in the switch", "choose collective auto", BOTH, BIT(COLLECTIVE),
     is_not_executed},
    {"parameter servers that are no ranks", "choose servers 0 (all)", CPU,
     BIT(COLLECTIVE) | BIT(SERVERS) | BIT(DP) | BIT(CP), has_servers_apart},
    {"collectives that NCCL has not",
     "choose collective ring, double-tree or auto", GPU,
     BIT(COLLECTIVE) | BIT(DP) | BIT(CP), lacks_nccl},
    {"NCCL's protocol and channels on CPUs",
     "leave nccl_protocol and nccl_channels out", CPU_START,
     BIT(NCCL_PROTOCOL) | BIT(NCCL_CHANNELS), asks_nccl},
};

const int fr_n_plan_refusals = FR_LENGTH(fr_plan_refusals);

bool fr_plan_fields_are_due(uint64_t fields, uint64_t asked, uint64_t known)
{
    /* Refusals that depend only on the model, the job and facts of execution
     * are checked once, where degrees are decided. */
    if (fields == 0)
        fields = BIT(DP) | BIT(TP);
    return asked == FR_PLAN_BITS_ALL ||
           ((fields & asked) != 0 && (fields & ~(asked | known)) == 0);
}

fr_status fr_plan_check_refusals(unsigned on, uint64_t asked, uint64_t known,
                                 const fr_plan *plan, const fr_model *model,
                                 const fr_job *job, fr_err *err)
{
    for (int i = 0; i < fr_n_plan_refusals; i++) {
        const fr_plan_refusal *row = &fr_plan_refusals[i];
        if ((row->on & on) != 0 &&
            fr_plan_fields_are_due(row->fields, asked, known) &&
            row->is_met(plan, model, job))
            return fr_plan_refuse(err, row->what, row->mend);
    }
    return FR_OK;
}

/* ---- the runtime's checks ------------------------------------------------ */

static fr_status check(unsigned on, const fr_plan *plan, const fr_model *model,
                       const fr_job *job, fr_err *err)
{
    FR_TRY(fr_plan_check_lowerable(plan, model, job, err));
    return fr_plan_check_refusals(on, FR_PLAN_BITS_ALL, 0, plan, model, job,
                                  err);
}

fr_status fr_plan_check_executable(const fr_plan *plan, const fr_model *model,
                                   const fr_job *job, fr_err *err)
{
    return check(CPU | CPU_START, plan, model, job, err);
}

fr_status fr_plan_check_executable_gpu(const fr_plan *plan,
                                       const fr_model *model, const fr_job *job,
                                       fr_err *err)
{
    return check(GPU, plan, model, job, err);
}

static bool is_refused(unsigned on, const fr_plan *plan, const fr_model *model,
                       const fr_job *job)
{
    return fr_plan_check_refusals(on, FR_PLAN_BITS_ALL, 0, plan, model, job,
                                  NULL) != FR_OK;
}

bool fr_plan_is_executable(const fr_plan *plan, const fr_model *model,
                           const fr_job *job)
{
    if (is_refused(CPU, plan, model, job) &&
        (plan->execution.kernels != FR_KERNELS_OWN ||
         is_refused(GPU, plan, model, job)))
        return false;
    return fr_plan_check_lowerable(plan, model, job, NULL) == FR_OK;
}
