/* torchtitan_recompute.c: what torchtitan makes again in backward. */
#include "core/base/text.h"
#include "core/base/units.h"
#include "frameworks/torchtitan/torchtitan_parts.h"

#include <string.h>

/* Whole layers, one of every so many (distributed/activation_checkpoint.py,
 * _apply_layer_sac): a plan has as many at the front of each chunk. */
static void take_every(int64_t every, fr_config *out)
{
    fr_plan *plan = &out->file.plan;
    const int64_t n_chunk =
        out->file.model.n_layers / ((int64_t)plan->pp * plan->vpp);
    const int64_t n = every > 1 ? n_chunk / every : n_chunk;
    plan->recompute = n > 0 ? FR_RECOMPUTE_FULL : FR_RECOMPUTE_NONE;
    plan->recompute_layers = n < n_chunk ? (int32_t)n : 0;
    fr_buffer_printf(&out->notes,
                     "selective_ac_option '%lld': %lld of the %lld layers of a "
                     "chunk are made again whole\n",
                     (long long)every, (long long)n, (long long)n_chunk);
}

fr_status fr_torchtitan_read_recompute(const fr_json_value *table,
                                       fr_config *out, fr_err *err)
{
    fr_plan *plan = &out->file.plan;
    const char *option = "2";
    int64_t every;
    fr_err unused;
    if (table != NULL)
        FR_TRY(fr_json_get_string_or(table, "selective_ac_option", option,
                                     &option, err));
    if (plan->recompute != FR_RECOMPUTE_SELECTIVE)
        return FR_OK;
    if (strcmp(option, "op") == 0)
        plan->recompute_parts = FR_RECOMPUTE_PART_PRODUCTS;
    else if (fr_parse_i64(option, &every, &unused) == FR_OK && every >= 0)
        take_every(every, out);
    else
        return fr_json_fail(fr_json_blamed(table, "selective_ac_option"), err,
                            "selective_ac_option '%.80s' is neither op nor a "
                            "number of layers",
                            option);
    return FR_OK;
}
