/*
 * test_cuda_experts.c: the router, rows to the order of their experts and
 * back, grouped products of runs with empty experts and room behind them,
 * against the CPU's kernels.
 */
#include "tests/gpu/device_fixture.h"

/* The capacity of experts that have one; the others have room for all. */
static const fr_plan capped[] = {
    {.tp = 1, .micro_batch = 1, .expert_capacity = 0.8},
    {.tp = 1, .micro_batch = 1, .expert_capacity = 0.23},
    {.tp = 1, .micro_batch = 1, .expert_capacity = 1.7}};

/* Each row goes to neighbouring experts, from another first one in each row;
 * with a capacity some have no room. */
static void choose_some(const df_case *at, int64_t rows, int64_t n_experts,
                        int64_t top_k, void *host)
{
    for (int64_t row = 0; row < rows; row++)
        for (int64_t k = 0; k < top_k; k++) {
            const int32_t e = (int32_t)((row * row + k) % n_experts);
            const bool is_dropped = at->plan != NULL &&
                                    at->plan->expert_capacity > 0 &&
                                    (row + 2 * k) % 5 < 2;
            ((int32_t *)host)[2 * (row * top_k + k) + 1] =
                is_dropped ? -1 - e : e;
        }
}

/* ---- router -------------------------------------------------------------- */

static void fill_router(const df_case *at, int i, void *host)
{
    const fr_router_dims *d = &at->instr.router;
    float *logits = host;
    if (at->instr.op == FR_OP_ROUTER_BWD && i == FR_ROUTER_BWD_CHOSEN)
        choose_some(at, d->rows, d->n_experts, d->top_k, host);
    if (at->instr.op == FR_OP_ROUTER_FWD && i == FR_ROUTER_FWD_LOGITS)
        logits[1] = logits[d->n_experts - 1]; /* a tie */
}

static df_case router_case(const fr_router_dims *d)
{
    return (df_case){.instr = {.op = FR_OP_ROUTER_FWD, .router = *d},
                     .operand = {{DF_T, d->rows * d->n_experts, 2.3, 'r', 0},
                                 {DF_CHOSEN, 2 * d->rows * d->top_k, 1, 'w', 0},
                                 {DF_TOKENS, d->n_experts, 1, 'w', 0}},
                     .tolerance = 3e-7,
                     .fill = fill_router};
}

static df_case router_backward(df_case at)
{
    const fr_router_dims *d = &at.instr.router;
    at.instr.op = FR_OP_ROUTER_BWD;
    at.operand[0] = (df_operand){DF_CHOSEN, 2 * d->rows * d->top_k, 1, 'r', 0};
    at.operand[1] = (df_operand){DF_T, d->rows * d->n_experts, 1, 'w', 0};
    at.operand[2] = (df_operand){DF_T, d->rows * d->n_experts, 2.3, 'r', 0};
    at.operand[3] = (df_operand){DF_F32, d->n_slots * d->slot_rows, 1, 'r', 0};
    at.tolerance = 2e-6;
    return at;
}

static void test_router(void)
{
    static const fr_router_dims shapes[] = {
        {37, 6, 2, 2, 74, 1, 1, 0},   {5, 1, 1, 1, 5, 1, 1, 0},
        {300, 8, 3, 1, 900, 1, 1, 0}, {21, 72, 5, 4, 105, 1, 1, 0},
        {37, 8, 3, 2, 111, 4, 2, 0},  {19, 96, 4, 1, 76, 48, 3, 0}};
    for (int i = 0; i < 6; i++)
        for (int kind = 0; kind < 4; kind++) {
            df_case at = router_case(&shapes[i]);
            at.instr.flags = kind % 2 == 1 ? FR_INSTR_APART : 0;
            at.instr.scalar = i % 2 == 0 ? 2.5 : 0;
            if (kind >= 2) {
                at.instr.activation = FR_ACTIVATION_SIGMOID;
                at.operand[3] =
                    (df_operand){DF_T, shapes[i].n_experts, 0.3, 'r', 0};
            }
            df_check_all(at);
            df_check_all(router_backward(at));
            at.instr.flags |= FR_INSTR_CAPPED;
            for (int k = 0; k < 3; k++) {
                at.plan = &capped[k];
                df_check_all(at);
            }
            df_check_all(router_backward(at));
        }
}

