/* chatter.c: what is said beside the answer, on stderr. */
#include "cli/command.h"

#include <stdarg.h>
#include <string.h>

void fr_cli_note(const fr_cli *cli, const char *format, ...)
{
    if (fr_cli_on(cli, FR_OPT_QUIET))
        return;
    va_list args;
    va_start(args, format);
    vfprintf(cli->chatter, format, args);
    va_end(args);
    fputc('\n', cli->chatter);
}

void fr_cli_note_lines(const fr_cli *cli, const char *topic, const char *text)
{
    while (*text != '\0') {
        int n = (int)strcspn(text, "\n");
        if (n > 0)
            fr_cli_note(cli, "forerun: %s%s%.*s", topic != NULL ? topic : "",
                        topic != NULL ? ": " : "", n, text);
        text += n + (text[n] != '\0');
    }
}
