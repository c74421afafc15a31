/* doctor_hosts.c: see doctor_hosts.h. */
#include "calibrate/doctor/doctor_hosts.h"

#include "core/base/buffer.h"
#include "core/base/text.h"
#include "core/base/units.h"
#include "core/system/clock.h"

#include <math.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PROBE_S 15.0     /* for all hosts to answer */
#define MOST_CLOCK_S 1.0 /* logs of hosts whose clocks differ more mislead */
#define LEAST_SHM (64e6) /* Open MPI's own buffers and the slabs' begin */
#define PROGRAM_NEED "run over several machines"

/* ---- the script ---------------------------------------------------------- */

static void quote(const char *text, fr_buffer *out)
{
    fr_buffer_putc(out, '\'');
    for (; *text != '\0'; text++)
        if (*text == '\'')
            fr_buffer_puts(out, "'\\''");
        else
            fr_buffer_putc(out, *text);
    fr_buffer_putc(out, '\'');
}

/* POSIX, but for bash's /dev/tcp, without which no port is open.  plan NULL:
 * none is compared; port 0: none is tried. */
static void write_script(const char *program, const char *plan, int port,
                         fr_buffer *out)
{
    fr_buffer_puts(out, "echo time=$(date +%s.%N); "
                        "h() { [ -r \"$1\" ] && sha256sum <\"$1\" | "
                        "cut -d' ' -f1; }; echo program=$(h ");
    quote(program, out);
    fr_buffer_puts(out, "); ");
    if (plan != NULL) {
        fr_buffer_puts(out, "echo plan=$(h ");
        quote(plan, out);
        fr_buffer_puts(out, "); ");
    }
    fr_buffer_puts(
        out,
        "echo mpi=$(command -v orted >/dev/null && mpirun --version 2>&1 | "
        "head -n 1); "
        "echo shm=$(df -Pk /dev/shm 2>/dev/null | awk 'NR==2{print $4}'); "
        "echo memory=$(awk '/MemAvailable/{print $2}' /proc/meminfo); ");
    if (port > 0)
        fr_buffer_printf(
            out,
            "a=${SSH_CONNECTION%%%% *}; [ -z \"$a\" ] || "
            "if timeout 3 bash -c \"exec 3<>/dev/tcp/$a/%d\" 2>/dev/null; "
            "then echo port=open; else echo port=closed; fi; ",
            port);
    fr_buffer_puts(out, "exit 0");
}

void fr_doctor_read_facts(const char *text, fr_host_facts *out)
{
    struct {
        const char *key;
        char *text;
        double *number, unit;
    } rows[] = {{"program=", out->program, NULL, 0},
                {"plan=", out->plan, NULL, 0},
                {"mpi=", out->mpi, NULL, 0},
                {"port=", out->port, NULL, 0},
                {"time=", NULL, &out->unix_s, 1},
                {"shm=", NULL, &out->shm_bytes, 1024},
                {"memory=", NULL, &out->memory_bytes, 1024}};

    *out = (fr_host_facts){0};
    while (*text != '\0') {
        const size_t n = strcspn(text, "\r\n");
        for (size_t i = 0; i < FR_LENGTH(rows); i++) {
            const size_t n_key = strlen(rows[i].key);
            if (n < n_key || strncmp(text, rows[i].key, n_key) != 0)
                continue;
            if (rows[i].text != NULL)
                (void)snprintf(rows[i].text, sizeof out->program, "%.*s",
                               (int)(n - n_key < 79 ? n - n_key : 79),
                               text + n_key);
            else
                *rows[i].number = strtod(text + n_key, NULL) * rows[i].unit;
        }
        text += n + (text[n] != '\0');
    }
    if (!isfinite(out->unix_s) || !isfinite(out->shm_bytes) ||
        !isfinite(out->memory_bytes))
        out->unix_s = out->shm_bytes = out->memory_bytes = 0;
}

/* ---- verdicts ------------------------------------------------------------ */

typedef struct judge {
    const char *host;
    fr_host_findings *out;
    fr_status status;
} judge;

