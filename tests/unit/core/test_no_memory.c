/*
 * test_no_memory.c: out of memory at the n-th allocation, for every n: each
 * reader ends with FR_NO_MEMORY, leaks nothing (the sanitizer run sees that)
 * and succeeds once nothing fails any more.  The linker puts the __wrap_
 * functions in place (Makefile); what libraries allocate inside themselves is
 * not seen, so the call into cJSON counts as one allocation.
 */
#include "core/base/arena.h"
#include "core/base/units.h"
#include "core/base/vec.h"
#include "core/document/json.h"
#include "core/document/xml.h"
#include "core/numbers/fit.h"
#include "core/shell/shell.h"
#include "interop/import/import.h"
#include "program/lower/step/lower.h"
#include "report/document/renderer.h"
#include "spec/catalog/catalog.h"
#include "spec/cluster/cluster_knobs.h"
#include "spec/cluster/cluster_write.h"
#include "tests/check.h"
#include "tests/contract/sim/sim_fixture.h"
#include "tuner/study/run_sweep.h"

#include <stdlib.h>
#include <string.h>

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t item_bytes);
void *__real_realloc(void *old, size_t n);
char *__real_strdup(const char *text);
void *__real_cJSON_ParseWithLength(const char *text, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t item_bytes);
void *__wrap_realloc(void *old, size_t n);
char *__wrap_strdup(const char *text);
void *__wrap_cJSON_ParseWithLength(const char *text, size_t n);

/* Allocations until the one that fails; negative: none does. */
static long countdown = -1;

static bool is_failing(void)
{
    return countdown >= 0 && countdown-- == 0;
}

void *__wrap_malloc(size_t n)
{
    return is_failing() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t item_bytes)
{
    return is_failing() ? NULL : __real_calloc(n, item_bytes);
}

void *__wrap_realloc(void *old, size_t n)
{
    return is_failing() ? NULL : __real_realloc(old, n);
}

char *__wrap_strdup(const char *text)
{
    return is_failing() ? NULL : __real_strdup(text);
}

void *__wrap_cJSON_ParseWithLength(const char *text, size_t n)
{
    return is_failing() ? NULL : __real_cJSON_ParseWithLength(text, n);
}

/* Runs `attempt` with the n-th allocation failing, for n = 0, 1 ... until it
 * gets through. */
static void check_every_failure(fr_status (*attempt)(fr_err *err),
                                long n_expected_least)
{
    for (long n = 0; n < 100000; n++) {
        fr_err err = {FR_OK, ""};
        fr_status status;
        bool has_failed;

        countdown = n;
        status = attempt(&err);
        has_failed = countdown < 0;
        countdown = -1;
        if (!has_failed) {
            CHECK_OK(status, &err);
            CHECK(n >= n_expected_least);
            return;
        }
        CHECK_FAILS(status, FR_NO_MEMORY, &err);
    }
    check_that(false, __FILE__, __LINE__, "it never got through");
}

static fr_status use_arena(fr_err *err)
{
    fr_arena arena;
    fr_status status = FR_OK;

    fr_arena_init(&arena);
    for (size_t i = 1; i < 60 && status == FR_OK; i++)
        if (!fr_arena_alloc(&arena, i * i * 37) ||
            !fr_arena_printf(&arena, "host %zu", i))
            status = fr_fail_no_memory(err);
    fr_arena_release(&arena);
    return status;
}

static fr_status use_vec(fr_err *err)
{
    fr_vec(double) vec = {0};
    fr_status status = FR_OK;

    for (size_t i = 0; i < 1000 && status == FR_OK; i++) {
        status = fr_vec_push(&vec, (double)i);
        CHECK(vec.n == i + (status == FR_OK));
    }
    fr_vec_release(&vec);
    return status == FR_OK ? FR_OK : fr_fail_no_memory(err);
}

static fr_status use_json(fr_err *err)
{
    static const char text[] =
        "{\"layers\": [1, 2.5, \"three\", [4, {\"five\": null}]],\n"
        " \"name\": \"gpt2\", \"more\": {\"a\": 1, \"b\": 2, \"c\": 3}}";
    fr_json *json;

    FR_TRY(fr_json_parse("t", text, strlen(text), &json, err));
    fr_json_destroy(json);
    return FR_OK;
}

static fr_status use_writer(fr_err *err)
{
    fr_buffer buffer;
    fr_json_writer w;
    fr_status status;

    fr_buffer_init(&buffer);
    fr_json_writer_init(&w, &buffer);
    fr_json_begin_array(&w);
    for (int i = 0; i < 500; i++)
        fr_json_double(&w, i * 2.385);
    fr_json_end_array(&w);
    status = fr_buffer_check(&buffer, err);
    fr_buffer_release(&buffer);
    return status;
}

