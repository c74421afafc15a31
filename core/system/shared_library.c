/* shared_library.c: see shared_library.h. */
#include "core/system/shared_library.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

void *fr_library_open(const char *name)
{
    return dlopen(name, RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
}

bool fr_library_find(void *library, const char *function, void *out)
{
    void *found = dlsym(library != NULL ? library : RTLD_DEFAULT, function);

    /* POSIX lets one be the other, C has no cast for it. */
    memcpy(out, &found, sizeof found);
    return found != NULL;
}
