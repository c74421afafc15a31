/* plan_fields.c: the tables of the fields of a plan and of the facts of its
 * execution, in the order of the help text. */
#include "plan/decide/plan_fields.h"

#include "plan/codec/compressor.h"
#include "plan/collective/collective.h"

/* A row sets these columns; all others stay empty. */
#define ROW(symbol, member, json, ...)                                         \
    [FR_PLAN_##symbol] = {.field.key = (json),                                 \
                          .field.kind = FR_FIELD_KIND(((fr_plan *)0)->member), \
                          .field.offset = offsetof(fr_plan, member),           \
                          .field.n_bytes = sizeof(((fr_plan *)0)->member),     \
                          __VA_ARGS__}
/* The same of a fact of execution. */
#define FACT(symbol, member, json, ...)                                        \
    [FR_EXECUTION_##symbol] = {                                                \
        .field.key = (json),                                                   \
        .field.kind = FR_FIELD_KIND(((fr_plan *)0)->execution.member),         \
        .field.offset = offsetof(fr_plan, execution.member),                   \
        .field.n_bytes = sizeof(((fr_plan *)0)->execution.member),             \
        __VA_ARGS__}
#define ORIGIN(text) .origin = (text)
#define INITIAL(value) .field.initial = (value)
#define RANGE(low, high) .field.min = (low), .field.max = (high)
#define NAMES(table) .field.names = &(table)
#define OFFERS(which) .field.is_offered = (which)
#define COUNT(member) .field.count_offset = offsetof(fr_plan, member)
#define METAVAR(text) .field.metavar = (text)
#define OPTION(name, text) .field.option = (name), .field.help = (text)
#define SHOWN(when) .shown = FR_SHOWN_##when
#define PART_OF(owner, values)                                                 \
    .part_of = FR_PLAN_##owner, .part_values = (values)
#define BIT(value) (UINT64_C(1) << (value))
#define ABOVE_ONE (~UINT64_C(3))

enum { MANY_RANKS = 1 << 20 };

/* Returns whether the plan's compressor has this number, by its traits. */
static bool has_number(const fr_plan *plan, fr_compressor_number number)
{
    return (unsigned)plan->compressor < (unsigned)fr_n_compressors &&
           fr_compressors[plan->compressor]->number == number;
}

static bool has_rank(const fr_plan *plan)
{
    return has_number(plan, FR_COMPRESSOR_BY_RANK);
}

static bool has_density(const fr_plan *plan)
{
    return has_number(plan, FR_COMPRESSOR_BY_DENSITY);
}

static bool has_codec(const fr_plan *plan)
{
    return plan->compressor != FR_COMPRESSOR_NONE;
}

static bool wants_feedback(const fr_plan *plan)
{
    return (unsigned)plan->compressor < (unsigned)fr_n_compressors &&
           fr_compressors[plan->compressor]->wants_error_feedback;
}

static bool has_capacity(const fr_plan *plan)
{
    return plan->expert_capacity > 0;
}

static bool has_servers(const fr_plan *plan)
{
    return fr_collective_is_by_servers(plan->collective);
}

static bool has_fused_kernels(const fr_plan *plan)
{
    return plan->execution.kernels == FR_KERNELS_FUSED;
}

/* An algorithm that lowering chooses by itself is not offered. */
static bool is_collective_offered(int i)
{
    return fr_collectives[i] == NULL || !fr_collectives[i]->is_internal;
}

/* The dtypes of products come first; only these are offered. */
static bool is_dtype_offered(int i)
{
    return i <= FR_DTYPE_FP4;
}

static bool is_grad_dtype_offered(int i)
{
    return fr_dtype_is_of_gradients((fr_dtype)i);
}

/* The description says "flash", "flash2" or "flash1". */
static const char *const flash_words[FR_FLASH_N] = {
    [FR_FLASH_NATIVE] = "", [FR_FLASH_2] = "2", [FR_FLASH_1] = "1"};
