/* builder_interleave.c: two lists of calls become one. */
#include "program/ir/builder_state.h"

#include <string.h>

/* Finds the begins and ends of lives anew, for the calls after `first`. */
static void live_again(fr_builder *builder, uint32_t first)
{
    const builder_call *calls = builder->calls.items;
    for (uint32_t now = first + 1; now <= builder->calls.n; now++)
        for (uint32_t u = 0; u < calls[now - 1].n_uses; u++) {
            builder_use use = builder->uses.items[calls[now - 1].first_use + u];
            if (use.access != 0 && use.access != BUILDER_AFTER &&
                builder->blocks.items[use.block].first_call > first)
                builder->blocks.items[use.block].first_call = 0;
        }
    for (uint32_t now = first + 1; now <= builder->calls.n; now++)
        for (uint32_t u = 0; u < calls[now - 1].n_uses; u++) {
            builder_use use = builder->uses.items[calls[now - 1].first_use + u];
            if (use.access != 0 && use.access != BUILDER_AFTER)
                builder_live_on(builder, use.block, now);
        }
}

void fr_builder_interleave(fr_builder *builder, uint32_t first, uint32_t middle,
                           fr_lane lane)
{
    const uint32_t end[2] = {middle, (uint32_t)builder->calls.n};
    uint32_t next[2] = {first, middle}, n = 0;
    if (builder->is_out_of_memory)
        return;
    builder_call *merged = malloc((end[1] - first + 1) * sizeof *merged);
    if (merged == NULL) {
        builder->is_out_of_memory = true;
        return;
    }
    for (int from = 0; next[0] < end[0] || next[1] < end[1]; from = !from)
        while (next[from] < end[from]) {
            merged[n] = builder->calls.items[next[from]++];
            if (merged[n++].lane == lane)
                break;
        }
    /* A call that follows a lane must now follow the last call there. */
    for (uint32_t i = 0; i < n; i++)
        if (merged[i].follows > 0)
            merged[i].follows =
                1 + builder->calls.items[merged[i].follows - 1].lane;
    memcpy(&builder->calls.items[first], merged, n * sizeof *merged);
    free(merged);
    for (uint32_t i = first; i < end[1]; i++) {
        builder_call *call = &builder->calls.items[i];
        if (call->follows > 0)
            call->follows = builder_last_before(builder, i + 1,
                                                (fr_lane)(call->follows - 1));
    }
    live_again(builder, first);
}