static FR_PRINTF(5, 6) void add(judge *j, const char *check,
                                fr_finding_state state, const char *mend,
                                const char *found, ...)
{
    fr_host_finding at = {.finding = {.check = check,
                                      .state = state,
                                      .needed_for = state == FR_FINDING_OK
                                                        ? NULL
                                                        : PROGRAM_NEED}};
    va_list args;

    fr_text_copy_cut(at.host, sizeof at.host, j->host);
    fr_text_copy_cut(at.finding.mend, sizeof at.finding.mend, mend);
    va_start(args, found);
    (void)vsnprintf(at.finding.found, sizeof at.finding.found, found, args);
    va_end(args);
    if (j->status == FR_OK && fr_vec_push(j->out, at) != FR_OK)
        j->status = FR_NO_MEMORY;
}

static void judge_file(judge *j, const char *check, const char *there,
                       const char *here, const char *missing)
{
    if (there[0] == '\0')
        add(j, check, FR_FINDING_MISSING, missing, "it is not there");
    else if (strcmp(there, here) != 0)
        add(j, check, FR_FINDING_MISSING, "copy it there again",
            "another one than here (%.12s, here %.12s)", there, here);
    else
        add(j, check, FR_FINDING_OK, "", "the same as here (%.12s)", there);
}

/* The clock was read at some time within the probe. */
static void judge_clock(judge *j, const fr_host_probe *probe,
                        const fr_host_facts *facts, double here_unix_s)
{
    const double length_s = probe->end_s - probe->begin_s;
    const double offset_s =
        facts->unix_s - (here_unix_s - 0.5 * fabs(length_s));
    const double error_s = 0.5 * fabs(length_s);

    if (facts->unix_s <= 0)
        add(j, "clock", FR_FINDING_ADVICE, "", "not known");
    else if (fabs(offset_s) - error_s > MOST_CLOCK_S)
        add(j, "clock", FR_FINDING_ADVICE,
            "chrony or ntp sets it: times in logs mislead",
            "%.1f s %s than this host's", fabs(offset_s),
            offset_s > 0 ? "later" : "earlier");
    else
        add(j, "clock", FR_FINDING_OK, "", "within %.1f s of this host's",
            fmax(0.1, fabs(offset_s) + error_s));
}

static void judge_memory(judge *j, const fr_host_facts *facts)
{
    char text[FR_FORMAT_MAX];

    if (facts->shm_bytes < LEAST_SHM)
        add(j, "/dev/shm", FR_FINDING_ADVICE,
            "mount it larger: ranks of a host share memory through it",
            "%s are free",
            fr_format_bytes(text, sizeof text, facts->shm_bytes));
    else
        add(j, "/dev/shm", FR_FINDING_OK, "", "%s are free",
            fr_format_bytes(text, sizeof text, facts->shm_bytes));
    add(j, "memory",
        facts->memory_bytes > 0 ? FR_FINDING_OK : FR_FINDING_ADVICE, "",
        "%s are available",
        fr_format_bytes(text, sizeof text, facts->memory_bytes));
}

static void judge_port(judge *j, const fr_host_facts *facts)
{
    if (strcmp(facts->port, "open") == 0)
        add(j, "ports", FR_FINDING_OK, "", "it reaches this host");
    else if (strcmp(facts->port, "closed") == 0)
        add(j, "ports", FR_FINDING_MISSING,
            "open the ports above 1023 between the hosts",
            "it cannot open a connection to this host");
}

