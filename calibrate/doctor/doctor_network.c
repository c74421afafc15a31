/* doctor_network.c: network interfaces and InfiniBand ports, from /sys/class.
 */
#include "calibrate/doctor/doctor_checks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Mb/s of an interface that is up; 0: down, or it does not say. */
static double read_speed(const fr_examination *at, const char *name)
{
    char path[256], state[32] = "", speed[32] = "";
    snprintf(path, sizeof path, "/sys/class/net/%.100s/operstate", name);
    fr_doctor_read(at, path, state, sizeof state);
    snprintf(path, sizeof path, "/sys/class/net/%.100s/speed", name);
    fr_doctor_read(at, path, speed, sizeof speed);
    double mbps = strtod(speed, NULL);
    return strcmp(state, "up") == 0 && mbps > 0 ? mbps : 0;
}

static void add_interface(fr_examination *at, const char *name, double *ignored)
{
    (void)ignored;
    char path[256], state[32] = "", mtu[32] = "?";
    double mbps = read_speed(at, name);
    snprintf(path, sizeof path, "/sys/class/net/%.100s/operstate", name);
    fr_doctor_read(at, path, state, sizeof state);
    snprintf(path, sizeof path, "/sys/class/net/%.100s/mtu", name);
    fr_doctor_read(at, path, mtu, sizeof mtu);
    if (strcmp(name, "lo") == 0 || strcmp(state, "down") == 0)
        return;
    if (mbps > 0)
        fr_doctor_add(at, "network", FR_FINDING_OK, NULL, "",
                      "%.40s: %.4g Gb/s, MTU %s", name, mbps / 1000, mtu);
    else
        fr_doctor_add(at, "network", FR_FINDING_OK, NULL, "",
                      "%.40s: up, speed not said, MTU %s", name, mtu);
}

void fr_check_interfaces(fr_examination *at)
{
    size_t n_before = at->out->n;
    fr_doctor_fold(at, "/sys/class/net", add_interface, NULL);
    if (at->out->n == n_before)
        fr_doctor_add(at, "network", FR_FINDING_ADVICE,
                      "run over several machines", "bring an interface up",
                      "no interface but the loopback is up");
}

/* "400 Gb/sec (4X NDR)" and "4: ACTIVE" of every port. */
static void add_adapter(fr_examination *at, const char *name, double *ignored)
{
    (void)ignored;
    for (int port = 1; port <= 8; port++) {
        char path[256], rate[64] = "?", state[64];
        snprintf(path, sizeof path,
                 "/sys/class/infiniband/%.100s/ports/%d/state", name, port);
        if (!fr_doctor_read(at, path, state, sizeof state))
            return;
        snprintf(path, sizeof path,
                 "/sys/class/infiniband/%.100s/ports/%d/rate", name, port);
        fr_doctor_read(at, path, rate, sizeof rate);
        bool is_active = strstr(state, "ACTIVE") != NULL;
        fr_doctor_add(at, "InfiniBand",
                      is_active ? FR_FINDING_OK : FR_FINDING_ADVICE,
                      "run over several machines",
                      is_active ? ""
                                : "look at the cable and the subnet "
                                  "manager (ibstat)",
                      "%.40s port %d: %s, %s", name, port, rate, state);
    }
}

void fr_check_infiniband(fr_examination *at)
{
    fr_doctor_fold(at, "/sys/class/infiniband", add_adapter, NULL);
}

/* ---- the fastest --------------------------------------------------------- */

static void take_interface(fr_examination *at, const char *name, double *most)
{
    double mbps = strcmp(name, "lo") == 0 ? 0 : read_speed(at, name);
    if (mbps * 125e3 > *most)
        *most = mbps * 125e3;
}

static void take_adapter(fr_examination *at, const char *name, double *most)
{
    char path[256], rate[64] = "";
    snprintf(path, sizeof path, "/sys/class/infiniband/%.100s/ports/1/rate",
             name);
    fr_doctor_read(at, path, rate, sizeof rate);
    double gbps = strtod(rate, NULL);
    if (gbps * 125e6 > *most)
        *most = gbps * 125e6;
}

double fr_doctor_network_Bps(fr_examination *at)
{
    double most = 0;
    fr_doctor_fold(at, "/sys/class/net", take_interface, &most);
    fr_doctor_fold(at, "/sys/class/infiniband", take_adapter, &most);
    return most;
}
