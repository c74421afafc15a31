/* host_probe.c: see host_probe.h. */
#include "runtime/hosts/host_probe.h"

#include "core/base/text.h"
#include "core/system/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* A probe that is under way. */
typedef struct runner {
    pid_t pid; /* 0: it has ended, or never began */
    int fd[2]; /* stdout, stderr; -1: at its end */
    size_t n[2];
} runner;

/* ---- names --------------------------------------------------------------- */

/* Does an interface of this machine have the address? */
static bool is_own_address(const struct sockaddr *address)
{
    struct ifaddrs *all = NULL;
    char wanted[NI_MAXHOST], own[NI_MAXHOST];
    const socklen_t n = address->sa_family == AF_INET
                            ? sizeof(struct sockaddr_in)
                            : sizeof(struct sockaddr_in6);
    bool is_own = false;

    if (getnameinfo(address, n, wanted, sizeof wanted, NULL, 0,
                    NI_NUMERICHOST) != 0 ||
        getifaddrs(&all) != 0)
        return false;
    for (const struct ifaddrs *at = all; at != NULL; at = at->ifa_next)
        if (at->ifa_addr != NULL &&
            at->ifa_addr->sa_family == address->sa_family &&
            getnameinfo(at->ifa_addr, n, own, sizeof own, NULL, 0,
                        NI_NUMERICHOST) == 0)
            is_own = is_own || strcmp(own, wanted) == 0;
    freeifaddrs(all);
    return is_own;
}

static void look_up(const char *name, fr_host_probe *out)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;

    if (getaddrinfo(name, NULL, &hints, &found) != 0) {
        out->is_unknown = true;
        return;
    }
    for (const struct addrinfo *at = found; at != NULL; at = at->ai_next)
        out->is_local = out->is_local || is_own_address(at->ai_addr);
    freeaddrinfo(found);
}

/* "node3" is this machine where it calls itself "node3.site". */
static bool is_own_name(const char *name)
{
    char own[FR_HOST_NAME] = "";

    (void)gethostname(own, sizeof own - 1);
    const size_t n = strcspn(own, ".");
    return strcmp(name, "localhost") == 0 || strcmp(name, own) == 0 ||
           (strlen(name) == n && strncmp(name, own, n) == 0);
}

static bool has_program(const char *name)
{
    const char *path = getenv("PATH");
    char file[1024];

    if (strchr(name, '/') != NULL)
        return access(name, X_OK) == 0;
    while (path != NULL && *path != '\0') {
        const size_t n = strcspn(path, ":");
        (void)snprintf(file, sizeof file, "%.*s/%.300s", (int)(n < 700 ? n : 0),
                       path, name);
        if (access(file, X_OK) == 0)
            return true;
        path += n + (path[n] == ':');
    }
    return false;
}

/* Open MPI's choice: its setting, else ssh, else rsh. */
static void find_agent(fr_host_probe *out)
{
    const char *set = getenv("OMPI_MCA_plm_rsh_agent");

    if (set == NULL || set[0] == '\0')
        set = getenv("OMPI_MCA_orte_rsh_agent");
    out->is_ssh = set == NULL || set[0] == '\0';
    fr_text_copy_cut(out->agent, sizeof out->agent,
                     !out->is_ssh         ? set
                     : has_program("ssh") ? "ssh"
                     : has_program("rsh") ? "rsh"
                                          : "ssh");
}

/* ---- processes ----------------------------------------------------------- */

static void become_agent(const fr_host_probe *probe, const char *host,
                         const char *script, const int to[2])
{
    const char *local[] = {"sh", "-c", script, NULL};
    const char *ssh[] = {probe->agent,       "-o", "BatchMode=yes", "-o",
                         "ConnectTimeout=5", host, script,          NULL};
    const char *other[] = {probe->agent, host, script, NULL};
    const bool is_ssh = probe->is_ssh && strcmp(probe->agent, "ssh") == 0;
    const char **argv = probe->is_local ? local : is_ssh ? ssh : other;
    const int nothing = open("/dev/null", O_RDONLY);
    sigset_t none;

    (void)setpgid(0, 0);
    (void)prctl(PR_SET_PDEATHSIG, (unsigned long)SIGKILL, 0UL, 0UL, 0UL);
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    if (dup2(nothing, STDIN_FILENO) >= 0 && dup2(to[0], STDOUT_FILENO) >= 0 &&
        dup2(to[1], STDERR_FILENO) >= 0)
        (void)execvp(argv[0], (char *const *)(uintptr_t)argv);
    _exit(127);
}

