/*
 * test_model.c: parameter counts against published ones, readers against bad
 * files.  The counts are what transformers reports for the published
 * checkpoints (sum of p.numel()), not results of this code.
 */
#include "spec/catalog/config_path.h"
#include "spec/model/model.h"
#include "spec/model/model_json.h"
#include "tests/check.h"

#include <stdlib.h>

static void check_count(const char *file, uint64_t expected)
{
    fr_model model = {0};
    fr_err err = {0};
    if (!CHECK_OK(fr_model_load(NULL, file, &model, &err), &err))
        return;
    CHECK_INT(fr_model_parameters(&model), expected);
    CHECK_STR(model.name, file);
    fr_model_release(&model);
}

static void test_configs(void)
{
    check_count("gpt2-124m", 124439808);
    check_count("gpt2-1.5b", 1557611200);
    check_count("llama-3-8b", 8030261248);
    check_count("llama-3-70b", 70553706496);
    check_count("llama-3-405b", 405853388800);
    check_count("mixtral-8x7b", 46702792704);
    check_count("mixtral-8x22b", 140620634112);
    check_count("deepseek-v3", 671026404352);
    check_count("bert-large", 336226108); /* BertForPreTraining */
    check_count("resnet-50", 25557032);   /* torchvision */
    check_count("resnet-101", 44549160);
    check_count("resnet-152", 60192808);
    check_count("vgg-16", 138357544);
    check_count("alexnet", 61100840);
    /* GPT-2's shape: L (12 h^2 + 13 h) + (V + T + 2) h. */
    check_count("gpt3-175b", 96 * (12 * 12288ull * 12288 + 13 * 12288) +
                                 (50257 + 2048 + 2) * 12288);
    check_count("gpt2-tiny", 4 * (12 * 128 * 128 + 13 * 128) + 514 * 128);
    check_count("gpt2-mini", 6 * (12 * 256 * 256 + 13 * 256) + 514 * 256);
    check_count("gpt2-demo", 6 * (12 * 384 * 384 + 13 * 384) + 514 * 384);
    check_count("llama-tiny",
                4 * (128 * (2 * 128 + 2 * 64) + 3 * 128 * 352 + 2 * 128) + 128 +
                    2 * 256 * 128);
}

static void check_hf(const char *name, const char *text, uint64_t expected,
                     uint64_t active)
{
    fr_model model = {0};
    fr_err err = {0};
    fr_status status = fr_model_parse(name, text, strlen(text), &model, &err);
    if (!CHECK_OK(status, &err))
        return;
    if (fr_model_parameters(&model) != expected)
        printf("%s:\n", name);
    CHECK_INT(fr_model_parameters(&model), expected);
    if (active)
        CHECK_INT(fr_model_active_parameters(&model), active);
    fr_model_release(&model);
}

static void test_hugging_face(void)
{
    check_hf(
        "gpt2",
        "{\"model_type\":\"gpt2\",\"n_layer\":12,\"n_embd\":768,"
        "\"n_head\":12,\"vocab_size\":50257,\"n_positions\":1024,"
        "\"n_ctx\":1024,\"n_inner\":null,"
        "\"activation_function\":\"gelu_new\",\"layer_norm_epsilon\":1e-5}",
        124439808, 124439808);
    check_hf("gpt2-large",
             "{\"model_type\":\"gpt2\",\"n_layer\":36,\"n_embd\":1280,"
             "\"n_head\":20,\"vocab_size\":50257,\"n_positions\":1024}",
             774030080, 0);
    check_hf("llama-2-7b",
             "{\"model_type\":\"llama\",\"num_hidden_layers\":32,"
             "\"hidden_size\":4096,\"num_attention_heads\":32,"
             "\"intermediate_size\":11008,\"vocab_size\":32000,"
             "\"rms_norm_eps\":1e-5,\"torch_dtype\":\"float16\"}",
             6738415616ull, 0);
    check_hf("tinyllama",
             "{\"model_type\":\"llama\",\"num_hidden_layers\":22,"
             "\"hidden_size\":2048,\"num_attention_heads\":32,"
             "\"num_key_value_heads\":4,\"intermediate_size\":5632,"
             "\"vocab_size\":32000}",
             1100048384ull, 0);
    check_hf("mistral-7b",
             "{\"model_type\":\"mistral\",\"num_hidden_layers\":32,"
             "\"hidden_size\":4096,\"num_attention_heads\":32,"
             "\"num_key_value_heads\":8,\"intermediate_size\":14336,"
             "\"vocab_size\":32000,\"sliding_window\":4096}",
             7241732096ull, 0);
    check_hf("qwen2-0.5b",
             "{\"model_type\":\"qwen2\",\"num_hidden_layers\":24,"
             "\"hidden_size\":896,\"num_attention_heads\":14,"
             "\"num_key_value_heads\":2,\"intermediate_size\":4864,"
             "\"vocab_size\":151936,\"tie_word_embeddings\":true,"
             "\"use_sliding_window\":false,\"sliding_window\":32768}",
             494032768, 0);
    check_hf("qwen3-0.6b",
             "{\"model_type\":\"qwen3\",\"num_hidden_layers\":28,"
             "\"hidden_size\":1024,\"num_attention_heads\":16,"
             "\"num_key_value_heads\":8,\"head_dim\":128,"
             "\"intermediate_size\":3072,\"vocab_size\":151936,"
             "\"tie_word_embeddings\":true}",
             596049920, 0);
    check_hf("qwen3-8b",
             "{\"model_type\":\"qwen3\",\"num_hidden_layers\":36,"
             "\"hidden_size\":4096,\"num_attention_heads\":32,"
             "\"num_key_value_heads\":8,\"head_dim\":128,"
             "\"intermediate_size\":12288,\"vocab_size\":151936}",
             8190735360ull, 0);
    check_hf("gemma-2b",
             "{\"model_type\":\"gemma\",\"num_hidden_layers\":18,"
             "\"hidden_size\":2048,\"num_attention_heads\":8,"
             "\"num_key_value_heads\":1,\"head_dim\":256,"
             "\"hidden_act\":\"gelu\",\"intermediate_size\":16384,"
             "\"vocab_size\":256000}",
             2506172416ull, 0);
    check_hf("pythia-160m",
             "{\"model_type\":\"gpt_neox\",\"num_hidden_layers\":12,"
             "\"hidden_size\":768,\"num_attention_heads\":12,"
             "\"intermediate_size\":3072,\"vocab_size\":50304}",
             162322944, 0);
}

