/*
 * The launcher: whose child is this process, and what becomes of ranks that
 * die, fail or hang.  The program starts itself again as its ranks, with the
 * name of a behaviour as its argument.
 */
#include "core/base/clock.h"
#include "core/base/text.h"
#include "runtime/comm/transport.h"
#include "runtime/launch/launch.h"
#include "runtime/launch/rank_page.h"
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

static fr_status launch(const char *behaviour, double *took_s, fr_err *err)
{
    static char self[512];
    char *argv[] = {self, (char *)(uintptr_t)behaviour, NULL};
    fr_launch_options options;
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);

    if (n < 0)
        return FR_FAILURE;
    fr_launch_options_init(&options);
    options.world = 3;
    options.hung_s = 5; /* the first beat is before MPI_Init */
    options.on_line = count_line;
    n_lines = 0;
    double begin_s = fr_clock_s();
    fr_status status = fr_launch_supervise(argv, &options, err);
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
    /* Who is killed does not clean up. */
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
    fprintf(stderr, "rank %lld is here\n", (long long)launch.rank);
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
    bool is_short = strcmp(how, "well") == 0 || strcmp(how, "stays") == 0;
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
        {"not_there", test_not_there},
        {"supervisor_dies", test_supervisor_dies}};

    if (argc > 1 && fr_text_starts(argv[1], "--as-rank="))
        return behave(argv[1] + strlen("--as-rank="));
    return check_run(tests, sizeof tests / sizeof *tests, argc, argv);
}
