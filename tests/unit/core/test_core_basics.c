/* test_core_basics.c: errors, arenas, vectors, buffers, hashes, text. */
#include "core/base/arena.h"
#include "core/base/buffer.h"
#include "core/base/err.h"
#include "core/base/hash.h"
#include "core/base/log.h"
#include "core/base/text.h"
#include "core/base/vec.h"
#include "core/system/clock.h"
#include "tests/check.h"

#include <stdlib.h>

static void test_err(void)
{
    fr_err err = {FR_OK, "kept"};
    char longer[3000];

    CHECK(fr_fail(NULL, FR_INPUT, "x") == FR_INPUT);
    CHECK(fr_fail(&err, FR_INPUT, "a.json:%d: no\nbreak", 17) == FR_INPUT);
    CHECK_STR(err.text, "a.json:17: no break");
    fr_err_prefix(&err, "loading %s", "it");
    CHECK_STR(err.text, "loading it: a.json:17: no break");
    /* The text may be an argument of its successor. */
    CHECK(fr_fail(&err, FR_IO, "<%s>", err.text) == FR_IO);
    CHECK_STR(err.text, "<loading it: a.json:17: no break>");
    /* Escapes of a terminal, broken UTF-8, turned directions. */
    CHECK(fr_fail(&err, FR_IO, "\x1b[31m \xff \xe2\x80\xae \xc3\xa9") == FR_IO);
    CHECK_STR(err.text, "\\x1b[31m \\xff \\xe2\\x80\\xae \xc3\xa9");
    memset(longer, 'y', sizeof longer);
    longer[sizeof longer - 1] = '\0';
    CHECK(fr_fail(&err, FR_CHECK, "%s", longer) == FR_CHECK);
    CHECK_INT(strlen(err.text), sizeof err.text - 1);
    fr_err_prefix(&err, "%s", "zz");
    CHECK_INT(strlen(err.text), sizeof err.text - 1);
    CHECK(strncmp(err.text, "zz: yyy", 7) == 0);
    /* The exit codes are part of the command line's contract. */
    CHECK_INT(fr_status_exit_code(FR_OK), 0);
    CHECK_INT(fr_status_exit_code(FR_IO), 1);
    CHECK_INT(fr_status_exit_code(FR_USAGE), 2);
    CHECK_INT(fr_status_exit_code(FR_INFEASIBLE), 3);
    CHECK_INT(fr_status_exit_code(FR_CHECK), 4);
    CHECK_INT(fr_status_exit_code(FR_INPUT), 5);
    CHECK_INT(fr_status_exit_code(FR_SKIPPED), 77);
}

static void test_arena(void)
{
    enum { N = 5000 };
    static unsigned char *blocks[N];
    static size_t sizes[N];
    fr_arena arena;
    uint64_t state = 88172645463325252u;
    size_t total = 0, n_wrong = 0;

    fr_arena_init(&arena);
    for (size_t i = 0; i < N; i++) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        sizes[i] = state % (i % 97 == 0 ? 300000 : 211);
        blocks[i] = fr_arena_alloc(&arena, sizes[i]);
        CHECK(blocks[i] != NULL);
        CHECK((uintptr_t)blocks[i] % 16 == 0);
        for (size_t k = 0; k < sizes[i]; k++)
            n_wrong += blocks[i][k] != 0;
        memset(blocks[i], (int)(i % 251) + 1, sizes[i]);
        total += sizes[i];
    }
    /* Nobody wrote over anybody. */
    for (size_t i = 0; i < N; i++)
        for (size_t k = 0; k < sizes[i]; k++)
            n_wrong += blocks[i][k] != i % 251 + 1;
    CHECK_INT(n_wrong, 0);
    CHECK(arena.total_bytes >= total);
    CHECK_STR(fr_arena_printf(&arena, "%s-%d", "node", 2385), "node-2385");
    CHECK_STR(fr_arena_strdup(&arena, "gpt2"), "gpt2");
    CHECK_STR(fr_arena_strndup(&arena, "gpt2-xl", 4), "gpt2");
    CHECK(fr_arena_array(&arena, SIZE_MAX / 3, 7) == NULL);
    CHECK(fr_arena_alloc(&arena, SIZE_MAX) == NULL);
    fr_arena_release(&arena);
    CHECK(arena.chunks == NULL);
    CHECK(fr_arena_alloc(&arena, 0) != NULL);
    fr_arena_release(&arena);
}

static void test_vec(void)
{
    typedef struct item {
        uint64_t key;
        char tag;
    } item;
    fr_vec(item) vec = {0};
    fr_vec(double) doubles = {0};

    for (uint64_t i = 0; i < 3001; i++)
        CHECK(fr_vec_push(&vec, ((item){i * i, (char)(i % 7)})) == FR_OK);
    CHECK_INT(vec.n, 3001);
    for (uint64_t i = 0; i < vec.n; i++)
        CHECK(vec.items[i].key == i * i && vec.items[i].tag == (char)(i % 7));
    CHECK(fr_vec_reserve(&vec, SIZE_MAX) == FR_NO_MEMORY);
    CHECK(fr_vec_reserve(&vec, SIZE_MAX / 2) == FR_NO_MEMORY);
    CHECK_INT(vec.n, 3001);
    fr_vec_release(&vec);
    CHECK(vec.items == NULL && vec.n == 0 && vec.capacity == 0);
    CHECK(fr_vec_reserve(&doubles, 137) == FR_OK);
    CHECK(doubles.capacity >= 137 && doubles.n == 0);
    fr_vec_release(&doubles);
}