static const fr_names flash_word_names = FR_NAMES(flash_words);

const fr_plan_field fr_plan_fields[FR_PLAN_FIELDS_N] = {
    ROW(DP, dp, "dp", INITIAL(1), RANGE(1, MANY_RANKS), .word = " dp*",
        SHOWN(ALWAYS), OPTION("dp", "data-parallel ranks")),
    ROW(TP, tp, "tp", INITIAL(1), RANGE(1, MANY_RANKS), .word = " tp*",
        SHOWN(ALWAYS), OPTION("tp", "tensor-parallel ranks")),
    ROW(PP, pp, "pp", INITIAL(1), RANGE(1, FR_PLAN_MAX_STAGES), .word = " pp*",
        SHOWN(ALWAYS), OPTION("pp", "pipeline stages")),
    ROW(CP, cp, "cp", INITIAL(1), RANGE(1, MANY_RANKS), .word = " cp*",
        OPTION("cp", "context-parallel ranks")),
    ROW(EP, ep, "ep", INITIAL(1), RANGE(1, MANY_RANKS), .word = " ep*",
        OPTION("ep", "expert-parallel ranks")),
    ROW(VPP, vpp, "vpp", INITIAL(1), RANGE(1, FR_PLAN_MAX_STAGES),
        .word = " vpp*", PART_OF(PP, ABOVE_ONE),
        OPTION("vpp", "virtual stages (model chunks) per pipeline rank")),
    ROW(MICRO_BATCH, micro_batch, "micro_batch", INITIAL(1), RANGE(1, 1 << 30),
        .word = " mb*", SHOWN(ALWAYS),
        OPTION("micro-batch", "sequences per micro-batch")),
    ROW(SCHEDULE, schedule, "schedule", NAMES(fr_schedule_names),
        INITIAL(FR_SCHEDULE_1F1B), .word = " *", SHOWN(ALWAYS),
        PART_OF(PP, ABOVE_ONE), OPTION("schedule", "pipeline schedule")),
    ROW(ZERO, zero_stage, "zero", RANGE(0, 3), .word = " zero*",
        OPTION("zero", "ZeRO stage: 1 shards the optimizer state over dp")),
    ROW(RECOMPUTE, recompute, "recompute", NAMES(fr_recompute_names),
        .word = " recompute=*",
        OPTION("recompute", "activations to recompute in backward")),
    ROW(SEQUENCE_PARALLEL, is_sequence_parallel, "sequence_parallel",
        .word = " sp", PART_OF(TP, ABOVE_ONE),
        OPTION("sequence-parallel",
               "shard norms and residuals along the sequence over tp")),
    ROW(OVERLAP, is_overlap, "overlap", INITIAL(true), .word = " no-overlap",
        OPTION("overlap", "reduce gradients while backward still runs")),
    /* PyTorch DDP's 25 MB. */
    ROW(BUCKET, bucket_bytes, "bucket_bytes", .field.is_bytes = true,
        INITIAL(25000000), .word = " bucket *", PART_OF(ZERO, BIT(0) | BIT(1)),
        OPTION("bucket", "size of a gradient bucket: 25MB; 0B: one bucket")),
    ROW(COMPRESS, compressor, "compressor", NAMES(fr_compressor_names),
        METAVAR("NAME"), .word = " compress=*",
        OPTION("compress",
               "compression of gradients: none, bf16, int8, topk[:DENSITY], "
               "powersgd[:RANK], onebit, randomk[:DENSITY]")),
    ROW(COMPRESSOR_RANK, compressor_rank, "compressor_rank", INITIAL(4),
        .word = ":*", SHOWN(PART), .is_used = has_rank),
    ROW(COMPRESSOR_DENSITY, compressor_density, "compressor_density",
        INITIAL(0.01), .word = ":*", SHOWN(PART), .is_used = has_density),
    ROW(ERROR_FEEDBACK, has_error_feedback, "error_feedback", INITIAL(true),
        .word = " no-error-feedback", SHOWN(CHANGED_PART),
        .is_used = wants_feedback,
        OPTION("error-feedback",
               "add the error of the compression to the next step")),
    ROW(COLLECTIVE, collective, "collective", NAMES(fr_collective_names),
        OFFERS(is_collective_offered), .word = " collective=*",
        OPTION("collective", "algorithm of the gradient reduction")),
    ROW(NCCL_PROTOCOL, protocol, "nccl_protocol", NAMES(fr_protocol_names),
        .word = " protocol=*",
        OPTION("nccl-protocol", "GPUs: NCCL's protocol for this reduction")),
    ROW(NCCL_CHANNELS, n_channels, "nccl_channels", RANGE(0, FR_MAX_CHANNELS),
        .word = " channels=*",
        OPTION("nccl-channels", "GPUs: number of NCCL's channels for this "
                                "reduction; 0: its choice")),
    ROW(SERVER_PLACE, server_place, "server_place",
        NAMES(fr_server_place_names), .word = " served-by=*",
        .is_used = has_servers,
        OPTION("server-place", "parameter servers: on the hosts, one push per "
                               "node or per worker, or on the devices")),
    ROW(SERVERS, n_servers, "servers", RANGE(0, MANY_RANKS),
        .word = " servers=*", .is_used = has_servers,
        OPTION(
            "servers",
            "parameter servers: number of nodes (devices) that serve; 0: all")),
    ROW(RANK_ORDER, rank_order, "rank_order", NAMES(fr_rank_order_names),
        .word = " order=*",
        OPTION("rank-order",
               "order of the axes along the ranks, the fastest first")),
    ROW(LAYER_SPLIT, layer_split, "layer_split", COUNT(n_split),
        METAVAR("SPLIT"), .word = " split=*",
        OPTION("layer-split", "layers of each stage: N,N,.., even, or auto: "
                              "balance the time of the stages")),
    ROW(BATCH_SHARES, batch_shares, "batch_shares", COUNT(n_shares),
        .field.is_optional = true, METAVAR("SHARES"), .word = " shares=*",
        OPTION("batch-shares",
               "micro-batches of each data-parallel rank: N,N,.., even, or "
               "auto: in proportion to their speed")),
    ROW(PRECISION, precision, "precision", NAMES(fr_dtype_names),
        OFFERS(is_dtype_offered), .word = " *",
        OPTION("precision", "data type of weights and activations")),
    ROW(GRAD_DTYPE, grad_dtype, "grad_dtype", NAMES(fr_dtype_names),
        OFFERS(is_grad_dtype_offered), .word = " grad=*",
        OPTION("grad-dtype",
               "data type in which gradients add up and are reduced")),
    ROW(FLASH_ATTENTION, is_flash, "flash_attention", .word = " flash",
        OPTION(
            "flash-attention",
            "use fused attention, which keeps no probabilities (on GPUs: on)")),
    ROW(RECOMPUTE_PARTS, recompute_parts, "recompute_parts",
        INITIAL(FR_RECOMPUTE_PART_ATTENTION), RANGE(0, FR_RECOMPUTE_PARTS_ALL),
        METAVAR("NAME,.."), .word = ":*", SHOWN(CHANGED_PART),
        PART_OF(RECOMPUTE, BIT(FR_RECOMPUTE_SELECTIVE)),
        .words = &fr_recompute_part_names,
        OPTION("recompute-parts",
               "parts that --recompute selective recomputes: attention, norm, "
               "activation, mlp, experts, products, latent")),
    ROW(RECOMPUTE_LAYERS, recompute_layers, "recompute_layers",
        RANGE(0, MANY_RANKS), .word = "(* layers)", SHOWN(CHANGED_PART),
        PART_OF(RECOMPUTE, BIT(FR_RECOMPUTE_FULL)),
        OPTION(
            "recompute-layers",
            "layers of each chunk that --recompute full recomputes; 0: all")),
    ROW(ZERO_GROUP, zero_group, "zero_group", RANGE(0, MANY_RANKS),
        .word = " zero-group=*", PART_OF(ZERO, BIT(1) | BIT(2) | BIT(3)),
        OPTION("zero-group", "number of ranks that share one copy of the "
                             "state; 0: all of dp x cp")),
    ROW(ZERO_RESHARD, is_resharded, "zero_reshard", INITIAL(true),
        .word = " no-reshard", SHOWN(CHANGED_PART), PART_OF(ZERO, BIT(3)),
        OPTION("zero-reshard", "ZeRO 3: drop gathered weights after forward")),
    ROW(ZERO_PREFETCH, n_prefetch, "zero_prefetch", INITIAL(1),
        RANGE(0, MANY_RANKS), .word = " prefetch=*", PART_OF(ZERO, BIT(3)),
        OPTION("zero-prefetch",
               "ZeRO 3: number of layers to gather ahead of their use")),
    ROW(GATHER_OVERLAP, is_gather_overlap, "gather_overlap", INITIAL(true),
        .word = " no-gather-overlap", PART_OF(ZERO, BIT(1) | BIT(2)),
        OPTION("gather-overlap", "ZeRO 1, 2: overlap the gather of parameters "
                                 "with the next forward")),
    ROW(TP_OVERLAP, is_tp_overlap, "tp_overlap", .word = " tp-overlap",
        PART_OF(TP, ABOVE_ONE),
        OPTION("tp-overlap", "overlap tensor-parallel collectives, in pieces, "
                             "with matrix products")),
    ROW(EP_OVERLAP, is_ep_overlap, "ep_overlap", .field.is_optional = true,
        .word = " ep-overlap", PART_OF(EP, ABOVE_ONE),
        OPTION("ep-overlap", "overlap the all-to-all of experts with the "
                             "passes of another micro-batch")),
    ROW(CP_KIND, cp_kind, "cp_kind", NAMES(fr_cp_kind_names),
        .word = " cp-kind=*", PART_OF(CP, ABOVE_ONE),
        OPTION("cp-kind",
               "exchange of keys and values between context-parallel ranks")),
    ROW(ETP, etp, "etp", RANGE(0, MANY_RANKS), .word = " etp*",
        OPTION("etp", "number of ranks that split one expert; 0: tp")),
    ROW(EXPERT_DISPATCH, expert_dispatch, "expert_dispatch",
        NAMES(fr_dispatch_names), .word = " dispatch=*",
        OPTION("expert-dispatch", "transport of tokens to their experts")),
    ROW(EXPERT_CAPACITY, expert_capacity, "expert_capacity", RANGE(0, 1e6),
        .word = " capacity=*",
        OPTION("expert-capacity",
               "largest number of rows of an expert, relative to the mean; 0: "
               "no row is dropped")),
    ROW(EXPERT_PAD, is_expert_padded, "expert_pad", .word = " pad-experts",
        .is_used = has_capacity,
        OPTION("expert-pad", "pad experts up to their capacity")),
    ROW(OFFLOAD_OPTIMIZER, is_optimizer_offloaded, "offload_optimizer",
        .word = " offload-optimizer",
        OPTION("offload-optimizer",
               "keep the optimizer state and run its step on the host")),
    ROW(OFFLOAD_ACTIVATIONS, activation_offload_frac, "offload_activations",
        RANGE(0, 1), .word = " offload-activations=*",
        OPTION("offload-activations",
               "share of the kept activations to store in host memory")),
    ROW(THREADS, n_threads, "threads", INITIAL(1), RANGE(1, 4096),
        .word = " threads=*", OPTION("threads", "compute threads per rank")),
};

