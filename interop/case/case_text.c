/* case_text.c: plans in the words of people. */
#include "interop/case/case_text.h"

#include "plan/schedule/schedule.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

bool fr_case_has(const char *text, const char *word)
{
    return strcasestr(text, word) != NULL;
}

static bool starts(const char *text, const char *word)
{
    return strncasecmp(text, word, strlen(word)) == 0;
}

/* The first whole number at or behind `text`, -1: none. */
static int64_t first_number(const char *text)
{
    while (*text != '\0' && !isdigit((unsigned char)*text))
        text++;
    return *text != '\0' ? strtol(text, NULL, 10) : -1;
}

/* ---- recompute ----------------------------------------------------------- */

/* Words of Megatron's --recompute-modules and what pages call them; the
 * longest come first, since "moe" stands in "moe_act". */
static const struct {
    const char *word;
    uint32_t part;
} recompute_parts[] = {
    {"core_attn", FR_RECOMPUTE_PART_ATTENTION},
    {"core attention", FR_RECOMPUTE_PART_ATTENTION},
    {"moe_act", FR_RECOMPUTE_PART_ACTIVATION},
    {"mla_up_proj", FR_RECOMPUTE_PART_LATENT},
    {"shared_expert", FR_RECOMPUTE_PART_MLP},
    {"shared expert", FR_RECOMPUTE_PART_MLP},
    {"attention", FR_RECOMPUTE_PART_ATTENTION},
    {"attn", FR_RECOMPUTE_PART_ATTENTION},
    {"norm", FR_RECOMPUTE_PART_NORM},
    {"mlp", FR_RECOMPUTE_PART_MLP},
    {"moe", FR_RECOMPUTE_PART_EXPERTS},
    {"expert", FR_RECOMPUTE_PART_EXPERTS},
    {"act", FR_RECOMPUTE_PART_ACTIVATION},
};

static uint32_t find_part(const char *piece)
{
    size_t n = FR_LENGTH(recompute_parts);
    for (size_t i = 0; i < n; i++)
        if (fr_case_has(piece, recompute_parts[i].word))
            return recompute_parts[i].part;
    return 0;
}

/* "layernorm, moe" up to a closing bracket. */
static fr_status parse_parts(const char *text, uint32_t *out, fr_err *err)
{
    uint32_t parts = 0;
    while (*text != '\0' && *text != ')') {
        char piece[48];
        size_t n = strcspn(text, ",;+/)");
        size_t n_kept = n < sizeof piece ? n : sizeof piece - 1;
        memcpy(piece, text, n_kept);
        piece[n_kept] = '\0';
        uint32_t part = find_part(piece);
        if (part == 0 && strspn(piece, " ") != n_kept)
            return fr_fail(err, FR_INPUT,
                           "recompute of '%s' is not known; norm, act, "
                           "core_attn, mla_up_proj, mlp, moe and "
                           "shared_expert are",
                           piece);
        parts |= part;
        text += n;
        if (*text != '\0' && *text != ')')
            text++;
    }
    *out = parts;
    return FR_OK;
}

fr_status fr_case_parse_recompute(const char *text, fr_case_recompute *out,
                                  fr_err *err)
{
    fr_case_recompute result = {FR_RECOMPUTE_NONE, 0, 0};
    const char *bracket = strchr(text, '(');
    /* "norm, act" begins like "no". */
    if (*text == '\0' || *text == '0' ||
        (fr_case_parse_switch(text) == 0 && !starts(text, "norm"))) {
        *out = result;
        return FR_OK;
    }
    if (starts(text, "full") || starts(text, "yes")) {
        result.recompute = FR_RECOMPUTE_FULL;
        /* "block 4": the first four layers; "uniform 1": all of them. */
        const char *block = strcasestr(text, "block");
        int64_t n_layers = block != NULL ? first_number(block) : -1;
        if (n_layers > 0 && n_layers < 10000)
            result.layers = (int32_t)n_layers;
        *out = result;
        return FR_OK;
    }
    result.recompute = FR_RECOMPUTE_SELECTIVE;
    if (starts(text, "selective")) {
        /* "per-op SAC" is PyTorch's own choice of what to keep. */
        bool is_per_op =
            fr_case_has(text, "per-op") || fr_case_has(text, "sac");
        if (is_per_op)
            result.parts =
                FR_RECOMPUTE_PART_NORM | FR_RECOMPUTE_PART_ACTIVATION;
        else if (bracket != NULL)
            FR_TRY(parse_parts(bracket + 1, &result.parts, err));
    } else {
        FR_TRY(parse_parts(text, &result.parts, err));
    }
    *out = result;
    return FR_OK;
}

