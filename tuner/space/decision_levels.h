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
    FR_DECISION_LAYERS,    /* the places of ranks and the costs of layers */
    FR_DECISION_PIPELINE,  /* the layers of each rank, and the order of its
                              passes */
    FR_DECISION_GRADIENTS, /* the communication during and after the passes */
    FR_DECISION_N
} fr_decision_level;

#endif
