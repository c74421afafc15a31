/* megatron_flags_rest.c: flags that are refused, and those that no plan has a
 * place for. */
#include "core/base/text.h"
#include "frameworks/megatron/read/megatron_flags.h"

#include <string.h>

static const struct {
    const char *name, *why;
} refused[] = {
    {"yaml-cfg", "the arguments stand in another file; give that one"},
    {"hybrid-layer-pattern", "layers of state-space models are not modelled"},
    {"hybrid-override-pattern", "layers of state-space models are not "
                                "modelled"},
    {"heterogeneous-layers-config-path", "layers that differ are not modelled"},
    {"experimental-attention-variant", "this attention is not modelled"},
    {"encoder-num-layers", "models of encoder and decoder are not modelled"},
    {"retro-add-retriever", "retrieval is not modelled"},
    {"apply-residual-connection-post-layernorm", "such a residual stream is "
                                                 "not modelled"},
    {"squared-relu", "this activation is not modelled"},
    {"quick-geglu", "this activation is not modelled"},
    {"hybrid-context-parallel", "no plan has it; leave it out"},
    {"hierarchical-context-parallel-sizes", "no plan has two levels of context "
                                            "parallelism; leave it out"},
    {"tensor-parallel-num-weight-shards", "no plan has it; leave it out"},
    {"expert-tensor-parallel-num-weight-shards", "no plan has it; leave it "
                                                 "out"},
    {"moe-latent-size", "latent experts are not modelled"},
    {"moe-extended-tp", "no plan has it; leave it out"},
    {"fine-grained-activation-offloading", "no plan has it; take "
                                           "--cpu-offloading-num-layers"},
};

/* Beginnings of flags that no prediction depends on. */
static const char *const beginnings[] = {"log-",
                                         "save",
                                         "load",
                                         "tensorboard",
                                         "wandb",
                                         "ckpt",
                                         "eval-",
                                         "split",
                                         "data-",
                                         "train-data",
                                         "valid-data",
                                         "test-data",
                                         "tokenizer",
                                         "merge-file",
                                         "vocab-file",
                                         "num-workers",
                                         "distributed-",
                                         "no-save",
                                         "no-load",
                                         "exit-",
                                         "timing-",
                                         "profile",
                                         "async-save",
                                         "dist-ckpt",
                                         "mock-data",
                                         "init-method",
                                         "init-model-with-meta",
                                         "moe-aux",
                                         "moe-z",
                                         "moe-router-bias-update",
                                         "moe-router-dtype",
                                         "moe-router-force-",
                                         "moe-router-padding-",
                                         "adlr",
                                         "no-one-logger",
                                         "rerun-",
                                         "no-check-for-nan",
                                         "check-for-nan",
                                         "te-rng",
                                         "manual-gc",
                                         "no-mmap",
                                         "use-mcore",
                                         "attention-softmax",
                                         "auto-detect",
                                         "empty-unused",
                                         "no-create-attention",
                                         "dataloader",
                                         "reset-",
                                         "eod-",
                                         "finetune",
                                         "no-masked",
                                         "no-bias",
                                         "no-rope-fusion",
                                         "rope-type",
                                         "loss-scale",
                                         "initial-loss",
                                         "min-loss",
                                         "hysteresis",
                                         "weight-decay-incr",
                                         "use-dist-ckpt",
                                         "override-opt",
                                         "use-checkpoint-opt",
                                         "non-persistent",
                                         "lr-warmup-init",
                                         "cuda-graph-warmup",
                                         "tiktoken",
                                         "trust-remote",
                                         "transformer-impl",
                                         "moe-grouped",
                                         "mtp-loss",
                                         "local-rank",
                                         "no-persist",
                                         "cross-entropy-fusion",
                                         "enable-one",
                                         "data-cache",
                                         "legacy-tokenizer",
                                         "null-tokenizer"};

fr_status fr_megatron_check_flags(fr_megatron_flags *flags, bool has_model,
                                  fr_err *err)
{
    for (size_t i = 0; i < FR_LENGTH(refused); i++) {
        const fr_megatron_flag *flag = fr_megatron_find(flags, refused[i].name);
        if (flag != NULL)
            return fr_megatron_refuse(flags, flag, refused[i].why, err);
    }
    const fr_megatron_flag *flag =
        fr_megatron_find(flags, "use-checkpoint-args");
    if (flag != NULL && !has_model)
        return fr_megatron_refuse(
            flags, flag,
            "the model stands in the checkpoint; name it with --model", err);
    return FR_OK;
}

bool fr_megatron_is_plain(const char *name)
{
    for (size_t i = 0; i < FR_LENGTH(beginnings); i++)
        if (fr_text_starts(name, beginnings[i]))
            return true;
    return false;
}

/* Names on one line the arguments that were not read, after the first
 * n_skipped; those that change nothing, or those that may. */
static void list_rest(const fr_megatron_flags *flags, bool is_harmless,
                      size_t n_skipped, const char *title, fr_buffer *notes)
{
    size_t n = 0;
    for (size_t i = 0; i < flags->flags.n; i++) {
        const fr_megatron_flag *flag = &flags->flags.items[i];
        if (flag->is_read || fr_megatron_is_plain(flag->name) != is_harmless ||
            n++ < n_skipped)
            continue;
        fr_buffer_printf(notes, "%s--%.60s", n == n_skipped + 1 ? title : ", ",
                         flag->name);
    }
    if (n > n_skipped)
        fr_buffer_putc(notes, '\n');
}

void fr_megatron_note_rest(const fr_megatron_flags *flags, fr_buffer *notes)
{
    enum { MOST_LINES = 24 };
    size_t n = 0;
    list_rest(flags, true, 0, "no prediction depends on ", notes);
    for (size_t i = 0; i < flags->flags.n && n < MOST_LINES; i++) {
        const fr_megatron_flag *flag = &flags->flags.items[i];
        if (flag->is_read || fr_megatron_is_plain(flag->name))
            continue;
        fr_buffer_printf(notes,
                         "line %d: --%.60s is not read: the plan has no "
                         "place for it\n",
                         flag->line, flag->name);
        n++;
    }
    list_rest(flags, false, MOST_LINES,
              "the plan has no place for these either: ", notes);
}
