/*
 * test_doctor_hosts.c: the verdicts over hosts, from answers of their scripts
 * that are written here, and through a remote shell that this test writes.
 */
#include "calibrate/doctor/doctor_hosts.h"
#include "core/system/fileio.h"
#include "tests/check.h"

#include <string.h>
#include <sys/stat.h>

static const fr_host node = {.name = "node7", .n_slots = 3, .has_slots = true};

static const fr_finding *find(const fr_host_findings *all, const char *check)
{
    for (size_t i = 0; i < all->n; i++)
        if (strcmp(all->items[i].finding.check, check) == 0)
            return &all->items[i].finding;
    return NULL;
}

static void expect(const fr_host_findings *all, const char *check,
                   fr_finding_state state, const char *words)
{
    const fr_finding *at = find(all, check);

    if (!CHECK(at != NULL))
        return;
    CHECK_INT(at->state, state);
    CHECK_HAS(at->found, words);
}

static void judge(const char *text, fr_host_findings *out)
{
    fr_err err = {0};
    fr_host_facts here;
    fr_host_probe probe = {.agent = "ssh", .begin_s = 100.0, .end_s = 100.5};

    snprintf(probe.out, sizeof probe.out, "%s", text);
    fr_doctor_read_facts("program=8f14e45fceea167a\nplan=c9f0f895fb98ab91\n"
                         "mpi=mpirun (Open MPI) 4.1.4\n",
                         &here);
    CHECK_OK(
        fr_doctor_judge_host(&node, &probe, &here, 5000.5, "p.json", out, &err),
        &err);
}

static void test_good(void)
{
    fr_host_findings all = {0};

    judge("Welcome to node7!\r\ntime=5000.25\nprogram=8f14e45fceea167a\n"
          "plan=c9f0f895fb98ab91\nmpi=mpirun (Open MPI) 4.1.4\nshm=1048576\n"
          "memory=8388608\nport=open\n",
          &all);
    CHECK_INT(all.n, 8);
    for (size_t i = 0; i < all.n; i++)
        CHECK_INT(all.items[i].finding.state, FR_FINDING_OK);
    expect(&all, "reachable", FR_FINDING_OK, "ssh, 3 slots");
    expect(&all, "/dev/shm", FR_FINDING_OK, "1 GiB are free");
    expect(&all, "memory", FR_FINDING_OK, "8 GiB");
    fr_vec_release(&all);
}

static void test_bad(void)
{
    fr_host_findings all = {0};

    /* The clock: 5000.25 is the middle of the probe, 7.25 s before 5007.5; it
     * is known to 0.25 s. */
    judge("time=5007.5\nprogram=aaaa\nplan=\nmpi=mpirun (Open MPI) 5.0.3\n"
          "shm=1024\nmemory=0\nport=closed\n",
          &all);
    expect(&all, "program", FR_FINDING_MISSING, "another one than here (aaaa");
    expect(&all, "plan", FR_FINDING_MISSING, "it is not there");
    expect(&all, "MPI", FR_FINDING_MISSING, "5.0.3; here: mpirun (Open MPI) 4");
    expect(&all, "clock", FR_FINDING_ADVICE, "7.2 s later than");
    expect(&all, "/dev/shm", FR_FINDING_ADVICE, "1 MiB");
    expect(&all, "memory", FR_FINDING_ADVICE, "0 ");
    expect(&all, "ports", FR_FINDING_MISSING, "cannot open a connection");
    fr_vec_release(&all);
    judge("", &all);
    expect(&all, "program", FR_FINDING_MISSING, "it is not there");
    expect(&all, "MPI", FR_FINDING_MISSING, "not in the PATH");
    expect(&all, "clock", FR_FINDING_ADVICE, "not known");
    CHECK(find(&all, "ports") == NULL);
    fr_vec_release(&all);
}

static void test_facts(void)
{
    fr_host_facts facts;
    char text[300] = "program=";

    memset(text + 8, 'x', 200);
    fr_doctor_read_facts(text, &facts); /* longer than its member */
    CHECK_INT(strlen(facts.program), 79);
    fr_doctor_read_facts("time=inf\nshm=nan\nmemory=-\nprogram", &facts);
    CHECK(facts.unix_s == 0 && facts.shm_bytes == 0);
    CHECK_STR(facts.program, "");
}

static void test_through_a_shell(void)
{
    static const char text[] =
        "#!/bin/sh\nhost=$1\nshift\n[ \"$host\" = good ] && exec sh -c \"$*\"\n"
        "echo 'Host key verification failed.' >&2\nexit 255\n";
    char agent[CHECK_PATH_BYTES], path[CHECK_PATH_BYTES];
    fr_host_findings all = {0};
    fr_err err = {0};

    check_tmp_path(agent, "rsh");
    check_tmp_path(path, "hosts.txt");
    CHECK_OK(fr_file_write(agent, text, strlen(text), &err), &err);
    CHECK(chmod(agent, 0700) == 0);
    CHECK_OK(fr_file_write(path, "good\nbad\n", 9, &err), &err);
    CHECK(setenv("OMPI_MCA_plm_rsh_agent", agent, 1) == 0);
    CHECK_OK(fr_doctor_examine_hosts(path, agent, NULL, &all, &err), &err);
    CHECK(unsetenv("OMPI_MCA_plm_rsh_agent") == 0);
    expect(&all, "program", FR_FINDING_OK, "the same as here");
    CHECK(find(&all, "plan") == NULL);
    CHECK_STR(all.items[all.n - 1].host, "bad");
    CHECK_HAS(all.items[all.n - 1].finding.found, "does not know its key");
    fr_vec_release(&all);
}

CHECK_MAIN({"good", test_good}, {"bad", test_bad}, {"facts", test_facts},
           {"through_a_shell", test_through_a_shell})