static fr_status use_shell(fr_err *err)
{
    static const char text[] =
        "f() { local v=$1; echo $v; }; A=(1 'b c'); A+=($(f x) $Z); X=${A[1]/b/"
        "d}\ncat >t <<E\n$X\nE\nif [ $Q = 1 ]; then launch; fi\n"
        "read a b <<<'1 2'; eval \"launch ${A[*]} $((a+b)) {1..3} $(cat t)\"";
    const fr_shell_request request = {
        .path = "t", .text = text, .n_text = strlen(text)};
    fr_shell shell;
    fr_status status = fr_shell_run(&request, &shell, err);
    fr_shell_release(&shell);
    return status;
}

static fr_status use_xml(fr_err *err)
{
    static const char text[] = "<a><b x='1'/><c>text</c></a>";
    fr_xml *xml;

    FR_TRY(fr_xml_parse("t", text, strlen(text), &xml, err));
    fr_xml_destroy(xml);
    return FR_OK;
}

static fr_status use_fits(fr_err *err)
{
    double x[20], y[20];
    fr_line line;
    fr_curve *curve;

    for (int i = 0; i < 20; i++) {
        x[i] = 1 << i;
        y[i] = 3e-6 + x[i] * (i < 10 ? 1e-9 : 7e-10);
    }
    FR_TRY(fr_fit_alpha_beta(x, y, 20, &line, err));
    FR_TRY(fr_fit_isotonic(y, NULL, 20, err));
    FR_TRY(fr_curve_create(x, y, 20, &curve, err));
    fr_curve_destroy(curve);
    return FR_OK;
}

/* ---- a simulation ------------------------------------------------------- */

static sim_fixture simulated;

static fr_status use_simulator(fr_err *err)
{
    const sim_fixture *f = &simulated;
    fr_placement placement = {.n_ranks = fr_plan_world(&f->plan),
                              .node_of_rank = f->node_of_rank};
    fr_timeline timeline;
    fr_prediction prediction;
    fr_timeline_init(&timeline);
    fr_status status = fr_simulate(
        f->program, f->costs, &f->cluster, &placement,
        &(fr_simulate_options){.timeline = &timeline}, &prediction, err);
    fr_timeline_release(&timeline);
    return status;
}

static void test_simulator(void)
{
    static const char more[] =
        "  <fabric kind=\"fat-tree\">\n"
        "    <level down=\"2\" oversubscription=\"2.385\"/>\n"
        "    <level down=\"2\"/>\n"
        "  </fabric>\n"
        "  <jitter compute=\"0.01\"/>\n";
    char xml[2048];
    sim_fixture_init(&simulated);
    snprintf(xml, sizeof xml, sim_gpu_xml, 4, "200Gb/s", 4, more);
    simulated.model.n_layers = 2;
    simulated.plan.dp = 4;
    simulated.plan.tp = 2;
    simulated.plan.pp = 2;
    simulated.job.global_batch = 8;
    if (sim_fixture_cluster(&simulated, "gpus.xml", xml) &&
        sim_fixture_lower(&simulated, 4))
        check_every_failure(use_simulator, 100);
    sim_fixture_release(&simulated);
}

/* The result is written, too. */
static fr_status import_one(const char *kind, const char *text, fr_err *err)
{
    fr_import_options options = {.gpu = "v100-sxm2-32g",
                                 .node_type = "dgx-1-v100"};
    fr_import import;
    fr_buffer out;
    fr_status status = fr_import_parse(fr_import_kind_find(kind), "x.txt", text,
                                       strlen(text), &options, &import, err);
    if (status != FR_OK)
        return status;
    fr_buffer_init(&out);
    status = import.is_profile
                 ? fr_profile_format(&import.profile, &out, err)
                 : fr_cluster_format(&import.cluster, NULL, &out, err);
    fr_buffer_release(&out);
    fr_import_release(&import);
    return status;
}

static fr_status use_matrix(fr_err *err)
{
    return import_one("topo-m",
                      "\tGPU0\tGPU1\tmlx5_0\tCPU Affinity\n"
                      "GPU0\tX\tNV2\tPIX\t0-3\nGPU1\tNV2\tX\tSYS\t0-3\n"
                      "mlx5_0\tPIX\tSYS\tX\n",
                      err);
}

static fr_status use_slurm(fr_err *err)
{
    return import_one("slurm",
                      "SwitchName=a Nodes=x[0-2]\nSwitchName=b Nodes=y[1-2]\n"
                      "SwitchName=c Switches=a,b\n",
                      err);
}

