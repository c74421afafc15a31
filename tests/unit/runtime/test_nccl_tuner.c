/*
 * The tuner as NCCL meets it: its tables are looked up in the running program
 * by name, and asked with tables of made-up costs.  And the way there: a
 * plan's choice on fake devices, what is counted and estimated.
 */
#include "runtime/gpu_comm/nccl_tuner.h"
#include "tests/check.h"
#include "tests/unit/runtime/gpu_show.h"

#include <dlfcn.h>

enum { N_ALGORITHMS = 7, N_PROTOCOLS = 3 };
enum { TREE, RING, COLLNET_DIRECT, COLLNET_CHAIN, NVLS, NVLS_TREE, PAT };
enum { LL, LL128, SIMPLE };
enum { ALL_GATHER = 2, REDUCE_SCATTER = 3, ALL_REDUCE = 4 };

/* As NCCL 2.28 declares its versions, member by member. */
typedef struct table {
    const char *name;
    void *init, *ask, *end;
} table;

typedef int (*init_v4)(size_t, size_t, void *, void **);
typedef int (*init_v5)(void **, uint64_t, size_t, size_t, void *, void *,
                       void *);
typedef int (*ask_v3)(void *, int, size_t, int, float **, int, int, int *);
typedef int (*ask_v5)(void *, int, size_t, int, float **, int, int, int, int *);
typedef int (*end_fn)(void *);

typedef float costs[N_ALGORITHMS][N_PROTOCOLS];

static const costs plain = {
    {11.5F, 13.25F, 19.5F}, {31.5F, 17.75F, 23.5F}, {-1, -1, -1}, {-1, -1, -1},
    {-1, -1, 9.125F},       {-1, -1, -1},           {-1, -1, -1}};

static const table *find(int version)
{
    char name[32];

    (void)snprintf(name, sizeof name, "ncclTunerPlugin_v%d", version);
    return dlsym(dlopen(NULL, RTLD_NOW | RTLD_LOCAL), name);
}

/* One question to one version; the context is what init() made of `choices`. */
static int ask(int version, fr_gpu_choices *choices, int function,
               size_t n_bytes, costs out)
{
    const table *tuner = find(version);
    void *context = (void *)1;
    int n_channels = 0, code = 1;

    memcpy(out, plain, sizeof plain);
    if (tuner == NULL) {
        check_that(false, __FILE__, __LINE__, "there is no version %d",
                   version);
        return -1;
    }
    CHECK_STR(tuner->name, "forerun");
    fr_nccl_tuner_use(choices);
    if (version == 5) {
        init_v5 init;
        memcpy(&init, &tuner->init, sizeof init);
        CHECK_INT(init(&context, 77, 8, 1, NULL, NULL, NULL), 0);
    } else {
        init_v4 init;
        memcpy(&init, &tuner->init, sizeof init);
        CHECK_INT(init(8, 1, NULL, &context), 0);
    }
    fr_nccl_tuner_use(NULL); /* it keeps what it was made with */
    if (version == 3) {
        ask_v3 fn;
        memcpy(&fn, &tuner->ask, sizeof fn);
        code = fn(context, function, n_bytes, 1, (float **)(void *)out,
                  N_ALGORITHMS, N_PROTOCOLS, &n_channels);
    } else {
        ask_v5 fn;
        memcpy(&fn, &tuner->ask, sizeof fn);
        code = fn(context, function, n_bytes, 1, (float **)(void *)out,
                  N_ALGORITHMS, N_PROTOCOLS, 0, &n_channels);
    }
    CHECK_INT(code, 0);
    end_fn end;
    memcpy(&end, &tuner->end, sizeof end);
    CHECK_INT(end(context), 0);
    return n_channels;
}

/* NCCL takes the cheapest algorithm that can be done. */
static int cheapest(costs table_of)
{
    int best = -1;

    for (int i = 0; i < N_ALGORITHMS * N_PROTOCOLS; i++) {
        float cost = table_of[i / N_PROTOCOLS][i % N_PROTOCOLS];
        if (cost >= 0 &&
            (best < 0 ||
             cost < table_of[best / N_PROTOCOLS][best % N_PROTOCOLS]))
            best = i;
    }
    return best;
}

