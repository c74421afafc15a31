/*
 * lower.h: plan -> program, the only lowering there is.
 */
#ifndef FR_PROGRAM_LOWER_STEP_LOWER_H
#define FR_PROGRAM_LOWER_STEP_LOWER_H

#include "program/ir/program.h"

/* The facts of the machine that lowering needs: which ranks share a node, and
 * whether a framework executes the program. */
typedef struct fr_placement {
    int64_t n_ranks;
    const int32_t *node_of_rank; /* NULL: all on one node */
    /*
     * The program is what a GPU framework would do, and nothing that is run:
     * memory comes from the framework's allocator, so no two blocks share
     * addresses and slab_bytes means nothing; and sends are waited for as its
     * pipelines do (lower_transfer.c).
     */
    bool by_framework;
    /* Every micro-batch is written out, as for a timeline; else a step of many
     * may be written as one of few (program->n_repeats), by_framework alone. */
    bool is_whole;
    /* Passes over layers that may be written out; 0: as many as fit. */
    double most_calls;
} fr_placement;

/*
 * Lowers a plan; the program passes fr_program_check by construction (and
 * callers that execute it check anyway).  Errors: those of fr_plan_check,
 * FR_INPUT where more calls than fr_plan_check_calls() allows would have to be
 * written out, FR_NO_MEMORY.  *out is freed with fr_program_destroy().
 */
FR_CHECKED fr_status fr_lower(const fr_model *model, const fr_job *job,
                              const fr_plan *plan,
                              const fr_placement *placement, fr_program **out,
                              fr_err *err);

#endif
