/* test_import_lists.c: lists of GPUs and nodes of vendors' tools and of Slurm,
 * against values by hand. */
#include "core/system/fileio.h"
#include "interop/import/import.h"
#include "tests/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static fr_err err;

static fr_status parse(const char *text, const char *gpu, const char *node,
                       fr_import *out)
{
    fr_import_options options = {.gpu = gpu, .node_type = node};
    int kind = fr_import_guess(text, strlen(text));
    if (!CHECK(kind >= 0))
        return FR_FAILURE;
    return fr_import_parse(kind, "a", text, strlen(text), &options, out, &err);
}

static bool load(const char *name, const char *gpu, const char *node,
                 fr_import *out)
{
    char path[128], *text = NULL;
    snprintf(path, sizeof path, "tests/golden/fixtures/import/%s", name);
    if (!CHECK_OK(fr_file_read(path, 0, &text, NULL, &err), &err))
        return false;
    const bool is_read = CHECK_OK(parse(text, gpu, node, out), &err);
    free(text);
    return is_read;
}

/* The slower slot, of generation 3, has 12 GB/s. */
static void test_nvidia_smi(void)
{
    fr_import a;
    if (load("nvidia_smi.xml", NULL, NULL, &a)) {
        const fr_node_type *t = &a.cluster.node_types[0];
        CHECK_STR(a.cluster.devices[0].id, "a100-pcie-40g");
        CHECK(t->n_devices == 2 && t->n_nics == 0);
        CHECK_NEAR(t->host_link_Bps, 12e9, 1e-12);
        CHECK_INT(t->intra_kind, FR_INTRA_PCIE);
        fr_import_release(&a);
    }
    CHECK_FAILS(parse("<nvidia_smi_log><gpu><product_name>NVIDIA X9"
                      "</product_name></gpu></nvidia_smi_log>",
                      NULL, NULL, &a),
                FR_INPUT, &err);
    CHECK_HAS(err.text, "'NVIDIA X9' is not in the catalogue");
    CHECK_FAILS(parse("<nvidia_smi_log><gpu><product_name>NVIDIA A100-SXM4-"
                      "80GB</product_name><mig_mode><current_mig>Enabled"
                      "</current_mig></mig_mode></gpu></nvidia_smi_log>",
                      NULL, NULL, &a),
                FR_INPUT, &err);
    CHECK_HAS(err.text, "MIG splits this GPU");
}

static void test_amd(void)
{
    fr_import a;
    if (load("rocm_smi.txt", "mi300x", NULL, &a)) {
        const fr_node_type *t = &a.cluster.node_types[0];
        CHECK(t->n_devices == 4 && t->n_sockets == 2);
        CHECK_NEAR(t->intra_Bps, 448e9, 1e-12);
        CHECK_NEAR(t->intra_p2p_Bps, 64e9, 1e-12);
        fr_import_release(&a);
    }
    const char *text = "ACCESS TABLE:\n"
                       "             0000:0c:00.0 0000:22:00.0\n"
                       "0000:0c:00.0 ENABLED      ENABLED\n"
                       "0000:22:00.0 ENABLED      ENABLED\n\n"
                       "LINK TYPE TABLE:\n"
                       "             0000:0c:00.0 0000:22:00.0\n"
                       "0000:0c:00.0 SELF         PCIE\n"
                       "0000:22:00.0 PCIE         SELF\n";
    if (CHECK_OK(parse(text, "mi300x", NULL, &a), &err)) {
        CHECK_INT(a.cluster.node_types[0].n_devices, 2);
        CHECK_INT(a.cluster.node_types[0].intra_kind, FR_INTRA_PCIE);
        fr_import_release(&a);
    }
    CHECK_FAILS(parse("LINK TYPE TABLE:\n  A B\nA SELF XGMI\nB SELF XGMI\n",
                      "mi300x", NULL, &a),
                FR_INPUT, &err);
    CHECK_HAS(err.text, "a:4: 'SELF' in column 0 of row 1");
}

static void check_slurm(const fr_import *a, int64_t n_nodes, int32_t n_gpus)
{
    CHECK_INT(fr_cluster_n_nodes(&a->cluster), n_nodes);
    CHECK_INT(a->cluster.node_types[0].n_devices, n_gpus);
}

static void test_slurm(void)
{
    fr_import a;
    if (load("scontrol.txt", "a100-sxm-40g", "dgx-a100", &a)) {
        check_slurm(&a, 2, 4);
        CHECK_INT(a.cluster.node_types[0].n_sockets, 2);
        CHECK_INT(a.cluster.node_types[0].host_memory_bytes, 515000ull << 20);
        CHECK_HAS(fr_buffer_text(&a.notes), "1 nodes that are down");
        CHECK_HAS(fr_buffer_text(&a.notes), "1 nodes without GPUs");
        fr_import_release(&a);
    }
    if (CHECK_OK(parse("# slurm.conf\nNodeName=DEFAULT Sockets=2\n"
                       "NodeName=g[01-16] Gres=gpu:h100-sxm:8 "
                       "RealMemory=1031000 Sockets=2 # rack 1\n",
                       NULL, "dgx-h100", &a),
                 &err)) {
        check_slurm(&a, 16, 8);
        CHECK_STR(a.cluster.devices[0].id, "h100-sxm");
        fr_import_release(&a);
    }
    if (CHECK_OK(parse("PARTITION NODES STATE GRES NODELIST\n"
                       "gpu* 3 idle gpu:8(S:0-1) g[01-03]\n"
                       "gpu* 1 drain* gpu:8(S:0-1) g04\n"
                       "cpu 2 idle (null) c[1-2]\n",
                       "h100-sxm", "dgx-h100", &a),
                 &err)) {
        check_slurm(&a, 3, 8);
        fr_import_release(&a);
    }
    CHECK_FAILS(parse("NodeName=a Gres=gpu:8\nNodeName=b Gres=gpu:4\n",
                      "h100-sxm", "dgx-h100", &a),
                FR_INPUT, &err);
    CHECK_HAS(err.text, "nodes with 4 GPUs among nodes with 8;");
    CHECK_FAILS(parse("NodeName=a Gres=gpu:a100:8\n", NULL, "dgx-h100", &a),
                FR_INPUT, &err);
    CHECK_HAS(err.text, "give --gpu NAME");
}

CHECK_MAIN({"nvidia-smi", test_nvidia_smi}, {"amd", test_amd},
           {"slurm", test_slurm})
