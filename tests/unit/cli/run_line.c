/* run_line.c: see run_line.h. */
#include "tests/unit/cli/run_line.h"

#include "cli/cli.h"
#include "core/base/text.h"
#include "tests/check.h"

void run_line(const char *line, line_outcome *result)
{
    char words[1024], *argv[64] = {(char *)(uintptr_t) "forerun"};
    int argc = 1;
    memset(result, 0, sizeof *result);
    CHECK(fr_text_copy(words, sizeof words, line));
    for (char *at = strtok(words, " "); at != NULL && argc < 64;
         at = strtok(NULL, " "))
        argv[argc++] = at;
    FILE *out = fmemopen(result->out, sizeof result->out - 1, "w");
    FILE *chatter = fmemopen(result->chatter, sizeof result->chatter - 1, "w");
    result->exit_code = fr_cli_main(fr_commands, argc, argv, out, chatter);
    fclose(out);
    fclose(chatter);
}
