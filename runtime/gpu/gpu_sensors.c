/*
 * gpu_sensors.c: a handful of NVML's functions by name.  Declared as in
 * nvml.h of CUDA 13 (NVML API Reference Guide); all return 0 for success.
 */
#include "runtime/gpu/gpu_sensors.h"

#include "core/system/shared_library.h"

#include <string.h>

enum { CLOCK_OF_PROCESSORS = 1 }; /* NVML_CLOCK_SM */

typedef int (*plain_fn)(void);
typedef int (*text_fn)(char *out, unsigned int n);
typedef int (*find_fn)(const char *bus_id, void **device);
typedef int (*read_fn)(void *device, unsigned int *out);
typedef int (*clock_fn)(void *device, int kind, unsigned int *out);

typedef struct library {
    plain_fn init, shutdown;
    text_fn driver_version;
    find_fn find;
    clock_fn clock;
    read_fn power, power_limit;
} library;

static bool load(library *lib)
{
    void *nvml = fr_library_open("libnvidia-ml.so.1");
    return nvml != NULL && fr_library_find(nvml, "nvmlInit_v2", &lib->init) &&
           fr_library_find(nvml, "nvmlShutdown", &lib->shutdown) &&
           fr_library_find(nvml, "nvmlSystemGetDriverVersion",
                           &lib->driver_version) &&
           fr_library_find(nvml, "nvmlDeviceGetHandleByPciBusId_v2",
                           &lib->find) &&
           fr_library_find(nvml, "nvmlDeviceGetClockInfo", &lib->clock) &&
           fr_library_find(nvml, "nvmlDeviceGetPowerUsage", &lib->power) &&
           fr_library_find(nvml, "nvmlDeviceGetEnforcedPowerLimit",
                           &lib->power_limit);
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
    return is_read;
}
