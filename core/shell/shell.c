/* shell.c: see shell.h. */
#include "core/shell/shell_eval.h"
#include "core/shell/shell_expand.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what the request gives ---------------------------------------------- */

static fr_status give(fr_sh *sh, const char *name, size_t n, const char *value,
                      bool is_fixed)
{
    fr_sh_variable *variable;
    FR_TRY(fr_sh_declare(sh, name, n, false, &variable));
    if (variable->is_known)
        return FR_OK;
    FR_TRY(fr_sh_set_text(sh, variable, (fr_shell_word){.text = value}));
    variable->is_fixed = is_fixed;
    return FR_OK;
}

/* 1=VALUE 2=VALUE: the arguments up to the last that is given. */
static fr_status give_argument(fr_sh *sh, size_t i, const char *value)
{
    fr_shell_word *words = fr_sh_alloc(
        sh, i > sh->arguments.n ? i : sh->arguments.n, sizeof *words);
    if (words == NULL)
        return fr_sh_full(sh);
    for (size_t k = 0; k < i || k < sh->arguments.n; k++) {
        char name[32], mark[32];
        size_t number;
        if (k < sh->arguments.n) {
            words[k] = sh->arguments.words[k];
            continue;
        }
        snprintf(name, sizeof name, "$%zu", k + 1);
        FR_TRY(fr_sh_unknown(sh, name + 1, name, &number));
        const int n = snprintf(mark, sizeof mark, "%c%zu%c", FR_SH_UNKNOWN,
                               number, FR_SH_UNKNOWN_END);
        words[k].text = fr_sh_copy(sh, mark, (size_t)n);
        if (words[k].text == NULL)
            return fr_sh_full(sh);
    }
    words[i - 1].text = value;
    sh->arguments =
        (fr_sh_arguments){.words = words,
                          .n = i > sh->arguments.n ? i : sh->arguments.n,
                          .is_known = true,
                          .is_open = true};
    return FR_OK;
}

/* @=VALUES: all arguments, which are then known. */
static fr_status give_arguments(fr_sh *sh, const char *values)
{
    fr_shell_words words = {0};
    const fr_sh_slice slice = {.at = values, .n = strlen(values), .line = 1};
    fr_sh_reader in = {.arena = &sh->out->arena,
                       .path = "--set @",
                       .begin = values,
                       .p = values,
                       .end = values + slice.n,
                       .line = 1,
                       .n_nodes = &sh->n_nodes,
                       .err = sh->err};
    fr_status status = FR_OK;
    while (status == FR_OK) {
        fr_sh_slice word = {0};
        status = fr_sh_skip_blanks(&in, true);
        if (status == FR_OK)
            status = fr_sh_take_word(&in, &word);
        if (word.n == 0)
            break;
        if (status == FR_OK)
            status = fr_sh_expand_words(sh, word, &words);
    }
    fr_shell_word *copy = fr_sh_alloc(sh, words.n, sizeof *copy);
    if (status == FR_OK && copy == NULL)
        status = fr_sh_full(sh);
    if (status == FR_OK && words.n > 0)
        memcpy(copy, words.items, words.n * sizeof *copy);
    sh->arguments =
        (fr_sh_arguments){.words = copy, .n = words.n, .is_known = true};
    fr_vec_release(&words);
    return status;
}

static fr_status give_settings(fr_sh *sh)
{
    for (size_t i = 0; i < sh->request->n_settings; i++) {
        const char *setting = sh->request->settings[i];
        const char *equal = strchr(setting, '=');
        const size_t n = equal != NULL ? (size_t)(equal - setting) : 0;
        const long argument = strtol(setting, NULL, 10);
        bool is_name = n > 0 && fr_sh_is_name_start(setting[0]);
        for (size_t k = 0; k < n; k++)
            is_name &= fr_sh_is_name(setting[k]);
        const bool is_argument = n > 0 && n < 4 && argument > 0 &&
                                 strspn(setting, "0123456789") == n;
        if (n == 1 && setting[0] == '@')
            FR_TRY(give_arguments(sh, equal + 1));
        else if (is_argument)
            FR_TRY(give_argument(sh, (size_t)argument, equal + 1));
        else if (is_name)
            FR_TRY(give(sh, setting, n, equal + 1, true));
        else
            return fr_fail(
                sh->err, FR_INPUT,
                "--set %.80s: give NAME=VALUE, 1=VALUE for $1 of the "
                "script, or @=VALUES for all its arguments",
                setting);
    }
    return FR_OK;
}

