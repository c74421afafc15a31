/*
 * program.h: what every rank does in one step, written once for both
 * interpreters (sim/, runtime/).
 *
 * A program has one rank program per kind of rank: a list of calls in program
 * order; a call runs a segment (a short list of instructions) on one lane with
 * base addresses, so a layer's forward stands once however many layers and
 * micro-batches run it.  Semantics:
 *
 *   - a lane runs its calls, and a call its instructions, in program order;
 *   - a call starts when its dependencies (earlier calls of the same rank
 *     program) are done; lanes are otherwise independent;
 *   - collectives of one (group, lane) match in order on every member, point
 *     to point matches by (sender, receiver, tag) in order, both rendezvous;
 *   - a step ends when all lanes are done; the same program runs every step.
 *
 * Memory: all buffers are blocks of one slab per rank at static offsets; a
 * block lives from call `first_call` to call `last_call`.  The peak is the
 * slab.  Persistent blocks are zero before the first step (weights apart); of
 * them parameters and optimizer state outlive a step.  An operand lies in one
 * block.  What is offloaded lies in host blocks, behind the slab, which space
 * HOST alone reaches.  All arrays are the program's.  See docs/program.md.
 */
#ifndef FR_PROGRAM_IR_PROGRAM_H
#define FR_PROGRAM_IR_PROGRAM_H

#include "core/base/err.h"
#include "plan/decide/plan.h"
#include "plan/op/op.h"
#include "plan/op/tensor.h"

/* The purpose of a segment.  Code reads this and never the name. */
typedef enum fr_segment_role {
    FR_SEGMENT_OTHER,          /* gradients, optimizer, the head ... */
    FR_SEGMENT_ZERO,           /* begins a step: gradients and scalars */
    FR_SEGMENT_CLIP,           /* the norm of all gradients is known */
    FR_SEGMENT_INPUT,          /* the input of a list of layers */
    FR_SEGMENT_EMBED,          /* the embedding's forward */
    FR_SEGMENT_EMBED_BACKWARD, /* of the embedding, or of what comes in */
    FR_SEGMENT_FORWARD,        /* of a layer, as all that follow */
    FR_SEGMENT_BACKWARD,       /* of inputs alone where a schedule splits it */
    FR_SEGMENT_WEIGHTS,        /* then: the gradients of weights */
    FR_SEGMENT_RECOMPUTE       /* makes again what forward made */
} fr_segment_role;

typedef struct fr_segment {
    char name[32]; /* for people: "layer_fwd", "head", "dp_reduce" ... */
    uint32_t first_instr, n_instrs; /* in program->instrs */
    uint8_t lane;                   /* fr_lane */
    uint8_t role;                   /* fr_segment_role */
    uint64_t temp_bytes;            /* scratch that a call of it needs */
} fr_segment;

typedef struct fr_call {
    uint32_t i_segment;
    int32_t layer;              /* global layer number, -1: none */
    int32_t micro_batch;        /* of this data-parallel rank, -1: none */
    int32_t chunk;              /* virtual stage of the rank, -1: none */
    uint32_t first_dep, n_deps; /* in rank_program->deps: earlier calls */
    uint32_t first_base;        /* in rank_program->bases: */
    uint32_t spaces;            /* of these (1 << fr_space), in their order */
} fr_call;

/* The purpose of a block: the parts of the memory report. */
typedef enum fr_memory_kind {
    FR_MEMORY_PARAMETERS,
    FR_MEMORY_GRADIENTS,
    FR_MEMORY_OPTIMIZER,
    FR_MEMORY_ACTIVATIONS,
    FR_MEMORY_BUFFERS,
    FR_MEMORY_N
} fr_memory_kind;

typedef struct fr_block {
    uint8_t kind;       /* fr_memory_kind */
    bool is_persistent; /* lives over all steps */
    uint64_t offset_bytes, n_bytes;
    uint32_t first_call, last_call;
} fr_block;

/* A rank among those that share tensors. */
typedef struct fr_tensor_place {
    int64_t tp, n_tp, ep, etp, n_etp;
} fr_tensor_place;

fr_tensor_place fr_tensor_place_of(const fr_plan *plan, int64_t rank);

/* The row and the column of the whole tensor that a rank has as its own: parts
 * are stacked and sharded one by one.  The bias of a stacked matrix has its
 * parts along its columns. */
int64_t fr_tensor_global_row(const fr_tensor *tensor, int64_t row,
                             const fr_tensor_place *place);
int64_t fr_tensor_global_col(const fr_tensor *tensor, int64_t col,
                             const fr_tensor_place *place);

/*
 * The loop of a rank program: each of its calls from first_call on does for
 * micro-batch i + repeat_micro what the call `period` calls before it does for
 * micro-batch i.
 */
typedef struct fr_repeat {
    uint32_t first_call, n_calls; /* n_calls: more than a few periods */
    uint32_t period;              /* calls; 0: it does not repeat */
} fr_repeat;

