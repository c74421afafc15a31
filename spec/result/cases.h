/*
 * cases.h: measured training runs from a CSV file, one per row, as text: what
 * a row means is found out by case.h.  Columns are those of
 * fr_case_column, in any order; others are passed over, absent ones are empty.
 *
 * The reader is strict (RFC 4180): every row has as many fields as the header,
 * quotes are closed and stand around a whole field, a quote within is doubled.
 */
#ifndef FR_SPEC_RESULT_CASES_H
#define FR_SPEC_RESULT_CASES_H

#include "core/base/err.h"

/* symbol, name in the header */
#define FR_CASE_COLUMN_LIST(X)                                                 \
    X(ID, "id")                                                                \
    X(SOURCE, "source")                                                        \
    X(SOURCE_REF, "source_ref")                                                \
    X(ROW, "row")                                                              \
    X(FRAMEWORK, "framework")                                                  \
    X(MODEL, "model")                                                          \
    X(ARCH, "arch")                                                            \
    X(LAYERS, "layers")                                                        \
    X(HIDDEN, "hidden")                                                        \
    X(HEADS, "heads")                                                          \
    X(KV_HEADS, "kv_heads")                                                    \
    X(FFN, "ffn")                                                              \
    X(FFN_MATRICES, "ffn_matrices")                                            \
    X(VOCAB, "vocab")                                                          \
    X(SEQ, "seq")                                                              \
    X(EXPERTS, "experts")                                                      \
    X(TOPK, "topk")                                                            \
    X(MOE_FFN, "moe_ffn")                                                      \
    X(SHARED_EXPERTS, "shared_experts")                                        \
    X(GPU, "gpu")                                                              \
    X(GPU_MEM_GB, "gpu_mem_gb")                                                \
    X(GPUS_PER_NODE, "gpus_per_node")                                          \
    X(NUM_GPUS, "num_gpus")                                                    \
    X(INTRA_NODE, "intra_node")                                                \
    X(INTER_NODE, "inter_node")                                                \
    X(DEVICE, "device")                                                        \
    X(NODE, "node")                                                            \
    X(NVLINK_GBPS, "nvlink_GBps")                                              \
    X(NICS, "nics")                                                            \
    X(NIC_GBPS, "nic_gbps")                                                    \
    X(DP, "dp")                                                                \
    X(TP, "tp")                                                                \
    X(PP, "pp")                                                                \
    X(VPP, "vpp")                                                              \
    X(CP, "cp")                                                                \
    X(EP, "ep")                                                                \
    X(ETP, "etp")                                                              \
    X(SP, "sp")                                                                \
    X(ZERO_STAGE, "zero_stage")                                                \
    X(MBS, "mbs")                                                              \
    X(GBS, "gbs")                                                              \
    X(GRAD_ACCUM, "grad_accum")                                                \
    X(RECOMPUTE, "recompute")                                                  \
    X(PRECISION, "precision")                                                  \
    X(SCHEDULE, "schedule")                                                    \
    X(FLASH_ATTN, "flash_attn")                                                \
    X(OTHER_OPTS, "other_opts")                                                \
    X(STEP_TIME_S, "step_time_s")                                              \
    X(TFLOPS_PER_GPU, "tflops_per_gpu")                                        \
    X(TFLOPS_KIND, "tflops_kind")                                              \
    X(TOKENS_PER_S_PER_GPU, "tokens_per_s_per_gpu")                            \
    X(SAMPLES_PER_S, "samples_per_s")                                          \
    X(THROUGHPUT, "throughput")                                                \
    X(THROUGHPUT_UNIT, "throughput_unit")                                      \
    X(SCALING, "scaling")                                                      \
    X(SYNC_METHOD, "sync_method")                                              \
    X(DATA, "data")                                                            \
    X(BATCH_PER_GPU, "batch_per_gpu")                                          \
    X(GLOBAL_BATCH, "global_batch")                                            \
    X(PHASE_SAMPLES, "phase_samples_m")                                        \
    X(PEAK_MEM_GB, "peak_mem_gb")                                              \
    X(PEAK_MEM_GIB, "peak_mem_gib")                                            \
    X(MEM_KIND, "mem_kind")                                                    \
    X(STATUS, "status")                                                        \
    X(CONFIG_COMPLETE, "config_complete")                                      \
    X(GRADE, "grade")

typedef enum fr_case_column {
#define FR_CASE_COLUMN_ENUM(symbol, name) FR_CASE_##symbol,
    FR_CASE_COLUMN_LIST(FR_CASE_COLUMN_ENUM)
#undef FR_CASE_COLUMN_ENUM
        FR_CASE_COLUMN_N
} fr_case_column;

const char *fr_case_column_name(fr_case_column column);

typedef struct fr_case {
    const char *file; /* as it was given */
    int line;
    bool has_grade, has_config_complete; /* does the file have the column? */
    const char *field[FR_CASE_COLUMN_N]; /* trimmed; "": empty or no column */
} fr_case;

/* Rows own nothing; the texts belong to the list. */
typedef struct fr_cases {
    fr_case *at;
    size_t n;
    char *text;
} fr_cases;

/* FR_IO when unreadable; FR_INPUT "path:line: what" when not such a file. */
FR_CHECKED fr_status fr_cases_load(const char *path, fr_cases *out,
                                   fr_err *err);
/* The same from text; `name` stands in messages and must outlive `out`. */
FR_CHECKED fr_status fr_cases_parse(const char *name, const char *text,
                                    size_t n_text, fr_cases *out, fr_err *err);
void fr_cases_release(fr_cases *cases);

/*
 * A field as a number of at least `low`.  An empty field leaves *out as it is.
 * FR_INPUT "path:line: layers 'x': ..." otherwise.
 */
FR_CHECKED fr_status fr_case_count(const fr_case *row, fr_case_column column,
                                   int64_t low, int64_t *out, fr_err *err);
FR_CHECKED fr_status fr_case_real(const fr_case *row, fr_case_column column,
                                  double *out, fr_err *err);

#endif
