/*
 * test_collective_time.c: times of single collectives: bandwidths by
 * nccl-tests' definition, algorithms that differ, and what cannot be refused.
 */
#include "cost_models/link/gpu_comm.h"
#include "sim/predict/collective_time.h"
#include "spec/catalog/catalog.h"
#include "tests/check.h"

#include <stdlib.h>

enum { MAX_RANKS = 64 };

typedef struct scene {
    fr_cluster cluster;
    fr_cost_model *costs;
    int32_t nodes[MAX_RANKS];
    fr_placement placement;
} scene;

static bool open_scene(const char *node, int64_t n_nodes, int64_t n_ranks,
                       scene *s)
{
    fr_err err = {0};

    *s = (scene){0};
    if (!CHECK_OK(fr_catalog_cluster(node, n_nodes, &s->cluster, &err), &err) ||
        !CHECK_OK(fr_cost_model_create(NULL, &s->cluster, &s->costs, &err),
                  &err) ||
        !CHECK_OK(fr_cluster_place(&s->cluster, n_ranks, 1, 0, s->nodes, &err),
                  &err))
        return false;
    s->placement = (fr_placement){.n_ranks = n_ranks, .node_of_rank = s->nodes};
    return true;
}

static void close_scene(scene *s)
{
    fr_cost_model_destroy(s->costs);
    fr_cluster_release(&s->cluster);
}

static fr_collective_time ask(const scene *s, fr_op op, uint64_t n_bytes,
                              fr_collective_kind algorithm)
{
    fr_collective_ask question = {
        .op = op, .n_bytes = n_bytes, .algorithm = algorithm};
    fr_collective_time time;
    fr_err err = {0};

    CHECK_OK(fr_collective_time_of(s->costs, &s->cluster, &s->placement,
                                   &question, &time, &err),
             &err);
    return time;
}

/* doc/PERFORMANCE.md of nccl-tests: the factors of 16 ranks, by hand. */
static void test_bandwidths(void)
{
    static const struct {
        fr_op op;
        double factor;
    } rows[] = {{FR_OP_ALL_REDUCE, 30.0 / 16},
                {FR_OP_REDUCE_SCATTER, 15.0 / 16},
                {FR_OP_ALL_GATHER, 15.0 / 16},
                {FR_OP_ALL_TO_ALL, 15.0 / 16},
                {FR_OP_BROADCAST, 1.0}};
    scene s;

    if (!open_scene("dgx-h100", 2, 16, &s))
        return;
    for (size_t i = 0; i < FR_LENGTH(rows); i++) {
        uint64_t n_bytes = UINT64_C(1) << 30;
        fr_collective_time time =
            ask(&s, rows[i].op, n_bytes, FR_COLLECTIVE_AUTO);
        CHECK_INT(time.n_group, 16);
        CHECK_INT(time.n_nodes, 2);
        CHECK_NEAR(time.algbw_Bps, (double)n_bytes / time.seconds, 1e-9);
        CHECK_NEAR(time.busbw_Bps, time.algbw_Bps * rows[i].factor, 1e-9);
        /* Eight NICs of 50 GB/s feed a node; nothing passes faster than twice
         * that, the share that NVLS spares included. */
        CHECK(time.busbw_Bps > 10e9 && time.busbw_Bps < 800e9);
    }
    close_scene(&s);
}

/* More bytes never take less time; algorithms are not one another, and the
 * library's choice is as good as any that it can be told. */
static void test_algorithms(void)
{
    scene s;

    if (!open_scene("dgx-h100", 4, 32, &s))
        return;
    double last_s = 0.0;
    for (int power = 10; power <= 32; power += 2) {
        uint64_t n_bytes = UINT64_C(1) << power;
        double chosen_s =
            ask(&s, FR_OP_ALL_REDUCE, n_bytes, FR_COLLECTIVE_AUTO).seconds;
        double ring_s =
            ask(&s, FR_OP_ALL_REDUCE, n_bytes, FR_COLLECTIVE_RING).seconds;
        double tree_s =
            ask(&s, FR_OP_ALL_REDUCE, n_bytes, FR_COLLECTIVE_DOUBLE_TREE)
                .seconds;
        double nvls_s =
            ask(&s, FR_OP_ALL_REDUCE, n_bytes, FR_COLLECTIVE_NVLS).seconds;
        CHECK(chosen_s >= last_s);
        CHECK(ring_s != tree_s && tree_s != nvls_s && nvls_s != ring_s);
        CHECK(chosen_s <= ring_s && chosen_s <= tree_s && chosen_s <= nvls_s);
        last_s = chosen_s;
    }
    close_scene(&s);
}

static void test_refusals(void)
{
    static const struct {
        const char *node;
        fr_collective_kind kind;
        bool is_fine;
    } rows[] = {{"dgx-h100", FR_COLLECTIVE_NVLS, true},
                {"dgx-a100", FR_COLLECTIVE_NVLS, false},
                {"dgx-a100", FR_COLLECTIVE_RING, true},
                {"dgx-a100", FR_COLLECTIVE_DIRECT, false},
                {"dgx-h100", FR_COLLECTIVE_HALVING_DOUBLING, false},
                {"dgx-h100", FR_COLLECTIVE_AUTO, true}};
    for (size_t i = 0; i < FR_LENGTH(rows); i++) {
        scene s;
        fr_err err = {0};
        if (!open_scene(rows[i].node, 2, 16, &s))
            return;
        fr_status status =
            fr_gpu_comm_check(fr_cost_gpu_comm(s.costs), rows[i].kind, &err);
        CHECK_INT(status, rows[i].is_fine ? FR_OK : FR_INPUT);
        if (!rows[i].is_fine)
            CHECK(strstr(err.text, "choose collective auto, ring") != NULL);
        close_scene(&s);
    }
}

CHECK_MAIN({"bandwidths", test_bandwidths}, {"algorithms", test_algorithms},
           {"refusals", test_refusals})
