/*
 * test_hf_totals.c: parameter counts of 170 published models of 86 types
 * against hf_totals.tsv, whose totals were published or summed by others; and
 * that a model whose layers are not understood is refused in one line.
 */
#include "core/system/fileio.h"
#include "spec/model/mixers.h"
#include "spec/model/model.h"
#include "spec/model/model_json.h"
#include "spec/model/model_traits.h"
#include "tests/check.h"

enum { NAME, PUBLISHED, TOTAL, GRADE, SOURCE, EXPECTED, CONFIG, N_COLUMNS };

typedef struct totals {
    int n_counted, n_towers, n_about, n_refused;
} totals;

/* Splits a line at its tabs. */
static bool split(char *line, char *columns[N_COLUMNS])
{
    for (int i = 0; i < N_COLUMNS; i++) {
        columns[i] = line;
        line = strchr(line, '\t');
        if (line == NULL)
            return i == N_COLUMNS - 1;
        *line++ = '\0';
    }
    return false;
}

static unsigned long long tower_of(const fr_model *model)
{
    unsigned long long n = 0;
    const char *at = strchr(model->left_out, '(');
    if (at == NULL || sscanf(at, "(%llu parameters", &n) != 1)
        return 0;
    return n;
}

/* A model that is written and read again has the same counts. */
static void check_again(const fr_model *model)
{
    fr_buffer text;
    fr_json_writer json;
    fr_model again = {0};
    fr_err err = {0};
    fr_buffer_init(&text);
    fr_json_writer_init(&json, &text);
    fr_model_to_json(model, &json);
    if (CHECK_OK(fr_model_parse("again", fr_buffer_text(&text), text.n, &again,
                                &err),
                 &err)) {
        CHECK_INT(fr_model_parameters(&again), fr_model_parameters(model));
        CHECK_INT(fr_model_active_parameters(&again),
                  fr_model_active_parameters(model));
        CHECK(again.traits == model->traits);
        CHECK_STR(again.mixers, model->mixers);
        fr_model_release(&again);
    }
    fr_buffer_release(&text);
}

static void check_row(char *const columns[N_COLUMNS], totals *sums)
{
    const unsigned long long total = strtoull(columns[TOTAL], NULL, 10);
    const char *expected = columns[EXPECTED];
    fr_model model = {0};
    fr_err err = {0};
    const int n_failed = check_state.n_failed_checks;
    if (strcmp(expected, "refused") == 0) {
        sums->n_refused++;
        CHECK_FAILS(fr_model_parse(columns[NAME], columns[CONFIG],
                                   strlen(columns[CONFIG]), &model, &err),
                    FR_INPUT, &err);
        return;
    }
    if (!CHECK_OK(fr_model_parse(columns[NAME], columns[CONFIG],
                                 strlen(columns[CONFIG]), &model, &err),
                  &err))
        return;
    const unsigned long long n = fr_model_parameters(&model);
    if (strcmp(expected, "count") == 0) {
        sums->n_counted++;
        CHECK_INT(n, total);
    } else if (strcmp(expected, "tower") == 0) {
        sums->n_towers++;
        CHECK_INT(n + tower_of(&model), total);
    } else {
        sums->n_about++;
        CHECK_HAS(model.left_out, "is not counted");
        CHECK(n < total);
    }
    check_again(&model);
    if (check_state.n_failed_checks > n_failed)
        printf("    %s\n", columns[NAME]);
    fr_model_release(&model);
}

static void test_totals(void)
{
    char *text;
    size_t n_text;
    fr_err err = {0};
    totals sums = {0};
    if (!CHECK_OK(fr_file_read("tests/unit/spec/hf_totals.tsv", 0, &text,
                               &n_text, &err),
                  &err))
        return;
    for (char *line = text, *next; line < text + n_text; line = next) {
        char *columns[N_COLUMNS];
        next = strchr(line, '\n');
        if (next == NULL)
            break;
        *next++ = '\0';
        if (line[0] == '#')
            continue;
        if (CHECK(split(line, columns)))
            check_row(columns, &sums);
    }
    CHECK_INT(sums.n_counted, 127);
    CHECK_INT(sums.n_towers, 17);
    CHECK_INT(sums.n_about, 2);
    CHECK_INT(sums.n_refused, 24);
    free(text);
}

/* Counts of a window: with s = 10 tokens and W = 4, queries see 1, 2, 3 and
 * then 4 keys, 34 in all; forerun counts a diagonal half, W - W^2 / 2s. Chunks
 * of 4: 1, 2, 3, 4, 1, 2, 3, 4, 1, 2 with the diagonal, half of 4^2 twice and
 * of 2^2 without. */
