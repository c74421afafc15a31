/*
 * json_impl.h: what the files of the JSON reader share; nobody else includes
 * it.  The scanner proves the text to be strict JSON and notes where every
 * value stands; cJSON then makes the tree; both are joined in preorder.
 */
#ifndef FR_CORE_DOCUMENT_JSON_IMPL_H
#define FR_CORE_DOCUMENT_JSON_IMPL_H

#include "core/base/arena.h"
#include "core/base/vec.h"
#include "core/document/json.h"

struct fr_json_value {
    const fr_json *json;
    const char *key;  /* NULL: not a member */
    const char *text; /* string, or the number as it stands in the file */
    fr_json_value *items;
    size_t n;
    double number;
    int line;
    fr_json_kind kind;
    bool truth;
};

struct fr_json {
    fr_arena arena;
    const char *name;
    fr_json_value root;
};

/* One value of the text, in preorder. */
typedef struct fr_json_place {
    size_t first, n; /* numbers only: the text */
    int line;
    fr_json_kind kind;
} fr_json_place;

typedef fr_vec(fr_json_place) fr_json_places;

enum { FR_JSON_READ_DEPTH_MAX = 64, FR_JSON_NUMBER_MAX = 63 };

FR_CHECKED fr_status fr_json_scan(const char *name, const char *text, size_t n,
                                  size_t n_values_max, fr_json_places *out,
                                  fr_err *err);

#endif
