/*
 * compressor.h: gradient compressors as descriptors; encoding and decoding
 * are COMPRESS and DECOMPRESS (kernels/cpu/kernels_compress*.c).
 *
 * A gradient bucket is a range of a rank program's flat parameter list.  How
 * the data-parallel sum of a bucket is made depends on `wire`:
 *
 *   PLAIN    no COMPRESS at all: ALL_REDUCE (REDUCE_SCATTER) of the gradient
 *   GATHER   COMPRESS stage 0 -> own payload; ALL_GATHER of the payloads (as
 *            bytes, dtype U8, may be in place); DECOMPRESS of all n_payloads,
 *            which sums in fp32 in coordinate order: the same bits everywhere
 *   REDUCE   payloads that can be added, elements of wire_dtype: for each
 *            stage s: COMPRESS stage s, then ALL_REDUCE of that stage's payload
 *            in place; at the end one DECOMPRESS.  The operand `payload` of
 *            all of them is the start of one wire area, in which the payloads
 *            of the stages follow each other.  A stage whose payload has 0
 *            bytes has no ALL_REDUCE.
 *
 * Gradients are sums (the loss is scaled by 1/global tokens), so nothing is
 * divided by the number of ranks.
 *
 * bf16 is REDUCE as in PyTorch's hook (bf16_compress_hook: cast, all_reduce,
 * cast back; torch/distributed/algorithms/ddp_comm_hooks/default_hooks.py): two
 * bytes an element go over the wire as four would, where a gather brings those
 * of n - 1 ranks to each.  The price is a rounding to bf16 after the additions.
 *
 * `is_elementwise`: a payload has an element for each gradient.  Where ZeRO
 * scatters the bucket and payloads add up, the payload is scattered as the
 * gradient would be, and a rank decodes its own shard; others are gathered.
 */
#ifndef FR_PLAN_CODEC_COMPRESSOR_H
#define FR_PLAN_CODEC_COMPRESSOR_H

#include "core/base/err.h"
#include "plan/decide/plan.h"
#include "plan/op/tensor.h"

typedef struct fr_bucket {
    uint64_t first, n;        /* elements of the flat parameter list */
    const fr_tensor *tensors; /* of the whole rank program, ascending `first` */
    uint32_t n_tensors;
} fr_bucket;

typedef enum fr_wire { FR_WIRE_PLAIN, FR_WIRE_GATHER, FR_WIRE_REDUCE } fr_wire;

#define FR_INT8_BLOCK 256    /* elements that share one scale */
#define FR_ONEBIT_BLOCK 1024 /* the same; a multiple of 32 */
#define FR_POWERSGD_MAX_RANK 64

/*
 * In fr_compress_dims, payload_bytes is for one rank and all stages; n_payloads
 * is the number of ranks of the group if DECOMPRESS follows a GATHER, else 1.
 */
enum { FR_COMPRESS_STAGES = 2 }; /* that a compressor has at most */

/* The number of the plan that a compressor goes by. */
typedef enum fr_compressor_number {
    FR_COMPRESSOR_BY_NOTHING,
    FR_COMPRESSOR_BY_RANK,   /* plan->compressor_rank */
    FR_COMPRESSOR_BY_DENSITY /* plan->compressor_density */
} fr_compressor_number;

/*
 * Operators of a framework, each of which is a kernel that reads its operands
 * from memory and writes its result there: kernels per call, bytes that they
 * move per element of the gradient and per byte of a payload.  Counted from
 * public implementations: the operators of sands-lab/grace (commit fd3a7f4,
 * grace_dl/tensorflow/compressor/ and grace_dl/torch/), each with what it must
 * read and write of 4-byte elements; gathers and scatters of single elements
 * move sectors of 32 bytes.
 */
typedef struct fr_codec_work {
    int n_kernels;
    double element_bytes, payload_ratio;
    bool is_selection; /* of the largest elements besides */
} fr_codec_work;

/*
 * All that the rest knows of a compressor: legality, lowering, memory, search
 * and calibration ask these members and never for one compressor by its
 * number; only FR_COMPRESSOR_NONE is told apart, as the absence of one.
 */
