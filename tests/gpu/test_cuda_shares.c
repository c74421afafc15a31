/*
 * test_cuda_shares.c: attention of which not all is seen or kept: windows,
 * dropped probabilities, heads of two sizes, shares of sequences (context
 * parallel), against the CPU's kernels, fused and with probabilities that are
 * kept; and what goes with shares: positions, packed heads, the first rows of
 * sequences, images.
 */
#include "tests/gpu/device_fixture.h"

/* ---- attention ----------------------------------------------------------- */

static const fr_model heads_model = {.n_heads = 12};
static const fr_model yarn_model = {.n_heads = 12,
                                    .has_rope_scaling = true,
                                    .rope_kind = FR_ROPE_YARN,
                                    .rope_original_seq = 16,
                                    .rope_low_factor = 0.3,
                                    .rope_high_factor = 3,
                                    .rope_factor = 8,
                                    .rope_attention_factor = 0.871,
                                    .score_factor = 1.593};
static const fr_job drop_job = {
    .global_batch = 4, .seq = 64, .seed = 2385, .dropout = 0.3};

/* Places of the operands of a case. */
enum { D_O, QKV, O, KEPT, DQKV, KEYS, DKEYS, HOST_KEPT, N_PLACES };

/* Elements of queries, of keys and values in the first operand. */
static int64_t query_elements(const fr_attention_dims *d)
{
    return d->batch * d->seq * d->q_heads * d->head_dim;
}

static int64_t value_columns(const fr_attention_dims *d)
{
    return d->v_dim > 0 ? d->v_dim : d->head_dim;
}

static df_case attention_case(fr_instr instr, fr_dtype precision)
{
    static fr_plan plan[FR_DTYPE_N];
    const fr_attention_dims *d = &instr.attention;
    bool is_other = instr.peer > 0;
    int64_t per_key = d->kv_heads * (d->head_dim + value_columns(d));
    int64_t keys = d->batch *
                   (d->key_rows > 0 && !is_other ? d->key_rows : d->seq) *
                   per_key;
    int64_t n_qkv = query_elements(d) + (is_other ? 0 : keys);
    int64_t n_o = d->batch * d->seq * d->q_heads * value_columns(d);
    df_width other = is_other ? DF_T : DF_NONE;
    const bool is_kept = instr.flags & FR_INSTR_SAVE_PROBS;
    const int64_t n_lse = d->batch * d->seq * d->q_heads;
    const int64_t n_kept =
        is_kept ? n_lse * (d->key_rows > 0 ? d->key_rows : d->seq) : n_lse;
    plan[precision] = (fr_plan){.tp = 1, .precision = precision};
    return (df_case){
        .instr = instr,
        .operand = {{DF_T, n_o, 1.3, 'r', 0},
                    {DF_T, n_qkv, 2.3, 'r', 0},
                    {DF_T, n_o, 1, 'w', 0},
                    {is_kept ? DF_T : DF_F32, n_kept, 1, 'w', 0},
                    {DF_T, n_qkv, 1, 'w', 0},
                    {other, keys, 2.3, 'r', 0},
                    {other, keys, 1, 'w', 0},
                    {is_kept ? DF_F32 : DF_NONE, n_kept, 1, 'r', 0}},
        .plan = &plan[precision],
        .model = &heads_model,
        .job = &drop_job,
        .i_step = 7,
        .layer = 3,
        .first_sequence = 5};
}

/* Operand places of the two operations, in their order. */
static const int fwd_places[] = {QKV, O, KEPT, -1, KEYS};
static const int bwd_places[] = {D_O, QKV, O, KEPT, DQKV, -1, KEYS, DKEYS};

