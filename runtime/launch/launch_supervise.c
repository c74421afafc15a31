/* launch_supervise.c: starts mpirun, passes lines and signals on, and cleans
 * up after it. */
#include "core/system/clock.h"
#include "runtime/hosts/host_probe.h"
#include "runtime/launch/launch_state.h"

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
#define PROBE_S 8.0 /* for all hosts to answer */
#define GRACE_S 2.0 /* for mpirun to end after something went wrong */
#define WORDS_S 0.3 /* for ranks to leave their reasons */
#define MAX_ARGS 64 /* of mpirun itself */
/* Processes of one machine: far more than are of use, and it still answers. */
#define MOST_RANKS_PER_CORE 64

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
        FR_STATUS_DIR_ENV, FR_REACHED_ENV, "OMP_NUM_THREADS", "OMP_WAIT_POLICY",
        "GOMP_SPINCOUNT"};
    static const char *const keepalive[] = {
        "--mca", "oob_tcp_keepalive_time",   "10",
        "--mca", "oob_tcp_keepalive_intvl",  "5",
        "--mca", "oob_tcp_keepalive_probes", "2"};
    size_t n_argv = 0, n = 0;

    while (argv[n_argv] != NULL)
        n_argv++;
    const char **args = calloc(MAX_ARGS + n_argv, sizeof *args);
    if (args == NULL)
        return NULL;
    (void)snprintf(world, n_world, "%lld", (long long)options->world);
#define ARG(text) (args[n++] = (text))
    ARG("mpirun");
    ARG("-np");
    ARG(world);
    if (geteuid() == 0)
        ARG("--allow-run-as-root");
    if (options->hostfile != NULL) {
        ARG("--hostfile");
        ARG(options->hostfile);
        for (size_t i = 0; i < sizeof passed_on / sizeof *passed_on; i++) {
            if (getenv(passed_on[i]) == NULL)
                continue;
            ARG("-x");
            ARG(passed_on[i]);
        }
    } else if (options->world > n_allowed_cores()) {
        ARG("--oversubscribe");
    }
    ARG("--bind-to");
    ARG("none");
    /* Ranks have nothing to do when they are ended; the default waits for 1 s.
     */
    ARG("--mca");
    ARG("odls_base_sigkill_timeout");
    ARG("0");
    /* Daemons of other hosts end 20 s after this one has left the network; the
     * default is 8 minutes. */
    for (size_t i = 0; i < FR_LENGTH(keepalive); i++)
        ARG(keepalive[i]);
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

/* Turns the child into mpirun, or tells why that cannot be.  fds are its
 * stdout, its stderr, and where errno is written. */
static void become_mpirun(const char **args, const fr_launch_options *options,
                          const char *dir, pid_t parent, const int fds[3])
{
    sigset_t none;
    const int nothing = open("/dev/null", O_RDONLY);

    /* The process gets its own group and no terminal: a signal of the terminal
     * is for this program to pass on (mpirun would end at a signal that it was
     * started to ignore), and mpirun must not read input meant for others. */
    (void)setpgid(0, 0);
    if (nothing > STDIN_FILENO) {
        (void)dup2(nothing, STDIN_FILENO);
        (void)close(nothing);
    }
    (void)prctl(PR_SET_PDEATHSIG, (unsigned long)SIGTERM, 0UL, 0UL, 0UL);
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    if (getppid() == parent && dup2(fds[0], STDOUT_FILENO) >= 0 &&
        dup2(fds[1], STDERR_FILENO) >= 0) {
        set_environment(options, dir);
        /* It does not write through the pointers. */
        (void)execvp(args[0], (char *const *)args);
    }
    int code = errno;
    ssize_t ignored = write(fds[2], &code, sizeof code);
    (void)ignored;
    _exit(127);
}

static void close_all(int n, const int *fds)
{
    for (int i = 0; i < n; i++)
        (void)close(fds[i]);
}

