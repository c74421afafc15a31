/*
 * accelerate_reader.h: what the readers of the parts of an Accelerate
 * configuration share.  Private to this folder.
 */
#ifndef FR_FRAMEWORKS_ACCELERATE_ACCELERATE_READER_H
#define FR_FRAMEWORKS_ACCELERATE_ACCELERATE_READER_H

#include "frameworks/read/config_parts.h"

#define FR_ACCELERATE_NO_PLACE "the plan has no place for it"

enum {
    FR_ACCELERATE_F32,
    FR_ACCELERATE_F16,
    FR_ACCELERATE_BF16,
    FR_ACCELERATE_FP8,
    FR_ACCELERATE_PRECISIONS_N
};

typedef struct fr_accelerate_reader {
    const fr_config_request *request;
    const fr_json_value *root;
    fr_config *out;
    fr_err *err;
    int64_t n_processes; /* 0: the file does not say */
    int precision;       /* one of the above */
    bool is_compiled;
    bool is_single; /* distributed_type NO */
} fr_accelerate_reader;

/* A part of the file, NULL where it is absent, and a check of its keys. */
FR_CHECKED fr_status fr_accelerate_find_part(fr_accelerate_reader *r,
                                             const char *name,
                                             const fr_config_key *keys,
                                             size_t n,
                                             const fr_json_value **out);

/* Values of a part (NULL: absent); *out stays as it is where the key is
 * absent.  A switch, or the word for one: what a command line gives. */
FR_CHECKED fr_status fr_accelerate_read_switch(fr_accelerate_reader *r,
                                               const fr_json_value *part,
                                               const char *key, bool *out);
FR_CHECKED fr_status fr_accelerate_read_degree(fr_accelerate_reader *r,
                                               const fr_json_value *part,
                                               const char *key, int32_t *out);
/* The place of a word in a list, in any case. */
FR_CHECKED fr_status fr_accelerate_read_word(fr_accelerate_reader *r,
                                             const fr_json_value *part,
                                             const char *key,
                                             const char *const *words, int n,
                                             int *out);

/* The model, what the training script says (sequence, kernels of `runner`),
 * precision. */
FR_CHECKED fr_status fr_accelerate_take_script(fr_accelerate_reader *r,
                                               const fr_framework *runner);
/* After the degrees: micro-batch and accumulation are the script's too, but
 * where `n_micro` says the latter. */
void fr_accelerate_take_batch(fr_accelerate_reader *r, int64_t n_micro);

/* parallelism_config: plan->tp and cp; *n_copies of the data-parallel ranks
 * have a copy of the parameters each. */
FR_CHECKED fr_status fr_accelerate_read_mesh(fr_accelerate_reader *r,
                                             int32_t *n_copies);
/* The same of DeepSpeed, which has Ulysses: ranks that share a sequence. */
FR_CHECKED fr_status fr_accelerate_read_ulysses(fr_accelerate_reader *r,
                                                int32_t *n_sequence);

FR_CHECKED fr_status fr_accelerate_read_fsdp(fr_accelerate_reader *r);
FR_CHECKED fr_status fr_accelerate_read_megatron(fr_accelerate_reader *r);
FR_CHECKED fr_status fr_accelerate_read_deepspeed(fr_accelerate_reader *r);

#endif
