/*
 * lower_emit.h: the context in which segments are written, and how they are:
 * segments and instructions are appended to its two lists.
 *
 * Writers of segments know the model, the plan and the sizes of one rank.  They
 * know nothing of calls, blocks and pipeline ranks (program/lower/step/).
 */
#ifndef FR_PROGRAM_LOWER_SEGMENT_LOWER_EMIT_H
#define FR_PROGRAM_LOWER_SEGMENT_LOWER_EMIT_H

#include "core/base/vec.h"
#include "plan/outline/sharding.h"
#include "plan/schedule/schedule.h"
#include "program/ir/program.h"
#include "program/lower/framework/lower_target.h"

/* Sizes of one rank.  rows: tokens of a micro-batch. */
typedef struct lower_shape {
    int64_t batch;
    int64_t seq;         /* of this rank: a cp-th of the job's */
    int64_t rows;        /* batch x seq */
    int64_t stream_rows; /* of the residual stream: rows / tp with sequence
                            parallelism, else rows */
    int64_t hidden, q_heads, kv_heads, head_dim;
    int64_t v_dim; /* of a head: head_dim but in latent attention */
    int64_t attn;  /* q_heads * v_dim: what the output projection gets */
    int64_t qkv;   /* q_heads * head_dim + kv_heads * (head_dim + v_dim) */
    int64_t ffn;   /* width after the activation */
    int64_t fc1;   /* width before it: 2 ffn if gated */
    int64_t vocab, vocab_local;
    uint64_t stream_bytes; /* of stream_rows x hidden */
    /* Experts. */
    int64_t experts_local;          /* that this rank holds (a part of) */
    int64_t expert_ffn, expert_fc1; /* widths of its part of one */
    int64_t shared_ffn, shared_fc1; /* of the expert that all tokens see */
    int64_t routed_rows;            /* stream rows x experts per token */
    int64_t busy_rows;              /* of those that the busiest rank has */
    int64_t expert_rows; /* room for those that come to its experts */
} lower_shape;

#define LOWER_ABSENT UINT64_MAX /* place of what is not there */

/* A piece of a segment's scratch, in bytes. */
typedef struct lower_temp_range {
    uint64_t first, n;
} lower_temp_range;

typedef struct lower_pass lower_pass; /* lower_pass.h */
typedef struct lower_kind lower_kind; /* lower_kind.h */

typedef struct lower_context {
    const fr_model *model;
    const fr_job *job;
    const fr_plan *plan;
    const fr_schedule *schedule;
    const int32_t *node_of_rank; /* NULL: all on one node */
    int64_t n_micro;
    lower_shape shape;
    lower_kind *kinds;
    uint32_t n_kinds;
    const lower_kind *kind; /* whose segments are being written */
    fr_sharding sharding;
    lower_target target;
    bool is_local[FR_AXIS_N]; /* each group of the axis on one node */
    /* Segments under construction. */
    fr_vec(fr_instr) instrs;
    fr_vec(fr_segment) segments;
    uint64_t temp_used;
    lower_pass *pass;               /* that is being cut; else NULL */
    bool is_temp_kept;              /* no scratch is used twice ... */
    fr_vec(lower_temp_range) temps; /* ... and each piece is noted */
    fr_instr spill; /* written in place of an instruction without memory */
    bool is_out_of_memory;
} lower_context;

extern const fr_ref lower_absent;

/* The number of a new segment, to which instructions now go. */
uint32_t lower_segment_begin(lower_context *context, fr_lane lane,
                             const char *format, ...) FR_PRINTF(3, 4);
/* Never NULL; op and dtype are set, the rest is zero. */
fr_instr *lower_emit(lower_context *context, fr_op op);
fr_ref lower_ref(fr_space space, uint64_t offset_bytes);
/* The operand that begins n_bytes after `ref`. */
fr_ref lower_moved(fr_ref ref, uint64_t n_bytes);
/* Bytes of an element of the flat list: WEIGHT has the storage dtype of the
 * plan, GRAD its grad_dtype. */
uint64_t lower_element_bytes(const lower_context *context, fr_space space);
/* WEIGHT or GRAD at an element; absent where `first` is LOWER_ABSENT. */
fr_ref lower_parameter(const lower_context *context, fr_space space,
                       uint64_t first);
fr_ref lower_weight(const lower_context *context, uint64_t first);
fr_ref lower_grad(const lower_context *context, uint64_t first);
/* SAVED at an offset; absent where it is LOWER_ABSENT. */
fr_ref lower_saved_at(uint64_t offset_bytes);
/* Scratch of the segment; `mark` takes back what was made after it. */
fr_ref lower_temp(lower_context *context, uint64_t n_bytes);
uint64_t lower_temp_mark(const lower_context *context);
void lower_temp_reset(lower_context *context, uint64_t mark);
/* Returns the place where forward writes an activation: among the saved ones,
 * or scratch if it is not kept. */
fr_ref lower_place_kept(lower_context *context, uint64_t offset_bytes,
                        uint64_t n_bytes);
/* A collective of the outline; its lane is that of the segment. */
fr_instr *lower_move(lower_context *context, const fr_move *move);
/* A collective of n elements; in place where src is dst. */
fr_instr *lower_collective(lower_context *context, fr_op op, fr_axis axis,
                           fr_dtype dtype, uint64_t n, fr_ref src, fr_ref dst);
/* All instructions from number `first` on repeat forward's work. */
void lower_mark_recompute(lower_context *context, size_t first);
/* Gives all segments from number `first` on their role. */
void lower_segments_mark(lower_context *context, size_t first,
                         fr_segment_role role);

#endif
