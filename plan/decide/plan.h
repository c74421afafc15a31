/*
 * plan.h: every decision about how a job is laid out over ranks, and nothing
 * that follows from them (that is the program, see lower.h).  How a framework
 * carries them out is beside them (execution.h).
 */
#ifndef FR_PLAN_DECIDE_PLAN_H
#define FR_PLAN_DECIDE_PLAN_H

#include "core/base/err.h"
#include "plan/decide/execution.h"
#include "plan/decide/plan_kinds.h"
#include "plan/op/axis.h"
#include "plan/op/dtype.h"
#include "spec/model/job.h"
#include "spec/model/model.h"

#define FR_PLAN_MAX_STAGES 512 /* pp * vpp */
#define FR_PLAN_MAX_SHARES 256 /* dp of a plan with uneven shares */

typedef struct fr_plan {
    int32_t tp, pp, dp, cp, ep;
    int32_t vpp;         /* model chunks per pipeline rank, 1: plain */
    int64_t micro_batch; /* sequences */
    fr_schedule_kind schedule;
    int32_t zero_stage; /* 0 to 3; 2 and 3 reduce by layer, after every
                           micro-batch without a pipeline, once with one */
    int32_t zero_group; /* ranks that share one copy; 0: all of dp x cp */
    bool is_resharded;  /* ZeRO 3: gathered weights are dropped after forward */
    int32_t n_prefetch; /* ZeRO 3: layers gathered ahead of their use */
    fr_recompute recompute;
    uint32_t recompute_parts; /* of SELECTIVE */
    int32_t recompute_layers; /* FULL: of each chunk, from its first; 0: all */
    bool is_flash;            /* fused attention: no probabilities in memory */
    bool is_sequence_parallel;
    bool is_overlap;        /* gradient reduction beside backward */
    bool is_gather_overlap; /* ZeRO 1, 2: parameters gathered beside forward,
                               but at the end of the step where the CPU
                               runtime can train it */
    bool is_tp_overlap;     /* TP collectives in pieces beside products */
    bool is_ep_overlap;     /* a backward and the forward after it run layer by
                               layer in turn, so that experts' all-to-all of one
                               goes beside the passes of the other */
    fr_cp_kind cp_kind;
    int32_t etp; /* ranks that split one expert; 0: tp */
    fr_dispatch_kind expert_dispatch;
    /* Rows of a rank that go to one expert at most, over the mean of all; 0:
     * all go.  Those with the least weights are dropped. */
    double expert_capacity;
    bool is_expert_padded;          /* as many rows are sent as there may be */
    bool is_optimizer_offloaded;    /* state and step on the host */
    double activation_offload_frac; /* of what forward keeps, 0..1 */
    uint64_t bucket_bytes; /* of gradients, ZeRO 0 and 1; 0: one bucket */
    fr_compressor_kind compressor;
    int64_t compressor_rank;       /* PowerSGD */
    double compressor_density;     /* top-k, random-k: kept share */
    bool has_error_feedback;       /* of those that want it; else ignored */
    fr_collective_kind collective; /* of gradient reduction */
    fr_protocol protocol;          /* GPUs: NCCL's, of the same collectives */
    int32_t n_channels;            /* the same; 0: NCCL's choice */
    fr_server_place server_place;  /* PARAMETER_SERVER */
    int32_t n_servers; /* nodes (DEVICE: members) that serve; 0: all */
    fr_rank_order rank_order;
    fr_dtype precision; /* of matrix products; below 16 bits the rest is bf16 */
    fr_dtype grad_dtype; /* in which gradients add up and are reduced */
    int32_t n_threads;   /* compute threads per rank */
    /* Layers per stage (virtual stages in model order); n_split == 0: even,
     * the remainder on the first stages. */
    int32_t n_split;
    int32_t layer_split[FR_PLAN_MAX_STAGES];
    /* Micro-batches of each data-parallel rank, in the order of their
     * sequences in the global batch; n_shares == 0: as many each. */
    int32_t n_shares;
    int32_t batch_shares[FR_PLAN_MAX_SHARES];
    fr_execution execution; /* how all this is carried out: no decision */
} fr_plan;

/* One rank, every axis 1, no recompute, fp32, bucket 25 MB, overlap. */
void fr_plan_init(fr_plan *plan);

int64_t fr_plan_world(const fr_plan *plan); /* tp*pp*dp*cp */
/* dtype of parameters and activations: that of the precision, at least bf16;
 * f32 for tf32. */
fr_dtype fr_plan_storage_dtype(const fr_plan *plan);
/* Logits of 16 bits are read, and become gradients, where they are: by fused
 * losses and forerun's own kernel.  Otherwise the loss works on a float32
 * copy. */
bool fr_plan_is_loss_narrow(const fr_plan *plan);
/* Is there a float32 master copy beside the parameters? */
bool fr_plan_has_master(const fr_plan *plan);
/* Bytes of a checkpoint: weights, master copies and moments, each once in the
 * whole job. */
uint64_t fr_plan_checkpoint_bytes(const fr_plan *plan, const fr_model *model,
                                  const fr_job *job);
/* Micro-batches per step of the data-parallel rank that has most; 0 if they do
 * not come to the global batch. */
int64_t fr_plan_micro_batches(const fr_plan *plan, const fr_job *job);

/*
 * Is this a legal plan for the model and job?  FR_INPUT with the reason and
 * the mend in err ("heads 12 % tp 5 != 0; choose tp from 1,2,3,4,6,12").
 */
FR_CHECKED fr_status fr_plan_check(const fr_plan *plan, const fr_model *model,
                                   const fr_job *job, fr_err *err);

/* Is there a lowering for it?  What simulation can say: FR_INPUT names what it
 * cannot. */
FR_CHECKED fr_status fr_plan_check_lowerable(const fr_plan *plan,
                                             const fr_model *model,
                                             const fr_job *job, fr_err *err);

/* Can the CPU runtime train it?  A plan that only simulation knows (experts,
 * context parallel, ZeRO 2/3, half precision ...) is FR_INPUT. */
FR_CHECKED fr_status fr_plan_check_executable(const fr_plan *plan,
                                              const fr_model *model,
                                              const fr_job *job, fr_err *err);
/* Can the runtime on GPUs?  It knows tf32 and bf16 too, and activations that
 * wait on the host; the table of its kernels has the last word. */
FR_CHECKED fr_status fr_plan_check_executable_gpu(const fr_plan *plan,
                                                  const fr_model *model,
                                                  const fr_job *job,
                                                  fr_err *err);

/* Does lowering make just the runtime's instructions?  Plans for the CPU, and
 * plans for GPUs with FR_KERNELS_OWN. */
bool fr_plan_is_executable(const fr_plan *plan, const fr_model *model,
                           const fr_job *job);

/* Layers of stage i (virtual stages in model order: chunk * pp + pp rank). */
int32_t fr_plan_stage_layers(const fr_plan *plan, const fr_model *model,
                             int32_t i_stage);
/* The same of a plan without a split of its own. */
int32_t fr_plan_even_layers(const fr_plan *plan, const fr_model *model,
                            int32_t i_stage);

/* "dp2 tp1 pp2 mb4 1f1b zero1": stable, unique, short; returns buf. */
char *fr_plan_describe(const fr_plan *plan, char *buf, size_t n_buf);

#endif
