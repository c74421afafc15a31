/*
 * fuzz_config.h: one format of configurations on any bytes: what comes out is a
 * legal plan that can be written and read back.
 */
#ifndef FR_TESTS_FUZZ_CONFIG_H
#define FR_TESTS_FUZZ_CONFIG_H

#include "frameworks/read/config.h"
#include "plan/decide/plan_fields.h"
#include "tests/fuzz/fuzz.h"

static inline void fuzz_config_file(const fr_plan_file *file)
{
    fr_json_writer writer;
    fr_buffer text;
    fr_plan_file back;
    fr_err err;
    fr_buffer_init(&text);
    fr_json_writer_init(&writer, &text);
    fr_plan_file_write(file, &writer);
    if (fr_plan_file_parse("written", text.data, text.n, &back, &err) !=
            FR_OK ||
        !fr_plan_is_same(&back.plan, &file->plan))
        abort();
    fr_plan_file_release(&back);
    fr_buffer_release(&text);
}

/* A file that the configuration names is the same bytes. */
static inline fr_status fuzz_config_named(const void *context, const char *name,
                                          char **text, size_t *n_text,
                                          fr_err *err)
{
    const fr_config_request *request = context;
    if (name[0] == '\0' || strlen(name) % 2 == 0)
        return fr_fail(err, FR_IO, "no such file");
    *text = malloc(request->n_text + 1);
    if (*text == NULL)
        return fr_fail_no_memory(err);
    memcpy(*text, request->text, request->n_text + 1);
    *n_text = request->n_text;
    return FR_OK;
}

static inline int fuzz_config(const char *format, const uint8_t *bytes,
                              size_t n)
{
    fr_model model;
    fr_config config;
    fr_err err;
    fr_model_init(&model);
    model.n_layers = 8;
    model.hidden = 512;
    model.n_heads = model.n_kv_heads = 8;
    model.head_dim = 64;
    model.ffn_hidden = 2048;
    model.vocab = 50304;
    model.max_seq = 1024;
    model.n_experts = 8;
    model.n_experts_per_token = 2;
    model.expert_ffn_hidden = 1024;
    model.moe_every = 1;
    char *text = malloc(n + 1);
    if (text == NULL)
        return 0;
    if (n > 0)
        memcpy(text, bytes, n);
    text[n] = '\0';
    fr_config_request request = {.path = "input",
                                 .text = text,
                                 .n_text = n,
                                 .model = &model,
                                 .world = n % 2 == 0 ? 32 : 0,
                                 .read_file = fuzz_config_named};
    request.context = &request;
    if (n % 3 == 0)
        request.model = NULL; /* that of the file */
    (void)fr_config_guess(text, n);
    fr_status status =
        fr_config_read(fr_config_find(format), &request, &config, &err);
    free(text);
    fuzz_check_error(status, &err);
    if (status != FR_OK)
        return 0;
    fuzz_config_file(&config.file);
    fr_config_release(&config);
    return 0;
}

#endif
