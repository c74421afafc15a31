/* nccl_constants.c: see nccl_constants.h. */
#include "cost_models/link/nccl_constants.h"

const double fr_nccl_ring_base_s[] = {6.6e-6, 14e-6, 8.4e-6};
const double fr_nccl_tree_base_s[] = {6.8e-6, 14e-6, 8.4e-6};

const double fr_nccl_ring_hop_s[][FR_NCCL_PROTOCOL_N] = {
    [FR_NCCL_NVLINK] = {0.6e-6, 1.9e-6, 3.4e-6},
    [FR_NCCL_PCI] = {1.0e-6, 2.5e-6, 5.7e-6},
    [FR_NCCL_NET] = {2.7e-6, 4.0e-6, 14e-6},
};

const double fr_nccl_tree_hop_s[][FR_NCCL_PROTOCOL_N] = {
    [FR_NCCL_NVLINK] = {0.6e-6, 1.25e-6, 4.0e-6},
    [FR_NCCL_PCI] = {1.0e-6, 1.9e-6, 4.0e-6},
    [FR_NCCL_NET] = {5.0e-6, 8.5e-6, 14e-6},
};

const double fr_nccl_nvls_s = 25e-6;
const double fr_nccl_nvls_tree_hop_s = 20.9e-6;
const double fr_nccl_nvls_net_s = 18e-6;
const double fr_nccl_collnet_hop_s = 3.7e-6;
const double fr_nccl_collnet_member_s = 0.4e-6;
const double fr_nccl_collnet_net_s = 31e-6;
const double fr_nccl_pat_base_s = 8e-6;
const double fr_nccl_pat_hop_s = 4e-6; /* 14 us / 3.5 */
const double fr_nccl_pat_rank_s = 2.8e-6;

const double fr_nccl_tree_share = 0.92;
const double fr_nccl_pat_share = 0.75;
const double fr_nccl_tree_ll_share = 1.0 / 3.8;
const double fr_nccl_tree_ll128_share[] = {7.0 / 9.0, 120.0 / 128.0};

const double fr_nccl_tree_size_share[][FR_NCCL_TREE_SIZES] = {
    {1,  1,  1,  1,  .9, .8, .7, .7, .7, .7, .6,
     .5, .4, .4, .5, .6, .7, .8, .9, 1,  1,  1},
    {1,  1,  1,  1,  1,  .9, .8, .8, .8, .7, .6,
     .6, .6, .5, .6, .6, .7, .7, .8, .9, .9, 1},
    {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6,
     .5, .5, .5, .5, .5, .5, .6, .6, .7, .8, .9},
};

const double fr_nccl_proxy_s = 1e-6;

/* NCCL's defaults: 24 channels times slices of 1 MiB (a quarter of a 4 MiB
 * buffer), and times NVLS chunks of 128 KiB. */
const double fr_nccl_slice_bytes = 24.0 * 1048576.0;
const double fr_nccl_nvls_loop_bytes = 24.0 * 131072.0;