static fr_kernel_call place_operands(const df_case *at, const df_memory *memory,
                                     bool is_device)
{
    bool is_forward = at->instr.op == FR_OP_ATTN_FWD;
    const int *places = is_forward ? fwd_places : bwd_places;
    fr_kernel_call call = df_call(at);
    for (int i = 0; i < (is_forward ? 5 : 8); i++)
        if (places[i] >= 0)
            call.ptr[i] =
                is_device ? memory[places[i]].device : memory[places[i]].host;
    /* Both sides keep probabilities in an order of their own. */
    if (at->instr.flags & FR_INSTR_SAVE_PROBS && !is_device)
        call.ptr[is_forward ? FR_ATTN_FWD_KEPT : FR_ATTN_BWD_KEPT] =
            memory[HOST_KEPT].host;
    return call;
}

static void run_and_compare(df_case *at, df_memory *memory, int place)
{
    df_fetch(&memory[place]);
    df_compare(at, place, &memory[place]);
}

static void compare_lse(df_case *at, df_memory *memory)
{
    float *lse = memory[KEPT].host;
    for (int64_t i = 0; i < at->operand[KEPT].n; i++)
        if (lse[i] == -INFINITY) { /* on both sides: merged, it is finite */
            df_fetch(&memory[KEPT]);
            CHECK(((float *)memory[KEPT].copy)[i] == -INFINITY);
            lse[i] = ((float *)memory[KEPT].copy)[i] = 1.5F;
            cudaMemcpyAsync(memory[KEPT].device, memory[KEPT].copy,
                            memory[KEPT].n_bytes, cudaMemcpyHostToDevice, NULL);
        }
    run_and_compare(at, memory, KEPT);
}

/* Backward begins with the probabilities that the device has kept, whose rows
 * add up to one. */
static void take_probabilities(const df_case *at, df_memory *memory)
{
    const fr_attention_dims *d = &at->instr.attention;
    const int64_t n_keys = d->key_rows > 0 ? d->key_rows : d->seq;
    float *kept = memory[KEPT].host;
    df_fetch(&memory[KEPT]);
    for (int64_t i = 0; i < at->operand[KEPT].n; i += n_keys) {
        double sum = 0;
        for (int64_t j = i; j < i + n_keys; j++)
            sum += kept[j] = (float)df_got(at, KEPT, &memory[KEPT], j);
        if (!(fabs(sum - 1) < (df_is_narrow(at, KEPT) ? 4e-3 : 1e-5))) {
            check_that(false, __FILE__, __LINE__, "probabilities add up to %g",
                       sum);
            return;
        }
    }
}

/* Both passes on both sides; backward reads what the oracle's forward left. */
static void check_attention(const df_case *given, fr_dtype precision)
{
    const bool is_tf32 = precision == FR_DTYPE_TF32;
    df_memory memory[FR_INSTR_REFS];
    df_case at = *given;
    at.instr.op = FR_OP_ATTN_FWD;
    at.instr.dtype = (uint8_t)fr_dtype_storage(precision);
    at.instr.grad_dtype = FR_DTYPE_F32;
    /* tf32 keeps 10 bits of a mantissa: each operand is off by up to 2^-10, and
     * of probabilities that are kept those are read with as many bits too. */
    const bool is_kept = at.instr.flags & FR_INSTR_SAVE_PROBS;
    at.tolerance = !is_tf32 ? 3e-6 : is_kept ? 3e-3 : 2e-3;
    at.narrow = 6e-3;
    df_create(&at, memory);
    df_launch_twice(&at, memory, place_operands(&at, memory, true));
    df_run_host(place_operands(&at, memory, false));
    run_and_compare(&at, memory, O);
    if (at.instr.flags & FR_INSTR_SAVE_PROBS)
        take_probabilities(&at, memory);
    else
        compare_lse(&at, memory);
    for (int64_t i = 0; df_is_narrow(&at, O) && i < at.operand[O].n; i++)
        ((float *)memory[O].host)[i] =
            df_wide(df_narrow(((float *)memory[O].host)[i]));
    df_to_device(&at, O, &memory[O]);
    df_to_device(&at, KEPT, &memory[KEPT]);
    if (at.instr.flags & FR_INSTR_SAVE_PROBS)
        df_to_device(&at, HOST_KEPT, &memory[HOST_KEPT]);
    at.instr.op = FR_OP_ATTN_BWD;
    at.tolerance = is_tf32 ? 3e-3 : 1e-5;
    at.narrow = 1.6e-2;
    df_launch_twice(&at, memory, place_operands(&at, memory, true));
    df_run_host(place_operands(&at, memory, false));
    run_and_compare(&at, memory, DQKV);
    if (at.operand[DKEYS].width != DF_NONE)
        run_and_compare(&at, memory, DKEYS);
    df_destroy(&at, memory);
}

