/*
 * storey_lists.h: what PIPELINE and GRADIENTS can be below a choice of LAYERS,
 * listed once for all that it depends on (the words of storey_lists.c).
 */
#ifndef FR_TUNER_STOREY_LISTS_H
#define FR_TUNER_STOREY_LISTS_H

#include "tuner/plan_space.h"

typedef struct fr_storey_lists fr_storey_lists;

/* Borrows the request; one thread at a time.  Destroy takes NULL. */
FR_CHECKED fr_status fr_storey_lists_create(
    const fr_plan_space_request *request, fr_storey_lists **out, fr_err *err);
void fr_storey_lists_destroy(fr_storey_lists *lists);

/* *out stays until the lists are destroyed. */
FR_CHECKED fr_status fr_storey_lists_find(fr_storey_lists *lists,
                                          fr_plan_space_storey storey,
                                          const fr_plan *plan,
                                          const fr_plan_space_choices **out,
                                          fr_err *err);

#endif
