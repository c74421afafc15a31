/* main.c: the only main(); everything else is in the library. */
#include "cli/command.h"

#include <fcntl.h>
#include <signal.h>

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
    fill_streams();
    /* So that writing too large a file (ulimit -f) is an error with a line. */
    (void)signal(SIGXFSZ, SIG_IGN);
    return fr_cli_main(fr_commands, argc, argv, stdout, stderr);
}
