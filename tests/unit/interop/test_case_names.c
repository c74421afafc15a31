/* test_case_names.c: names of GPUs, boards and frameworks in made-up rows. */
#include "interop/case/case.h"
#include "tests/check.h"

/* Reads the one row below a header. */
static fr_status read(const char *header, const char *values,
                      fr_case_setup *out, fr_err *err)
{
    char text[1024];
    fr_cases cases;
    snprintf(text, sizeof text, "%s\n%s\n", header, values);
    FR_TRY(fr_cases_parse("m.csv", text, strlen(text), &cases, err));
    fr_status status = fr_case_read(NULL, &cases.at[0], out, err);
    fr_cases_release(&cases);
    return status;
}

/* A row of one GPU of that name, its memory and GPUs of a server. */
static fr_status read_gpu(const char *gpu, const char *rest, fr_case_setup *s,
                          fr_err *err)
{
    char values[256];
    snprintf(values, sizeof values, "mine,6,512,8,512,%s,8,1,16,bf16,%s", gpu,
             rest);
    return read("model,layers,hidden,heads,seq,gpu,num_gpus,mbs,gbs,precision,"
                "gpu_mem_gb,gpus_per_node,intra_node",
                values, s, err);
}

static void test_gpu_names(void)
{
    static const struct {
        const char *gpu, *rest, *device;
        double memory_gib;
    } good[] = {
        {"A10G", "24,4,", "a10g", 23028.0 / 1024},
        {"RTX 4090", ",4,", "rtx-4090", 24564.0 / 1024},
        {"MI250X", "64,8,", "mi250x-gcd", 64},
        {"H20", "96,8,", "h20-sxm", 97871.0 / 1024},
        {"H800", ",8,", "h800-sxm", 81559.0 / 1024},
        {"H800 NVLink", ",8,", "h800-sxm", 81559.0 / 1024},
        {"A800-SXM4-80GB", ",8,", "a800-sxm-80g", 80},
    };
    static const struct {
        const char *gpu, *rest, *says;
    } bad[] = {
        {"RTX PRO 6000", "96,8,", "no node of the catalogue has a 'rtx-pro-"},
        {"RTX", "24,4,",
         "gpu 'RTX' is not in the catalogue (forerun catalog d"},
        {"RTX A6000", "48,4,", "forerun catalog devices"},
        {"Quadro RTX 6000", "24,4,", "forerun catalog devices"},
        {"MI250X 128GB", ",4,", "'mi250x-gcd' in the column device"},
        {"MI250X", "128,4,", "128 GB are those of a card with 2 devices"},
        {"TPU v5p", ",,", "a cluster file and call forerun simulate"},
    };
    fr_case_setup s;
    fr_err err;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        if (!CHECK_OK(read_gpu(good[i].gpu, good[i].rest, &s, &err), &err))
            continue;
        CHECK_STR(s.cluster.devices[0].id, good[i].device);
        CHECK_NEAR((double)s.cluster.devices[0].memory_bytes / (1 << 30),
                   good[i].memory_gib, 1e-12);
        fr_case_setup_release(&s);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CHECK_FAILS(read_gpu(bad[i].gpu, bad[i].rest, &s, &err), FR_INPUT,
                    &err);
        CHECK_HAS(err.text, bad[i].says);
    }
}

/* Each of four GPUs on a board has a third of its links to every other one, or
 * all of them if a switch joins them. */
static void test_boards_of_four(void)
{
    static const struct {
        const char *gpu, *rest;
        double pair_Bps;
    } cases[] = {{"H100-SXM-80GB", ",4,NVLink4", 150e9},
                 {"H200", ",4,", 150e9},
                 {"A100-SXM-80GB", ",4,NVLink3", 100e9},
                 {"H100-SXM-80GB", ",4,NVLink4 NVSwitch", 450e9},
                 {"H100-SXM-80GB", ",8,NVLink4", 450e9}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fr_case_setup s;
        fr_err err;
        if (!CHECK_OK(read_gpu(cases[i].gpu, cases[i].rest, &s, &err), &err))
            continue;
        CHECK_NEAR(s.cluster.node_types[0].intra_p2p_Bps, cases[i].pair_Bps,
                   1e-12);
        fr_case_setup_release(&s);
    }
}

/* A framework's name is a word, and AutoModel is none of NeMo's. */
static void test_framework_names(void)
{
    static const struct {
        const char *text;
        bool is_megatron;
    } cases[] = {{"NeMo", true},
                 {"NeMo-Megatron 23.08", true},
                 {"MegatronLM", true},
                 {"Megatron-LM (2020)", true},
                 {"NeMo AutoModel", false},
                 {"NVIDIA-NeMo/Automodel", false},
                 {"dynemo", false},
                 {"megatronics", false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fr_case_setup s;
        fr_err err;
        char values[256];
        snprintf(values, sizeof values,
                 "%s,mine,6,512,8,512,1000,H100,8,1,16,bf16", cases[i].text);
        if (!CHECK_OK(read("framework,model,layers,hidden,heads,seq,vocab,gpu,"
                           "num_gpus,mbs,gbs,precision",
                           values, &s, &err),
                      &err))
            continue;
        CHECK_INT(s.model.vocab, cases[i].is_megatron ? 1024 : 1000);
        fr_case_setup_release(&s);
    }
}

CHECK_MAIN({"gpu_names", test_gpu_names},
           {"boards_of_four", test_boards_of_four},
           {"framework_names", test_framework_names})