static void check_way(const fr_model *model, fr_instr instr,
                      fr_sequence_share share, double dropout)
{
    static const fr_dtype all[] = {FR_DTYPE_F32, FR_DTYPE_TF32, FR_DTYPE_BF16};
    for (int i = 0; i < 3; i++) {
        df_case at = attention_case(instr, all[i]);
        at.model = model;
        at.share = share;
        at.dropout = dropout;
        at.tp_coordinate = 1;
        check_attention(&at, all[i]);
    }
}

/* Fused and, but in a ring, with probabilities that are kept. */
static void check_model(const fr_model *model, fr_instr instr,
                        fr_sequence_share share, double dropout)
{
    check_way(model, instr, share, dropout);
    instr.flags |= FR_INSTR_SAVE_PROBS;
    if (instr.peer == 0)
        check_way(model, instr, share, dropout);
}

static void check_precisions(fr_instr instr, fr_sequence_share share,
                             double dropout)
{
    check_model(&heads_model, instr, share, dropout);
}

static const fr_sequence_share alone = {0, 1};

/* batch, sequence, q heads, kv heads, head size: all pairs, or causal; the last
 * two go in pieces. */
static void test_kept(void)
{
    static const fr_attention_dims shapes[] = {{1, 5, 1, 1, 7, .window = 0},
                                               {2, 33, 6, 2, 6, .window = 0},
                                               {1, 131, 3, 1, 64, .window = 0},
                                               {1, 97, 4, 4, 72, .window = 0}};
    for (int i = 0; i < 8; i++)
        check_way(&heads_model,
                  (fr_instr){.attention = shapes[i / 2],
                             .flags = FR_INSTR_SAVE_PROBS |
                                      (i % 2 == 0 ? FR_INSTR_NONCAUSAL : 0)},
                  alone, 0);
}

/* batch, sequence, q heads, kv heads, head size, value size, keys, window */
static void test_windows(void)
{
    static const fr_attention_dims shapes[] = {{1, 5, 2, 1, 7, 0, 0, 2},
                                               {2, 70, 2, 2, 16, 0, 0, 9},
                                               {1, 131, 2, 1, 64, 0, 0, 33},
                                               {1, 97, 1, 1, 24, 0, 0, 1},
                                               {1, 150, 2, 1, 72, 0, 0, 70}};
    for (int i = 0; i < 5; i++)
        check_precisions((fr_instr){.attention = shapes[i]}, alone, 0);
}

/* Latent attention: 24 columns of keys, 16 of values; its scores are changed
 * where sequences are stretched. */
static void test_two_sizes(void)
{
    const fr_instr instr = {.attention = {2, 41, 3, 3, 24, 16, .key_rows = 0}};
    check_precisions(instr, alone, 0);
    check_model(&yarn_model, instr, alone, 0);
    check_model(&yarn_model, instr, alone, 0.3);
}

static void test_dropped(void)
{
    static const fr_attention_dims shapes[] = {{2, 13, 3, 1, 6, .window = 0},
                                               {1, 70, 4, 2, 16, .window = 0},
                                               {1, 131, 2, 1, 64, .window = 0}};
    for (int i = 0; i < 3; i++) {
        fr_instr instr = {.attention = shapes[i], .flags = FR_INSTR_DROPOUT};
        check_precisions(instr, alone, 0.3);
        instr.attention.window = 11;
        check_precisions(instr, alone, 0.3);
        instr.attention.window = 0;
        check_precisions(instr, alone, 0); /* nothing is trained */
    }
}

