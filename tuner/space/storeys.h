/*
 * storeys.h: the three storeys in which the axes of a space stand.
 *
 * Axes of a storey depend on those before them.  What PIPELINE and GRADIENTS
 * can be depends on LAYERS alone and not on each other, so below one choice of
 * LAYERS there are as many plans as the product of what the two have.
 */
#ifndef FR_TUNER_SPACE_STOREYS_H
#define FR_TUNER_SPACE_STOREYS_H

typedef enum fr_plan_space_storey {
    FR_STOREY_LAYERS,    /* where ranks sit and what a layer costs */
    FR_STOREY_PIPELINE,  /* who has which layers, and their order */
    FR_STOREY_GRADIENTS, /* what comes beside and after the passes */
    FR_STOREY_N
} fr_plan_space_storey;

#endif
