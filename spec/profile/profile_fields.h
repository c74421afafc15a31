/*
 * profile_fields.h: the members of a profile's records, once for the reader,
 * the writer and the hash.  Private to spec/profile*.c.
 */
#ifndef FR_SPEC_PROFILE_PROFILE_FIELDS_H
#define FR_SPEC_PROFILE_PROFILE_FIELDS_H

#include "core/document/fields.h"
#include "spec/profile/profile.h"

#define FR_PROFILE_SCHEMA "forerun.profile/1"

/*
 * Rows of core/document/fields.h; all numbers are >= 0, and `min` 1 says that
 * one is > 0, or a text not empty.
 */
/* An array of records: its key, its members, and where the profile has the
 * pointer, the number and the capacity, which stand together as in an fr_vec.
 */
typedef struct fr_record {
    const char *key;
    const fr_field *fields;
    size_t n_fields;
    size_t item_bytes;
    size_t offset;
    bool is_optional; /* absent in a file where there is none */
    bool is_report;   /* no prediction rests on it: not hashed */
} fr_record;

enum { FR_RECORDS_N = 8 };
extern const fr_record fr_profile_records[FR_RECORDS_N];

extern const fr_field fr_profile_scalars[];
extern const size_t fr_profile_scalars_n;
extern const fr_field fr_fingerprint_fields[];
extern const size_t fr_fingerprint_fields_n;
/* These fields exist in profiles of a GPU only. */
extern const fr_field fr_gpu_print_fields[];
extern const size_t fr_gpu_print_fields_n;
extern const fr_field fr_gpu_costs_fields[];
extern const size_t fr_gpu_costs_fields_n;
extern const fr_field fr_running_fields[];
extern const size_t fr_running_fields_n;

/* Appends a copy of an item to a record array of the profile. */
FR_CHECKED fr_status fr_profile_append(fr_profile *profile,
                                       const fr_record *record,
                                       const void *item, fr_err *err);

/* Array of a record and the number of its items. */
const void *fr_profile_items(const fr_profile *profile, const fr_record *record,
                             size_t *n);

#endif
