/*
 * search_bound.h: best first, by the bound of every plan; GPU clusters.
 *
 * The best plans by estimate are simulated first, then the others in the order
 * of their lower bounds, until the lowest bound left is no less than the best
 * simulation: the proof that there is no faster one.
 */
#ifndef FR_TUNER_SEARCH_SEARCH_BOUND_H
#define FR_TUNER_SEARCH_SEARCH_BOUND_H

#include "tuner/search/search.h"

extern const fr_search fr_search_bound;

#endif
