/* ask.c: see ask.h. */
#include "tests/unit/api/ask.h"

#include "api/answer/answers.h"
#include "report/document/renderer.h"

#include <string.h>

static fr_status fill(const question *of, fr_request *request, fr_err *err)
{
    for (int i = 0; i < ASK_WORDS && of->words[i] != NULL; i++)
        FR_TRY(fr_request_add(request, of->words[i], err));
    for (int i = 0; i < ASK_SETTINGS && of->settings[i].name != NULL; i++)
        FR_TRY(fr_request_put(request, of->settings[i].name,
                              of->settings[i].text, err));
    return FR_OK;
}

char *ask(const question *of, const fr_session *session, fr_status *status,
          fr_err *err)
{
    fr_request request;
    fr_document answer = {0};
    fr_buffer text;
    fr_request_init(&request, fr_command_find(fr_commands, of->command),
                    session);
    *status = fill(of, &request, err);
    if (*status == FR_OK)
        *status = request.command->answer(&request, &answer, err);
    fr_buffer_init(&text);
    if (*status == FR_OK)
        *status =
            fr_document_render(&answer, &fr_render_json, NULL, &text, err);
    fr_document_release(&answer);
    char *out = *status == FR_OK ? strdup(fr_buffer_text(&text)) : NULL;
    fr_buffer_release(&text);
    return out;
}

void drop_wall_s(char *json)
{
    char *at = json;
    while ((at = strstr(at, "\"wall_s\"")) != NULL) {
        const size_t n = strcspn(at, ",\n");
        memmove(at, at + n, strlen(at + n) + 1);
    }
}
