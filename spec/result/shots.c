/* shots.c: see shots.h. */
#include "spec/result/shots.h"

#include "core/base/hash.h"

#include <stdlib.h>
#include <string.h>

void fr_shots_release(fr_shots *shots)
{
    free(shots->sources);
    memset(shots, 0, sizeof *shots);
}

bool fr_source_is_frozen(const char *name)
{
    return (fr_hash_text(name, 0) & 1) != 0;
}
