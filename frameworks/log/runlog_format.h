/*
 * runlog_format.h: what a framework's log looks like, for runlog_*.c alone.
 */
#ifndef FR_FRAMEWORKS_LOG_RUNLOG_FORMAT_H
#define FR_FRAMEWORKS_LOG_RUNLOG_FORMAT_H

#include "core/stream/lines.h"
#include "frameworks/framework_list.h"
#include "frameworks/log/runlog.h"

/* Facts of its run that a log may give. */
#define FR_RUNLOG_FACTS(X)                                                     \
    X(WORLD)                                                                   \
    X(DP)                                                                      \
    X(TP)                                                                      \
    X(PP)                                                                      \
    X(VPP)                                                                     \
    X(VSTAGE_LAYERS)                                                           \
    X(CP)                                                                      \
    X(EP)                                                                      \
    X(ETP)                                                                     \
    X(SP)                                                                      \
    X(REPLICATE)                                                               \
    X(SHARD)                                                                   \
    X(DISTRIBUTED_OPTIMIZER) X(ZERO) X(FSDP) X(MBS) X(GBS) X(GBS_TOKENS)       \
        X(ACCUM) X(SEQ) X(MODEL) X(LAYERS) X(HIDDEN) X(HEADS) X(KV_HEADS)      \
            X(IS_GROUPED) X(FFN) X(EXPANSION) X(GATED) X(VOCAB)                \
                X(PADDED_VOCAB) X(EXPERTS) X(TOPK) X(MOE_FFN) X(SHARED_FFN)    \
                    X(LATENT) X(ROPE) X(UNTIED) X(BIAS) X(QK_NORM) X(NORM)     \
                        X(RECOMPUTE) X(RECOMPUTE_METHOD) X(RECOMPUTE_LAYERS)   \
                            X(RECOMPUTE_MODULES) X(BF16) X(FP16) X(FP8)        \
                                X(FP8_RECIPE) X(PRECISION) X(MIXED)            \
                                    X(OVERLAP_GRAD) X(OVERLAP_PARAM)           \
                                        X(TP_OVERLAP) X(CUDA_GRAPHS) X(DEEPEP) \
                                            X(EP_OVERLAP) X(COMPILED)          \
                                                X(DROPOUT) X(FLASH) X(OFFLOAD) \
                                                    X(GPU) X(GPU_MEM_GB)

typedef enum fr_runlog_fact {
#define FR_RUNLOG_FACT_ENUM(symbol) FR_RUNLOG_##symbol,
    FR_RUNLOG_FACTS(FR_RUNLOG_FACT_ENUM)
#undef FR_RUNLOG_FACT_ENUM
        FR_RUNLOG_FACT_N
} fr_runlog_fact;

/* Quantities that lines of steps give. */
typedef enum fr_runlog_measure {
    FR_RUNLOG_STEP_S,
    FR_RUNLOG_SAMPLES_PER_S,
    FR_RUNLOG_TOKENS_PER_S,
    FR_RUNLOG_TOKENS_PER_S_PER_GPU,
    FR_RUNLOG_TFLOPS, /* of a GPU */
    FR_RUNLOG_BATCH,  /* samples of a step */
    FR_RUNLOG_BATCH_TOKENS,
    FR_RUNLOG_ALLOCATED_GIB, /* largest so far */
    FR_RUNLOG_RESERVED_GIB,
    FR_RUNLOG_MEASURE_N
} fr_runlog_measure;

/* A number stands behind a word. */
typedef struct fr_runlog_number {
    const char *word;
    fr_runlog_measure measure;
    double scale;
    bool is_inverse; /* scale / number */
} fr_runlog_number;

struct fr_runlog_reader;

typedef struct fr_runlog_format {
    const char *what;
    const char *cell;        /* of column framework */
    const char *step_mark;   /* every line of a step has it */
    const char *other_mark;  /* and no line of an evaluation; NULL: none */
    const char *tflops_kind; /* what its TFLOP/s count */
    const char *memory_kind; /* whose memory it is: "rank 0" */
    const char *note;        /* for all its logs; NULL: none */
    bool is_unit;            /* words of numbers stand behind them: "2it/s" */
    bool is_weak;            /* steps of any other format go before its */
    fr_runlog_number numbers[10];
    /* Reads what the tables do not describe, for every line up to the first
     * step. May be NULL. */
    void (*read)(struct fr_runlog_reader *reader, const char *line);
} fr_runlog_format;

/* Values of one measure, in order.  Where there are too many every second is
 * dropped, and from then on only every second one kept. */
enum { FR_RUNLOG_VALUES_MAX = 1 << 18 };
typedef struct fr_runlog_values {
    double *at;
    size_t n, cap;
    uint64_t n_seen, stride;
} fr_runlog_values;

typedef struct fr_runlog_reader {
    fr_lines lines;
    const fr_runlog_format *format; /* NULL: no step yet */
    const fr_framework *framework;  /* that prints it */
    bool is_both;                   /* Megatron-DeepSpeed */
    char fact[FR_RUNLOG_FACT_N][FR_RUNLOG_FIELD];
    uint64_t fact_line[FR_RUNLOG_FACT_N];
    fr_runlog_values values[FR_RUNLOG_BATCH]; /* of the measures before it */
    double last[FR_RUNLOG_MEASURE_N];
    char rank[32];          /* whose lines of steps count */
    uint64_t n_ramp, n_bad; /* steps of other batches; without sense */
} fr_runlog_reader;

/* Keeps a value that is not yet known. */
void fr_runlog_set(fr_runlog_reader *reader, fr_runlog_fact fact,
                   const char *value, size_t n);
/* The known fact, "" without; as a whole number, 0 without. */
const char *fr_runlog_text(const fr_runlog_reader *reader, fr_runlog_fact fact);
int64_t fr_runlog_count(const fr_runlog_reader *reader, fr_runlog_fact fact);
bool fr_runlog_is(const fr_runlog_reader *reader, fr_runlog_fact fact);

/*
 * "11.5K", "22,801", "4.2e3", with blanks before it: nanotron's letters are
 * thousands (logging/base.py, human_format).  False: no finite number.
 */
bool fr_runlog_parse_number(const char *text, double *out);

/*
 * The settings of a line: "key .... value" (Megatron, DeepSpeed), "key: value"
 * (YAML, JSON) and "key=value" (Python).  FR_INPUT where dots lead to another
 * value than before: two runs in one file.
 */
FR_CHECKED fr_status fr_runlog_read_words(fr_runlog_reader *reader,
                                          fr_err *err);

/* The columns of the row, from facts and steps. */
FR_CHECKED fr_status fr_runlog_finish(fr_runlog_reader *reader, fr_runlog *out,
                                      fr_err *err);

#endif
