/* test_doctor.c: what a machine has, from a made /proc and /sys. */
#include "calibrate/doctor/doctor.h"
#include "core/system/fileio.h"
#include "tests/check.h"

#include <string.h>

static fr_err err;

/* A file below the made root. */
static void put(const char *root, const char *path, const char *text)
{
    char whole[1024], folder[1024];
    snprintf(whole, sizeof whole, "%s%s", root, path);
    CHECK_OK(fr_path_dir(whole, folder, sizeof folder, &err), &err);
    CHECK_OK(fr_dir_create(folder, &err), &err);
    CHECK_OK(fr_file_write(whole, text, strlen(text), &err), &err);
}

static const fr_finding *find(const fr_findings *all, const char *check,
                              const char *text)
{
    for (size_t i = 0; i < all->n; i++)
        if (strcmp(all->items[i].check, check) == 0 &&
            strstr(all->items[i].found, text) != NULL)
            return &all->items[i];
    return NULL;
}

static void make_node(const char *root)
{
    put(root, "/sys/class/net/lo/operstate", "unknown\n");
    put(root, "/sys/class/net/eth0/operstate", "up\n");
    put(root, "/sys/class/net/eth0/speed", "25000\n");
    put(root, "/sys/class/net/eth0/mtu", "9000\n");
    put(root, "/sys/class/net/eth1/operstate", "down\n");
    put(root, "/sys/class/net/eth1/speed", "-1\n");
    put(root, "/sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n");
    put(root, "/sys/class/infiniband/mlx5_0/ports/1/rate",
        "400 Gb/sec (4X NDR)\n");
    put(root, "/sys/class/infiniband/mlx5_1/ports/1/state", "1: DOWN\n");
    put(root, "/sys/class/infiniband/mlx5_1/ports/1/rate",
        "10 Gb/sec (4X SDR)\n");
    put(root, "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
        "powersave\n");
    put(root,
        "/sys/devices/system/clocksource/clocksource0/"
        "current_clocksource",
        "tsc\n");
    put(root, "/sys/kernel/mm/transparent_hugepage/enabled",
        "always madvise [never]\n");
    put(root, "/proc/driver/nvidia/version",
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65\n");
    for (int i = 0; i < 8; i++) {
        char path[128];
        snprintf(path, sizeof path,
                 "/proc/driver/nvidia/gpus/0000:%02x:00.0/information", i);
        put(root, path, "Model: NVIDIA H100\n");
    }
}

static void test_node(void)
{
    char root[CHECK_PATH_BYTES];
    fr_findings found = {0};
    check_tmp_path(root, "node");
    make_node(root);
    CHECK_OK(fr_doctor_examine(root, &found, &err), &err);
    const fr_finding *eth0 = find(&found, "network", "eth0: 25 Gb/s");
    CHECK(eth0 != NULL && eth0->state == FR_FINDING_OK);
    CHECK(find(&found, "network", "eth1") == NULL);
    CHECK(find(&found, "network", "lo:") == NULL);
    const fr_finding *up = find(&found, "InfiniBand", "mlx5_0 port 1: 400");
    CHECK(up != NULL && up->state == FR_FINDING_OK);
    const fr_finding *down = find(&found, "InfiniBand", "mlx5_1");
    CHECK(down != NULL && down->state == FR_FINDING_ADVICE);
    const fr_finding *clock =
        find(&found, "clocks", "powersave; time from tsc");
    CHECK(clock != NULL && clock->state == FR_FINDING_ADVICE);
    const fr_finding *pages = find(&found, "huge pages", "[never]");
    CHECK(pages != NULL && pages->state == FR_FINDING_ADVICE);
    const fr_finding *gpus = find(&found, "GPUs", "8; NVRM version");
    CHECK(gpus != NULL && gpus->state == FR_FINDING_OK);
    const fr_finding *peer = find(&found, "GPUDirect", "not loaded");
    CHECK(peer != NULL && peer->state == FR_FINDING_ADVICE);
    const fr_finding *shm = find(&found, "/dev/shm", "is not there");
    CHECK(shm != NULL && shm->state == FR_FINDING_MISSING);
    for (size_t i = 0; i < found.n; i++) {
        const fr_finding *at = &found.items[i];
        CHECK(at->found[0] != '\0');
        /* A finding that is not well has a mend, and names its purpose. */
        CHECK(at->state == FR_FINDING_OK ||
              (at->mend[0] != '\0' && at->needed_for != NULL));
    }
    fr_vec_release(&found);
}

static void test_cluster(void)
{
    char root[CHECK_PATH_BYTES];
    fr_findings found = {0};
    fr_cluster cluster;
    check_tmp_path(root, "cluster");
    make_node(root);
    CHECK_OK(fr_cluster_load(NULL, "dgx-h100:2", &cluster, &err), &err);
    CHECK_OK(fr_doctor_compare(root, &cluster, &found, &err), &err);
    const fr_finding *gpus = find(&found, "cluster: GPUs", "8 here, 8 x h100");
    CHECK(gpus != NULL && gpus->state == FR_FINDING_OK);
    const fr_finding *net = find(&found, "cluster: network", "400 Gb/s");
    CHECK(net != NULL && net->state == FR_FINDING_OK);
    fr_vec_release(&found);
    fr_cluster_release(&cluster);
}

CHECK_MAIN({"node", test_node}, {"cluster", test_cluster})