/* #SBATCH --nodes=4: what Slurm will set for the script. */
static fr_status give_slurm(fr_sh *sh, const char *option, const char *value,
                            size_t n)
{
    static const struct {
        const char *option, *name;
    } rows[] = {{"--nodes", "SLURM_NNODES"},
                {"--nodes", "SLURM_JOB_NUM_NODES"},
                {"-N", "SLURM_NNODES"},
                {"-N", "SLURM_JOB_NUM_NODES"},
                {"--ntasks-per-node", "SLURM_NTASKS_PER_NODE"},
                {"--gpus-per-node", "SLURM_GPUS_ON_NODE"},
                {"--gpus-per-node", "SLURM_GPUS_PER_NODE"},
                {"--gres", "SLURM_GPUS_ON_NODE"},
                {"--ntasks", "SLURM_NTASKS"},
                {"-n", "SLURM_NTASKS"}};
    size_t n_digits = n;
    while (n_digits > 0 && isdigit((unsigned char)value[n_digits - 1]) != 0)
        n_digits--;
    const char *copy = fr_sh_copy(sh, value + n_digits, n - n_digits);
    if (copy == NULL)
        return fr_sh_full(sh);
    const bool is_number =
        n > n_digits && (n_digits == 0 || value[n_digits - 1] == ':');
    for (size_t i = 0; i < FR_LENGTH(rows) && is_number; i++)
        if (strcmp(rows[i].option, option) == 0)
            FR_TRY(give(sh, rows[i].name, strlen(rows[i].name), copy, false));
    return FR_OK;
}

static fr_status read_slurm(fr_sh *sh)
{
    static const char mark[] = "#SBATCH";
    const char *line = sh->request->text;
    const char *end = line + sh->request->n_text;
    while (line < end) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        stop = stop != NULL ? stop : end;
        const char *p = line + strlen(mark);
        line = stop + 1;
        if (stop - (p - strlen(mark)) < (long)sizeof mark ||
            memcmp(p - strlen(mark), mark, strlen(mark)) != 0)
            continue;
        while (p < stop && isspace((unsigned char)*p) != 0)
            p++;
        char option[32] = "";
        size_t n = 0;
        while (p < stop && *p != '=' && isspace((unsigned char)*p) == 0 &&
               n + 1 < sizeof option)
            option[n++] = *p++;
        while (p < stop && (*p == '=' || isspace((unsigned char)*p) != 0))
            p++;
        n = 0;
        while (p + n < stop && isspace((unsigned char)p[n]) == 0)
            n++;
        FR_TRY(give_slurm(sh, option, p, n));
    }
    return FR_OK;
}

/* ---- the answer ---------------------------------------------------------- */

static fr_status give_variable(fr_sh *sh, const fr_sh_variable *v)
{
    fr_shell_variable variable = {.name = v->name,
                                  .is_array = v->value.kind != FR_SH_TEXT};
    fr_status status = FR_OK;
    for (size_t i = 0; i < v->value.n && status == FR_OK; i++)
        if (fr_vec_push(&variable.words, v->value.items[i].word) != FR_OK)
            status = FR_NO_MEMORY;
    if (status == FR_OK && fr_vec_push(&sh->out->variables, variable) == FR_OK)
        return FR_OK;
    fr_vec_release(&variable.words);
    return fr_fail_no_memory(sh->err);
}

static fr_status give_variables(fr_sh *sh)
{
    for (size_t i = 0; i < FR_SH_BUCKETS; i++)
        for (const fr_sh_variable *v = sh->buckets[i]; v != NULL; v = v->next)
            if (v->value.kind != FR_SH_UNSET)
                FR_TRY(give_variable(sh, v));
    return FR_OK;
}

fr_status fr_shell_run(const fr_shell_request *request, fr_shell *out,
                       fr_err *err)
{
    fr_sh sh = {.request = request,
                .arguments = {.is_open = true},
                .capture = fr_sh_capture,
                .assign = fr_sh_assign,
                .out = out,
                .err = err,
                .path = request->path,
                .line = 1};
    *out = (fr_shell){0};
    fr_arena_init(&out->arena);
    if (request->n_text > FR_SH_SCRIPT_BYTES_MAX)
        return fr_sh_refuse(&sh, "the file is longer than a launch script is; "
                                 "give the script that starts the training");
    char *text = fr_sh_copy(&sh, request->text, request->n_text);
    fr_status status = text != NULL ? give_settings(&sh) : fr_sh_full(&sh);
    if (status == FR_OK) {
        fr_sh_clean(text, request->n_text);
        status = read_slurm(&sh);
    }
    if (status == FR_OK)
        status = fr_sh_eval_text(&sh, request->path, text, request->n_text, 1);
    if (status == FR_OK)
        status = give_variables(&sh);
    out->n_steps = sh.n_steps;
    fr_vec_release(&sh.functions);
    fr_vec_release(&sh.undo);
    return status;
}

void fr_shell_release(fr_shell *shell)
{
    for (size_t i = 0; i < shell->variables.n; i++)
        fr_vec_release(&shell->variables.items[i].words);
    fr_vec_release(&shell->variables);
    fr_vec_release(&shell->commands);
    fr_vec_release(&shell->unknown);
    fr_vec_release(&shell->branches);
    fr_vec_release(&shell->files);
    fr_arena_release(&shell->arena);
}

const fr_shell_variable *fr_shell_find(const fr_shell *shell, const char *name)
{
    for (size_t i = shell->variables.n; i > 0; i--)
        if (strcmp(shell->variables.items[i - 1].name, name) == 0)
            return &shell->variables.items[i - 1];
    return NULL;
}
