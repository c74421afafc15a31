/* shell_output.c: commands that only print what they are given. */
#include "core/base/text.h"
#include "core/shell/shell_eval.h"
#include "core/shell/shell_expand.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- files --------------------------------------------------------------- */

const char *fr_shell_find_file(const fr_shell *shell, const char *name)
{
    name += fr_text_starts(name, "./") ? 2 : 0;
    for (size_t i = shell->files.n; i > 0; i--)
        if (strcmp(shell->files.items[i - 1].name, name) == 0)
            return shell->files.items[i - 1].text;
    return NULL;
}

fr_status fr_sh_read_file(fr_sh *sh, const char *name, const char **out)
{
    const fr_shell_request *request = sh->request;
    char *text;
    size_t n;
    fr_err why;
    const char *slash = strrchr(name, '/');
    *out = fr_shell_find_file(sh->out, name);
    if (*out != NULL)
        return FR_OK;
    if (slash != NULL && fr_sh_unknown_in(name) > 0)
        name = slash + 1; /* an unknown folder: it may be that of the script */
    if (request->read_file == NULL || *name == '\0' ||
        fr_sh_unknown_in(name) > 0)
        return FR_OK;
    fr_status status =
        request->read_file(request->context, name, &text, &n, &why);
    if (status == FR_NO_MEMORY)
        return fr_fail_no_memory(sh->err);
    if (status != FR_OK)
        return FR_OK;
    char *copy = fr_sh_copy(sh, text, n);
    free(text);
    if (copy == NULL)
        return fr_sh_full(sh);
    fr_sh_clean(copy, n);
    *out = copy;
    return FR_OK;
}

fr_status fr_sh_write_file(fr_sh *sh, const char *name, const char *text,
                           bool is_appended)
{
    const char *old = is_appended ? fr_shell_find_file(sh->out, name) : NULL;
    const size_t n_old = old != NULL ? strlen(old) : 0, n = strlen(text);
    if (fr_text_starts(name, "/dev/"))
        return FR_OK;
    name += fr_text_starts(name, "./") ? 2 : 0;
    char *whole = fr_sh_alloc(sh, n_old + n + 1, 1);
    fr_shell_file file = {.name = fr_sh_copy(sh, name, strlen(name)),
                          .text = whole};
    if (whole == NULL || file.name == NULL)
        return fr_sh_full(sh);
    if (n_old > 0)
        memcpy(whole, old, n_old);
    memcpy(whole + n_old, text, n);
    FR_TRY_PUSH(&sh->out->files, file, sh->err);
    return FR_OK;
}

/* ---- commands ------------------------------------------------------------ */

/* One command: false: such arguments are not understood. */
typedef struct print {
    fr_sh *sh;
    const fr_shell_word *words; /* after its name */
    size_t n;
    const char *input; /* NULL: none */
    fr_buffer *out;
} print;

static bool print_echo(print *p)
{
    bool ends_line = true;
    size_t i = 0;
    while (i < p->n && (strcmp(p->words[i].text, "-n") == 0 ||
                        strcmp(p->words[i].text, "-e") == 0)) {
        ends_line &= p->words[i].text[1] != 'n';
        i++;
    }
    for (size_t first = i; i < p->n; i++)
        fr_buffer_printf(p->out, "%s%s", i > first ? " " : "",
                         p->words[i].text);
    fr_buffer_puts(p->out, ends_line ? "\n" : "");
    return true;
}

/* %s and %d of printf, once for each round of arguments. */
static bool print_printf(print *p)
{
    size_t i = 1;
    if (p->n == 0 || strcmp(p->words[0].text, "-v") == 0)
        return false;
    do {
        for (const char *f = p->words[0].text; *f != '\0'; f++) {
            if (f[0] == '\\' && f[1] == 'n') {
                fr_buffer_putc(p->out, '\n');
                f++;
            } else if (f[0] == '%' && (f[1] == 's' || f[1] == 'd')) {
                fr_buffer_puts(p->out, i < p->n ? p->words[i].text : "");
                i++;
                f++;
            } else if (f[0] == '%' || f[0] == '\\') {
                return false;
            } else {
                fr_buffer_putc(p->out, *f);
            }
        }
    } while (i < p->n && i > 1 && p->out->n < FR_SH_WORD_BYTES_MAX);
    return true;
}

