/*
 * compressor_table.c: the table of gradient compressors.  It has nothing else,
 * so that a test can link a table of its own, with a compressor more.
 */
#include "plan/codec/compressor.h"

#define ENTRY(name, entry) &fr_compressor_##entry,
const fr_compressor *const fr_compressors[] = {FR_COMPRESSORS(ENTRY)};
const int fr_n_compressors = FR_COMPRESSOR_N;
