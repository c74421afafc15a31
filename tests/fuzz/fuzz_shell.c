/* fuzz_shell.c: any text is evaluated as a script within its bounds, both where
 * its open branches are taken and where they are not. */
#include "core/shell/shell.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    static const bool decisions[8] = {true, false, true, true,
                                      true, false, true, true};
    static const char *const settings[] = {"A=1", "1=x y"};
    char shown[64];
    char *text = malloc(n + 1);
    if (text == NULL)
        return 0;
    if (n > 0)
        memcpy(text, bytes, n);
    text[n] = '\0';
    for (size_t i = 0; i < 2; i++) {
        const fr_shell_request request = {.path = "input",
                                          .text = text,
                                          .n_text = n,
                                          .settings = settings,
                                          .n_settings = i * 2,
                                          .decisions = decisions,
                                          .n_decisions = i * 8};
        fr_shell shell;
        fr_err err;
        const fr_status status = fr_shell_run(&request, &shell, &err);
        fuzz_check_error(status, &err);
        for (size_t k = 0; k < shell.commands.n; k++)
            if (shell.commands.items[k].text != NULL)
                fr_shell_show(&shell, shell.commands.items[k].text, shown,
                              sizeof shown);
        fr_shell_release(&shell);
    }
    free(text);
    return 0;
}