typedef struct fr_compressor {
    const char *name;
    const char *summary;
    fr_compressor_number number;
    bool wants_matrices; /* shapes, which a list of layers does not tell */
    bool has_indices; /* decoding follows indices: no bytes but real ones do */
    bool is_lossy;
    bool is_elementwise;
    bool wants_error_feedback; /* else plan->has_error_feedback is ignored */
    fr_wire wire;
    fr_dtype wire_dtype; /* of REDUCE: what is added */
    int n_stages;        /* 1 to FR_COMPRESS_STAGES */
    /* Bytes of one rank's payload of one stage; a multiple of 4. */
    uint64_t (*stage_bytes)(const fr_plan *plan, const fr_bucket *bucket,
                            int stage);
    /* Persistent bytes at operand `error` of the bucket, zero before the
     * first step: error feedback (fp32, n) first, then the rest.  0: the
     * operand is absent. */
    uint64_t (*state_bytes)(const fr_plan *plan, const fr_bucket *bucket);
    /* FR_INPUT with reason and mend when the plan cannot have it. */
    fr_status (*check)(const fr_plan *plan, fr_err *err);
    /* As a framework's operators, where it has no kernel for it: a COMPRESS of
     * one stage without error feedback, a DECOMPRESS of one payload. */
    fr_codec_work encode, decode;
} fr_compressor;

/* The work of every compressor with error feedback besides decoding its own
 * payload: it adds the error before, and subtracts the sent values from the
 * sum. */
extern const fr_codec_work fr_codec_feedback;
/* To add a decoded payload to those before it. */
extern const fr_codec_work fr_codec_sum;

/* Indexed by fr_compressor_kind, fr_n_compressors of them. */
extern const fr_compressor *const fr_compressors[];

/* The entries, one file each. */
#define FR_COMPRESSOR_ENTRY(name, entry)                                       \
    extern const fr_compressor fr_compressor_##entry;
FR_COMPRESSORS(FR_COMPRESSOR_ENTRY)
#undef FR_COMPRESSOR_ENTRY

/* Members that several compressors share: the error of feedback alone as state
 * or no state, no condition, or none but that the bucket is not scattered. */
uint64_t fr_compressor_error_bytes(const fr_plan *plan,
                                   const fr_bucket *bucket);
uint64_t fr_compressor_no_state(const fr_plan *plan, const fr_bucket *bucket);
FR_CHECKED fr_status fr_compressor_check_nothing(const fr_plan *plan,
                                                 fr_err *err);
FR_CHECKED fr_status fr_compressor_check_no_zero(const fr_plan *plan,
                                                 const char *name,
                                                 const char *why, fr_err *err);
/* The same, but that shards of a part of the ranks may be what is encoded
 * (fr_sharding_codes_shards). */
FR_CHECKED fr_status fr_compressor_check_shards(const fr_plan *plan,
                                                const char *name,
                                                const char *why, fr_err *err);
/* To the next multiple of 4, as payloads are. */
uint64_t fr_compressor_round_up(uint64_t n_bytes);

/* The compressor of a plan; all stages' payload; does it keep the error? */
const fr_compressor *fr_compressor_of(const fr_plan *plan);
uint64_t fr_compressor_payload_bytes(const fr_plan *plan,
                                     const fr_bucket *bucket);
bool fr_compressor_has_error(const fr_plan *plan);

/* Reads the number that the plan's compressor goes by: false where it has none
 * or the text is no number. */
bool fr_compressor_set_number(const char *text, fr_plan *plan);
/* Sets the default number of the compressor if the plan has none. */
void fr_compressor_mend_number(fr_plan *plan);

/* Elements that top-k and random-k keep of n: round(density * n), at least 1.
 */
uint64_t fr_topk_kept(double density, uint64_t n);

/* onebit's scales, one for each block of n elements. */
uint64_t fr_onebit_blocks(uint64_t n);

/*
 * random-k cuts n elements into k runs that differ by one element at most and
 * sends one of each, drawn anew in each step from a seed that all ranks share
 * (`key`): payloads have the same elements everywhere and add up.  The i-th of
 * k that is kept.
 */
uint64_t fr_randomk_index(uint64_t key, uint64_t n, uint64_t k, uint64_t i);

/*
 * PowerSGD (Vogels, Karimireddy, Jaggi, NeurIPS 2019, arXiv 1905.13727) cuts
 * a bucket into matrices M[rows, cols] (the whole rows of each tensor with
 * rows > 1 that pay: rank*(rows+cols) < rows*cols) and raw runs (all else,
 * sent as they are).  stage 0 payload: raw values, then all P[rows, rank];
 * stage 1: all Q[cols, rank].  State: error[n] if kept, all P, all Q.
 */
typedef struct fr_powersgd_piece {
    uint64_t first, n; /* elements, relative to the bucket */
    bool is_matrix;
    int64_t rows, cols, rank;
    uint32_t tensor_id;
    uint64_t raw, p, q; /* element offsets within the raw, P and Q parts */
} fr_powersgd_piece;

/*
 * Walks the pieces in order: starts with a zeroed *piece, returns false at
 * the end, when raw, p, q hold the totals.
 */
bool fr_powersgd_next(const fr_bucket *bucket, int64_t rank,
                      fr_powersgd_piece *piece);

#endif