const fr_plan_field fr_execution_fields[FR_EXECUTION_FIELDS_N] = {
    FACT(COMPRESS_BY, compress_by, "compress_by",
         ORIGIN("the framework decides it"), NAMES(fr_compress_unit_names),
         .word = " compress-by=*", SHOWN(CHANGED_PART), .is_used = has_codec,
         OPTION("compress-by",
                "GPUs: compress per gradient bucket or per tensor")),
    FACT(FLASH_KIND, flash_kind, "flash_kind",
         ORIGIN("the framework chooses the kernel"), NAMES(fr_flash_kind_names),
         .word = "*", SHOWN(CHANGED_PART), PART_OF(FLASH_ATTENTION, BIT(true)),
         .words = &flash_word_names,
         OPTION("flash-kind", "kernel of fused attention")),
    FACT(
        KERNELS, kernels, "kernels", ORIGIN("kernels are the framework's own"),
        NAMES(fr_kernel_set_names), .word = " kernels=*",
        OPTION(
            "kernels",
            "implementation of norms, activations and other non-GEMM kernels")),
    FACT(SCALING, scaling, "scaling", ORIGIN("of fp8 alone"),
         NAMES(fr_scaling_names), .word = " *-scaling",
         OPTION("scaling", "origin of the scales of fp8 operands")),
    FACT(CUDA_GRAPHS, cuda_graphs, "cuda_graphs",
         ORIGIN("the framework decides it"), NAMES(fr_cuda_graphs_names),
         .word = " cuda-graphs=*",
         OPTION("cuda-graphs",
                "GPUs: work that the host launches as one graph")),
    FACT(LOSS_FUSED, is_loss_fused, "loss_fused",
         ORIGIN("the model's code decides it"), .word = " fused-loss"),
    FACT(LOSS_METRICS, n_loss_metrics, "loss_metrics",
         ORIGIN("what else is computed of logits"), RANGE(0, 64),
         .word = " loss-metrics=*"),
    FACT(GRAD_ADDED_APART, is_grad_added_apart, "grad_added_apart",
         ORIGIN("kernels are the framework's own"),
         .word = " grads-added-apart"),
    FACT(GRAD_LISTED, is_grad_listed, "grad_listed",
         ORIGIN("DeepSpeed did so in 2021"), .field.is_optional = true,
         .word = " grads-listed", PART_OF(ZERO, BIT(1))),
    FACT(ROUTING_FUSED, is_routing_fused, "routing_fused",
         ORIGIN("kernels are the framework's own"), .field.is_optional = true,
         .word = " fused-routing", .is_used = has_fused_kernels),
    FACT(NORM_FUSED, is_norm_fused, "norm_fused",
         ORIGIN("kernels are the framework's own"), .field.is_optional = true,
         .word = " fused-norms"),
    FACT(EARLY_STOP, is_early_stop, "early_stop",
         ORIGIN("the framework decides it"), .field.is_optional = true,
         .word = " early-stop", SHOWN(CHANGED_PART),
         PART_OF(RECOMPUTE, BIT(FR_RECOMPUTE_FULL))),
    FACT(P2P_SYNC, is_p2p_sync, "p2p_sync", ORIGIN("the framework decides it"),
         .field.is_optional = true, .word = " p2p-sync", SHOWN(CHANGED_PART),
         PART_OF(PP, ABOVE_ONE)),
    FACT(ZERO_UNIT, zero_unit, "zero_unit", ORIGIN("how a version gathers"),
         NAMES(fr_zero_unit_names), .word = " gather=*", PART_OF(ZERO, BIT(3)),
         OPTION("zero-unit", "granularity of ZeRO 3 gathers")),
    FACT(EXPERT_IMBALANCE, expert_imbalance, "expert_imbalance",
         ORIGIN("routing decides it"), INITIAL(1), RANGE(1, 1e6),
         .word = " imbalance=*",
         OPTION("expert-imbalance", "tokens of the busiest expert-parallel "
                                    "rank, relative to the mean")),
};

