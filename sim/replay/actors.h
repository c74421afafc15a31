/*
 * actors.h: who is replayed, and who meets whom.
 *
 * Folded, an actor stands for all ranks of a colour; unfolded, every rank is
 * an actor.  A party is a set of actors that meet: a group of an axis, or all
 * that groups of several axes join.  Parties come as one table per set of
 * axes; actors and members are numbered in the order of their lowest ranks.
 */
#ifndef FR_SIM_REPLAY_ACTORS_H
#define FR_SIM_REPLAY_ACTORS_H

#include "sim/replay/fold.h"

typedef struct fr_parties {
    unsigned axes; /* mask */
    int32_t n_parties;
    int32_t *party_of_actor;
    int32_t *first; /* [n_parties + 1] in members */
    int32_t *members;
} fr_parties;

enum { FR_ACTORS_TABLES = 64 };

typedef struct fr_actors {
    const fr_rank_layout *layout;
    const fr_fold *fold;
    bool is_folded;
    int32_t n;
    int32_t *rank; /* [n] */
    int32_t n_tables;
    fr_parties tables[FR_ACTORS_TABLES];
} fr_actors;

FR_CHECKED fr_status fr_actors_init(const fr_rank_layout *layout,
                                    const fr_fold *fold, bool is_folded,
                                    fr_actors *out, fr_err *err);
void fr_actors_release(fr_actors *actors);

/* The table of a set of axes, made when it is asked for first. */
FR_CHECKED fr_status fr_actors_parties(fr_actors *actors, unsigned axes,
                                       int32_t *i_table, fr_err *err);

static inline int32_t fr_actors_of_rank(const fr_actors *actors, int32_t rank)
{
    return actors->is_folded ? actors->fold->color_of_rank[rank] : rank;
}

/* The colour of an actor. */
static inline int32_t fr_actors_color(const fr_actors *actors, int32_t actor)
{
    return actors->is_folded ? actor : actors->fold->color_of_rank[actor];
}

/*
 * Numbers equal keys alike, in the order of their first place: writes
 * number[n] and returns how many there are, -1 when there is no memory.
 */
int32_t fr_number_keys(const uint64_t *keys, int64_t n, int32_t *number);

#endif
