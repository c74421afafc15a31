/*
 * case_text.h: the rules by which free text in a row of measurements is read:
 * "FSDP FULL_SHARD (ZeRO-3)", "InfiniBand HDR 8x200Gb/s", "amp_bf16 MP=PURE".
 * Letters count without case.  Pure functions of the text.
 */
#ifndef FR_INTEROP_CASE_CASE_TEXT_H
#define FR_INTEROP_CASE_CASE_TEXT_H

#include "core/base/err.h"
#include "plan/decide/plan.h"
#include "spec/cluster/cluster.h"

/* Does `word` stand in the text, case ignored? */
bool fr_case_has(const char *text, const char *word);

/* Letters and digits in lower case: "LLAMA3.1-405B" -> "llama31405b". */
void fr_case_squeeze(const char *text, char *out, size_t n);

/* "none", "none (...)", "full (uniform 1)", "full (block 4)", "selective",
 * "selective (layernorm, moe)", "norm, act".  FR_INPUT: an unknown part. */
typedef struct fr_case_recompute {
    fr_recompute recompute;
    uint32_t parts; /* of SELECTIVE; 0: the text names none */
    int32_t layers; /* of FULL; 0: all */
} fr_case_recompute;
FR_CHECKED fr_status fr_case_parse_recompute(const char *text,
                                             fr_case_recompute *out,
                                             fr_err *err);

/* "fp16", "FP8-CS", "MXFP8", "NVFP4", "amp_bf16 MP=PURE", "bf16 mixed". */
typedef struct fr_case_precision {
    fr_dtype precision;
    bool has_grad_dtype; /* the text says in what gradients are reduced */
    fr_dtype grad_dtype;
} fr_case_precision;
/* Reads the scaling from the same text; `other` if it says fp8 and no more. */
fr_scaling fr_case_parse_scaling(const char *text, fr_scaling other);
FR_CHECKED fr_status fr_case_parse_precision(const char *text,
                                             fr_case_precision *out,
                                             fr_err *err);

/* "0", "1 (distributed optimizer)", "FSDP FULL_SHARD (ZeRO-3)", "1 over 8
 * GPUs", "HYBRID_SHARD", "HSDP".  group: 0 all, -1 the GPUs of a node. */
typedef struct fr_case_zero {
    int32_t stage, group;
    bool is_fsdp;
} fr_case_zero;
FR_CHECKED fr_status fr_case_parse_zero(const char *text, fr_case_zero *out,
                                        fr_err *err);

/* "1F1B", "1F1B interleaved", "GPipe", "ZB-H1", "none"; -1 stands for none or
 * not stated.  FR_INPUT: a schedule that is not known. */
FR_CHECKED fr_status fr_case_parse_schedule(const char *text, int *out,
                                            fr_err *err);

/* "yes (cuDNN/TE fused)", "SDPA", "no (23.08 default)"; 1, 0, -1: not said. */
int fr_case_parse_flash(const char *text);
/* "yes (FlashAttention-2)": which, -1: not said. */
int fr_case_parse_flash_kind(const char *text);
/* "yes ...", "no ...", "true"; -1: not said. */
int fr_case_parse_switch(const char *text);
/* "overlap_grad_reduce=True" within other options; -1: not said. */
int fr_case_find_switch(const char *text, const char *name);
/* "cpu_offloading_num_layers=40" within other options; 0: not said. */
int64_t fr_case_find_number(const char *text, const char *name);

/* "A100-SXM-80GB", "H100-SXM-96GB HBM2e 2.4TB/s (500W cap)". */
typedef struct fr_case_gpu {
    char family[32];  /* "a100" */
    char form[8];     /* "sxm", "pcie", "nvl"; "": not said */
    double memory_gb; /* 0: not said, as all below */
    double memory_Bps;
    double power_w;
} fr_case_gpu;
FR_CHECKED fr_status fr_case_parse_gpu(const char *text, fr_case_gpu *out,
                                       fr_err *err);

/* "NVLink3 NVSwitch 600GB/s", "NVLink2 (4 GPUs)", "NVLink5 NVL72 domain",
 * "PCIe 4". */
typedef struct fr_case_intra {
    bool is_said, is_nvlink, is_switch, is_pcie;
    double device_Bps; /* one GPU into the fabric, one direction; 0: not said */
    int64_t domain;    /* GPUs of one NVLink domain; 0: not said */
} fr_case_intra;
void fr_case_parse_intra(const char *text, fr_case_intra *out);

/* "... RoCE ...": what the text names, FR_NIC_UNKNOWN: nothing. */
fr_nic_kind fr_case_nic_kind(const char *text);

/* The first rate of the text, "400 Gb/s", "2.4TB/s", "25GbE", 0: none; where it
 * begins and ends (both may be NULL). */
double fr_case_find_rate_Bps(const char *text, const char **begin,
                             const char **end);

/*
 * "InfiniBand HDR 8x200Gb/s", "RoCE 1600Gb/s per node", "RDMA 400Gb/s per
 * GPU", "Storage: 2x NDR 400Gb/s, Compute: 8x NDR 400Gb/s"; all 0: not said.
 * Networks for storage and management and the PCIe of a node are passed over,
 * and plain Ethernet beside another network.  FR_INPUT, with the words: more
 * than one reading is left.
 */
typedef struct fr_case_inter {
    fr_nic_kind kind;
    int64_t n_nics;    /* of a host; 0: not said */
    double nic_Bps;    /* of one NIC */
    double host_Bps;   /* of all NICs of a host together */
    double device_Bps; /* per GPU */
} fr_case_inter;
FR_CHECKED fr_status fr_case_parse_inter(const char *text, fr_case_inter *out,
                                         fr_err *err);

#endif
