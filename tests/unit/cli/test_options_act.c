/*
 * test_options_act.c: no option is accepted that nothing reads: each one of
 * simulate's changes the answer, or a note says why not.  And no line of a
 * table is wider than a piped text may be.
 */
#include "api/answer/answers.h"
#include "cli/cli.h"
#include "core/base/text.h"
#include "report/document/layout.h"
#include "tests/check.h"
#include "tests/unit/cli/run_line.h"

#include <stdlib.h>

/* The lines behind the verdict on memory, the plan and the job, which repeat
 * what was asked for; without what a search says last of its plans, the time
 * that it took. */
static const char *answer_of(char *out)
{
    char *of_search = strstr(out, " plans: ");
    char *time = of_search != NULL ? strchr(of_search, ';') : NULL;
    if (time != NULL)
        memset(time, ' ', strcspn(time, "\n"));
    const bool has_verdict = strncmp(out, "DOES NOT FIT", 12) == 0;
    for (int i = 0; i < (has_verdict ? 3 : 2); i++) {
        out += strcspn(out, "\n");
        out += *out == '\n';
    }
    return out;
}

#define BASE                                                                   \
    "simulate llama-3-8b dgx-h100:2 --tp 2 --pp 2 --dp 4 --zero 1 "            \
    "--global-batch 64 --seq 4096 --sequence-parallel "
#define MOE                                                                    \
    "simulate mixtral-8x7b dgx-h100:2 --dp 16 --ep 8 --global-batch 64 "       \
    "--seq 2048 --zero 1 "
#define SERVERS                                                                \
    "simulate gpt2-124m dgx-h100:2 --dp 16 --global-batch 32 --seq 128 "       \
    "--collective parameter-server "

/* The value to which each option of simulate is changed, and the options with
 * which it acts. */
