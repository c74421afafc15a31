/*
 * The launcher: whose child is this process, and what becomes of ranks that
 * die, fail or hang.  The program starts itself again as its ranks, with the
 * name of a behaviour as its argument.
 */
#include "core/base/text.h"
#include "core/system/clock.h"
#include "runtime/comm/transport.h"
#include "runtime/launch/launch.h"
#include "runtime/rank/rank_page.h"
#include "tests/check.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void clear_environment(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK",
                                        "OMPI_COMM_WORLD_SIZE",
                                        "PMI_RANK",
                                        "PMI_SIZE",
                                        "SLURM_STEP_ID",
                                        "SLURM_PROCID",
                                        "SLURM_STEP_NUM_TASKS",
                                        "RANK",
                                        "WORLD_SIZE",
                                        "MASTER_ADDR"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        (void)unsetenv(names[i]);
}

static void test_detect(void)
{
    fr_launch launch;

    clear_environment();
    fr_launch_detect(&launch);
    CHECK_INT(launch.role, FR_LAUNCH_STANDALONE);
    CHECK_INT(launch.world, 1);
    (void)setenv("OMPI_COMM_WORLD_RANK", "3", 1);
    (void)setenv("OMPI_COMM_WORLD_SIZE", "8", 1);
    fr_launch_detect(&launch);
    CHECK_INT(launch.role, FR_LAUNCH_RANK);
    CHECK_INT(launch.rank, 3);
    CHECK_INT(launch.world, 8);
    CHECK_STR(launch.launcher, "mpirun");
    clear_environment();
    (void)setenv("SLURM_PROCID", "5", 1);
    (void)setenv("SLURM_STEP_NUM_TASKS", "6", 1);
    fr_launch_detect(&launch); /* a batch script, no step */
    CHECK_INT(launch.role, FR_LAUNCH_STANDALONE);
    (void)setenv("SLURM_STEP_ID", "0", 1);
    fr_launch_detect(&launch);
    CHECK_INT(launch.role, FR_LAUNCH_RANK);
    CHECK_INT(launch.rank, 5);
    clear_environment();
    (void)setenv("RANK", "1", 1);
    (void)setenv("WORLD_SIZE", "2", 1);
    fr_launch_detect(&launch); /* anybody's RANK */
    CHECK_INT(launch.role, FR_LAUNCH_STANDALONE);
    (void)setenv("MASTER_ADDR", "127.0.0.1", 1);
    fr_launch_detect(&launch);
    CHECK_INT(launch.role, FR_LAUNCH_BYSTANDER);
    (void)setenv("RANK", "0", 1);
    fr_launch_detect(&launch);
    CHECK_INT(launch.role, FR_LAUNCH_STANDALONE);
    (void)setenv("RANK", "2", 1); /* not below the world */
    fr_launch_detect(&launch);
    CHECK_INT(launch.rank, 0);
    clear_environment();
}

static bool has_mpirun(void)
{
    return system("command -v mpirun >/dev/null 2>&1") == 0 &&
           fr_transport_mpi_is_available();
}

static int n_lines;

static void count_line(void *context, const char *line)
{
    (void)context;
    (void)line;
    n_lines++;
}

static fr_launch_options usual_options(void)
{
    fr_launch_options options;

    fr_launch_options_init(&options);
    options.world = 3;
    options.hung_s = 5; /* the first beat is before MPI_Init */
    options.on_line = count_line;
    return options;
}

static fr_status launch_with(const char *behaviour,
                             const fr_launch_options *options, fr_err *err)
{
    static char self[512];
    char *argv[] = {self, (char *)(uintptr_t)behaviour, NULL};
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);

    if (n < 0)
        return FR_FAILURE;
    n_lines = 0;
    return fr_launch_supervise(argv, options, err);
}

static fr_status launch(const char *behaviour, double *took_s, fr_err *err)
{
    const fr_launch_options options = usual_options();
    double begin_s = fr_clock_s();
    fr_status status = launch_with(behaviour, &options, err);

    *took_s = fr_clock_s() - begin_s;
    return status;
}

