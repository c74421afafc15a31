/* hostfile.c: see hostfile.h. */
#include "runtime/hosts/hostfile.h"

#include "core/base/text.h"
#include "core/base/units.h"
#include "core/system/fileio.h"

#include <stdlib.h>
#include <string.h>

/* "host slots=2 max_slots=4"; a host without slots counts once. */
static fr_status add_host(const char *path, int line_number, char *line,
                          fr_hosts *hosts, fr_err *err)
{
    char *comment = strchr(line, '#');
    fr_host host = {.n_slots = 1};
    fr_err why;

    if (comment != NULL)
        *comment = '\0';
    line = fr_text_trim(line);
    if (line[0] == '\0')
        return FR_OK;
    char *slots = strstr(line, " slots=");
    if (slots != NULL) {
        host.has_slots = true;
        slots += strlen(" slots=");
        slots[strcspn(slots, " \t")] = '\0';
        if (fr_parse_i64(slots, &host.n_slots, &why) != FR_OK ||
            host.n_slots < 1)
            return fr_fail(err, FR_INPUT, "%s:%d: slots=%.40s is no number",
                           path, line_number, slots);
    }
    line[strcspn(line, " \t")] = '\0';
    if (line[0] == '-') /* a remote shell would take it for an option */
        return fr_fail(err, FR_INPUT, "%s:%d: '%.40s' is no name of a host",
                       path, line_number, line);
    if (!fr_text_copy(host.name, sizeof host.name, line))
        return fr_fail(err, FR_INPUT, "%s:%d: a name of more than %d bytes",
                       path, line_number, FR_HOST_NAME - 1);
    FR_TRY_PUSH(hosts, host, err);
    return FR_OK;
}

fr_status fr_hostfile_load(const char *path, fr_hosts *out, fr_err *err)
{
    fr_hosts hosts = {0};
    fr_status status = FR_OK;
    int line_number = 0;
    char *text;

    FR_TRY(fr_file_read(path, 1 << 20, &text, NULL, err));
    for (char *at = text; status == FR_OK && at != NULL;) {
        char *line = strsep(&at, "\n");
        status = add_host(path, ++line_number, line, &hosts, err);
    }
    free(text);
    if (status == FR_OK && hosts.n == 0)
        status = fr_fail(err, FR_INPUT, "%s: no hosts", path);
    if (status != FR_OK) {
        fr_vec_release(&hosts);
        return status;
    }
    *out = hosts;
    return FR_OK;
}

fr_status fr_hostfile_check(const char *path, int64_t n_ranks, fr_err *err)
{
    fr_hosts hosts;
    int64_t n_slots = 0;
    bool is_known = true;

    FR_TRY(fr_hostfile_load(path, &hosts, err));
    const size_t n_hosts = hosts.n;
    for (size_t i = 0; i < hosts.n; i++) {
        n_slots += hosts.items[i].n_slots;
        is_known = is_known && hosts.items[i].has_slots;
    }
    fr_vec_release(&hosts);
    if (!is_known || n_slots >= n_ranks)
        return FR_OK;
    return fr_fail(err, FR_INFEASIBLE,
                   "%lld ranks do not fit: the %zu host%s of %s %s %lld "
                   "place%s; name more hosts or raise slots=N",
                   (long long)n_ranks, n_hosts, n_hosts == 1 ? "" : "s", path,
                   n_hosts == 1 ? "has" : "have", (long long)n_slots,
                   n_slots == 1 ? "" : "s");
}

fr_status fr_hostfile_slots(const char *path, int64_t *out, fr_err *err)
{
    fr_hosts hosts;
    int64_t n_slots = 0;

    FR_TRY(fr_hostfile_load(path, &hosts, err));
    for (size_t i = 0; i < hosts.n; i++)
        n_slots += hosts.items[i].n_slots;
    fr_vec_release(&hosts);
    *out = n_slots;
    return FR_OK;
}
