/* weight_map.c: see weight_map.h. */
#include "runtime/weights/weight_map.h"

#include "core/base/minmax.h"
#include "plan/op/tensor_role.h"

#include <string.h>

/* ---- entries ------------------------------------------------------------- */

static bool is_vector(const fr_tensor *tensor)
{
    return tensor->rows == 1 && tensor->global_rows == 1;
}

static bool is_norm(fr_tensor_role role)
{
    return role == FR_TENSOR_NORM1 || role == FR_TENSOR_NORM2 ||
           role == FR_TENSOR_LAST_NORM || role == FR_TENSOR_Q_NORM ||
           role == FR_TENSOR_K_NORM || role == FR_TENSOR_LATER_HIDDEN_NORM ||
           role == FR_TENSOR_LATER_EMBED_NORM || role == FR_TENSOR_LATER_NORM;
}

static int compare_groups(const void *va, const void *vb)
{
    const fr_weight_group *a = va, *b = vb;
    return a->id < b->id ? -1 : a->id > b->id;
}

static fr_status push_group(fr_weight_map *map, const fr_tensor *tensor,
                            fr_err *err)
{
    int64_t layer, n_local = 0;
    fr_weight_group group = {.id = tensor->id,
                             .first = (uint32_t)map->entries.n};
    const fr_tensor_role role = fr_tensor_role_of(tensor->id, &layer);
    const fr_weight_name *names =
        fr_weight_names_find(map->family, (int)role, &group.n_names);
    if (names == NULL ||
        (group.n_names > 1 && group.n_names != tensor->n_parts))
        return fr_fail(err, FR_INPUT,
                       "Hugging Face's files of models like %s have no place "
                       "for %s",
                       map->program->model.name, tensor->name);
    const bool is_flat = is_vector(tensor);
    group.lines = is_flat ? tensor->global_cols : tensor->global_rows;
    group.cols = is_flat ? 1 : tensor->global_cols;
    group.n_matrices = tensor->n_experts * map->program->plan.ep;
    group.n_matrices = fr_max_i64(group.n_matrices, 1);
    group.lines /= group.n_matrices;
    for (int part = 0; part < tensor->n_parts; part++)
        n_local += tensor->part_rows[part];
    for (int part = 0; part < tensor->n_parts; part++)
        group.part_lines[part] =
            tensor->n_parts == 1
                ? group.lines
                : tensor->part_rows[part] * (group.lines / n_local);
    for (int64_t m = 0; m < group.n_matrices; m++)
        for (int i = 0; i < group.n_names; i++) {
            fr_weight_entry entry = {
                .lines = group.n_names == 1 ? group.lines : group.part_lines[i],
                .cols = group.cols,
                .is_vector = is_flat,
                .layout = names[i].layout,
                .offset = is_norm(role) ? map->family->norm_offset : 0};
            fr_weight_name_format(names[i].name, layer, m, entry.name,
                                  sizeof entry.name);
            FR_TRY_PUSH(&map->entries, entry, err);
        }
    FR_TRY_PUSH(&map->groups, group, err);
    return FR_OK;
}

/* Tied matrices are those of the first stage; ids come once in a stage. */
static fr_status push_all(fr_weight_map *map, fr_err *err)
{
    const fr_program *program = map->program;
    for (int32_t stage = 0; stage < program->plan.pp; stage++) {
        const fr_rank_program *rank = &program->rank_programs[stage];
        for (uint32_t i = 0; i < rank->n_tensors; i++)
            if (!rank->tensors[i].is_tied_copy)
                FR_TRY(push_group(map, &rank->tensors[i], err));
    }
    if (map->groups.n > 0)
        qsort(map->groups.items, map->groups.n, sizeof *map->groups.items,
              compare_groups);
    return FR_OK;
}

fr_status fr_weight_map_init(const fr_program *program, fr_weight_map *out,
                             fr_err *err)
{
    fr_weight_map map = {.program = program,
                         .family = fr_weight_family_of(&program->model)};
    if (map.family == NULL)
        return fr_fail(err, FR_INPUT,
                       "model %s is of no family whose weights have names in "
                       "Hugging Face's files; GPT-2, GPT-NeoX, Llama, Mistral, "
                       "Mixtral, Qwen, DeepSeek, Gemma, BERT and ViT are",
                       program->model.name);
    fr_status status = push_all(&map, err);
    if (status == FR_OK)
        *out = map;
    else
        fr_weight_map_release(&map);
    return status;
}

void fr_weight_map_release(fr_weight_map *map)
{
    fr_vec_release(&map->entries);
    fr_vec_release(&map->groups);
}

int fr_weight_entry_shape(const fr_weight_entry *entry, const fr_model *model,
                          int64_t shape[4])
{
    const int64_t lines = entry->lines, cols = entry->cols;
    const int64_t patch = model->patch_size;
    int64_t out[4] = {lines, cols, patch, patch};
    int n = entry->is_vector ? 1 : 2;
    switch ((fr_weight_layout)entry->layout) {
    case FR_WEIGHT_PLAIN:
    case FR_WEIGHT_PER_HEAD:
        break;
    case FR_WEIGHT_CONV1D:
        out[0] = cols;
        out[1] = lines;
        break;
    case FR_WEIGHT_ONE_ROW:
        out[0] = 1;
        out[1] = lines;
        n = 2;
        break;
    case FR_WEIGHT_CONV2D:
        out[1] = model->n_channels;
        n = 4;
        break;
    case FR_WEIGHT_OF_ONE:
        out[0] = 1;
        out[1] = entry->is_vector ? 1 : lines;
        out[2] = entry->is_vector ? lines : cols;
        n = 3;
        break;
    }
    memcpy(shape, out, sizeof out);
    return n;
}

