/* test_case_text.c: every form of free text, made up and as people write. */
#include "interop/case/case_text.h"
#include "tests/check.h"

static void test_scaling(void)
{
    CHECK_INT(fr_case_parse_scaling("FP8", FR_SCALING_CURRENT),
              FR_SCALING_CURRENT);
    CHECK_INT(fr_case_parse_scaling("FP8-CS", FR_SCALING_DELAYED),
              FR_SCALING_CURRENT);
    CHECK_INT(fr_case_parse_scaling("fp8 rowwise", FR_SCALING_CURRENT),
              FR_SCALING_ROW);
    CHECK_INT(fr_case_parse_scaling("MXFP8", FR_SCALING_CURRENT),
              FR_SCALING_BLOCK);
    CHECK_INT(fr_case_parse_scaling("NVFP4", FR_SCALING_CURRENT),
              FR_SCALING_DELAYED);
}

static void test_recompute(void)
{
    static const struct {
        const char *text;
        fr_recompute recompute;
        uint32_t parts;
        int32_t layers;
    } good[] = {
        {"", FR_RECOMPUTE_NONE, 0, 0},
        {"none unless the page says otherwise", FR_RECOMPUTE_NONE, 0, 0},
        {"No", FR_RECOMPUTE_NONE, 0, 0},
        {"full", FR_RECOMPUTE_FULL, 0, 0},
        {"Full (uniform 1)", FR_RECOMPUTE_FULL, 0, 0},
        {"full (block 5)", FR_RECOMPUTE_FULL, 0, 5},
        {"selective", FR_RECOMPUTE_SELECTIVE, 0, 0},
        {"selective (per-op SAC)", FR_RECOMPUTE_SELECTIVE,
         FR_RECOMPUTE_PART_NORM | FR_RECOMPUTE_PART_ACTIVATION, 0},
        {"selective (layernorm, moe)", FR_RECOMPUTE_SELECTIVE,
         FR_RECOMPUTE_PART_NORM | FR_RECOMPUTE_PART_EXPERTS, 0},
        {"norm, act, shared_expert", FR_RECOMPUTE_SELECTIVE,
         FR_RECOMPUTE_PART_NORM | FR_RECOMPUTE_PART_ACTIVATION |
             FR_RECOMPUTE_PART_MLP,
         0},
        {"core_attn, moe_act", FR_RECOMPUTE_SELECTIVE,
         FR_RECOMPUTE_PART_ATTENTION | FR_RECOMPUTE_PART_ACTIVATION, 0},
        {"selective (mlp)", FR_RECOMPUTE_SELECTIVE, FR_RECOMPUTE_PART_MLP, 0},
    };
    fr_err err;
    fr_case_recompute got;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        CHECK_OK(fr_case_parse_recompute(good[i].text, &got, &err), &err);
        CHECK_INT(got.recompute, good[i].recompute);
        CHECK_INT(got.parts, good[i].parts);
        CHECK_INT(got.layers, good[i].layers);
    }
    CHECK_FAILS(fr_case_parse_recompute("selective (zebra)", &got, &err),
                FR_INPUT, &err);
    CHECK_HAS(err.text, "zebra");
    CHECK_FAILS(fr_case_parse_recompute("sometimes", &got, &err), FR_INPUT,
                &err);
}

static void test_precision(void)
{
    static const struct {
        const char *text;
        fr_dtype precision;
        int grad; /* -1: the text does not say */
    } good[] = {
        {"fp16", FR_DTYPE_F16, -1},
        {"FP8-CS", FR_DTYPE_FP8, -1},
        {"MXFP8", FR_DTYPE_FP8, -1},
        {"FP8 alt recipe (fine-grained scaling)", FR_DTYPE_FP8, -1},
        {"fp8 rowwise", FR_DTYPE_FP8, -1},
        {"NVFP4", FR_DTYPE_FP4, -1},
        {"bf16", FR_DTYPE_BF16, -1},
        {"bf16-mixed", FR_DTYPE_BF16, -1},
        {"amp_bf16 MP=DEFAULT", FR_DTYPE_BF16, FR_DTYPE_F32},
        {"bf16 MP=PURE", FR_DTYPE_BF16, FR_DTYPE_BF16},
        {"amp_fp8 MP=DEFAULT", FR_DTYPE_FP8, FR_DTYPE_F32},
        {"fp16 MP=PURE", FR_DTYPE_F16, FR_DTYPE_F16},
        {"bf16 (fp32 gradients)", FR_DTYPE_BF16, FR_DTYPE_F32},
        {"TF32", FR_DTYPE_TF32, -1},
        {"fp32", FR_DTYPE_F32, -1},
        {"amp", FR_DTYPE_F16, -1},
    };
    fr_err err;
    fr_case_precision got;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        CHECK_OK(fr_case_parse_precision(good[i].text, &got, &err), &err);
        CHECK_INT(got.precision, good[i].precision);
        CHECK_INT(got.has_grad_dtype ? (int)got.grad_dtype : -1, good[i].grad);
    }
    CHECK_FAILS(fr_case_parse_precision("int3", &got, &err), FR_INPUT, &err);
}

