/* launch_supervise.c: starts mpirun, passes lines and signals on, and cleans
 * up after it. */
#include "runtime/launch_state.h"

#include "core/clock.h"
#include "core/text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOOK_MS 100 /* between two looks at the ranks */
#define GRACE_S 2.0 /* for mpirun to end after something went wrong */
#define MAX_ARGS 64 /* of mpirun itself */

static int n_allowed_cores(void)
{
    cpu_set_t allowed;

    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        return 1;
    return CPU_COUNT(&allowed);
}

/*
 * Cores are dealt by the ranks themselves (measure.h): two emulated nodes on
 * one machine would both be bound to core 0 by mpirun.
 */
static const char **mpirun_args(const fr_launch_options *options,
                                char *const *argv, char *world, size_t n_world)
{
    static const char *const passed_on[] = {
        FR_STATUS_DIR_ENV, "OMP_NUM_THREADS", "OMP_WAIT_POLICY",
        "GOMP_SPINCOUNT"};
    size_t n_argv = 0, n = 0;

    while (argv[n_argv])
        n_argv++;
    const char **args = calloc(MAX_ARGS + n_argv, sizeof *args);
    if (!args)
        return NULL;
    (void)snprintf(world, n_world, "%lld", (long long)options->world);
#define ARG(text) (args[n++] = (text))
    ARG("mpirun");
    ARG("-np");
    ARG(world);
    if (geteuid() == 0)
        ARG("--allow-run-as-root");
    if (options->hostfile) {
        ARG("--hostfile");
        ARG(options->hostfile);
        for (size_t i = 0; i < sizeof passed_on / sizeof *passed_on; i++) {
            if (!getenv(passed_on[i]))
                continue;
            ARG("-x");
            ARG(passed_on[i]);
        }
    } else if (options->world > n_allowed_cores()) {
        ARG("--oversubscribe");
    }
    ARG("--bind-to");
    ARG("none");
    for (size_t i = 0; i < n_argv; i++)
        ARG(argv[i]);
#undef ARG
    return args;
}

static void set_environment(const fr_launch_options *options, const char *dir)
{
    char text[32];

    (void)setenv(FR_STATUS_DIR_ENV, dir, 1);
    (void)snprintf(text, sizeof text, "%d", options->n_threads);
    (void)setenv("OMP_NUM_THREADS", text, 1);
    /* Waiting team mates spin for about a millisecond, then sleep: the
     * communication thread may need the core. */
    (void)setenv("GOMP_SPINCOUNT", "20000", 0);
}

/* In the child: becomes mpirun, or tells why not. */
static void become_mpirun(const char **args, const fr_launch_options *options,
                          const char *dir, pid_t parent, int stderr_fd,
                          int errno_fd)
{
    sigset_t none;

    (void)prctl(PR_SET_PDEATHSIG, (unsigned long)SIGTERM, 0UL, 0UL, 0UL);
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    if (getppid() == parent && dup2(stderr_fd, STDERR_FILENO) >= 0) {
        set_environment(options, dir);
        /* It does not write through the pointers. */
        (void)execvp(args[0], (char *const *)args);
    }
    int code = errno;
    ssize_t ignored = write(errno_fd, &code, sizeof code);
    (void)ignored;
    _exit(127);
}

static fr_status start_mpirun(fr_supervisor *sv, char *const *argv, fr_err *err)
{
    int lines[2], errnos[2], code = 0;
    char world[32];
    const char **args = mpirun_args(sv->options, argv, world, sizeof world);

    if (!args)
        return fr_fail_no_memory(err);
    if (pipe2(lines, O_CLOEXEC) != 0) {
        free((void *)args);
        return fr_fail(err, FR_FAILURE, "pipe: %s", strerror(errno));
    }
    if (pipe2(errnos, O_CLOEXEC) != 0) {
        (void)close(lines[0]);
        (void)close(lines[1]);
        free((void *)args);
        return fr_fail(err, FR_FAILURE, "pipe: %s", strerror(errno));
    }
    pid_t self = getpid();
    pid_t child = fork();
    if (child == 0)
        become_mpirun(args, sv->options, sv->dir, self, lines[1], errnos[1]);
    (void)close(lines[1]);
    (void)close(errnos[1]);
    free((void *)args);
    bool has_failed =
        child < 0 || read(errnos[0], &code, sizeof code) == sizeof code;
    (void)close(errnos[0]);
    sv->stderr_fd = lines[0];
    if (!has_failed) {
        sv->mpirun = child;
        return FR_OK;
    }
    if (child > 0)
        (void)waitpid(child, NULL, 0);
    if (code == ENOENT)
        return fr_fail(err, FR_FAILURE,
                       "%lld ranks need mpirun, which is not installed; "
                       "apt-get install openmpi-bin",
                       (long long)sv->options->world);
    return fr_fail(err, FR_FAILURE, "cannot start mpirun: %s",
                   strerror(child < 0 ? errno : code));
}

