/* run_events.c: see run_events.h. */
#include "spec/run/run_events.h"

#include "core/base/text.h"
#include "core/base/units.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* The member and the unit of a number of a word. */
typedef struct part {
    size_t offset;
    fr_quantity quantity;
} part;

#define PART(member, quantity)                                                 \
    {                                                                          \
        offsetof(fr_run_events, member), quantity                              \
    }

static const struct {
    const char *name, *example;
    part amount, every;
    bool has_factor; /* from 1 */
} kinds[] = {
    {"maintenance", "maintenance:4h@30d", PART(maintenance_s, FR_QUANTITY_S),
     PART(maintenance_every_s, FR_QUANTITY_S), false},
    {"evaluation", "evaluation:5min@1000", PART(evaluation_s, FR_QUANTITY_S),
     PART(evaluation_every_steps, FR_QUANTITY_COUNT), false},
    {"slow", "slow:2hx1.3@5000h", PART(slow_s, FR_QUANTITY_S),
     PART(slow_every_s, FR_QUANTITY_S), true},
    {"rack", "rack:8@50000h", PART(rack_nodes, FR_QUANTITY_COUNT),
     PART(rack_every_s, FR_QUANTITY_S), false},
};
enum { N_KINDS = sizeof kinds / sizeof kinds[0], WORD_BYTES = 128 };

static double *member(fr_run_events *events, const part *at)
{
    return (double *)(void *)((char *)events + at->offset);
}

static fr_status fail_word(const char *word, int kind, fr_err *err)
{
    if (kind < N_KINDS)
        return fr_fail(err, FR_USAGE, "--meets '%.80s': give such as %s", word,
                       kinds[kind].example);
    return fr_fail(
        err, FR_USAGE, "--meets '%.80s': give such as %s, %s, %s or %s", word,
        kinds[0].example, kinds[1].example, kinds[2].example, kinds[3].example);
}

/* Cuts the text at the separator; NULL: it is not there. */
static char *cut(char *text, char separator)
{
    char *at = text != NULL ? strchr(text, separator) : NULL;
    if (at == NULL)
        return NULL;
    *at = '\0';
    return at + 1;
}

static bool read_part(const part *at, const char *text, fr_run_events *out)
{
    return text != NULL &&
           fr_parse_quantity(at->quantity, text, 0, member(out, at), NULL) ==
               FR_OK &&
           *member(out, at) > 0;
}

static bool read_factor(const char *text, double *out)
{
    return text != NULL && fr_parse_double(text, out, NULL) == FR_OK &&
           *out >= 1;
}

static fr_status read_event(char *text, fr_run_events *out, fr_err *err)
{
    char word[WORD_BYTES];
    int kind = 0;

    fr_text_copy_cut(word, sizeof word, text);
    char *amount = cut(text, ':');
    char *every = cut(amount, '@');
    char *factor = cut(amount, 'x');
    while (kind < N_KINDS && strcmp(kinds[kind].name, text) != 0)
        kind++;
    if (kind == N_KINDS)
        return fail_word(word, kind, err);
    if (*member(out, &kinds[kind].amount) > 0)
        return fr_fail(err, FR_USAGE, "--meets '%.80s': there is one before",
                       word);
    const bool has_factor = kinds[kind].has_factor
                                ? read_factor(factor, &out->slow_factor)
                                : factor == NULL;
    if (!has_factor || !read_part(&kinds[kind].amount, amount, out) ||
        !read_part(&kinds[kind].every, every, out))
        return fail_word(word, kind, err);
    return FR_OK;
}

fr_status fr_run_events_parse(const char *text, fr_run_events *out, fr_err *err)
{
    char *own = strdup(text);
    fr_run_events events = {0};
    fr_status status = own != NULL ? FR_OK : fr_fail_no_memory(err);

    for (char *at = own; status == FR_OK && at != NULL;)
        status = read_event(fr_text_trim(strsep(&at, ",")), &events, err);
    free(own);
    if (status == FR_OK)
        *out = events;
    return status;
}
