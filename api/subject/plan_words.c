/* plan_words.c: see plan_words.h. */
#include "api/subject/plan_words.h"

#include "core/system/fileio.h"

#include <stdlib.h>
#include <string.h>

bool fr_plan_words_is_plan(const char *path)
{
    char *text = NULL;
    size_t n = 0;
    fr_err unused;
    if (fr_file_read(path, 1u << 24, &text, &n, &unused) != FR_OK)
        return false;
    bool is_plan = memmem(text, n, "\"forerun.plan/", 14) != NULL;
    free(text);
    return is_plan;
}

fr_status fr_plan_words_of(const fr_request *request, fr_plan_words *out,
                           fr_err *err)
{
    const char *const *word = request->positional;
    const int n = request->n_positional;
    const bool is_from = fr_request_has(request, FR_OPT_FROM);
    if (n < 2 && !is_from)
        return fr_fail(err, FR_USAGE, "missing argument; usage: forerun %s %s",
                       request->command->name, request->command->synopsis);
    if (request->option[FR_OPT_MODEL].source == FR_SOURCE_FLAG &&
        (n > 1 || !is_from))
        return fr_fail(err, FR_USAGE,
                       "--model goes with --from and a CLUSTER alone");
    if (n == 1)
        *out = (fr_plan_words){.cluster = word[0]};
    else if (n == 2 && fr_plan_words_is_plan(word[0]))
        *out = (fr_plan_words){.cluster = word[1], .plan = word[0]};
    else
        *out = (fr_plan_words){word[0], word[1], n > 2 ? word[2] : NULL};
    return FR_OK;
}
