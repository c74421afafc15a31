/*
 * lower_dispatch.h: rows of the stream to the experts' ranks and back, and the
 * small things that go the same way: a float for each row, counts of rows.
 */
#ifndef FR_PROGRAM_LOWER_EXPERTS_LOWER_DISPATCH_H
#define FR_PROGRAM_LOWER_EXPERTS_LOWER_DISPATCH_H

#include "program/lower/segment/lower_shape.h"

/* Ranks whose rows an expert's rank has, one after the other; 1 where nobody
 * says who goes where. */
int64_t lower_expert_runs(const lower_context *context);

/* Scratch for rows of the stream's width; bytes of n floats. */
fr_ref lower_temp_rows(lower_context *context, int64_t rows);
uint64_t lower_float_bytes(int64_t n);

/* Brings rows of the stream to those of the experts; with their weights, where
 * there is a place for these. */
void lower_dispatch(lower_context *context, fr_ref chosen, fr_ref x, fr_ref out,
                    fr_ref weights);
/* Brings rows of the experts back to those of the stream and adds them up. */
void lower_combine(lower_context *context, fr_ref chosen, fr_ref y, fr_ref out);

/* A float for each row, or counts, n of the own: where they are made that
 * become `out` on the experts' side; their way there. */
fr_ref lower_small_own(lower_context *context, int64_t n, fr_ref out);
void lower_small_to_experts(lower_context *context, int64_t n, fr_ref own,
                            fr_ref out);
/* Each rank that splits an expert has a part of the gradients of its rows'
 * weights: they are added up, and go to whose rows they are. */
void lower_weights_from_experts(lower_context *context, fr_ref partial,
                                fr_ref own);

#endif
