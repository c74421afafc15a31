/* codec_table_cpu.c: the table of compressors' kernels on CPUs, alone, so that
 * a test can link one with a compressor more (compressor_table.c). */
#include "kernels/kernels_list.h"

#define CODEC(symbol, name)                                                    \
    {fr_kernel_##name##_compress, fr_kernel_##name##_decompress},
const fr_codec_cpu fr_codecs_cpu[] = {FR_COMPRESSORS(CODEC)};