static void test_success(void)
{
    fr_err err = {0};
    double took_s = 0;

    if (!has_mpirun())
        SKIP("no mpirun");
    CHECK_OK(launch("--as-rank=well", &took_s, &err), &err);
    CHECK_INT(n_lines, 3); /* each rank says one */
}

static void test_killed(void)
{
    fr_err err = {0};
    double took_s = 0;

    if (!has_mpirun())
        SKIP("no mpirun");
    CHECK_FAILS(launch("--as-rank=killed", &took_s, &err), FR_FAILURE, &err);
    CHECK_HAS(err.text, "rank 1 (pid ");
    CHECK_HAS(err.text, "signal 9");
    CHECK(took_s < 60);
}

static void test_reported(void)
{
    fr_err err = {0};
    double took_s = 0;

    if (!has_mpirun())
        SKIP("no mpirun");
    CHECK_FAILS(launch("--as-rank=reports", &took_s, &err), FR_INPUT, &err);
    CHECK_STR(err.text, "rank 2: the well is dry");
    CHECK(took_s < 60);
}

static void test_exits(void)
{
    fr_err err = {0};
    double took_s = 0;

    if (!has_mpirun())
        SKIP("no mpirun");
    CHECK_FAILS(launch("--as-rank=exits", &took_s, &err), FR_FAILURE, &err);
    CHECK_HAS(err.text, "rank 0 ended with exit code 9");
}

static void test_hangs(void)
{
    fr_err err = {0};
    double took_s = 0;

    if (!has_mpirun())
        SKIP("no mpirun");
    CHECK_FAILS(launch("--as-rank=hangs", &took_s, &err), FR_FAILURE, &err);
    CHECK_HAS(err.text, "rank 1 (pid ");
    CHECK_HAS(err.text, "no sign of life");
    CHECK(took_s < 60);
}

/* Ranks that stand still while the others wait for them in MPI. */
static void test_stops(void)
{
    fr_err err = {0};
    double took_s = 0;

    if (!has_mpirun())
        SKIP("no mpirun");
    CHECK_FAILS(launch("--as-rank=joins not", &took_s, &err), FR_FAILURE, &err);
    CHECK_HAS(err.text, "rank 1 (pid ");
    CHECK_HAS(err.text, "was stopped before it joined the others");
    CHECK(took_s < 60);
    CHECK_FAILS(launch("--as-rank=prepares not", &took_s, &err), FR_FAILURE,
                &err);
    CHECK_HAS(err.text, "rank 1 (pid ");
    CHECK_HAS(err.text, "was stopped before its first step");
    CHECK(took_s < 60);
    CHECK_FAILS(launch("--as-rank=stays", &took_s, &err), FR_FAILURE, &err);
    CHECK_HAS(err.text, "rank 1 (pid ");
    CHECK_HAS(err.text, "was stopped after its last step");
    CHECK(took_s < 60);
}

static void test_not_there(void)
{
    fr_err err = {0};
    fr_launch_options options;
    char *argv[] = {(char *)(uintptr_t) "/nowhere/program", NULL};

    fr_launch_options_init(&options);
    options.world = 2;
    if (!has_mpirun())
        SKIP("no mpirun");
    CHECK_FAILS(fr_launch_supervise(argv, &options, &err), FR_FAILURE, &err);
    CHECK_HAS(err.text, "/nowhere/program");
    char *path = strdup(getenv("PATH"));
    (void)setenv("PATH", "/nowhere", 1);
    CHECK_FAILS(fr_launch_supervise(argv, &options, &err), FR_FAILURE, &err);
    CHECK_HAS(err.text, "apt-get install openmpi-bin");
    (void)setenv("PATH", path, 1);
    free(path);
}

/* ---- who asks the run to stop ------------------------------------------- */

/* The signal that is sent to this process when a rank says the words. */
typedef struct asker {
    const char *words;
    int signal;
    bool has_sent;
    bool is_pausing; /* it looks on and asks the ranks to stop */
    char told[512];  /* the supervisor's own line */
} asker;

