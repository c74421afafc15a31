/*
 * faults.h: faults on purpose: the words of --inject.
 *
 *     kill:rank=2@30,slow:rank=1x2@10..40,read:20MB/s@10..40
 *
 * KIND:rank=R[xFACTOR]@[step=]FIRST[..LAST], separated by commas; a rate of
 * reading is that of each rank.  A kind is a row of a table (faults.c); what
 * it does is whoever's who carries it out.
 * Steps count from 0, as everywhere; a fault happens the first time that its
 * step is reached, and not again where a run repeats the step.
 */
#ifndef FR_SPEC_MODEL_FAULTS_H
#define FR_SPEC_MODEL_FAULTS_H

#include "core/base/vec.h"

typedef enum fr_fault_kind {
    FR_FAULT_KILL, /* the rank's process dies, and can be started again */
    FR_FAULT_LOSE, /* so does its place: there is one less from then on */
    FR_FAULT_JOIN, /* a place is there again; the rank is of no meaning */
    FR_FAULT_HANG, /* the rank stands still from that step on */
    FR_FAULT_SLOW, /* it computes so many times as long */
    FR_FAULT_READ, /* training data come no faster than the rate */
    FR_FAULT_N
} fr_fault_kind;

typedef struct fr_fault {
    fr_fault_kind kind;
    int64_t rank;                /* -1: every one */
    double factor;               /* 1: none was given */
    double rate_Bps;             /* 0: none was given */
    int64_t first_step, n_steps; /* n_steps >= 1 */
} fr_fault;

typedef fr_vec(fr_fault) fr_faults;

/* Appends; fr_vec_release(out) frees, also after a failure.  FR_USAGE names
 * the word and the mend. */
FR_CHECKED fr_status fr_faults_parse(const char *text, fr_faults *out,
                                     fr_err *err);

/* The first fault of the kind, of that rank (-1: of any), that happens at the
 * step; NULL: none. */
const fr_fault *fr_faults_at(const fr_faults *faults, fr_fault_kind kind,
                             int64_t rank, int64_t step);

/* Removes faults that happen once and have happened at a step up to
 * `reached`. */
void fr_faults_forget(fr_faults *faults, int64_t reached);
/* Returns how many faults of a kind have begun by then. */
int64_t fr_faults_count(const fr_faults *faults, fr_fault_kind kind,
                        int64_t reached);

/* Is there one of the kind? */
bool fr_faults_has(const fr_faults *faults, fr_fault_kind kind);
/* FR_USAGE where a fault is of a rank that `world` ranks do not have, or of a
 * step that a run of so many never comes to. */
FR_CHECKED fr_status fr_faults_check(const fr_faults *faults, int64_t world,
                                     int64_t n_steps, fr_err *err);

#endif
