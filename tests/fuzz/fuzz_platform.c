/* fuzz_platform.c: any bytes as a SimGrid platform; some routes are asked. */
#include "simgrid/platform.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    static const char *const hosts[] = {"a", "b", "h0", "h1", "h3"};
    fr_platform *platform = NULL;
    fr_platform_path path = {0};
    fr_err err;
    fr_status status =
        fr_platform_parse("input", (const char *)bytes, n, &platform, &err);

    fuzz_check_error(status, &err);
    if (status != FR_OK)
        return 0;
    for (size_t i = 0; i < 25; i++) {
        int64_t src = fr_platform_host_find(platform, hosts[i / 5]);
        int64_t dst = fr_platform_host_find(platform, hosts[i % 5]);
        if (src < 0 || dst < 0)
            continue;
        status = fr_platform_route(platform, src, dst, &path, &err);
        fuzz_check_error(status, &err);
        for (size_t k = 0; status == FR_OK && k < path.links.n; k++)
            if (path.links.items[k] >= fr_platform_n_links(platform))
                abort();
    }
    fr_vec_release(&path.links);
    fr_platform_destroy(platform);
    return 0;
}