static void test_algorithm(void)
{
    for (int version = 3; version <= 5; version++) {
        fr_gpu_choices choices = {1,
                                  {{.op = FR_OP_ALL_REDUCE,
                                    .algorithm = FR_COLLECTIVE_RING,
                                    .max_bytes = UINT64_MAX}}};
        costs got;
        CHECK_INT(ask(version, &choices, ALL_REDUCE, 1 << 20, got), 0);
        /* The protocol stays NCCL's choice, and what it costs. */
        CHECK_INT(cheapest(got), RING * N_PROTOCOLS + LL128);
        CHECK(memcmp(got[RING], plain[RING], sizeof got[RING]) == 0);
        CHECK(got[TREE][LL] > got[RING][LL]);
        CHECK(got[COLLNET_DIRECT][SIMPLE] < 0 && got[PAT][LL] < 0);
        CHECK_INT(atomic_load(&choices.at[0].n_asked), 1);
        CHECK_INT(atomic_load(&choices.at[0].n_granted), 1);
        /* Another operation is none of its business. */
        CHECK_INT(ask(version, &choices, ALL_GATHER, 1 << 20, got), 0);
        CHECK(memcmp(got, plain, sizeof plain) == 0);
        CHECK_INT(atomic_load(&choices.at[0].n_asked), 1);
    }
}

static void test_protocol_and_channels(void)
{
    fr_gpu_choices choices = {2,
                              {{.op = FR_OP_ALL_REDUCE,
                                .algorithm = FR_COLLECTIVE_DOUBLE_TREE,
                                .protocol = FR_PROTOCOL_SIMPLE,
                                .n_channels = 6,
                                .max_bytes = 4095},
                               {.op = FR_OP_ALL_REDUCE,
                                .algorithm = FR_COLLECTIVE_NVLS,
                                .min_bytes = 4096,
                                .max_bytes = UINT64_MAX}}};
    costs got;

    CHECK_INT(ask(5, &choices, ALL_REDUCE, 4095, got), 6);
    CHECK_INT(cheapest(got), TREE * N_PROTOCOLS + SIMPLE);
    CHECK_INT(ask(5, &choices, ALL_REDUCE, 4096, got), 0);
    CHECK_INT(cheapest(got), NVLS * N_PROTOCOLS + SIMPLE);
}

/* A protocol of any algorithm, and channels of whatever is taken. */
static void test_any_algorithm(void)
{
    fr_gpu_choices choices = {1,
                              {{.op = FR_OP_ALL_REDUCE,
                                .protocol = FR_PROTOCOL_LL128,
                                .max_bytes = UINT64_MAX}}};
    costs got;

    CHECK_INT(ask(5, &choices, ALL_REDUCE, 1 << 20, got), 0);
    CHECK_INT(cheapest(got), TREE * N_PROTOCOLS + LL128);
    CHECK(got[RING][LL128] == plain[RING][LL128]);
    CHECK(got[NVLS][SIMPLE] > got[RING][LL128]);
    choices.at[0].protocol = FR_PROTOCOL_AUTO;
    choices.at[0].n_channels = 9;
    CHECK_INT(ask(5, &choices, ALL_REDUCE, 1 << 20, got), 9);
    CHECK(memcmp(got, plain, sizeof plain) == 0);
    CHECK_INT(atomic_load(&choices.at[0].n_granted), 2);
}

