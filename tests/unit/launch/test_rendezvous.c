/*
 * GPU ranks find each other: variables of launchers, node lists, and the
 * transport over sockets with ranks that come late, leave or die.
 */
#include "runtime/comm/transport_tcp.h"
#include "runtime/launch/rendezvous.h"
#include "tests/check.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static const char *const variables[] = {"RANK",
                                        "WORLD_SIZE",
                                        "LOCAL_RANK",
                                        "MASTER_ADDR",
                                        "MASTER_PORT",
                                        "TORCHELASTIC_USE_AGENT_STORE",
                                        "SLURM_PROCID",
                                        "SLURM_STEP_NUM_TASKS",
                                        "SLURM_STEP_ID",
                                        "SLURM_STEP_NODELIST",
                                        "SLURM_JOB_ID",
                                        "SLURM_JOB_NODELIST",
                                        "PMI_RANK",
                                        "PMI_SIZE",
                                        "OMPI_COMM_WORLD_RANK",
                                        "OMPI_COMM_WORLD_SIZE",
                                        "OMPI_COMM_WORLD_LOCAL_SIZE",
                                        "FORERUN_BOOTSTRAP"};

/* "A=1 B=2": exactly these are set. */
static void set_environment(const char *assignments)
{
    char text[512], *at = text;

    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        unsetenv(variables[i]);
    (void)snprintf(text, sizeof text, "%s", assignments);
    for (char *word; (word = strsep(&at, " ")) != NULL;) {
        char *value = strchr(word, '=');
        if (value == NULL)
            continue;
        *value = '\0';
        setenv(word, value + 1, 1);
    }
}

typedef struct expected {
    const char *environment;
    fr_bootstrap by;
    const char *launcher, *address;
    int64_t rank, world;
    int port;
} expected;

static void test_environment(void)
{
    static const expected all[] = {
        {"", FR_BOOTSTRAP_ALONE, "none", "", 0, 1, 0},
        {"RANK=3 WORLD_SIZE=8 MASTER_ADDR=n7 MASTER_PORT=1234",
         FR_BOOTSTRAP_TCP, "torchrun", "n7", 3, 8, 1234},
        {"RANK=3 WORLD_SIZE=8 MASTER_ADDR=n7", FR_BOOTSTRAP_TCP, "torchrun",
         "n7", 3, 8, 29500},
        {"RANK=0 WORLD_SIZE=2 MASTER_ADDR=n7 MASTER_PORT=900 "
         "TORCHELASTIC_USE_AGENT_STORE=True",
         FR_BOOTSTRAP_TCP, "torchrun", "n7", 0, 2, 901},
        {"RANK=9 WORLD_SIZE=8 MASTER_ADDR=n7", FR_BOOTSTRAP_ALONE, "none", "",
         0, 1, 0},
        {"SLURM_STEP_ID=0 SLURM_PROCID=5 SLURM_STEP_NUM_TASKS=16 "
         "SLURM_JOB_NODELIST=gpu[07-09,12] SLURM_JOB_ID=123456",
         FR_BOOTSTRAP_TCP, "srun", "gpu07", 5, 16, 23456},
        {"SLURM_STEP_ID=0 SLURM_PROCID=5 SLURM_STEP_NUM_TASKS=16 "
         "SLURM_STEP_NODELIST=b2,b3 SLURM_JOB_NODELIST=a1 MASTER_PORT=7",
         FR_BOOTSTRAP_TCP, "srun", "b2", 5, 16, 7},
        {"OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 "
         "OMPI_COMM_WORLD_LOCAL_SIZE=2 FORERUN_BOOTSTRAP=tcp",
         FR_BOOTSTRAP_TCP, "mpirun", "127.0.0.1", 1, 2, 29500},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const expected *e = &all[i];
        fr_rendezvous found = {0};
        fr_err err = {0};
        set_environment(e->environment);
        if (!CHECK_OK(fr_rendezvous_find(&found, &err), &err))
            continue;
        CHECK_INT(found.by, e->by);
        CHECK_STR(found.launcher, e->launcher);
        CHECK_STR(found.address, e->address);
        CHECK_INT(found.rank, e->rank);
        CHECK_INT(found.world, e->world);
        CHECK_INT(found.port, e->port);
    }
    set_environment("OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2");
    fr_rendezvous mpi = {0};
    fr_err err = {0};
    if (fr_transport_mpi_is_available() &&
        CHECK_OK(fr_rendezvous_find(&mpi, &err), &err))
        CHECK_INT(mpi.by, FR_BOOTSTRAP_MPI);
}

static void test_bad_environment(void)
{
    fr_rendezvous found = {0};
    fr_transport *transport = NULL;
    fr_err err = {0};

    set_environment("RANK=0 WORLD_SIZE=2 MASTER_ADDR=x MASTER_PORT=ssh");
    CHECK_FAILS(fr_rendezvous_find(&found, &err), FR_INPUT, &err);
    CHECK_HAS(err.text, "MASTER_PORT");
    set_environment("RANK=0 WORLD_SIZE=2 MASTER_ADDR=x FORERUN_BOOTSTRAP=ucx");
    CHECK_FAILS(fr_rendezvous_find(&found, &err), FR_INPUT, &err);
    set_environment("OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=4 "
                    "OMPI_COMM_WORLD_LOCAL_SIZE=2 FORERUN_BOOTSTRAP=tcp");
    CHECK_FAILS(fr_rendezvous_find(&found, &err), FR_INPUT, &err);
    CHECK_HAS(err.text, "MASTER_ADDR");
    set_environment("RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1");
    if (CHECK_OK(fr_rendezvous_find(&found, &err), &err))
        CHECK_FAILS(fr_rendezvous_join(&found, 4, 1, &transport, &err),
                    FR_INPUT, &err);
    CHECK_HAS(err.text, "torchrun started 2");
}

