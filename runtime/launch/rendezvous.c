/* rendezvous.c: from the environment to a transport. */
#include "runtime/launch/rendezvous.h"

#include "core/base/text.h"
#include "runtime/comm/transport_tcp.h"
#include "runtime/launch/launch.h"

#include <stdlib.h>
#include <string.h>

#define DEFAULT_PORT 29500 /* torchrun's */

bool fr_rendezvous_first_host(const char *list, char *out, size_t n)
{
    bool is_in_brackets = false, is_skipped = false;
    size_t used = 0;

    for (const char *at = list; *at != '\0'; at++) {
        if (*at == ',' && !is_in_brackets)
            break;
        if (*at == '[' || *at == ']') {
            is_in_brackets = *at == '[';
            is_skipped = false;
            continue;
        }
        /* The first number of a range in brackets counts. */
        is_skipped =
            is_skipped || (is_in_brackets && (*at == '-' || *at == ','));
        if (is_skipped)
            continue;
        if (used + 1 >= n)
            return false;
        out[used++] = *at;
    }
    out[used] = '\0';
    return used > 0;
}

static fr_status find_address(fr_rendezvous *place, fr_err *err)
{
    const char *named = getenv("MASTER_ADDR");
    const char *list = getenv("SLURM_STEP_NODELIST");
    int64_t n_local = 0;

    if (list == NULL)
        list = getenv("SLURM_JOB_NODELIST");
    if (named != NULL &&
        fr_text_copy(place->address, sizeof place->address, named))
        return FR_OK;
    if (list != NULL &&
        fr_rendezvous_first_host(list, place->address, sizeof place->address))
        return FR_OK;
    if (fr_launch_number("OMPI_COMM_WORLD_LOCAL_SIZE", 1, INT32_MAX,
                         &n_local) &&
        n_local == place->world &&
        fr_text_copy(place->address, sizeof place->address, "127.0.0.1"))
        return FR_OK;
    return fr_fail(err, FR_INPUT,
                   "nothing says where rank 0 is; set MASTER_ADDR to its host "
                   "and MASTER_PORT to a free port");
}

/* The port after MASTER_PORT is taken where torchrun's agent holds that one. */
static fr_status find_port(fr_rendezvous *place, fr_err *err)
{
    const char *agent = getenv("TORCHELASTIC_USE_AGENT_STORE");
    int64_t port = DEFAULT_PORT, job = 0;
    const int64_t first = 20000, n_ports = 10000; /* below the ephemeral ones */

    if (getenv("MASTER_PORT") != NULL &&
        !fr_launch_number("MASTER_PORT", 1, 65534, &port))
        return fr_fail(err, FR_INPUT, "MASTER_PORT=%.40s is no port",
                       getenv("MASTER_PORT"));
    if (getenv("MASTER_PORT") == NULL &&
        fr_launch_number("SLURM_JOB_ID", 0, INT64_MAX, &job))
        port = first + job % n_ports; /* jobs may share a node */
    if (agent != NULL && strcmp(agent, "True") == 0)
        port++;
    place->port = (int)port;
    return FR_OK;
}

fr_status fr_rendezvous_find(fr_rendezvous *out, fr_err *err)
{
    fr_rendezvous place = {.launcher = "none", .world = 1};
    const char *chosen = getenv("FORERUN_BOOTSTRAP");
    fr_launch launch;

    if (getenv("MASTER_ADDR") != NULL &&
        fr_launch_number("WORLD_SIZE", 1, INT32_MAX, &place.world) &&
        fr_launch_number("RANK", 0, place.world - 1, &place.rank)) {
        place.launcher = "torchrun";
        place.by = FR_BOOTSTRAP_TCP;
    } else {
        fr_launch_detect(&launch);
        if (launch.role != FR_LAUNCH_RANK) {
            *out = (fr_rendezvous){.launcher = "none", .world = 1};
            return FR_OK;
        }
        place.rank = launch.rank;
        place.world = launch.world;
        place.launcher = launch.launcher;
        bool has_mpi = strcmp(launch.launcher, "mpirun") == 0 &&
                       fr_transport_mpi_is_available();
        place.by = has_mpi ? FR_BOOTSTRAP_MPI : FR_BOOTSTRAP_TCP;
    }
    if (chosen != NULL && strcmp(chosen, "mpi") == 0)
        place.by = FR_BOOTSTRAP_MPI;
    else if (chosen != NULL && strcmp(chosen, "tcp") == 0)
        place.by = FR_BOOTSTRAP_TCP;
    else if (chosen != NULL)
        return fr_fail(err, FR_INPUT,
                       "FORERUN_BOOTSTRAP=%.40s; give mpi or tcp", chosen);
    if (place.by == FR_BOOTSTRAP_TCP && place.world > 1) {
        FR_TRY(find_address(&place, err));
        FR_TRY(find_port(&place, err));
    }
    *out = place;
    return FR_OK;
}

fr_status fr_rendezvous_check(const fr_rendezvous *place, int64_t world,
                              fr_err *err)
{
    if (place->world == world)
        return FR_OK;
    return fr_fail(err, FR_INPUT,
                   "%lld rank%s needed, %s started %lld; start %lld",
                   (long long)world, world == 1 ? " is" : "s are",
                   place->launcher, (long long)place->world, (long long)world);
}

fr_status fr_rendezvous_join(const fr_rendezvous *place, int64_t world,
                             double timeout_s, fr_transport **out, fr_err *err)
{
    FR_TRY(fr_rendezvous_check(place, world, err));
    if (place->by == FR_BOOTSTRAP_MPI)
        return fr_transport_mpi_create(world, timeout_s, out, err);
    return fr_transport_tcp_create(place->address, place->port, place->rank,
                                   world, timeout_s, out, err);
}
