/* test_stream_copy.c: copies past the caches are copies. */
#include "runtime/checkpoint/stream_copy.h"
#include "tests/check.h"

#include <string.h>

/* Every place in a line, lengths around one line and several. */
static void test_places_and_lengths(void)
{
    enum { ROOM = 512, LINE = 64 };
    static const size_t lengths[] = {0, 1, 63, 64, 65, 127, 200, 256, 300};
    unsigned char from[ROOM], to[ROOM];

    for (int i = 0; i < ROOM; i++)
        from[i] = (unsigned char)(i * 7 + 1);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        for (size_t at = 0; at < LINE; at++) {
            const size_t n = lengths[i], from_at = at * 5 % LINE;
            memset(to, 0, sizeof to);
            fr_stream_copy(to + 1 + at, from + from_at, n);
            CHECK(memcmp(to + 1 + at, from + from_at, n) == 0);
            CHECK(to[at] == 0 && to[1 + at + n] == 0);
        }
    }
}

CHECK_MAIN({"places_and_lengths", test_places_and_lengths})