static bool print_cat(print *p)
{
    for (size_t i = 0; i < p->n; i++) {
        const char *text;
        if (fr_sh_read_file(p->sh, p->words[i].text, &text) != FR_OK ||
            text == NULL)
            return false;
        fr_buffer_puts(p->out, text);
    }
    if (p->n == 0 && p->input != NULL)
        fr_buffer_puts(p->out, p->input);
    return p->n > 0 || p->input != NULL;
}

static bool print_basename(print *p)
{
    if (p->n == 0 || p->n > 2)
        return false;
    const char *path = p->words[0].text;
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    size_t from = n;
    while (from > 0 && path[from - 1] != '/')
        from--;
    const char *suffix = p->n > 1 ? p->words[1].text : "";
    const size_t n_suffix = strlen(suffix);
    if (n_suffix > 0 && n - from > n_suffix &&
        memcmp(path + n - n_suffix, suffix, n_suffix) == 0)
        n -= n_suffix;
    fr_buffer_append(p->out, path + from, n - from);
    fr_buffer_putc(p->out, '\n');
    return true;
}

static bool print_dirname(print *p)
{
    if (p->n != 1)
        return false;
    const char *path = p->words[0].text, *slash = strrchr(path, '/');
    if (slash == NULL)
        fr_buffer_puts(p->out, ".\n");
    else
        fr_buffer_printf(p->out, "%.*s\n",
                         (int)(slash > path ? slash - path : 1), path);
    return true;
}

static bool print_path(print *p)
{
    if (p->n == 0)
        return false;
    fr_buffer_printf(p->out, "%s\n", p->words[p->n - 1].text);
    return true;
}

static bool print_pwd(print *p)
{
    if (p->sh->folder == NULL)
        return false;
    fr_buffer_printf(p->out, "%s\n", p->sh->folder);
    return true;
}

static bool take_number(const char *text, long long *out)
{
    char *end;
    *out = strtoll(text, &end, 10);
    return end != text && *end == '\0';
}

static bool print_seq(print *p)
{
    long long from = 1, by = 1, to;
    size_t i = 0;
    const char *separator = "\n";
    if (p->n > 2 && strcmp(p->words[0].text, "-s") == 0) {
        separator = p->words[1].text;
        i = 2;
    }
    const size_t n = p->n - i;
    if (n < 1 || n > 3 || !take_number(p->words[p->n - 1].text, &to) ||
        (n > 1 && !take_number(p->words[i].text, &from)) ||
        (n > 2 && !take_number(p->words[i + 1].text, &by)) || by == 0)
        return false;
    int n_printed = 0;
    for (; (by > 0 ? from <= to : from >= to) && n_printed < FR_SH_ROUNDS_MAX;
         from += by)
        fr_buffer_printf(p->out, "%s%lld", n_printed++ > 0 ? separator : "",
                         from);
    fr_buffer_puts(p->out, n_printed > 0 ? "\n" : "");
    return n_printed < FR_SH_ROUNDS_MAX;
}

/* expr 2 \* 3, and bc of whole numbers without division. */
static bool print_sum(print *p, const char *text, bool divides)
{
    int64_t value;
    size_t unknown;
    fr_err *err = p->sh->err, unused;
    const int depth = p->sh->depth;
    if (text[strspn(text, "0123456789+-*/%() \n")] != '\0' ||
        (!divides && strpbrk(text, "/%") != NULL))
        return false;
    p->sh->err = &unused;
    const fr_status status = fr_sh_sum(p->sh, text, &value, &unknown);
    p->sh->err = err;
    p->sh->depth = depth;
    if (status != FR_OK || unknown > 0)
        return false;
    fr_buffer_printf(p->out, "%lld\n", (long long)value);
    return true;
}