fr_status fr_doctor_judge_host(const fr_host *host, const fr_host_probe *probe,
                               const fr_host_facts *here, double here_unix_s,
                               const char *plan, fr_host_findings *out,
                               fr_err *err)
{
    judge j = {host->name, out, FR_OK};
    char reason[160], mend[200];
    fr_host_facts facts;

    if (fr_host_reason(probe, "", reason, mend)) {
        add(&j, "reachable", FR_FINDING_MISSING, mend, "%s", reason);
        return j.status == FR_OK ? FR_OK : fr_fail_no_memory(err);
    }
    fr_doctor_read_facts(probe->out, &facts);
    add(&j, "reachable", FR_FINDING_OK, "", "%s, %lld slot%s%s",
        probe->is_local ? "this host" : probe->agent, (long long)host->n_slots,
        host->n_slots == 1 ? "" : "s",
        host->has_slots ? "" : " (not said: Open MPI takes its cores)");
    judge_file(&j, "program", facts.program, here->program,
               "install it under the same path, or share the folder");
    if (plan != NULL)
        judge_file(&j, "plan", facts.plan, here->plan,
                   "copy it under the same path, or share the folder");
    if (facts.mpi[0] == '\0')
        add(&j, "MPI", FR_FINDING_MISSING, "apt-get install openmpi-bin",
            "Open MPI is not in the PATH of its shell");
    else if (strcmp(facts.mpi, here->mpi) != 0)
        add(&j, "MPI", FR_FINDING_MISSING, "install the same version",
            "%s; here: %s", facts.mpi, here->mpi);
    else
        add(&j, "MPI", FR_FINDING_OK, "", "%s", facts.mpi);
    judge_clock(&j, probe, &facts, here_unix_s);
    judge_memory(&j, &facts);
    judge_port(&j, &facts);
    return j.status == FR_OK ? FR_OK : fr_fail_no_memory(err);
}

/* ---- all hosts ----------------------------------------------------------- */

/* A port on which connections wait until it is closed; -1: none. */
static int listen_anywhere(int *port)
{
    struct sockaddr_in6 any = {.sin6_family = AF_INET6,
                               .sin6_addr = in6addr_any};
    socklen_t n = sizeof any;
    const int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

    *port = 0;
    if (fd >= 0 && bind(fd, (struct sockaddr *)&any, sizeof any) == 0 &&
        listen(fd, 64) == 0 &&
        getsockname(fd, (struct sockaddr *)&any, &n) == 0)
        *port = ntohs(any.sin6_port);
    return fd;
}

static double unix_now_s(void)
{
    struct timespec now = {0};

    (void)timespec_get(&now, TIME_UTC);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static fr_status judge_all(const fr_hosts *hosts, const fr_host_probe *probes,
                           const char *plan, fr_host_findings *out, fr_err *err)
{
    const double now_unix_s = unix_now_s(), now_s = fr_clock_s();
    fr_host_facts here;

    /* The last one is this host. */
    fr_doctor_read_facts(probes[hosts->n].out, &here);
    for (size_t i = 0; i < hosts->n; i++)
        FR_TRY(fr_doctor_judge_host(&hosts->items[i], &probes[i], &here,
                                    now_unix_s - (now_s - probes[i].end_s),
                                    plan, out, err));
    return FR_OK;
}

fr_status fr_doctor_examine_hosts(const char *hostfile, const char *program,
                                  const char *plan, fr_host_findings *out,
                                  fr_err *err)
{
    const fr_host self = {.name = "localhost", .n_slots = 1};
    fr_hosts hosts;
    fr_buffer script;
    fr_status status;
    int port;

    FR_TRY(fr_hostfile_load(hostfile, &hosts, err));
    const int fd = listen_anywhere(&port);
    fr_host_probe *probes = calloc(hosts.n + 1, sizeof *probes);
    fr_buffer_init(&script);
    write_script(program, plan, port, &script);
    status = fr_buffer_check(&script, err);
    if (status == FR_OK &&
        (probes == NULL || fr_vec_push(&hosts, self) != FR_OK))
        status = fr_fail_no_memory(err);
    if (status == FR_OK)
        status = fr_hosts_probe(&hosts, fr_buffer_text(&script), PROBE_S,
                                probes, err);
    if (status == FR_OK) {
        hosts.n--; /* the host that was added */
        status = judge_all(&hosts, probes, plan, out, err);
    }
    fr_buffer_release(&script);
    free(probes);
    fr_vec_release(&hosts);
    if (fd >= 0)
        (void)close(fd);
    return status;
}
