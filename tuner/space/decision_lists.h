/*
 * decision_lists.h: the choices of PIPELINE and GRADIENTS below a choice
 * of LAYERS.  A list is made once for all choices of LAYERS that agree in what
 * it depends on (set_words() in decision_lists.c).
 */
#ifndef FR_TUNER_SPACE_DECISION_LISTS_H
#define FR_TUNER_SPACE_DECISION_LISTS_H

#include "sim/bound/estimate.h"
#include "tuner/space/plan_space.h"

/* Neighbouring choices of GRADIENTS that hold the same state: they have the
 * same lower bound of memory and are variants of each other. */
typedef struct fr_gradient_group {
    size_t first, n;
    size_t i_free; /* the variant that waits least: fr_estimate_least() */
    fr_estimate_variants variants;
} fr_gradient_group;

typedef struct fr_decision_list {
    fr_plan_space_choices choices;
    fr_vec(fr_gradient_group) groups; /* of GRADIENTS */
    fr_vec(fr_estimate_share) shares; /* of PIPELINE, one for each choice */
    bool has_split[2];  /* schedules that do not split backward, that do */
    int32_t own_layers; /* of the first rank, the least */
} fr_decision_list;

typedef struct fr_decision_lists fr_decision_lists;

/* Borrows the request; one thread at a time.  Destroy takes NULL. */
FR_CHECKED fr_status fr_decision_lists_create(
    const fr_plan_space_request *request, fr_decision_lists **out, fr_err *err);
void fr_decision_lists_destroy(fr_decision_lists *lists);

/* *out stays until the lists are destroyed. */
FR_CHECKED fr_status fr_decision_lists_find(fr_decision_lists *lists,
                                            fr_decision_level level,
                                            const fr_plan *plan,
                                            const fr_decision_list **out,
                                            fr_err *err);

#endif