static void test_buffer(void)
{
    fr_buffer buffer;
    fr_err err;

    fr_buffer_init(&buffer);
    CHECK_STR(fr_buffer_text(&buffer), "");
    for (int i = 0; i < 1000; i++)
        fr_buffer_printf(&buffer, "%d,", i);
    /* 10 one-digit, 90 two-digit, 900 three-digit numbers, 1000 commas */
    CHECK_INT(buffer.n, 10 + 180 + 2700 + 1000);
    CHECK(strncmp(buffer.data, "0,1,2,", 6) == 0);
    CHECK(fr_text_ends(buffer.data, ",998,999,"));
    CHECK_OK(fr_buffer_check(&buffer, &err), &err);
    fr_buffer_release(&buffer);
    fr_buffer_puts(&buffer, "ab");
    fr_buffer_fill(&buffer, '-', 3);
    fr_buffer_putc(&buffer, 'c');
    CHECK_STR(fr_buffer_text(&buffer), "ab---c");
    fr_buffer_fill(&buffer, 'x', SIZE_MAX);
    CHECK_FAILS(fr_buffer_check(&buffer, &err), FR_NO_MEMORY, &err);
    fr_buffer_release(&buffer);
}

static void test_hash(void)
{
    unsigned char bytes[64];
    uint64_t seen[1 + 64 * 8], hash, parsed;
    size_t n_seen = 0;
    char text[17];

    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(i * 37 + 11);
    seen[n_seen++] = fr_hash_bytes(bytes, sizeof bytes, 2385);
    /* Every bit counts, and each flips about half of the result. */
    for (size_t bit = 0; bit < 64 * 8; bit++) {
        int n_flipped;
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
        hash = fr_hash_bytes(bytes, sizeof bytes, 2385);
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
        n_flipped = __builtin_popcountll(hash ^ seen[0]);
        CHECK(n_flipped >= 10 && n_flipped <= 54);
        for (size_t i = 0; i < n_seen; i++)
            CHECK(seen[i] != hash);
        seen[n_seen++] = hash;
    }
    CHECK(fr_hash_bytes("", 0, 0) != fr_hash_bytes("\0", 1, 0));
    CHECK(fr_hash_text("tp", 1) != fr_hash_text("tp", 2));
    CHECK(fr_hash_text("tp", 1) == fr_hash_bytes("tp", 2, 1));
    fr_hash_format(0x0123456789abcdefu, text);
    CHECK_STR(text, "0123456789abcdef");
    CHECK(fr_hash_parse("0123456789ABCdef", &parsed) &&
          parsed == 0x0123456789abcdefu);
    CHECK(!fr_hash_parse("0123456789abcde", &parsed));
    CHECK(!fr_hash_parse("0123456789abcdef0", &parsed));
    CHECK(!fr_hash_parse("0123456789abcdeg", &parsed));
    /* splitmix64, first outputs for seed 1234567 as published with the
     * generator: state += golden ratio, then the mix. */
    CHECK(fr_hash_mix(1234567u + 0x9e3779b97f4a7c15u) == 6457827717110365317u);
    CHECK(fr_hash_mix(1234567u + 2 * 0x9e3779b97f4a7c15u) ==
          3203168211198807973u);
}