static bool print_expr(print *p)
{
    fr_buffer text;
    fr_buffer_init(&text);
    for (size_t i = 0; i < p->n; i++)
        fr_buffer_printf(&text, "%s ", p->words[i].text);
    const bool is_known = print_sum(p, fr_buffer_text(&text), true);
    fr_buffer_release(&text);
    return is_known;
}

static bool print_bc(print *p)
{
    return p->input != NULL && print_sum(p, p->input, false);
}

/* wc -l, wc -w of its input. */
static bool print_wc(print *p)
{
    long n_lines = 0, n_words = 0;
    if (p->n != 1 || p->input == NULL)
        return false;
    const char *c = p->input;
    for (; *c != '\0'; c++) {
        n_lines += *c == '\n';
        n_words += isspace((unsigned char)*c) == 0 &&
                   (c[1] == '\0' || isspace((unsigned char)c[1]) != 0);
    }
    const bool is_lines = strcmp(p->words[0].text, "-l") == 0;
    if (!is_lines && strcmp(p->words[0].text, "-w") != 0)
        return false;
    fr_buffer_printf(p->out, "%ld\n", is_lines ? n_lines : n_words);
    return true;
}

/* tr a b, tr -d a, tr [:upper:] [:lower:]: single characters, no ranges. */
static bool print_tr(print *p)
{
    if (p->n != 2 || p->input == NULL)
        return false;
    const char *from = p->words[0].text, *to = p->words[1].text;
    const bool is_deleting = strcmp(from, "-d") == 0;
    const bool is_lower =
        strcmp(from, "[:upper:]") == 0 || strcmp(from, "A-Z") == 0;
    const bool is_upper =
        strcmp(from, "[:lower:]") == 0 || strcmp(from, "a-z") == 0;
    if (is_deleting)
        from = to;
    if (!is_lower && !is_upper &&
        (strpbrk(from, "-[") != NULL || strpbrk(to, "[") != NULL ||
         (!is_deleting && *to == '\0')))
        return false;
    for (const char *c = p->input; *c != '\0'; c++) {
        const char *at = strcmp(from, "\\n") == 0 ? (*c == '\n' ? from : NULL)
                                                  : strchr(from, *c);
        const size_t i = at != NULL ? (size_t)(at - from) : 0;
        if (is_lower || is_upper)
            fr_buffer_putc(p->out,
                           (char)(is_lower ? tolower((unsigned char)*c)
                                           : toupper((unsigned char)*c)));
        else if (at == NULL)
            fr_buffer_putc(p->out, *c);
        else if (!is_deleting)
            fr_buffer_putc(p->out, strcmp(to, "\\n") == 0 ? '\n'
                                   : i < strlen(to)       ? to[i]
                                                          : to[strlen(to) - 1]);
    }
    return true;
}

/* Field `wanted` of each line, 0: their number. */
static void print_field(print *p, char separator, long wanted, bool is_count)
{
    const char *line = p->input;
    while (*line != '\0') {
        const char *end = line + strcspn(line, "\n"), *from = line;
        long i = 1;
        for (; i < wanted || is_count; i++) {
            const char *next = memchr(from, separator, (size_t)(end - from));
            if (next == NULL)
                break;
            from = next + 1;
        }
        const char *stop = memchr(from, separator, (size_t)(end - from));
        stop = stop != NULL ? stop : end;
        if (is_count)
            fr_buffer_printf(p->out, "%ld\n", line < end ? i : 0);
        else
            fr_buffer_printf(p->out, "%.*s\n",
                             i < wanted ? 0 : (int)(stop - from), from);
        line = end + (*end != '\0');
    }
}