static fr_status use_nccl_tests(fr_err *err)
{
    return import_one(
        "nccl-tests",
        "# Collective test starting: all_reduce_perf\n"
        "#  Rank  0 Group  0 Pid 1 on a device 0 [0x8d] NVIDIA H200\n"
        "#  Rank  1 Group  0 Pid 1 on b device 1 [0x8e] NVIDIA H200\n"
        "# size count type redop root time algbw busbw #wrong time algbw "
        "busbw #wrong\n8 2 float sum -1 5.5 1 1 0 6.5 1 1 0\n",
        err);
}

static fr_status use_simgrid(fr_err *err)
{
    return import_one(
        "simgrid",
        "<platform version=\"4.1\"><zone id=\"z\" routing=\"Full\"><host "
        "id=\"a\" speed=\"1Gf\"/><host id=\"b\" speed=\"1Gf\"/><link "
        "id=\"l\" bandwidth=\"1GBps\" latency=\"1us\"/><route src=\"a\" "
        "dst=\"b\"><link_ctn id=\"l\"/></route></zone></platform>",
        err);
}

static fr_status use_hwloc(fr_err *err)
{
    return import_one(
        "hwloc",
        "<topology version=\"2.0\"><object type=\"Machine\"><object "
        "type=\"Core\"/><object type=\"NUMANode\" local_memory=\"4096\"/>"
        "<object type=\"PCIDev\" gp_index=\"1\" pci_type=\"0302 "
        "[10de:1db5]\"/><object type=\"PCIDev\" gp_index=\"2\" "
        "pci_type=\"0302 [10de:1db5]\"/></object><distances2hetero "
        "name=\"NVLinkBandwidth\"><indexes>PCIDev:1 PCIDev:2</indexes>"
        "<u64values>0 50000 50000 0</u64values></distances2hetero></topology>",
        err);
}

static fr_status use_nccl(fr_err *err)
{
    return import_one(
        "nccl",
        "<system version=\"1\"><cpu><pci busid=\"1\" class=\"0x0302\"><gpu "
        "dev=\"0\" rank=\"0\"><nvlink target=\"2\" count=\"2\" "
        "tclass=\"0x0302\"/></gpu></pci><pci busid=\"2\" class=\"0x0302\">"
        "<gpu dev=\"1\" rank=\"1\"/></pci></cpu></system>",
        err);
}

static void test_imports(void)
{
    check_every_failure(use_matrix, 4);
    check_every_failure(use_slurm, 6);
    check_every_failure(use_nccl_tests, 4);
    check_every_failure(use_simgrid, 8);
    check_every_failure(use_hwloc, 6);
    check_every_failure(use_nccl, 6);
}

/* Two nodes of a sweep, on clusters that were copied and changed. */
static fr_status run_sweep(fr_cluster *clusters, fr_cost_model **costs,
                           fr_sweep *sweep, fr_err *err)
{
    const fr_cluster_knob *nodes =
        fr_cluster_knob_at(fr_cluster_knob_find("nodes"));
    fr_sweep_case cases[2] = {0};
    fr_sweep_options options = {.is_fixed = true, .n_threads = 1};
    FR_TRY(fr_catalog_cluster("hgx-a100-4", 1, &clusters[0], err));
    FR_TRY(fr_cluster_copy(&clusters[0], &clusters[1], err));
    FR_TRY(fr_cluster_knob_turn(NULL, nodes, &clusters[1], "2", err));
    FR_TRY(fr_sweep_add_key(sweep, "nodes", err));
    FR_TRY(fr_sweep_add_value(sweep, "1", err));
    FR_TRY(fr_sweep_add_value(sweep, "2", err));
    FR_TRY(fr_sweep_make_points(sweep, 2, err));
    sweep->i_scale_key = 0;
    for (int i = 0; i < 2; i++) {
        FR_TRY(fr_cost_model_create(NULL, &clusters[i], &costs[i], err));
        cases[i].model = &simulated.model;
        cases[i].cluster = &clusters[i];
        cases[i].costs = costs[i];
        cases[i].job = simulated.job;
        fr_plan_init(&cases[i].plan);
    }
    FR_TRY(fr_sweep_run(cases, &options, sweep, err));
    CHECK_INT(sweep->n_feasible, 2);
    return FR_OK;
}

static fr_status use_sweep(fr_err *err)
{
    fr_cluster clusters[2] = {0};
    fr_cost_model *costs[2] = {NULL, NULL};
    fr_sweep sweep;
    fr_sweep_init(&sweep);
    fr_status status = run_sweep(clusters, costs, &sweep, err);
    for (int i = 0; i < 2; i++) {
        fr_cost_model_destroy(costs[i]);
        fr_cluster_release(&clusters[i]);
    }
    fr_sweep_release(&sweep);
    return status;
}

