/* shots.c: see shots.h. */
#include "spec/result/shots.h"

#include <stdlib.h>
#include <string.h>

void fr_shots_release(fr_shots *shots)
{
    free(shots->sources);
    memset(shots, 0, sizeof *shots);
}
