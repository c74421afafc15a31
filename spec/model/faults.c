/* faults.c: see faults.h. */
#include "spec/model/faults.h"

#include "core/base/text.h"
#include "core/base/units.h"

#include <stdio.h>
#include <string.h>

typedef struct fault_row {
    const char *name;
    bool has_factor; /* "x2", at least 1 */
    bool has_span;   /* "10..40": else it is of one step */
    bool has_rate;   /* "20MB/s" in place of the rank: it is of all */
} fault_row;

static const fault_row kinds[FR_FAULT_N] = {
    [FR_FAULT_KILL] = {.name = "kill"},
    [FR_FAULT_LOSE] = {.name = "lose"},
    [FR_FAULT_JOIN] = {.name = "join"},
    [FR_FAULT_HANG] = {.name = "hang"},
    [FR_FAULT_SLOW] = {.name = "slow", .has_factor = true, .has_span = true},
    [FR_FAULT_READ] = {.name = "read", .has_span = true, .has_rate = true},
};

enum { WORD_BYTES = 128 };
/* Beyond, the nanoseconds of a long kernel are no whole number any more. */
static const double most_factor = 1e6;

static fr_status fail_word(const char *word, const char *why, fr_err *err)
{
    return fr_fail(err, FR_USAGE,
                   "--inject '%.80s': %s; such as kill:rank=2@30", word, why);
}

/* Cuts the text at the separator; NULL: it is not there. */
static char *cut(char *text, const char *separator)
{
    char *at = strstr(text, separator);
    if (at == NULL)
        return NULL;
    *at = '\0';
    return at + strlen(separator);
}

static bool read_number(const char *text, int64_t *out)
{
    return text != NULL && fr_parse_i64(text, out, NULL) == FR_OK && *out >= 0;
}

static fr_status read_kind(const char *word, const char *name, fr_fault *out,
                           fr_err *err)
{
    char why[WORD_BYTES];
    int n = snprintf(why, sizeof why, "a fault is one of");

    for (int i = 0; i < FR_FAULT_N; i++) {
        if (strcmp(kinds[i].name, name) == 0) {
            out->kind = (fr_fault_kind)i;
            return FR_OK;
        }
        n += snprintf(why + n, sizeof why - (size_t)n, "%s %s",
                      i > 0 ? "," : "", kinds[i].name);
    }
    return fail_word(word, why, err);
}

static fr_status read_steps(const char *word, char *text, fr_fault *out,
                            fr_err *err)
{
    int64_t last = 0;
    char *end = cut(text, "..");

    if (fr_text_starts(text, "step="))
        text += strlen("step=");
    if (!read_number(text, &out->first_step))
        return fail_word(word, "a step is a whole number from 0", err);
    out->n_steps = 1;
    if (end == NULL)
        return FR_OK;
    if (!kinds[out->kind].has_span)
        return fail_word(word, "it happens at one step", err);
    if (!read_number(end, &last) || last < out->first_step)
        return fail_word(word, "its last step comes before the first", err);
    out->n_steps = last - out->first_step + 1;
    return FR_OK;
}

static fr_status read_rank(const char *word, char *text, fr_fault *out,
                           fr_err *err)
{
    out->factor = 1;
    if (kinds[out->kind].has_rate) {
        out->rank = -1;
        return fr_parse_quantity(FR_QUANTITY_BPS, text, 0, &out->rate_Bps,
                                 NULL) == FR_OK
                   ? FR_OK
                   : fail_word(word, "a rate is such as 20MB/s", err);
    }
    char *factor = cut(text, "x");
    if (!fr_text_starts(text, "rank=") ||
        !read_number(text + strlen("rank="), &out->rank))
        return fail_word(word, "a rank is a whole number from 0", err);
    if (factor != NULL && !kinds[out->kind].has_factor)
        return fail_word(word, "it has no factor", err);
    if (factor != NULL &&
        (fr_parse_double(factor, &out->factor, NULL) != FR_OK ||
         !(out->factor >= 1 && out->factor <= most_factor)))
        return fail_word(word, "a factor is a number from 1 to 1000000", err);
    if (factor == NULL && kinds[out->kind].has_factor)
        return fail_word(word, "it wants a factor, rank=1x2", err);
    return FR_OK;
}

static fr_status read_fault(char *text, fr_fault *out, fr_err *err)
{
    char word[WORD_BYTES];

    fr_text_copy_cut(word, sizeof word, text);
    char *rank = cut(text, ":");
    char *steps = rank != NULL ? cut(rank, "@") : NULL;
    if (steps == NULL)
        return fail_word(word, "it wants a rank and a step", err);
    FR_TRY(read_kind(word, text, out, err));
    FR_TRY(read_rank(word, rank, out, err));
    return read_steps(word, steps, out, err);
}

fr_status fr_faults_parse(const char *text, fr_faults *out, fr_err *err)
{
    char *own = strdup(text);
    fr_status status = own != NULL ? FR_OK : fr_fail_no_memory(err);

    for (char *at = own; status == FR_OK && at != NULL;) {
        fr_fault fault = {0};
        status = read_fault(fr_text_trim(strsep(&at, ",")), &fault, err);
        if (status == FR_OK && fr_vec_push(out, fault) != FR_OK)
            status = fr_fail_no_memory(err);
    }
    free(own);
    return status;
}

const fr_fault *fr_faults_at(const fr_faults *faults, fr_fault_kind kind,
                             int64_t rank, int64_t step)
{
    for (size_t i = 0; i < faults->n; i++) {
        const fr_fault *fault = &faults->items[i];
        bool is_of_rank = rank < 0 || fault->rank < 0 || fault->rank == rank;
        if (fault->kind == kind && is_of_rank && step >= fault->first_step &&
            step - fault->first_step < fault->n_steps)
            return fault;
    }
    return NULL;
}

bool fr_faults_has(const fr_faults *faults, fr_fault_kind kind)
{
    for (size_t i = 0; i < faults->n; i++)
        if (faults->items[i].kind == kind)
            return true;
    return false;
}

fr_status fr_faults_check(const fr_faults *faults, int64_t world,
                          int64_t n_steps, fr_err *err)
{
    for (size_t i = 0; i < faults->n; i++) {
        const fr_fault *fault = &faults->items[i];
        if (fault->first_step >= n_steps)
            return fr_fail(err, FR_USAGE,
                           "--inject: %s at step %lld never comes: the run has "
                           "%lld, from 0",
                           kinds[fault->kind].name,
                           (long long)fault->first_step, (long long)n_steps);
        if (fault->rank >= world)
            return fr_fail(err, FR_USAGE,
                           "--inject: there is no rank %lld to %s; there are "
                           "%lld, from 0",
                           (long long)fault->rank, kinds[fault->kind].name,
                           (long long)world);
    }
    return FR_OK;
}

void fr_faults_forget(fr_faults *faults, int64_t reached)
{
    size_t n = 0;

    for (size_t i = 0; i < faults->n; i++)
        if (kinds[faults->items[i].kind].has_span ||
            faults->items[i].first_step > reached)
            faults->items[n++] = faults->items[i];
    faults->n = n;
}

int64_t fr_faults_count(const fr_faults *faults, fr_fault_kind kind,
                        int64_t reached)
{
    int64_t n = 0;

    for (size_t i = 0; i < faults->n; i++)
        n += faults->items[i].kind == kind &&
             faults->items[i].first_step <= reached;
    return n;
}
