/* command_line.c: words and environment -> a request. */
#include "api/request/aliases.h"
#include "cli/cli.h"
#include "core/base/text.h"
#include "core/base/units.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int find_letter(const fr_command *command, char letter)
{
    for (int i = 0; i < FR_OPT_N; i++)
        if (fr_option_get((fr_option)i).letter == letter &&
            fr_command_takes(command, (fr_option)i))
            return i;
    return -1;
}

/* "--overlap 0": the word would be taken for a file. */
static fr_status check_flag_value(const char *shown, const char *next,
                                  fr_err *err)
{
    bool unused;
    fr_err why;
    if (next == NULL || fr_parse_bool(next, &unused, &why) != FR_OK)
        return FR_OK;
    return fr_fail(err, FR_USAGE, "%s %s: write %s=%s", shown, next, shown,
                   next);
}

/* One word that begins with '-'; *i_word moves past a separate value. */
static fr_status parse_option(fr_cli *cli, int n_words, char **words,
                              int *i_word, fr_err *err)
{
    const char *word = words[*i_word];
    const char *value = NULL;
    char shown[80];
    int option;
    bool is_negated = false;
    if (word[1] == '-') {
        size_t n_name = strcspn(word + 2, "=");
        option = fr_command_find_option(cli->request.command, word + 2, n_name);
        if (option < 0 && !strncmp(word, "--no-", 5)) {
            option = fr_command_find_option(cli->request.command, word + 5,
                                            n_name - 3);
            is_negated = option >= 0;
            if (is_negated &&
                fr_option_get((fr_option)option).kind != FR_OPTION_FLAG)
                option = -1;
        }
        if (word[2 + n_name] == '=')
            value = word + 3 + n_name;
        const fr_alias *alias =
            option < 0 ? fr_alias_find(word + 2, n_name) : NULL;
        if (alias != NULL && alias->option == FR_OPT_N)
            return fr_fail(err, FR_USAGE, "no option '%.80s': %s", word,
                           alias->value);
        if (alias != NULL &&
            fr_command_takes(cli->request.command, alias->option)) {
            option = (int)alias->option;
            if (alias->value != NULL && value != NULL)
                return fr_fail(err, FR_USAGE,
                               "'%.80s' takes no value: it is --%s %s", word,
                               fr_option_get(alias->option).name, alias->value);
            value = alias->value != NULL ? alias->value : value;
        }
    } else {
        option = find_letter(cli->request.command, word[1]);
        if (option >= 0 && word[2] != '\0')
            value = word + 2;
    }
    if (option < 0)
        return fr_command_fail_option(cli->request.command, word, err);
    snprintf(shown, sizeof shown, "--%s",
             fr_option_get((fr_option)option).name);
    if (option == FR_OPT_HELP && value != NULL && word[1] == '-' &&
        !strcmp(value, "all")) {
        cli->is_help_whole = true;
        value = "1";
    }
    if (fr_option_get((fr_option)option).kind == FR_OPTION_FLAG) {
        if (value != NULL && (is_negated || word[1] != '-'))
            return fr_fail(err, FR_USAGE, "'%.80s' takes no value", word);
        if (value == NULL) {
            FR_TRY(check_flag_value(
                shown, *i_word + 1 < n_words ? words[*i_word + 1] : NULL, err));
            value = is_negated ? "0" : "1";
        }
    } else if (value == NULL &&
               fr_option_get((fr_option)option).kind == FR_OPTION_OPTIONAL &&
               (*i_word + 1 >= n_words || words[*i_word + 1][0] == '-')) {
        value = "";
    } else if (value == NULL) {
        if (*i_word + 1 >= n_words)
            return fr_fail(err, FR_USAGE, "%s needs a value: %s %s", shown,
                           shown, fr_option_get((fr_option)option).metavar);
        value = words[++*i_word];
    }
    return fr_request_read(&cli->request, (fr_option)option, shown, value,
                           FR_SOURCE_FLAG, err);
}

/* Variables that are no options: docs/cli.md and docs/runtime.md. */
static const char *const variables[] = {
    "FORERUN_BOOTSTRAP",  "FORERUN_CONFIGS", "FORERUN_GPU_GRAPH",
    "FORERUN_NODE_ID",    "FORERUN_PIN",     "FORERUN_SHOW_PROGRESS",
    "FORERUN_STATUS_DIR",
};

/* Ranks that a launcher started leave it to the one who started them. */
static bool is_launched_rank(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK",
                                        "PMIX_RANK", "SLURM_PROCID", "RANK"};
    for (size_t i = 0; i < FR_LENGTH(names); i++)
        if (getenv(names[i]) != NULL)
            return true;
    return false;
}

/* One note for each FORERUN_ variable that forerun does not know. */
static void check_environment(const fr_cli *cli)
{
    char known[FR_OPT_N][64];
    const char *names[FR_OPT_N + FR_LENGTH(variables)];
    size_t n = 0;
    if (is_launched_rank())
        return;
    for (; n < FR_OPT_N; n++)
        names[n] = fr_option_env_name((fr_option)n, known[n], 64);
    for (size_t i = 0; i < FR_LENGTH(variables); i++)
        names[n++] = variables[i];
    for (char **at = environ; *at != NULL; at++) {
        char name[80], hint[FR_HINT_MAX];
        size_t n_name = strcspn(*at, "=");
        if (!fr_text_starts(*at, "FORERUN_") || n_name >= sizeof name)
            continue;
        memcpy(name, *at, n_name);
        name[n_name] = '\0';
        if (fr_text_find(name, names, n) < 0)
            fr_cli_note(cli,
                        "forerun: nothing reads the environment variable "
                        "%s%s",
                        name,
                        fr_text_hint(fr_text_nearest(name, names, n), hint));
    }
}

static fr_status parse_environment(fr_cli *cli, fr_err *err)
{
    for (int i = 0; i < FR_OPT_N; i++) {
        char name[64];
        fr_option option = (fr_option)i;
        if (option == FR_OPT_HELP || fr_cli_has(cli, option) ||
            !fr_command_takes(cli->request.command, option))
            continue;
        const char *text = getenv(fr_option_env_name(option, name, 64));
        if (text != NULL && text[0] != '\0')
            FR_TRY(fr_request_read(&cli->request, option, name, text,
                                   FR_SOURCE_ENV, err));
    }
    return FR_OK;
}

fr_status fr_cli_parse(fr_cli *cli, int n_words, char **words, fr_err *err)
{
    bool is_only_positional = false;
    for (int i = 0; i < n_words; i++) {
        const char *word = words[i];
        if (!is_only_positional && !strcmp(word, "--")) {
            is_only_positional = true;
        } else if (!is_only_positional && word[0] == '-' && word[1] != '\0') {
            FR_TRY(parse_option(cli, n_words, words, &i, err));
        } else {
            FR_TRY(fr_request_add(&cli->request, word, err));
        }
    }
    if (fr_cli_on(cli, FR_OPT_HELP))
        return FR_OK;
    FR_TRY(fr_request_check(&cli->request, err));
    check_environment(cli);
    return parse_environment(cli, err);
}