/* Keys of all ranks behind the own queries. */
static void test_gathered(void)
{
    for (int rank = 0; rank < 3; rank++)
        for (int kind = 0; kind < 4; kind++) {
            const fr_sequence_share share = {rank, 3};
            fr_instr instr = {.axis = FR_AXIS_CP,
                              .flags = FR_INSTR_KEYS_APART,
                              .attention = {2, 22, 2, 1, 16, .key_rows = 66}};
            if (kind == 1)
                instr.attention.window = 13;
            if (kind == 2)
                instr.flags |= FR_INSTR_NONCAUSAL;
            if (kind == 3)
                instr.flags |= FR_INSTR_DROPOUT;
            check_precisions(instr, share, kind == 3 ? 0.3 : 0);
        }
}

/* A step of a ring: the keys of the rank so many places before. */
static void test_ring(void)
{
    for (int rank = 0; rank < 3; rank++)
        for (int peer = 0; peer < 3; peer++) {
            const fr_sequence_share share = {rank, 3};
            fr_instr instr = {.flags = FR_INSTR_KEYS_APART | FR_INSTR_DROPOUT,
                              .attention = {.batch = 2,
                                            .seq = 44,
                                            .q_heads = 4,
                                            .kv_heads = 2,
                                            .head_dim = 16}};
            if (peer > 0) {
                instr.axis = FR_AXIS_CP;
                instr.peer = (int16_t)peer;
                instr.flags |= FR_INSTR_NONCAUSAL;
                instr.attention.key_rows = 22;
            }
            check_precisions(instr, share, 0);
            check_precisions(instr, share, 0.3);
        }
}

/* Some heads of whole sequences, in the order of their ranks. */
static void test_exchanged(void)
{
    const fr_sequence_share share = {1, 3};
    fr_instr instr = {.axis = FR_AXIS_CP,
                      .attention = {.batch = 2,
                                    .seq = 66,
                                    .q_heads = 2,
                                    .kv_heads = 1,
                                    .head_dim = 16}};
    check_precisions(instr, share, 0);
    instr.flags = FR_INSTR_DROPOUT;
    check_precisions(instr, share, 0.3);
}

/* ---- rows ---------------------------------------------------------------- */

static void test_drop_add(void)
{
    static const fr_plan parallel = {
        .tp = 2, .micro_batch = 2, .is_sequence_parallel = true};
    static const int64_t shapes[][2] = {{64, 7}, {64, 48}, {64, 1032}};
    for (int i = 0; i < 6; i++) {
        const int64_t rows = shapes[i / 2][0], cols = shapes[i / 2][1];
        const int64_t n = rows * cols, n_mask = (n + 3) / 4;
        df_case at = {
            .instr = {.op = FR_OP_DROPOUT_ADD, .dim = {rows, cols}, .place = 2},
            .operand = {{DF_T, n, 1.9, 'm', 0},
                        {DF_T, n, 3.1, 'r', 0},
                        {DF_T, cols, 0.3, 'r', 0},
                        {DF_T, n, 1, 'w', 1},
                        {DF_TOKENS, n_mask, 1, 'w', 0},
                        {DF_T, cols, 0.7, 'r', 0}},
            .tolerance = 3e-7,
            .job = &drop_job,
            .i_step = 7,
            .layer = 3,
            .first_sequence = 5,
            .dropout = 0.3};
        if (i % 2 == 1) {
            at.plan = &parallel;
            at.tp_coordinate = 1;
            at.share = (fr_sequence_share){1, 2};
            at.operand[1] = at.operand[5] = (df_operand){0};
        }
        df_check_all(at);
        at.instr.op = FR_OP_DROPOUT_BWD;
        at.operand[0].access = 'r';
        at.operand[1] = (df_operand){DF_TOKENS, n_mask, 1, 'r', 0};
        at.operand[2] = (df_operand){DF_T, n, 1, 'w', 0};
        at.operand[3] = at.operand[4] = at.operand[5] = (df_operand){0};
        df_check_all(at);
    }
}

