/* datasheet.c: see datasheet.h. */
#include "cost_models/compute/datasheet.h"

#include <math.h>
#include <string.h>

/*
 * Large matrix products reach 0.75 to 0.85 of the dense peak: 0.8 on
 * AVX-512 with OpenBLAS (121 of 152 GFLOP/s, docs/calibration.md); 0.78 of
 * 312 TFLOP/s on an A100 (MegaBlocks, arXiv 2211.15841, fig. 9 shows cuBLAS
 * at 240 to 250).
 */
static const double gemm_efficiency = 0.78;
/* FlashAttention-2 (arXiv 2307.08691) on A100: 73 % forward, 63 % backward;
 * at the sequence lengths of training nearer to half. */
static const double attention_efficiency = 0.5;
/* BabelStream reaches 0.85 to 0.92 of HBM (A100: 1.40 of 1.555 TB/s). */
static const double memory_efficiency = 0.88;
/* Launch latency between dependent kernels of one CUDA stream: 2 to 4 us
 * (Zhang, Meng, Liu, IISWC 2019); a call on a CPU: below 1 us. */
static const double gpu_launch_s = 3e-6;
static const double cpu_launch_s = 3e-7;
/* A CPU without a peak for fp32 in its file: 16 lanes, 2 units, 2.4 GHz. */
static const double unknown_core_flops = 60e9;
static const double unknown_memory_Bps = 15e9;

static const char *const dtype_peaks[FR_DTYPE_N] = {
    [FR_DTYPE_F32] = "fp32",  [FR_DTYPE_BF16] = "bf16", [FR_DTYPE_F16] = "fp16",
    [FR_DTYPE_TF32] = "tf32", [FR_DTYPE_FP8] = "fp8",   [FR_DTYPE_FP4] = "fp4",
    [FR_DTYPE_F64] = "fp64",  [FR_DTYPE_I32] = "fp32",  [FR_DTYPE_U8] = "fp32",
};

fr_device_rates fr_device_rates_of_type(const fr_device_type *device)
{
    fr_device_rates rates = {.n_cores = 1};

    rates.is_gpu = device->kind == FR_DEVICE_GPU;
    if (!rates.is_gpu && device->n_cores > 0)
        rates.n_cores = device->n_cores;
    for (int i = 0; i < FR_DTYPE_N; i++)
        rates.flops[i] =
            gemm_efficiency * fr_device_peak_flops(device, dtype_peaks[i]);
    if (rates.flops[FR_DTYPE_F32] <= 0.0)
        rates.flops[FR_DTYPE_F32] =
            gemm_efficiency * unknown_core_flops * (double)rates.n_cores;
    for (int i = 0; i < FR_DTYPE_N; i++)
        if (rates.flops[i] <= 0.0)
            rates.flops[i] = rates.flops[FR_DTYPE_F32];
    rates.vector_flops = rates.flops[FR_DTYPE_F32] / 4.0;
    rates.memory_Bps =
        memory_efficiency *
        (device->memory_Bps > 0.0 ? device->memory_Bps : unknown_memory_Bps);
    rates.launch_s = rates.is_gpu ? gpu_launch_s : cpu_launch_s;
    return rates;
}

fr_device_rates fr_device_rates_of(const fr_cluster *cluster, int64_t node)
{
    return fr_device_rates_of_type(fr_cluster_device(cluster, node));
}

double fr_device_compute_s(const fr_device_rates *rates, const fr_instr *instr,
                           int n_threads)
{
    double share = rates->is_gpu
                       ? 1.0
                       : fmin(1.0, (double)n_threads / (double)rates->n_cores);
    double flop = (double)fr_instr_flop(instr);
    double bytes = (double)fr_instr_moved_bytes(instr, 1);
    double rate;

    switch ((fr_op)instr->op) {
    case FR_OP_LINEAR_FWD:
    case FR_OP_LINEAR_DGRAD:
    case FR_OP_LINEAR_WGRAD:
        rate = rates->flops[instr->dtype];
        break;
    case FR_OP_ATTN_FWD:
    case FR_OP_ATTN_BWD:
        rate =
            rates->flops[instr->dtype] * attention_efficiency / gemm_efficiency;
        break;
    default:
        rate = rates->vector_flops;
        break;
    }
    /* One core seldom fills the channels: half of them at least. */
    return rates->launch_s +
           fmax(flop / (rate * share),
                bytes / (rates->memory_Bps * fmax(share, 0.5)));
}

fr_link_cost fr_cluster_link_cost(const fr_cluster *cluster, bool is_net)
{
    const fr_node_type *node = fr_cluster_node_type(cluster, 0);
    fr_link_cost link = {0};
    fr_path path;

    if (is_net && fr_cluster_n_nodes(cluster) > 1) {
        path = fr_cluster_path(cluster, 0, 1);
        link.latency_s = path.latency_s;
        if (path.bandwidth_Bps > 0.0)
            link.s_per_byte = 1.0 / path.bandwidth_Bps;
    } else {
        double Bps =
            node->intra_p2p_Bps > 0.0 ? node->intra_p2p_Bps : node->intra_Bps;
        link.latency_s = node->intra_latency_s;
        if (Bps <= 0.0)
            /* Shared memory: a copy reads and writes. */
            Bps = fr_device_rates_of(cluster, 0).memory_Bps / 2.0;
        link.s_per_byte = 1.0 / Bps;
    }
    if (!fr_device_rates_of(cluster, 0).is_gpu)
        link.reduce_s_per_byte =
            3.0 / fr_device_rates_of(cluster, 0).memory_Bps;
    return link;
}
