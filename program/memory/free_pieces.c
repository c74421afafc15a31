/* free_pieces.c: sizes in order, the pieces of each size as bits. */
#include "program/memory/free_pieces.h"

#include <string.h>

enum { WORD = 64, FIRST_SETS = 16 };

/* Sizes come and go: so many stay a while without a piece. */
enum { MOST_EMPTY = 4 };

void fr_free_pieces_init(fr_free_pieces *out)
{
    *out = (fr_free_pieces){.last = FR_PIECE_NONE};
}

void fr_free_pieces_release(fr_free_pieces *pieces)
{
    fr_vec_release(&pieces->sizes);
    fr_vec_release(&pieces->unused_sets);
    free(pieces->bits);
    fr_free_pieces_init(pieces);
}

/* ---- sets --------------------------------------------------------------- */

static size_t set_words(size_t n_words)
{
    return n_words + n_words / WORD;
}

static uint64_t *set_of(const fr_free_pieces *pieces, const fr_free_size *size)
{
    return pieces->bits + size->set * set_words(pieces->n_words);
}

static void set_add(fr_free_pieces *pieces, fr_free_size *size, uint32_t number)
{
    uint64_t *words = set_of(pieces, size);
    size_t w = number / WORD;
    words[w] |= UINT64_C(1) << number % WORD;
    words[pieces->n_words + w / WORD] |= UINT64_C(1) << w % WORD;
    pieces->n_empty -= size->n_pieces++ == 0;
}

static void set_remove(fr_free_pieces *pieces, fr_free_size *size,
                       uint32_t number)
{
    uint64_t *words = set_of(pieces, size);
    size_t w = number / WORD;
    words[w] &= ~(UINT64_C(1) << number % WORD);
    if (words[w] == 0)
        words[pieces->n_words + w / WORD] &= ~(UINT64_C(1) << w % WORD);
    pieces->n_empty += --size->n_pieces == 0;
}

/* The lowest number of a set that is not empty. */
static uint32_t set_first(const fr_free_pieces *pieces,
                          const fr_free_size *size)
{
    const uint64_t *words = set_of(pieces, size);
    const uint64_t *some = words + pieces->n_words;
    size_t s = 0;
    while (some[s] == 0)
        s++;
    size_t w = s * WORD + (size_t)__builtin_ctzll(some[s]);
    return (uint32_t)(w * WORD + (size_t)__builtin_ctzll(words[w]));
}

/* So many sets of so many words, never fewer than there are. */
static bool make_room(fr_free_pieces *pieces, size_t n_sets, size_t n_words)
{
    size_t n_old = pieces->n_sets;
    uint64_t *bits = calloc(n_sets * set_words(n_words), sizeof *bits);
    if (bits == NULL || fr_vec_reserve(&pieces->unused_sets, n_sets) != FR_OK) {
        free(bits);
        return false;
    }
    for (size_t i = 0; i < n_old; i++) {
        const uint64_t *from = pieces->bits + i * set_words(pieces->n_words);
        uint64_t *to = bits + i * set_words(n_words);
        memcpy(to, from, pieces->n_words * sizeof *to);
        memcpy(to + n_words, from + pieces->n_words,
               pieces->n_words / WORD * sizeof *to);
    }
    for (size_t i = n_sets; i-- > n_old;)
        pieces->unused_sets.items[pieces->unused_sets.n++] = (uint32_t)i;
    free(pieces->bits);
    pieces->bits = bits;
    pieces->n_sets = n_sets;
    pieces->n_words = n_words;
    return true;
}

/* ---- sizes -------------------------------------------------------------- */

/* The first size that is not smaller. */
static size_t size_at(const fr_free_pieces *pieces, uint64_t n_bytes)
{
    const fr_free_size *sizes = pieces->sizes.items;
    size_t at = 0, n = pieces->sizes.n;
    /* No branch on what is compared: it cannot be foreseen. */
    for (size_t half; n > 0; n -= half) {
        half = (n + 1) / 2;
        at += sizes[at + half - 1].n_bytes < n_bytes ? half : 0;
    }
    return at;
}

