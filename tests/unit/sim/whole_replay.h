/* whole_replay.h: a replay that is prepared and finished at once. */
#ifndef FR_TESTS_WHOLE_REPLAY_H
#define FR_TESTS_WHOLE_REPLAY_H

#include "sim/replay/replay.h"
#include "tests/check.h"

/* Every rank and every instruction by itself. */
static const fr_replay_options whole_replay = {.detail = FR_REPLAY_INSTRUCTIONS,
                                               .is_unfolded = true};

CHECK_MAYBE_UNUSED static fr_status
replay_with(const fr_replay_options *options, const fr_program *program,
            const fr_cost_model *costs, const fr_cluster *cluster,
            const int32_t *node_of_rank, fr_replay *out, fr_err *err)
{
    fr_replay replay;
    FR_TRY(fr_replay_prepare(program, costs, cluster, node_of_rank, options,
                             &replay, err));
    fr_status status = fr_replay_finish(&replay, err);
    if (status == FR_OK)
        *out = replay;
    else
        fr_replay_release(&replay);
    return status;
}

#endif
