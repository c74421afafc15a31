/*
 * ideal_bound.h: what no plan is better than, whatever it is: the model's
 * operations at the peak of all devices.  For searches that stop before they
 * have seen or bounded all plans.
 */
#ifndef FR_TUNER_BOUND_IDEAL_BOUND_H
#define FR_TUNER_BOUND_IDEAL_BOUND_H

#include "tuner/search/search.h"

/* Seconds of a step; 0 (nothing is known) for other goals than the step, and
 * on clusters with CPUs, whose peaks are not those of a datasheet. */
double fr_ideal_bound(const fr_search_input *in);

#endif
