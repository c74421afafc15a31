/*
 * config_parts.h: what readers of configurations share: keys that are read or
 * said not to be, and what a file leaves to the command line.
 */
#ifndef FR_FRAMEWORKS_READ_CONFIG_PARTS_H
#define FR_FRAMEWORKS_READ_CONFIG_PARTS_H

#include "core/document/json.h"
#include "frameworks/framework.h"
#include "frameworks/read/config.h"

/* A key that a format has. */
typedef struct fr_config_key {
    const char *name;
    const char *why; /* the plan has no place for it; NULL: it is read */
} fr_config_key;

/*
 * Refuses keys that no row has (a typing error would be lost in silence) and
 * notes those whose row says why they are not read.  `where` stands before the
 * key: "zero_optimization.", "".  An object that is absent (NULL) is fine.
 */
FR_CHECKED fr_status fr_config_check_keys(const fr_json_value *object,
                                          const char *where,
                                          const fr_config_key *keys, size_t n,
                                          fr_buffer *notes, fr_err *err);

/*
 * The same for an object whose framework takes the keys that it knows and
 * passes over all others: a key that resembles none is noted.  One that
 * resembles a known key is refused still: it is a typing error, which the
 * framework does not see.
 */
FR_CHECKED fr_status fr_config_check_known_keys(const fr_json_value *object,
                                                const char *where,
                                                const fr_config_key *keys,
                                                size_t n, fr_buffer *notes,
                                                fr_err *err);

/* A switch of an object (NULL: absent), which stays as it is where the key is
 * absent. */
FR_CHECKED fr_status fr_config_read_bool(const fr_json_value *object,
                                         const char *key, bool *out,
                                         fr_err *err);

/*
 * The model that was named beside the file, copied; FR_INPUT names the option.
 * `said`: what the file says of it, NULL: nothing; `known`: the model of the
 * catalog that is called so there, which is taken and noted where none was
 * named, or NULL.
 */
FR_CHECKED fr_status fr_config_take_model(const fr_config_request *request,
                                          const char *said, const char *known,
                                          fr_config *out, fr_err *err);

/* The job's sequence where the file has none: --seq, or the model's longest, at
 * most 8192 tokens, and a note. */
void fr_config_take_seq(const fr_config_request *request, fr_config *out);

/*
 * plan->dp, of `world` ranks (0: those of the request) over the other axes;
 * FR_INPUT where nobody says how many there are, or they do not divide.
 */
FR_CHECKED fr_status fr_config_take_dp(const fr_config_request *request,
                                       int64_t world, fr_config *out,
                                       fr_err *err);

/* Sets fused attention and kernels, which only the model's code knows, to the
 * framework's defaults, and notes it. */
void fr_config_take_kernels(const fr_framework *framework, fr_config *out);

/* Product of the axes but dp. */
int64_t fr_config_other_ranks(const fr_plan *plan);

#endif
