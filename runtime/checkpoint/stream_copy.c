/* stream_copy.c: see stream_copy.h. */
#include "runtime/checkpoint/stream_copy.h"

#include <string.h>

#ifdef __SSE2__
#include <immintrin.h>
#include <stdint.h>

void fr_stream_copy(void *dst, const void *src, size_t n_bytes)
{
    enum { WORD = sizeof(__m128i), LINE = 4 * WORD };
    unsigned char *to = dst;
    const unsigned char *from = src;
    size_t head = (size_t)(-(uintptr_t)to & (LINE - 1));

    if (head > n_bytes)
        head = n_bytes;
    memcpy(to, from, head);
    to += head;
    from += head;
    n_bytes -= head;
    for (; n_bytes >= LINE; n_bytes -= LINE, to += LINE, from += LINE) {
        __m128i word[LINE / WORD];
        for (int i = 0; i < LINE / WORD; i++)
            word[i] = _mm_loadu_si128((const __m128i *)(const void *)from + i);
        for (int i = 0; i < LINE / WORD; i++)
            _mm_stream_si128((__m128i *)(void *)to + i, word[i]);
    }
    memcpy(to, from, n_bytes);
    /* Such stores wait for nobody: other threads see them from here on. */
    _mm_sfence();
}
#else
void fr_stream_copy(void *dst, const void *src, size_t n_bytes)
{
    memcpy(dst, src, n_bytes);
}
#endif
