/*
 * collective_table.c: the table of collective algorithms.  It has nothing
 * else, so that a test can link a table of its own, with an algorithm more.
 */
#include "plan/collective/collective.h"

#define ENTRY(name, entry) &fr_collective_##entry,
const fr_collective *const fr_collectives[] = {NULL, FR_COLLECTIVES(ENTRY)};
const int fr_n_collectives = FR_COLLECTIVE_N;
