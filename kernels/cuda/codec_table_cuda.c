/* codec_table_cuda.c: the table of compressors' kernels on GPUs, alone, as that
 * of the CPU's (codec_table_cpu.c). */
#include "kernels/cuda/compress_cuda.h"

#define CODEC(symbol, name)                                                    \
    {fr_cuda_##name##_compress, fr_cuda_##name##_decompress},
const fr_codec_cuda fr_codecs_cuda[] = {FR_COMPRESSORS(CODEC)};
