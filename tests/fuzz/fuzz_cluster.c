/* fuzz_cluster.c: what is read is whole, and its questions have answers. */
#include "spec/cluster/cluster.h"
#include "spec/cluster/cluster_write.h"
#include "tests/fuzz/fuzz.h"

static void ask(const fr_cluster *cluster)
{
    int64_t n_nodes = fr_cluster_n_nodes(cluster);
    int64_t n_slots = fr_cluster_slots(cluster);
    fr_path path = fr_cluster_path(cluster, 0, n_nodes - 1);
    char name[128];
    if (n_nodes < 1 || n_slots < n_nodes)
        abort();
    fr_cluster_node_name(cluster, n_nodes - 1, name, sizeof name);
    if (fr_cluster_node_find(cluster, name) != n_nodes - 1)
        abort();
    if (!(path.bandwidth_Bps >= 0.0) || !(path.latency_s >= 0.0))
        abort();
    if (!(fr_cluster_usd_per_h(cluster, n_nodes, true) >= 0.0))
        abort();
    (void)fr_cluster_hash(cluster);
}

/* Written and read back it is the same, up to the rounding of a reciprocal. */
static void check_round_trip(fr_cluster *cluster)
{
    fr_buffer text;
    fr_cluster back;
    fr_err err;
    fr_buffer_init(&text);
    if (fr_cluster_format(cluster, NULL, &text, &err) != FR_OK ||
        fr_cluster_parse("written", text.data, text.n, &back, &err) != FR_OK)
        abort();
    back.spot_interruption_per_h = cluster->spot_interruption_per_h;
    if (fr_cluster_hash(&back) != fr_cluster_hash(cluster))
        abort();
    fr_cluster_release(&back);
    fr_buffer_release(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    fr_cluster cluster;
    fr_err err;
    fr_status status =
        fr_cluster_parse("input", (const char *)bytes, n, &cluster, &err);

    fuzz_check_lines(status, &err, "input:");
    if (status != FR_OK)
        return 0;
    if (fr_cluster_check(&cluster, &err) != FR_OK)
        abort();
    ask(&cluster);
    check_round_trip(&cluster);
    fr_cluster_release(&cluster);
    return 0;
}