/* cut -d, -f1 */
static bool print_cut(print *p)
{
    char separator = '\t';
    long field = 0;
    for (size_t i = 0; i < p->n; i++) {
        const char *word = p->words[i].text;
        const bool is_next = word[0] == '-' && word[1] != '\0' &&
                             word[2] == '\0' && i + 1 < p->n;
        const char *value = is_next ? p->words[i + 1].text : word + 2;
        i += is_next;
        if (word[0] != '-' || (word[1] != 'd' && word[1] != 'f') ||
            *value == '\0')
            return false;
        if (word[1] == 'd')
            separator = *value;
        char *end;
        if (word[1] == 'f' &&
            ((field = strtol(value, &end, 10)) < 1 || *end != '\0'))
            return false;
    }
    if (p->input == NULL || field == 0)
        return false;
    print_field(p, separator, field, false);
    return true;
}

/* awk -F, '{print NF}' and '{print $2}' */
static bool print_awk(print *p)
{
    static const char head[] = "{print ";
    size_t i = 0;
    char separator = ' ';
    if (p->n > 1 && fr_text_starts(p->words[0].text, "-F")) {
        const char *value = p->words[0].text + 2;
        value = *value != '\0' ? value : p->words[++i].text;
        i++;
        if (strlen(value) != 1)
            return false;
        separator = *value;
    }
    if (i + 1 != p->n || p->input == NULL || separator == ' ' ||
        !fr_text_starts(p->words[i].text, head))
        return false;
    const char *what = p->words[i].text + strlen(head);
    const bool is_count = strcmp(what, "NF}") == 0;
    const long field = *what == '$' ? strtol(what + 1, NULL, 10) : 0;
    if (!is_count && (field < 1 || field > 99 || what[strlen(what) - 1] != '}'))
        return false;
    print_field(p, separator, field, is_count);
    return true;
}

/* A text with each `from` (the first of a line unless is_all) replaced. */
static void replace(const char *text, fr_sh_slice from, fr_sh_slice to,
                    bool is_all, fr_buffer *out)
{
    bool is_done = false;
    while (*text != '\0' && out->n < FR_SH_WORD_BYTES_MAX) {
        is_done &= *text != '\n';
        if (is_done || strncmp(text, from.at, from.n) != 0) {
            fr_buffer_putc(out, *text++);
            continue;
        }
        fr_buffer_append(out, to.at, to.n);
        text += from.n;
        is_done = !is_all;
    }
}

/* s/a/b/g of plain texts; false: another command, or an expression. */
static bool run_sed(const char *command, const char *text, fr_buffer *out)
{
    const char *end = command + strlen(command);
    if (command[0] != 's' || command[1] == '\0')
        return false;
    const char mark = command[1];
    const char *middle = strchr(command + 2, mark);
    const char *last = middle != NULL ? strchr(middle + 1, mark) : NULL;
    if (last == NULL || end - last > 2 || (end - last == 2 && last[1] != 'g'))
        return false;
    const fr_sh_slice from = {.at = command + 2,
                              .n = (size_t)(middle - command) - 2};
    const fr_sh_slice to = {.at = middle + 1, .n = (size_t)(last - middle) - 1};
    if (from.n == 0 || memchr(to.at, '\\', to.n) != NULL ||
        memchr(to.at, '&', to.n) != NULL)
        return false;
    for (size_t i = 0; i < from.n; i++)
        if (strchr(".*[]^$\\\001", from.at[i]) != NULL)
            return false;
    replace(text, from, to, end - last == 2, out);
    return true;
}

