/* weights_golden.h: written by make_weights_golden.py with PyTorch 1.13.0a0; not
 * to be edited.  Losses of the models in weights/ on tokens
 * (7 i^2 + 3 i + 11) mod vocab, i = 0 .. 12. */
#ifndef FR_TESTS_WEIGHTS_GOLDEN_H
#define FR_TESTS_WEIGHTS_GOLDEN_H

enum { WEIGHTS_SEQ = 12 };

static const struct {
    const char *name;
    double loss;
} weights_goldens[] = {
    {"gpt2", 4.46289520705},
    {"gpt_neox", 4.61756992987},
    {"llama", 3.83904269808},
    {"mistral", 4.05361915909},
    {"qwen2", 4.2119013943},
    {"qwen3", 4.13882393774},
    {"gemma", 4.10289363688},
    {"mixtral", 3.73119141517},
    {"qwen2_moe", 4.42646716882},
    {"qwen3_moe", 3.99456838419},
    {"deepseek_v3", 3.55595087129},
    {"deepseek_whole", 4.1827764704},
    {"deepseek_mtp", 3.55595087129},
    {"bert", 4.09248605402},
    {"bert_order", 7.0960588663},
    {"vit", 1.7894783896},
};

#endif
