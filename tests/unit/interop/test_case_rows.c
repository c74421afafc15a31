/* test_case_rows.c: made-up rows of measurements as model, cluster and plan. */
#include "interop/case/case.h"
#include "tests/check.h"

/* Reads the one row below a header. */
static fr_status read(const char *header, const char *values,
                      fr_case_setup *out, fr_err *err)
{
    char text[2048];
    fr_cases cases;
    snprintf(text, sizeof text, "%s\n%s\n", header, values);
    FR_TRY(fr_cases_parse("m.csv", text, strlen(text), &cases, err));
    fr_status status = fr_case_read(NULL, &cases.at[0], out, err);
    fr_cases_release(&cases);
    return status;
}

#define SIZES "framework,model,layers,hidden,heads,kv_heads,ffn,ffn_matrices,"
#define REST                                                                   \
    "vocab,seq,gpu,gpus_per_node,num_gpus,inter_node,intra_node,tp,pp,vpp,"    \
    "mbs,"                                                                     \
    "gbs,zero_stage,precision,recompute,schedule,sp,step_time_s"

static void test_llama(void)
{
    fr_case_setup s;
    fr_err err;
    CHECK_OK(
        read(SIZES REST,
             "Megatron-Core,LLAMA3-70B,80,8192,64,8,28672,3,128256,4096,"
             "H100-SXM-80GB,8,64,InfiniBand NDR 8x400Gb/s,NVLink4 "
             "NVSwitch,4,4,5,1,128,1 (distributed optimizer),bf16,none,1F1B "
             "interleaved,yes,3.217",
             &s, &err),
        &err);
    CHECK(s.model.is_rms_norm && s.model.is_rope && s.model.is_gated_mlp);
    CHECK(!s.model.is_tied && !s.model.has_qkv_bias && !s.model.has_mlp_bias);
    CHECK_INT(s.model.activation, FR_ACTIVATION_SILU);
    CHECK_INT(s.model.n_kv_heads, 8);
    CHECK_INT(s.model.head_dim, 128);
    CHECK_INT(s.model.vocab, 128512); /* a multiple of 128 x 4 */
    CHECK_INT(s.plan.dp, 4);
    CHECK_INT(s.plan.tp, 4);
    CHECK_INT(s.plan.vpp, 5);
    CHECK_INT(s.plan.schedule, FR_SCHEDULE_INTERLEAVED);
    CHECK_INT(s.plan.zero_stage, 1);
    CHECK_INT(s.plan.precision, FR_DTYPE_BF16);
    CHECK_INT(s.plan.grad_dtype, FR_DTYPE_F32);
    CHECK(s.plan.is_sequence_parallel && s.plan.is_flash);
    CHECK(s.plan.is_overlap && s.plan.is_gather_overlap);
    CHECK_INT(s.job.seq, 4096);
    CHECK_INT(s.job.global_batch, 128);
    CHECK_NEAR(s.measured_s, 3.217, 1e-15);
    CHECK_STR(s.why_unscored_step, "");
    CHECK_STR(s.cluster.devices[0].id, "h100-sxm");
    CHECK_INT(s.cluster.node_types[0].n_devices, 8);
    CHECK_INT(s.cluster.node_types[0].n_nics, 8);
    CHECK_NEAR(s.cluster.node_types[0].nic_Bps, 50e9, 1e-12);
    CHECK_INT(fr_cluster_n_nodes(&s.cluster), 8);
    fr_case_setup_release(&s);
}