/* Cuts what has arrived into lines; false at the end. */
static bool read_lines(fr_supervisor *sv)
{
    char bytes[4096];
    ssize_t n = read(sv->stderr_fd, bytes, sizeof bytes);

    if (n < 0)
        return errno == EINTR || errno == EAGAIN;
    for (ssize_t i = 0; i < n; i++) {
        bool is_full = sv->n_line + 1 == sizeof sv->line;
        if (bytes[i] != '\n' && !is_full) {
            sv->line[sv->n_line++] = bytes[i];
            continue;
        }
        sv->line[sv->n_line] = '\0';
        sv->n_line = 0;
        fr_watch_line(sv, sv->line);
        if (is_full && bytes[i] != '\n')
            sv->line[sv->n_line++] = bytes[i];
    }
    return n > 0;
}

static void pass_signal_on(const fr_supervisor *sv)
{
    struct signalfd_siginfo info;

    if (read(sv->signal_fd, &info, sizeof info) == sizeof info)
        (void)kill(sv->mpirun, (int)info.ssi_signo);
}

/*
 * Ranks die with their mpirun (fr_launch_follow_parent), so ending that one
 * child is enough.
 */
static void press(fr_supervisor *sv, double *bad_since_s)
{
    double now_s = fr_clock_s();

    if (*bad_since_s < 0) {
        *bad_since_s = now_s;
        return;
    }
    if (now_s - *bad_since_s > 2 * GRACE_S)
        (void)kill(sv->mpirun, SIGKILL);
    else if (now_s - *bad_since_s > GRACE_S)
        (void)kill(sv->mpirun, SIGTERM);
}

/* Until mpirun has ended; returns its wait status. */
static int watch(fr_supervisor *sv)
{
    struct pollfd fds[2] = {{.fd = sv->stderr_fd, .events = POLLIN},
                            {.fd = sv->signal_fd, .events = POLLIN}};
    double bad_since_s = -1, ended_s = -1;
    bool is_open = true;
    int wait_status = 0;

    while (is_open || ended_s < 0) {
        fds[0].fd = is_open ? sv->stderr_fd : -1;
        (void)poll(fds, 2, LOOK_MS);
        if (is_open && (fds[0].revents & (POLLIN | POLLHUP | POLLERR)))
            is_open = read_lines(sv);
        if (ended_s < 0 && (fds[1].revents & POLLIN))
            pass_signal_on(sv);
        fr_watch_pages(sv);
        if (ended_s < 0 &&
            waitpid(sv->mpirun, &wait_status, WNOHANG) == sv->mpirun)
            ended_s = fr_clock_s();
        /* Somebody may keep the pipe open although mpirun is gone. */
        if (ended_s >= 0 && fr_clock_s() - ended_s > GRACE_S)
            break;
        if (ended_s < 0 && sv->blame != FR_BLAME_NONE)
            press(sv, &bad_since_s);
    }
    fr_watch_pages(sv);
    return wait_status;
}

static void remove_dir(const char *dir)
{
    char path[512];
    DIR *list = opendir(dir);

    if (!list)
        return;
    for (const struct dirent *entry; (entry = readdir(list));) {
        if (!fr_text_starts(entry->d_name, "rank-"))
            continue;
        (void)snprintf(path, sizeof path, "%s/%s", dir, entry->d_name);
        (void)unlink(path);
    }
    (void)closedir(list);
    (void)rmdir(dir);
}