static void test_positions(void)
{
    const fr_sequence_share share = {1, 3};
    const int64_t rows = 44, cols = 24, seq = 66, vocab = 17;
    df_case embed = {.instr = {.op = FR_OP_EMBED_FWD,
                               .dim = {rows, cols, vocab, seq, vocab, 3}},
                     .operand = {{DF_TOKENS, rows, (double)vocab, 'r', 0},
                                 {DF_T, vocab * cols, 1.3, 'r', 0},
                                 {DF_T, seq * cols, 0.6, 'r', 0},
                                 {DF_T, rows * cols, 1, 'w', 0}},
                     .tolerance = 1e-7,
                     .share = share};
    df_case grad = embed;
    df_case rope = {.instr = {.op = FR_OP_ROPE_FWD,
                              .flags = FR_INSTR_KEYS_APART,
                              .dim = {rows, 22, 3, 1, 8},
                              .scalar = 10000},
                    .operand = {{DF_T, rows * 5 * 8, 1.7, 'm', 0}},
                    .tolerance = 3e-7,
                    .share = share};
    grad.instr.op = FR_OP_EMBED_BWD;
    grad.operand[1] = (df_operand){DF_T, rows * cols, 1.3, 'r', 0};
    grad.operand[2] = (df_operand){DF_G, vocab * cols, 0.9, 'm', 0};
    grad.operand[3] = (df_operand){DF_G, seq * cols, 0.9, 'm', 0};
    grad.tolerance = 2e-6;
    df_check_all(embed);
    df_check_all(grad);
    df_check_all(rope);
    rope.instr.op = FR_OP_ROPE_BWD;
    df_check_all(rope);
    /* A table whose first row is that of all tokens. */
    for (int coordinate = 0; coordinate < 2; coordinate++) {
        embed.instr.flags = grad.instr.flags = FR_INSTR_FIRST_ROW;
        embed.coordinate = grad.coordinate = coordinate;
        embed.operand[2] = grad.operand[3] = (df_operand){0};
        df_check_all(embed);
        df_check_all(grad);
    }
}

static void test_latent(void)
{
    /* rows, sequence, heads, head size, turned, up columns, kv columns */
    static const int64_t shapes[][7] = {{12, 6, 3, 10, 4, 11, 15},
                                        {44, 22, 2, 24, 8, 32, 40}};
    for (int i = 0; i < 4; i++) {
        const int64_t *s = shapes[i / 2];
        bool is_backward = i % 2 == 1;
        char in = is_backward ? 'w' : 'r', out = is_backward ? 'r' : 'w';
        df_case at = {
            .instr = {.op = is_backward ? FR_OP_LATENT_BWD : FR_OP_LATENT_FWD,
                      .dim = {s[0], s[1], s[2], s[3], s[4], s[5], s[6]},
                      .scalar = 10000},
            .operand = {{DF_T, s[0] * s[2] * s[3], 1.7, 'm', 0},
                        {DF_T, s[0] * s[2] * s[5], 1.1, in, 0},
                        {DF_T, s[0] * s[4], 0.9, in, 0},
                        {DF_T, s[0] * s[2] * s[6], 1.3, out, 0}},
            .tolerance = 3e-7,
            .share = i / 2 == 1 ? (fr_sequence_share){1, 3} : alone};
        df_check_all(at);
        at.model = &yarn_model;
        at.instr.latent.is_scaled = 1;
        df_check_all(at);
    }
}