static void test_gpt(void)
{
    fr_case_setup s;
    fr_err err;
    CHECK_OK(
        read(SIZES REST,
             "Megatron-LM (2020),GPT 2B,30,2304,18,18,9216,2,50257,1024,"
             "V100-SXM2-16GB,4,16,Omni-Path 4x100Gb/s,NVLink2 (4 GPUs),2,1,"
             "1,4,64,0,fp16,full,none,no,",
             &s, &err),
        &err);
    CHECK(!s.model.is_rms_norm && !s.model.is_rope && s.model.is_tied);
    CHECK(s.model.has_qkv_bias && s.model.has_out_bias);
    CHECK_INT(s.model.activation, FR_ACTIVATION_GELU_TANH);
    CHECK_INT(s.model.vocab, 50432);
    CHECK_INT(s.model.max_seq, 1024);
    CHECK_INT(s.plan.dp, 8);
    CHECK_INT(s.plan.grad_dtype, FR_DTYPE_F16);
    CHECK_INT(s.plan.recompute, FR_RECOMPUTE_FULL);
    CHECK(!s.plan.is_overlap && !s.plan.is_flash);
    CHECK_INT(s.plan.bucket_bytes, 0);
    CHECK_NEAR(s.measured_s, 0, 0);
    CHECK_HAS(s.why_unscored_step, "no step time");
    const fr_node_type *node = &s.cluster.node_types[0];
    CHECK_INT(node->n_devices, 4);
    CHECK_INT(node->n_nics, 4);
    CHECK_NEAR(node->nic_Bps, 12.5e9, 1e-12);
    CHECK_NEAR(node->intra_Bps, 150e9, 1e-12);
    CHECK_NEAR(node->intra_p2p_Bps, 50e9, 1e-12);
    CHECK_STR(s.cluster.devices[0].id, "v100-sxm2-16g");
    fr_case_setup_release(&s);
}

static void test_rack_domain(void)
{
    fr_case_setup s;
    fr_err err;
    CHECK_OK(
        read(SIZES REST,
             "Megatron-Bridge,LLAMA3-8B,32,4096,32,8,14336,3,128256,8192,"
             "GB200,4,256,,NVLink5 NVL72 domain,1,1,1,2,512,1 (distributed "
             "optimizer),MXFP8,none,none,no,1.5",
             &s, &err),
        &err);
    const fr_node_type *node = &s.cluster.node_types[0];
    CHECK_INT(node->n_devices, 64); /* 256 = 4 x 64 of 72 */
    CHECK_INT(node->n_hosts, 16);
    CHECK_INT(fr_cluster_n_nodes(&s.cluster), 4);
    CHECK_NEAR(node->intra_Bps, 900e9, 1e-12);
    CHECK_INT(s.plan.precision, FR_DTYPE_FP8);
    CHECK_INT(s.plan.grad_dtype, FR_DTYPE_BF16);
    fr_case_setup_release(&s);
}

static void test_overrides(void)
{
    fr_case_setup s;
    fr_err err;
    CHECK_OK(read("model,layers,hidden,heads,seq,gpu,num_gpus,inter_node,mbs,"
                  "gbs,precision,zero_stage,gpus_per_node",
                  "mine,6,512,8,512,A100-SXM-64GB 1.7TB/s (350W cap),16,RDMA "
                  "100Gb/s per GPU,1,16,bf16,HYBRID_SHARD,8",
                  &s, &err),
             &err);
    CHECK_INT(s.cluster.devices[0].memory_bytes, 64ll << 30);
    CHECK_NEAR(s.cluster.devices[0].memory_Bps, 1.7e12, 1e-12);
    CHECK_NEAR(s.cluster.devices[0].power_w, 350, 0);
    CHECK_INT(s.cluster.node_types[0].n_nics, 8);
    CHECK_NEAR(s.cluster.node_types[0].nic_Bps, 12.5e9, 1e-12);
    CHECK_INT(s.plan.zero_stage, 3);
    CHECK_INT(s.plan.zero_group, 8);
    /* No family is named, and no number of matrices. */
    CHECK(s.model.is_gated_mlp && s.model.is_rms_norm);
    CHECK_INT(s.model.ffn_hidden, 1536); /* 8/3 x 512, up to 256 */
    fr_case_setup_release(&s);
}