/* ---- precision ----------------------------------------------------------- */

fr_scaling fr_case_parse_scaling(const char *text, fr_scaling other)
{
    if (fr_case_has(text, "mx") || fr_case_has(text, "fine-grained"))
        return FR_SCALING_BLOCK;
    if (fr_case_has(text, "rowwise"))
        return FR_SCALING_ROW;
    if (fr_case_has(text, "-cs") || fr_case_has(text, "tensorwise"))
        return FR_SCALING_CURRENT;
    return fr_case_has(text, "fp8") ? other : FR_SCALING_DELAYED;
}

fr_status fr_case_parse_precision(const char *text, fr_case_precision *out,
                                  fr_err *err)
{
    /* Narrow ones first: a recipe's narrowest products give it its name. */
    static const struct {
        const char *word;
        fr_dtype dtype;
    } words[] = {
        {"fp4", FR_DTYPE_FP4},     {"float4", FR_DTYPE_FP4},
        {"fp8", FR_DTYPE_FP8},     {"float8", FR_DTYPE_FP8},
        {"bf16", FR_DTYPE_BF16},   {"bfloat16", FR_DTYPE_BF16},
        {"fp16", FR_DTYPE_F16},    {"float16", FR_DTYPE_F16},
        {"half", FR_DTYPE_F16},    {"amp", FR_DTYPE_F16},
        {"tf32", FR_DTYPE_TF32},   {"fp32", FR_DTYPE_F32},
        {"float32", FR_DTYPE_F32}, {"f32", FR_DTYPE_F32},
    };
    size_t n = FR_LENGTH(words), i = 0;
    while (i < n && !fr_case_has(text, words[i].word))
        i++;
    if (i == n)
        return fr_fail(err, FR_INPUT,
                       "precision '%.60s' is not known; fp32, tf32, fp16, "
                       "bf16, fp8, mxfp8 and nvfp4 are",
                       text);
    fr_case_precision result = {words[i].dtype, false, FR_DTYPE_F32};
    /* MosaicML Composer: PURE keeps and reduces all in the low precision,
     * DEFAULT reduces in float32 (composer/trainer/mosaic_fsdp_utils.py). */
    if (fr_case_has(text, "mp=pure")) {
        result.has_grad_dtype = true;
        result.grad_dtype =
            words[i].dtype == FR_DTYPE_F16 ? FR_DTYPE_F16 : FR_DTYPE_BF16;
    } else if (fr_case_has(text, "mp=default") ||
               fr_case_has(text, "mp=full") || fr_case_has(text, "fp32 grad")) {
        result.has_grad_dtype = true;
    } else if (fr_case_has(text, "bf16 grad")) {
        result.has_grad_dtype = true;
        result.grad_dtype = FR_DTYPE_BF16;
    }
    *out = result;
    return FR_OK;
}

/* ---- ZeRO ---------------------------------------------------------------- */

fr_status fr_case_parse_zero(const char *text, fr_case_zero *out, fr_err *err)
{
    fr_case_zero zero = {0, 0,
                         fr_case_has(text, "fsdp") ||
                             fr_case_has(text, "shard") ||
                             fr_case_has(text, "hsdp")};
    const char *stage = strcasestr(text, "zero");
    const char *over = strcasestr(text, "over ");
    if (isdigit((unsigned char)text[0]))
        zero.stage = (int32_t)(text[0] - '0');
    else if (stage != NULL && first_number(stage) >= 0)
        zero.stage = (int32_t)first_number(stage);
    else if (fr_case_has(text, "no_shard") || fr_case_has(text, "ddp") ||
             starts(text, "no") || *text == '\0')
        zero.stage = 0;
    else if (fr_case_has(text, "grad_op"))
        zero.stage = 2;
    else if (zero.is_fsdp)
        zero.stage = 3;
    else if (fr_case_has(text, "optim") || fr_case_has(text, "adam"))
        zero.stage = 1;
    else
        zero.stage = -1;
    if (zero.stage < 0 || zero.stage > 3)
        return fr_fail(err, FR_INPUT,
                       "zero_stage '%.60s' is not known; 0 to 3, FSDP, "
                       "FULL_SHARD, SHARD_GRAD_OP, HYBRID_SHARD and "
                       "distributed optimizer are",
                       text);
    if (over != NULL && first_number(over) > 0)
        zero.group = (int32_t)first_number(over);
    else if (fr_case_has(text, "hybrid") || fr_case_has(text, "hsdp"))
        zero.group = -1;
    *out = zero;
    return FR_OK;
}

