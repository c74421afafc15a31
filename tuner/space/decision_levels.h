/*
 * decision_levels.h: the three levels in which a plan of a space is decided.
 *
 * Axes of a decision level depend on those before them.  What PIPELINE and
 * GRADIENTS can be depends on LAYERS alone and not on each other, so below one
 * choice of LAYERS there are as many plans as the product of what the two have.
 */
#ifndef FR_TUNER_SPACE_DECISION_LEVELS_H
#define FR_TUNER_SPACE_DECISION_LEVELS_H

typedef enum fr_decision_level {
    FR_DECISION_LAYERS,    /* where ranks sit and what a layer costs */
    FR_DECISION_PIPELINE,  /* who has which layers, and their order */
    FR_DECISION_GRADIENTS, /* what comes beside and after the passes */
    FR_DECISION_N
} fr_decision_level;

#endif