/* NCCL is not asked for an algorithm that it lacks. */
static void test_refused(void)
{
    fr_gpu_choices choices = {2,
                              {{.op = FR_OP_REDUCE_SCATTER,
                                .algorithm = FR_COLLECTIVE_NVLS,
                                .protocol = FR_PROTOCOL_LL,
                                .n_channels = 6,
                                .max_bytes = UINT64_MAX},
                               {.op = FR_OP_ALL_GATHER,
                                .algorithm = FR_COLLECTIVE_TREE,
                                .max_bytes = UINT64_MAX}}};
    costs got;

    for (int i = 0; i < 2; i++) {
        int function = i == 0 ? REDUCE_SCATTER : ALL_GATHER;
        CHECK_INT(ask(5, &choices, function, 1 << 20, got), 0);
        CHECK(memcmp(got, plain, sizeof plain) == 0);
        CHECK_INT(atomic_load(&choices.at[i].n_asked), 1);
        CHECK_INT(atomic_load(&choices.at[i].n_granted), 0);
    }
    CHECK_INT(ask(5, NULL, ALL_REDUCE, 1 << 20, got), 0);
    CHECK(memcmp(got, plain, sizeof plain) == 0);
}

/* Plans of fake devices, whose library can do rings alone. */
static void check_plan(fr_collective_kind kind, fr_protocol protocol, int zero,
                       int64_t n_expected)
{
    bool is_told = kind != FR_COLLECTIVE_AUTO || protocol != FR_PROTOCOL_AUTO;
    gpu_show show;
    gpu_fake fake;
    int64_t n_wanted = 0;

    gpu_show_init(&show);
    gpu_fake_init(&fake, 4);
    show.fake = &fake;
    show.is_estimated = true;
    show.plan.dp = show.plan.tp = 2;
    show.plan.micro_batch = 2;
    show.plan.zero_stage = zero;
    show.plan.collective = kind;
    show.plan.protocol = protocol;
    show.plan.n_channels = protocol == FR_PROTOCOL_LL128 ? 7 : 0;
    if (gpu_show_perform_well(&show)) {
        CHECK(show.result.n_collectives > 0);
        CHECK_INT(atomic_load(&fake.n_tuned), is_told ? 4 : 0);
    }
    for (size_t i = 0; i < show.result.n_collectives; i++) {
        const fr_collective_note *at = &show.result.collectives[i];
        CHECK_INT(at->n_group, at->axis == FR_AXIS_WORLD ? 4 : 2);
        CHECK_NEAR(at->estimate_s, 7.3e-6 + (double)at->n_bytes / 2.7e9, 1e-9);
        bool is_here = at->axis == FR_AXIS_DP && is_told;
        CHECK_INT(at->algorithm, is_here ? kind : FR_COLLECTIVE_AUTO);
        CHECK_INT(at->protocol, is_here ? protocol : FR_PROTOCOL_AUTO);
        CHECK_INT(at->n_channels,
                  is_here && protocol == FR_PROTOCOL_LL128 ? 7 : 0);
        CHECK((at->n_asked > 0) == is_here);
        CHECK_INT(at->n_granted,
                  kind != FR_COLLECTIVE_DOUBLE_TREE ? at->n_asked : 0);
        n_wanted += is_here;
    }
    CHECK((n_wanted > 0) == (n_expected > 0));
    gpu_show_release(&show);
    gpu_fake_release(&fake);
}

static void test_run(void)
{
    check_plan(FR_COLLECTIVE_AUTO, FR_PROTOCOL_AUTO, 0, 0);
    check_plan(FR_COLLECTIVE_RING, FR_PROTOCOL_AUTO, 0, 1);
    check_plan(FR_COLLECTIVE_RING, FR_PROTOCOL_LL128, 1, 1);
    check_plan(FR_COLLECTIVE_DOUBLE_TREE, FR_PROTOCOL_AUTO, 0, 1);
    check_plan(FR_COLLECTIVE_AUTO, FR_PROTOCOL_LL128, 1, 1);
    check_plan(FR_COLLECTIVE_AUTO, FR_PROTOCOL_SIMPLE, 0, 1);
}

CHECK_MAIN({"algorithm", test_algorithm},
           {"protocol_and_channels", test_protocol_and_channels},
           {"any_algorithm", test_any_algorithm}, {"refused", test_refused},
           {"run", test_run})
