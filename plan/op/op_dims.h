/*
 * op_dims.h: the dimensions of operations by name.
 *
 * Each struct is a view of fr_instr.dim: its members are the first of that
 * array, in this order.  Operations of one shape share a struct; which one an
 * operation has stands in its row (op_list.inc).  `rows` are tokens of one
 * micro-batch on this rank, in [sequence][position] order.
 */
#ifndef FR_PLAN_OP_OP_DIMS_H
#define FR_PLAN_OP_OP_DIMS_H

#include <stddef.h>
#include <stdint.h>

/* n_local rows of the vocabulary's `vocab` are in this rank's shard; seq:
 * tokens of a whole sequence, of which n_shares ranks have a share each (0: one
 * has it all). */
typedef struct fr_embed_dims {
    int64_t rows, cols, n_local, seq, vocab, n_shares;
} fr_embed_dims;

typedef struct fr_matrix_dims {
    int64_t rows, cols;
} fr_matrix_dims;

/* m rows of activations, n columns of the result, k of the operand; grouped
 * products: the m rows are those of n_groups weights.  n_first > 0: the result
 * is two matrices, [m, n_first], then [m, n - n_first]. */
typedef struct fr_linear_dims {
    int64_t m, n, k, n_groups, n_first;
} fr_linear_dims;

/* rotated: columns of a head that are (0: all); is_scaled: by the model's
 * rescaled frequencies. */
typedef struct fr_rope_dims {
    int64_t rows, seq, q_heads, kv_heads, head_dim, rotated, is_scaled;
} fr_rope_dims;

/* up_cols: a head's key columns that are not rotated, and its values; kv_cols:
 * all of its key, and its values. */
typedef struct fr_latent_dims {
    int64_t rows, seq, heads, head_dim, rotated, up_cols, kv_cols, is_scaled;
} fr_latent_dims;

/* n_heads of the row_heads of a row, from first_head on. */
typedef struct fr_head_norm_dims {
    int64_t rows, n_heads, head_dim, row_heads, first_head;
} fr_head_norm_dims;

/* v_dim: head_dim of the values (0: head_dim); key_rows: rows of keys and
 * values per sequence (0: seq); window: keys that a query sees (0: all). */
typedef struct fr_attention_dims {
    int64_t batch, seq, q_heads, kv_heads, head_dim, v_dim, key_rows, window;
} fr_attention_dims;

/* rows of sequences of `seq`. */
typedef struct fr_merge_dims {
    int64_t rows, q_heads, v_dim, seq;
} fr_merge_dims;

/* Rows of cols elements: of queries, keys, then values, each of which n_groups
 * share. */
typedef struct fr_heads_dims {
    int64_t rows, cols, n_groups, q_cols, k_cols;
} fr_heads_dims;

/* n_positions: of whole sequences, of which seq are here. */
typedef struct fr_first_rows_dims {
    int64_t rows, cols, batch, seq, n_positions;
} fr_first_rows_dims;

typedef struct fr_labels_dims {
    int64_t n, n_labels;
} fr_labels_dims;

typedef struct fr_vector_dims {
    int64_t n;
} fr_vector_dims;

/* n_local columns of logits of the vocabulary's `vocab`. */
typedef struct fr_loss_dims {
    int64_t rows, n_local, vocab;
} fr_loss_dims;

/* is_to_host: HOST_COPY's direction. */
typedef struct fr_copy_dims {
    int64_t n_bytes, is_to_host;
} fr_copy_dims;

typedef struct fr_tokens_dims {
    int64_t batch, seq;
} fr_tokens_dims;

/* Elements [first, first + n) of the flat parameter list.  `first` counts
 * from coordinate 0: a sharded gradient begins coordinate * shard_bytes / 4
 * elements later (the optimizer's state is never sharded). */
typedef struct fr_range_dims {
    int64_t n, first, opt_bytes, norms_bytes;
} fr_range_dims;

/* A bucket that is compressed: see plan/codec/compressor.h. */
typedef struct fr_compress_dims {
    int64_t n, payload_bytes, stage, first, state_bytes, n_payloads;
} fr_compress_dims;

/* Collectives and transfers: n elements (of scatter and gather in total);
 * n_servers and server_place (fr_server_place) of parameter servers. */
typedef struct fr_comm_dims {
    int64_t n, n_servers, server_place;
} fr_comm_dims;

typedef struct fr_broadcast_dims {
    int64_t n, root;
} fr_broadcast_dims;

/* m rows of n_groups weights, in n_runs runs, each with room for run_rows. */
typedef struct fr_grouped_dims {
    int64_t m, n, k, n_groups, n_first, n_runs, run_rows;
} fr_grouped_dims;

/* Copies lie in n_slots slots of slot_rows rows, one for each rank that has
 * experts; n_sets: of rows over which loads are balanced, 0: none are. */
typedef struct fr_router_dims {
    int64_t rows, n_experts, top_k, n_slots, slot_rows;
    int64_t n_groups, n_chosen_groups, n_sets;
} fr_router_dims;

typedef struct fr_permute_dims {
    int64_t rows_in, rows_out, cols, n_experts, top_k, n_slots;
} fr_permute_dims;

/* An entry of a list of layers; in_bytes and out_bytes are those of its first
 * and last operand. */
typedef struct fr_layer_dims {
    int64_t moved_bytes, kept_bytes, in_bytes, out_bytes;
} fr_layer_dims;

typedef struct fr_elementwise_dims {
    int64_t moved_bytes, n_kernels, x_bytes, scratch_bytes;
} fr_elementwise_dims;

/* Square images of `size` pixels a side. */
typedef struct fr_conv_dims {
    int64_t batch, in, size, out, kernel, stride, padding, groups;
} fr_conv_dims;

/* rows: pixels of all samples; stride: of the rows of its parameters. */
typedef struct fr_batch_norm_dims {
    int64_t rows, cols, stride;
} fr_batch_norm_dims;

typedef struct fr_pool_dims {
    int64_t batch, channels, size, kernel, stride, padding;
} fr_pool_dims;

typedef struct fr_images_dims {
    int64_t batch, pixels, channels;
} fr_images_dims;

/* The index in fr_instr.dim of a dimension. */
#define FR_DIM(shape, name)                                                    \
    (offsetof(fr_##shape##_dims, name) / sizeof(int64_t))

#endif
