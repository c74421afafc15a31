/*
 * framework.h: the training frameworks that forerun knows, by one list of names
 * (framework_list.h): --framework, --for, `export --to` and `import` find a
 * framework in it and complete from it.
 *
 * A row says how the framework executes a plan (facts), what it can be told of
 * one (target), and has the code that reads its configurations, writes them and
 * reads its logs.  All of a framework stands in its folder.
 */
#ifndef FR_FRAMEWORKS_FRAMEWORK_H
#define FR_FRAMEWORKS_FRAMEWORK_H

#include "frameworks/target.h"
#include "plan/decide/plan.h"

struct fr_config_format; /* frameworks/read/config.h */
struct fr_exporter;      /* frameworks/write/export.h */
struct fr_runlog_format; /* frameworks/log/runlog_format.h */

/* The defaults of a framework.  Their sources stand beside the rows. */
typedef struct fr_framework_facts {
    bool is_overlap;           /* gradient reduction overlaps backward */
    bool is_gather_overlap;    /* gathers of parameters overlap forward */
    bool is_tp_overlap;        /* TP collectives in pieces */
    bool is_vocab_padded;      /* to a multiple of 128 x tp */
    bool has_megatron_buckets; /* else PyTorch's: 25 MB */
    uint64_t bucket_elements;  /* of a bucket of gradients; 0: not by number */
    bool is_per_op_recompute;  /* "selective" is PyTorch's per-op SAC */
    bool is_mbs_local;         /* mbs is the batch of one rank's pipeline */
    bool is_early_stop;        /* of full recompute */
    bool is_p2p_sync;          /* without chunks the host waits for transfers
                                  between stages */
    bool is_bf16_grad;         /* bf16 gradients even where it could be f32 */
    fr_cp_kind cp_kind;
    bool is_local_ddp;          /* only "DDP-impl=torch" overlaps */
    bool has_sequence_parallel; /* on with tp where nothing is said */
    bool is_unfused;            /* attention, where nothing is said */
    fr_kernel_set kernels;      /* COMPILED where the row says so */
    fr_flash_kind flash_kind;
    fr_compress_unit compress_by;
    fr_scaling scaling; /* of fp8, where nothing is said */
    fr_zero_unit zero_unit;
    /* For gathers of single parameters, in elements: smaller parameters stay
     * whole; parameters that full recompute has used are still there for
     * backward within that distance. */
    uint64_t persistent_below, max_reuse_distance;
    uint64_t max_live; /* while so many are there nothing is fetched ahead */
    bool is_loss_fused, is_routing_fused, is_norm_fused;
    int n_loss_metrics;
    bool is_grad_added_apart; /* fp16 gradients */
    bool is_grad_listed;      /* ZeRO 1 */
    double gpt_dropout;       /* of GPT's and BERT's recipe; Llama's has
                                 none */
} fr_framework_facts;

typedef struct fr_framework {
    const char *name;    /* everywhere: of options, plan files and answers */
    const char *summary; /* for lists */
    /* Other names that are accepted, NULL at the end. */
    const char *aliases[3];
    const fr_framework_facts *facts; /* NULL: no --framework */
    const fr_target *target; /* of --to and --for; NULL: nothing is written */
    /* The target whose checks its plans pass: its own, or that of the library
     * it trains with; NULL: none is known. */
    const fr_target *checks;
    /* They read its configurations, write them, and read its logs (NULL at the
     * end); NULL: none can. */
    const struct fr_config_format *reader;
    const struct fr_exporter *writer;
    const struct fr_runlog_format *logs[3];
    /* Chooses the row by the plan if the name stands for several rows.  NULL:
     * it is a row of its own. */
    const struct fr_framework *(*choose)(const fr_plan *plan);
} fr_framework;

/* All rows (framework_table.c). */
extern const fr_framework *const fr_frameworks[];
extern const int fr_n_frameworks;

/* By a name or an alias, NULL: none has it. */
const fr_framework *fr_framework_named(const char *name);
/* The same of rows with facts alone. */
const fr_framework *fr_framework_find(const char *name);

/* The row itself, or the one that a name for several means with this plan. */
const fr_framework *fr_framework_chosen(const fr_framework *framework,
                                        const fr_plan *plan);

/* The names of the rows with facts, and row i of them (NULL past the last). */
extern const fr_names fr_framework_names;
const fr_framework *fr_framework_at(int i);

/*
 * Returns the programs that can execute a plan which fr_plan_check() accepts,
 * as bits: 0 is forerun's own backend, 1 + i the newest version of target i; on
 * CPUs forerun alone.
 */
uint32_t fr_target_executors(bool is_gpu, const fr_plan *plan,
                             const fr_model *model, const fr_job *job);
/* Returns the name of a bit; NULL past the last. */
const char *fr_target_executor_name(int bit);

/* Framework i of those whose target has fields, in their order, its target and
 * the target's name; NULL past the last. */
const fr_framework *fr_framework_with_target(int i);
const fr_target *fr_target_at(int i);
const char *fr_target_name(int i);

#endif