static void test_spans(void)
{
    fr_model model;
    fr_model_init(&model);
    model.sliding_window = 4;
    memcpy(model.mixers, "awc", 4);
    const fr_mixer *full = fr_mixer_find('a'), *window = fr_mixer_find('w');
    const fr_mixer *chunk = fr_mixer_find('c');
    CHECK_NEAR(fr_mixer_span(full, &model, 10, true), 5.0, 0);
    CHECK_NEAR(fr_mixer_span(window, &model, 10, true), 4 - 16 / 20.0, 1e-15);
    CHECK_NEAR(fr_mixer_span(chunk, &model, 10, true), (8 + 8 + 2) / 10.0,
               1e-15);
    CHECK_NEAR(fr_mixer_span(chunk, &model, 3, true), 1.5, 0);
    CHECK_NEAR(fr_mixer_span(chunk, &model, 10, false), 3.6, 1e-15);
}

/* Amounts by hand: Mamba-2 of 2 heads of 3, 1 group, state 5, kernel 4, chunks
 * of 7 (arXiv 2405.21060): inner 6, convolution over 6 + 2 5 = 16 channels. */
static void test_mamba2_sizes(void)
{
    fr_model model;
    fr_model_init(&model);
    model.mix_heads = 2;
    model.mix_head_dim = 3;
    model.mix_groups = 1;
    model.mix_state = 5;
    model.mix_conv = 4;
    model.mix_chunk = 7;
    model.has_mix_norm = true;
    const fr_mixer_sizes sizes = fr_mixer_find('m')->sizes(&model);
    CHECK_INT(sizes.in, 6 + 16 + 2);
    CHECK_INT(sizes.inner, 6);
    CHECK_INT(sizes.split, 16 * 5 + 3 * 2 + 6);
    /* Convolution, then 2 Q (G N + H P) + 4 H N P. */
    CHECK_NEAR(sizes.core_flop, 2 * 4 * 16 + 2 * 7 * (5 + 6) + 4 * 2 * 5 * 3,
               1e-15);
}

static void check_fails(const char *text, const char *why)
{
    fr_model model = {0};
    fr_err err = {0};
    CHECK_FAILS(fr_model_parse("x.json", text, strlen(text), &model, &err),
                FR_INPUT, &err);
    CHECK_HAS(err.text, why);
}

#define SIZES                                                                  \
    ",\"hidden_size\":64,\"intermediate_size\":96,\"num_attention_heads\":4,"  \
    "\"num_key_value_heads\":2,\"vocab_size\":97,\"num_hidden_layers\":"

static void check_marks(const char *text, const char *mixers, const char *mlps)
{
    fr_model model = {0};
    fr_err err = {0};
    if (!CHECK_OK(fr_model_parse("x.json", text, strlen(text), &model, &err),
                  &err))
        return;
    CHECK_STR(model.mixers, mixers);
    CHECK_STR(model.mlps, mlps);
    fr_model_release(&model);
}

/* Kinds of layers as the classes of transformers lay them out by default
 * (configuration_<type>.py), and as files list them. */
static void test_marks(void)
{
    check_marks("{\"model_type\":\"gemma2\"" SIZES "4}", "wawa", "");
    check_marks("{\"model_type\":\"gemma3_text\"" SIZES "7}", "wwwwwaw", "");
    check_marks("{\"model_type\":\"cohere2\"" SIZES "5}", "wwwaw", "");
    check_marks("{\"model_type\":\"exaone4\"" SIZES
                "4,\"sliding_window_pattern\":\"LG\"}",
                "wawa", "");
    check_marks("{\"model_type\":\"exaone4\"" SIZES
                "4,\"sliding_window\":null}",
                "", "");
    check_marks("{\"model_type\":\"olmo3\"" SIZES
                "2,\"layer_types\":[\"full_attention\",\"sliding_attention\"]}",
                "aw", "");
    check_marks("{\"model_type\":\"llama4_text\"" SIZES
                "5,\"moe_layers\":[1,4],\"head_dim\":16}",
                "cccac", "memme");
    check_marks("{\"model_type\":\"llama4_text\"" SIZES
                "4,\"interleave_moe_layer_step\":2,\"moe_layers\":[1,3],"
                "\"no_rope_layers\":[1,0,1,1],\"head_dim\":16}",
                "cacc", "");
    check_marks("{\"model_type\":\"jamba\"" SIZES "6}", "ssssas", "mememe");
    check_marks("{\"model_type\":\"qwen3_next\"" SIZES
                "5,\"num_experts\":4,\"num_experts_per_tok\":2,"
                "\"moe_intermediate_size\":32}",
                "dddad", "");
    check_marks("{\"model_type\":\"nemotron_h\"" SIZES
                "3,\"mamba_num_heads\":8,\"mamba_head_dim\":8,"
                "\"hybrid_override_pattern\":\"M-*\"}",
                "m-a", "-m-");
}