static void test_hugging_face_experts(void)
{
    check_hf("mixtral",
             "{\"model_type\":\"mixtral\",\"num_hidden_layers\":32,"
             "\"hidden_size\":4096,\"num_attention_heads\":32,"
             "\"num_key_value_heads\":8,\"intermediate_size\":14336,"
             "\"vocab_size\":32000,\"num_local_experts\":8,"
             "\"num_experts_per_tok\":2}",
             46702792704ull, 12879925248ull);
    check_hf("qwen1.5-moe-a2.7b",
             "{\"model_type\":\"qwen2_moe\",\"num_hidden_layers\":24,"
             "\"hidden_size\":2048,\"num_attention_heads\":16,"
             "\"num_key_value_heads\":16,\"intermediate_size\":5632,"
             "\"moe_intermediate_size\":1408,"
             "\"shared_expert_intermediate_size\":5632,\"num_experts\":60,"
             "\"num_experts_per_tok\":4,\"vocab_size\":151936}",
             14315784192ull, 0);
    check_hf("qwen3-30b-a3b",
             "{\"model_type\":\"qwen3_moe\",\"num_hidden_layers\":48,"
             "\"hidden_size\":2048,\"num_attention_heads\":32,"
             "\"num_key_value_heads\":4,\"head_dim\":128,"
             "\"intermediate_size\":6144,\"moe_intermediate_size\":768,"
             "\"num_experts\":128,\"num_experts_per_tok\":8,"
             "\"mlp_only_layers\":[],\"vocab_size\":151936}",
             30532122624ull, 0);
    /* 671,026,419,200 in the checkpoint hold 58 x 256 routing biases, which
     * are no parameters in transformers. */
    check_hf("deepseek-v3",
             "{\"model_type\":\"deepseek_v3\",\"num_hidden_layers\":61,"
             "\"hidden_size\":7168,\"num_attention_heads\":128,"
             "\"num_key_value_heads\":128,\"intermediate_size\":18432,"
             "\"moe_intermediate_size\":2048,\"n_routed_experts\":256,"
             "\"n_shared_experts\":1,\"num_experts_per_tok\":8,"
             "\"first_k_dense_replace\":3,\"moe_layer_freq\":1,"
             "\"q_lora_rank\":1536,\"kv_lora_rank\":512,"
             "\"qk_nope_head_dim\":128,\"qk_rope_head_dim\":64,"
             "\"v_head_dim\":128,\"num_nextn_predict_layers\":1,"
             "\"vocab_size\":129280}",
             671026419200ull - 58 * 256, 0);
}

