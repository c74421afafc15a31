/* disturbance.c: see disturbance.h. */
#include "calibrate/disturbance.h"

#include "calibrate/cpu/ranks.h"
#include "core/system/clock.h"
#include "runtime/watch/others.h"

#include <stdio.h>
#include <stdlib.h>

static const double rest_s = 0.2; /* 20 ticks of the kernel's counters */

typedef struct phase_share {
    bool is_known, is_disturbed;
    fr_processor_share share;
} phase_share;

struct fr_disturbance {
    fr_transport *transport;
    fr_others *phase, *chunk;
    phase_share *all; /* [world] */
};

fr_status fr_disturbance_create(fr_transport *transport, fr_disturbance **out,
                                fr_err *err)
{
    fr_processor_set set;
    fr_disturbance *watch = calloc(1, sizeof *watch);

    if (watch == NULL)
        return fr_fail_no_memory(err);
    watch->transport = transport;
    watch->all = calloc((size_t)transport->world, sizeof *watch->all);
    fr_processor_set_allowed(&set);
    fr_status status = watch->all != NULL ? FR_OK : fr_fail_no_memory(err);
    if (status == FR_OK)
        status = fr_others_create(transport, &set, &watch->phase, err);
    if (status == FR_OK)
        status = fr_others_create(transport, &set, &watch->chunk, err);
    if (status != FR_OK) {
        fr_disturbance_destroy(watch);
        return status;
    }
    *out = watch;
    return FR_OK;
}

void fr_disturbance_destroy(fr_disturbance *watch)
{
    if (watch == NULL)
        return;
    fr_others_destroy(watch->phase);
    fr_others_destroy(watch->chunk);
    free(watch->all);
    free(watch);
}

/* Fills watch->all; each rank of a machine wants a processor. */
static fr_status gather(fr_disturbance *watch, fr_others *others, fr_err *err)
{
    phase_share mine = {0};

    mine.is_known = fr_others_end(others, &mine.share);
    mine.is_disturbed =
        mine.is_known &&
        fr_processor_share_is_disturbed(&mine.share, fr_others_n_ranks(others));
    return fr_transport_all_gather(watch->transport, &mine, sizeof mine,
                                   watch->all, err);
}

fr_status fr_disturbance_end(fr_disturbance *watch, const char *phase,
                             fr_profile *profile, fr_err *err)
{
    const phase_share *most = NULL;
    fr_others_point point = {0};

    FR_TRY(fr_ranks_barrier(watch->transport, err));
    FR_TRY(gather(watch, watch->phase, err));
    if (watch->transport->rank != 0)
        return FR_OK;
    for (int64_t i = 0; i < watch->transport->world; i++) {
        const phase_share *at = &watch->all[i];
        if (at->is_known &&
            (most == NULL || fr_processor_share_others(&at->share) >
                                 fr_processor_share_others(&most->share))) {
            most = at;
            point.rank = (int32_t)i;
        }
    }
    if (most == NULL)
        return FR_OK;
    (void)snprintf(point.phase, sizeof point.phase, "%s", phase);
    point.elapsed_s = most->share.elapsed_s;
    point.own_s = most->share.own_s;
    point.others_s = most->share.others_s;
    point.stolen_s = most->share.steal_s;
    point.n_processors = most->share.n_processors;
    point.n_runnable = most->share.n_runnable;
    point.is_disturbed = most->is_disturbed;
    return fr_profile_add_others(profile, &point, err);
}

fr_status fr_disturbance_rest(fr_disturbance *watch, const char *phase,
                              fr_profile *profile, fr_err *err)
{
    fr_others_begin(watch->phase);
    if (watch->transport->rank == 0)
        fr_sleep_s(rest_s);
    return fr_disturbance_end(watch, phase, profile, err);
}

/* ---- chunks of the sampler ---------------------------------------------- */

static void begin_chunk(void *context)
{
    fr_others_begin(((fr_disturbance *)context)->chunk);
}

static fr_status end_chunk(void *context, bool *is_disturbed, fr_err *err)
{
    fr_disturbance *watch = context;

    FR_TRY(gather(watch, watch->chunk, err));
    *is_disturbed = false;
    for (int64_t i = 0; i < watch->transport->world; i++)
        *is_disturbed = *is_disturbed || watch->all[i].is_disturbed;
    return FR_OK;
}

void fr_disturbance_attach(fr_disturbance *watch, fr_sampling *schedule)
{
    schedule->begin_others = begin_chunk;
    schedule->end_others = end_chunk;
    schedule->others_context = watch;
}
