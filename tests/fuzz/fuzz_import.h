/*
 * fuzz_import.h: one kind of import on any bytes: what comes out is whole, and
 * can be written and read back.
 */
#ifndef FR_TESTS_FUZZ_IMPORT_H
#define FR_TESTS_FUZZ_IMPORT_H

#include "interop/import/import.h"
#include "spec/cluster/cluster_write.h"
#include "tests/fuzz/fuzz.h"

static inline void fuzz_import_cluster(const fr_import *import)
{
    fr_buffer text;
    fr_cluster back;
    fr_err err;
    fr_buffer_init(&text);
    if (fr_cluster_check(&import->cluster, &err) != FR_OK ||
        fr_cluster_format(&import->cluster, fr_buffer_text(&import->notes),
                          &text, &err) != FR_OK ||
        fr_cluster_parse("written", text.data, text.n, &back, &err) != FR_OK)
        abort();
    if (fr_cluster_hash(&back) != fr_cluster_hash(&import->cluster))
        abort();
    fr_cluster_release(&back);
    fr_buffer_release(&text);
}

static inline void fuzz_import_profile(const fr_import *import)
{
    fr_buffer text;
    fr_profile back;
    fr_err err;
    fr_buffer_init(&text);
    if (fr_profile_format(&import->profile, &text, &err) != FR_OK ||
        fr_profile_parse("written", text.data, text.n, &back, &err) != FR_OK)
        abort();
    fr_profile_release(&back);
    fr_buffer_release(&text);
}

static inline int fuzz_import(const char *kind, const uint8_t *bytes, size_t n)
{
    fr_import_options options = {.gpu = "v100-sxm2-32g",
                                 .node_type = "dgx-1-v100"};
    fr_import import;
    fr_err err;
    char *text = malloc(n + 1);
    if (text == NULL)
        return 0;
    if (n > 0)
        memcpy(text, bytes, n);
    text[n] = '\0';
    fr_status status = fr_import_parse(fr_import_kind_find(kind), "input", text,
                                       n, &options, &import, &err);
    free(text);
    fuzz_check_error(status, &err);
    if (status != FR_OK)
        return 0;
    if (import.is_profile)
        fuzz_import_profile(&import);
    else
        fuzz_import_cluster(&import);
    fr_import_release(&import);
    return 0;
}

#endif
