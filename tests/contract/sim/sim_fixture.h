/*
 * sim_fixture.h: a small model on a cluster under a plan, lowered and placed,
 * for the contracts of the simulator.
 */
#ifndef FR_TESTS_SIM_FIXTURE_H
#define FR_TESTS_SIM_FIXTURE_H

#include "cost_models/gpu/gpu_memory.h"
#include "program/lower/step/lower.h"
#include "sim/predict/simulate.h"
#include "tests/check.h"
#include "tests/unit/small_model.h"

#include <stdlib.h>

typedef struct sim_fixture {
    fr_cluster cluster;
    fr_cost_model *costs;
    fr_model model;
    fr_job job;
    fr_plan plan;
    fr_program *program;
    int32_t *node_of_rank;
} sim_fixture;

/* Nodes of CPUs behind one switch; %s: more children of the cluster. */
CHECK_MAYBE_UNUSED static const char sim_cpu_xml[] =
    "<cluster name=\"hosts\">\n"
    "  <device id=\"core\" kind=\"cpu\" cores=\"%d\" memory=\"64GiB\"\n"
    "          memory-bandwidth=\"100GB/s\">\n"
    "    <peak dtype=\"fp32\" rate=\"317GFLOP/s\"/>\n"
    "  </device>\n"
    "  <node-type id=\"host\" device=\"core\">\n"
    "    <intra kind=\"shared-memory\" bandwidth=\"8GB/s\" latency=\"1us\"/>\n"
    "    <nic bandwidth=\"10Gb/s\" latency=\"20us\"/>\n"
    "  </node-type>\n"
    "  <group id=\"host\" node-type=\"host\" count=\"%d\"/>\n"
    "  <fabric kind=\"switch\"/>\n"
    "%s"
    "</cluster>\n";

/* Nodes of 8 GPUs with as many NICs; %s: a <fabric>, then more. */
CHECK_MAYBE_UNUSED static const char sim_gpu_xml[] =
    "<cluster name=\"gpus\">\n"
    "  <device id=\"gpu\" kind=\"gpu\" memory=\"80GiB\"\n"
    "          memory-bandwidth=\"3350GB/s\">\n"
    "    <peak dtype=\"fp32\" rate=\"67TFLOP/s\"/>\n"
    "  </device>\n"
    "  <node-type id=\"box\" device=\"gpu\" devices=\"8\">\n"
    "    <intra kind=\"nvswitch\" bandwidth=\"450GB/s\" latency=\"2us\"/>\n"
    "    <nic count=\"%d\" bandwidth=\"%s\" latency=\"5us\"/>\n"
    "  </node-type>\n"
    "  <group id=\"box\" node-type=\"box\" count=\"%d\"/>\n"
    "%s"
    "</cluster>\n";

CHECK_MAYBE_UNUSED static void sim_fixture_release(sim_fixture *f)
{
    fr_program_destroy(f->program);
    fr_cost_model_destroy(f->costs);
    fr_cluster_release(&f->cluster);
    free(f->node_of_rank);
}

/* Sets model, job and plan to something small; the caller changes them. */
CHECK_MAYBE_UNUSED static void sim_fixture_init(sim_fixture *f)
{
    memset(f, 0, sizeof *f);
    small_model(&f->model, 8, 16, 32, 2048, 256);
    fr_job_init(&f->job);
    f->job.seq = 128;
    f->job.global_batch = 64;
    fr_plan_init(&f->plan);
    f->plan.micro_batch = 1;
}

/* The cluster from text; NULL text: by name. */
CHECK_MAYBE_UNUSED static bool
sim_fixture_cluster(sim_fixture *f, const char *name, const char *xml)
{
    fr_err err;
    fr_status status =
        xml != NULL
            ? fr_cluster_parse(name, xml, strlen(xml), &f->cluster, &err)
            : fr_cluster_load(NULL, name, &f->cluster, &err);
    /* A cluster without a word on jitter is exact here, although GPUs have
     * some. */
    if (xml != NULL && strstr(xml, "<jitter") == NULL)
        f->cluster.jitter_compute_frac = 0;
    return CHECK_OK(status, &err) &&
           CHECK_OK(fr_cost_model_create(NULL, &f->cluster, &f->costs, &err),
                    &err);
}

/* ranks_per_node 0: as many as fit. */
CHECK_MAYBE_UNUSED static bool sim_fixture_lower(sim_fixture *f,
                                                 int64_t ranks_per_node)
{
    fr_err err;
    int64_t n = fr_plan_world(&f->plan);
    f->node_of_rank = malloc((size_t)n * sizeof *f->node_of_rank);
    fr_placement placement = {.n_ranks = n,
                              .node_of_rank = f->node_of_rank,
                              .by_framework = fr_gpu_is_by_framework(
                                  &f->plan, &f->cluster.devices[0])};
    return f->node_of_rank != NULL &&
           CHECK_OK(fr_cluster_place(&f->cluster, n, f->plan.n_threads,
                                     ranks_per_node, f->node_of_rank, &err),
                    &err) &&
           CHECK_OK(fr_lower(&f->model, &f->job, &f->plan, &placement,
                             &f->program, &err),
                    &err);
}

CHECK_MAYBE_UNUSED static bool sim_fixture_predict(const sim_fixture *f,
                                                   fr_replay_detail detail,
                                                   bool is_unfolded,
                                                   fr_prediction *out)
{
    fr_err err;
    fr_placement placement = {.n_ranks = fr_plan_world(&f->plan),
                              .node_of_rank = f->node_of_rank,
                              .by_framework = fr_gpu_is_by_framework(
                                  &f->plan, &f->cluster.devices[0])};
    fr_replay_options options = {.detail = detail, .is_unfolded = is_unfolded};
    return CHECK_OK(fr_simulate(f->program, f->costs, &f->cluster, &placement,
                                &(fr_simulate_options){.replay = &options}, out,
                                &err),
                    &err);
}

#endif