const int fr_plan_items[FR_PLAN_ITEMS_N] = {
#define FIELD_ITEM(symbol) FR_PLAN_##symbol,
#define FACT_ITEM(symbol) FR_FACT(symbol),
    FR_PLAN_OPTION_LIST(FIELD_ITEM, FACT_ITEM)
        FR_PLAN_OTHER_LIST(FIELD_ITEM, FACT_ITEM)
#undef FIELD_ITEM
#undef FACT_ITEM
};

/* Degrees first, and what belongs together beside each other. */
const int fr_plan_described[FR_PLAN_ITEMS_N] = {
    FR_PLAN_DP,
    FR_PLAN_TP,
    FR_PLAN_PP,
    FR_PLAN_CP,
    FR_PLAN_EP,
    FR_PLAN_MICRO_BATCH,
    FR_PLAN_SCHEDULE,
    FR_PLAN_VPP,
    FR_PLAN_ZERO,
    FR_PLAN_SEQUENCE_PARALLEL,
    FR_PLAN_RECOMPUTE,
    FR_PLAN_RECOMPUTE_PARTS,
    FR_PLAN_RECOMPUTE_LAYERS,
    FR_PLAN_COMPRESS,
    FR_PLAN_COMPRESSOR_RANK,
    FR_PLAN_COMPRESSOR_DENSITY,
    FR_PLAN_ERROR_FEEDBACK,
    FR_FACT(COMPRESS_BY),
    FR_PLAN_OVERLAP,
    FR_PLAN_BUCKET,
    FR_PLAN_COLLECTIVE,
    FR_PLAN_NCCL_PROTOCOL,
    FR_PLAN_NCCL_CHANNELS,
    FR_PLAN_SERVER_PLACE,
    FR_PLAN_SERVERS,
    FR_PLAN_RANK_ORDER,
    FR_PLAN_PRECISION,
    FR_FACT(SCALING),
    FR_PLAN_GRAD_DTYPE,
    FR_PLAN_FLASH_ATTENTION,
    FR_FACT(FLASH_KIND),
    FR_FACT(KERNELS),
    FR_FACT(CUDA_GRAPHS),
    FR_FACT(LOSS_FUSED),
    FR_FACT(LOSS_METRICS),
    FR_FACT(GRAD_ADDED_APART),
    FR_FACT(GRAD_LISTED),
    FR_FACT(ROUTING_FUSED),
    FR_FACT(NORM_FUSED),
    FR_FACT(EARLY_STOP),
    FR_FACT(P2P_SYNC),
    FR_PLAN_ZERO_GROUP,
    FR_PLAN_ZERO_RESHARD,
    FR_PLAN_ZERO_PREFETCH,
    FR_FACT(ZERO_UNIT),
    FR_PLAN_GATHER_OVERLAP,
    FR_PLAN_TP_OVERLAP,
    FR_PLAN_EP_OVERLAP,
    FR_PLAN_CP_KIND,
    FR_PLAN_EXPERT_DISPATCH,
    FR_PLAN_ETP,
    FR_FACT(EXPERT_IMBALANCE),
    FR_PLAN_EXPERT_CAPACITY,
    FR_PLAN_EXPERT_PAD,
    FR_PLAN_OFFLOAD_OPTIMIZER,
    FR_PLAN_OFFLOAD_ACTIVATIONS,
    FR_PLAN_THREADS,
    FR_PLAN_LAYER_SPLIT,
    FR_PLAN_BATCH_SHARES,
};

