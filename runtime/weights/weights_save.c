/*
 * weights_save.c: what a run has come to, to safetensors.
 *
 * Rank 0 writes headers into files of their final size under temporary names,
 * every rank the elements that no rank before it has, and when all have, rank
 * 0 gives the files their names.
 */
#include "core/base/minmax.h"
#include "core/system/fileio.h"
#include "plan/decide/grid.h"
#include "runtime/checkpoint/weight_parts.h"
#include "runtime/weights/weight_files.h"
#include "runtime/weights/weight_map.h"
#include "runtime/weights/weights.h"
#include "spec/model/model_json.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SHARD_BYTES 5000000000U /* as transformers has it */
#define TEMPORARY ".part"

/* A file of consecutive entries. */
typedef struct shard {
    size_t first, end; /* entries */
    uint64_t n_header, n_data;
    int fd;
} shard;

/* The shard of an entry and the byte at which it begins there. */
typedef struct target {
    uint32_t i_shard;
    uint64_t first_byte;
} target;

typedef struct saving {
    const char *dir;
    const fr_program *program;
    fr_transport *transport;
    const fr_state *state;
    uint64_t element_bytes;
    fr_weight_map map;
    target *targets; /* of map.entries */
    fr_vec(shard) shards;
    const fr_weight_part *part; /* the part whose chunks come */
    unsigned char *turned;      /* a chunk */
} saving;

/* ---- files --------------------------------------------------------------- */

static uint64_t entry_bytes(const saving *s, const fr_weight_entry *entry)
{
    return (uint64_t)(entry->lines * entry->cols) * s->element_bytes;
}

static fr_status cut_shards(saving *s, uint64_t shard_bytes, fr_err *err)
{
    FR_TRY_CALLOC(s->targets, s->map.entries.n + 1, err);
    for (size_t i = 0; i < s->map.entries.n; i++) {
        const uint64_t n_bytes = entry_bytes(s, &s->map.entries.items[i]);
        shard *last =
            s->shards.n > 0 ? &s->shards.items[s->shards.n - 1] : NULL;
        if (last == NULL || last->n_data + n_bytes > shard_bytes) {
            const shard next = {.first = i, .fd = -1};
            FR_TRY_PUSH(&s->shards, next, err);
            last = &s->shards.items[s->shards.n - 1];
        }
        s->targets[i] = (target){(uint32_t)s->shards.n - 1, last->n_data};
        last->n_data += n_bytes;
        last->end = i + 1;
    }
    return FR_OK;
}

static void file_name(const saving *s, size_t i_shard, char *out, size_t n)
{
    if (s->shards.n == 1)
        (void)snprintf(out, n, "%s", FR_WEIGHT_FILE);
    else
        (void)snprintf(out, n, "model-%05zu-of-%05zu.safetensors", i_shard + 1,
                       s->shards.n);
}

/* dir/name, with something behind it. */
static void file_path(const saving *s, const char *name, const char *end,
                      char out[FR_WEIGHT_PATH])
{
    (void)snprintf(out, FR_WEIGHT_PATH, "%s/%s%s", s->dir, name, end);
}

static fr_status fail_io(const char *path, fr_err *err)
{
    return fr_fail(err, FR_IO, "%s: %s", path, strerror(errno));
}

static void put_entry(const saving *s, size_t i, fr_json_writer *json)
{
    const fr_weight_entry *entry = &s->map.entries.items[i];
    const uint64_t first = s->targets[i].first_byte;
    int64_t shape[4];
    const int n = fr_weight_entry_shape(entry, &s->map.program->model, shape);
    fr_json_open_object(json, entry->name);
    fr_json_put_string(json, "dtype", s->element_bytes == 2 ? "BF16" : "F32");
    fr_json_key(json, "shape");
    fr_json_begin_row(json);
    for (int d = 0; d < n; d++)
        fr_json_i64(json, shape[d]);
    fr_json_end_array(json);
    fr_json_key(json, "data_offsets");
    fr_json_begin_row(json);
    fr_json_u64(json, first);
    fr_json_u64(json, first + entry_bytes(s, entry));
    fr_json_end_array(json);
    fr_json_end_object(json);
}

