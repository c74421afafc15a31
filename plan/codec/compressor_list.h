/*
 * compressor_list.h: the rows of the tables of gradient compressors.
 *
 * A compressor is a file with one const fr_compressor, its kernels and one row
 * here: NAME makes FR_COMPRESSOR_NAME, the number that a plan holds, and ENTRY
 * names its struct fr_compressor_ENTRY (compressor.h) and its kernels
 * fr_cpu_ENTRY_compress and fr_cpu_ENTRY_decompress
 * (kernels/cpu/codec_table_cpu.c), fr_cuda_ENTRY_compress and
 * fr_cuda_ENTRY_decompress (kernels/cuda/codec_table_cuda.c).
 */
#ifndef FR_PLAN_CODEC_COMPRESSOR_LIST_H
#define FR_PLAN_CODEC_COMPRESSOR_LIST_H

#include "core/document/names.h"

#define FR_COMPRESSORS(ROW)                                                    \
    ROW(NONE, none)                                                            \
    ROW(BF16, bf16)                                                            \
    ROW(INT8, int8)                                                            \
    ROW(TOPK, topk)                                                            \
    ROW(POWERSGD, powersgd)                                                    \
    ROW(ONEBIT, onebit)                                                        \
    ROW(RANDOMK, randomk)

#define FR_COMPRESSOR_KIND(name, entry) FR_COMPRESSOR_##name,
typedef enum fr_compressor_kind {
    FR_COMPRESSORS(FR_COMPRESSOR_KIND) FR_COMPRESSOR_N
} fr_compressor_kind;
#undef FR_COMPRESSOR_KIND

/* Rows of the table. */
extern const int fr_n_compressors;

extern const fr_names fr_compressor_names;

#endif
