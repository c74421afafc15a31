/*
 * fields.h: a struct described by a table, one row for each member: what it is
 * called in JSON and on the command line, and which values it may have. Reader,
 * writer, defaults and range checks are made from the rows.
 *
 *     static const fr_field fields[] = {
 *         {"step_s", FR_MEMBER(fr_prediction, step_s)},
 *         {"order", FR_MEMBER(fr_plan, rank_order), .names = &fr_rank_orders},
 *     };
 */
#ifndef FR_CORE_DOCUMENT_FIELDS_H
#define FR_CORE_DOCUMENT_FIELDS_H

#include "core/document/json.h"
#include "core/document/names.h"

#include <stddef.h>
#include <stdint.h>

/* The C type of a member. */
typedef enum fr_field_kind {
    FR_FIELD_I32,
    FR_FIELD_I64,
    FR_FIELD_U32, /* and every enum: by name, where the row has names */
    FR_FIELD_U64,
    FR_FIELD_BOOL,
    FR_FIELD_DOUBLE,
    FR_FIELD_TEXT,    /* char[] */
    FR_FIELD_STRING,  /* const char *, NULL is null; read only by `names` */
    FR_FIELD_LIST,    /* int32_t[], whose count is another int32_t */
    FR_FIELD_DOUBLES, /* double[], an object with `names` as its keys */
    FR_FIELD_ROW,     /* int64_t[], all of them */
    FR_FIELD_OBJECT   /* a struct, described by `members` */
} fr_field_kind;

typedef struct fr_field {
    const char *key; /* in JSON and in messages */
    fr_field_kind kind;
    size_t offset, n_bytes; /* of the member */
    const fr_names *names;
    bool is_required;    /* reading fails where it is absent */
    bool is_optional;    /* not written where it is false, zero or NULL */
    bool is_bytes;       /* U64: an amount, "25MB" on the command line */
    size_t count_offset; /* LIST: of the count */
    const struct fr_field *members;
    size_t n_members;
    /* The members below may be omitted.  A range with max 0 means no range. */
    double initial, min, max;
    bool (*is_offered)(int i); /* may the command line ask for name i? */
    const char *option;        /* without dashes; NULL: none */
    const char *metavar;       /* if its text says more than one value */
    const char *help;
} fr_field;

/* A limit that no real value reaches, for fields without one; it is exact in a
 * double. */
#define FR_NO_LIMIT 1e15

#define FR_FIELD_KIND(member)                                                  \
    _Generic((member),                                                         \
        int32_t: FR_FIELD_I32,                                                 \
        int64_t: FR_FIELD_I64,                                                 \
        uint32_t: FR_FIELD_U32,                                                \
        uint64_t: FR_FIELD_U64,                                                \
        bool: FR_FIELD_BOOL,                                                   \
        double: FR_FIELD_DOUBLE,                                               \
        char *: FR_FIELD_TEXT,                                                 \
        const char *: FR_FIELD_STRING,                                         \
        int32_t *: FR_FIELD_LIST,                                              \
        int64_t *: FR_FIELD_ROW,                                              \
        double *: FR_FIELD_DOUBLES,                                            \
        default: FR_FIELD_OBJECT)

/* The C part of a row: kind, place and size of a member. */
#define FR_MEMBER(type, member)                                                \
    .kind = FR_FIELD_KIND(((type *)0)->member),                                \
    .offset = offsetof(type, member), .n_bytes = sizeof(((type *)0)->member)

enum { FR_FIELDS_MAX = 96 }; /* rows of one table */

/* Writes the members into an object that has begun, in the order of the rows.
 */
void fr_fields_put(const fr_field *fields, size_t n, const void *owner,
                   fr_json_writer *json);
/* The rows of a table and their number, as the functions here take them. */
#define FR_FIELDS(table) (table), FR_LENGTH(table)

/* A row whose key is the member's name. */
#define FR_FIELD(type, member)                                                 \
    {                                                                          \
#member, FR_MEMBER(type, member)                                       \
    }

/* A row for a key that the caller reads and writes. */
#define FR_FIELD_ELSEWHERE(name)                                               \
    {                                                                          \
        .key = (name)                                                          \
    }

/* A row for members of the same struct that stand in an object of their own. */
#define FR_GROUP(name, table)                                                  \
    {                                                                          \
        .key = (name), .kind = FR_FIELD_OBJECT, .members = (table),            \
        .n_members = FR_LENGTH(table)                                          \
    }

/* The same as a whole object, as a value. */
void fr_fields_write(const fr_field *fields, size_t n, const void *owner,
                     fr_json_writer *json);

/* A key and an array of objects, one for each of n_items structs. */
#define fr_fields_put_array(key, table, items, n_items, json)                  \
    fr_fields_put_structs((key), FR_FIELDS(table), (items), (n_items),         \
                          sizeof *(items), (json))
void fr_fields_put_structs(const char *key, const fr_field *fields, size_t n,
                           const void *items, size_t n_items, size_t item_bytes,
                           fr_json_writer *json);

/*
 * Reads an object; members that it lacks stay as they are.  FR_INPUT with
 * "path:line: ..." on keys that no row has, on other kinds of values and on
 * numbers that do not fit the member; *owner may then be half read.
 */
FR_CHECKED fr_status fr_fields_read(const fr_json_value *object,
                                    const fr_field *fields, size_t n,
                                    void *owner, fr_err *err);

/* Sets what has an initial value to that; the rest is left as it is. */
void fr_fields_init(const fr_field *fields, size_t n, void *owner);

/* Is the member in its range, an enum one of its names?  FR_INPUT says what it
 * may be. */
FR_CHECKED fr_status fr_field_check(const fr_field *field, const void *owner,
                                    fr_err *err);

/* The member itself; of a list, how many it has. */
const void *fr_field_at(const fr_field *field, const void *owner);
int32_t fr_field_count(const fr_field *field, const void *owner);

/* Have two structs the same in it?  A hash that is then the same; both take a
 * plain member or a LIST. */
bool fr_field_is_same(const fr_field *field, const void *a, const void *b);
uint64_t fr_field_hash(const fr_field *field, const void *owner, uint64_t seed);

/* Copies the member, a plain one or a LIST, to a struct of the same type. */
void fr_field_copy(const fr_field *field, const void *from, void *to);

/* A number, switch or enum as a double, and back; a LIST is 0, and becomes
 * empty. */
double fr_field_get(const fr_field *field, const void *owner);
void fr_field_set(const fr_field *field, double value, void *owner);
/* The same without loss for whole numbers; not for a double. */
int64_t fr_field_get_i64(const fr_field *field, const void *owner);
void fr_field_set_i64(const fr_field *field, int64_t value, void *owner);

#endif