static void test_text(void)
{
    static const char *const keys[] = {"hidden", "heads", "layers", "vocab",
                                       "tp"};
    char out[8], *fields[3], line[] = "a,,bc,d", blank[] = "  x y\t\n";
    const char *cut = "ab\xc3\xa9\xc3\xa9\xc3\xa9";

    CHECK_STR(fr_text_nearest("hiden", keys, 5), "hidden");
    CHECK_STR(fr_text_nearest("HIDDEN", keys, 5), "hidden");
    CHECK_STR(fr_text_nearest("haeds", keys, 5), "heads");
    CHECK_STR(fr_text_nearest("pt", keys, 5), "tp");
    CHECK_STR(fr_text_nearest("optimizer", keys, 5), NULL);
    /* A whole part comes before the beginning of one, both before letters. */
    static const char *const nodes[] = {"a3-highgpu-8g", "a3-megagpu-8g",
                                        "mi300x-8", "g5.48xlarge", "dgx-a100"};
    CHECK_STR(fr_text_nearest("a3-mega", nodes, 5), "a3-megagpu-8g");
    CHECK_STR(fr_text_nearest("mi300", nodes, 5), "mi300x-8");
    CHECK_STR(fr_text_nearest("a100", nodes, 5), "dgx-a100");
    CHECK_STR(fr_text_nearest("qq", nodes, 5), NULL);
    CHECK_STR(fr_text_nearest("xy", keys, 5), NULL);
    CHECK_INT(fr_text_distance("kitten", "sitting"), 3);
    CHECK_INT(fr_text_distance("", "abc"), 3);
    CHECK_INT(fr_text_distance("ca", "ac"), 1);
    CHECK_INT(fr_text_find("vocab", keys, 5), 3);
    CHECK_INT(fr_text_find("voca", keys, 5), -1);
    CHECK(fr_text_copy(out, sizeof out, "1234567"));
    CHECK(!fr_text_copy(out, sizeof out, "12345678"));
    CHECK_STR(out, "1234567");
    fr_text_copy_cut(out, 8, cut);
    CHECK_STR(out, "ab\xc3\xa9\xc3\xa9");
    fr_text_copy_cut(out, 7, cut);
    CHECK_STR(out, "ab\xc3\xa9\xc3\xa9");
    CHECK_STR(fr_text_trim(blank), "x y");
    CHECK_INT(fr_text_split(line, ',', fields, 3), 4);
    CHECK_STR(fields[0], "a");
    CHECK_STR(fields[1], "");
    CHECK_STR(fields[2], "bc");
    CHECK(fr_text_starts("forerun", "fore") && !fr_text_starts("for", "fore"));
    CHECK(fr_text_ends("a.json", ".json") && !fr_text_ends("n", ".json"));
    CHECK(fr_text_equal(NULL, NULL) && !fr_text_equal("", NULL));
}

static void test_utf8(void)
{
    static const struct {
        const char *text;
        size_t n, n_valid;
    } cases[] = {
        {"plain", 5, 5},
        {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 9, 9},
        {"\xc0\x80", 2, 0},         /* overlong */
        {"\xc1\xbf", 2, 0},         /* overlong */
        {"\xe0\x9f\xbf", 3, 0},     /* overlong */
        {"\xf0\x8f\xbf\xbf", 4, 0}, /* overlong */
        {"\xed\xa0\x80", 3, 0},     /* surrogate */
        {"\xf4\x90\x80\x80", 4, 0}, /* above U+10FFFF */
        {"\xf5\x80\x80\x80", 4, 0},
        {"ab\x80", 3, 2},
        {"ab\xe2\x82", 4, 2},
        {"\xe2\x82\x41", 3, 0},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        CHECK_INT(fr_text_utf8_valid(cases[i].text, cases[i].n),
                  cases[i].n_valid);
}

typedef struct heard {
    char line[64], progress[64];
    int n_lines;
} heard;

static void hear_line(void *context, fr_log_level level, const char *line)
{
    heard *h = context;

    (void)level;
    h->n_lines++;
    fr_text_copy_cut(h->line, sizeof h->line, line);
}

static void hear_progress(void *context, double done_frac, const char *text)
{
    heard *h = context;

    snprintf(h->progress, sizeof h->progress, "%g %s", done_frac,
             text ? text : "end");
}

static void test_log(void)
{
    heard h = {0};
    fr_log log = {.line = hear_line,
                  .progress = hear_progress,
                  .context = &h,
                  .least = FR_LOG_INFO};
    FILE *file = tmpfile();
    char text[64] = "";

    fr_log_write(NULL, FR_LOG_WARNING, "to nobody");
    fr_log_write(&log, FR_LOG_DEBUG, "dropped");
    CHECK_INT(h.n_lines, 0);
    fr_log_write(&log, FR_LOG_INFO, "step %d\nloss", 7);
    CHECK_STR(h.line, "step 7 loss");
    fr_log_progress(&log, 0.25, "run %s", "a");
    CHECK_STR(h.progress, "0.25 run a");
    fr_log_progress_end(&log);
    CHECK_STR(h.progress, "-1 end");
    if (!file)
        SKIP("no temporary file");
    /* A file is no terminal: no progress, no escapes. */
    fr_log_init_stream(&log, file);
    fr_log_progress(&log, 0.5, "hidden");
    fr_log_write(&log, FR_LOG_WARNING, "stale profile");
    rewind(file);
    CHECK(fgets(text, sizeof text, file) != NULL);
    CHECK_STR(text, "warning: stale profile\n");
    fclose(file);
}

static void test_clock(void)
{
    double before_s = fr_clock_s();
    int64_t before_ns = fr_clock_ns();

    fr_sleep_s(0.0123);
    CHECK(fr_clock_s() - before_s >= 0.0123);
    CHECK(fr_clock_ns() - before_ns >= 12300000);
    fr_sleep_s(-1);
    fr_sleep_s(NAN);
}

CHECK_MAIN({"err", test_err}, {"arena", test_arena}, {"vec", test_vec},
           {"buffer", test_buffer}, {"hash", test_hash}, {"text", test_text},
           {"utf8", test_utf8}, {"log", test_log}, {"clock", test_clock})