/* Kimi K2's yarn has beta_fast = beta_slow = 1, which transformers takes as a
 * step of 0.001 dimensions (modeling_rope_utils.py). */
static void test_equal_betas(void)
{
    static const char text[] =
        "{\"model_type\":\"kimi_k2\"" SIZES
        "2,\"n_routed_experts\":4,\"num_experts_per_tok\":2,"
        "\"moe_intermediate_size\":32,\"kv_lora_rank\":16,\"q_lora_rank\":24,"
        "\"qk_nope_head_dim\":16,\"qk_rope_head_dim\":8,\"v_head_dim\":16,"
        "\"n_group\":1,\"topk_group\":1,"
        "\"rope_scaling\":{\"type\":\"yarn\",\"factor\":32,"
        "\"beta_fast\":1.0,\"beta_slow\":1.0,"
        "\"original_max_position_embeddings\":4096}}";
    fr_model model = {0};
    fr_err err = {0};
    if (!CHECK_OK(fr_model_parse("x.json", text, strlen(text), &model, &err),
                  &err))
        return;
    CHECK_STR(model.left_out, "");
    CHECK(model.has_rope_scaling && model.rope_kind == FR_ROPE_YARN);
    fr_model_release(&model);
}

/* A key that no reader understands is named; switches that are off are not. */
static void test_unknown_keys(void)
{
    static const char text[] =
        "{\"model_type\":\"llama\"" SIZES "2,\"new_attention\":\"sparse\","
        "\"other_switch\":false,\"other_list\":[],\"bos_token_id\":1}";
    fr_model model = {0};
    fr_err err = {0};
    if (!CHECK_OK(fr_model_parse("x.json", text, strlen(text), &model, &err),
                  &err))
        return;
    CHECK_STR(model.left_out,
              "keys that are not understood and not read: new_attention");
    fr_model_release(&model);
}

#define OLMO3                                                                  \
    "\"model_type\":\"olmo3\",\"hidden_size\":64,\"intermediate_size\":96,"    \
    "\"num_hidden_layers\":2,\"num_attention_heads\":4,\"vocab_size\":97"

static void test_refusals(void)
{
    check_fails("{\"model_type\":\"rwkv\"}", "model_type 'rwkv' is not known");
    check_fails("{\"model_type\":\"olmo4\"}", "did you mean 'olmo");
    check_fails("{" OLMO3 ",\"layer_types\":[\"full_attention\"]}",
                "layer_types has 1 entries for 2 layers");
    check_fails("{" OLMO3 ",\"layer_types\":[\"full_attention\",\"sparse\"]}",
                "layer type 'sparse' is not modelled");
    check_fails("{" OLMO3 ",\"sliding_window_pattern\":0}",
                "period of layers is 0");
    check_fails("{\"model_type\":\"nemotron_h\",\"hidden_size\":64,"
                "\"num_hidden_layers\":2,\"num_attention_heads\":4,"
                "\"vocab_size\":97,\"mamba_num_heads\":4,"
                "\"mamba_head_dim\":16,\"hybrid_override_pattern\":\"MX\"}",
                "does not say M, *, - or E");
    check_fails("{\"schema\":\"forerun.model/1\",\"name\":\"x\",\"n_layers\":2,"
                "\"hidden\":64,\"n_heads\":4,\"ffn_hidden\":96,\"vocab\":97,"
                "\"max_seq\":0,\"rope\":true,\"traits\":[\"none\"]}",
                "trait 'none' is not known");
    check_fails("{\"schema\":\"forerun.model/1\",\"name\":\"x\",\"n_layers\":2,"
                "\"hidden\":64,\"n_heads\":4,\"ffn_hidden\":96,\"vocab\":97,"
                "\"max_seq\":0,\"rope\":true,\"mixers\":\"aq\"}",
                "mixer 'q' is not known");
}

CHECK_MAIN({"totals", test_totals}, {"spans", test_spans},
           {"mamba2_sizes", test_mamba2_sizes}, {"marks", test_marks},
           {"equal_betas", test_equal_betas},
           {"unknown_keys", test_unknown_keys}, {"refusals", test_refusals})