const fr_plan_field *fr_plan_item_row(int item)
{
    return item < FR_PLAN_FIELDS_N
               ? &fr_plan_fields[item]
               : &fr_execution_fields[item - FR_PLAN_FIELDS_N];
}

bool fr_plan_field_is_used(const fr_plan *plan, int item)
{
    const fr_plan_field *row = fr_plan_item_row(item);
    if (row->is_used != NULL)
        return row->is_used(plan);
    if (row->part_values == 0)
        return true;
    double value = fr_field_get(&fr_plan_fields[row->part_of].field, plan);
    unsigned bit = value < 0 ? 0 : value > 63 ? 63 : (unsigned)value;
    return (row->part_values >> bit & 1) != 0;
}

bool fr_plan_is_same(const fr_plan *a, const fr_plan *b)
{
    for (int item = 0; item < FR_PLAN_ITEMS_N; item++) {
        const bool is_used = fr_plan_field_is_used(a, item);
        if (is_used != fr_plan_field_is_used(b, item) ||
            (is_used &&
             !fr_field_is_same(&fr_plan_item_row(item)->field, a, b)))
            return false;
    }
    return true;
}

uint64_t fr_plan_hash(const fr_plan *plan)
{
    uint64_t hash = 0;
    for (int i = 0; i < FR_PLAN_ITEMS_N; i++)
        if (fr_plan_field_is_used(plan, fr_plan_items[i]))
            hash = fr_field_hash(&fr_plan_item_row(fr_plan_items[i])->field,
                                 plan, hash + (uint64_t)i);
    return hash;
}

