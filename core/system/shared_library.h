/*
 * shared_library.h: libraries that are loaded by name when they are needed.
 * They stay loaded until the process ends, for what they keep for it cannot be
 * taken back.
 */
#ifndef FR_CORE_SYSTEM_SHARED_LIBRARY_H
#define FR_CORE_SYSTEM_SHARED_LIBRARY_H

#include <stdbool.h>

/* NULL: the loader has none that fits; dlerror() says why. */
void *fr_library_open(const char *name);

/*
 * Writes the address of a function of the library (NULL: of any that is
 * loaded) to the pointer to a function at `out`.  False: it has none, and the
 * pointer is NULL.
 */
bool fr_library_find(void *library, const char *function, void *out);

#endif