/* Eight bytes of length, and the text padded to a multiple of eight. */
static fr_status make_header(const saving *s, const shard *at, fr_buffer *out,
                             fr_err *err)
{
    fr_json_writer json;
    uint64_t length = 0;
    fr_buffer_init(out);
    fr_buffer_append(out, &length, sizeof length);
    fr_json_writer_init(&json, out);
    fr_json_begin_object(&json);
    fr_json_open_object(&json, "__metadata__");
    fr_json_put_string(&json, "format", "pt");
    fr_json_end_object(&json);
    for (size_t i = at->first; i < at->end; i++)
        put_entry(s, i, &json);
    fr_json_end_object(&json);
    fr_buffer_fill(out, ' ', (8 - out->n % 8) % 8);
    FR_TRY(fr_buffer_check(out, err));
    length = out->n - sizeof length;
    memcpy(out->data, &length, sizeof length);
    return FR_OK;
}

static fr_status write_at(int fd, const char *path, const void *bytes,
                          uint64_t n, uint64_t at, fr_err *err)
{
    for (uint64_t done = 0; done < n;) {
        ssize_t got = pwrite(fd, (const char *)bytes + done, n - done,
                             (off_t)(at + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return fail_io(path, err);
        done += (uint64_t)got;
    }
    return FR_OK;
}

/* Every rank knows how long the headers are; rank 0 writes them. */
static fr_status open_shard(saving *s, size_t i_shard, fr_err *err)
{
    shard *at = &s->shards.items[i_shard];
    const bool is_first = s->transport->rank == 0;
    char name[64], path[FR_WEIGHT_PATH];
    fr_buffer header;
    file_name(s, i_shard, name, sizeof name);
    file_path(s, name, TEMPORARY, path);
    fr_status status = make_header(s, at, &header, err);
    at->n_header = header.n;
    if (status == FR_OK) {
        at->fd = open(path,
                      O_WRONLY | O_CLOEXEC | (is_first ? O_CREAT | O_TRUNC : 0),
                      0666);
        if (at->fd < 0)
            status = fail_io(path, err);
    }
    if (status == FR_OK && is_first) {
        status = write_at(at->fd, path, header.data, header.n, 0, err);
        if (status == FR_OK &&
            ftruncate(at->fd, (off_t)(at->n_header + at->n_data)) != 0)
            status = fail_io(path, err);
    }
    fr_buffer_release(&header);
    return status;
}

/* ---- elements ------------------------------------------------------------ */

/* Is it this rank that writes a tensor: the first of those that have the same
 * of it?  Of a shard of ZeRO 3 nobody else has anything. */
static bool is_writer(const saving *s, const fr_tensor *tensor)
{
    const fr_plan *plan = &s->program->plan;
    const int64_t rank = s->transport->rank;
    const fr_coord at = fr_plan_coord(plan, rank);
    const bool is_split = tensor->sharded_dim != 0;
    if (tensor->is_tied_copy)
        return false;
    if (tensor->n_experts > 0) {
        const fr_tensor_place place = fr_tensor_place_of(plan, rank);
        const int64_t i =
            at.tp + (int64_t)plan->tp * (at.cp + plan->cp * at.dp);
        return plan->zero_stage == 3 || i / (place.n_etp * plan->ep) == 0;
    }
    if (!is_split && at.tp > 0)
        return false;
    return plan->zero_stage == 3 || (at.dp == 0 && at.cp == 0);
}

static float widened(uint16_t x)
{
    const uint32_t bits = (uint32_t)x << 16;
    float out;
    memcpy(&out, &bits, sizeof out);
    return out;
}

/* To the nearest, ties to even. */
static uint16_t narrowed(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* Norms that the files have otherwise. */
static void subtract(unsigned char *bytes, int64_t n, uint64_t element_bytes,
                     float offset)
{
    for (int64_t i = 0; i < n; i++, bytes += element_bytes) {
        uint16_t s;
        float x;
        if (element_bytes == sizeof s) {
            memcpy(&s, bytes, sizeof s);
            s = narrowed(widened(s) - offset);
            memcpy(bytes, &s, sizeof s);
        } else {
            memcpy(&x, bytes, sizeof x);
            x -= offset;
            memcpy(bytes, &x, sizeof x);
        }
    }
}

/* A chunk as the file has it: columns one after the other where it is turned,
 * the elements of norms less what the family adds. */
static const unsigned char *as_filed(const saving *s,
                                     const fr_weight_chunk *chunk,
                                     const unsigned char *bytes)
{
    const uint64_t e = s->element_bytes;
    const int64_t n_lines = chunk->n_lines, n_cols = chunk->n_cols;
    if (chunk->entry->layout == FR_WEIGHT_CONV1D) {
        for (int64_t line = 0; line < n_lines; line++)
            for (int64_t c = 0; c < n_cols; c++)
                memcpy(s->turned + (uint64_t)(c * n_lines + line) * e,
                       bytes + (uint64_t)(line * n_cols + c) * e, e);
        return s->turned;
    }
    if (chunk->entry->offset == 0)
        return bytes;
    memcpy(s->turned, bytes, (uint64_t)(n_lines * n_cols) * e);
    subtract(s->turned, n_lines * n_cols, e, chunk->entry->offset);
    return s->turned;
}

static fr_status write_chunk(void *context, const fr_weight_chunk *chunk,
                             fr_err *err)
{
    const saving *s = context;
    const uint64_t e = s->element_bytes;
    const fr_weight_entry *entry = chunk->entry;
    const uint64_t n_bytes = (uint64_t)(chunk->n_lines * chunk->n_cols) * e;
    const void *view = NULL;
    if (entry == NULL || !is_writer(s, chunk->tensor))
        return FR_OK;
    FR_TRY(s->state->view(s->state->context,
                          s->part->offset_bytes +
                              (uint64_t)(chunk->at - s->part->first) * e,
                          n_bytes, &view, err));
    const unsigned char *bytes = as_filed(s, chunk, view);
    const target *to = &s->targets[entry - s->map.entries.items];
    const shard *at = &s->shards.items[to->i_shard];
    const bool is_turned = entry->layout == FR_WEIGHT_CONV1D;
    /* In the file's order. */
    const int64_t width = is_turned ? entry->lines : entry->cols;
    const int64_t row = is_turned ? chunk->col : chunk->line;
    const int64_t col = is_turned ? chunk->line : chunk->col;
    const int64_t n_cols = is_turned ? chunk->n_lines : chunk->n_cols;
    const int64_t n_rows = is_turned ? chunk->n_cols : chunk->n_lines;
    const int64_t n_at_once = n_cols == width ? n_rows : 1;
    for (int64_t i = 0; i < n_rows; i += n_at_once)
        FR_TRY(write_at(at->fd, s->dir, bytes + (uint64_t)(i * n_cols) * e,
                        (uint64_t)(n_at_once * n_cols) * e,
                        at->n_header + to->first_byte +
                            (uint64_t)((row + i) * width + col) * e,
                        err));
    return FR_OK;
}

static fr_status write_elements(saving *s, fr_err *err)
{
    const int64_t rank = s->transport->rank;
    fr_weight_parts parts = {0};
    fr_status status = fr_weight_parts_list(s->program, rank, &parts, err);
    for (size_t i = 0; status == FR_OK && i < parts.n; i++) {
        s->part = &parts.items[i];
        status = fr_weight_map_walk(&s->map, rank, s->part->first, s->part->n,
                                    write_chunk, s, err);
    }
    for (size_t i = 0; status == FR_OK && i < s->shards.n; i++)
        if (fsync(s->shards.items[i].fd) != 0)
            status = fail_io(s->dir, err);
    fr_vec_release(&parts);
    return status;
}

/* ---- names --------------------------------------------------------------- */

static fr_status write_config(const saving *s, fr_err *err)
{
    char path[FR_WEIGHT_PATH];
    fr_json_writer json;
    fr_buffer text;
    fr_buffer_init(&text);
    fr_json_writer_init(&json, &text);
    fr_model_to_hugging_face(&s->program->model, &json);
    fr_buffer_putc(&text, '\n');
    file_path(s, "config.json", "", path);
    return fr_file_write_buffer(path, &text, err);
}

static fr_status write_index(const saving *s, fr_err *err)
{
    char path[FR_WEIGHT_PATH], name[64];
    fr_json_writer json;
    fr_buffer text;
    uint64_t n_bytes = 0;
    for (size_t i = 0; i < s->shards.n; i++)
        n_bytes += s->shards.items[i].n_data;
    fr_buffer_init(&text);
    fr_json_writer_init(&json, &text);
    fr_json_begin_object(&json);
    fr_json_open_object(&json, "metadata");
    fr_json_put_u64(&json, "total_size", n_bytes);
    fr_json_end_object(&json);
    fr_json_open_object(&json, "weight_map");
    for (size_t i = 0; i < s->map.entries.n; i++) {
        file_name(s, s->targets[i].i_shard, name, sizeof name);
        fr_json_put_string(&json, s->map.entries.items[i].name, name);
    }
    fr_json_end_object(&json);
    fr_json_end_object(&json);
    fr_buffer_putc(&text, '\n');
    file_path(s, FR_WEIGHT_INDEX, "", path);
    return fr_file_write_buffer(path, &text, err);
}

/*
 * Readers take the one file before the index: what an earlier run left of the
 * other kind goes.  Shards of it may have the names of the new ones, so its
 * index goes first, and who is interrupted leaves no index rather than one of a
 * mixture.
 */
static fr_status publish(const saving *s, fr_err *err)
{
    char name[64], from[FR_WEIGHT_PATH], to[FR_WEIGHT_PATH];
    file_path(s, FR_WEIGHT_INDEX, "", to);
    if (s->shards.n > 1 && unlink(to) == 0)
        fr_dir_sync(s->dir);
    for (size_t i = 0; i < s->shards.n; i++) {
        file_name(s, i, name, sizeof name);
        file_path(s, name, TEMPORARY, from);
        file_path(s, name, "", to);
        if (rename(from, to) != 0)
            return fail_io(to, err);
    }
    fr_dir_sync(s->dir);
    file_path(s, s->shards.n > 1 ? FR_WEIGHT_FILE : FR_WEIGHT_INDEX, "", to);
    if (s->shards.n > 1)
        FR_TRY(write_index(s, err));
    FR_TRY(write_config(s, err));
    (void)unlink(to);
    return FR_OK;
}

/* Removes parts that have no final name yet, because nothing can use them. */
static void drop_parts(const saving *s)
{
    char name[64], path[FR_WEIGHT_PATH];
    for (size_t i = 0; i < s->shards.n; i++) {
        file_name(s, i, name, sizeof name);
        file_path(s, name, TEMPORARY, path);
        (void)unlink(path);
    }
}

static void release(saving *s)
{
    for (size_t i = 0; i < s->shards.n; i++)
        if (s->shards.items[i].fd >= 0)
            (void)close(s->shards.items[i].fd);
    fr_vec_release(&s->shards);
    fr_weight_map_release(&s->map);
    free(s->targets);
    free(s->turned);
}

static fr_status prepare(saving *s, uint64_t shard_bytes, fr_err *err)
{
    const fr_dtype dtype = fr_plan_storage_dtype(&s->program->plan);
    s->element_bytes = fr_dtype_bytes(dtype);
    FR_TRY(fr_weight_map_init(s->program, &s->map, err));
    s->turned = malloc(FR_WEIGHT_CHUNK * s->element_bytes);
    if (s->turned == NULL)
        return fr_fail_no_memory(err);
    return cut_shards(s, shard_bytes > 0 ? shard_bytes : SHARD_BYTES, err);
}

static fr_status open_shards(saving *s, fr_err *err)
{
    for (size_t i = 0; i < s->shards.n; i++)
        FR_TRY(open_shard(s, i, err));
    return FR_OK;
}

fr_status fr_weights_save(const char *dir, const fr_program *program,
                          fr_transport *transport, const fr_state *state,
                          uint64_t shard_bytes, fr_err *err)
{
    saving s = {
        .dir = dir, .program = program, .transport = transport, .state = state};
    const bool is_first = transport->rank == 0;
    fr_status status = prepare(&s, shard_bytes, err);
    /* Rank 0 makes the files, then the others open them. */
    if (status == FR_OK && is_first)
        status = open_shards(&s, err);
    status = fr_transport_agree(transport, status, true, err);
    if (status == FR_OK && !is_first)
        status = open_shards(&s, err);
    if (status == FR_OK)
        status = write_elements(&s, err);
    status = fr_transport_agree(transport, status, true, err);
    if (status == FR_OK && is_first)
        status = publish(&s, err);
    status = fr_transport_agree(transport, status, true, err);
    if (status != FR_OK && is_first)
        drop_parts(&s);
    release(&s);
    return status;
}

fr_status fr_weights_check_dir(const char *dir, const fr_program *program,
                               fr_err *err)
{
    fr_weight_map map;
    if (strlen(dir) + 64 > FR_WEIGHT_PATH)
        return fr_fail(err, FR_USAGE, "--save: the path is too long");
    FR_TRY(fr_weight_map_init(program, &map, err));
    fr_weight_map_release(&map);
    FR_TRY(fr_dir_create(dir, err));
    return access(dir, W_OK) == 0 ? FR_OK : fail_io(dir, err);
}
