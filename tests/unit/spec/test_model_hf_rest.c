/*
 * test_model_hf_rest.c: defaults of transformers' classes, wrappers and their
 * towers, heads.  Counts are sums by hand over the matrices of a class.
 */
#include "core/system/fileio.h"
#include "spec/model/model.h"
#include "tests/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static fr_err err;

static bool parse(const char *text, fr_model *out)
{
    return CHECK_OK(fr_model_parse("m.json", text, strlen(text), out, &err),
                    &err);
}

static bool load(const char *name, fr_model *out)
{
    char path[128];
    snprintf(path, sizeof path, "tests/golden/fixtures/misread/%s", name);
    return CHECK_OK(fr_model_load(NULL, path, out, &err), &err);
}

/* h: hidden, f: MLP, v: vocabulary, q, k: width of all heads, of those of keys;
 * norms: vectors of a layer beside its two norms. */
static uint64_t decoder(uint64_t l, uint64_t h, uint64_t f, uint64_t v,
                        uint64_t q, uint64_t k, uint64_t norms, int n_tables)
{
    return l * (2 * h * q + 2 * h * k + 3 * h * f + 2 * h + norms) + h +
           (uint64_t)n_tables * v * h;
}

static void check_parameters(const char *text, uint64_t expected)
{
    fr_model m;
    if (!parse(text, &m))
        return;
    CHECK_INT(fr_model_parameters(&m), expected);
    fr_model_release(&m);
}

#define SIZES                                                                  \
    "\"hidden_size\": 1024, \"intermediate_size\": 2816, "                     \
    "\"num_hidden_layers\": 8, \"num_attention_heads\": 16, "                  \
    "\"vocab_size\": 49920"

/* configuration_qwen3.py: head_dim 128; gemma 256; mistral: 8 heads of keys. */
static void test_class_defaults(void)
{
    fr_model m;
    if (load("hf_qwen3_head_dim.json", &m)) {
        CHECK_INT(m.head_dim, 128);
        CHECK_INT(fr_model_parameters(&m), 213404672);
        fr_model_release(&m);
    }
    check_parameters(
        "{\"model_type\": \"qwen3\", \"num_key_value_heads\": 4, " SIZES "}",
        decoder(8, 1024, 2816, 49920, 2048, 512, 256, 2));
    check_parameters("{\"model_type\": \"qwen3\", \"head_dim\": null, "
                     "\"num_key_value_heads\": 4, " SIZES "}",
                     decoder(8, 1024, 2816, 49920, 1024, 256, 128, 2));
    check_parameters("{\"model_type\": \"gemma\", " SIZES "}",
                     decoder(8, 1024, 2816, 49920, 4096, 4096, 0, 1));
    check_parameters("{\"model_type\": \"mistral\", " SIZES "}",
                     decoder(8, 1024, 2816, 49920, 1024, 512, 0, 2));
    check_parameters("{\"model_type\": \"mistral\", "
                     "\"num_key_value_heads\": null, " SIZES "}",
                     decoder(8, 1024, 2816, 49920, 1024, 1024, 0, 2));
    check_parameters("{\"model_type\": \"llama\", " SIZES "}",
                     decoder(8, 1024, 2816, 49920, 1024, 1024, 0, 2));
}

static void check_window(const char *text, int64_t window, int64_t max_seq)
{
    fr_model m;
    if (!parse(text, &m))
        return;
    CHECK_INT(m.sliding_window, window);
    CHECK_INT(m.max_seq, max_seq);
    fr_model_release(&m);
}

/* configuration_mistral.py: 4096 where the key is absent, none where it is
 * null. */
static void test_windows(void)
{
    check_window("{\"model_type\": \"mistral\", " SIZES "}", 4096, 131072);
    check_window("{\"model_type\": \"mistral\", \"sliding_window\": null, "
                 "\"max_position_embeddings\": 32768, " SIZES "}",
                 0, 32768);
    check_window("{\"model_type\": \"mistral\", \"sliding_window\": 777, " SIZES
                 "}",
                 777, 131072);
    check_window(
        "{\"model_type\": \"mixtral\", \"num_local_experts\": 4, " SIZES "}", 0,
        131072);
}

/* The text_config of LLaVA has what differs from LlamaConfig alone: Vicuna 7B,
 * 6,738,415,616 parameters with 32,000 words, here with 32,064. */