static fr_status start(const fr_host *host, const char *script,
                       fr_host_probe *out, runner *run, fr_err *err)
{
    int ends[2][2];

    out->begin_s = fr_clock_s();
    for (int i = 0; i < 2; i++)
        if (pipe2(ends[i], O_CLOEXEC) != 0) {
            if (i == 1) {
                (void)close(ends[0][0]);
                (void)close(ends[0][1]);
            }
            return fr_fail(err, FR_FAILURE, "pipe: %s", strerror(errno));
        }
    const int to[2] = {ends[0][1], ends[1][1]};
    run->pid = fork();
    if (run->pid == 0)
        become_agent(out, host->name, script, to);
    for (int i = 0; i < 2; i++) {
        (void)close(ends[i][1]);
        run->fd[i] = ends[i][0];
    }
    if (run->pid > 0)
        return FR_OK;
    run->pid = 0;
    return fr_fail(err, FR_FAILURE, "fork: %s", strerror(errno));
}

/* Reads what has come; a text that is full takes no more. */
static void follow(runner *run, int i, char *text, size_t n_text)
{
    char bytes[1024];
    const ssize_t n = read(run->fd[i], bytes, sizeof bytes);

    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n <= 0) {
        (void)close(run->fd[i]);
        run->fd[i] = -1;
        return;
    }
    for (ssize_t k = 0; k < n && run->n[i] + 1 < n_text; k++)
        if (bytes[k] != '\0')
            text[run->n[i]++] = bytes[k];
    text[run->n[i]] = '\0';
}

static void end(runner *run, fr_host_probe *out)
{
    int status = 0;

    if (run->pid <= 0)
        return;
    if (out->is_late)
        (void)kill(-run->pid, SIGKILL);
    while (waitpid(run->pid, &status, 0) < 0 && errno == EINTR)
        continue;
    out->code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    out->end_s = fr_clock_s();
    run->pid = 0;
    for (int i = 0; i < 2; i++)
        if (run->fd[i] >= 0)
            (void)close(run->fd[i]);
}

/* Takes the answers as they come, until the time is over. */
static void collect(runner *runs, fr_host_probe *out, size_t n, double limit_s,
                    struct pollfd *fds)
{
    const double begin_s = fr_clock_s();
    size_t n_open = n;

    while (n_open > 0 && fr_clock_s() - begin_s < limit_s) {
        n_open = 0;
        for (size_t i = 0; i < n; i++)
            for (int k = 0; k < 2; k++)
                fds[2 * i + (size_t)k] =
                    (struct pollfd){.fd = runs[i].pid > 0 ? runs[i].fd[k] : -1,
                                    .events = POLLIN};
        (void)poll(fds, (nfds_t)(2 * n), 100);
        for (size_t i = 0; i < n; i++) {
            if (runs[i].pid > 0 && fds[2 * i].revents != 0)
                follow(&runs[i], 0, out[i].out, sizeof out[i].out);
            if (runs[i].pid > 0 && fds[2 * i + 1].revents != 0)
                follow(&runs[i], 1, out[i].err, sizeof out[i].err);
            if (runs[i].pid > 0 && runs[i].fd[0] < 0 && runs[i].fd[1] < 0)
                end(&runs[i], &out[i]);
            n_open += runs[i].pid > 0;
        }
    }
    for (size_t i = 0; i < n; i++) {
        out[i].is_late = runs[i].pid > 0;
        end(&runs[i], &out[i]);
    }
}

fr_status fr_hosts_probe(const fr_hosts *hosts, const char *script,
                         double limit_s, fr_host_probe *out, fr_err *err)
{
    runner *runs = calloc(hosts->n + 1, sizeof *runs);
    struct pollfd *fds = calloc(2 * hosts->n + 1, sizeof *fds);
    fr_status status =
        runs != NULL && fds != NULL ? FR_OK : fr_fail_no_memory(err);

    for (size_t i = 0; status == FR_OK && i < hosts->n; i++) {
        out[i] = (fr_host_probe){.is_local = is_own_name(hosts->items[i].name)};
        find_agent(&out[i]);
        if (!out[i].is_local && out[i].is_ssh)
            look_up(hosts->items[i].name, &out[i]);
        if (out[i].is_unknown)
            continue;
        if (!out[i].is_local && !has_program(out[i].agent))
            out[i].code = 127;
        else
            status = start(&hosts->items[i], script, &out[i], &runs[i], err);
    }
    if (runs != NULL && fds != NULL)
        collect(runs, out, hosts->n, status == FR_OK ? limit_s : 0, fds);
    free(runs);
    free(fds);
    return status;
}