static void ask_on_line(void *context, const char *line)
{
    asker *a = context;

    if (fr_text_starts(line, "forerun: "))
        (void)snprintf(a->told, sizeof a->told, "%s", line);
    if (a->words == NULL || strstr(line, a->words) == NULL || a->has_sent)
        return;
    a->has_sent = true;
    (void)kill(getpid(), a->signal);
}

static bool pause_on_look(void *context, int64_t step)
{
    const asker *a = context;

    (void)step;
    return a->is_pausing;
}

static fr_status launch_asked(const char *behaviour, bool is_stoppable,
                              asker *a, fr_err *err)
{
    fr_launch_options options = usual_options();

    options.is_stoppable = is_stoppable;
    options.on_line = ask_on_line;
    options.on_look = pause_on_look;
    options.context = a;
    return launch_with(behaviour, &options, err);
}

static void test_interrupted(void)
{
    asker a = {.words = "rank 1 is here", .signal = SIGINT};
    fr_err err = {0};

    if (!has_mpirun())
        SKIP("no mpirun");
    CHECK_FAILS(launch_asked("--as-rank=works", true, &a, &err), FR_INTERRUPTED,
                &err);
    CHECK_HAS(err.text, "stopped by SIGINT from pid ");
}

static void test_stopped(void)
{
    asker early = {0}, user = {.words = "rank 1 is here", .signal = SIGTERM};
    asker own = {.is_pausing = true};
    asker both = {.words = "hears 15", .signal = SIGUSR1, .is_pausing = true};
    sigset_t term, before;
    fr_err err = {0};

    if (!has_mpirun())
        SKIP("no mpirun");
    CHECK_FAILS(launch_asked("--as-rank=stops at 15", true, &user, &err),
                FR_STOPPED, &err);
    CHECK_HAS(user.told, "SIGTERM from pid ");
    CHECK_HAS(user.told, "another signal ends it without");
    /* Before there is an mpirun that would hand a signal on. */
    (void)sigemptyset(&term);
    (void)sigaddset(&term, SIGTERM);
    (void)sigprocmask(SIG_BLOCK, &term, &before);
    (void)kill(getpid(), SIGTERM);
    CHECK_FAILS(launch_asked("--as-rank=stops at 15", true, &early, &err),
                FR_STOPPED, &err);
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    CHECK_FAILS(launch_asked("--as-rank=stops at 15", true, &own, &err),
                FR_PAUSED, &err);
    CHECK_STR(own.told, "");
    /* The supervisor has asked before; the user's is no second signal. */
    CHECK_FAILS(launch_asked("--as-rank=stops at 10", true, &both, &err),
                FR_STOPPED, &err);
}

/* A step may take longer than a rank may be silent, once one has. */
static void test_stopped_late(void)
{
    asker user = {.words = "rank 1 is here", .signal = SIGTERM};
    fr_err err = {0};

    if (!has_mpirun())
        SKIP("no mpirun");
    CHECK_FAILS(launch_asked("--as-rank=stops late", true, &user, &err),
                FR_STOPPED, &err);
    CHECK_HAS(user.told, "or 305 s more within steps");
}

static void test_ignored(void)
{
    asker a = {.words = "rank 1 is here", .signal = SIGHUP};
    fr_err err = {0};

    if (!has_mpirun())
        SKIP("no mpirun");
    (void)signal(SIGHUP, SIG_IGN);
    CHECK_OK(launch_asked("--as-rank=well apart", false, &a, &err), &err);
    CHECK(a.has_sent);
    (void)signal(SIGHUP, SIG_DFL);
}

/* The healthy ranks, which the supervisor kills, are not to blame. */
static void test_hangs_stoppable(void)
{
    asker a = {0};
    fr_err err = {0};

    if (!has_mpirun())
        SKIP("no mpirun");
    CHECK_FAILS(launch_asked("--as-rank=hangs", true, &a, &err), FR_FAILURE,
                &err);
    CHECK_HAS(err.text, "rank 1 (pid ");
    CHECK_HAS(err.text, "no sign of life");
}