/* Rows that are alike, of which the first have room. */
static void fill_alike(const df_case *at, int i, void *host)
{
    const fr_router_dims *d = &at->instr.router;
    float *logits = host;
    if (i == FR_ROUTER_FWD_LOGITS)
        for (int64_t j = 0; j < d->rows * d->n_experts; j++)
            logits[j] = (float)(j % d->n_experts * (j / d->n_experts % 3));
}

static void test_alike(void)
{
    static const fr_router_dims shapes[] = {{37, 6, 2, 1, 74, 1, 1, 0},
                                            {2300, 4, 1, 1, 2300, 1, 1, 0}};
    for (int i = 0; i < 6; i++) {
        df_case at = router_case(&shapes[i / 3]);
        at.instr.flags = FR_INSTR_CAPPED;
        at.plan = &capped[i % 3];
        at.fill = fill_alike;
        df_check_all(at);
    }
}

/* With an auxiliary loss, over whole micro-batches or by sequence. */
static void test_balanced(void)
{
    static const fr_model model = {.router_aux_coef = 31.3};
    static const fr_job job = {.global_batch = 8, .seq = 12};
    static const fr_plan plans[] = {
        {.tp = 1, .micro_batch = 3},
        {.tp = 2, .micro_batch = 3, .is_sequence_parallel = true}};
    for (int kind = 0; kind < 8; kind++) {
        const fr_plan *plan = &plans[kind % 2];
        const fr_router_dims dims = {
            36 / plan->tp, 6, 2, 1,
            72 / plan->tp, 1, 1, kind / 2 % 2 == 1 ? 3 : 1};
        df_case at = router_case(&dims);
        at.plan = plan;
        at.model = &model;
        at.job = &job;
        at.tp_coordinate = kind % 2;
        if (kind >= 4)
            at.instr.activation = FR_ACTIVATION_SIGMOID;
        at.operand[4] =
            (df_operand){DF_F32, dims.n_sets * dims.n_experts, 1, 'w', 0};
        df_check_all(at);
        df_case dropping = at;
        fr_plan other = *plan;
        other.expert_capacity = 0.8;
        dropping.plan = &other;
        dropping.instr.flags |= FR_INSTR_CAPPED;
        df_check_all(dropping);
        at = router_backward(at);
        at.operand[4].access = 'r';
        at.operand[4].scale = 7;
        df_check_all(at);
    }
}

/* ---- rows ---------------------------------------------------------------- */

static void fill_rows(const df_case *at, int i, void *host)
{
    const fr_permute_dims *d = &at->instr.permute;
    bool is_there = at->instr.op == FR_OP_PERMUTE;
    if (i == FR_PERMUTE_CHOSEN)
        choose_some(at, is_there ? d->rows_in : d->rows_out, d->n_experts,
                    d->top_k, host);
}

static void test_rows(void)
{
    /* rows, columns, experts, of a row, slots, rows of a slot */
    static const int64_t shapes[][6] = {{37, 11, 6, 3, 2, 111},
                                        {5, 48, 4, 1, 1, 5},
                                        {300, 264, 9, 2, 3, 600},
                                        {1, 8, 2, 2, 2, 1}};
    for (int i = 0; i < 4; i++) {
        const int64_t *s = shapes[i], room = s[4] * s[5];
        df_case at = {
            .instr = {.op = FR_OP_PERMUTE,
                      .permute = {s[0], room, s[1], s[2], s[3], s[4]}},
            .operand = {{DF_T, s[0] * s[1], 1.3, 'r', 0},
                        {DF_T, room * s[1], 0.7, 'w', 0},
                        {DF_CHOSEN, 2 * s[0] * s[3], 1, 'r', 0},
                        {DF_F32, room, 0.6, 'w', 0}},
            .fill = fill_rows};
        df_check_all(at);
        at.operand[3] = (df_operand){0};
        df_check_all(at);
        at.plan = &capped[0];
        df_check_all(at);
        at.plan = NULL;
        at.instr.op = FR_OP_UNPERMUTE;
        at.instr.permute.rows_in = room;
        at.instr.permute.rows_out = s[0];
        at.operand[0] = (df_operand){DF_T, room * s[1], 1.3, 'r', 0};
        at.operand[1] = (df_operand){DF_T, s[0] * s[1], 1, 'w', 0};
        at.tolerance = 1e-7;
        df_check_all(at);
        at.plan = &capped[0];
        df_check_all(at);
    }
}

