/* search_list.c: the list of search strategies. */
#include "tuner/answer/tune.h"
#include "tuner/search/search.h"
#include "tuner/search/search_bound.h"
#include "tuner/search/search_exhaustive.h"
#include "tuner/search/search_random.h"

#include <stddef.h>

const fr_search *const fr_searches[] = {&fr_search_bound, &fr_search_exhaustive,
                                        &fr_search_random, NULL};

const char *fr_search_name(int i)
{
    for (int k = 0; k <= i; k++)
        if (fr_searches[k] == NULL)
            return NULL;
    return fr_searches[i]->name;
}
