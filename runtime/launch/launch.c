/* launch.c: who started this process, and the way back to it. */
#include "runtime/launch/launch.h"

#include "core/base/units.h"
#include "runtime/rank/rank_page.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

bool fr_launch_number(const char *name, int64_t least, int64_t most,
                      int64_t *out)
{
    const char *text = getenv(name);
    int64_t value = 0;
    fr_err ignored;

    if (text == NULL || fr_parse_i64(text, &value, &ignored) != FR_OK ||
        value < least || value > most)
        return false;
    *out = value;
    return true;
}

static bool detect_pair(const char *rank_name, const char *world_name,
                        fr_launch *out)
{
    int64_t rank = 0, world = 0;

    if (!fr_launch_number(world_name, 1, INT64_MAX, &world) ||
        !fr_launch_number(rank_name, 0, world - 1, &rank))
        return false;
    out->rank = rank;
    out->world = world;
    return true;
}

void fr_launch_detect(fr_launch *out)
{
    int64_t step = 0;

    *out = (fr_launch){.role = FR_LAUNCH_STANDALONE,
                       .launcher = "none",
                       .rank = 0,
                       .world = 1};
    if (detect_pair("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", out) ||
        detect_pair("PMI_RANK", "PMI_SIZE", out)) {
        out->role = FR_LAUNCH_RANK;
        out->launcher = "mpirun";
    } else if (fr_launch_number("SLURM_STEP_ID", 0, INT64_MAX, &step) &&
               detect_pair("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", out)) {
        /* A shell within a step of one task is somebody's terminal. */
        out->role = out->world > 1 ? FR_LAUNCH_RANK : FR_LAUNCH_STANDALONE;
        out->launcher = "srun";
    } else if (getenv("MASTER_ADDR") != NULL &&
               detect_pair("RANK", "WORLD_SIZE", out)) {
        out->role = out->rank > 0 ? FR_LAUNCH_BYSTANDER : FR_LAUNCH_STANDALONE;
        out->launcher = "torchrun";
    }
}

void fr_launch_options_init(fr_launch_options *options)
{
    *options = (fr_launch_options){.world = 1, .n_threads = 1, .hung_s = 20};
}

void fr_launch_follow_parent(void)
{
    pid_t parent = getppid();

    (void)prctl(PR_SET_PDEATHSIG, (unsigned long)SIGKILL, 0UL, 0UL, 0UL);
    if (getppid() != parent)
        (void)raise(SIGKILL); /* it died before we asked */
}

void fr_launch_begin_rank(int64_t rank)
{
    fr_launch_follow_parent();
    fr_rank_page_join(rank);
}

bool fr_launch_is_supervised(void)
{
    return getenv(FR_STATUS_DIR_ENV) != NULL;
}

bool fr_launch_is_ignored(int signal)
{
    struct sigaction now;

    return sigaction(signal, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
}

static const int held[] = {SIGTERM, SIGUSR1};

void fr_launch_held_set(sigset_t *out)
{
    (void)sigemptyset(out);
    for (size_t i = 0; i < FR_LENGTH(held); i++)
        if (!fr_launch_is_ignored(held[i]))
            (void)sigaddset(out, held[i]);
}

void fr_launch_hold_signals(void)
{
    sigset_t set;

    fr_launch_held_set(&set);
    (void)pthread_sigmask(SIG_BLOCK, &set, NULL);
}

int fr_launch_held_signal(void)
{
    sigset_t waiting, blocked;

    if (sigpending(&waiting) != 0 ||
        pthread_sigmask(SIG_BLOCK, NULL, &blocked) != 0)
        return 0;
    for (size_t i = 0; i < FR_LENGTH(held); i++)
        if (sigismember(&waiting, held[i]) == 1 &&
            sigismember(&blocked, held[i]) == 1)
            return held[i];
    return 0;
}

bool fr_launch_report(const fr_err *err)
{
    fr_launch launch;

    fr_launch_detect(&launch);
    if (launch.role != FR_LAUNCH_RANK)
        return false;
    fr_rank_page *page =
        fr_rank_page_open(getenv(FR_STATUS_DIR_ENV), launch.rank, false);
    if (page == NULL)
        page = fr_rank_page_open(getenv(FR_STATUS_DIR_ENV), launch.rank, true);
    if (page == NULL)
        return false;
    fr_rank_page_fail(page, err);
    fr_rank_page_close(page);
    return true;
}
