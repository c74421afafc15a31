/* gpu_choice.c: ranks compare what they got. */
#include "runtime/gpu/gpu_choice.h"

#include "core/base/text.h"
#include "runtime/rank/measure.h"

#include <stdlib.h>
#include <string.h>

/* The report of a rank about its devices, which ranks exchange. */
typedef struct device_report {
    int32_t status;
    int32_t n_devices;
    uint64_t machine;
    char bus_id[32];
    char host[64];
    char text[256];
} device_report;

static fr_status choose(const fr_gpu_system *system,
                        const fr_transport *transport, fr_gpu **gpu,
                        device_report *mine, fr_err *err)
{
    fr_gpu_properties properties;
    int n = 0;

    FR_TRY(system->driver->count(system->context, &n, err));
    if (n == 0)
        return fr_fail(err, FR_FAILURE, "there is no GPU here");
    mine->n_devices = n;
    FR_TRY(system->driver->open(system->context, (int)(transport->i_local % n),
                                gpu, err));
    FR_TRY(system->driver->properties(*gpu, &properties, err));
    fr_text_copy_cut(mine->bus_id, sizeof mine->bus_id, properties.bus_id);
    return FR_OK;
}

static bool is_same_device(const device_report *a, const device_report *b)
{
    return a->machine == b->machine && strcmp(a->bus_id, b->bus_id) == 0;
}

/* All ranks come to the same result, which names the first trouble. */
static fr_status judge(const device_report *all, int64_t world, bool is_shared,
                       fr_err *err)
{
    for (int64_t i = 0; i < world; i++)
        if (all[i].status != FR_OK)
            return fr_fail(err, (fr_status)all[i].status, "%s", all[i].text);
    for (int64_t i = 0; !is_shared && i < world; i++)
        for (int64_t k = 0; k < i; k++) {
            if (!is_same_device(&all[i], &all[k]))
                continue;
            int64_t n_ranks = 0;
            for (int64_t r = 0; r < world; r++)
                n_ranks += all[r].machine == all[i].machine;
            return fr_fail(err, FR_INFEASIBLE,
                           "%lld ranks on %s, which shows them %d GPU%s "
                           "(ranks %lld and %lld share %s); start fewer, or "
                           "give --share-gpu to test through the host",
                           (long long)n_ranks, all[i].host, all[i].n_devices,
                           all[i].n_devices == 1 ? "" : "s", (long long)k,
                           (long long)i, all[i].bus_id);
        }
    return FR_OK;
}

fr_status fr_gpu_choose(const fr_gpu_system *system, fr_transport *transport,
                        bool is_shared, fr_gpu **out, fr_err *err)
{
    device_report mine = {0};
    device_report *all = calloc((size_t)transport->world, sizeof *all);
    fr_err local = {0};
    fr_gpu *gpu = NULL;

    if (all == NULL)
        return fr_fail_no_memory(err);
    mine.machine = fr_measure_machine(mine.host);
    mine.status = (int32_t)choose(system, transport, &gpu, &mine, &local);
    fr_text_copy_cut(mine.text, sizeof mine.text, local.text);
    fr_status status =
        fr_transport_all_gather(transport, &mine, sizeof mine, all, err);
    if (status == FR_OK)
        status = judge(all, transport->world, is_shared, err);
    free(all);
    if (status == FR_OK)
        *out = gpu;
    else
        system->driver->close(gpu);
    return status;
}