static void test_hugging_face_encoders(void)
{
    check_hf("bert-base",
             "{\"architectures\":[\"BertModel\"],\"model_type\":\"bert\","
             "\"num_hidden_layers\":12,\"hidden_size\":768,"
             "\"num_attention_heads\":12,\"intermediate_size\":3072,"
             "\"vocab_size\":30522}",
             109482240, 0);
    check_hf("bert-large",
             "{\"architectures\":[\"BertForMaskedLM\"],\"model_type\":\"bert\","
             "\"num_hidden_layers\":24,\"hidden_size\":1024,"
             "\"num_attention_heads\":16,\"intermediate_size\":4096,"
             "\"vocab_size\":30522}",
             335174458, 0);
    check_hf("vit-base",
             "{\"model_type\":\"vit\",\"num_hidden_layers\":12,"
             "\"hidden_size\":768,\"num_attention_heads\":12,"
             "\"intermediate_size\":3072,\"num_labels\":1000}",
             86567656, 0);
}

static void test_fields(void)
{
    const char *text =
        "{\"model_type\":\"qwen2\",\"num_hidden_layers\":7,"
        "\"hidden_size\":448,\"num_attention_heads\":14,"
        "\"num_key_value_heads\":2,\"intermediate_size\":1216,"
        "\"vocab_size\":1519,\"rope_theta\":1000003.5,"
        "\"rms_norm_eps\":1.25e-6,\"max_position_embeddings\":4097,"
        "\"tie_word_embeddings\":true}";
    fr_model model = {0};
    fr_err err = {0};
    if (!CHECK_OK(fr_model_parse("x", text, strlen(text), &model, &err), &err))
        return;
    CHECK_INT(model.head_dim, 32);
    CHECK_INT(model.n_kv_heads, 2);
    CHECK(model.rope_theta == 1000003.5);
    CHECK(model.norm_eps == 1.25e-6);
    CHECK_INT(model.max_seq, 4097);
    CHECK(model.is_gated_mlp && model.is_rms_norm && model.is_rope);
    CHECK(model.is_tied && model.has_qkv_bias && !model.has_out_bias);
    CHECK_INT(model.sliding_window, 0);
    /* 6 * matmul parameters + 12 * layers * hidden * seq, by hand. */
    double matmul =
        7.0 * (448.0 * (2 * 448 + 2 * 64) + 3.0 * 448 * 1216) + 1519.0 * 448;
    CHECK_NEAR(fr_model_flop_per_token(&model, 311, false),
               6.0 * matmul + 12.0 * 7 * 448 * 311, 1e-15);
    CHECK_NEAR(fr_model_flop_per_token(&model, 311, true),
               6.0 * matmul + 6.0 * 7 * 448 * 311, 1e-15);
    fr_model_release(&model);
}

static void write_model(const fr_model *model, fr_buffer *buffer)
{
    fr_json_writer writer;
    fr_buffer_init(buffer);
    fr_json_writer_init(&writer, buffer);
    fr_model_to_json(model, &writer);
}

/* Write, read, write: the same bytes and the same counts. */
static void test_round_trip(void)
{
    static const char *const names[] = {
        "gpt2-124m", "llama-3-405b", "mixtral-8x7b", "bert-large", "resnet-50"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        fr_model first = {0}, copy = {0}, second = {0};
        fr_err err = {0};
        fr_buffer one, two;
        if (!CHECK_OK(fr_model_load(NULL, names[i], &first, &err), &err))
            continue;
        CHECK_OK(fr_model_copy(&first, &copy, &err), &err);
        write_model(&copy, &one);
        CHECK_OK(fr_model_parse("again", one.data, one.n, &second, &err), &err);
        write_model(&second, &two);
        CHECK_STR(fr_buffer_text(&one), fr_buffer_text(&two));
        CHECK_INT(fr_model_parameters(&first), fr_model_parameters(&second));
        fr_buffer_release(&one);
        fr_buffer_release(&two);
        fr_model_release(&first);
        fr_model_release(&copy);
        fr_model_release(&second);
    }
}

typedef struct bad {
    const char *text, *says;
} bad;

#define OWN                                                                    \
    "{\n\"schema\": \"forerun.model/1\",\n\"name\": \"m\",\n"                  \
    "\"n_layers\": 3, \"hidden\": 96, \"n_heads\": 6,\n\"ffn_hidden\": 384, "  \
    "\"vocab\": 311, \"max_seq\": 64"