static void test_heads(void)
{
    df_case at = {
        .instr = {.op = FR_OP_PACK_HEADS,
                  .heads = {.rows = 13,
                            .cols = 48,
                            .n_groups = 3,
                            .q_cols = 24,
                            .k_cols = 12}},
        .operand = {{DF_T, 13 * 48, 1.3, 'r', 0}, {DF_T, 13 * 48, 1, 'w', 0}}};
    df_check_all(at);
    at.instr.flags = FR_INSTR_TRANSPOSE;
    df_check_all(at);
    at.instr.heads.q_cols = 48;
    at.instr.heads.k_cols = 0;
    df_check_all(at);
}

/* All rows of a rank or a tensor parallel part of them; of whole sequences, or
 * of shares of which the first alone begins with the first rows. */
static void test_first_rows(void)
{
    for (int kind = 0; kind < 9; kind++) {
        const int part = kind % 3;
        const int64_t rows = part == 0 ? 44 : 22, cols = 7, batch = 4;
        const fr_sequence_share shares[] = {alone, {0, 3}, {2, 3}};
        df_case at = {.instr = {.op = FR_OP_FIRST_ROWS_FWD,
                                .first_rows = {rows, cols, batch, 11, 33}},
                      .operand = {{DF_T, rows * cols, 1.3, 'r', 0},
                                  {DF_T, batch * cols, 1, 'w', 0}},
                      .share = shares[kind / 3],
                      .tp_coordinate = part > 0 ? part - 1 : 0};
        df_check_all(at);
        at.instr.op = FR_OP_FIRST_ROWS_BWD;
        at.operand[0] = (df_operand){DF_T, batch * cols, 1.3, 'r', 0};
        at.operand[1] = (df_operand){DF_T, rows * cols, 1, 'm', 0};
        df_check_all(at);
    }
}

static void check_images(fr_sequence_share share, int64_t seq)
{
    static const fr_model classes = {.n_labels = 5};
    const int64_t batch = 3, rows = batch * seq, cols = 13;
    const int64_t n_positions = seq * share.n;
    df_case labels = {.instr = {.op = FR_OP_LABELS, .labels = {batch, 5}},
                      .operand = {{DF_TOKENS, 2 * batch, 1, 'w', 0}},
                      .job = &drop_job,
                      .i_step = 7,
                      .share = share,
                      .first_sequence = 5};
    df_case at = {
        .instr = {.op = FR_OP_PATCHES,
                  .first_rows = {rows, cols, batch, seq, n_positions}},
        .operand = {{DF_T, rows * cols, 1, 'w', 0}},
        .tolerance = 1e-7,
        .job = &drop_job,
        .model = &classes,
        .i_step = 7,
        .share = share,
        .first_sequence = 5};
    df_check(labels, FR_DTYPE_F32, FR_DTYPE_F32);
    df_check_all(at);
    at.instr.op = FR_OP_PATCH_EMBED_FWD;
    at.operand[0].access = 'm';
    at.operand[1] = (df_operand){DF_T, n_positions * cols, 0.8, 'r', 0};
    at.operand[2] = (df_operand){DF_T, cols, 0.6, 'r', 0};
    df_check_all(at);
    at.instr.op = FR_OP_PATCH_EMBED_BWD;
    at.tolerance = 1e-6;
    at.operand[1] = (df_operand){DF_G, n_positions * cols, 0.8, 'm', 0};
    at.operand[2] = (df_operand){DF_G, cols, 0.6, 'm', 0};
    df_check_all(at);
}

static void test_images(void)
{
    check_images(alone, 9);
    for (int rank = 0; rank < 3; rank++)
        check_images((fr_sequence_share){rank, 3}, 6);
}

DF_MAIN({"kept", test_kept}, {"windows", test_windows},
        {"two sizes", test_two_sizes}, {"dropped", test_dropped},
        {"gathered", test_gathered}, {"ring", test_ring},
        {"exchanged", test_exchanged}, {"drop add", test_drop_add},
        {"positions", test_positions}, {"latent", test_latent},
        {"heads", test_heads}, {"first rows", test_first_rows},
        {"images", test_images})
