/* chatter.c: what is said beside the answer, on stderr. */
#include "cli/cli.h"

#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#define CLEAR_LINE "\033[K" /* from the cursor on, which is at its begin */

void fr_cli_note(const fr_cli *cli, const char *format, ...)
{
    if (fr_cli_on(cli, FR_OPT_QUIET))
        return;
    va_list args;
    fr_cli_status_end(cli);
    va_start(args, format);
    vfprintf(cli->chatter, format, args);
    va_end(args);
    fputc('\n', cli->chatter);
}

static bool is_terminal(const fr_cli *cli)
{
    return isatty(fileno(cli->chatter)) == 1;
}

void fr_cli_status(const fr_cli *cli, const char *format, ...)
{
    char text[200];
    va_list args;
    if (fr_cli_on(cli, FR_OPT_QUIET))
        return;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (is_terminal(cli))
        fprintf(cli->chatter, CLEAR_LINE "%s\r", text);
    else
        fprintf(cli->chatter, "\r%s\n", text);
    (void)fflush(cli->chatter);
}

void fr_cli_status_end(const fr_cli *cli)
{
    if (!fr_cli_on(cli, FR_OPT_QUIET) && is_terminal(cli))
        fputs(CLEAR_LINE, cli->chatter);
}