static const struct {
    fr_option option;
    const char *beside, *change;
} cases[] = {
    {FR_OPT_GANTT, BASE, "--gantt"},
    {FR_OPT_COLUMNS, BASE, "--columns share"},
    {FR_OPT_RANKS, BASE, "--ranks 9"},
    {FR_OPT_POWER_CAP, BASE, "--power-cap 500W"},
    {FR_OPT_RANKS_PER_NODE, BASE, "--ranks-per-node 4"},
    {FR_OPT_FRAMEWORK, BASE, "--framework nemo"},
    {FR_OPT_TOKENS, BASE, "--tokens 1T"},
    {FR_OPT_DP, BASE, "--dp 2"},
    {FR_OPT_TP, BASE, "--tp 4 --dp 2"},
    {FR_OPT_PP, BASE, "--pp 4 --dp 2"},
    {FR_OPT_CP, BASE, "--cp 2 --dp 2"},
    {FR_OPT_EP, MOE, "--ep 4"},
    {FR_OPT_VPP, BASE, "--vpp 2"},
    {FR_OPT_MICRO_BATCH, BASE, "--micro-batch 2"},
    {FR_OPT_SCHEDULE, BASE, "--schedule gpipe"},
    {FR_OPT_ZERO, BASE, "--zero 0"},
    {FR_OPT_RECOMPUTE, BASE, "--recompute full"},
    {FR_OPT_SEQUENCE_PARALLEL, BASE, "--no-sequence-parallel"},
    {FR_OPT_OVERLAP, BASE, "--no-overlap"},
    {FR_OPT_BUCKET, BASE "--zero 0 ", "--bucket 1GB"},
    {FR_OPT_COMPRESS, BASE "--zero 0 ", "--compress int8"},
    {FR_OPT_ERROR_FEEDBACK, BASE "--zero 0 --compress topk ",
     "--no-error-feedback"},
    {FR_OPT_COMPRESS_BY, BASE "--zero 0 --compress topk ",
     "--compress-by tensor"},
    {FR_OPT_COLLECTIVE, BASE "--zero 0 ", "--collective tree"},
    {FR_OPT_NCCL_PROTOCOL, BASE, "--nccl-protocol ll"},
    {FR_OPT_NCCL_CHANNELS, BASE, "--nccl-channels 4"},
    {FR_OPT_SERVER_PLACE, SERVERS, "--server-place worker"},
    {FR_OPT_SERVERS, SERVERS, "--servers 1"},
    {FR_OPT_RANK_ORDER, BASE, "--rank-order pp-dp-tp"},
    {FR_OPT_LAYER_SPLIT, BASE, "--layer-split 17,15"},
    {FR_OPT_BATCH_SHARES, BASE, "--batch-shares 18,14,16,16"},
    {FR_OPT_PRECISION, BASE, "--precision f32"},
    {FR_OPT_GRAD_DTYPE, BASE, "--grad-dtype bf16"},
    {FR_OPT_FLASH_ATTENTION, BASE, "--no-flash-attention"},
    {FR_OPT_FLASH_KIND, BASE, "--flash-kind flash-2"},
    {FR_OPT_KERNELS, BASE, "--kernels eager"},
    {FR_OPT_SCALING, BASE "--precision fp8 ", "--scaling current"},
    {FR_OPT_CUDA_GRAPHS, BASE, "--cuda-graphs full"},
    {FR_OPT_RECOMPUTE_PARTS, BASE "--recompute selective ",
     "--recompute-parts norm"},
    {FR_OPT_RECOMPUTE_LAYERS, BASE "--recompute full ", "--recompute-layers 2"},
    {FR_OPT_ZERO_GROUP, BASE, "--zero-group 2"},
    {FR_OPT_ZERO_RESHARD, BASE "--pp 1 --zero 3 ", "--no-zero-reshard"},
    {FR_OPT_ZERO_PREFETCH, BASE "--pp 1 --zero 3 ", "--zero-prefetch 3"},
    {FR_OPT_ZERO_UNIT, BASE "--pp 1 --zero 3 ", "--zero-unit parameter"},
    {FR_OPT_GATHER_OVERLAP, BASE, "--no-gather-overlap"},
    {FR_OPT_TP_OVERLAP, BASE, "--tp-overlap"},
    {FR_OPT_EP_OVERLAP, MOE, "--ep-overlap"},
    {FR_OPT_CP_KIND, BASE "--cp 2 --dp 2 ", "--cp-kind all-to-all"},
    {FR_OPT_ETP, BASE, "--etp 1"},
    {FR_OPT_EXPERT_DISPATCH, MOE "--tp 2 --dp 8 ", "--expert-dispatch by-node"},
    {FR_OPT_EXPERT_IMBALANCE, MOE, "--expert-imbalance 2"},
    {FR_OPT_EXPERT_CAPACITY, MOE "--expert-imbalance 2 ",
     "--expert-capacity 1"},
    {FR_OPT_EXPERT_PAD, MOE "--expert-capacity 1.5 ", "--expert-pad"},
    {FR_OPT_OFFLOAD_OPTIMIZER, BASE, "--offload-optimizer"},
    {FR_OPT_OFFLOAD_ACTIVATIONS, BASE, "--offload-activations 50%"},
    {FR_OPT_THREADS, BASE, "--threads 4"},
    {FR_OPT_GLOBAL_BATCH, BASE, "--global-batch 128"},
    {FR_OPT_SEQ, BASE, "--seq 8Ki"},
    {FR_OPT_STEPS, BASE, "--steps 41"},
    {FR_OPT_SEED, BASE, "--seed 41"},
    {FR_OPT_OPTIMIZER, BASE, "--optimizer sgd"},
    {FR_OPT_LR, BASE, "--lr 0.1"},
    {FR_OPT_LR_SCHEDULE, BASE, "--lr-schedule cosine"},
    {FR_OPT_LR_RULE, BASE, "--lr-rule sqrt"},
    {FR_OPT_LR_BASE_BATCH, BASE, "--lr-base-batch 4"},
    {FR_OPT_WARMUP, BASE, "--warmup 10"},
    {FR_OPT_DROPOUT, BASE, "--dropout 10%"},
    {FR_OPT_CLIP, BASE, "--clip 0"},
    {FR_OPT_WEIGHT_DECAY, BASE, "--weight-decay 0.3"},
    {FR_OPT_DATA, BASE, "--data text.txt"},
    {FR_OPT_SAMPLE_BYTES, BASE, "--sample-bytes 1000000"},
    {FR_OPT_DECODE, BASE, "--decode 9"},
    {FR_OPT_LOADERS, BASE "--decode 9 ", "--loaders 4"},
    {FR_OPT_DATASET_BYTES, BASE, "--dataset-bytes 1e12"},
};

