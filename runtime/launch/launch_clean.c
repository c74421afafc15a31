/*
 * launch_clean.c: nothing stays behind: the processes of a run, Open MPI's
 * folder and its message buffers, also where the supervisor is killed or
 * mpirun is stopped.
 */
#include "core/base/text.h"
#include "core/system/clock.h"
#include "core/system/fileio.h"
#include "runtime/launch/launch_state.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define GRACE_S 2.0 /* for a process to end by itself */

/* ---- files --------------------------------------------------------------- */

static void remove_dir(const char *dir)
{
    char path[512];
    DIR *list = opendir(dir);

    if (list == NULL)
        return;
    for (const struct dirent *entry; (entry = readdir(list)) != NULL;) {
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

    if (list == NULL)
        return;
    for (const struct dirent *entry; (entry = readdir(list)) != NULL;) {
        if (!fr_text_starts(entry->d_name, "vader_segment."))
            continue;
        for (int64_t rank = 0; rank < sv->options->world; rank++) {
            const fr_rank_page *page = sv->pages[rank];
            if (page == NULL || page->job == 0)
                continue;
            (void)snprintf(tail, sizeof tail, ".%u.%x.%lld",
                           (unsigned)geteuid(), page->job, (long long)rank);
            if (fr_text_ends(entry->d_name, tail))
                (void)unlinkat(dirfd(list), entry->d_name, 0);
        }
    }
    (void)closedir(list);
}

/* A killed mpirun leaves its folder: TMPDIR/ompi.HOST.UID/pid.N. */
static void remove_session(const fr_supervisor *sv)
{
    char host[64] = "", parent[400], path[512];
    const char *base = getenv("TMPDIR");

    if (sv->mpirun <= 0 || gethostname(host, sizeof host - 1) != 0)
        return;
    host[strcspn(host, ".")] = '\0';
    (void)snprintf(parent, sizeof parent, "%.300s/ompi.%s.%u",
                   base != NULL && base[0] ? base : "/tmp", host,
                   (unsigned)geteuid());
    (void)snprintf(path, sizeof path, "%s/pid.%d", parent, (int)sv->mpirun);
    fr_dir_remove(path);
    (void)rmdir(parent); /* another run may still have its own there */
}

/* Does a process have the status folder of this run in its environment? */
static bool is_of_run(const char *pid, const char *dir)
{
    const char *name = FR_STATUS_DIR_ENV "=";
    char path[64];
    char *text = NULL;
    size_t n = 0;
    bool is_it = false;

    (void)snprintf(path, sizeof path, "/proc/%.20s/environ", pid);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return false;
    while (!is_it && getdelim(&text, &n, '\0', file) > 0)
        is_it =
            fr_text_starts(text, name) && strcmp(text + strlen(name), dir) == 0;
    free(text);
    (void)fclose(file);
    return is_it;
}

/*
 * Remote shells and daemons that mpirun has left here: they have process groups
 * of their own, and a remote shell that waits for a host does not see the end
 * of mpirun.  The folder's name is the run's alone.
 */
static void end_remains(const fr_supervisor *sv)
{
    DIR *list = opendir("/proc");

    if (list == NULL)
        return;
    for (const struct dirent *entry; (entry = readdir(list)) != NULL;)
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
            is_of_run(entry->d_name, sv->dir))
            fr_clean_signal((pid_t)strtol(entry->d_name, NULL, 10), SIGKILL);
    (void)closedir(list);
}

void fr_clean_files(fr_supervisor *sv, bool has_failed)
{
    if (has_failed) {
        end_remains(sv);
        remove_segments(sv);
        remove_session(sv);
    }
    for (int64_t rank = 0; rank < sv->options->world; rank++) {
        fr_rank_page_close(sv->pages[rank]);
        sv->pages[rank] = NULL;
    }
    remove_dir(sv->dir);
}

/* ---- processes ----------------------------------------------------------- */

/* A stopped process gets a signal when it goes on. */
void fr_clean_signal(pid_t pid, int signal)
{
    (void)kill(pid, signal);
    if (signal != SIGKILL)
        (void)kill(pid, SIGCONT);
}

/* Ranks of this machine; they die with mpirun unless their parent is another
 * (fr_launch_follow_parent). */
void fr_clean_ranks(fr_supervisor *sv)
{
    char host[64] = "";

    (void)gethostname(host, sizeof host - 1);
    for (int64_t rank = 0; rank < sv->options->world; rank++) {
        const fr_rank_page *page = fr_watch_page(sv, rank);
        if (page != NULL && page->pid > 0 && strcmp(page->host, host) == 0)
            (void)kill(page->pid, SIGKILL);
    }
}

static bool is_gone_after(pid_t pid, double seconds)
{
    double begin_s = fr_clock_s();

    while (kill(pid, 0) == 0 && fr_clock_s() - begin_s < seconds)
        fr_sleep_s(0.05);
    return kill(pid, 0) != 0;
}

/* Waits for the supervisor: its word that all is well, or its death. */
static void keep(fr_supervisor *sv, int fd)
{
    char word;
    ssize_t n;

    do {
        n = read(fd, &word, 1);
    } while (n < 0);
    if (n == 1)
        _exit(0);
    fr_clean_signal(sv->mpirun, SIGTERM);
    if (!is_gone_after(sv->mpirun, GRACE_S)) {
        fr_clean_ranks(sv);
        (void)kill(sv->mpirun, SIGKILL);
        (void)is_gone_after(sv->mpirun, GRACE_S);
    }
    fr_watch_pages(sv); /* maps them all */
    fr_clean_files(sv, true);
    if (sv->options->memory_dir != NULL)
        fr_dir_remove(sv->options->memory_dir);
    _exit(0);
}

/*
 * The keeper has the signals of its parent blocked and nothing open but its
 * pipe, so that it holds up nobody who reads what this process writes.
 */
void fr_clean_begin(fr_supervisor *sv)
{
    int ends[2];

    sv->keeper_fd = -1;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return;
    pid_t child = fork();
    if (child == 0) {
        (void)setpgid(0, 0); /* a signal to the group of its parent may kill */
        (void)dup2(ends[0], STDIN_FILENO);
        (void)close_range(STDIN_FILENO + 1, ~0U, 0);
        keep(sv, STDIN_FILENO);
    }
    (void)close(ends[0]);
    if (child < 0) {
        (void)close(ends[1]);
        return;
    }
    sv->keeper = child;
    sv->keeper_fd = ends[1];
}

void fr_clean_end(fr_supervisor *sv)
{
    if (sv->keeper_fd < 0)
        return;
    ssize_t ignored = write(sv->keeper_fd, "x", 1);
    (void)ignored;
    (void)close(sv->keeper_fd);
    (void)waitpid(sv->keeper, NULL, 0);
    sv->keeper_fd = -1;
}
