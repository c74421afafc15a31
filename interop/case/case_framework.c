/* case_framework.c: which framework a row is of, and what is said of rows. */
#include "frameworks/framework_list.h"
#include "interop/case/case_internal.h"
#include "interop/case/case_text.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Interleaved stages together with tensor parallelism: nothing but Megatron and
 * what is built on it trained so before 2025. */
static bool is_megatron_plan(const fr_case *row)
{
    return strtol(row->field[FR_CASE_VPP], NULL, 10) > 1 &&
           strtol(row->field[FR_CASE_TP], NULL, 10) > 1;
}

/*
 * Does the name begin a word of the text and end there, or before a capital or
 * a digit ("MegatronLM")?  Case is ignored.
 */
static bool has_name(const char *text, const char *name)
{
    const size_t n = strlen(name);
    for (const char *at = text; (at = strcasestr(at, name)) != NULL; at++)
        if ((at == text || !isalnum((unsigned char)at[-1])) &&
            !islower((unsigned char)at[n]))
            return true;
    return false;
}

/*
 * The words by which cells name frameworks.  The first that a text has counts:
 * a word that is part of another comes after it.  "Megatron" and "DeepSpeed"
 * alone are those of 2021, as most published rows are.  NeMo AutoModel trains
 * with PyTorch's FSDP2 (NVIDIA-NeMo/Automodel README: "PyTorch native FSDP2,
 * HSDP, TP, CP, SP and PP"; nemo_automodel/components/distributed), not as NeMo
 * does.
 */
static const struct {
    const char *word;
    const fr_framework *framework;
} words[] = {
    {"automodel", &fr_framework_pytorch},
    {"torchtitan", &fr_framework_torchtitan},
    {"megatron-bridge", &fr_framework_megatron_bridge},
    {"nemo", &fr_framework_nemo},
    {"megatron-core", &fr_framework_megatron},
    {"bigscience", &fr_framework_bigscience},
    {"deepspeed", &fr_framework_megatron_deepspeed_2021},
    {"megatron", &fr_framework_megatron_2021},
    {"foundry", &fr_framework_llm_foundry},
    {"composer", &fr_framework_composer},
    {"nanotron", &fr_framework_nanotron},
    {"forerun", &fr_framework_forerun},
    {"grace-dl", &fr_framework_grace},
};

/* Returns the framework that a text names; NULL: none. */
static const fr_framework *named_in(const char *text)
{
    for (size_t i = 0; i < FR_LENGTH(words); i++)
        if (has_name(text, words[i].word))
            return words[i].framework;
    return NULL;
}

const char *fr_case_framework_word(const fr_framework *framework)
{
    const char *word = framework->name;
    for (size_t i = 0; i < FR_LENGTH(words); i++)
        if (words[i].framework == framework)
            word = words[i].word;
    return word;
}

const fr_framework *fr_case_framework_of(const fr_case *row)
{
    static const fr_case_column columns[] = {FR_CASE_FRAMEWORK, FR_CASE_SOURCE,
                                             FR_CASE_SOURCE_REF};
    for (int c = 0; c < 3; c++) {
        const char *text = row->field[columns[c]];
        const fr_framework *named = named_in(text);
        if (named != NULL)
            return named;
        if (c == 0 && *text != '\0')
            break; /* a framework is named that has no rules of its own */
    }
    return *row->field[FR_CASE_FRAMEWORK] == '\0' && is_megatron_plan(row)
               ? &fr_framework_megatron
               : &fr_framework_pytorch;
}

void fr_case_guess(fr_case_setup *setup, fr_case_column column)
{
    size_t used = strlen(setup->guessed);
    snprintf(setup->guessed + used, sizeof setup->guessed - used, "%s%s",
             used > 0 ? "," : "", fr_case_column_name(column));
}

fr_status fr_case_fail_at(const fr_case *row, fr_status status, fr_err *err)
{
    fr_err_prefix(err, "%s:%d", row->file, row->line);
    return status;
}
