/* test_input_cost.c: what samples take, by hand. */
#include "cost_models/storage/input_cost.h"
#include "spec/catalog/catalog.h"
#include "tests/check.h"

static void test_by_hand(void)
{
    fr_err err;
    fr_cluster cluster;
    fr_job job;
    fr_plan plan;
    const fr_model model = {.vocab = 70001};
    if (!CHECK_OK(fr_catalog_cluster("dgx-h100", 3, &cluster, &err), &err))
        return;
    fr_job_init(&job);
    fr_plan_init(&plan);
    job.global_batch = 96;
    job.seq = 2047;
    plan.dp = 4;
    plan.micro_batch = 2;
    fr_input_cost cost = fr_input_cost_of(&model, &job, &cluster, 0);
    CHECK(fr_input_s(&cost, &job, &plan, 3) == 0);
    /* Tokens of four bytes, read by three nodes. */
    fr_node_type *node = &cluster.node_types[0];
    node->storage_read_Bps = 1e5;
    cost = fr_input_cost_of(&model, &job, &cluster, 0);
    CHECK_NEAR(fr_input_s(&cost, &job, &plan, 3), 96 * 8192 / 3e5, 1e-12);
    /* Each data-parallel rank has 24 samples, five loaders. */
    job.decode_s = 0.7;
    job.n_loaders = 5;
    node->storage_latency_s = 0.05;
    cost = fr_input_cost_of(&model, &job, &cluster, 0);
    CHECK_NEAR(fr_input_s(&cost, &job, &plan, 3), 24 * 0.75 / 5, 1e-12);
    /* The one with the most micro-batches has 30. */
    plan.n_shares = 4;
    for (int i = 0; i < 4; i++)
        plan.batch_shares[i] = i == 2 ? 15 : 11;
    CHECK_NEAR(fr_input_s(&cost, &job, &plan, 3), 30 * 0.75 / 5, 1e-12);
    /* Three quarters of the data set are in memory: a quarter waits. */
    job.dataset_bytes = (double)node->host_memory_bytes / 0.75;
    cost = fr_input_cost_of(&model, &job, &cluster, 0);
    CHECK_NEAR(fr_input_s(&cost, &job, &plan, 3), 30 * 0.7125 / 5, 1e-12);
    /* A third of that memory is taken: half of the data set waits. */
    cost =
        fr_input_cost_of(&model, &job, &cluster, node->host_memory_bytes / 3);
    CHECK_NEAR(fr_input_s(&cost, &job, &plan, 3), 30 * 0.725 / 5, 1e-9);
    job.decode_s = 0;
    cost = fr_input_cost_of(&model, &job, &cluster, 0);
    CHECK_NEAR(fr_input_s(&cost, &job, &plan, 3), 24 * 8192 / 3e5, 1e-12);
    job.dataset_bytes = (double)node->host_memory_bytes / 2;
    cost = fr_input_cost_of(&model, &job, &cluster, 0);
    CHECK(fr_input_s(&cost, &job, &plan, 3) == 0);
    fr_cluster_release(&cluster);
}

CHECK_MAIN({"by hand", test_by_hand})
