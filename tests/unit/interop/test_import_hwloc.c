/* test_import_hwloc.c: XML of hwloc 2 and 3 in the shape of hwloc's source
 * (hwloc/topology-xml.c, topology-nvml.c), against values by hand. */
#include "core/system/fileio.h"
#include "interop/import/import.h"
#include "tests/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static fr_err err;

static bool import_text(const char *text, fr_import *out)
{
    fr_import_options options = {0};
    int kind = fr_import_guess(text, strlen(text));
    return CHECK(kind >= 0) &&
           CHECK_OK(fr_import_parse(kind, "a.xml", text, strlen(text), &options,
                                    out, &err),
                    &err);
}

/* A machine of a version, with these PCI objects and distances. */
static bool import_machine(const char *version, const char *pci,
                           const char *distances, fr_import *out)
{
    char text[8192];
    snprintf(text, sizeof text,
             "<topology version=\"%s\"><object type=\"Machine\" gp_index=\"1\">"
             "<object type=\"Package\" gp_index=\"2\">"
             "<object type=\"NUMANode\" gp_index=\"3\" "
             "local_memory=\"137438953472\"/>"
             "<object type=\"Core\" gp_index=\"4\"/></object>"
             "<object type=\"Bridge\" gp_index=\"5\" bridge_type=\"0-1\">%s"
             "</object></object>%s</topology>",
             version, pci, distances);
    return import_text(text, out);
}

#define GPU(index, os, id)                                                     \
    "<object type=\"PCIDev\" gp_index=\"" #index                               \
    "\" pci_type=\"0302 [10de:" id "] [10de:1463] a1 00\" "                    \
    "pci_link_speed=\"31.507692\"><object type=\"OSDev\" gp_index=\"" #os      \
    "\" name=\"nvml0\" subtype=\"NVML\" osdev_type=\"12\"/></object>"
#define SWITCH(index)                                                          \
    "<object type=\"PCIDev\" gp_index=\"" #index "\" subtype=\"NVSwitch\" "    \
    "pci_type=\"0680 [10de:1af1] [10de:0000] a1 01\" "                         \
    "pci_link_speed=\"3.938462\"/>"

static void check_fabric(const fr_import *a, fr_intra_kind kind, double all_Bps,
                         double pair_Bps)
{
    const fr_node_type *t = &a->cluster.node_types[0];
    CHECK_INT(t->intra_kind, kind);
    CHECK_NEAR(t->intra_Bps, all_Bps, 1e-12);
    CHECK_NEAR(t->intra_p2p_Bps, pair_Bps, 1e-12);
}

/* hwloc names GPUs by their NVML devices. */
static void test_os_devices(void)
{
    fr_import a;
    char *text;
    if (CHECK_OK(fr_file_read("tests/golden/fixtures/misread/"
                              "hwloc_nvlink_osdev.xml",
                              0, &text, NULL, &err),
                 &err)) {
        if (import_text(text, &a)) {
            CHECK_INT(a.cluster.node_types[0].n_devices, 2);
            check_fabric(&a, FR_INTRA_NVLINK, 300e9, 300e9);
            fr_import_release(&a);
        }
        free(text);
    }
    /* Objects of one type have their type once, and bare indexes. */
    if (import_machine("2.0", GPU(11, 21, "20b2") GPU(12, 22, "20b2"),
                       "<distances2 type=\"OSDev\" nbobjs=\"2\" kind=\"25\" "
                       "name=\"NVLinkBandwidth\" indexing=\"gp\">"
                       "<indexes length=\"6\">21 22 </indexes>"
                       "<u64values length=\"32\">0 100000 100000 0 "
                       "</u64values></distances2>",
                       &a)) {
        check_fabric(&a, FR_INTRA_NVLINK, 100e9, 100e9);
        fr_import_release(&a);
    }
}

