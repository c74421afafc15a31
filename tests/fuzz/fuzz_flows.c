/* fuzz_flows.c: any bytes as a list of flows over a network of three hosts. */
#include "simgrid/flows.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    static const char net[] =
        "<platform version=\"4.1\"><zone id=\"z\" routing=\"Full\">"
        "<host id=\"a\" speed=\"1Gf\"/><host id=\"b\" speed=\"1Gf\"/>"
        "<host id=\"c\" speed=\"1Gf\"/>"
        "<link id=\"l\" bandwidth=\"1GBps\" latency=\"1us\"/>"
        "<link id=\"m\" bandwidth=\"300MBps\" latency=\"0s\"/>"
        "<route src=\"a\" dst=\"b\"><link_ctn id=\"l\"/></route>"
        "<route src=\"b\" dst=\"c\"><link_ctn id=\"l\"/>"
        "<link_ctn id=\"m\"/></route></zone></platform>";
    fr_platform *platform = NULL;
    fr_flows_result result = {0};
    fr_err err;
    fr_status status =
        fr_platform_parse("net", net, sizeof net - 1, &platform, &err);

    if (status != FR_OK)
        abort();
    status = fr_flows_run_text(platform, "input", (const char *)bytes, n,
                               &result, &err);
    fuzz_check_error(status, &err);
    for (size_t i = 0; status == FR_OK && i < result.n; i++)
        if (!(result.rows[i].finish_s <= result.makespan_s))
            abort();
    fr_flows_result_release(&result);
    fr_platform_destroy(platform);
    return 0;
}