/* ---- schedule and switches ----------------------------------------------- */

void fr_case_squeeze(const char *text, char *out, size_t n)
{
    size_t used = 0;
    for (; *text != '\0' && used + 1 < n; text++)
        if (isalnum((unsigned char)*text))
            out[used++] = (char)tolower((unsigned char)*text);
    out[used] = '\0';
}

fr_status fr_case_parse_schedule(const char *text, int *out, fr_err *err)
{
    char word[64];
    fr_case_squeeze(text, word, sizeof word);
    if (word[0] == '\0' || starts(word, "none")) {
        *out = -1;
        return FR_OK;
    }
    bool is_unsaid = fr_case_has(text, "not stated");
    if (!is_unsaid && strstr(word, "interleaved") != NULL &&
        strstr(word, "zb") == NULL) {
        *out = (int)fr_schedule_usual(2);
        return FR_OK;
    }
    /* Every schedule under its own name, however it is hyphenated. */
    for (int i = 0; i < fr_n_schedules; i++) {
        char name[64];
        fr_case_squeeze(fr_name_of(&fr_schedule_names, (fr_schedule_kind)i),
                        name, sizeof name);
        if (i != FR_SCHEDULE_1F1B && starts(word, name)) {
            *out = i;
            return FR_OK;
        }
    }
    if (starts(word, "1f1b") || is_unsaid)
        *out = FR_SCHEDULE_1F1B;
    else if (starts(word, "afab") || starts(word, "fthenb"))
        *out = FR_SCHEDULE_GPIPE;
    else
        return fr_fail(err, FR_INPUT, "schedule '%.60s' is not known", text);
    return FR_OK;
}

int fr_case_parse_switch(const char *text)
{
    if (starts(text, "yes") || starts(text, "true") || starts(text, "on"))
        return 1;
    if (starts(text, "no") || starts(text, "false") || starts(text, "off"))
        return 0;
    return -1;
}

int fr_case_parse_flash(const char *text)
{
    int is_on = fr_case_parse_switch(text);
    if (is_on >= 0 || *text == '\0')
        return is_on;
    if (fr_case_has(text, "unfused"))
        return 0;
    return fr_case_has(text, "flash") || fr_case_has(text, "sdpa") ||
                   fr_case_has(text, "fused") || fr_case_has(text, "cudnn")
               ? 1
               : 0;
}

int fr_case_parse_flash_kind(const char *text)
{
    if (fr_case_has(text, "FlashAttention-1"))
        return FR_FLASH_1;
    if (fr_case_has(text, "FlashAttention-2"))
        return FR_FLASH_2;
    return fr_case_has(text, "cudnn") || fr_case_has(text, "FlashAttention-3")
               ? FR_FLASH_NATIVE
               : -1;
}

int64_t fr_case_find_number(const char *text, const char *name)
{
    const char *at = strcasestr(text, name);
    if (at == NULL)
        return 0;
    at += strlen(name);
    if ((*at != '=' && *at != ':') || !isdigit((unsigned char)at[1]))
        return 0;
    return strtol(at + 1, NULL, 10);
}

int fr_case_find_switch(const char *text, const char *name)
{
    const char *at = strcasestr(text, name);
    if (at == NULL)
        return -1;
    at += strlen(name);
    if (*at != '=' && *at != ':')
        return 1;
    /* "=None" is Megatron's "not given": off. */
    return fr_case_parse_switch(at + 1) > 0;
}
