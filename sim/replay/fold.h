/*
 * fold.h: ranks that must behave alike.
 *
 * Colours of ranks by colour refinement: ranks begin with the colour of their
 * rank program and their node's type; a round adds the colours of those on the
 * same node, on the same network rail, of each group, of the peers and of the
 * fabric's links that they use, until no round tells more ranks apart.  What
 * is left is an equitable partition: every rank of a colour meets the same
 * number of ranks of every other colour in the same role.  By induction over
 * the events of a replay all ranks of a colour then do the same at the same
 * picosecond, and every link carries the same flows as all of its colour.  So
 * one rank of each colour is enough, if links count those left out.
 *
 * The sums over members are commutative hashes (64 bits): a round costs one
 * pass over ranks and axes.
 */
#ifndef FR_SIM_REPLAY_FOLD_H
#define FR_SIM_REPLAY_FOLD_H

#include "core/base/log.h"
#include "sim/topology/fabric_uses.h"
#include "sim/topology/rank_layout.h"

typedef struct fr_fold {
    int32_t n_colors; /* numbered in the order of their lowest ranks */
    int32_t *color_of_rank;
    int32_t *rank_of_color; /* the lowest */
    int32_t *n_alike;       /* [n_colors] ranks, listed or not */
    /* Keys of the groups of a partition: groups with equal keys behave
     * identically. */
    uint64_t *node_key, *rail_key;
    uint64_t *axis_key[FR_AXIS_N]; /* NULL: not used */
    uint64_t *fabric_key;          /* of the fabric's links */
} fr_fold;

/*
 * Finds the colours; `fabric` may have no links.  Where groups lie on the
 * nodes in ever other ways, rounds go on from rank to rank: is_bounded ends
 * them as FR_INFEASIBLE after FR_FOLD_MOST_VISITS of ranks.  FR_INTERRUPTED:
 * the log, which may be NULL, cancels them.
 */
FR_CHECKED fr_status fr_fold_init(const fr_rank_layout *layout,
                                  const fr_fabric_uses *fabric, bool is_bounded,
                                  const fr_log *log, fr_fold *out, fr_err *err);
FR_CHECKED fr_status fr_fold_fail(int32_t n_colors, fr_err *err);
enum { FR_FOLD_MOST_VISITS = 1 << 24 };
void fr_fold_release(fr_fold *fold);

#endif
