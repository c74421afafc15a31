/* search_random.h: random plans and their neighbours, for spaces that cannot
 * be bounded, or not be walked in time. */
#ifndef FR_TUNER_SEARCH_SEARCH_RANDOM_H
#define FR_TUNER_SEARCH_SEARCH_RANDOM_H

#include "tuner/search/search.h"

extern const fr_search fr_search_random;

#endif
