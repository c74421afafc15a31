/* setup_report.c: what was predicted, and under whose habits. */
#include "report/setup_report.h"

#include "core/base/units.h"
#include "frameworks/framework.h"
#include "plan/codec/compressor.h"
#include "plan/collective/collective.h"

#include <stdio.h>

/* Returns how many ranks of the plan's threads the cluster has places for. */
static int64_t places_of(const fr_report_setup *at)
{
    return fr_cluster_slots_of_nodes(
        at->cluster, fr_cluster_n_nodes(at->cluster), at->plan->n_threads);
}

/* ---- habits ------------------------------------------------------------- */

enum { MOST_HABITS = 14 };

typedef struct habits {
    char at[MOST_HABITS][80];
    int n;
} habits;

static void add(bool is_so, habits *out, const char *format, const char *name)
{
    if (is_so)
        snprintf(out->at[out->n++], sizeof out->at[0], format, name);
}

/* Lists values that are executed otherwise than they were asked for, or than
 * their names say. */
static void list_wire(const fr_report_setup *at, habits *out)
{
    const fr_plan *p = at->plan;
    const fr_collective *collective = fr_collectives[p->collective];
    const fr_compressor *codec = fr_compressor_of(p);
    const bool is_gpu =
        fr_cluster_device(at->cluster, 0)->kind == FR_DEVICE_GPU;
    add(p->dp > 1 && codec->wire == FR_WIRE_GATHER, out,
        "payloads of %s are gathered, because they cannot be added",
        codec->name);
    add(is_gpu && collective != NULL && !collective->has_nccl &&
            collective->is_whole,
        out, "%s is priced as NCCL's tree, which is a double one",
        collective != NULL ? collective->name : "");
}

/* Lists the facts of this plan that differ between frameworks. */
static void list_habits(const fr_report_setup *at, habits *out)
{
    const fr_plan *p = at->plan;
    const fr_framework *framework = fr_framework_find(at->framework);
    const bool is_sharded = p->zero_stage == 1 || p->zero_stage == 2;
    char text[32];
    out->n = 0;
    if (fr_cluster_device(at->cluster, 0)->kind != FR_DEVICE_GPU) {
        list_wire(at, out); /* the rest is how forerun itself trains */
        return;
    }
    add(true, out, "%s gradients", fr_name_of(&fr_dtype_names, p->grad_dtype));
    add(p->execution.is_grad_added_apart, out, "%s",
        "gradients added separately");
    add(p->dp * p->cp > 1, out, "reduction %s backward",
        p->is_overlap ? "overlaps" : "after");
    add(is_sharded && p->dp * p->cp > 1, out, "gather of parameters %s",
        p->is_gather_overlap ? "overlaps forward" : "after the step");
    add(p->tp > 1, out, "%s sequence parallel",
        p->is_sequence_parallel ? "with" : "without");
    add(p->is_tp_overlap, out, "%s", "TP overlap");
    add(at->model->kind != FR_MODEL_LAYERS && !p->is_flash, out, "%s",
        "attention not fused");
    add(p->is_flash && p->execution.flash_kind != FR_FLASH_NATIVE, out, "%s",
        fr_name_of(&fr_flash_kind_names, p->execution.flash_kind));
    add(p->execution.is_loss_fused, out, "%s", "fused loss");
    snprintf(text, sizeof text, "%.3g", 100 * at->job->dropout);
    add(at->job->dropout > 0, out, "dropout %s %%", text);
    snprintf(text, sizeof text, "%lld", (long long)at->model->vocab);
    add(framework != NULL && framework->facts->is_vocab_padded, out,
        "vocabulary padded to %s", text);
    list_wire(at, out);
}

/* "framework nemo: bf16 gradients; reduction overlaps backward; ..." */
static void put_habits(const fr_report_setup *at, fr_document *out)
{
    char text[MOST_HABITS * 82 + 64];
    habits all;
    int n = 0;
    if (at->framework[0] != '\0')
        n = snprintf(text, sizeof text, "framework %s: ", at->framework);
    else if (fr_cluster_device(at->cluster, 0)->kind == FR_DEVICE_GPU)
        n = snprintf(text, sizeof text,
                     "Assumed, because no --framework was given: ");
    text[n] = '\0';
    list_habits(at, &all);
    fr_json_put_string(&out->data, "framework",
                       at->framework[0] != '\0' ? at->framework : NULL);
    fr_json_open_array(&out->data, "habits");
    for (int i = 0; i < all.n; i++) {
        fr_json_string(&out->data, all.at[i]);
        n += snprintf(text + n, sizeof text - (size_t)n, "%s%s",
                      i > 0 ? "; " : "", all.at[i]);
    }
    fr_json_end_array(&out->data);
    if (n > 0)
        fr_document_hanging(out, text, 2);
}