static void test_node_lists(void)
{
    static const char *const lists[][2] = {{"alone", "alone"},
                                           {"a,b", "a"},
                                           {"n[3]", "n3"},
                                           {"n[001-004]", "n001"},
                                           {"gpu[07,12],login", "gpu07"},
                                           {"r[1-2]n[30-31].x", "r1n30.x"}};
    char host[64], small[4];

    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        if (CHECK(fr_rendezvous_first_host(lists[i][0], host, sizeof host)))
            CHECK_STR(host, lists[i][1]);
    CHECK(!fr_rendezvous_first_host("", host, sizeof host));
    CHECK(!fr_rendezvous_first_host("gpu07", small, sizeof small));
}

/* ---- sockets ------------------------------------------------------------- */

enum { WORLD = 5 };

typedef struct caller {
    pthread_t thread;
    int64_t rank;
    int port;
    bool is_killed;     /* closes its connection without a word */
    const char *reason; /* announced before that */
    fr_status status;
    fr_err err;
    double took_s;
} caller;

static int free_port(void)
{
    return 21000 + (int)(getpid() % 20000);
}

static void talk(caller *c, fr_transport *transport)
{
    int64_t world = transport->world, mine[3] = {c->rank, 17 * c->rank, 5};
    int64_t all[WORLD][3];
    unsigned char *bytes = NULL, payload[70000];
    uint64_t first[WORLD + 1] = {0};

    c->status =
        fr_transport_all_gather(transport, mine, sizeof mine, all, &c->err);
    for (int64_t i = 0; c->status == FR_OK && i < world; i++)
        CHECK(all[i][0] == i && all[i][1] == 17 * i);
    memset(payload, (int)c->rank + 1, sizeof payload);
    uint64_t n = sizeof payload - 1000 * (uint64_t)c->rank;
    if (c->status == FR_OK)
        c->status =
            fr_transport_gather(transport, payload, n, &bytes, first, &c->err);
    for (int64_t i = 0; bytes != NULL && i < world; i++)
        CHECK(first[i + 1] - first[i] == sizeof payload - 1000 * (uint64_t)i &&
              bytes[first[i]] == i + 1 && bytes[first[i + 1] - 1] == i + 1);
    free(bytes);
}

/* All but rank 0 wait for a message that never comes. */
static void outlive(caller *c, fr_transport *transport)
{
    fr_message request = {0};
    int64_t word = 0;

    c->status = transport->ops->irecv(transport, 2, 77, &word, sizeof word,
                                      &request, &c->err);
    if (c->status == FR_OK)
        c->status =
            fr_transport_wait(transport, &request, 2, "a message", &c->err);
}

static void *call(void *context)
{
    caller *c = context;
    fr_transport *transport = NULL;

    if (c->rank % 2 == 0) /* some come before rank 0 listens */
        usleep(60000);
    c->status = fr_transport_tcp_create("127.0.0.1", c->port, c->rank, WORLD,
                                        20, &transport, &c->err);
    if (c->status != FR_OK)
        return NULL;
    CHECK_INT(transport->n_local, WORLD);
    CHECK_INT(transport->i_local, c->rank);
    talk(c, transport);
    if (c->is_killed) {
        if (c->reason != NULL)
            transport->ops->announce(transport, c->reason);
        /* As a process that ends: without a word. */
        fr_transport_tcp_drop(transport);
        return NULL;
    }
    if (c->took_s < 0)
        outlive(c, transport);
    fr_transport_destroy(transport);
    return NULL;
}

static void perform(caller callers[WORLD], int port, int64_t killed,
                    const char *reason)
{
    for (int64_t i = 0; i < WORLD; i++) {
        callers[i] = (caller){.rank = i,
                              .port = port,
                              .is_killed = i == killed,
                              .reason = reason,
                              .took_s = killed >= 0 ? -1 : 0};
        pthread_create(&callers[i].thread, NULL, call, &callers[i]);
    }
    for (int64_t i = 0; i < WORLD; i++)
        pthread_join(callers[i].thread, NULL);
}

static void test_sockets(void)
{
    caller callers[WORLD];

    perform(callers, free_port(), -1, NULL);
    for (int i = 0; i < WORLD; i++)
        CHECK_OK(callers[i].status, &callers[i].err);
}

static void test_death(void)
{
    caller callers[WORLD];

    perform(callers, free_port() + 1, 3, NULL);
    for (int i = 0; i < WORLD; i++) {
        if (i == 3)
            continue;
        CHECK_INT(callers[i].status, FR_FAILURE);
        CHECK_HAS(callers[i].err.text, "lost rank 3");
    }
    perform(callers, free_port() + 2, 4, "rank 4: the disk is full");
    for (int i = 0; i < 4; i++)
        CHECK_STR(callers[i].err.text, "rank 4: the disk is full");
}

static void test_nobody(void)
{
    fr_transport *transport = NULL;
    fr_err err = {0};

    CHECK_FAILS(fr_transport_tcp_create("127.0.0.1", free_port() + 3, 1, 2, 0.3,
                                        &transport, &err),
                FR_FAILURE, &err);
    CHECK_HAS(err.text, "nobody answers");
    CHECK_FAILS(fr_transport_tcp_create("127.0.0.1", free_port() + 3, 0, 2, 0.3,
                                        &transport, &err),
                FR_FAILURE, &err);
    CHECK_HAS(err.text, "not all of 2 ranks");
}

CHECK_MAIN({"environment", test_environment},
           {"bad_environment", test_bad_environment},
           {"node_lists", test_node_lists}, {"sockets", test_sockets},
           {"death", test_death}, {"nobody", test_nobody})
