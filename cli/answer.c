/* answer.c: answers are complete before their first byte is printed. */
#include "cli/answer.h"

fr_json_writer *fr_answer_begin(fr_answer *answer, const char *schema)
{
    fr_buffer_init(&answer->buffer);
    fr_json_writer_init(&answer->json, &answer->buffer);
    fr_json_begin_object(&answer->json);
    fr_json_put_string(&answer->json, "schema", schema);
    return &answer->json;
}

fr_status fr_answer_print(fr_answer *answer, const fr_cli *cli, fr_err *err)
{
    fr_json_end_object(&answer->json);
    fr_buffer_putc(&answer->buffer, '\n');
    return fr_answer_text(FR_OK, &answer->buffer, cli, err);
}

fr_status fr_answer_text(fr_status status, fr_buffer *buffer, const fr_cli *cli,
                         fr_err *err)
{
    if (status == FR_OK)
        status = fr_buffer_check(buffer, err);
    if (status == FR_OK)
        fputs(fr_buffer_text(buffer), cli->out);
    fr_buffer_release(buffer);
    return status;
}