static void test_zero(void)
{
    static const struct {
        const char *text;
        int32_t stage, group;
        bool is_fsdp;
    } good[] = {
        {"", 0, 0, false},
        {"0", 0, 0, false},
        {"3", 3, 0, false},
        {"1 (distributed optimizer)", 1, 0, false},
        {"1 (distributed_fused_adam)", 1, 0, false},
        {"distributed optimizer", 1, 0, false},
        {"1 over 8 GPUs", 1, 8, false},
        {"ZeRO-2", 2, 0, false},
        {"FSDP FULL_SHARD (ZeRO-3)", 3, 0, true},
        {"FSDP2", 3, 0, true},
        {"SHARD_GRAD_OP", 2, 0, true},
        {"FSDP NO_SHARD", 0, 0, true},
        {"HYBRID_SHARD", 3, -1, true},
        {"HSDP over 16", 3, 16, true},
        {"DDP", 0, 0, false},
        {"none", 0, 0, false},
    };
    fr_err err;
    fr_case_zero got;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        CHECK_OK(fr_case_parse_zero(good[i].text, &got, &err), &err);
        CHECK_INT(got.stage, good[i].stage);
        CHECK_INT(got.group, good[i].group);
        CHECK_INT(got.is_fsdp, good[i].is_fsdp);
    }
    CHECK_FAILS(fr_case_parse_zero("7", &got, &err), FR_INPUT, &err);
    CHECK_FAILS(fr_case_parse_zero("perhaps", &got, &err), FR_INPUT, &err);
}

static void test_schedule(void)
{
    static const struct {
        const char *text;
        int schedule;
    } good[] = {
        {"", -1},
        {"none", -1},
        {"1F1B", FR_SCHEDULE_1F1B},
        {"1F1B (some pipe)", FR_SCHEDULE_1F1B},
        {"1F1B interleaved", FR_SCHEDULE_INTERLEAVED},
        {"Interleaved 1F1B", FR_SCHEDULE_INTERLEAVED},
        {"1F1B (interleaving not stated)", FR_SCHEDULE_1F1B},
        {"GPipe", FR_SCHEDULE_GPIPE},
        {"AFAB", FR_SCHEDULE_GPIPE},
    };
    fr_err err;
    int got = -7;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        CHECK_OK(fr_case_parse_schedule(good[i].text, &got, &err), &err);
        CHECK_INT(got, good[i].schedule);
    }
    CHECK_FAILS(fr_case_parse_schedule("chimera", &got, &err), FR_INPUT, &err);
}

static void test_switches(void)
{
    CHECK_INT(fr_case_parse_flash("yes (attn_impl flash)"), 1);
    CHECK_INT(fr_case_parse_flash("SDPA"), 1);
    CHECK_INT(fr_case_parse_flash("TE/fused"), 1);
    CHECK_INT(fr_case_parse_flash("unfused (--attention-backend)"), 0);
    CHECK_INT(fr_case_parse_flash("no (an old default)"), 0);
    CHECK_INT(fr_case_parse_flash(""), -1);
    CHECK_INT(fr_case_parse_flash("math"), 0);
    CHECK_INT(fr_case_find_number("fsdp cpu_offloading_num_layers=38",
                                  "cpu_offloading_num_layers"),
              38);
    CHECK_INT(fr_case_find_number("num_layers=many", "num_layers"), 0);
    CHECK_INT(fr_case_parse_flash("yes (FlashAttention-2: by default)"), 1);
    CHECK_INT(fr_case_parse_flash_kind("yes (FlashAttention-2: by default)"),
              FR_FLASH_2);
    CHECK_INT(fr_case_parse_flash_kind("yes (FlashAttention-1)"), FR_FLASH_1);
    CHECK_INT(fr_case_parse_flash_kind("yes (cuDNN/TE fused)"),
              FR_FLASH_NATIVE);
    CHECK_INT(fr_case_parse_flash_kind("FlashAttention-3"), FR_FLASH_NATIVE);
    CHECK_INT(fr_case_parse_flash_kind("SDPA"), -1);
    CHECK_INT(fr_case_parse_flash_kind(""), -1);
    CHECK_INT(fr_case_parse_switch("Yes (default when tp>1)"), 1);
    CHECK_INT(fr_case_parse_switch(""), -1);
    const char *opts = "overlap_grad_reduce=True; overlap_param_gather=None";
    CHECK_INT(fr_case_find_switch(opts, "overlap_grad_reduce"), 1);
    CHECK_INT(fr_case_find_switch(opts, "overlap_param_gather"), 0);
    CHECK_INT(fr_case_find_switch(opts, "tp_comm_overlap"), -1);
    CHECK_INT(fr_case_find_switch("optimizer offload", "optimizer offload"), 1);
}

