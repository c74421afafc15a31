/* doctor_software.c: MPI, BLAS, drivers and libraries of GPUs, launchers. */
#include "calibrate/doctor/doctor_checks.h"
#include "calibrate/versions.h"
#include "core/system/shared_library.h"
#include "kernels/cpu/images/conv.h"

#include <stdio.h>
#include <string.h>

void fr_check_mpi(fr_examination *at)
{
    char version[256];
    fr_version_mpi(version, sizeof version);
    version[strcspn(version, "\n")] = '\0';
    if (version[0] == '\0')
        fr_doctor_add(at, "MPI", FR_FINDING_MISSING,
                      "run and calibrate with several ranks on CPUs",
                      "./setup.sh, then make", "not built in");
    else if (!fr_doctor_has_program("mpirun"))
        fr_doctor_add(at, "MPI", FR_FINDING_MISSING,
                      "run and calibrate with several ranks",
                      "install openmpi-bin, or load its module",
                      "%.80s, but no mpirun in PATH", version);
    else
        fr_doctor_add(at, "MPI", FR_FINDING_OK, NULL, "", "%.120s", version);
}

void fr_check_blas(fr_examination *at)
{
    const char *version = fr_version_blas();
    bool is_in = version[0] != '\0';
    fr_doctor_add(at, "BLAS", is_in ? FR_FINDING_OK : FR_FINDING_ADVICE,
                  "run and calibrate on CPUs",
                  is_in ? "" : "./setup.sh, then make", "%.140s",
                  is_in ? version : "not built in: products are forerun's own");
}

void fr_check_convolutions(fr_examination *at)
{
    const bool is_in = fr_convs_are_there();
    fr_doctor_add(at, "oneDNN", is_in ? FR_FINDING_OK : FR_FINDING_ADVICE,
                  "train convolutions on CPUs",
                  is_in ? "" : "apt-get install libdnnl-dev, then make", "%s",
                  is_in ? "built in" : "not built in");
}

static void count_one(fr_examination *at, const char *name, double *n)
{
    (void)at;
    (void)name;
    *n += 1;
}

int fr_doctor_count_gpus(fr_examination *at)
{
    double n = 0;
    fr_doctor_fold(at, "/proc/driver/nvidia/gpus", count_one, &n);
    return (int)n;
}

void fr_check_gpus(fr_examination *at)
{
    char driver[200];
    int n = fr_doctor_count_gpus(at);
    bool has_driver = fr_doctor_read(at, "/proc/driver/nvidia/version", driver,
                                     sizeof driver);
#ifdef FR_HAVE_CUDA
    const char *built = "built with CUDA";
#else
    const char *built = "built without CUDA";
#endif
    if (n > 0 && has_driver)
        fr_doctor_add(at, "GPUs", FR_FINDING_OK, NULL, "", "%d; %.90s; %s", n,
                      driver, built);
    else
        fr_doctor_add(at, "GPUs", FR_FINDING_ADVICE,
                      "run and calibrate with --backend cuda",
                      "predictions need none; to train on GPUs install "
                      "NVIDIA's driver",
                      "none is seen; %s", built);
}

/* Returns the version that a function of a library (NULL: of any loaded
 * library) reports; 0: the function does not exist. */
static int library_version(void *library, const char *name)
{
    typedef int (*version_fn)(int *);
    int version = 0;
    version_fn get;
    return fr_library_find(library, name, &get) && get(&version) == 0 ? version
                                                                      : 0;
}

/* A driver runs programs of its own major version and of those before it.
 * Versions are 1000 x major + 10 x minor. */