static void test_sweep(void)
{
    sim_fixture_init(&simulated);
    simulated.model.n_layers = 1;
    simulated.job.global_batch = 8;
    check_every_failure(use_sweep, 50);
    sim_fixture_release(&simulated);
}

/* Experts under ZeRO 3, and a backward in two parts with offload. */
static fr_status use_lower(fr_err *err)
{
    for (int i = 0; i < 2; i++) {
        fr_model model;
        fr_job job;
        fr_plan plan;
        fr_program *program = NULL;
        fr_model_init(&model);
        model.n_layers = 2;
        model.hidden = 32;
        model.n_heads = model.n_kv_heads = 4;
        model.head_dim = 8;
        model.ffn_hidden = 64;
        model.vocab = 64;
        model.is_gated_mlp = model.is_rms_norm = model.is_rope = true;
        model.activation = FR_ACTIVATION_SILU;
        model.n_experts = i == 0 ? 4 : 0;
        model.n_experts_per_token = 2;
        model.expert_ffn_hidden = 32;
        fr_job_init(&job);
        job.global_batch = 4;
        job.seq = 8;
        fr_plan_init(&plan);
        plan.dp = 2;
        plan.zero_stage = i == 0 ? 3 : 1;
        plan.pp = i == 0 ? 1 : 2;
        plan.schedule = i == 0 ? FR_SCHEDULE_1F1B : FR_SCHEDULE_ZB_H1;
        plan.activation_offload_frac = i == 0 ? 0 : 0.5;
        FR_TRY(fr_lower(&model, &job, &plan, NULL, &program, err));
        fr_program_destroy(program);
    }
    return FR_OK;
}

static void test_lower(void)
{
    check_every_failure(use_lower, 50);
}

static void test_arena(void)
{
    check_every_failure(use_arena, 10);
}

static void test_vec(void)
{
    check_every_failure(use_vec, 10);
}

static void test_json(void)
{
    check_every_failure(use_json, 5);
}

static void test_writer(void)
{
    check_every_failure(use_writer, 4);
}

static void test_shell(void)
{
    check_every_failure(use_shell, 20);
}

static void test_xml(void)
{
    check_every_failure(use_xml, 2);
}

static void test_fits(void)
{
    check_every_failure(use_fits, 5);
}

static fr_status use_document(const fr_renderer *renderer, fr_err *err)
{
    static const fr_column columns[] = {{"part", "name"}, {">time", "s"}};
    fr_document document;
    fr_buffer text;
    fr_document_init(&document, "forerun.test/1");
    fr_document_heading(&document, "title %d", 7);
    fr_json_put_double(&document.data, "step_s", 2.385);
    fr_document_printf(&document, "one line\n");
    fr_table *table = fr_document_records(&document, "parts", columns, 2);
    table->is_main = true;
    for (int i = 0; i < 20; i++) {
        fr_table_cell(table, "part %d", i);
        fr_table_s(table, 0.25 * i);
    }
    fr_document_lanes(&document, calloc(1, sizeof(fr_lanes)));
    fr_document_verbatim(&document, "a file\n");
    fr_document_hanging(&document, "a line", 2);
    fr_buffer_init(&text);
    const fr_status status =
        fr_document_render(&document, renderer, NULL, &text, err);
    fr_buffer_release(&text);
    fr_document_release(&document);
    return status;
}

/* ---- documents: each renderer ------------------------------------------- */

static fr_status use_text(fr_err *err)
{
    return use_document(&fr_render_text, err);
}

static fr_status use_data(fr_err *err)
{
    return use_document(&fr_render_json, err);
}

static fr_status use_csv(fr_err *err)
{
    return use_document(&fr_render_csv, err);
}

static fr_status use_markdown(fr_err *err)
{
    return use_document(&fr_render_markdown, err);
}

static void test_documents(void)
{
    check_every_failure(use_text, 10);
    check_every_failure(use_data, 10);
    check_every_failure(use_csv, 10);
    check_every_failure(use_markdown, 10);
}

CHECK_MAIN({"arena", test_arena}, {"vec", test_vec}, {"json", test_json},
           {"writer", test_writer}, {"imports", test_imports},
           {"xml", test_xml}, {"shell", test_shell}, {"fits", test_fits},
           {"simulator", test_simulator}, {"sweep", test_sweep},
           {"lower", test_lower}, {"documents", test_documents})