static void test_each_acts(void)
{
    static line_outcome before, after;
    const char *asked = "";
    for (size_t i = 0; i < FR_LENGTH(cases); i++) {
        char line[1024];
        if (!check_in_slice(i))
            continue;
        if (strcmp(asked, cases[i].beside) != 0)
            run_line(cases[i].beside, &before);
        asked = cases[i].beside;
        CHECK(before.exit_code == 0);
        snprintf(line, sizeof line, "%s %s", cases[i].beside, cases[i].change);
        run_line(line, &after);
        bool is_same =
            strcmp(answer_of(before.out), answer_of(after.out)) == 0 &&
            strcmp(before.chatter, after.chatter) == 0;
        CHECK(!is_same);
        if (is_same)
            printf("  %s changes nothing, and nothing says so\n",
                   cases[i].change);
    }
}

/* The same of a kept plan in a sweep; what makes the point impossible is said
 * in its row. */
static void test_each_acts_in_sweep(void)
{
    static line_outcome before, after;
    const fr_command *sweep = fr_command_find(fr_commands, "sweep");
    const char *asked = "";
    for (size_t i = 0; i < FR_LENGTH(cases); i++) {
        char line[1024];
        const char *words = cases[i].beside + strlen("simulate ");
        if (!check_in_slice(i) || !fr_command_takes(sweep, cases[i].option) ||
            cases[i].option == FR_OPT_COLUMNS) /* CSV has them all */
            continue;
        snprintf(line, sizeof line, "sweep %s --fixed --vary warmup=7 --csv",
                 words);
        if (strcmp(asked, words) != 0)
            run_line(line, &before);
        asked = words;
        snprintf(line, sizeof line, "sweep %s --fixed --vary warmup=7 --csv %s",
                 words, cases[i].change);
        run_line(line, &after);
        bool is_same = strcmp(before.out, after.out) == 0 &&
                       strcmp(before.chatter, after.chatter) == 0;
        CHECK(!is_same);
        if (is_same)
            printf("  sweep: %s changes nothing, and nothing says so\n",
                   cases[i].change);
    }
}

/* Another value than the usual one, in words. */
static void other_value(int item, bool is_gpu, char *buf, size_t n_buf)
{
    const fr_option_row row = fr_option_get(fr_option_of_item(item));
    const char *last = NULL, *at;
    fr_plan usual;
    bool is_on;
    fr_plan_init(&usual);
    usual.is_flash = is_gpu;
    is_on = fr_field_get(&fr_plan_item_row(item)->field, &usual) != 0;
    switch (row.kind) {
    case FR_OPTION_FLAG:
        snprintf(buf, n_buf, "--%s%s", is_on ? "no-" : "", row.name);
        return;
    case FR_OPTION_CHOICE:
        for (int i = 0; (at = fr_option_choice(&row, i)) != NULL; i++)
            last = at;
        snprintf(buf, n_buf, "--%s %s", row.name, last);
        return;
    case FR_OPTION_TEXT:
        snprintf(buf, n_buf, "--%s %s", row.name,
                 item == FR_PLAN_COMPRESS       ? "int8"
                 : item == FR_PLAN_LAYER_SPLIT  ? "2,2"
                 : item == FR_PLAN_BATCH_SHARES ? "5,3"
                                                : "norm");
        return;
    default:
        snprintf(buf, n_buf, "--%s %s", row.name,
                 row.kind == FR_OPTION_BYTES   ? "1GB"
                 : row.kind == FR_OPTION_SHARE ? "50%"
                                               : "4");
    }
}

/* Every option of the plan by itself, beside nothing that it belongs to: it
 * changes the answer, is refused, or is said to have no effect. */