static void test_gpu(void)
{
    static const struct {
        const char *text, *family, *form;
        double memory_gb, memory_Bps, power_w;
    } good[] = {
        {"A100-SXM-80GB", "a100", "sxm", 80, 0, 0},
        {"H100-SXM-96GB HBM2e 2.4TB/s (500W cap)", "h100", "sxm", 96, 2.4e12,
         500},
        {"V100-SXM2-32GB", "v100", "sxm", 32, 0, 0},
        {"GB200", "gb200", "", 0, 0, 0},
        {"NVIDIA H100 PCIe", "h100", "pcie", 0, 0, 0},
        {"DGX H200", "h200", "", 0, 0, 0},
        {"NVIDIA GeForce RTX 4090 24GB", "rtx-4090", "", 24, 0, 0},
        {"NVIDIA Blackwell GPU (B200-SXM-180GB)", "b200", "sxm", 180, 0, 0},
        {"NVIDIA Blackwell Ultra GPU (GB300)", "gb300", "", 0, 0, 0},
        {"NVIDIA H100-SXM5-80GB", "h100", "sxm", 80, 0, 0},
        {"AMD Instinct MI300X", "mi300x", "", 0, 0, 0},
        {"A100 40 GB, 350 W", "a100", "", 40, 0, 350},
        {"A10G", "a10g", "", 0, 0, 0}, /* 24 GB: the G is the name's */
        {"A10G 24G", "a10g", "", 24, 0, 0},
        {"A100-SXM4-80G", "a100", "sxm", 80, 0, 0},
        {"NVIDIA RTX PRO 6000 Blackwell 96GB", "rtx-pro-6000", "", 96, 0, 0},
        {"RTX 6000 Ada Generation", "rtx-6000-ada", "", 0, 0, 0},
        {"Quadro RTX 6000", "quadro-rtx-6000", "", 0, 0, 0},
        {"TPU v5p", "tpu-v5p", "", 0, 0, 0},
    };
    fr_err err;
    fr_case_gpu got;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        CHECK_OK(fr_case_parse_gpu(good[i].text, &got, &err), &err);
        CHECK_STR(got.family, good[i].family);
        CHECK_STR(got.form, good[i].form);
        CHECK_NEAR(got.memory_gb, good[i].memory_gb, 1e-12);
        CHECK_NEAR(got.memory_Bps, good[i].memory_Bps, 1e-12);
        CHECK_NEAR(got.power_w, good[i].power_w, 1e-12);
    }
    CHECK_FAILS(fr_case_parse_gpu("", &got, &err), FR_INPUT, &err);
    CHECK_FAILS(fr_case_parse_gpu("NVIDIA", &got, &err), FR_INPUT, &err);
}

static void test_intra(void)
{
    static const struct {
        const char *text;
        bool is_nvlink, is_switch, is_pcie;
        double Bps;
        int64_t domain;
    } good[] = {
        {"", false, false, false, 0, 0},
        {"not stated", false, false, false, 0, 0},
        {"NVLink3 NVSwitch", true, true, false, 300e9, 0},
        {"NVLink3 NVSwitch 600GB/s", true, true, false, 300e9, 0},
        {"NVLink 400GB/s", true, false, false, 200e9, 0},
        {"NVLink2 (4 GPUs)", true, false, false, 150e9, 0},
        {"NVLink4", true, false, false, 450e9, 0},
        {"NVLink5 NVL72 domain", true, true, false, 900e9, 72},
        {"NVSwitch (a box)", false, true, false, 0, 0},
        {"PCIe 4", false, false, true, 24e9, 0},
        {"PCIe Gen5 x16", false, false, true, 48e9, 0},
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        fr_case_intra got;
        fr_case_parse_intra(good[i].text, &got);
        CHECK_INT(got.is_nvlink, good[i].is_nvlink);
        CHECK_INT(got.is_switch, good[i].is_switch);
        CHECK_INT(got.is_pcie, good[i].is_pcie);
        CHECK_NEAR(got.device_Bps, good[i].Bps, 1e-12);
        CHECK_INT(got.domain, good[i].domain);
    }
}