static void test_experts(void)
{
    fr_case_setup s;
    fr_err err;
    CHECK_OK(read("model,layers,hidden,heads,kv_heads,ffn,ffn_matrices,seq,"
                  "experts,topk,moe_ffn,shared_experts,gpu,num_gpus,ep,etp,tp,"
                  "mbs,gbs,precision,framework",
                  "DeepSeekV3,61,7168,128,,18432,3,4096,256,8,2048,1,H100,256,"
                  "64,1,2,1,2048,fp8,Megatron-Core",
                  &s, &err),
             &err);
    CHECK_INT(s.model.n_experts, 256);
    CHECK_INT(s.model.n_experts_per_token, 8);
    CHECK_INT(s.model.expert_ffn_hidden, 2048);
    CHECK_INT(s.model.shared_expert_ffn_hidden, 2048);
    CHECK_INT(s.model.first_dense_layers, 3);
    CHECK_INT(s.model.kv_lora_rank, 512);
    CHECK_INT(s.model.head_dim, 192);
    CHECK_INT(s.plan.ep, 64);
    CHECK_INT(s.plan.etp, 1);
    fr_case_setup_release(&s);
    CHECK_OK(read("model,layers,hidden,heads,kv_heads,ffn_matrices,seq,experts,"
                  "topk,moe_ffn,gpu,num_gpus,ep,mbs,gbs,precision",
                  "Qwen3_30B_a3B,48,2048,32,4,3,4096,128,8,768,H100,8,8,1,8,"
                  "bf16",
                  &s, &err),
             &err);
    CHECK_INT(s.plan.etp, 0);
    CHECK(s.model.has_qk_norm);
    CHECK_INT(s.model.head_dim, 128);
    CHECK_INT(s.model.ffn_hidden, 768);
    fr_case_setup_release(&s);
}

static void test_layers_that_do_not_divide(void)
{
    static const struct {
        const char *layers, *vpp;
        int32_t n_split, first, second, last;
    } want[] = {
        {"126", "1", 8, 15, 16, 15}, /* 128 with embedding and loss */
        {"31", "1", 8, 4, 4, 3},     /* 32 with the loss */
        {"32", "1", 0, 0, 0, 0},     {"126", "8", 64, 1, 2, 1},
        {"29", "1", 0, 0, 0, 0}, /* neither: even, as every plan */
    };
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        char values[256];
        fr_case_setup s;
        fr_err err;
        snprintf(values, sizeof values,
                 "llama,%s,1024,8,4096,H100,8,8,%s,1,8,bf16", want[i].layers,
                 want[i].vpp);
        CHECK_OK(read("model,layers,hidden,heads,seq,gpu,num_gpus,pp,vpp,mbs,"
                      "gbs,precision",
                      values, &s, &err),
                 &err);
        CHECK_INT(s.plan.n_split, want[i].n_split);
        if (s.plan.n_split > 0) {
            CHECK_INT(s.plan.layer_split[0], want[i].first);
            CHECK_INT(s.plan.layer_split[1], want[i].second);
            CHECK_INT(s.plan.layer_split[s.plan.n_split - 1], want[i].last);
        }
        fr_case_setup_release(&s);
    }
}

/* Without a word on it experts are split like the rest, if they can be. */
static void test_expert_split(void)
{
    static const struct {
        const char *gpus, *tp, *ep;
        int32_t etp;
    } want[] = {{"16", "2", "8", 0}, {"8", "2", "8", 1}, {"16", "8", "4", 4}};
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        char values[256];
        fr_case_setup s;
        fr_err err;
        snprintf(values, sizeof values,
                 "mixtral,4,512,8,512,8,2,H100,%s,%s,%s,1,16,bf16",
                 want[i].gpus, want[i].tp, want[i].ep);
        CHECK_OK(read("model,layers,hidden,heads,seq,experts,topk,gpu,num_gpus,"
                      "tp,ep,mbs,gbs,precision",
                      values, &s, &err),
                 &err);
        CHECK_INT(s.plan.etp, want[i].etp);
        fr_case_setup_release(&s);
    }
}