/* Others say that they have lost a rank, which says why. */
static void test_final(void)
{
    asker a = {0};
    fr_err err = {0};

    if (!has_mpirun())
        SKIP("no mpirun");
    CHECK_FAILS(launch_asked("--as-rank=ends for good", true, &a, &err),
                FR_FINAL, &err);
    CHECK_STR(err.text, "rank 2: nothing helps");
}

/* A killed supervisor takes its ranks along. */
static void test_supervisor_dies(void)
{
    char text[64] = "";
    int ends[2];

    char dir[CHECK_PATH_BYTES], command[CHECK_PATH_BYTES + 16];
    char before[CHECK_PATH_BYTES];

    (void)snprintf(before, sizeof before, "%s", check_tmp_dir());
    check_tmp_path(dir, "test_runtime_launch.XXXXXX");
    if (!has_mpirun())
        SKIP("no mpirun");
    if (!CHECK(pipe(ends) == 0) || !CHECK(mkdtemp(dir) != NULL))
        return;
    /* A rank that is killed does not clean up. */
    (void)setenv("TMPDIR", dir, 1);
    pid_t child = fork();
    if (child == 0) {
        fr_err err = {0};
        double took_s = 0;
        (void)close(ends[0]);
        (void)snprintf(text, sizeof text, "--as-rank=waits=%d", ends[1]);
        fr_status ignored = launch(text, &took_s, &err);
        _exit(ignored == FR_OK ? 0 : 1);
    }
    (void)close(ends[1]);
    /* A rank writes its pid, then waits for ever. */
    ssize_t n = read(ends[0], text, sizeof text - 1);
    if (CHECK(n > 0)) {
        pid_t rank = (pid_t)strtol(text, NULL, 10);
        (void)kill(child, SIGKILL);
        (void)waitpid(child, NULL, 0);
        double begin_s = fr_clock_s();
        while (kill(rank, 0) == 0 && fr_clock_s() - begin_s < 15)
            fr_sleep_s(0.05);
        CHECK(kill(rank, 0) != 0);
    }
    (void)close(ends[0]);
    (void)setenv("TMPDIR", before, 1);
    (void)snprintf(command, sizeof command, "rm -rf '%s'", dir);
    CHECK(system(command) == 0);
}

/* ---- what the ranks do ------------------------------------------------- */

static void await_failed(int64_t rank)
{
    const char *dir = getenv(FR_STATUS_DIR_ENV);
    fr_rank_page *page = NULL;

    while (page == NULL ||
           atomic_load_explicit(&page->state, memory_order_acquire) !=
               FR_RANK_FAILED) {
        if (page == NULL)
            page = fr_rank_page_open(dir, rank, false);
        fr_sleep_s(0.01);
    }
}

/* Rank 0 has failed for want of rank 2, whose words come later. */
static int end_for_good(int64_t rank)
{
    const fr_err lost = {FR_FAILURE, "rank 0: lost rank 2"};
    const fr_err why = {FR_FINAL, "rank 2: nothing helps"};

    if (rank == 0)
        (void)fr_launch_report(&lost);
    else
        await_failed(0);
    if (rank == 2)
        (void)fr_launch_report(&why);
    else
        await_failed(2);
    return 1;
}

/* Works until it is asked to stop by that signal, or for ever. */
static int stop_at(fr_rank_page *page, int64_t rank, uint32_t signal,
                   bool is_late)
{
    const fr_err why = {FR_STOPPED, "asked to stop"};
    uint32_t heard = 0;
    double heard_s = 0;

    while (heard == 0 || heard != signal ||
           (is_late && fr_clock_s() - heard_s < 6)) {
        const uint32_t now = atomic_load(&page->stop_signal);
        atomic_store(&page->beat_ns, fr_clock_ns());
        if (now != heard && rank == 1)
            fprintf(stderr, "hears %u\n", now);
        if (now != heard)
            heard_s = fr_clock_s();
        heard = now;
        fr_sleep_s(0.02);
    }
    (void)fr_launch_report(&why);
    return 75;
}