/* hwloc 3: osdev_type is a set, and the matrix has switches. */
static void test_version_3(void)
{
    fr_import a;
    if (import_machine(
            "3.0",
            GPU(11, 21, "20b2") GPU(12, 22, "20b2") SWITCH(31) SWITCH(
                32) "<object type=\"PCIDev\" gp_index=\"41\" "
                    "pci_type=\"0207 [15b3:101b] [15b3:0007] 00 00\" "
                    "pci_link_speed=\"31.507692\">"
                    "<object type=\"OSDev\" gp_index=\"42\" name=\"mlx5_0\" "
                    "osdev_type=\"48\"/></object>"
                    "<object type=\"PCIDev\" gp_index=\"43\" "
                    "pci_type=\"0200 [8086:1521] [8086:0000] 01 00\" "
                    "pci_link_speed=\"2.0\">"
                    "<object type=\"OSDev\" gp_index=\"44\" name=\"eno1\" "
                    "osdev_type=\"16\"/></object>",
            "<distances2hetero nbobjs=\"4\" kind=\"25\" "
            "name=\"NVLinkBandwidth\">"
            "<indexes length=\"36\">OSDev:21 OSDev:22 PCIDev:31 PCIDev:32 "
            "</indexes>"
            "<u64values length=\"32\">0 0 125000 150000 0 0 150000 125000 "
            "</u64values>"
            "<u64values length=\"32\">125000 150000 0 0 150000 125000 0 0 "
            "</u64values></distances2hetero>",
            &a)) {
        const fr_node_type *t = &a.cluster.node_types[0];
        check_fabric(&a, FR_INTRA_NVSWITCH, 275e9, 275e9);
        CHECK_INT(t->n_nics, 1);
        CHECK_INT(t->nic_kind, FR_NIC_INFINIBAND);
        CHECK_NEAR(t->nic_Bps, 25e9, 1e-12);
        fr_import_release(&a);
    }
}

/* A GPU's links to the CPU (POWER) are none to other GPUs. */
static void test_links_to_cpus(void)
{
    fr_import a;
    if (import_machine("2.0", GPU(11, 21, "1db5") GPU(12, 22, "1db5"),
                       "<distances2hetero nbobjs=\"3\" kind=\"25\" "
                       "name=\"NVLinkBandwidth\">"
                       "<indexes length=\"27\">OSDev:21 OSDev:22 Package:2 "
                       "</indexes>"
                       "<u64values length=\"60\">1000000 50000 75000 50000 "
                       "1000000 75000 75000 75000 1000000 "
                       "</u64values></distances2hetero>",
                       &a)) {
        check_fabric(&a, FR_INTRA_NVLINK, 50e9, 50e9);
        fr_import_release(&a);
    }
}

#define DISPLAY(id, speed)                                                     \
    "<object type=\"PCIDev\" gp_index=\"91\" pci_type=\"0300 [" id             \
    "] [1028:0000] 02\" pci_link_speed=\"" speed "\"/>"

/* The console's chip is no GPU, whoever made it. */
static void test_displays(void)
{
    static const char *const chips[] = {
        DISPLAY("1a03:2000", "0.000000"), DISPLAY("102b:0538", "0.250000"),
        DISPLAY("1002:515e", "0.000000"), DISPLAY("10de:13bb", "15.753846")};
    fr_import a;
    for (size_t i = 0; i < FR_LENGTH(chips); i++) {
        char pci[2048];
        snprintf(pci, sizeof pci, "%s%s", chips[i], GPU(11, 21, "20b2"));
        if (!import_machine("2.0", pci, "", &a))
            continue;
        CHECK_STR(a.cluster.devices[0].id, "a100-sxm-80g");
        CHECK_INT(a.cluster.node_types[0].n_devices, 1);
        CHECK_HAS(fr_buffer_text(&a.notes), "1 display controllers are no GPU");
        CHECK_NEAR(a.cluster.node_types[0].host_link_Bps, 24e9, 1e-6);
        fr_import_release(&a);
    }
    if (import_machine("2.0", chips[2], "", &a)) {
        CHECK_INT(a.cluster.devices[0].kind, FR_DEVICE_CPU);
        fr_import_release(&a);
    }
    /* Class 12: a processing accelerator, of MI300. */
    if (import_machine("3.0",
                       "<object type=\"PCIDev\" gp_index=\"11\" "
                       "pci_type=\"1200 [1002:74a1] [1002:74a1] 00 00\" "
                       "pci_link_speed=\"63.015385\"/>",
                       "", &a)) {
        CHECK_STR(a.cluster.devices[0].id, "mi300x");
        fr_import_release(&a);
    }
}

CHECK_MAIN({"os devices", test_os_devices}, {"version 3", test_version_3},
           {"links to cpus", test_links_to_cpus}, {"displays", test_displays})