void fr_check_cuda(fr_examination *at)
{
    char driver_text[64] = "no driver", mend[64] = "";
    const int runtime = library_version(NULL, "cudaRuntimeGetVersion");
    void *library = fr_library_open("libcuda.so.1");
    const int driver =
        library != NULL ? library_version(library, "cuDriverGetVersion") : 0;
    if (runtime == 0)
        return;
    const bool is_old = driver > 0 && driver / 1000 < runtime / 1000;
    if (driver > 0)
        snprintf(driver_text, sizeof driver_text, "the driver is for %d.%d",
                 driver / 1000, driver % 1000 / 10);
    if (is_old)
        snprintf(mend, sizeof mend, "install a driver for CUDA %d",
                 runtime / 1000);
    fr_doctor_add(at, "CUDA", is_old ? FR_FINDING_MISSING : FR_FINDING_OK,
                  "run and calibrate with --backend cuda", mend, "%d.%d; %s",
                  runtime / 1000, runtime % 1000 / 10, driver_text);
}

/* The library as the loader finds it: it says its version itself. */
void fr_check_nccl(fr_examination *at)
{
    void *library = fr_library_open("libnccl.so.2");
    const int version =
        library != NULL ? library_version(library, "ncclGetVersion") : 0;
    if (version > 0)
        fr_doctor_add(at, "NCCL", FR_FINDING_OK, NULL, "", "%d.%d.%d",
                      version / 10000, version / 100 % 100, version % 100);
    else
        fr_doctor_add(at, "NCCL", FR_FINDING_ADVICE,
                      "run and calibrate on several GPUs",
                      "install libnccl2, or point LD_LIBRARY_PATH at it",
                      "libnccl.so.2 is not found");
}

/* Checks the library that products on GPUs load (kernels/cuda/cublaslt_cuda.h):
 * its major version is CUDA's. */
void fr_check_cublaslt(fr_examination *at)
{
    char name[40];
    const int runtime = library_version(NULL, "cudaRuntimeGetVersion");
    if (runtime == 0)
        return;
    snprintf(name, sizeof name, "libcublasLt.so.%d", runtime / 1000);
    if (fr_library_open(name) != NULL) {
        fr_doctor_add(at, "cuBLASLt", FR_FINDING_OK, NULL, "", "%s", name);
        return;
    }
    fr_doctor_add(at, "cuBLASLt", FR_FINDING_ADVICE,
                  "run and calibrate with --backend cuda",
                  "install libcublas, or point LD_LIBRARY_PATH at it",
                  "%s is not found", name);
}

/* GPUDirect RDMA, where there are both GPUs and InfiniBand. */
void fr_check_peer_memory(fr_examination *at)
{
    char state[32];
    double n_adapters = 0;
    fr_doctor_fold(at, "/sys/class/infiniband", count_one, &n_adapters);
    if (n_adapters == 0 || fr_doctor_count_gpus(at) == 0)
        return;
    bool is_in = fr_doctor_read(at, "/sys/module/nvidia_peermem/initstate",
                                state, sizeof state);
    fr_doctor_add(at, "GPUDirect", is_in ? FR_FINDING_OK : FR_FINDING_ADVICE,
                  "collectives between nodes",
                  is_in ? ""
                        : "modprobe nvidia_peermem (or a kernel with "
                          "dma-buf)",
                  is_in ? "nvidia_peermem is loaded"
                        : "nvidia_peermem is not loaded");
}

void fr_check_launchers(fr_examination *at)
{
    static const char *const names[] = {"mpirun",   "srun",    "sbatch",
                                        "torchrun", "kubectl", "sky"};
    char here[80] = "", absent[80] = "";
    for (size_t i = 0; i < FR_LENGTH(names); i++) {
        char *list = fr_doctor_has_program(names[i]) ? here : absent;
        size_t n = strlen(list);
        snprintf(list + n, sizeof here - n, "%s%s", n > 0 ? ", " : "",
                 names[i]);
    }
    fr_doctor_add(at, "launchers", FR_FINDING_OK, NULL, "", "%s%s%s%s", here,
                  absent[0] != '\0' ? " (not here: " : "", absent,
                  absent[0] != '\0' ? ")" : "");
}
