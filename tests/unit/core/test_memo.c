/* test_memo.c: many keys of several lengths against a plain list of them. */
#include "core/base/memo.h"
#include "core/numbers/rng.h"
#include "tests/check.h"

enum { N_KEYS = 2385, MOST_BYTES = 41 };

typedef struct entry {
    unsigned char key[MOST_BYTES];
    size_t n_bytes;
    double value[3];
} entry;

static entry entries[N_KEYS];

/* Few different bytes, so that keys are like each other. */
static void draw(fr_rng *rng, int i)
{
    entry *e = &entries[i];
    e->n_bytes = 12 + (size_t)fr_rng_below(rng, MOST_BYTES - 11);
    for (size_t k = 0; k < e->n_bytes; k++)
        e->key[k] = (unsigned char)fr_rng_below(rng, 3);
    for (int k = 0; k < 3; k++)
        e->value[k] = i + 0.238 * k;
}

static bool is_known(int i)
{
    for (int k = 0; k < i; k++)
        if (entries[k].n_bytes == entries[i].n_bytes &&
            memcmp(entries[k].key, entries[i].key, entries[i].n_bytes) == 0)
            return true;
    return false;
}

static void test_keys(void)
{
    fr_memo memo = {.value_bytes = sizeof entries[0].value};
    fr_rng *rng;
    fr_err err;
    size_t n = 0;
    if (!CHECK_OK(fr_rng_create(2385, &rng, &err), &err))
        return;
    for (int i = 0; i < N_KEYS; i++) {
        const entry *e = &entries[i];
        draw(rng, i);
        if (is_known(i)) {
            CHECK(fr_memo_find(&memo, e->key, e->n_bytes) != NULL);
            entries[i--].n_bytes = 0;
            continue;
        }
        CHECK(fr_memo_find(&memo, e->key, e->n_bytes) == NULL);
        CHECK(fr_memo_add(&memo, e->key, e->n_bytes, e->value) != NULL);
        n++;
    }
    CHECK_INT(memo.n, n);
    const double *value = NULL;
    for (int i = 0; i < N_KEYS; i++) {
        const entry *e = &entries[i];
        const double *found = fr_memo_find(&memo, e->key, e->n_bytes);
        value = fr_memo_next(&memo, value);
        if (!CHECK(found != NULL && found == value) ||
            !CHECK(memcmp(found, e->value, sizeof e->value) == 0))
            break;
    }
    CHECK(fr_memo_next(&memo, value) == NULL);
    fr_rng_destroy(rng);
    fr_memo_release(&memo);
    CHECK(fr_memo_next(&memo, NULL) == NULL);
}

static void test_numbers(void)
{
    fr_memo memo = {.value_bytes = sizeof(uint32_t)};
    fr_err err;
    for (uint32_t i = 0; i < 300; i++) {
        const uint64_t key[2] = {i % 100, 2385};
        uint32_t number;
        if (!CHECK_OK(fr_memo_number(&memo, key, sizeof key, &number, &err),
                      &err))
            break;
        CHECK_INT(number, i % 100);
    }
    fr_memo_release(&memo);
}

CHECK_MAIN({"keys are compared whole", test_keys},
           {"keys are numbered", test_numbers})
