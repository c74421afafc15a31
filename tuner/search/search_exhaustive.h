/* search_exhaustive.h: everything, in the order of the space. */
#ifndef FR_TUNER_SEARCH_SEARCH_EXHAUSTIVE_H
#define FR_TUNER_SEARCH_SEARCH_EXHAUSTIVE_H

#include "tuner/search/search.h"

extern const fr_search fr_search_exhaustive;

#endif
