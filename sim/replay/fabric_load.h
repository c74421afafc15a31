/*
 * fabric_load.h: how many ranks of each actor cross which link of the fabric,
 * counted on one link of each that carry alike.
 */
#ifndef FR_SIM_REPLAY_FABRIC_LOAD_H
#define FR_SIM_REPLAY_FABRIC_LOAD_H

#include "sim/replay/actors.h"

typedef struct fr_fabric_load fr_fabric_load;

/*
 * number[links of the fabric]: which of the *n_links links here it is, -1 if
 * no actor crosses it.  *load is NULL when there are none.
 */
FR_CHECKED fr_status fr_fabric_load_create(const fr_actors *actors,
                                           const fr_fabric_uses *fabric,
                                           int32_t **number, int32_t *n_links,
                                           fr_fabric_load **load, fr_err *err);
void fr_fabric_load_destroy(fr_fabric_load *load); /* takes NULL */

/* The traffic that all ranks of an actor together send over one link. */
typedef struct fr_fabric_crossing {
    const fr_fabric_flow *flow; /* set these two, */
    int32_t actor;
    uint32_t i_use; /* and this to 0 */
    int32_t link;   /* number here */
    double link_Bps;
    double weight; /* of what one rank sends, over this link */
    uint32_t n;    /* ranks that do */
} fr_fabric_crossing;

/* Moves on to the next link; false: there is none. */
bool fr_fabric_load_next(const fr_fabric_load *load, fr_fabric_crossing *at);

#endif