static void test_none_is_silent(void)
{
    static const char *const lines[] = {
        "simulate llama-3-8b dgx-h100:2 --dp 16",
        "simulate llama-3-8b dgx-h100:2 --tp 8 --pp 2",
        "simulate resnet-50 dgx-a100:1 --dp 8",
        "simulate gpt2-tiny two-hosts-1gbit --seq 64 --dp 2",
        "explain gpt2-tiny two-hosts-1gbit --seq 64 --dp 2",
        "tune gpt2-tiny this-machine --seq 64 --dp 2 --micro-batch 2",
    };
    static line_outcome before, after;
    for (size_t k = 0; k < FR_LENGTH(lines); k++) {
        run_line(lines[k], &before);
        CHECK(before.exit_code == 0);
        for (int i = 0; i < FR_PLAN_OPTIONS_N; i++) {
            char change[64], line[256];
            if (!check_in_slice(k + (size_t)i)) /* others for each line */
                continue;
            other_value(fr_plan_items[i], strstr(lines[k], "dgx") != NULL,
                        change, sizeof change);
            snprintf(line, sizeof line, "%s %s", lines[k], change);
            run_line(line, &after);
            bool is_silent =
                strcmp(answer_of(before.out), answer_of(after.out)) == 0 &&
                strcmp(before.chatter, after.chatter) == 0;
            CHECK(!is_silent);
            if (is_silent)
                printf("  %s changes nothing, and nothing says so\n", line);
        }
    }
}

/* Options that write files are tested with the files, the others are in the
 * table. */
static void test_all_are_listed(void)
{
    const fr_command *command = fr_command_find(fr_commands, "simulate");
    for (const fr_option *o = command->options; *o != FR_OPT_N; o++) {
        bool is_listed = *o == FR_OPT_PROFILE || *o == FR_OPT_OUTPUT ||
                         *o == FR_OPT_TRACE || *o == FR_OPT_FROM ||
                         *o == FR_OPT_MODEL || *o == FR_OPT_SET;
        for (size_t i = 0; i < FR_LENGTH(cases); i++)
            is_listed |= cases[i].option == *o;
        CHECK(is_listed);
        if (!is_listed)
            printf("  --%s has no row\n", fr_option_get(*o).name);
    }
}

/* Whatever import reads stands in its help. */
static void test_import_words(void)
{
    const fr_command *command = fr_command_find(fr_commands, "import");
    for (int i = 0; fr_import_word(i) != NULL; i++)
        CHECK_HAS(command->description, fr_import_word(i));
    CHECK_HAS(fr_import_word(0), "simgrid");
}

static void test_width(void)
{
    static const char *const lines[] = {
        BASE,
        BASE "--gantt",
        BASE "--schedule interleaved --vpp 4",
        MOE,
        "explain llama-3-8b dgx-h100:2 --dp 16 --zero 1 --global-batch 64",
        "tune llama-3-8b dgx-h100:2 --global-batch 64 --seq 4k",
        "tune llama-3-8b p5.48xlarge:4 --goal cost --tokens 1T --top 3",
        "tune llama-3-70b dgx-a100:1",
        "sweep llama-3-8b p5.48xlarge:2 --vary nodes=1-4 --vary "
        "micro-batch=1,2 "
        "--fixed --zero 3 --tokens 1T --goal deadline --deadline 60d",
        "catalog",
        "collective all_reduce 1kB..1GB dgx-h100:2",
    };
    static line_outcome result;
    for (size_t i = 0; i < FR_LENGTH(lines); i++) {
        if (!check_in_slice(i))
            continue;
        run_line(lines[i], &result);
        CHECK(result.out[0] != '\0');
        for (const char *at = result.out; *at != '\0';) {
            size_t n = strcspn(at, "\n");
            bool is_wide = fr_text_width(at, n) > FR_LAYOUT_WIDE;
            CHECK(!is_wide);
            if (is_wide)
                printf("  %s\n  %.*s\n", lines[i], (int)n, at);
            at += n + (at[n] == '\n');
        }
    }
}

CHECK_MAIN({"each_acts", test_each_acts},
           {"each_acts_in_sweep", test_each_acts_in_sweep},
           {"none_is_silent", test_none_is_silent},
           {"all_are_listed", test_all_are_listed},
           {"import_words", test_import_words}, {"width", test_width})
