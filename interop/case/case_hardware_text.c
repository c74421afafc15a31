/* case_hardware_text.c: GPUs and what joins them in a node, in people's words.
 */
#include "core/base/text.h"
#include "interop/case/case_text.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GBPS 1e9

/* The number of `text` that ends before `at`, 0: none; *where: it begins. */
static double number_ending(const char *text, const char *at,
                            const char **where)
{
    const char *begin = at;
    while (begin > text && begin[-1] == ' ')
        begin--;
    while (begin > text &&
           (isdigit((unsigned char)begin[-1]) || begin[-1] == '.'))
        begin--;
    double value = begin < at ? strtod(begin, NULL) : 0;
    if (value > 0 && where != NULL)
        *where = begin;
    return value > 0 ? value : 0;
}

/*
 * The number that stands right before `unit` ("80" of "80GB"), 0: none.  What
 * follows the unit is no letter, so that "GB" is not met in "GB200" or "GBps";
 * a unit of one letter ends no name, as that of "A10G".
 */
static double number_before(const char *text, const char *unit)
{
    size_t n_unit = strlen(unit);
    for (const char *at = text; (at = strcasestr(at, unit)) != NULL; at++) {
        const char *begin = text;
        if (isalnum((unsigned char)at[n_unit]) || at[n_unit] == '/')
            continue;
        double value = number_ending(text, at, &begin);
        bool is_name =
            n_unit == 1 && begin > text && isalpha((unsigned char)begin[-1]);
        if (value > 0 && !is_name)
            return value;
    }
    return 0;
}

/* ---- GPUs ---------------------------------------------------------------- */

/* Up to the next separator, lower case. */
static const char *next_word(const char *text, char *out, size_t n)
{
    size_t used = 0;
    while (*text != '\0' && !isalnum((unsigned char)*text))
        text++;
    for (; isalnum((unsigned char)*text); text++)
        if (used + 1 < n)
            out[used++] = (char)tolower((unsigned char)*text);
    out[used] = '\0';
    return text;
}

static bool has_digit(const char *text)
{
    return strpbrk(text, "0123456789") != NULL;
}

/* "nvidia", "dgx", "tesla" ... stand before the name of a GPU. */
static bool is_prefix_word(const char *word)
{
    static const char *const words[] = {
        "nvidia", "amd",    "google", "instinct",  "tesla", "geforce", "dgx",
        "hgx",    "ampere", "hopper", "blackwell", "ultra", "gpu",
    };
    return fr_text_find(word, words, FR_LENGTH(words)) >= 0;
}

/* Is false, and the family as it was, where the word has no room. */
static bool add_word(const char *word, fr_case_gpu *gpu)
{
    char family[sizeof gpu->family];
    int n = snprintf(family, sizeof family, "%s-%s", gpu->family, word);
    if (word[0] == '\0' || n < 0 || (size_t)n >= sizeof family)
        return false;
    memcpy(gpu->family, family, sizeof family);
    return true;
}

/* Words up to the first with a digit belong to the name: without it a family
 * would stand for all of its maker's. */
static const char *name_to_number(const char *text, fr_case_gpu *gpu)
{
    char word[24];
    while (!has_digit(gpu->family)) {
        text = next_word(text, word, sizeof word);
        if (!add_word(word, gpu))
            break;
    }
    return text;
}

fr_status fr_case_parse_gpu(const char *text, fr_case_gpu *out, fr_err *err)
{
    fr_case_gpu gpu = {.memory_gb = 0};
    char word[24];
    const char *at = text;
    while (gpu.family[0] == '\0') {
        at = next_word(at, word, sizeof word);
        if (word[0] == '\0')
            return fr_fail(err, FR_INPUT, "gpu '%.60s' names no device", text);
        if (!is_prefix_word(word))
            fr_text_copy_cut(gpu.family, sizeof gpu.family, word);
    }
    at = name_to_number(at, &gpu); /* "RTX 4090", "TPU v4", "RTX PRO 6000" */
    next_word(at, word, sizeof word);
    if (strcmp(gpu.family, "rtx-6000") == 0 && strcmp(word, "ada") == 0)
        (void)add_word(word, &gpu); /* Quadro's RTX 6000 is of 2018 */
    if (fr_case_has(text, "sxm"))
        fr_text_copy(gpu.form, sizeof gpu.form, "sxm");
    else if (fr_case_has(text, "pci"))
        fr_text_copy(gpu.form, sizeof gpu.form, "pcie");
    else if (fr_case_has(text, "nvl"))
        fr_text_copy(gpu.form, sizeof gpu.form, "nvl");
    gpu.memory_gb = number_before(text, "GB");
    if (gpu.memory_gb <= 0)
        gpu.memory_gb = number_before(text, "GiB");
    if (gpu.memory_gb <= 0)
        gpu.memory_gb = number_before(text, "G");
    gpu.memory_Bps = fr_case_find_rate_Bps(text, NULL, NULL);
    gpu.power_w = number_before(text, "W");
    *out = gpu;
    return FR_OK;
}

/* ---- inside a node ------------------------------------------------------- */

/* One direction of one GPU: NVLink 1 has 4 links of 20 GB/s, 2 has 6 of 25, 3
 * has 12 of 25, 4 has 18 of 25, 5 has 18 of 50 (nvidia.com, NVLink page). */
static const double nvlink_Bps[] = {0,          80 * GBPS,  150 * GBPS,
                                    300 * GBPS, 450 * GBPS, 900 * GBPS};
/* 16 lanes of PCIe as measured: 12, 24 and 48 GB/s (NCCL's tuning.cc). */
static const double pcie_Bps[] = {0, 0, 0, 12 * GBPS, 24 * GBPS, 48 * GBPS};

static int generation_behind(const char *text, const char *word)
{
    const char *at = strcasestr(text, word);
    if (at == NULL)
        return 0;
    at += strlen(word);
    at += strspn(at, " -");
    at += strspn(at, "gGeEnN");
    at += strspn(at, " ");
    return *at >= '1' && *at <= '5' && !isdigit((unsigned char)at[1])
               ? *at - '0'
               : 0;
}

void fr_case_parse_intra(const char *text, fr_case_intra *out)
{
    fr_case_intra intra = {.device_Bps = 0};
    const char *domain = strcasestr(text, "nvl");
    intra.is_nvlink = fr_case_has(text, "nvlink");
    intra.is_switch = fr_case_has(text, "nvswitch");
    intra.is_pcie = !intra.is_nvlink && fr_case_has(text, "pci");
    for (; domain != NULL; domain = strcasestr(domain + 1, "nvl"))
        if (isdigit((unsigned char)domain[3])) /* NVL72 */
            intra.domain = strtol(domain + 3, NULL, 10);
    if (intra.domain < 2 || intra.domain > 4096)
        intra.domain = 0;
    intra.is_switch |= intra.domain > 0;
    intra.is_said = intra.is_nvlink || intra.is_switch || intra.is_pcie;
    if (intra.is_pcie) {
        intra.device_Bps = pcie_Bps[generation_behind(text, "pcie")];
    } else {
        /* Vendors quote both directions together. */
        double both_Bps = fr_case_find_rate_Bps(text, NULL, NULL);
        intra.device_Bps = both_Bps > 0
                               ? both_Bps / 2
                               : nvlink_Bps[generation_behind(text, "nvlink")];
    }
    *out = intra;
}
