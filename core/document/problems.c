/* problems.c: see problems.h. */
#include "core/document/problems.h"

#include <stdlib.h>
#include <string.h>

/* Problems beyond this number are only counted. */
enum { MOST_KEPT = 64 };

static bool is_known(const fr_problems *problems, const char *text)
{
    for (size_t i = 0; i < problems->list.n; i++)
        if (strcmp(problems->list.items[i].text, text) == 0)
            return true;
    return false;
}

fr_status fr_problems_take(fr_problems *problems, int line, fr_status status,
                           const fr_err *problem, fr_err *err)
{
    if (status == FR_OK || status == FR_SKIPPED)
        return FR_OK;
    if (status != FR_INPUT) {
        fr_err_write(err, status, "%s", problem->text);
        return status;
    }
    if (is_known(problems, problem->text))
        return FR_OK;
    problems->n_all++;
    if (problems->list.n == MOST_KEPT)
        return FR_OK;
    fr_problem kept = {line, strdup(problem->text)};
    if (kept.text == NULL || fr_vec_push(&problems->list, kept) != FR_OK) {
        free(kept.text);
        return fr_fail_no_memory(err);
    }
    return FR_OK;
}

/* Stable: those of one line stay in the order in which they were found. */
static void sort_by_line(fr_problem *list, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        fr_problem at = list[i];
        size_t k = i;
        for (; k > 0 && list[k - 1].line > at.line; k--)
            list[k] = list[k - 1];
        list[k] = at;
    }
}

fr_status fr_problems_check(fr_problems *problems, const char *name,
                            fr_err *err)
{
    size_t n = 0;
    if (problems->n_all == 0)
        return FR_OK;
    sort_by_line(problems->list.items, problems->list.n);
    if (problems->n_all == 1) {
        fr_err_write(err, FR_INPUT, "%s", problems->list.items[0].text);
    } else {
        fr_err_write(err, FR_INPUT, "%s: %zu problems:", name, problems->n_all);
        while (n < problems->list.n &&
               fr_err_add_line(err, "%s", problems->list.items[n].text))
            n++;
        if (n < problems->n_all)
            fr_err_add_last_line(err, "%s: ... and %zu more", name,
                                 problems->n_all - n);
    }
    return FR_INPUT;
}

void fr_problems_release(fr_problems *problems)
{
    for (size_t i = 0; i < problems->list.n; i++)
        free(problems->list.items[i].text);
    fr_vec_release(&problems->list);
    problems->n_all = 0;
}
