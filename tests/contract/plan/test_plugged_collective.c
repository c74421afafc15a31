/*
 * test_plugged_collective.c: a collective algorithm is one struct and one row.
 * The table that is linked here has a chain, which adds from member to member
 * and hands the sum back the same way, as one row more, and nothing else knows
 * of it.
 */
#include "api/request/options.h"
#include "cost_models/link/gpu_comm.h"
#include "plan/collective/collective.h"
#include "tests/contract/plan/plugged_fixture.h"

static bool fits(fr_op op, int64_t n_group)
{
    return n_group >= 1 && op == FR_OP_ALL_REDUCE;
}

static fr_status emit(fr_op op, int64_t n_group, uint64_t n,
                      fr_transfer_list *list, fr_err *err)
{
    (void)op;
    for (int64_t i = 0; i < 2 * (n_group - 1); i++) {
        bool is_up = i < n_group - 1;
        int64_t from = is_up ? i : 2 * (n_group - 1) - i;
        fr_transfer transfer = {.phase = list->n_phases++,
                                .src = (uint32_t)from,
                                .dst = (uint32_t)(is_up ? from + 1 : from - 1),
                                .n = n,
                                .is_reduce = is_up};
        FR_TRY(fr_transfer_list_add(list, transfer, err));
    }
    return FR_OK;
}

static double idle_s(fr_op op, int64_t n_group, uint64_t n,
                     uint64_t element_bytes, const fr_link_cost *link)
{
    double n_bytes = (double)n * (double)element_bytes;
    double steps = (double)(n_group - 1);
    (void)op;
    return steps * (2 * link->latency_s + 2 * n_bytes * link->s_per_byte +
                    n_bytes * link->reduce_s_per_byte);
}

static const fr_collective chain = {
    .name = "chain",
    .summary = "from member to member, and back",
    .is_whole = true,
    .fits = fits,
    .emit = emit,
    .idle_s = idle_s,
};

/* The table of collective_table.c and its row. */
#define ENTRY(name, entry) &fr_collective_##entry,
#define PLUGGED &chain
const fr_collective *const fr_collectives[] = {NULL,
                                               FR_COLLECTIVES(ENTRY) PLUGGED};
const int fr_n_collectives = FR_COLLECTIVE_N + 1;

static const fr_collective_kind plugged = (fr_collective_kind)FR_COLLECTIVE_N;

static void test_names(void)
{
    char text[256];
    fr_plan plan;
    fr_plan_init(&plan);
    plan.collective = plugged;
    CHECK_STR(fr_name_of(&fr_collective_names, plugged), "chain");
    CHECK_INT(fr_name_find(&fr_collective_names, "chain"), plugged);
    CHECK_HAS(fr_plan_describe(&plan, text, sizeof text), "=chain");
}

/* The command line offers it beside the others, but none that lowering alone
 * takes. */
static void test_offered(void)
{
    const fr_option_row row = fr_option_get(FR_OPT_COLLECTIVE);
    const char *name;
    bool has_plugged = false, has_internal = false;
    for (int i = 0; (name = fr_option_choice(&row, i)) != NULL; i++) {
        has_plugged |= strcmp(name, "chain") == 0;
        has_internal |= strcmp(name, fr_collective_shift.name) == 0;
    }
    CHECK(has_plugged);
    CHECK(!has_internal);
}

/* A plan that names it gets it for its operations, and for the others an
 * algorithm that has them. */
static void test_chosen(void)
{
    CHECK_INT(
        fr_collective_choose(plugged, FR_OP_ALL_REDUCE, 5, 1 << 20, false),
        plugged);
    CHECK_INT(
        fr_collective_choose(plugged, FR_OP_ALL_GATHER, 5, 1 << 20, false),
        FR_COLLECTIVE_RING);
    CHECK_INT(fr_collective_nccl(plugged), FR_NCCL_NO_ALGORITHM);
}

/* The runtime on CPUs carries out any list of transfers; NCCL has no chain. */
static void test_legal(void)
{
    sim_fixture f;
    fr_err err;
    sim_fixture_init(&f);
    f.plan.dp = 4;
    f.plan.collective = plugged;
    CHECK_OK(fr_plan_check_executable(&f.plan, &f.model, &f.job, &err), &err);
    f.plan.is_flash = true;
    CHECK_FAILS(fr_plan_check_executable_gpu(&f.plan, &f.model, &f.job, &err),
                FR_INPUT, &err);
    CHECK_HAS(err.text, "collectives that NCCL has not");
}

/* On CPUs a step with it takes what its closed form says: longer than with a
 * ring. */
static void test_on_cpus(void)
{
    double step_s[2] = {0, 0};
    for (int i = 0; i < 2; i++) {
        char xml[2048];
        sim_fixture f;
        fr_prediction prediction;
        fr_err err;
        sim_fixture_init(&f);
        snprintf(xml, sizeof xml, sim_cpu_xml, 4, 8, "");
        f.plan.dp = 8;
        f.plan.collective = i == 0 ? FR_COLLECTIVE_RING : plugged;
        if (sim_fixture_cluster(&f, "plugged.xml", xml) &&
            sim_fixture_lower(&f, 1) &&
            CHECK_OK(fr_program_check(f.program, NULL, &err), &err) &&
            sim_fixture_predict(&f, FR_REPLAY_AUTO, false, &prediction))
            step_s[i] = prediction.step_s;
        sim_fixture_release(&f);
    }
    CHECK(step_s[0] > 0 && step_s[1] > 1.1 * step_s[0]);
}

/* On GPUs collectives are NCCL's: what its row gives no algorithm of NCCL is
 * refused with those that there are. */
static void test_on_gpus(void)
{
    sim_fixture f;
    if (plugged_init(&f, 2)) {
        fr_err err = {0};
        CHECK_INT(fr_gpu_comm_check(fr_cost_gpu_comm(f.costs), plugged, &err),
                  FR_INPUT);
        CHECK_HAS(err.text, "have no chain: NCCL does not do it");
        CHECK_HAS(err.text, "ring");
    }
    sim_fixture_release(&f);
}

CHECK_MAIN({"names", test_names}, {"offered", test_offered},
           {"chosen", test_chosen}, {"legal", test_legal},
           {"on_cpus", test_on_cpus}, {"on_gpus", test_on_gpus})
