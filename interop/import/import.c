/* import.c: the list of formats. */
#include "interop/import/import.h"

#include "core/base/text.h"
#include "interop/import/import_parts.h"

#include <string.h>

/* The first that claims a text gets it. */
static const fr_importer *const importers[] = {
    &fr_import_simgrid,     &fr_import_nccl_graph,  &fr_import_nccl,
    &fr_import_hwloc,       &fr_import_nccl_tests,  &fr_import_slurm,
    &fr_import_amd_topo,    &fr_import_topo_matrix, &fr_import_nvidia_smi,
    &fr_import_slurm_nodes,
};
enum { N_IMPORTERS = FR_LENGTH(importers) };

const char *fr_import_kind_name(int kind)
{
    return kind >= 0 && kind < N_IMPORTERS ? importers[kind]->name : NULL;
}

int fr_import_kind_find(const char *name)
{
    for (int i = 0; i < N_IMPORTERS; i++)
        if (strcmp(importers[i]->name, name) == 0)
            return i;
    return -1;
}

fr_import_subject fr_import_kind_subject(int kind)
{
    return importers[kind]->subject;
}

static bool has_word(const char *text, size_t n, const char *word)
{
    return memmem(text, n < 4096 ? n : 4096, word, strlen(word)) != NULL;
}

static bool has_marks(const fr_importer *importer, const char *text, size_t n)
{
    bool has_any = false, has_all = true;
    for (size_t i = 0; i < FR_LENGTH(importer->marks); i++) {
        if (importer->marks[i] == NULL)
            continue;
        bool is_there = has_word(text, n, importer->marks[i]);
        has_any |= is_there;
        has_all &= is_there;
    }
    return importer->has_all ? has_all : has_any;
}

int fr_import_guess(const char *text, size_t n)
{
    for (int i = 0; i < N_IMPORTERS; i++)
        if (has_marks(importers[i], text, n))
            return i;
    return -1;
}

fr_status fr_import_parse(int kind, const char *name, const char *text,
                          size_t n, const fr_import_options *options,
                          fr_import *out, fr_err *err)
{
    fr_import import;
    memset(&import, 0, sizeof import);
    fr_profile_init(&import.profile);
    fr_buffer_init(&import.notes);
    fr_import_text in = {name, text, n, options, &import.notes};
    fr_status status = FR_OK;
    if (memchr(text, '\0', n) != NULL)
        status = fr_import_fail(&in, 1, err, "a NUL byte: not a text");
    if (status == FR_OK)
        status = importers[kind]->read(&in, &import, err);
    if (status == FR_OK && !import.is_profile)
        import.cluster.jitter_compute_frac =
            fr_cluster_default_jitter_frac(&import.cluster);
    if (status == FR_OK && !import.is_profile)
        status = fr_cluster_check(&import.cluster, err);
    if (status == FR_OK)
        status = fr_buffer_check(&import.notes, err);
    if (status != FR_OK) {
        fr_import_release(&import);
        return status;
    }
    *out = import;
    return FR_OK;
}

void fr_import_release(fr_import *import)
{
    fr_cluster_release(&import->cluster);
    fr_profile_release(&import->profile);
    fr_buffer_release(&import->notes);
    memset(import, 0, sizeof *import);
}
