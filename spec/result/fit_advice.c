/* fit_advice.c: the one wording of "does not fit". */
#include "spec/result/fit_advice.h"

#include "core/base/units.h"

#include <stdio.h>
#include <string.h>

/* "93.1 of 79.6 GiB"; the unit stands twice where it differs, and the bytes
 * that are missing stand alone where both amounts look the same. */
static void describe_need(double needed_bytes, double capacity_bytes, char *buf,
                          size_t n_buf)
{
    char needed[FR_FORMAT_MAX], capacity[FR_FORMAT_MAX], lack[FR_FORMAT_MAX];
    fr_format_bytes(needed, sizeof needed, needed_bytes);
    fr_format_bytes(capacity, sizeof capacity, capacity_bytes);
    const char *unit_needed = strchr(needed, ' ');
    const char *unit = strchr(capacity, ' ');
    if (strcmp(needed, capacity) == 0 && needed_bytes > capacity_bytes)
        snprintf(
            buf, n_buf, "needs %s more than %s",
            fr_format_bytes(lack, sizeof lack, needed_bytes - capacity_bytes),
            capacity);
    else if (unit_needed != NULL && unit != NULL &&
             strcmp(unit_needed, unit) == 0)
        snprintf(buf, n_buf, "needs %.*s of %s", (int)(unit_needed - needed),
                 needed, capacity);
    else
        snprintf(buf, n_buf, "needs %s of %s", needed, capacity);
}

/* "93 %": as columns of tables write how likely something is. */
static void describe_share(double probability, char *buf, size_t n_buf)
{
    if (probability > 0.995)
        snprintf(buf, n_buf, ">99 %%");
    else
        snprintf(buf, n_buf, "%.0f %%", 100 * probability);
}

bool fr_fit_is_of_hosts(const fr_prediction *prediction)
{
    return prediction->memory.peak_bytes <= prediction->memory.capacity_bytes &&
           fr_prediction_lacks_host(prediction);
}

char *fr_fit_verdict(const fr_prediction *prediction, char *buf, size_t n_buf)
{
    const double peak_bytes = (double)prediction->memory.peak_bytes;
    const double capacity_bytes = (double)prediction->memory.capacity_bytes;
    const double p_fits = prediction->memory.p_fits;
    const bool is_host = fr_fit_is_of_hosts(prediction);
    char need[96], sure[FR_FORMAT_MAX];
    if (is_host)
        describe_need((double)prediction->memory.host_bytes,
                      (double)prediction->memory.host_capacity_bytes, need,
                      sizeof need);
    else
        describe_need(peak_bytes, capacity_bytes, need, sizeof need);
    if (prediction->memory.fits) {
        describe_share(p_fits, sure, sizeof sure);
        snprintf(buf, n_buf,
                 "MAY NOT FIT: %s (fits with %s, less than --fit-confidence)",
                 need, sure);
    } else {
        describe_share(1 - p_fits, sure, sizeof sure);
        snprintf(buf, n_buf, "DOES NOT FIT: %s%s (%s sure)", need,
                 is_host ? " of a node's hosts" : "", sure);
    }
    return buf;
}

char *fr_fit_count(size_t n_too_large, size_t n, char *buf, size_t n_buf)
{
    snprintf(buf, n_buf, "%zu of %zu point%s %s NOT FIT", n_too_large, n,
             n == 1 ? "" : "s", n_too_large == 1 ? "DOES" : "DO");
    return buf;
}