static const bad bad_models[] = {
    {"", "m.json:1:"},
    {"[1]", "m.json:1: a model must be an object"},
    {"{\"hidden\": 1}", "m.json:1: neither"},
    {"{\n\"schema\": \"forerun.model/2\"}", "m.json:2: schema is"},
    {OWN ",\n\"hiden\": 3}", "m.json:6: unknown key 'hiden'"},
    {OWN ",\n\"hidden\": 96}", "m.json:6:"},
    {OWN ",\n\"activation\": \"swish\"}", "m.json:6: unknown activation"},
    {OWN ",\n\"kind\": \"cnn\"}", "m.json:6: unknown kind 'cnn'"},
    {OWN ",\n\"n_kv_heads\": 4}", "n_heads 6 % n_kv_heads 4 != 0"},
    {OWN ",\n\"n_kv_heads\": 0}", "n_kv_heads is 0"},
    {OWN ",\n\"head_dim\": \"16\"}", "m.json:6:"},
    {OWN ",\n\"norm_eps\": 1e999}", "m.json:6:"},
    {OWN ",\n\"rope\": true, \"rope_theta\": -1.5}", "rope_theta is -1.5"},
    {OWN ",\n\"n_experts\": 5}", "n_experts_per_token is 0; give 1 to 5"},
    {OWN ",\n\"tied\": 1}", "m.json:6:"},
    {"{\"schema\": \"forerun.model/1\", \"name\": \"m\",\n\"kind\": "
     "\"layers\", \"layers\": []}",
     "m.json:2: layers is empty"},
    {"{\"schema\": \"forerun.model/1\", \"name\": \"m\",\n\"kind\": "
     "\"layers\", \"layers\": [{\"name\": \"a\", \"forward_flop\": 1,\n"
     "\"parameters\": -7, \"activation_bytes\": 1, \"output_bytes\": 1}]}",
     "m.json:3:"},
    {"{\n\"model_type\": \"lama\"}", "m.json:2: model_type 'lama' is not "
                                     "known: did you mean 'llama'?"},
    {"{\"model_type\": \"gpt2\",\n\"n_layer\": 12, \"n_embd\": 769,\n"
     "\"n_head\": 12, \"vocab_size\": 50257}",
     "m.json:3: hidden size 769 % heads 12 != 0"},
    {"{\"model_type\": \"gpt2\",\n\"n_embd\": 768, \"n_head\": 12}",
     "'n_layer'"},
    {"{\"model_type\": \"gpt2\",\n\"n_layer\": 2, \"n_embd\": 64,\n"
     "\"n_head\": 4, \"vocab_size\": 99,\n"
     "\"scale_attn_by_inverse_layer_idx\": true}",
     "m.json:4: scale_attn_by_inverse_layer_idx"},
    {"{\"model_type\": \"gpt2\",\n\"n_layer\": 2, \"n_embd\": 64,\n"
     "\"n_head\": 4, \"vocab_size\": 99,\n\"activation_function\": \"mish\"}",
     "m.json:4: activation_function 'mish' is not known"},
    {"{\"model_type\": \"gpt2\", \"n_layer\": 2, \"n_embd\": 64,\n"
     "\"n_head\": 0, \"vocab_size\": 99}",
     "m.json:2:"},
    {"{\"model_type\": \"gpt2\", \"n_layer\": 100000, \"n_embd\": 16777216,\n"
     "\"n_head\": 2, \"vocab_size\": 99, \"head_dim\": 65536,"
     "\"n_inner\": 268435456}",
     "more than 1e18"},
};

static void test_bad(void)
{
    for (size_t i = 0; i < sizeof bad_models / sizeof bad_models[0]; i++) {
        fr_model model;
        fr_err err = {0};
        memset(&model, 0x5a, sizeof model);
        const fr_model before = model;
        const char *text = bad_models[i].text;
        fr_status status =
            fr_model_parse("m.json", text, strlen(text), &model, &err);
        CHECK_FAILS(status, FR_INPUT, &err);
        CHECK_HAS(err.text, bad_models[i].says);
        CHECK(memcmp(&before, &model, sizeof model) == 0);
    }
}

static void test_missing(void)
{
    fr_model model = {0};
    fr_err err = {0};
    CHECK_FAILS(fr_model_load(NULL, "gpt2-12m", &model, &err), FR_INPUT, &err);
    CHECK_HAS(err.text, "did you mean 'gpt2-124m'?");
    err = (fr_err){0};
    CHECK_FAILS(fr_model_load(NULL, "no/such/file.json", &model, &err), FR_IO,
                &err);
    err = (fr_err){0};
    CHECK_FAILS(fr_model_load(NULL, "", &model, &err), FR_INPUT, &err);
}

/* Cut at every byte: one line of error, never a crash. */
static void test_truncated(void)
{
    const char *text = OWN ", \"n_kv_heads\": 3}";
    for (size_t n = 0; n < strlen(text); n++) {
        fr_model model = {0};
        fr_err err = {0};
        CHECK_FAILS(fr_model_parse("m.json", text, n, &model, &err), FR_INPUT,
                    &err);
    }
}

CHECK_MAIN({"configs", test_configs}, {"hugging_face", test_hugging_face},
           {"experts", test_hugging_face_experts},
           {"encoders", test_hugging_face_encoders}, {"fields", test_fields},
           {"round_trip", test_round_trip}, {"bad", test_bad},
           {"missing", test_missing}, {"truncated", test_truncated})