/* sed "s/A/b/" [-e "s/C/d/g" ...] [file] */
static bool print_sed(print *p)
{
    const char *text = p->input;
    bool has_command = false;
    for (size_t i = 0; i < p->n; i++) {
        const char *word = p->words[i].text;
        const bool is_expression = strcmp(word, "-e") == 0 && i + 1 < p->n;
        if (word[0] == '-' && !is_expression)
            return false;
        if (is_expression || !has_command)
            i += is_expression;
        else if (fr_sh_read_file(p->sh, word, &text) != FR_OK || text == NULL)
            return false;
        has_command = true;
    }
    has_command = false;
    for (size_t i = 0; i < p->n && text != NULL; i++) {
        const bool is_expression = strcmp(p->words[i].text, "-e") == 0;
        if (!is_expression && has_command)
            continue;
        i += is_expression;
        has_command = true;
        p->out->n = 0;
        if (!run_sed(p->words[i].text, text, p->out))
            return false;
        text = fr_sh_copy(p->sh, fr_buffer_text(p->out), p->out->n);
    }
    return has_command && text != NULL;
}

/* head -n 1 of its input. */
static bool print_head(print *p)
{
    bool is_one = false;
    for (size_t i = 0; i < p->n; i++)
        is_one |= strcmp(p->words[i].text, "-1") == 0 ||
                  strcmp(p->words[i].text, "1") == 0 ||
                  strcmp(p->words[i].text, "-n1") == 0;
    if (!is_one || p->input == NULL)
        return false;
    fr_buffer_printf(p->out, "%.*s\n", (int)strcspn(p->input, "\n"), p->input);
    return true;
}

static const struct {
    const char *name;
    bool (*print)(print *p);
} printers[] = {{"echo", print_echo},       {"printf", print_printf},
                {"cat", print_cat},         {"basename", print_basename},
                {"dirname", print_dirname}, {"realpath", print_path},
                {"readlink", print_path},   {"pwd", print_pwd},
                {"seq", print_seq},         {"expr", print_expr},
                {"bc", print_bc},           {"wc", print_wc},
                {"tr", print_tr},           {"cut", print_cut},
                {"awk", print_awk},         {"sed", print_sed},
                {"head", print_head},       {"tee", NULL}};

/* tee FILE: its input, which is written to the file too. */
static fr_status run_tee(fr_sh *sh, const fr_shell_word *words, size_t n)
{
    const char *text = sh->input != NULL ? sh->input : "";
    if (sh->output != NULL)
        fr_buffer_puts(sh->output, text);
    if (n > 1 && words[n - 1].text[0] != '-')
        return fr_sh_write_file(sh, words[n - 1].text, text, false);
    return FR_OK;
}

fr_status fr_sh_print(fr_sh *sh, const fr_shell_word *words, size_t n,
                      bool *is_known)
{
    fr_buffer text;
    size_t i = 0;
    while (i < FR_LENGTH(printers) &&
           strcmp(printers[i].name, words[0].text) != 0)
        i++;
    if (i == FR_LENGTH(printers))
        return FR_OK;
    if (printers[i].print == NULL) {
        *is_known = true;
        sh->last = (fr_sh_status){0};
        return run_tee(sh, words, n);
    }
    fr_buffer_init(&text);
    print p = {.sh = sh,
               .words = words + 1,
               .n = n - 1,
               .input = sh->input,
               .out = &text};
    const bool looks_into =
        printers[i].print != print_echo && printers[i].print != print_cat &&
        printers[i].print != print_printf && printers[i].print != print_path &&
        printers[i].print != print_sed;
    bool is_open = sh->input != NULL && fr_sh_unknown_in(sh->input) > 0;
    for (size_t k = 1; k < n; k++)
        is_open |= fr_sh_unknown_in(words[k].text) > 0;
    *is_known = !(looks_into && is_open) && printers[i].print(&p);
    fr_status status = fr_buffer_check(&text, sh->err);
    if (status == FR_OK && *is_known) {
        sh->last = (fr_sh_status){0};
        if (sh->output != NULL)
            fr_buffer_append(sh->output, fr_buffer_text(&text), text.n);
        if (sh->output != NULL && sh->output->n > FR_SH_WORD_BYTES_MAX)
            status = fr_sh_refuse(sh, "more output than a launch script makes");
    }
    fr_buffer_release(&text);
    return status;
}
