/*
 * lower_rank.h: one pipeline rank under construction: its flat list of
 * parameters, its blocks, and the calls that are added to its program.
 */
#ifndef FR_PROGRAM_LOWER_STEP_LOWER_RANK_H
#define FR_PROGRAM_LOWER_STEP_LOWER_RANK_H

#include "plan/codec/compressor.h"
#include "plan/outline/stages.h"
#include "plan/outline/weight_uses.h"
#include "program/ir/builder.h"
#include "program/lower/segment/lower_ends.h"

#define LOWER_NO_BUCKET UINT32_MAX
#define LOWER_NO_BLOCK UINT32_MAX

typedef enum lower_unit_kind {
    LOWER_UNIT_TIED,  /* wte of first and last stage, both of which use it */
    LOWER_UNIT_EMBED, /* wte and wpe, or wpe alone */
    LOWER_UNIT_LAYER,
    LOWER_UNIT_FINAL /* last norm and head */
} lower_unit_kind;

/* Parameters whose gradients are complete at the same time. */
typedef struct lower_unit {
    lower_unit_kind kind;
    bool is_expert;    /* of a layer: its experts, not the rest */
    int32_t layer;     /* global */
    uint64_t first, n; /* elements in the flat list, padding included */
    /* Elements that see a TP rank's own rows with sequence parallelism, from
     * norm_first on: norms and what else is whole on each. */
    uint64_t norm_first, n_norm;
    uint32_t i_bucket;
    uint32_t i_set;        /* ZeRO 2, 3 */
    uint32_t weight, grad; /* blocks; ZeRO 3: the own shard; ZeRO 2, 3: no
                              gradients, the set has them */
} lower_unit;

/* Parameters that are reduced and updated together; n divides by the ranks
 * that hold them.  ZeRO 2, 3: each unit is a bucket. */
typedef struct lower_bucket {
    uint64_t first, n;
    uint32_t first_unit, n_units, n_pending;
    bool is_tied, is_expert;
    uint32_t opt, error, wire; /* blocks */
    uint32_t host;             /* the first of an optimizer's on the host */
} lower_bucket;

/*
 * ZeRO 2, 3: units that one call uses together, so that their whole gradients
 * (ZeRO 3: and whole weights) are one block: a layer, the embedding, or last
 * norm and head.  The units are neighbours in the flat list.
 */
typedef struct lower_set {
    uint32_t first_unit, n_units;
    bool is_tied;     /* waits for the other end of the pipeline */
    uint64_t n;       /* elements */
    uint64_t n_shard; /* elements of the own shards */
    uint32_t wire;    /* gathered parameters on their way to ... */
    uint32_t weight;  /* ... where they are used, while they are there */
    uint32_t grad;    /* whole gradients while they are there */
    uint32_t shard;   /* own shard of the gradients, once reduced */
} lower_set;

/* Something that a pipeline rank receives. */
typedef struct lower_arrival {
    int64_t time;       /* virtual, when it was made */
    size_t before_task; /* of the receiver: place of the receive */
    int32_t boundary;   /* before this global stage */
    int32_t chunk;      /* of the receiver */
    int64_t micro_batch;
    bool is_gradient;
} lower_arrival;

/* A segment that all ranks call which need one of this purpose and shape. */
typedef struct lower_shared_segment {
    int purpose;
    uint64_t key[3];
    uint32_t i_segment;
} lower_shared_segment;

/* The program under construction, beyond its segments. */
typedef struct lower_program {
    fr_program *program;
    fr_builder *builder;     /* of the rank at work */
    size_t n_tasks;          /* of each pipeline rank */
    fr_task *tasks;          /* [pp][n_tasks] */
    lower_arrival *arrivals; /* [pp][n_tasks], n_arrivals of them */
    size_t *n_arrivals;      /* [pp] */
    uint32_t i_load;         /* segment */
    fr_vec(lower_shared_segment) shared;
} lower_program;

/* One chunk; each of its layers has a slot, and what follows the last too. */
typedef struct lower_chunk {
    fr_stage_span span; /* of layers of the whole model */
    int32_t n_layers;
    uint32_t first_slot;
} lower_chunk;

/* The blocks that a layer has once for all micro-batches. */
typedef struct lower_slot_state {
    uint32_t unit; /* the (first) one */
    uint32_t low;  /* block of weights that were cast */
} lower_slot_state;

