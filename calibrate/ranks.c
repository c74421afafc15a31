#include "calibrate/ranks.h"

#include <stdlib.h>
#include <string.h>

static fr_status gather(fr_transport *transport, const void *bytes,
                        size_t n_bytes, unsigned char **out, fr_err *err)
{
    fr_status status;
    unsigned char *all = malloc((size_t)transport->world * n_bytes + 1);

    if (all == NULL)
        return fr_fail_no_memory(err);
    status = fr_transport_all_gather(transport, bytes, n_bytes, all, err);
    if (status != FR_OK) {
        free(all);
        return status;
    }
    *out = all;
    return FR_OK;
}

fr_status fr_ranks_share(void *transport, void *bytes, size_t n_bytes,
                         fr_err *err)
{
    fr_transport *ranks = transport;
    unsigned char *all;

    if (ranks->world == 1)
        return FR_OK;
    FR_TRY(gather(ranks, bytes, n_bytes, &all, err));
    memcpy(bytes, all, n_bytes);
    free(all);
    return FR_OK;
}

fr_status fr_ranks_barrier(fr_transport *transport, fr_err *err)
{
    char nothing = 0;

    return fr_ranks_share(transport, &nothing, sizeof nothing, err);
}

fr_status fr_ranks_max(fr_transport *transport, double *value, fr_err *err)
{
    unsigned char *all;

    if (transport->world == 1)
        return FR_OK;
    FR_TRY(gather(transport, value, sizeof *value, &all, err));
    for (int64_t i = 0; i < transport->world; i++) {
        double there;
        memcpy(&there, all + (size_t)i * sizeof there, sizeof there);
        *value = there > *value ? there : *value;
    }
    free(all);
    return FR_OK;
}