/* n pipes: what is read in from[], what is written in to[]. */
static fr_status open_pipes(int n, int *from, int *to, fr_err *err)
{
    for (int i = 0; i < n; i++) {
        int ends[2];
        if (pipe2(ends, O_CLOEXEC) != 0) {
            fr_status status =
                fr_fail(err, FR_FAILURE, "pipe: %s", strerror(errno));
            close_all(i, from);
            close_all(i, to);
            return status;
        }
        from[i] = ends[0];
        to[i] = ends[1];
    }
    return FR_OK;
}

static fr_status start_mpirun(fr_supervisor *sv, char *const *argv, fr_err *err)
{
    int from[3], to[3], code = 0;
    char world[32];

    FR_TRY(open_pipes(3, from, to, err));
    const char **args = mpirun_args(sv->options, argv, world, sizeof world);
    if (args == NULL) {
        close_all(3, from);
        close_all(3, to);
        return fr_fail_no_memory(err);
    }
    pid_t self = getpid();
    pid_t child = fork();
    if (child == 0)
        become_mpirun(args, sv->options, sv->dir, self, to);
    close_all(3, to);
    free((void *)args);
    bool has_failed =
        child < 0 || read(from[2], &code, sizeof code) == sizeof code;
    (void)close(from[2]);
    sv->stdout_fd = from[0];
    sv->stderr_fd = from[1];
    if (!has_failed) {
        sv->mpirun = child;
        fr_clean_begin(sv);
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

/* The answer, which is given when the run has gone well; false at the end. */
static bool take_answer(fr_supervisor *sv)
{
    char bytes[4096];
    ssize_t n = read(sv->stdout_fd, bytes, sizeof bytes);

    if (n < 0)
        return errno == EINTR || errno == EAGAIN;
    fr_buffer_append(&sv->answer, bytes, (size_t)n);
    return n > 0;
}

static fr_status give_answer(fr_supervisor *sv, fr_err *err)
{
    FR_TRY(fr_buffer_check(&sv->answer, err));
    for (size_t done = 0; done < sv->answer.n;) {
        ssize_t n =
            write(STDOUT_FILENO, sv->answer.data + done, sv->answer.n - done);
        if (n >= 0)
            done += (size_t)n;
        else if (errno != EINTR)
            return fr_fail(err, FR_IO, "standard output: %s", strerror(errno));
    }
    return FR_OK;
}

/* Reads one of mpirun's two streams, if something has come. */
static void follow(fr_supervisor *sv, const struct pollfd *seen, int *fd,
                   bool (*take)(fr_supervisor *sv))
{
    if (*fd < 0 || !(seen->revents & (POLLIN | POLLHUP | POLLERR)) || take(sv))
        return;
    (void)close(*fd);
    *fd = -1;
}

static void take_signal(fr_supervisor *sv)
{
    struct signalfd_siginfo info;

    if (read(sv->signal_fd, &info, sizeof info) != sizeof info)
        return;
    const bool is_asking =
        info.ssi_signo == SIGTERM || info.ssi_signo == SIGUSR1;
    if (sv->options->is_stoppable && is_asking && !fr_stop_is_of_user(sv)) {
        fr_stop_ask(sv, (int)info.ssi_signo, (int)info.ssi_pid, false);
        return;
    }
    fr_watch_signal(sv, (int)info.ssi_signo, (int)info.ssi_pid);
    fr_clean_signal(sv->mpirun, (int)info.ssi_signo);
}

/*
 * Asks mpirun to end its ranks, which die with it (fr_launch_follow_parent);
 * then ends all of them.
 */
static void press(fr_supervisor *sv, double *bad_since_s)
{
    double now_s = fr_clock_s();

    if (*bad_since_s < 0) {
        *bad_since_s = now_s;
        return;
    }
    /* Ranks that hold signals back would not hear mpirun. */
    if (now_s - *bad_since_s >
        (sv->options->is_stoppable ? WORDS_S : 2 * GRACE_S)) {
        sv->has_killed = true;
        fr_clean_ranks(sv);
    }
    if (now_s - *bad_since_s > 2 * GRACE_S) {
        (void)kill(sv->mpirun, SIGKILL);
    } else if (now_s - *bad_since_s > GRACE_S) {
        fr_clean_signal(sv->mpirun, SIGTERM);
    }
}

/* Shows the run to whoever looks on, and ends one that did not stop. */
static void look(fr_supervisor *sv, bool has_ended)
{
    const fr_launch_options *options = sv->options;

    fr_watch_pages(sv);
    if (options->on_look != NULL &&
        options->on_look(options->context, fr_watch_step(sv)) && !has_ended &&
        sv->stop.signal == 0)
        fr_stop_ask(sv, SIGTERM, (int)getpid(), true);
    if (!has_ended && sv->blame == FR_BLAME_NONE)
        fr_stop_look(sv);
}

/* Waits until mpirun has ended and returns its wait status. */
static int watch(fr_supervisor *sv, const char *program)
{
    const double begin_s = fr_clock_s();
    bool is_asked = sv->options->hostfile == NULL;
    double bad_since_s = -1, ended_s = -1;
    int wait_status = 0;

    while (sv->stdout_fd >= 0 || sv->stderr_fd >= 0 || ended_s < 0) {
        struct pollfd fds[3] = {{.fd = sv->stdout_fd, .events = POLLIN},
                                {.fd = sv->stderr_fd, .events = POLLIN},
                                {.fd = sv->signal_fd, .events = POLLIN}};
        (void)poll(fds, 3, LOOK_MS);
        follow(sv, &fds[0], &sv->stdout_fd, take_answer);
        follow(sv, &fds[1], &sv->stderr_fd, read_lines);
        if (ended_s < 0 && (fds[2].revents & POLLIN))
            take_signal(sv);
        look(sv, ended_s >= 0);
        if (!is_asked && fr_clock_s() - begin_s > sv->options->hung_s) {
            is_asked = true;
            fr_watch_hosts(sv, program, PROBE_S);
        }
        if (ended_s < 0 &&
            waitpid(sv->mpirun, &wait_status, WNOHANG) == sv->mpirun)
            ended_s = fr_clock_s();
        /* Somebody may keep a pipe open although mpirun is gone. */
        if (ended_s >= 0 && fr_clock_s() - ended_s > GRACE_S)
            break;
        if (ended_s < 0 && sv->blame != FR_BLAME_NONE)
            press(sv, &bad_since_s);
    }
    look(sv, true);
    return wait_status;
}

static fr_status find_reason(const fr_supervisor *sv, int wait_status,
                             fr_err *err)
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

/* A failure after a user's request to stop is FR_INTERRUPTED, so that the run
 * is not tried again. */
static fr_status judge(const fr_supervisor *sv, int wait_status, fr_err *err)
{
    fr_err why = {0};
    const fr_status status = find_reason(sv, wait_status, &why);

    if (status == FR_OK)
        return FR_OK;
    if (status == FR_FAILURE && fr_stop_is_of_user(sv))
        return fr_fail(err, FR_INTERRUPTED,
                       "%s; somebody had asked the run to stop", why.text);
    if (status == FR_STOPPED && sv->stop.is_own)
        why.status = FR_PAUSED;
    if (err != NULL)
        *err = why;
    return why.status;
}

static fr_status make_dir(fr_supervisor *sv, fr_err *err)
{
    const char *base = getenv("TMPDIR");
    int n = snprintf(sv->dir, sizeof sv->dir, "%s/forerun-XXXXXX",
                     base != NULL && base[0] ? base : "/tmp");

    if (n < 0 || (size_t)n >= sizeof sv->dir || mkdtemp(sv->dir) == NULL)
        return fr_fail(err, FR_IO, "%s: %s", sv->dir, strerror(errno));
    return FR_OK;
}

/* Signals that end this process by default are taken from signal_fd instead.  A
 * closed output (SIGPIPE) also ends it, but after everything else. */
static fr_status take_signals(fr_supervisor *sv, sigset_t *before, fr_err *err)
{
    static const int taken[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};
    sigset_t ours, blocked;

    (void)sigemptyset(&ours);
    for (size_t i = 0; i < FR_LENGTH(taken); i++)
        if ((taken[i] != SIGUSR1 || sv->options->is_stoppable) &&
            !fr_launch_is_ignored(taken[i]))
            (void)sigaddset(&ours, taken[i]);
    blocked = ours;
    (void)sigaddset(&blocked, SIGPIPE);
    if (sigprocmask(SIG_BLOCK, &blocked, before) != 0)
        return fr_fail(err, FR_FAILURE, "sigprocmask: %s", strerror(errno));
    sv->signal_fd = signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
    return FR_OK;
}

/* mpirun's words about a launch that failed name neither host nor reason, so
 * the hosts are asked. */
static fr_status explain(const fr_supervisor *sv, const char *program,
                         fr_status status, fr_err *err)
{
    fr_err why;

    if (status != FR_FAILURE || sv->options->hostfile == NULL ||
        (sv->blame != FR_BLAME_LAUNCHER && sv->blame != FR_BLAME_NONE) ||
        fr_hosts_explain(sv->options->hostfile, program, PROBE_S, &why) ==
            FR_OK)
        return status;
    return fr_fail(err, FR_FAILURE, "the ranks cannot be started: %s",
                   why.text);
}

static fr_status supervise(fr_supervisor *sv, char *const *argv, fr_err *err)
{
    FR_TRY(make_dir(sv, err));
    sv->begin_ns = fr_clock_ns();
    fr_status status = start_mpirun(sv, argv, err);
    if (status == FR_OK)
        status = explain(sv, argv[0], judge(sv, watch(sv, argv[0]), err), err);
    fr_clean_end(sv);
    fr_clean_files(sv, status != FR_OK);
    if (status == FR_OK)
        return give_answer(sv, err);
    /* The first rank answers before it writes what may not find room, and
     * before it says that the answer is not good enough. */
    if (status == FR_IO || status == FR_CHECK)
        (void)!give_answer(sv, &(fr_err){0});
    return status;
}

static void destroy(fr_supervisor *sv)
{
    const int fds[] = {sv->stdout_fd, sv->stderr_fd, sv->signal_fd};

    for (int i = 0; i < 3; i++)
        if (fds[i] >= 0)
            (void)close(fds[i]);
    fr_buffer_release(&sv->answer);
    free((void *)sv->pages);
    free(sv->stopped_ns);
    free(sv);
}

/* Before the work: where it is closed, a pipe would become it, or a file that
 * cannot be written already has. */
static fr_status check_stdout(fr_err *err)
{
    const int flags = fcntl(STDOUT_FILENO, F_GETFL);

    return flags >= 0 && (flags & O_ACCMODE) != O_RDONLY
               ? FR_OK
               : fr_fail(err, FR_IO, "standard output: %s", strerror(EBADF));
}

fr_status fr_launch_supervise(char *const *argv,
                              const fr_launch_options *options, fr_err *err)
{
    fr_launch_options own = *options;
    sigset_t before;

    FR_TRY(check_stdout(err));
    if (options->hostfile == NULL &&
        options->world > (int64_t)MOST_RANKS_PER_CORE * n_allowed_cores())
        return fr_fail(err, FR_INPUT,
                       "%lld ranks on the %d cores of this machine; name more "
                       "machines with --hostfile",
                       (long long)options->world, n_allowed_cores());
    fr_supervisor *sv;
    FR_TRY_CALLOC(sv, 1, err);
    if (own.hung_s <= 0)
        own.hung_s = 20;
    sv->options = &own;
    sv->stdout_fd = sv->stderr_fd = sv->signal_fd = sv->keeper_fd = -1;
    fr_buffer_init(&sv->answer);
    sv->pages = calloc((size_t)own.world, sizeof(fr_rank_page *));
    sv->stopped_ns = calloc((size_t)own.world, sizeof *sv->stopped_ns);
    if (sv->pages == NULL || sv->stopped_ns == NULL) {
        destroy(sv);
        return fr_fail_no_memory(err);
    }
    fr_status status = take_signals(sv, &before, err);
    if (status != FR_OK) {
        destroy(sv);
        return status;
    }
    status = supervise(sv, argv, err);
    destroy(sv);
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    return status;
}