/* Is there nothing that fr_field_check() could refuse?  It has the last word.
 * Searches check every plan, so that the compiler shall see the row: what is
 * left of this function for a field is one load and one comparison. */
static inline __attribute__((always_inline)) bool
is_in_range(const fr_plan *plan, const fr_field *field)
{
    const void *at = (const char *)plan + field->offset;
    const int64_t min = (int64_t)field->min, max = (int64_t)field->max;
    if (field->names == NULL && field->max == 0)
        return true;
    switch (field->kind) {
    case FR_FIELD_I32:
        return *(const int32_t *)at >= min && *(const int32_t *)at <= max;
    case FR_FIELD_I64:
        return *(const int64_t *)at >= min && *(const int64_t *)at <= max;
    case FR_FIELD_DOUBLE:
        return *(const double *)at >= field->min &&
               *(const double *)at <= field->max;
    case FR_FIELD_U32:
        if (field->names == NULL)
            return *(const uint32_t *)at >= min && *(const uint32_t *)at <= max;
        return *(const uint32_t *)at < (uint32_t)(field->names->list != NULL
                                                      ? field->names->n
                                                      : *field->names->n_rows);
    default:
        return false;
    }
}

static fr_status check_all(const fr_plan *plan, fr_err *err)
{
    for (int i = 0; i < FR_PLAN_ITEMS_N; i++)
        FR_TRY(fr_field_check(&fr_plan_item_row(fr_plan_items[i])->field, plan,
                              err));
    return FR_OK;
}

fr_status fr_plan_check_ranges(const fr_plan *plan, fr_err *err)
{
#define CHECK_FIELD(symbol)                                                    \
    if (!is_in_range(plan, &fr_plan_fields[FR_PLAN_##symbol].field))           \
        return check_all(plan, err);
#define CHECK_FACT(symbol)                                                     \
    if (!is_in_range(plan, &fr_execution_fields[FR_EXECUTION_##symbol].field)) \
        return check_all(plan, err);
    FR_PLAN_OPTION_LIST(CHECK_FIELD, CHECK_FACT)
    FR_PLAN_OTHER_LIST(CHECK_FIELD, CHECK_FACT)
#undef CHECK_FIELD
#undef CHECK_FACT
    return FR_OK;
}

void fr_plan_init(fr_plan *plan)
{
    *plan = (fr_plan){0};
    for (int item = 0; item < FR_PLAN_ITEMS_N; item++) {
        const fr_field *field = &fr_plan_item_row(item)->field;
        if (field->initial != 0)
            fr_field_set(field, field->initial, plan);
    }
}