static void test_inter(void)
{
    static const struct {
        const char *text;
        fr_nic_kind kind;
        int64_t n_nics;
        double nic_Bps, host_Bps, device_Bps;
    } good[] = {
        {"", FR_NIC_UNKNOWN, 0, 0, 0, 0},
        {"not stated", FR_NIC_UNKNOWN, 0, 0, 0, 0},
        {"InfiniBand", FR_NIC_INFINIBAND, 0, 0, 0, 0},
        {"InfiniBand HDR 8x200Gb/s (some cluster)", FR_NIC_INFINIBAND, 8, 25e9,
         0, 0},
        {"InfiniBand 8x50GB/s", FR_NIC_INFINIBAND, 8, 50e9, 0, 0},
        {"NDR InfiniBand 4 x 400 Gbps", FR_NIC_INFINIBAND, 4, 50e9, 0, 0},
        {"RoCE 1600Gb/s per node", FR_NIC_ROCE, 0, 0, 200e9, 0},
        {"RDMA 400Gb/s per GPU (a rack)", FR_NIC_ROCE, 0, 0, 0, 50e9},
        {"Omni-Path 4x100Gb/s per node", FR_NIC_OMNI_PATH, 4, 12.5e9, 0, 0},
        {"InfiniBand HDR (not stated)", FR_NIC_INFINIBAND, 0, 25e9, 0, 0},
        {"EFA 4x100Gb/s", FR_NIC_EFA, 4, 12.5e9, 0, 0},
        {"Slingshot 11", FR_NIC_SLINGSHOT, 0, 25e9, 0, 0},
        {"25GbE", FR_NIC_ETHERNET, 0, 0, 3.125e9, 0},
        {"Ethernet 100Gb/s per NIC", FR_NIC_ETHERNET, 0, 12.5e9, 0, 0},
        {"Storage: 2x ConnectX-7 IB NDR 400Gb/s, Compute: 7x ConnectX-7 IB NDR "
         "300Gb/s, Ma",
         FR_NIC_INFINIBAND, 7, 37.5e9, 0, 0},
        {"Management: 1 x 100 Gb / Sec Ethernet, Compute: 8 x ConnectX - 7 IB "
         "NDR 400 Gb /",
         FR_NIC_INFINIBAND, 8, 50e9, 0, 0},
        {"Compute: 8x Quantum-2 400Gb/s InfiniBand, Management: 2x100Gb/s "
         "Ethernet",
         FR_NIC_INFINIBAND, 8, 50e9, 0, 0},
        {"Storage+Management: 1x BlueField 2 DPU 100Gb/s, Compute: 8x Connec",
         FR_NIC_UNKNOWN, 8, 0, 0, 0},
        {"1x Ethernet 100Gb/Sec, 6x Quantum-2 CX7 InfiniBand (400Gb/s)",
         FR_NIC_INFINIBAND, 6, 50e9, 0, 0},
        {"Infiniband, Ethernet", FR_NIC_INFINIBAND, 0, 0, 0, 0},
        {"BF3 200Gbps for NS and 2xBF3 400Gbps for EW", FR_NIC_UNKNOWN, 2, 50e9,
         0, 0},
        {"RoCE2; bandwidth for GPU-PCIe: 504 GB/s; PCIe-NIC: 500 GB/s",
         FR_NIC_ROCE, 0, 0, 0, 0},
        {"Management: 1x Ethernet 10GB/Sec", FR_NIC_UNKNOWN, 0, 0, 0, 0},
        {"InfiniBand, 8x37Gb/s", FR_NIC_INFINIBAND, 8, 4.625e9, 0, 0},
    };
    static const char *const bad[] = {
        "2x NDR 400Gb/s, 8x NDR 200Gb/s", "8x2x NDR 400Gb/s",
        "InfiniBand 200Gb/s or 400Gb/s",  "InfiniBand 8x200",
        "InfiniBand 0x200Gb/s",           "RoCE 4x200Gb/s and EFA 4x100Gb/s",
    };
    fr_err err;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        fr_case_inter got;
        CHECK_OK(fr_case_parse_inter(good[i].text, &got, &err), &err);
        CHECK_INT(got.kind, good[i].kind);
        CHECK_INT(got.n_nics, good[i].n_nics);
        CHECK_NEAR(got.nic_Bps, good[i].nic_Bps, 1e-12);
        CHECK_NEAR(got.host_Bps, good[i].host_Bps, 1e-12);
        CHECK_NEAR(got.device_Bps, good[i].device_Bps, 1e-12);
    }
    for (size_t i = 0; i < FR_LENGTH(bad); i++) {
        fr_case_inter got;
        CHECK_FAILS(fr_case_parse_inter(bad[i], &got, &err), FR_INPUT, &err);
        CHECK(strstr(err.text, "not understood: '") != NULL);
    }
}

CHECK_MAIN({"scaling", test_scaling}, {"recompute", test_recompute},
           {"precision", test_precision}, {"zero", test_zero},
           {"schedule", test_schedule}, {"switches", test_switches},
           {"gpu", test_gpu}, {"intra", test_intra}, {"inter", test_inter})
