/* plan_choice.c: see plan_choice.h. */
#include "api/resolve/plan_choice.h"

#include "core/base/text.h"

#include <stdlib.h>
#include <string.h>

static fr_status place_ranks(const fr_plan *plan, const fr_inputs *inputs,
                             int32_t **out, fr_err *err)
{
    int64_t n_ranks = fr_plan_world(plan);
    int32_t *node_of_rank = malloc((size_t)n_ranks * sizeof *node_of_rank);
    if (node_of_rank == NULL)
        return fr_fail_no_memory(err);
    fr_status status =
        fr_cluster_place(&inputs->cluster, n_ranks, plan->n_threads,
                         inputs->ranks_per_node, node_of_rank, err);
    if (status == FR_OK)
        *out = node_of_rank;
    else
        free(node_of_rank);
    return status;
}

/* The data file by its full path: the plan may be run from elsewhere. */
static void make_data_absolute(fr_job *job)
{
    char *path = job->data[0] != '\0' ? realpath(job->data, NULL) : NULL;
    if (path != NULL)
        (void)fr_text_copy(job->data, sizeof job->data, path);
    free(path);
}

fr_status fr_plan_choice_save(const fr_plan_choice *choice,
                              const fr_inputs *inputs,
                              const fr_prediction *prediction, const char *path,
                              fr_err *err)
{
    fr_plan_file file = choice->file; /* its model is borrowed */
    int32_t *node_of_rank = NULL;
    make_data_absolute(&file.job);
    fr_text_copy_cut(file.cluster, sizeof file.cluster, inputs->cluster_word);
    file.cluster_hash = fr_cluster_hash(&inputs->cluster);
    fr_text_copy_cut(file.backend, sizeof file.backend,
                     fr_cluster_is_all_gpu(&inputs->cluster) ? "cuda" : "cpu");
    file.profile_hash =
        inputs->has_profile ? fr_profile_hash(&inputs->profile) : 0;
    file.has_prediction = true;
    file.prediction = *prediction;
    FR_TRY(place_ranks(&file.plan, inputs, &node_of_rank, err));
    file.node_of_rank = node_of_rank;
    fr_status status = fr_plan_file_save(&file, path, err);
    free(node_of_rank);
    return status;
}

void fr_plan_choice_release(fr_plan_choice *choice)
{
    if (choice->is_model_borrowed)
        memset(&choice->file.model, 0, sizeof choice->file.model);
    fr_plan_file_release(&choice->file);
    memset(choice, 0, sizeof *choice);
}