/*
 * A killed rank leaves Open MPI's message buffers behind, as files of memory:
 * vader_segment.HOST.UID.JOB.RANK.
 */
static void remove_segments(const fr_supervisor *sv)
{
    char tail[64];
    DIR *list = opendir("/dev/shm");

    if (!list)
        return;
    for (const struct dirent *entry; (entry = readdir(list));) {
        if (!fr_text_starts(entry->d_name, "vader_segment."))
            continue;
        for (int64_t rank = 0; rank < sv->options->world; rank++) {
            const fr_rank_page *page = sv->pages[rank];
            if (!page || page->job == 0)
                continue;
            (void)snprintf(tail, sizeof tail, ".%u.%x.%lld",
                           (unsigned)geteuid(), page->job, (long long)rank);
            if (fr_text_ends(entry->d_name, tail))
                (void)unlinkat(dirfd(list), entry->d_name, 0);
        }
    }
    (void)closedir(list);
}

static fr_status judge(const fr_supervisor *sv, int wait_status, fr_err *err)
{
    if (WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0 &&
        sv->blame < FR_BLAME_HUNG)
        return FR_OK;
    if (sv->blame != FR_BLAME_NONE)
        return fr_fail(err, sv->blame_status, "%s", sv->blame_text);
    if (WIFSIGNALED(wait_status))
        return fr_fail(err, FR_FAILURE, "mpirun was killed by signal %d (%s)",
                       WTERMSIG(wait_status), strsignal(WTERMSIG(wait_status)));
    return fr_fail(err, FR_FAILURE, "mpirun ended with exit code %d",
                   WEXITSTATUS(wait_status));
}

static fr_status make_dir(fr_supervisor *sv, fr_err *err)
{
    const char *base = getenv("TMPDIR");
    int n = snprintf(sv->dir, sizeof sv->dir, "%s/forerun-XXXXXX",
                     base && base[0] ? base : "/tmp");

    if (n < 0 || (size_t)n >= sizeof sv->dir || !mkdtemp(sv->dir))
        return fr_fail(err, FR_IO, "%s: %s", sv->dir, strerror(errno));
    return FR_OK;
}

static fr_status supervise(fr_supervisor *sv, char *const *argv, fr_err *err)
{
    sigset_t ours, before;

    (void)sigemptyset(&ours);
    (void)sigaddset(&ours, SIGINT);
    (void)sigaddset(&ours, SIGTERM);
    (void)sigaddset(&ours, SIGHUP);
    if (sigprocmask(SIG_BLOCK, &ours, &before) != 0)
        return fr_fail(err, FR_FAILURE, "sigprocmask: %s", strerror(errno));
    sv->signal_fd = signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
    fr_status status = start_mpirun(sv, argv, err);
    if (status == FR_OK)
        status = judge(sv, watch(sv), err);
    if (status != FR_OK)
        remove_segments(sv);
    if (sv->signal_fd >= 0)
        (void)close(sv->signal_fd);
    if (sv->stderr_fd >= 0)
        (void)close(sv->stderr_fd);
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    return status;
}

fr_status fr_launch_supervise(char *const *argv,
                              const fr_launch_options *options, fr_err *err)
{
    fr_launch_options own = *options;
    fr_supervisor *sv = calloc(1, sizeof *sv);

    if (!sv)
        return fr_fail_no_memory(err);
    if (own.hung_s <= 0)
        own.hung_s = 20;
    sv->options = &own;
    sv->stderr_fd = sv->signal_fd = -1;
    sv->pages = calloc((size_t)own.world, sizeof(fr_rank_page *));
    fr_status status = sv->pages ? make_dir(sv, err) : fr_fail_no_memory(err);
    if (status == FR_OK) {
        status = supervise(sv, argv, err);
        for (int64_t rank = 0; rank < own.world; rank++)
            fr_rank_page_close(sv->pages[rank]);
        remove_dir(sv->dir);
    }
    free((void *)sv->pages);
    free(sv);
    return status;
}