typedef struct fr_rank_program {
    int32_t pp; /* pipeline coordinate that it stands for */
    uint32_t n_calls;
    fr_call *calls;
    uint32_t n_deps;
    uint32_t *deps;
    uint32_t n_bases;
    uint64_t *bases; /* bytes from the begin of the slab */
    uint32_t n_blocks, n_host_blocks;
    fr_block *blocks, *host_blocks; /* of the host: slab_bytes and beyond */
    uint32_t n_tensors;
    fr_tensor *tensors;
    uint64_t n_parameters;        /* flat list, padding included */
    uint64_t weight_offset_bytes; /* the flat list in the slab ... */
    uint64_t grad_offset_bytes;   /* ... and that of the gradients */
    uint64_t step_offset_bytes;   /* fr_step_scalars */
    uint64_t slab_bytes;
    uint64_t host_bytes;
    fr_repeat repeat; /* used if program->n_repeats > 0 */
} fr_rank_program;

typedef struct fr_program {
    fr_plan plan;
    fr_job job;
    fr_model model;          /* shares nothing: layer lists are copied */
    int64_t n_micro_batches; /* of the data-parallel rank that has most */
    /* Calls are written for fewer micro-batches than there are: of each rank
     * program's `repeat` a period stands for 1 + n_repeats of them, in each of
     * which micro-batches are repeat_micro later.  0: all calls are there. */
    int64_t n_repeats;
    int32_t repeat_micro;
    uint32_t n_instrs;
    fr_instr *instrs;
    uint32_t n_segments;
    fr_segment *segments;
    uint32_t n_rank_programs; /* stages in order, class of shares by class */
    fr_rank_program *rank_programs;
} fr_program;

void fr_program_destroy(fr_program *program);

/*
 * Is it needed for the loss alone?  Not: backward, the reduction of gradients
 * and the optimizer.  A step of what is needed changes no parameter and no
 * state of the optimizer; ranks that talk to each other agree on it.
 */
bool fr_segment_is_evaluated(const fr_program *program,
                             const fr_segment *segment);

/* The base of a space of one of its calls; 0 where the call has none. */
uint64_t fr_call_base_bytes(const fr_rank_program *rank_program,
                            const fr_call *call, int space);

/* Returns the offset of a present operand in the slab of a rank that is at
 * coordinate[FR_AXIS_N] of its groups. */
uint64_t fr_call_operand_bytes(const fr_rank_program *rank_program,
                               const fr_call *call, const fr_instr *instr,
                               const int *coordinate, int i_ref);

/* All of them as pointers into the slab; NULL where one is absent. */
void fr_call_operands(const fr_rank_program *rank_program, const fr_call *call,
                      const fr_instr *instr, const int *coordinate, void *slab,
                      void *ptr[FR_INSTR_REFS]);

/* The rank program of a rank, and its number: by where it stands. */
uint32_t fr_program_number(const fr_plan *plan, int32_t pp, int32_t dp);
const fr_rank_program *fr_program_of_rank(const fr_program *program,
                                          int64_t rank);

/* Does it need other ranks: a collective, a send or a receive? */
static inline bool fr_instr_communicates(const fr_instr *instr)
{
    fr_op_class op_class = fr_op_class_of((fr_op)instr->op);

    return op_class == FR_OP_CLASS_COLLECTIVE || op_class == FR_OP_CLASS_P2P;
}

/*
 * Visits the instructions of a rank program in program order:
 *
 *     fr_instr_walk at = {.program = program, .rank_program = rank_program};
 *     while (fr_instr_walk_next(&at))
 *         use(at.instr);
 */
typedef struct fr_instr_walk {
    const fr_program *program;
    const fr_rank_program *rank_program;
    uint32_t i_call, i_instr; /* i_instr: in program->instrs */
    const fr_call *call;
    const fr_segment *segment;
    const fr_instr *instr;
    uint32_t n_visited; /* of the segment's instructions */
} fr_instr_walk;

/* Moves to the next one; false: there is none. */
bool fr_instr_walk_next(fr_instr_walk *walk);

/*
 * Proves, before anything runs: sends and receives match, no deadlock under
 * rendezvous, collectives in the same order on every member, blocks alive
 * when used, no two unordered calls race on the same bytes, nothing read
 * before it is written, every operand inside the slab.  FR_CHECK with the
 * first violation ("stage 1 call 17 layer_bwd mb 2: reads SAVED+4096 before
 * it is written"), and their number in *n_problems (may be NULL).
 */
FR_CHECKED fr_status fr_program_check(const fr_program *program,
                                      int *n_problems, fr_err *err);

/*
 * Live bytes by kind at the instant of the peak of a rank program, and their
 * sum. slab_bytes is larger by what packing at fixed offsets loses.
 * FR_NO_MEMORY.
 */
FR_CHECKED fr_status fr_rank_program_peak(const fr_rank_program *rank_program,
                                          uint64_t bytes[FR_MEMORY_N],
                                          uint64_t *peak_bytes, fr_err *err);

#endif