/* Gated activations of rows with weights. */
static void test_weighed(void)
{
    static const int64_t shapes[][2] = {{5, 7}, {37, 48}, {3, 1032}};
    for (int i = 0; i < 3; i++) {
        const int64_t rows = shapes[i][0], cols = shapes[i][1], n = rows * cols;
        df_case at = {.instr = {.op = FR_OP_SWIGLU_FWD,
                                .activation = FR_ACTIVATION_SILU,
                                .dim = {rows, cols}},
                      .operand = {{DF_T, 2 * n, 3.1, 'r', 0},
                                  {DF_T, n, 1, 'w', 0},
                                  {DF_F32, rows, 0.9, 'r', 0}},
                      .tolerance = 3e-6};
        df_check_all(at);
        at.instr.op = FR_OP_SWIGLU_BWD;
        at.operand[0] = (df_operand){DF_T, n, 1.9, 'r', 0};
        at.operand[1] = (df_operand){DF_T, 2 * n, 3.1, 'r', 0};
        at.operand[2] = (df_operand){DF_T, 2 * n, 1, 'w', 0};
        at.operand[3] = (df_operand){DF_F32, rows, 0.9, 'r', 0};
        at.operand[4] = (df_operand){DF_F32, rows, 1, 'w', 0};
        df_check_all(at);
    }
}

/* ---- products ------------------------------------------------------------ */

/* Some experts have no rows, some more than a tile, none fills its run. */
static void fill_counts(const df_case *at, int i, void *host)
{
    const fr_grouped_dims *d = &at->instr.grouped;
    int32_t *counts = host;
    if (at->operand[i].width != DF_TOKENS)
        return;
    for (int64_t run = 0; run < d->n_runs; run++) {
        int64_t left = d->run_rows - run;
        for (int64_t g = 0; g < d->n_groups; g++) {
            int64_t n = (run * 5 + g * 7) % 4 == 0
                            ? 0
                            : d->run_rows / d->n_groups + g % 3 - 1;
            n = n < left ? n : left;
            counts[run * d->n_groups + g] = (int32_t)n;
            left -= n;
        }
    }
}

/* The CPU's go by the types of their operands. */
static void check_grouped(df_case at)
{
    static const fr_plan tf32 = {.tp = 1, .precision = FR_DTYPE_TF32};
    df_check_all(at);
    at.plan = &tf32;
    at.tolerance = 3e-3;
    df_check(at, FR_DTYPE_F32, FR_DTYPE_F32);
}

static void test_grouped(void)
{
    /* n, k, groups, runs, rows of a run */
    static const int64_t shapes[][5] = {{5, 7, 3, 1, 9},
                                        {80, 33, 2, 2, 140},
                                        {24, 72, 5, 3, 37},
                                        {66, 64, 1, 2, 65}};
    for (int i = 0; i < 4; i++) {
        const int64_t *s = shapes[i], rows = s[3] * s[4];
        const int64_t n = s[0], k = s[1], n_w = n * k * s[2];
        const df_operand counts = {DF_TOKENS, s[2] * s[3], 1, 'r', 0};
        df_case at = {.instr = {.op = FR_OP_GROUPED_FWD,
                                .grouped = {rows, n, k, s[2], 0, s[3], s[4]}},
                      .operand = {{DF_T, rows * k, 1.3, 'r', 0},
                                  {DF_T, n_w, 0.7, 'r', 0},
                                  {0},
                                  {DF_T, rows * n, 1, 'w', 0},
                                  counts},
                      .tolerance = 2e-6,
                      .fill = fill_counts};
        check_grouped(at);
        at.instr.op = FR_OP_GROUPED_DGRAD;
        at.operand[0] = (df_operand){DF_T, rows * n, 1.3, 'r', 0};
        at.operand[2] = (df_operand){DF_T, rows * k, 1, 'w', 0};
        at.operand[3] = counts;
        at.operand[4] = (df_operand){0};
        check_grouped(at);
        at.instr.op = FR_OP_GROUPED_WGRAD;
        at.operand[1] = (df_operand){DF_T, rows * k, 1.1, 'r', 0};
        at.operand[2] = (df_operand){DF_G, n_w, 0.4, 'm', 0};
        at.operand[3] = (df_operand){0};
        at.operand[4] = counts;
        check_grouped(at);
    }
}

DF_MAIN({"router", test_router}, {"alike", test_alike},
        {"balanced", test_balanced}, {"rows", test_rows},
        {"weighed", test_weighed}, {"grouped", test_grouped})