/* ---- chunks -------------------------------------------------------------- */

/* A walk through one tensor of a rank. */
typedef struct walk {
    const fr_weight_map *map;
    const fr_weight_group *group;
    const fr_tensor *tensor;
    fr_tensor_place place;
    int64_t width; /* local elements of a line */
    fr_weight_chunk_fn visit;
    void *context;
} walk;

/* The entry and the line there of a line of the rank's; false: padding. */
static bool locate(const walk *at, int64_t line, const fr_weight_entry **entry,
                   int64_t *out)
{
    const fr_weight_group *group = at->group;
    const fr_model *model = &at->map->program->model;
    const bool is_flat = is_vector(at->tensor);
    int64_t whole = is_flat
                        ? fr_tensor_global_col(at->tensor, line, &at->place)
                        : fr_tensor_global_row(at->tensor, line, &at->place);
    if (whole >= group->lines * group->n_matrices)
        return false;
    int64_t i = group->first + whole / group->lines * group->n_names;
    whole %= group->lines;
    for (int part = 0; group->n_names > 1 && whole >= group->part_lines[part];
         part++) {
        whole -= group->part_lines[part];
        i++;
    }
    *entry = &at->map->entries.items[i];
    if ((*entry)->layout == FR_WEIGHT_PER_HEAD) {
        const int64_t d = model->head_dim, q = model->n_heads * d;
        whole = (whole % q / d * 3 + whole / q) * d + whole % d;
    }
    *out = whole;
    return true;
}

/* Lines [line, end) x columns [col, col + n_cols), all local. */
static fr_status walk_box(const walk *at, int64_t line, int64_t end,
                          int64_t col, int64_t n_cols, fr_err *err)
{
    const int64_t first_col =
        is_vector(at->tensor) ? 0
                              : fr_tensor_global_col(at->tensor, 0, &at->place);
    while (line < end) {
        const fr_weight_entry *entry = NULL, *next = NULL;
        int64_t there = 0, further, n_lines = 1;
        const bool is_there = locate(at, line, &entry, &there);
        while (line + n_lines < end &&
               (n_lines + 1) * n_cols <= FR_WEIGHT_CHUNK &&
               locate(at, line + n_lines, &next, &further) == is_there &&
               (!is_there || (next == entry && further == there + n_lines)))
            n_lines++;
        for (int64_t c = 0; c < n_cols; c += FR_WEIGHT_CHUNK) {
            const fr_weight_chunk chunk = {
                .entry = entry,
                .tensor = at->tensor,
                .line = there,
                .n_lines = n_lines,
                .col = first_col + col + c,
                .n_cols = fr_min_i64(n_cols - c, FR_WEIGHT_CHUNK),
                .at = (int64_t)at->tensor->first + line * at->width + col + c};
            FR_TRY(at->visit(at->context, &chunk, err));
        }
        line += n_lines;
    }
    return FR_OK;
}

/* Elements [begin, end) of the tensor: what is left of a line, whole lines,
 * what begins another. */
static fr_status walk_tensor(const walk *at, int64_t begin, int64_t end,
                             fr_err *err)
{
    const int64_t width = at->width;
    if (begin % width != 0) {
        const int64_t line = begin / width, col = begin % width;
        const int64_t n = fr_min_i64(width - col, end - begin);
        FR_TRY(walk_box(at, line, line + 1, col, n, err));
        begin += n;
    }
    FR_TRY(walk_box(at, begin / width, end / width, 0, width, err));
    if (end % width != 0 && end / width * width >= begin)
        FR_TRY(walk_box(at, end / width, end / width + 1, 0, end % width, err));
    return FR_OK;
}

fr_status fr_weight_map_walk(const fr_weight_map *map, int64_t rank,
                             int64_t first, int64_t n, fr_weight_chunk_fn visit,
                             void *context, fr_err *err)
{
    const fr_rank_program *rank_program =
        fr_program_of_rank(map->program, rank);
    walk at = {.map = map,
               .place = fr_tensor_place_of(&map->program->plan, rank),
               .visit = visit,
               .context = context};
    for (uint32_t i = 0; i < rank_program->n_tensors; i++) {
        const fr_tensor *tensor = &rank_program->tensors[i];
        const fr_weight_group key = {.id = tensor->id};
        const int64_t start = (int64_t)tensor->first;
        const int64_t begin = fr_max_i64(first - start, 0);
        const int64_t end = fr_min_i64(first + n - start, (int64_t)tensor->n);
        if (begin >= end)
            continue;
        at.tensor = tensor;
        at.width = is_vector(tensor) ? 1 : tensor->cols;
        at.group = bsearch(&key, map->groups.items, map->groups.n, sizeof key,
                           compare_groups);
        if (at.group == NULL)
            return fr_fail(err, FR_CHECK, "tensor %s has no entry",
                           tensor->name);
        FR_TRY(walk_tensor(&at, begin, end, err));
    }
    return FR_OK;
}