static void drop_empty_sizes(fr_free_pieces *pieces)
{
    size_t n = 0;
    for (size_t i = 0; i < pieces->sizes.n; i++) {
        const fr_free_size *size = &pieces->sizes.items[i];
        if (size->n_pieces > 0)
            pieces->sizes.items[n++] = *size;
        else
            pieces->unused_sets.items[pieces->unused_sets.n++] = size->set;
    }
    pieces->sizes.n = n;
    pieces->n_empty = 0;
}

static bool find_unused_set(fr_free_pieces *pieces)
{
    return pieces->unused_sets.n > 0 ||
           make_room(pieces, 2 * pieces->n_sets + FIRST_SETS,
                     pieces->n_words > 0 ? pieces->n_words : WORD);
}

/* The place of a size, which is made; NULL: out of memory. */
static fr_free_size *find_size(fr_free_pieces *pieces, uint64_t n_bytes)
{
    size_t at = size_at(pieces, n_bytes);
    if (at < pieces->sizes.n && pieces->sizes.items[at].n_bytes == n_bytes)
        return &pieces->sizes.items[at];
    if (pieces->n_empty > MOST_EMPTY) {
        drop_empty_sizes(pieces);
        at = size_at(pieces, n_bytes);
    }
    if (!find_unused_set(pieces) || fr_vec_reserve(&pieces->sizes, 1) != FR_OK)
        return NULL;
    fr_free_size *sizes = pieces->sizes.items;
    for (size_t i = pieces->sizes.n++; i > at; i--)
        sizes[i] = sizes[i - 1];
    sizes[at] = (fr_free_size){
        n_bytes, pieces->unused_sets.items[--pieces->unused_sets.n], 0};
    pieces->n_empty++;
    return &sizes[at];
}

static bool file_last(fr_free_pieces *pieces)
{
    fr_free_size *size = find_size(pieces, pieces->last_bytes);
    size_t n_words = pieces->n_words;
    if (size == NULL)
        return false;
    while (pieces->last / WORD >= n_words)
        n_words *= 2;
    if (n_words > pieces->n_words &&
        !make_room(pieces, pieces->n_sets, n_words))
        return false;
    set_add(pieces, size, pieces->last);
    return true;
}

/* ---- all of them -------------------------------------------------------- */

bool fr_free_pieces_add(fr_free_pieces *pieces, uint64_t n_bytes,
                        uint32_t number)
{
    if (pieces->last != FR_PIECE_NONE && !file_last(pieces))
        return false;
    pieces->last = number;
    pieces->last_bytes = n_bytes;
    return true;
}

void fr_free_pieces_remove(fr_free_pieces *pieces, uint64_t n_bytes,
                           uint32_t number)
{
    if (number == pieces->last)
        pieces->last = FR_PIECE_NONE;
    else
        set_remove(pieces, &pieces->sizes.items[size_at(pieces, n_bytes)],
                   number);
}

uint32_t fr_free_pieces_take(fr_free_pieces *pieces, uint64_t n_bytes)
{
    size_t at = size_at(pieces, n_bytes), n = pieces->sizes.n;
    uint32_t last = pieces->last, first = FR_PIECE_NONE;
    while (at < n && pieces->sizes.items[at].n_pieces == 0)
        at++;
    fr_free_size *size = at < n ? &pieces->sizes.items[at] : NULL;
    if (size != NULL)
        first = set_first(pieces, size);
    if (last != FR_PIECE_NONE && pieces->last_bytes >= n_bytes &&
        (size == NULL || pieces->last_bytes < size->n_bytes ||
         (pieces->last_bytes == size->n_bytes && last < first))) {
        pieces->last = FR_PIECE_NONE;
        return last;
    }
    if (size != NULL)
        set_remove(pieces, size, first);
    return first;
}
