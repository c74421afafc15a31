/* measured.c: the list of kinds. */
#include "api/import/measured.h"

#include <string.h>

static const fr_measured_kind kinds[] = {
    {"log", fr_import_runlog},
    {"kineto", fr_import_kineto},
    {"nsys", fr_import_nsys},
    {"chakra", fr_import_chakra},
    {"memory-snapshot", fr_import_snapshot},
};

const char *fr_measured_name(int i)
{
    return i >= 0 && i < (int)FR_LENGTH(kinds) ? kinds[i].name : NULL;
}

const fr_measured_kind *fr_measured_find(const char *name)
{
    for (size_t i = 0; i < FR_LENGTH(kinds); i++)
        if (strcmp(kinds[i].name, name) == 0)
            return &kinds[i];
    return NULL;
}
