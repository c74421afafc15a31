/*
 * framework_table.c: the list of frameworks.  It has nothing else, so that a
 * test can link a list of its own, with a framework more.
 */
#include "frameworks/framework_list.h"

#define ENTRY(entry) &fr_framework_##entry,
const fr_framework *const fr_frameworks[] = {FR_FRAMEWORKS(ENTRY)};
const int fr_n_frameworks = (int)FR_LENGTH(fr_frameworks);
