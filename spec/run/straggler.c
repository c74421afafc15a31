/* straggler.c: see straggler.h. */
#include "spec/run/straggler.h"

#include "core/base/text.h"

#include <stdio.h>
#include <string.h>

static const char *const kinds[] = {"rank", "stage", "link"};
const fr_names fr_slow_names = FR_NAMES(kinds);

char *fr_straggler_text(const fr_straggler *s, char *buf, int n_buf)
{
    static const char exposed[] = "exposed_";
    const char *part = fr_part_name(s->part);
    const size_t n = (size_t)n_buf;

    if (fr_text_starts(part, exposed))
        part += strlen(exposed);
    switch (s->kind) {
    case FR_SLOW_RANK:
        (void)snprintf(buf, n,
                       "rank %lld computes %.2f times as long as the ranks "
                       "beside it",
                       (long long)s->index, s->factor);
        break;
    case FR_SLOW_STAGE:
        (void)snprintf(buf, n,
                       "pipeline stage %lld (%srank %lld) computes %.2f times "
                       "as long as it did at first",
                       (long long)s->index, s->n_ranks > 1 ? "from " : "",
                       (long long)s->rank, s->factor);
        break;
    default:
        (void)snprintf(buf, n,
                       "transfers of the %s group of rank %lld take %.2f times "
                       "as long as they should",
                       part, (long long)s->index, s->factor);
    }
    return buf;
}
