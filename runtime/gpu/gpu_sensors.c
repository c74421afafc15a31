/*
 * gpu_sensors.c: a handful of NVML's functions by name.  Declared as in
 * nvml.h of CUDA 13 (NVML API Reference Guide); all return 0 for success.
 */
#include "runtime/gpu/gpu_sensors.h"

#include <dlfcn.h>
#include <string.h>

enum { CLOCK_OF_PROCESSORS = 1 }; /* NVML_CLOCK_SM */

typedef int (*plain_fn)(void);
typedef int (*text_fn)(char *out, unsigned int n);
typedef int (*find_fn)(const char *bus_id, void **device);
typedef int (*read_fn)(void *device, unsigned int *out);
typedef int (*clock_fn)(void *device, int kind, unsigned int *out);

typedef struct library {
    void *handle;
    plain_fn init, shutdown;
    text_fn driver_version;
    find_fn find;
    clock_fn clock;
    read_fn power, power_limit;
} library;

/* A pointer to a function out of what dlsym() gives (POSIX allows it, C has
 * no cast for it). */
static bool look_up(const library *lib, const char *name, void *out)
{
    void *found = dlsym(lib->handle, name);

    memcpy(out, &found, sizeof found);
    return found != NULL;
}

static bool load(library *lib)
{
    lib->handle = dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL);
    return lib->handle != NULL && look_up(lib, "nvmlInit_v2", &lib->init) &&
           look_up(lib, "nvmlShutdown", &lib->shutdown) &&
           look_up(lib, "nvmlSystemGetDriverVersion", &lib->driver_version) &&
           look_up(lib, "nvmlDeviceGetHandleByPciBusId_v2", &lib->find) &&
           look_up(lib, "nvmlDeviceGetClockInfo", &lib->clock) &&
           look_up(lib, "nvmlDeviceGetPowerUsage", &lib->power) &&
           look_up(lib, "nvmlDeviceGetEnforcedPowerLimit", &lib->power_limit);
}

static bool read_device(const library *lib, const char *bus_id,
                        fr_gpu_readings *out)
{
    void *device = NULL;
    unsigned int mhz = 0, mw = 0, limit_mw = 0;

    if (lib->find(bus_id, &device) != 0)
        return false;
    memset(out, 0, sizeof *out);
    (void)lib->driver_version(out->driver, (unsigned int)sizeof out->driver);
    if (lib->clock(device, CLOCK_OF_PROCESSORS, &mhz) == 0)
        out->clock_Hz = 1e6 * (double)mhz;
    if (lib->power(device, &mw) == 0)
        out->power_w = 1e-3 * (double)mw;
    if (lib->power_limit(device, &limit_mw) == 0)
        out->power_limit_w = 1e-3 * (double)limit_mw;
    return true;
}

bool fr_gpu_sensors_read(const char *bus_id, fr_gpu_readings *out)
{
    library lib = {0};
    bool is_read = false;

    if (load(&lib) && lib.init() == 0) {
        is_read = read_device(&lib, bus_id, out);
        (void)lib.shutdown();
    }
    if (lib.handle != NULL)
        (void)dlclose(lib.handle);
    return is_read;
}
