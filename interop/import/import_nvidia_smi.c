/*
 * import_nvidia_smi.c: what `nvidia-smi -q -x` prints: the GPUs of a node,
 * their model and the generation of their PCIe slots.  It has no NIC and no
 * NVLink.
 */
#include "core/base/text.h"
#include "interop/import/import_parts.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_GPUS = 64 };

/* The element at the end of a path of names, NULL where one is missing. */
static const fr_xml_node *find_path(const fr_xml_node *from,
                                    const char *const *names, size_t n)
{
    for (size_t i = 0; i < n && from != NULL; i++)
        from = fr_xml_first_named(from, names[i]);
    return from;
}

static const char *text_of(const fr_xml_node *from, const char *const *names,
                           size_t n)
{
    const fr_xml_node *node = find_path(from, names, n);
    const char *text = node != NULL ? fr_xml_text(node) : NULL;
    return text != NULL ? text : "";
}

#define TEXT(from, ...)                                                        \
    text_of((from), (const char *const[]){__VA_ARGS__},                        \
            sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

/* "20B210DE": the device, then its vendor. */
static const fr_catalog_device *find_device(const fr_xml_node *gpu)
{
    const unsigned long id =
        strtoul(TEXT(gpu, "pci", "pci_device_id"), NULL, 16);
    const fr_catalog_device *found = fr_catalog_device_find_pci(
        (uint32_t)(id & 0xffff), (uint32_t)(id >> 16 & 0xffff));
    return found != NULL
               ? found
               : fr_catalog_device_find_product(TEXT(gpu, "product_name"));
}

/* The slot at its best: an idle GPU lowers the current generation. */
static double pcie_Bps(const fr_xml_node *gpu)
{
    static const char *const rates[] = {"0", "2.5", "5", "8", "16", "32", "64"};
    const unsigned long generation = strtoul(
        TEXT(gpu, "pci", "pci_gpu_link_info", "pcie_gen", "max_link_gen"), NULL,
        10);
    const long n_lanes = strtol(
        TEXT(gpu, "pci", "pci_gpu_link_info", "link_widths", "max_link_width"),
        NULL, 10);
    return generation > 0 && generation < FR_LENGTH(rates) && n_lanes > 0
               ? fr_import_pcie_Bps(rates[generation], n_lanes)
               : 0;
}

static fr_status read_gpu(const fr_import_text *in, const fr_xml_node *gpu,
                          fr_import_node *node, fr_err *err)
{
    const fr_catalog_device *found = find_device(gpu);
    const double Bps = pcie_Bps(gpu);
    if (node->n_gpus == MAX_GPUS)
        return fr_xml_fail(gpu, err, "more than %d GPUs", MAX_GPUS);
    if (strcmp(TEXT(gpu, "mig_mode", "current_mig"), "Enabled") == 0)
        return fr_xml_fail(gpu, err,
                           "MIG splits this GPU; a part of one is not "
                           "modelled");
    if (node->n_gpus > 0 && found != node->device)
        return fr_xml_fail(gpu, err,
                           "GPUs of different models in one node; write two "
                           "node types by hand");
    if (found == NULL && in->options->gpu == NULL)
        return fr_xml_fail(gpu, err,
                           "GPU '%.60s' is not in the catalogue; give --gpu "
                           "NAME",
                           TEXT(gpu, "product_name"));
    if (Bps > 0 && (node->host_Bps <= 0 || Bps < node->host_Bps))
        node->host_Bps = Bps;
    node->device = found;
    node->n_gpus++;
    return FR_OK;
}

static fr_status read_log(const fr_import_text *in, const fr_xml_node *root,
                          fr_import *out, fr_err *err)
{
    fr_import_node node = {.line = fr_xml_line(root)};
    if (!fr_xml_is(root, "nvidia_smi_log"))
        return fr_xml_fail(root, err, "the root is <%s>, not <nvidia_smi_log>",
                           fr_xml_name(root));
    fr_xml_each (gpu, root, "gpu")
        FR_TRY(read_gpu(in, gpu, &node, err));
    if (node.n_gpus == 0)
        return fr_xml_fail(root, err, "no <gpu>");
    FR_TRY(fr_import_choose_gpu(in, &node, err));
    fr_import_note(in, "nvidia-smi -q lists no NIC and no NVLink: the output "
                       "of 'nvidia-smi topo -m' has them");
    return fr_import_finish(in, &node, &out->cluster, err);
}

static fr_status read_nvidia_smi(const fr_import_text *in, fr_import *out,
                                 fr_err *err)
{
    fr_xml *xml;
    FR_TRY(fr_xml_parse(in->name, in->text, in->n, &xml, err));
    fr_status status = read_log(in, fr_xml_root(xml), out, err);
    fr_xml_destroy(xml);
    return status;
}

const fr_importer fr_import_nvidia_smi = {.name = "nvidia-smi",
                                          .marks = {"<nvidia_smi_log"},
                                          .read = read_nvidia_smi};