/* ---- the header ---------------------------------------------------------- */

void fr_report_put_model(const fr_report_setup *at, fr_document *out)
{
    const uint64_t all = fr_model_parameters(at->model);
    const uint64_t active = fr_model_active_parameters(at->model);
    char text[FR_FORMAT_MAX], used[FR_FORMAT_MAX];
    fr_document_printf(out, "model of %s parameters",
                       fr_format_u64(text, sizeof text, all));
    if (active < all)
        fr_document_printf(out, ", of which a token uses %s",
                           fr_format_u64(used, sizeof used, active));
    fr_document_puts(out, "\n");
    fr_json_open_object(&out->data, "model");
    fr_json_put_u64(&out->data, "parameters", all);
    fr_json_put_u64(&out->data, "active_parameters", active);
    fr_json_put_u64(&out->data, "trainable_parameters", all);
    fr_json_put_i64(&out->data, "layers", at->model->n_layers);
    fr_json_end_object(&out->data);
}

/* "bf16, fused kernels, jitter 1.5 % (network 0 %)". */
static void print_machine(const fr_report_setup *at, fr_document *out)
{
    const fr_cluster *cluster = at->cluster;
    const bool is_gpu = fr_cluster_device(cluster, 0)->kind == FR_DEVICE_GPU;
    const double compute_frac = cluster->jitter_compute_frac;
    const double network_frac = cluster->jitter_network_frac;
    fr_document_puts(out, fr_name_of(&fr_dtype_names, at->plan->precision));
    if (is_gpu)
        fr_document_printf(
            out, ", %s kernels",
            fr_name_of(&fr_kernel_set_names, at->plan->execution.kernels));
    if (fr_cluster_device(cluster, 0)->power_cap_w > 0)
        fr_document_printf(out, ", capped at %g W",
                           fr_cluster_device(cluster, 0)->power_cap_w);
    if (compute_frac > 0 || network_frac > 0)
        fr_document_printf(out, ", jitter %g %% (network %g %%)\n",
                           100 * compute_frac, 100 * network_frac);
    else
        fr_document_puts(out, ", no jitter\n");
}

static void print_line(const fr_report_setup *at, fr_document *out)
{
    const bool is_gpu =
        fr_cluster_device(at->cluster, 0)->kind == FR_DEVICE_GPU;
    fr_document_printf(out, "batch %lld, ", (long long)at->job->global_batch);
    if (at->model->kind != FR_MODEL_LAYERS)
        fr_document_printf(out, "sequence %lld, ", (long long)at->job->seq);
    fr_document_printf(out, "%lld of %lld %s, ",
                       (long long)fr_plan_world(at->plan),
                       (long long)places_of(at), is_gpu ? "GPUs" : "ranks");
    print_machine(at, out);
}

void fr_report_put_common_setup(const fr_report_setup *at, bool has_batch,
                                bool has_seq, fr_document *out)
{
    if (has_batch)
        fr_document_printf(out, "batch %lld, ",
                           (long long)at->job->global_batch);
    if (has_seq && at->model->kind != FR_MODEL_LAYERS)
        fr_document_printf(out, "sequence %lld, ", (long long)at->job->seq);
    print_machine(at, out);
}

void fr_report_power_cap_json(const fr_cluster *cluster, fr_json_writer *json)
{
    const fr_device_type *device = fr_cluster_device(cluster, 0);
    if (device->power_cap_w > 0)
        fr_json_put_double(json, "power_cap_w", device->power_cap_w);
}

void fr_report_put_setup(const fr_report_setup *at, fr_document *out)
{
    fr_json_writer *json = &out->data;
    print_line(at, out);
    fr_json_open_object(json, "setup");
    fr_json_put_i64(json, "global_batch", at->job->global_batch);
    fr_json_put_i64(json, "seq", at->job->seq);
    fr_json_put_i64(json, "ranks", fr_plan_world(at->plan));
    fr_json_put_i64(json, "slots", places_of(at));
    fr_json_put_string(json, "precision",
                       fr_name_of(&fr_dtype_names, at->plan->precision));
    fr_json_put_string(
        json, "kernels",
        fr_name_of(&fr_kernel_set_names, at->plan->execution.kernels));
    put_habits(at, out);
    fr_json_put_double(json, "jitter_compute",
                       at->cluster->jitter_compute_frac);
    fr_json_put_double(json, "jitter_network",
                       at->cluster->jitter_network_frac);
    fr_report_power_cap_json(at->cluster, json);
    fr_json_end_object(json);
}
