/* shell_redirect.c: the input of a command that < << <<< and <( ) give. */
#include "core/shell/shell_eval.h"
#include "core/shell/shell_expand.h"

#include <string.h>

/* A here-document, whose lines lose their tabs after <<-. */
static fr_status read_document(fr_sh *sh, const fr_sh_redirect *redirect)
{
    fr_sh_slice body = redirect->target;
    char *text = fr_sh_copy(sh, body.at, body.n), *to = text;
    if (text == NULL)
        return fr_sh_full(sh);
    for (const char *p = text; redirect->strips_tabs && *p != '\0'; p++)
        if (*p != '\t' || (to > text && to[-1] != '\n'))
            *to++ = *p;
    if (redirect->strips_tabs)
        *to = '\0';
    sh->input = text;
    if (redirect->is_literal)
        return FR_OK;
    body.at = text;
    body.n = strlen(text);
    return fr_sh_expand_document(sh, body, &sh->input);
}

/* <(command): its output. */
static fr_status capture_line(fr_sh *sh, fr_sh_slice command, const char **out)
{
    fr_buffer text;
    fr_buffer_init(&text);
    fr_status status = sh->capture(sh, command, &text);
    if (status == FR_OK && text.n > 0)
        fr_buffer_putc(&text, '\n');
    if (status == FR_OK)
        status = fr_buffer_check(&text, sh->err);
    if (status == FR_OK)
        *out = fr_sh_copy(sh, fr_buffer_text(&text), text.n);
    fr_buffer_release(&text);
    return status == FR_OK && *out == NULL ? fr_sh_full(sh) : status;
}

fr_status fr_sh_read_input(fr_sh *sh, const fr_sh_redirect *redirect)
{
    const char *name;
    const fr_sh_slice target = redirect->target;
    if (redirect->kind == FR_SH_DOCUMENT)
        return read_document(sh, redirect);
    if (target.n > 2 && target.at[0] == '<' && target.at[1] == '(') {
        const fr_sh_slice command = {
            .at = target.at + 2, .n = target.n - 3, .line = target.line};
        return capture_line(sh, command, &sh->input);
    }
    FR_TRY(fr_sh_expand_text(sh, redirect->target, &name));
    if (redirect->kind == FR_SH_READ)
        return fr_sh_read_file(sh, name, &sh->input);
    const size_t n = strlen(name);
    char *text = fr_sh_copy(sh, name, n + 1);
    if (text == NULL)
        return fr_sh_full(sh);
    text[n] = '\n';
    sh->input = text;
    return FR_OK;
}
