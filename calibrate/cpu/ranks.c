/* ranks.c: see ranks.h. */
#include "calibrate/cpu/ranks.h"

#include "core/system/clock.h"

#include <sched.h>

enum { TAG_GATE = FR_TAG_SETUP + 1, N_CLOCKS = 32 };

/* A rank that waits polls for so long, then looks twice in a millisecond. */
static const double busy_s = 300e-6;
static const double nap_s = 500e-6;

static fr_status await_gate(fr_transport *transport, fr_err *err)
{
    fr_message request = {0};
    double begin_s = fr_clock_s();
    char token;

    FR_TRY(transport->ops->irecv(transport, 0, TAG_GATE, &token, 1, &request,
                                 err));
    for (;;) {
        bool is_done = false;
        double waited_s = fr_clock_s() - begin_s;
        FR_TRY(transport->ops->test(transport, &request, &is_done, err));
        if (is_done)
            return FR_OK;
        if (waited_s > transport->timeout_s ||
            fr_transport_failed_rank(transport) >= 0)
            return fr_fail(err, FR_FAILURE,
                           "rank %lld: calibrating: waited %.3g s for rank 0",
                           (long long)transport->rank, waited_s);
        if (waited_s < busy_s)
            (void)sched_yield();
        else
            fr_sleep_s(nap_s);
    }
}

/*
 * Ranks that wait while rank 0 measures alone must not take time from its
 * threads, as polling would: they come through here first.
 */
static fr_status gate(fr_transport *transport, fr_err *err)
{
    if (transport->rank != 0)
        return await_gate(transport, err);
    for (int64_t peer = 1; peer < transport->world; peer++) {
        char token = 0;
        fr_message request = {0};
        FR_TRY(transport->ops->isend(transport, peer, TAG_GATE, &token, 1,
                                     &request, err));
        FR_TRY(fr_transport_wait(transport, &request, peer, "gate", err));
    }
    return FR_OK;
}

fr_status fr_ranks_share(void *transport, void *bytes, size_t n_bytes,
                         fr_err *err)
{
    fr_transport *ranks = transport;

    if (ranks->world == 1)
        return FR_OK;
    FR_TRY(gate(ranks, err));
    return fr_transport_share(ranks, bytes, n_bytes, err);
}

fr_status fr_ranks_scratch_dir(fr_transport *transport, const char *own,
                               const char **out, fr_err *err)
{
    const char *dir = transport->rank == 0 ? own : "/";
    char has_dir = dir != NULL;

    FR_TRY(fr_ranks_share(transport, &has_dir, 1, err));
    *out = has_dir ? dir : NULL;
    return FR_OK;
}

fr_status fr_ranks_barrier(fr_transport *transport, fr_err *err)
{
    char nothing = 0;

    return fr_ranks_share(transport, &nothing, sizeof nothing, err);
}

fr_status fr_ranks_open_slab(fr_transport *transport, uint64_t n_bytes,
                             fr_err *err)
{
    FR_TRY(fr_ranks_barrier(transport, err));
    return transport->ops->open_slab(transport, n_bytes, err);
}

/* ---- clocks ------------------------------------------------------------- */

static fr_status pass_clock(fr_transport *transport, int64_t peer, bool is_send,
                            double *clock_s, fr_err *err)
{
    fr_message request = {0};

    if (is_send)
        FR_TRY(transport->ops->isend(transport, peer, TAG_GATE, clock_s,
                                     sizeof *clock_s, &request, err));
    else
        FR_TRY(transport->ops->irecv(transport, peer, TAG_GATE, clock_s,
                                     sizeof *clock_s, &request, err));
    return fr_transport_wait(transport, &request, peer, "clocks", err);
}

/* Rank 0 answers everybody with its clock. */
static fr_status serve_clock(fr_transport *transport, fr_err *err)
{
    for (int64_t peer = 1; peer < transport->world; peer++) {
        for (int i = 0; i < N_CLOCKS; i++) {
            double clock_s;
            FR_TRY(pass_clock(transport, peer, false, &clock_s, err));
            clock_s = fr_clock_s();
            FR_TRY(pass_clock(transport, peer, true, &clock_s, err));
        }
    }
    return FR_OK;
}

fr_status fr_ranks_clock_offset(fr_transport *transport, double *out_s,
                                fr_err *err)
{
    double fastest_s = 0.0;

    *out_s = 0.0;
    if (transport->n_local == transport->world)
        return FR_OK;
    if (transport->rank == 0)
        return serve_clock(transport, err);
    for (int i = 0; i < N_CLOCKS; i++) {
        double begin_s = fr_clock_s(), end_s, there_s = begin_s;
        FR_TRY(pass_clock(transport, 0, true, &there_s, err));
        FR_TRY(pass_clock(transport, 0, false, &there_s, err));
        end_s = fr_clock_s();
        if (i == 0 || end_s - begin_s < fastest_s) {
            fastest_s = end_s - begin_s;
            *out_s = there_s - 0.5 * (begin_s + end_s);
        }
    }
    return FR_OK;
}
