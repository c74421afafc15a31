/* plan_kinds.c: see plan_kinds.h. */
#include "plan/decide/plan_kinds.h"

static const char *const recomputes[FR_RECOMPUTE_N] = {
    [FR_RECOMPUTE_NONE] = "none",
    [FR_RECOMPUTE_SELECTIVE] = "selective",
    [FR_RECOMPUTE_FULL] = "full",
};
const fr_names fr_recompute_names = FR_NAMES(recomputes);

static const char *const recompute_parts[] = {
    "attention", "norm", "activation", "mlp", "experts", "products", "latent"};
const fr_names fr_recompute_part_names = FR_NAMES(recompute_parts);

static const char *const rank_orders[FR_RANK_ORDER_N] = {
    [FR_RANK_ORDER_TP_DP_PP] = "tp-dp-pp",
    [FR_RANK_ORDER_TP_PP_DP] = "tp-pp-dp",
    [FR_RANK_ORDER_DP_TP_PP] = "dp-tp-pp",
    [FR_RANK_ORDER_DP_PP_TP] = "dp-pp-tp",
    [FR_RANK_ORDER_PP_TP_DP] = "pp-tp-dp",
    [FR_RANK_ORDER_PP_DP_TP] = "pp-dp-tp",
};
const fr_names fr_rank_order_names = FR_NAMES(rank_orders);

static const char *const protocols[FR_PROTOCOL_N] = {
    [FR_PROTOCOL_AUTO] = "auto",
    [FR_PROTOCOL_LL] = "ll",
    [FR_PROTOCOL_LL128] = "ll128",
    [FR_PROTOCOL_SIMPLE] = "simple",
};
const fr_names fr_protocol_names = FR_NAMES(protocols);

static const char *const server_places[FR_SERVER_N] = {
    [FR_SERVER_HOST] = "host",
    [FR_SERVER_WORKER] = "worker",
    [FR_SERVER_DEVICE] = "device",
};
const fr_names fr_server_place_names = FR_NAMES(server_places);

static const char *const cp_kinds[FR_CP_N] = {
    [FR_CP_RING] = "ring",
    [FR_CP_ALL_GATHER] = "all-gather",
    [FR_CP_ALL_TO_ALL] = "all-to-all",
};
const fr_names fr_cp_kind_names = FR_NAMES(cp_kinds);

static const char *const dispatches[FR_DISPATCH_N] = {
    [FR_DISPATCH_ALL_TO_ALL] = "all-to-all",
    [FR_DISPATCH_BY_NODE] = "by-node",
};
const fr_names fr_dispatch_names = FR_NAMES(dispatches);

static const char *const flash_kinds[FR_FLASH_N] = {
    [FR_FLASH_NATIVE] = "native",
    [FR_FLASH_2] = "flash-2",
    [FR_FLASH_1] = "flash-1",
};
const fr_names fr_flash_kind_names = FR_NAMES(flash_kinds);

static const char *const kernel_sets[FR_KERNELS_N] = {
    [FR_KERNELS_FUSED] = "fused",
    [FR_KERNELS_COMPILED] = "compiled",
    [FR_KERNELS_EAGER] = "eager",
    [FR_KERNELS_OWN] = "forerun",
};
const fr_names fr_kernel_set_names = FR_NAMES(kernel_sets);

static const char *const compress_units[FR_COMPRESS_UNIT_N] = {
    [FR_COMPRESS_BUCKET] = "bucket",
    [FR_COMPRESS_TENSOR] = "tensor",
};
const fr_names fr_compress_unit_names = FR_NAMES(compress_units);

static const char *const scalings[FR_SCALING_N] = {
    [FR_SCALING_DELAYED] = "delayed",
    [FR_SCALING_CURRENT] = "current",
    [FR_SCALING_BLOCK] = "block",
    [FR_SCALING_ROW] = "row",
};
const fr_names fr_scaling_names = FR_NAMES(scalings);

static const char *const cuda_graphs[FR_CUDA_GRAPHS_N] = {
    [FR_CUDA_GRAPHS_NONE] = "none",
    [FR_CUDA_GRAPHS_LAYER] = "layer",
    [FR_CUDA_GRAPHS_FULL] = "full",
};
const fr_names fr_cuda_graphs_names = FR_NAMES(cuda_graphs);

static const char *const zero_units[FR_ZERO_UNIT_N] = {
    [FR_ZERO_UNIT_LAYER] = "layer",
    [FR_ZERO_UNIT_PARAMETER] = "parameter",
};
const fr_names fr_zero_unit_names = FR_NAMES(zero_units);