/* Throughput in its units; a formula that is named; what may be scored. */
static void test_measured(void)
{
    static const struct {
        const char *header, *values;
        double step_s;
        const char *why;
    } want[] = {
        {"tokens_per_s_per_gpu", "2048", 32 * 512 / 2048.0 / 8, ""},
        {"samples_per_s", "64", 0.5, ""},
        {"step_time_s,samples_per_s", "2.385,64", 2.385, ""},
        {"tflops_per_gpu,tflops_kind", "100,model FLOPs", 0, "no step time"},
        {"tflops_per_gpu,tflops_kind", "10,F=96Bslh^2(1+s/6h+V/16lh)",
         96.0 * 32 * 512 * 6 * 512 * 512 *
             (1 + 512.0 / (6 * 512) + 50257.0 / (16.0 * 6 * 512)) / 10e12 / 8,
         ""},
        {"step_time_s,grade", "1,C", 1, "grade C"},
        {"step_time_s,grade", "1,", 1, "grade is empty"},
        {"step_time_s,grade,config_complete", "1,A,most (vpp missing)", 1,
         "configuration: most"},
        {"step_time_s,grade,config_complete", "1,b,Full", 1, ""},
    };
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        char header[512], values[512];
        fr_case_setup s;
        fr_err err;
        snprintf(header, sizeof header,
                 "model,layers,hidden,heads,seq,gpu,num_gpus,mbs,gbs,"
                 "precision,%s",
                 want[i].header);
        snprintf(values, sizeof values, "gpt,6,512,8,512,A100,8,4,32,bf16,%s",
                 want[i].values);
        CHECK_OK(read(header, values, &s, &err), &err);
        CHECK_NEAR(s.measured_s, want[i].step_s, 1e-12);
        CHECK_HAS(s.why_unscored_step, want[i].why);
        CHECK_INT(s.why_unscored_step[0] != '\0', want[i].why[0] != '\0');
        fr_case_setup_release(&s);
    }
}

static void test_memory(void)
{
    static const struct {
        const char *kind, *status;
        fr_memory_count count;
        fr_case_status fits;
    } want[] = {
        {"torch max_memory_allocated (GiB)", "fits", FR_MEMORY_COUNT_ALLOCATED,
         FR_CASE_STATUS_FITS},
        {"max over ranks of torch peak reserved", "OOM",
         FR_MEMORY_COUNT_RESERVED, FR_CASE_STATUS_OOM},
        {"nvidia-smi", "out of memory", FR_MEMORY_COUNT_DEVICE,
         FR_CASE_STATUS_OOM},
        {"formula of the allocated bytes", "", FR_MEMORY_COUNT_NONE,
         FR_CASE_STATUS_UNKNOWN},
    };
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        char values[256];
        fr_case_setup s;
        fr_err err;
        snprintf(values, sizeof values,
                 "gpt,6,512,8,512,A100,8,4,32,bf16,17.5,%s,%s", want[i].kind,
                 want[i].status);
        CHECK_OK(read("model,layers,hidden,heads,seq,gpu,num_gpus,mbs,gbs,"
                      "precision,peak_mem_gib,mem_kind,status",
                      values, &s, &err),
                 &err);
        CHECK_INT(s.memory_count, want[i].count);
        CHECK_INT(s.status, want[i].fits);
        CHECK_NEAR(s.peak_bytes, 17.5 * 1073741824.0, 1e-12);
        CHECK_INT(s.why_unscored_memory[0] != '\0',
                  want[i].count == FR_MEMORY_COUNT_NONE);
        fr_case_setup_release(&s);
    }
}

static void test_guessed(void)
{
    fr_case_setup s;
    fr_err err;
    CHECK_OK(read("model,layers,hidden,heads,seq,gpu,tp,pp,mbs,gbs,precision,"
                  "step_time_s",
                  "gpt,6,512,8,512,A100,2,2,4,0:32 2B:64,bf16,1", &s, &err),
             &err);
    CHECK_INT(s.plan.dp, 2); /* one node of 8 */
    CHECK_INT(s.job.global_batch, 32);
    CHECK_HAS(s.why_unscored_step, "guessed: dp,gbs");
    fr_case_setup_release(&s);
    /* torchtitan: mbs is the local batch, split over the pipeline's ranks. */
    CHECK_OK(read("framework,model,layers,hidden,heads,seq,gpu,num_gpus,tp,pp,"
                  "mbs,gbs,precision",
                  "torchtitan,llama,32,512,8,512,H100,32,2,4,32,128,bf16", &s,
                  &err),
             &err);
    CHECK_INT(s.plan.micro_batch, 8);
    CHECK(!s.plan.is_resharded && s.plan.is_sequence_parallel);
    CHECK_INT(s.plan.cp_kind, FR_CP_ALL_GATHER);
    CHECK_STR(s.guessed, "mbs");
    fr_case_setup_release(&s);
}

static void test_named_model(void)
{
    fr_case_setup s;
    fr_err err;
    CHECK_OK(read("model,seq,gpu,num_gpus,mbs,gbs,precision",
                  "LLAMA3-8B,4096,H200,8,1,8,bf16", &s, &err),
             &err);
    CHECK_INT(s.model.n_layers, 32);
    CHECK_INT(s.model.ffn_hidden, 14336);
    CHECK_INT(s.job.seq, 4096);
    fr_case_setup_release(&s);
}