static int behave(const char *how)
{
    fr_launch launch;
    fr_err err = {0}, dry = {FR_INPUT, "rank 2: the well is dry"};
    fr_transport *transport = NULL;
    int32_t nothing = 0, all[3] = {0};

    fr_launch_detect(&launch);
    fr_launch_begin_rank(launch.rank);
    if (strcmp(how, "joins not") == 0 && launch.rank == 1)
        (void)raise(SIGSTOP);
    if (fr_transport_mpi_create(3, 10, &transport, &err) != FR_OK)
        return 1;
    if (strcmp(how, "prepares not") == 0 && launch.rank == 1)
        (void)raise(SIGSTOP);
    fr_rank_page *page =
        fr_rank_page_open(getenv(FR_STATUS_DIR_ENV), launch.rank, true);
    if (page == NULL)
        return 1;
    if (strcmp(how, "stops late") == 0) {
        atomic_store(&page->longest_ns, INT64_C(100000000000));
        atomic_store(&page->is_in_step, 1);
    }
    fprintf(stderr, "rank %lld is here\n", (long long)launch.rank);
    if (strcmp(how, "works") == 0)
        return stop_at(page, launch.rank, 0, false);
    if (fr_text_starts(how, "stops at "))
        return stop_at(page, launch.rank, (uint32_t)strtoul(how + 9, NULL, 10),
                       false);
    if (strcmp(how, "stops late") == 0)
        return stop_at(page, launch.rank, SIGTERM, true);
    if (strcmp(how, "ends for good") == 0)
        return end_for_good(launch.rank);
    if (strcmp(how, "well apart") == 0 && getpgid(getppid()) != getppid())
        return 1; /* mpirun would get what a terminal sends to all */
    if (strcmp(how, "killed") == 0 && launch.rank == 1)
        (void)raise(SIGKILL);
    if (strcmp(how, "hangs") == 0 && launch.rank == 1)
        (void)raise(SIGSTOP);
    if (strcmp(how, "exits") == 0 && launch.rank == 0)
        _exit(9);
    if (strcmp(how, "reports") == 0 && launch.rank == 2)
        return fr_launch_report(&dry) ? 5 : 6;
    if (fr_text_starts(how, "waits=") && launch.rank == 2) {
        char text[32];
        int n = snprintf(text, sizeof text, "%d", (int)getpid());
        char path[64];
        /* mpirun closes what it does not know: through its parent's. */
        (void)snprintf(path, sizeof path, "/proc/%d/fd/%s", (int)getppid(),
                       how + 6);
        FILE *file = fopen(path, "w");
        if (file == NULL)
            return 1;
        (void)fwrite(text, 1, (size_t)n, file);
        (void)fclose(file);
        for (;;)
            (void)pause();
    }
    bool is_short = fr_text_starts(how, "well") || strcmp(how, "stays") == 0;
    for (int i = 0; i < (is_short ? 3 : 100); i++) {
        atomic_store(&page->beat_ns, fr_clock_ns());
        fr_sleep_s(0.1);
    }
    if (fr_transport_all_gather(transport, &nothing, sizeof nothing, all,
                                &err) != FR_OK)
        return 1;
    atomic_store(&page->state, FR_RANK_FINISHED);
    if (strcmp(how, "stays") == 0 && launch.rank == 1)
        (void)raise(SIGSTOP);
    fr_rank_page_close(page);
    fr_transport_destroy(transport);
    fr_transport_mpi_finish();
    return 0;
}

int main(int argc, char **argv)
{
    static const check_test tests[] = {
        {"detect", test_detect},
        {"success", test_success},
        {"killed", test_killed},
        {"reported", test_reported},
        {"exits", test_exits},
        {"hangs", test_hangs},
        {"stops", test_stops},
        {"interrupted", test_interrupted},
        {"stopped", test_stopped},
        {"stopped_late", test_stopped_late},
        {"ignored", test_ignored},
        {"hangs_stoppable", test_hangs_stoppable},
        {"final", test_final},
        {"not_there", test_not_there},
        {"supervisor_dies", test_supervisor_dies}};

    if (argc > 1 && fr_text_starts(argv[1], "--as-rank="))
        return behave(argv[1] + strlen("--as-rank="));
    return check_run(tests, sizeof tests / sizeof *tests, argc, argv);
}
