/* spawn_self.c: see spawn_self.h. */
#include "cli/spawn_self.h"

#include "core/base/text.h"
#include "core/system/fileio.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static fr_status spawn(char *const *argv, const char *out_path,
                       const char *chatter_path, int *code, fr_err *err)
{
    posix_spawn_file_actions_t files;
    const int how = O_WRONLY | O_CREAT | O_TRUNC;
    pid_t child = 0;
    int wait_status = 0;
    if (posix_spawn_file_actions_init(&files) != 0)
        return fr_fail_no_memory(err);
    int failed = posix_spawn_file_actions_addopen(&files, STDOUT_FILENO,
                                                  out_path, how, 0600) ||
                 posix_spawn_file_actions_addopen(&files, STDERR_FILENO,
                                                  chatter_path, how, 0600) ||
                 posix_spawn(&child, argv[0], &files, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&files);
    if (failed || waitpid(child, &wait_status, 0) != child)
        return fr_fail(err, FR_FAILURE, "%s cannot be started", argv[0]);
    *code = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : -1;
    return FR_OK;
}

bool fr_self_find(char *buf, size_t n_buf)
{
    ssize_t n = readlink("/proc/self/exe", buf, n_buf);
    if (n <= 0 || (size_t)n >= n_buf)
        return false;
    buf[n] = '\0';
    return true;
}

fr_status fr_spawn_self(char **argv, const char *out_path,
                        const char *chatter_path, int *code, fr_err *err)
{
    char self[512];
    if (!fr_self_find(self, sizeof self))
        return fr_fail(err, FR_FAILURE, "this program does not find itself");
    argv[0] = self;
    const fr_status status = spawn(argv, out_path, chatter_path, code, err);
    argv[0] = NULL;
    return status;
}

void fr_spawn_reason(const char *chatter_path, char *buf, size_t n_buf)
{
    char *text = NULL;
    fr_err unused;
    snprintf(buf, n_buf, "the run failed");
    if (fr_file_read(chatter_path, 1 << 20, &text, NULL, &unused) != FR_OK)
        return;
    char *line = fr_text_trim(text);
    char *last = strrchr(line, '\n');
    line = last != NULL ? last + 1 : line;
    if (strncmp(line, "forerun: ", 9) == 0)
        line += 9;
    if (line[0] != '\0')
        fr_text_copy_cut(buf, n_buf, line);
    free(text);
}