/* Blocks of a layer and micro-batch. */
typedef struct lower_blocks {
    uint32_t input, saved;
    uint32_t stream; /* before a later token's layer, whose input is another */
    uint32_t split;  /* between both parts of backward */
    uint32_t late;   /* from forward to the second part of backward */
    bool is_offloaded;
    uint32_t away; /* in the host's memory */
} lower_blocks;

typedef struct lower_rank {
    lower_context *context;
    lower_program *program;
    fr_rank_program *rank_program;
    fr_builder *builder;
    int32_t stage;          /* pipeline coordinate: a rank, that is */
    bool is_first, is_last; /* holds the first, the last stage */
    fr_vec(fr_tensor) tensors;
    fr_vec(lower_unit) units;     /* in the order of the flat list */
    fr_vec(lower_bucket) buckets; /* in the order of their completion */
    lower_ends ends;
    lower_ends_segments segments;
    lower_chunk *chunks;     /* [vpp] */
    uint32_t n_slots;        /* layers + vpp */
    lower_slot_state *slots; /* [n_slots] */
    lower_blocks *blocks;    /* [n_micro][n_slots] */
    uint32_t *tokens;        /* [n_micro] blocks */
    uint32_t *gradients;     /* [n_micro][vpp] received blocks */
    uint32_t sent[2][2];     /* blocks that this and the last task sent:
                                activation, gradient */
    uint32_t in_flight[2];   /* block sent last: activation, gradient */
    uint32_t awaited;        /* the next compute call waits for its send */
    int64_t n_loaded;        /* micro-batches whose tokens are there */
    uint32_t step;           /* block */
    uint32_t main_grads;     /* block: float32 copies at the step, or none */
    uint32_t compressing[FR_COMPRESS_STAGES]; /* buckets, by the stage whose
                                                payloads are on their way */
    uint32_t *transfers; /* [boundary][is_gradient][is_send] segments */
    /* ZeRO 2, 3 */
    fr_vec(lower_set) sets;
    uint32_t *set_of_use;             /* by fr_weight_use.set */
    fr_weight_uses uses;              /* ZeRO 3 */
    uint32_t i_embed_set, i_head_set; /* UINT32_MAX: none */
    size_t i_use, n_gathered;         /* uses that are over, provided for */
    uint32_t gate;                    /* block that the last use wrote */
    uint32_t left_grad, left_kept[2]; /* blocks on their way out */
    uint32_t reduced;       /* ZeRO 2, 3: the shard that was reduced last */
    uint32_t n_offloadable; /* layers x micro-batches so far */
} lower_rank;

/* ---- segments and calls ---- */

/* The segment of this purpose and key; `is_new`: it was begun just now, under
 * this name, and is to be filled. */
uint32_t lower_shared_segment_of(lower_rank *rank, int purpose,
                                 const uint64_t key[3], fr_lane lane,
                                 const char *name, bool *is_new);
void lower_add_call(lower_rank *rank, uint32_t i_segment, int32_t layer,
                    int64_t micro_batch, int32_t chunk);
/* Base at the begin of the flat list; uses the units of `only`, or all. */
void lower_bind_flat(lower_rank *rank, fr_space space, const lower_bucket *only,
                     char access);
uint32_t lower_add_activation(lower_rank *rank, uint64_t n_bytes);

/* ---- tasks and layers ---- */

/* Place of a layer (or what follows the last one) in `blocks`. */
size_t lower_slot(const lower_rank *rank, const fr_task *task, int32_t layer);
uint32_t *lower_gradient_of(const lower_rank *rank, const fr_task *task);
/* A gradient is worked on in place: room for the largest of the chunk. */
uint64_t lower_gradient_bytes(const lower_rank *rank, int32_t chunk);
/* The (first) unit of layer i of the task's chunk. */
const lower_unit *lower_layer_unit(const lower_rank *rank, const fr_task *task,
                                   int32_t i);
/* The unit of the layer's experts; NULL: none. */
const lower_unit *lower_expert_unit(const lower_rank *rank,
                                    const lower_unit *unit);
/* Returns the part of a bucket that a rank encodes: all of it, or its shard
 * with ZeRO over a part of the ranks (the tensors are then those of the whole
 * bucket). */
fr_bucket lower_coded_bucket(const lower_rank *rank,
                             const lower_bucket *bucket);
/* A bucket as compressors see it. */
fr_bucket lower_describe_bucket(const lower_rank *rank,
                                const lower_bucket *bucket);

#endif
