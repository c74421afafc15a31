/*
 * optimizer.h: the optimizers as descriptors (state, cost, needs); the
 * kernels are kernels_optim.c.  One symbol per fr_optimizer_kind.
 *
 * In all of them g is the reduced gradient times the clip factor, lr is
 * fr_job_lr(job, i_step), t = i_step + 1, and wd is job->weight_decay for
 * tensors with is_decayed and 0 for the others.
 *
 *   SGD    m = beta1 m + (g + wd w);  w -= lr m
 *          (heavy ball, no dampening; Polyak 1964, as in PyTorch)
 *   ADAMW  m = beta1 m + (1-beta1) g;  v = beta2 v + (1-beta2) g^2
 *          w -= lr (mh / (sqrt(vh) + eps) + wd w)
 *          mh = m / (1-beta1^t), vh = v / (1-beta2^t)
 *          (Loshchilov and Hutter, ICLR 2019, arXiv 1711.05101, alg. 2)
 *   LARS   m = beta1 m + lr r (g + wd w);  w -= m
 *          r = trust |w| / (|g| + wd |w|)
 *          (You, Gitman, Ginsburg 2017, arXiv 1708.03888, alg. 1)
 *   LAMB   m, v as ADAMW;  u = mh / (sqrt(vh) + eps) + wd w
 *          w -= lr r u;  r = |w| / |u|
 *          (You et al., ICLR 2020, arXiv 1904.00962, alg. 2, phi = identity)
 *
 * Running statistics (is_statistic) are in no norm and have no moments: what
 * stands in the place of their gradient is what they are from those of the
 * step, of which they go a tenth of the way (the momentum of PyTorch's batch
 * norms).
 *
 * |.| is the 2-norm of the whole tensor over all of its shards.  r is 1 where
 * a norm is 0 and for tensors that are not decayed (norms, biases), as in the
 * authors' own code, which leaves those out of the adaptation.
 */
#ifndef FR_PLAN_CODEC_OPTIMIZER_H
#define FR_PLAN_CODEC_OPTIMIZER_H

#include "core/base/err.h"
#include "spec/model/job.h"

#define FR_STATISTIC_RATE 0.1

/*
 * State of a range of n elements, at operand `opt` of its instructions: the
 * first moment m[n], then (n_moments == 2) the second v[n], fp32.  All zero
 * before the first step.
 *
 * Where has_norms, a step has one buffer norms[2*n_tensors] (F64) per rank:
 * ZERO it, OPT_NORMS of every range adds {|w|^2, |g|^2 (LARS) or |u|^2
 * (LAMB)} of the tensor i at [2i], [2i+1], then it is summed over TP (a
 * tensor that TP replicates is counted on TP coordinate 0 only), and over DP
 * too where ZeRO has cut the ranges, then OPT_STEP of every range.  Norms are
 * never summed over pipeline stages: each stage counts its own copy of a tied
 * matrix.  LAMB's moments move on in OPT_NORMS, the others' in OPT_STEP.
 */
typedef struct fr_optimizer {
    fr_optimizer_kind kind;
    const char *name;
    const char *summary;
    int n_moments;             /* fp32 values of state per parameter */
    bool has_norms;            /* OPT_NORMS and a sum come before OPT_STEP */
    uint32_t step_flop;        /* per parameter, OPT_STEP */
    uint32_t norms_flop;       /* per parameter, OPT_NORMS; 0: none */
    uint32_t step_moved_bytes; /* per parameter, read plus written, OPT_STEP */
    uint32_t norms_moved_bytes;
    fr_lr_rule large_batch_rule; /* the usual lr rule as the batch grows */
} fr_optimizer;

/* Indexed by fr_optimizer_kind. */
extern const fr_optimizer *const fr_optimizers[FR_OPTIMIZER_N];

/* The state, and behind it the float32 master copy if there is one. */
uint64_t fr_optimizer_resident_bytes(fr_optimizer_kind kind, uint64_t n,
                                     bool has_master);

/* Bytes of state of a range of n parameters. */
uint64_t fr_optimizer_state_bytes(fr_optimizer_kind kind, uint64_t n);

#endif
