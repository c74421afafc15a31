/*
 * random_layouts.h: plans drawn over every item of fr_plan_items, of which
 * each is one that a backend trains, with a small model and a job of their own.
 * A field, a strategy or a kind that becomes executable is drawn by itself.
 */
#ifndef FR_TESTS_RANDOM_LAYOUTS_H
#define FR_TESTS_RANDOM_LAYOUTS_H

#include "plan/decide/plan.h"

enum { RANDOM_LAYOUT_MAX_RANKS = 8 };

typedef struct random_layout {
    fr_plan plan;
    fr_model model; /* no layers of its own: needs no release */
    fr_job job;
    int32_t node_of_rank[RANDOM_LAYOUT_MAX_RANKS];
    bool is_gpu;
} random_layout;

/* Layout i of a seed: the same ones whatever is drawn before. */
FR_CHECKED fr_status random_layout_draw(uint64_t seed, uint64_t i, bool is_gpu,
                                        random_layout *out, fr_err *err);

/* The same training by one CPU rank, one sequence at a time (where experts
 * drop rows, one micro-batch). */
random_layout random_layout_alone(const random_layout *layout);

/* The layout without what its k-th decision is, as far as it is then trained;
 * false: there are not so many decisions. */
bool random_layout_simpler(const random_layout *layout, int k,
                           random_layout *out);

/* Plan, model, job and nodes in one line. */
void random_layout_describe(const random_layout *layout, char *buf,
                            size_t n_buf);

#endif
