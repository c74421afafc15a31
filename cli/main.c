/* main.c: the only main(); everything else is in the library. */
#include "cli/cli.h"
#include "cli/spawn_self.h"
#include "kernels/cpu/linear/core_blas.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

/* The loaded OpenBLAS has chosen its kernels; the program starts again to make
 * it choose others. */
static void fit_blas(char **argv)
{
    const char *core = fr_blas_core_instead();
    char self[PATH_MAX];

    if (core != NULL && fr_self_find(self, sizeof self) &&
        setenv(FR_BLAS_CORE_ENV, core, 1) == 0)
        (void)execv(self, argv);
}

/*
 * The first file that is opened would take the place of a stream that is
 * closed, and get what is written to that.  Writing an answer that nobody can
 * read stays an error.
 */
static void fill_streams(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 &&
            open("/dev/null", fd == 2 ? O_WRONLY : O_RDONLY) < 0)
            return;
}

int main(int argc, char **argv)
{
    fit_blas(argv);
    fill_streams();
    /* So that writing too large a file (ulimit -f) is an error with a line. */
    (void)signal(SIGXFSZ, SIG_IGN);
    return fr_cli_main(fr_commands, argc, argv, stdout, stderr);
}
