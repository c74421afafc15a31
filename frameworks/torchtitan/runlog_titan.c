/*
 * runlog_titan.c: torchtitan (components/metrics.py, MetricsProcessor.log;
 * distributed/parallel_dims.py; trainer.py, at commit b5bcd76c, and what its
 * releases of 2024 and 2025 printed).  Tokens are those of a GPU, memory is
 * what the caching allocator had reserved since the line before.
 */
#include "frameworks/log/runlog_format.h"

#include <string.h>

static void set_until(fr_runlog_reader *reader, fr_runlog_fact fact,
                      const char *from, const char *ends)
{
    fr_runlog_set(reader, fact, from, strcspn(from, ends));
}

/* "Building 2-D device mesh with ['dp_shard', 'tp'], [4, 2]". */
static void read_mesh(fr_runlog_reader *reader, const char *line)
{
    static const struct {
        const char *name;
        fr_runlog_fact fact;
    } names[] = {
        {"pp", FR_RUNLOG_PP},          {"dp_replicate", FR_RUNLOG_REPLICATE},
        {"dp_shard", FR_RUNLOG_SHARD}, {"dp", FR_RUNLOG_SHARD},
        {"cp", FR_RUNLOG_CP},          {"tp", FR_RUNLOG_TP}};
    const char *name = strstr(line, "device mesh with ");
    const char *size = name != NULL ? strchr(name, ']') : NULL;
    if (name != NULL && size == NULL)
        size = strchr(name, ')');
    size = size != NULL ? strchr(size, '[') : NULL;
    const bool is_mesh = size != NULL;
    while (size != NULL && *size != '\0' && *size != ']') {
        name = strchr(name, '\'');
        if (name == NULL || name > size)
            return;
        size_t n = strcspn(++name, "'");
        size += strcspn(size + 1, "0123456789]") + 1;
        size_t n_digits = strspn(size, "0123456789");
        for (size_t i = 0; i < FR_LENGTH(names); i++)
            if (strlen(names[i].name) == n &&
                strncmp(names[i].name, name, n) == 0)
                fr_runlog_set(reader, names[i].fact, size, n_digits);
        name += n + (name[n] != '\0');
        size += n_digits;
    }
    /* Axes of one rank are left out of the list (distributed/parallel_dims.py).
     */
    for (size_t i = 0; is_mesh && i < FR_LENGTH(names); i++)
        if (names[i].fact != FR_RUNLOG_SHARD &&
            names[i].fact != FR_RUNLOG_REPLICATE)
            fr_runlog_set(reader, names[i].fact, "1", 1);
}

/* "Building llama3 8B", "Model llama3 8B size: 8,030,261,248 total ...". */
static void read_model(fr_runlog_reader *reader, const char *line)
{
    const char *size = strstr(line, " size: ");
    const char *at = strstr(line, "Model ");
    if (size != NULL && at != NULL && at < size)
        fr_runlog_set(reader, FR_RUNLOG_MODEL, at + 6, (size_t)(size - at) - 6);
}

static void read_titan(fr_runlog_reader *reader, const char *line)
{
    const char *at = strstr(line, "CUDA capacity: ");
    const char *with = at != NULL ? strstr(at, " with ") : NULL;
    if (with != NULL) {
        fr_runlog_set(reader, FR_RUNLOG_GPU, at + 15, (size_t)(with - at) - 15);
        set_until(reader, FR_RUNLOG_GPU_MEM_GB, with + 6, "G ");
    }
    at = strstr(line, " activation checkpointing to the model");
    if (at != NULL)
        fr_runlog_set(reader, FR_RUNLOG_RECOMPUTE,
                      strstr(line, "pplied full") != NULL ? "full"
                                                          : "selective",
                      strstr(line, "pplied full") != NULL ? 4 : 9);
    if (strstr(line, "with torch.compile") != NULL)
        fr_runlog_set(reader, FR_RUNLOG_COMPILED, "True", 4);
    if (strstr(line, "Float8") != NULL && strstr(line, "active") != NULL)
        fr_runlog_set(reader, FR_RUNLOG_FP8, "float8", 6);
    if (strstr(line, "Applied FSDP") != NULL ||
        strstr(line, "Applied fully_shard") != NULL)
        fr_runlog_set(reader, FR_RUNLOG_FSDP, "FSDP", 4);
    if (strstr(line, "Applied HSDP") != NULL)
        fr_runlog_set(reader, FR_RUNLOG_FSDP, "HYBRID_SHARD", 12);
    at = strstr(line, "local batch size ");
    if (at != NULL)
        set_until(reader, FR_RUNLOG_MBS, at + 17, ", ");
    at = strstr(line, "global batch size ");
    if (at != NULL)
        set_until(reader, FR_RUNLOG_GBS, at + 18, ", ");
    at = strstr(line, "sequence length ");
    at = at != NULL ? at : strstr(line, "context length ");
    if (at != NULL)
        set_until(reader, FR_RUNLOG_SEQ, strstr(at, "length ") + 7, ", ");
    at = strstr(line, " tokens per train step");
    if (at != NULL) {
        const char *digits = at;
        while (digits > line && strchr("0123456789", digits[-1]) != NULL)
            digits--;
        fr_runlog_set(reader, FR_RUNLOG_GBS_TOKENS, digits,
                      (size_t)(at - digits));
    }
    read_model(reader, line);
    read_mesh(reader, line);
}

const fr_runlog_format fr_runlog_titan = {
    .what = "torchtitan",
    .cell = "torchtitan",
    .step_mark = "  tps: ",
    .other_mark = "validate step:",
    .tflops_kind = "model flop (PaLM)",
    .memory_kind = "first rank that logged",
    .numbers =
        {
            {"  tps: ", FR_RUNLOG_TOKENS_PER_S_PER_GPU, 1, false},
            {"tflops: ", FR_RUNLOG_TFLOPS, 1, false},
            {"  memory: ", FR_RUNLOG_RESERVED_GIB, 1, false},
        },
    .read = read_titan,
};

/* Up to August 2024 tokens were called words. */
const fr_runlog_format fr_runlog_titan_words = {
    .what = "torchtitan of 2024",
    .cell = "torchtitan",
    .step_mark = "  wps: ",
    .memory_kind = "first rank that logged",
    .numbers =
        {
            {"  wps: ", FR_RUNLOG_TOKENS_PER_S_PER_GPU, 1, false},
            {"  memory: ", FR_RUNLOG_RESERVED_GIB, 1, false},
        },
    .read = read_titan,
};