static void test_refused(void)
{
    static const struct {
        const char *header, *values, *why;
    } bad[] = {
        {"model,seq,gpu", "nobody-knows,512,A100",
         "m.csv:2: layers, hidden and heads are empty"},
        {"model,layers,hidden,heads,gpu", "gpt,6,512,8,A100",
         "m.csv:2: seq is empty"},
        {"model,layers,hidden,heads,seq,gpu,mbs,precision,dp",
         "gpt,6,512,8,512,Z80,1,bf16,1", "gpu 'Z80' is not in the catalogue"},
        {"model,layers,hidden,heads,seq,gpu,mbs,precision,dp,num_gpus",
         "gpt,6,512,8,512,A100,1,bf16,2,16", "are not num_gpus 16"},
        {"model,layers,hidden,heads,seq,gpu,recompute",
         "gpt,6,512,8,512,A100,zebra", "m.csv:2: recompute of 'zebra'"},
        {"model,seq", "Nemotron_3_Nano,512", "layers other than attention"},
        {"model,seq", "T5-11B,512", "an encoder and a decoder"},
        {"model,layers", "gpt,-3", "m.csv:2: layers '-3'"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        fr_case_setup s;
        fr_err err;
        CHECK_FAILS(read(bad[i].header, bad[i].values, &s, &err), FR_INPUT,
                    &err);
        CHECK_HAS(err.text, bad[i].why);
    }
}

/* Columns with numbers stand for the prose, names of the catalogue for both. */
static void test_hardware_columns(void)
{
    static const char header[] =
        "model,gpu,device,node,num_gpus,inter_node,nics,nic_gbps,nvlink_GBps";
    fr_case_setup s;
    fr_err err;
    CHECK_OK(read(header,
                  "llama-3-8b,H100,,,16,2x NDR 400Gb/s or 8x NDR 200Gb/s,6,"
                  "300,700",
                  &s, &err),
             &err);
    CHECK_INT(s.cluster.node_types[0].n_nics, 6);
    CHECK_NEAR(s.cluster.node_types[0].nic_Bps, 37.5e9, 1e-12);
    CHECK_NEAR(s.cluster.node_types[0].intra_Bps, 350e9, 1e-12);
    fr_case_setup_release(&s);
    CHECK_OK(read(header, "llama-3-8b,,,dgx-a100-40g,16,,,,", &s, &err), &err);
    CHECK_STR(s.cluster.node_types[0].id, "dgx-a100-40g");
    CHECK_STR(s.cluster.devices[0].id, "a100-sxm-40g");
    fr_case_setup_release(&s);
    CHECK_OK(read(header, "llama-3-8b,words,h100-pcie,,16,,,,", &s, &err),
             &err);
    CHECK_STR(s.cluster.devices[0].id, "h100-pcie");
    fr_case_setup_release(&s);
    CHECK_FAILS(read(header,
                     "llama-3-8b,H100,,,16,2x NDR 400Gb/s or 8x NDR 200Gb/s,6,"
                     ",",
                     &s, &err),
                FR_INPUT, &err);
    CHECK_FAILS(read(header, "llama-3-8b,H100,h999,,16,,,,", &s, &err),
                FR_INPUT, &err);
    CHECK_FAILS(read(header, "llama-3-8b,H100,,h999,16,,,,", &s, &err),
                FR_INPUT, &err);
    CHECK_FAILS(read(header, "llama-3-8b,H100,,,16,,0,,", &s, &err), FR_INPUT,
                &err);
    CHECK_FAILS(read(header, "llama-3-8b,H100,,,16,,,-2,", &s, &err), FR_INPUT,
                &err);
}

#define ARCH_HEADER                                                            \
    "model,arch,layers,hidden,heads,ffn,ffn_matrices,seq,experts,topk,"        \
    "moe_ffn,shared_experts,gpu,num_gpus,pp,vpp,mbs,gbs,precision,"            \
    "framework,step_time_s,other_opts"

/* Facts of files of configurations beyond the family of the name. */
static void test_stated(void)
{
    fr_case_setup s;
    fr_err err;
    CHECK_OK(read(ARCH_HEADER,
                  "gpt,\"moe, rope, RMSNorm, no biases, untied, MLA, 192 "
                  "q-rank, 64 kv-rank, 17 qk-head-dim, 9 "
                  "qk-pos-emb-head-dim, 18 v-head-dim, 2 dense first, 1 "
                  "MTP\",7,512,8,2048,3,1024,8,2,1024,0.5,H100,2,2,2,1,4,bf16,"
                  "Megatron-Core,1.25,\"cross_entropy_fusion_impl=te "
                  "moe_router_fusion=True moe_permute_fusion=True "
                  "layer_split=3,2,2,0 deterministic=True\"",
                  &s, &err),
             &err);
    CHECK(s.model.is_rope && s.model.is_rms_norm && !s.model.is_tied);
    CHECK(!s.model.has_qkv_bias && !s.model.has_out_bias);
    CHECK(!s.model.has_mlp_bias);
    CHECK_INT(s.model.q_lora_rank, 192);
    CHECK_INT(s.model.kv_lora_rank, 64);
    CHECK_INT(s.model.head_dim, 26);
    CHECK_INT(s.model.v_head_dim, 18);
    CHECK_INT(s.model.first_dense_layers, 2);
    CHECK_INT(s.model.n_mtp_layers, 1);
    CHECK_INT(s.model.shared_expert_ffn_hidden, 512);
    CHECK(s.plan.execution.is_loss_fused && s.plan.execution.is_routing_fused);
    CHECK_INT(s.plan.n_split, 4);
    CHECK_INT(s.plan.layer_split[0], 3);
    CHECK_INT(s.plan.layer_split[3], 0);
    CHECK_HAS(s.why_unscored_step, "deterministic mode");
    fr_case_setup_release(&s);
    CHECK_OK(read(ARCH_HEADER,
                  "llama,\"gpt, learned positions, LayerNorm, biases, tied, qk "
                  "norm, squared relu, 128 "
                  "kv-channels\",8,512,8,2048,2,1024,,,,,H100,1,1,1,1,4,bf16,"
                  "Megatron-Core,1.25,deterministic=False",
                  &s, &err),
             &err);
    CHECK(!s.model.is_rope && !s.model.is_rms_norm && s.model.is_tied);
    CHECK(s.model.has_qkv_bias && s.model.has_mlp_bias);
    CHECK(s.model.has_qk_norm);
    CHECK_INT(s.model.activation, FR_ACTIVATION_RELU);
    CHECK_INT(s.model.head_dim, 128);
    CHECK_STR(s.why_unscored_step, "");
    fr_case_setup_release(&s);
}

static void test_not_stated(void)
{
    static const struct {
        const char *other_opts, *why;
    } want[] = {
        {"layer_split=4,4", "8 layers in 2 stages, not 8 in 2 x 2"},
        {"layer_split=4,4,4,4", "16 layers"},
        {"layer_split=99999999999999999999,1,1,1", "12 layers"},
        {"layer_split=", "0 layers in 0 stages"},
        {"optimizer=muon", "the optimizer Muon"},
        {"teacher=True", "a teacher"},
    };
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        char values[512];
        fr_case_setup s;
        fr_err err;
        snprintf(values, sizeof values,
                 "llama,gpt,8,512,8,2048,3,1024,,,,,H100,2,2,2,1,4,bf16,"
                 "Megatron-Core,1.25,\"%s\"",
                 want[i].other_opts);
        CHECK_FAILS(read(ARCH_HEADER, values, &s, &err), FR_INPUT, &err);
        CHECK_HAS(err.text, want[i].why);
    }
}

CHECK_MAIN({"llama", test_llama}, {"gpt", test_gpt},
           {"rack_domain", test_rack_domain}, {"overrides", test_overrides},
           {"experts", test_experts},
           {"layers_that_do_not_divide", test_layers_that_do_not_divide},
           {"expert_split", test_expert_split}, {"measured", test_measured},
           {"memory", test_memory}, {"guessed", test_guessed},
           {"named_model", test_named_model}, {"refused", test_refused},
           {"hardware_columns", test_hardware_columns}, {"stated", test_stated},
           {"not_stated", test_not_stated})
