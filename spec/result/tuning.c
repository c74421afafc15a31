/* tuning.c: ownership of the answer of tune. */
#include "spec/result/tuning.h"

#include "core/base/vec.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fr_tuning_init(fr_tuning *tuning)
{
    memset(tuning, 0, sizeof *tuning);
    tuning->certificate.bound = HUGE_VAL;
}

const char *fr_baseline_name(fr_baseline baseline)
{
    static const char *const names[FR_BASELINE_N] = {
        [FR_BASELINE_DEVICE] = "one device",
        [FR_BASELINE_NODE] = "one node",
        [FR_BASELINE_RUNTIME] = "forerun runs",
        [FR_BASELINE_HEALTHY] = "no slow node"};
    return names[baseline];
}

static void release_list(fr_tuned_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        free(list->at[i].plan);
    free(list->at);
}

void fr_tuning_release(fr_tuning *tuning)
{
    free(tuning->best.plan);
    free(tuning->robust.plan);
    free(tuning->nearest.plan);
    for (int i = 0; i < FR_BASELINE_N; i++)
        free(tuning->baselines[i].tuned.plan);
    release_list(&tuning->alternatives);
    release_list(&tuning->layouts);
    release_list(&tuning->pareto);
    memset(tuning, 0, sizeof *tuning);
}

void fr_tuning_choose(fr_tuning *tuning, size_t i)
{
    fr_tuned_list *list = &tuning->alternatives;
    if (i == 0 || i > list->n)
        return;
    fr_tuned chosen = list->at[i - 1];
    for (size_t k = i - 1; k > 0; k--)
        list->at[k] = list->at[k - 1];
    list->at[0] = tuning->best;
    list->at[0].is_tie = chosen.is_tie;
    snprintf(list->at[0].why, sizeof list->at[0].why, "measured to be worse");
    chosen.is_tie = false;
    chosen.why[0] = '\0';
    tuning->best = chosen;
    tuning->certificate.optimal_in_space =
        tuning->certificate.bound >= chosen.value;
    tuning->certificate.gap = 1 - tuning->certificate.bound / chosen.value;
}

fr_status fr_tuned_list_add(fr_tuned_list *list, fr_tuned entry, fr_err *err)
{
    if (list->n == list->cap &&
        fr_vec_grow(list, sizeof *list->at, 1) != FR_OK) {
        free(entry.plan);
        return fr_fail_no_memory(err);
    }
    list->at[list->n++] = entry;
    return FR_OK;
}

void fr_tuning_add_reason(fr_tuning *tuning, const char *text, uint64_t n)
{
    size_t n_kind = strcspn(text, "0123456789");
    for (size_t i = 0; i < tuning->n_reasons; i++) {
        fr_tuning_reason *reason = &tuning->reasons[i];
        if (strcspn(reason->text, "0123456789") == n_kind &&
            strncmp(reason->text, text, n_kind) == 0) {
            reason->n += n;
            return;
        }
    }
    if (tuning->n_reasons == FR_TUNING_REASONS)
        return;
    fr_tuning_reason *reason = &tuning->reasons[tuning->n_reasons++];
    snprintf(reason->text, sizeof reason->text, "%s", text);
    reason->n = n;
}

void fr_tuning_count_reason(fr_tuning *tuning, const char *text)
{
    fr_tuning_add_reason(tuning, text, 1);
}
