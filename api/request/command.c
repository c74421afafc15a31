/* command.c: see command.h. */
#include "api/request/command.h"

#include "core/base/text.h"

#include <stdio.h>
#include <string.h>

const fr_command *fr_command_find(const fr_command *commands, const char *name)
{
    for (const fr_command *c = commands; c->name != NULL; c++)
        if (!strcmp(c->name, name))
            return c;
    return NULL;
}

bool fr_command_takes(const fr_command *command, fr_option option)
{
    if (fr_option_get(option).group == FR_GROUP_COMMON)
        return true;
    for (const fr_option *o = command->options; *o != FR_OPT_N; o++)
        if (*o == option)
            return true;
    return false;
}

#define MAX_COMMANDS 32

fr_status fr_command_get(const fr_command *commands, const char *word,
                         const fr_command **out, fr_err *err)
{
    if (!strcmp(word, "--help") || !strcmp(word, "--help=all") ||
        !strcmp(word, "-h"))
        word = "help";
    if (!strcmp(word, "--version") || !strcmp(word, "-V"))
        word = "version";
    const fr_command *command = fr_command_find(commands, word);
    if (command == NULL) {
        const char *names[MAX_COMMANDS];
        size_t n = 0;
        for (; n < MAX_COMMANDS && commands[n].name != NULL; n++)
            names[n] = commands[n].name;
        const char *near = fr_text_nearest(word, names, n);
        return fr_fail(err, FR_USAGE, "unknown %s '%.80s'%s%s%s",
                       word[0] == '-' ? "option" : "command", word,
                       near ? "; did you mean '" : "", near != NULL ? near : "",
                       near ? "'?" : "");
    }
    *out = command;
    return FR_OK;
}

int fr_command_find_option(const fr_command *command, const char *name,
                           size_t n)
{
    for (int i = 0; i < FR_OPT_N; i++) {
        const char *known = fr_option_get((fr_option)i).name;
        if (fr_command_takes(command, (fr_option)i) && strlen(known) == n &&
            strncmp(known, name, n) == 0)
            return i;
    }
    return -1;
}

fr_status fr_command_fail_option(const fr_command *command, const char *word,
                                 fr_err *err)
{
    char name[80], hint[96];
    snprintf(name, sizeof name, "%s", word + strspn(word, "-"));
    name[strcspn(name, "=")] = '\0';
    const char *names[FR_OPT_N];
    size_t n = 0;
    for (int i = 0; i < FR_OPT_N; i++)
        if (fr_command_takes(command, (fr_option)i))
            names[n++] = fr_option_get((fr_option)i).name;
    const char *near = fr_text_nearest(name, names, n);
    hint[0] = '\0';
    if (near != NULL)
        snprintf(hint, sizeof hint, "; did you mean '--%s'?", near);
    bool is_elsewhere = false;
    for (int i = 0; i < FR_OPT_N; i++)
        is_elsewhere |= !strcmp(fr_option_get((fr_option)i).name, name);
    return fr_fail(err, FR_USAGE, "%s option '%.80s'%s",
                   is_elsewhere ? "this command does not take the" : "unknown",
                   word, hint);
}
