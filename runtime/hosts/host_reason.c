/* host_reason.c: the answer of a remote shell in our words. */
#include "core/base/buffer.h"
#include "core/base/text.h"
#include "runtime/hosts/host_probe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Parts of OpenSSH's messages (clientloop.c, sshconnect.c of OpenSSH 9.2) and
 * of strerror(), and what they mean. */
static const struct {
    const char *part, *reason, *mend;
} words[] = {
    {"Connection refused", "no ssh server answers (connection refused)",
     "start sshd there"},
    {"timed out", "unreachable (no answer)",
     "is it up, and does a firewall let ssh through?"},
    {"No route to host", "unreachable (no route)",
     "is it up, and in a network of this host?"},
    {"Network is unreachable", "unreachable (no network)",
     "bring up an interface that reaches it"},
    {"Could not resolve", "unknown: the name has no address",
     "write it as in /etc/hosts or DNS"},
    {"Permission denied", "ssh wants a password",
     "ssh-copy-id puts your key there"},
    {"Host key verification failed", "ssh does not know its key",
     "log in once by hand, or ssh-keyscan it into ~/.ssh/known_hosts"},
    {"REMOTE HOST IDENTIFICATION HAS CHANGED", "its ssh key has changed",
     "ssh-keygen -R removes the old one"},
};

/* Appends a script that ends well where Open MPI and the program are; a program
 * without an absolute path is not looked for. */
static void write_script(const char *program, fr_buffer *out)
{
    fr_buffer_printf(out, "command -v orted >/dev/null 2>&1 || exit %d; ",
                     FR_PROBE_NO_MPI);
    if (program[0] != '/') {
        fr_buffer_puts(out, "exit 0");
        return;
    }
    fr_buffer_puts(out, "[ -x '");
    for (const char *at = program; *at != '\0'; at++)
        if (*at == '\'')
            fr_buffer_puts(out, "'\\''");
        else
            fr_buffer_putc(out, *at);
    fr_buffer_printf(out, "' ] || exit %d; exit 0", FR_PROBE_NO_PROGRAM);
}

/* The last line that says something. */
static void last_line(const char *text, char *out, size_t n)
{
    out[0] = '\0';
    for (const char *at = text; *at != '\0';) {
        const size_t n_line = strcspn(at, "\r\n");
        if (strspn(at, " \t") < n_line)
            (void)snprintf(out, n, "%.*s", (int)(n_line < n ? n_line : n - 1),
                           at);
        at += n_line + (at[n_line] != '\0');
    }
}

static bool say(char reason[160], char mend[200], const char *what,
                const char *help)
{
    (void)snprintf(reason, 160, "%s", what);
    (void)snprintf(mend, 200, "%s", help);
    return true;
}

bool fr_host_reason(const fr_host_probe *probe, const char *program,
                    char reason[160], char mend[200])
{
    char last[100];

    if (probe->is_unknown)
        return say(reason, mend, "unknown: the name has no address",
                   "write it as in /etc/hosts or DNS");
    if (probe->is_late)
        return say(reason, mend, "unreachable (no answer)",
                   "is it up, and does a firewall let ssh through?");
    if (probe->code == 0)
        return false;
    if (probe->code == FR_PROBE_NO_MPI)
        return say(reason, mend, "Open MPI is not in the PATH of its shell",
                   "install openmpi-bin there; a shell without a terminal "
                   "reads ~/.bashrc only to its first return");
    if (probe->code == FR_PROBE_NO_PROGRAM) {
        (void)snprintf(reason, 160, "no program at %.120s", program);
        (void)snprintf(mend, 200,
                       "install it there under the same path, or share the "
                       "folder");
        return true;
    }
    if (probe->code == 127 && !probe->is_local && probe->err[0] == '\0') {
        (void)snprintf(reason, 160, "%.100s is not installed on this host",
                       probe->agent);
        (void)snprintf(mend, 200, "%s",
                       probe->is_ssh ? "apt-get install openssh-client"
                                     : "OMPI_MCA_plm_rsh_agent names it");
        return true;
    }
    for (size_t i = 0; i < FR_LENGTH(words); i++)
        if (strstr(probe->err, words[i].part) != NULL)
            return say(reason, mend, words[i].reason, words[i].mend);
    last_line(probe->err, last, sizeof last);
    if (last[0] != '\0')
        (void)snprintf(reason, 160, "%.40s says: %s", probe->agent, last);
    else
        (void)snprintf(reason, 160, "%.40s ended with exit code %d",
                       probe->agent, probe->code);
    (void)snprintf(mend, 200, "log in there by hand");
    return true;
}

fr_status fr_hosts_explain(const char *hostfile, const char *program,
                           double limit_s, fr_err *err)
{
    fr_hosts hosts;
    fr_buffer script;
    fr_err ignored;
    char reason[160], mend[200];

    if (fr_hostfile_load(hostfile, &hosts, &ignored) != FR_OK)
        return FR_OK;
    fr_host_probe *probes = calloc(hosts.n, sizeof *probes);
    fr_status status = FR_OK;
    fr_buffer_init(&script);
    write_script(program, &script);
    if (probes != NULL && !script.has_failed &&
        fr_hosts_probe(&hosts, fr_buffer_text(&script), limit_s, probes,
                       &ignored) == FR_OK)
        for (size_t i = 0; i < hosts.n && status == FR_OK; i++)
            if (fr_host_reason(&probes[i], program, reason, mend))
                status = fr_fail(err, FR_FAILURE, "host %.100s: %s; %s",
                                 hosts.items[i].name, reason, mend);
    fr_buffer_release(&script);
    free(probes);
    fr_vec_release(&hosts);
    return status;
}
