/*
 * layer_list.c: the list that --moe-layer-freq says.  Its lists stand one after
 * the other in one array, so that a sum of two that were just read is the two
 * as they stand, and only the last is ever repeated.
 */
#include "frameworks/megatron/read/megatron_flags.h"

/* Brackets in brackets, numbers, and all that is written by repeating. */
enum { DEEPEST = 16, LARGEST = 1 << 20, MOST_REPEATS = 1 << 22 };

typedef struct reader {
    const char *p;
    int depth;
    int64_t n_most;
    char *list;
    int64_t n;         /* of it */
    int64_t n_repeats; /* items that repeating wrote */
} reader;

/* A list of n, the end of the reader's, or the number n. */
typedef struct value {
    bool is_list;
    int64_t n;
} value;

static bool read_sum(reader *r, value *out);

static bool take(reader *r, char c)
{
    if (*r->p != c)
        return false;
    r->p++;
    return true;
}

static bool read_number(reader *r, int64_t *out)
{
    if (*r->p < '0' || *r->p > '9')
        return false;
    for (*out = 0; *r->p >= '0' && *r->p <= '9'; r->p++) {
        *out = 10 * *out + (*r->p - '0');
        if (*out > LARGEST)
            return false;
    }
    return true;
}

/* "[0,1,1]", whose first bracket has been read. */
static bool read_items(reader *r, int64_t *out)
{
    for (*out = 0; !take(r, ']'); (*out)++) {
        int64_t item;
        if (!read_number(r, &item) || item > 1 || r->n == r->n_most)
            return false;
        r->list[r->n++] = item == 1 ? '1' : '0';
        if (!take(r, ',') && *r->p != ']')
            return false;
    }
    return true;
}

static bool read_factor(reader *r, value *out)
{
    if (take(r, '(')) {
        if (r->depth == DEEPEST)
            return false;
        r->depth++;
        bool is_ok = read_sum(r, out) && take(r, ')');
        r->depth--;
        return is_ok;
    }
    out->is_list = take(r, '[');
    return out->is_list ? read_items(r, &out->n) : read_number(r, &out->n);
}

/* The last list, of n, `count` times. */
static bool repeat(reader *r, int64_t n, int64_t count)
{
    const int64_t from = r->n - n;
    if (n * count > r->n_most - from) /* both at most LARGEST */
        return false;
    if (count > 1)
        r->n_repeats += n * (count - 1);
    if (r->n_repeats > MOST_REPEATS) /* "[0]*999*0" again and again */
        return false;
    for (int64_t i = n; i < n * count; i++)
        r->list[from + i] = r->list[from + i % n];
    r->n = from + n * count;
    return true;
}

static bool read_product(reader *r, value *out)
{
    if (!read_factor(r, out))
        return false;
    while (take(r, '*')) {
        value by;
        if (!read_factor(r, &by) || (out->is_list && by.is_list))
            return false;
        const int64_t n = out->n * by.n;
        if (n > LARGEST)
            return false;
        if (out->is_list && !repeat(r, out->n, by.n))
            return false;
        if (by.is_list && !repeat(r, by.n, out->n))
            return false;
        *out = (value){out->is_list || by.is_list, n};
    }
    return true;
}

static bool read_sum(reader *r, value *out)
{
    if (!read_product(r, out))
        return false;
    while (take(r, '+')) {
        value more;
        if (!read_product(r, &more) || more.is_list != out->is_list)
            return false;
        out->n += more.n;
        if (out->n > LARGEST)
            return false;
    }
    return true;
}

int64_t fr_megatron_layer_list(const char *text, int64_t n_most, char *out)
{
    reader r = {.p = text, .n_most = n_most, .list = out};
    value all;
    if (!read_sum(&r, &all) || *r.p != '\0' || !all.is_list)
        return -1;
    return all.n;
}