static void test_partial(void)
{
    fr_model m;
    if (parse("{\"architectures\": [\"LlavaForConditionalGeneration\"], "
              "\"model_type\": \"llava\", \"text_config\": {\"_name_or_path\": "
              "\"lmsys/vicuna-7b-v1.5\", \"architectures\": "
              "[\"LlamaForCausalLM\"], \"max_position_embeddings\": 4096, "
              "\"model_type\": \"llama\", \"rms_norm_eps\": 1e-05, "
              "\"vocab_size\": 32064}, \"vision_config\": {\"hidden_size\": "
              "1024, \"image_size\": 336, \"intermediate_size\": 4096, "
              "\"model_type\": \"clip_vision_model\", "
              "\"num_attention_heads\": 16, \"num_hidden_layers\": 24, "
              "\"patch_size\": 14}}",
              &m)) {
        CHECK_INT(fr_model_parameters(&m), 6738415616 + 2 * 64 * 4096);
        CHECK_INT(m.max_seq, 4096);
        CHECK_STR(
            m.left_out,
            "vision_config (about 302 million parameters) is not counted");
        fr_model_release(&m);
    }
    if (parse("{\"model_type\": \"llava_next\", \"text_config\": "
              "{\"max_position_embeddings\": 4096}, \"vision_config\": {}}",
              &m)) {
        CHECK_INT(fr_model_parameters(&m), 6738415616);
        CHECK_STR(m.left_out, "");
        fr_model_release(&m);
    }
    /* A file of its own has its sizes. */
    const char *text = "{\"model_type\": \"llama\", \"vocab_size\": 32000}";
    CHECK_FAILS(fr_model_parse("m", text, strlen(text), &m, &err), FR_INPUT,
                &err);
    CHECK_HAS(err.text, "num_hidden_layers");
}

/* Vision and audio towers are said. */
static void test_towers(void)
{
    fr_model m;
    if (load("hf_wrapper_vision.json", &m)) {
        CHECK_HAS(m.left_out,
                  "vision_config (about 1.84 billion parameters) is not");
        fr_model_release(&m);
    }
    if (parse("{\"model_type\": \"omni\", \"text_config\": {\"model_type\": "
              "\"llama\", " SIZES "}, \"audio_config\": {\"d_model\": 1280, "
              "\"encoder_layers\": 32, \"encoder_ffn_dim\": 5120}, "
              "\"vision_config\": {\"depth\": 32, \"hidden_size\": 1280, "
              "\"intermediate_size\": 3420, \"hidden_act\": \"silu\", "
              "\"out_hidden_size\": 3584}, \"quantization_config\": "
              "{\"bits\": 4}}",
              &m)) {
        CHECK_STR(m.left_out,
                  "audio_config (about 629 million parameters) is not counted; "
                  "vision_config (about 630 million parameters) is not "
                  "counted");
        fr_model_release(&m);
    }
    if (parse("{\"model_type\": \"x\", \"text_config\": {\"model_type\": "
              "\"llama\", " SIZES "}, \"vision_config\": {\"model_type\": "
              "\"siglip_vision_model\"}}",
              &m)) {
        CHECK_STR(m.left_out, "vision_config is not counted");
        fr_model_release(&m);
    }
    if (parse("{\"model_type\": \"llama\", " SIZES "}", &m)) {
        CHECK_STR(m.left_out, "");
        fr_model_release(&m);
    }
}

/* Reward, embedding and classification models have no matrix of outputs. */
static void test_heads(void)
{
    static const char *const names[] = {
        "LlamaForSequenceClassification", "LlamaForTokenClassification",
        "LlamaForQuestionAnswering", "LlamaModel", "LlamaForRewardModel"};
    fr_model m;
    for (size_t i = 0; i < FR_LENGTH(names); i++) {
        char text[512];
        snprintf(
            text, sizeof text,
            "{\"architectures\": [\"%s\"], \"model_type\": \"llama\", " SIZES
            "}",
            names[i]);
        if (!parse(text, &m))
            continue;
        CHECK_INT(fr_model_parameters(&m),
                  decoder(8, 1024, 2816, 49920, 1024, 1024, 0, 1));
        CHECK_HAS(m.left_out, names[i]);
        CHECK_HAS(m.left_out, "has no output matrix");
        fr_model_release(&m);
    }
    if (parse("{\"architectures\": [\"GPT2LMHeadModel\"], \"model_type\": "
              "\"gpt2\", \"n_layer\": 2, \"n_embd\": 64, \"n_head\": 2, "
              "\"vocab_size\": 512}",
              &m)) {
        CHECK_STR(m.left_out, "");
        fr_model_release(&m);
    }
    check_parameters("{\"architectures\": [\"LlamaForCausalLM\"], "
                     "\"model_type\": \"llama\", " SIZES "}",
                     decoder(8, 1024, 2816, 49920, 1024, 1024, 0, 2));
}

/* The heads come from the class, so the error has no key to name. */
static void test_no_heads(void)
{
    static const char text[] =
        "{\"model_type\": \"llava\",\n"
        " \"text_config\": {\"model_type\": \"mistral\",\n"
        "  \"num_hidden_layers\": 4, \"hidden_size\": 28,\n"
        "  \"intermediate_size\": 128, \"vocab_size\": 99}}\n";
    fr_model m;
    CHECK_FAILS(fr_model_parse("m.json", text, strlen(text), &m, &err),
                FR_INPUT, &err);
    CHECK_HAS(err.text, "m.json:2: hidden size 28 % heads 32");
}

CHECK_MAIN({"class defaults", test_class_defaults}, {"windows", test_windows},
           {"partial", test_partial}, {"towers", test_towers},
           {"heads", test_heads}, {"no heads", test_no_heads})
