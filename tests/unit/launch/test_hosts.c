/*
 * test_hosts.c: hostfiles; the reasons of remote shells in our words, from
 * fixtures of ssh's messages; probes through remote shells that this test
 * writes, so no network is needed; the wait between restarts.
 */
#include "cli/train/elastic.h"
#include "core/system/fileio.h"
#include "runtime/hosts/host_probe.h"
#include "tests/check.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void write_file(const char *path, const char *text)
{
    fr_err err = {0};

    CHECK_OK(fr_file_write(path, text, strlen(text), &err), &err);
}

static void test_hostfile(void)
{
    char path[CHECK_PATH_BYTES];
    fr_err err = {0};
    fr_hosts hosts;
    int64_t n = 0;

    check_tmp_path(path, "hosts.txt");
    write_file(path, "# all of them\n node1 slots=3 max_slots=4\n\n"
                     "node2.site  # no slots\n10.77.0.3\tslots=2\n");
    if (CHECK_OK(fr_hostfile_load(path, &hosts, &err), &err)) {
        CHECK_INT(hosts.n, 3);
        CHECK_STR(hosts.items[0].name, "node1");
        CHECK_INT(hosts.items[0].n_slots, 3);
        CHECK_STR(hosts.items[1].name, "node2.site");
        CHECK(!hosts.items[1].has_slots);
        CHECK_STR(hosts.items[2].name, "10.77.0.3");
        fr_vec_release(&hosts);
    }
    /* Open MPI gives a host without slots as many as it has cores. */
    CHECK_OK(fr_hostfile_check(path, 99, &err), &err);
    write_file(path, "node1 slots=3\nnode2 slots=2\n");
    CHECK_OK(fr_hostfile_slots(path, &n, &err), &err);
    CHECK_INT(n, 5);
    CHECK_OK(fr_hostfile_check(path, 5, &err), &err);
    CHECK_FAILS(fr_hostfile_check(path, 6, &err), FR_INFEASIBLE, &err);
    CHECK_HAS(err.text, "6 ranks do not fit: the 2 hosts of ");
    CHECK_HAS(err.text, " have 5 places");
    write_file(path, "node1 slots=x\n");
    CHECK_FAILS(fr_hostfile_load(path, &hosts, &err), FR_INPUT, &err);
    CHECK_HAS(err.text, "hosts.txt:1: slots=x is no number");
    write_file(path, "-oProxyCommand=true slots=1\n");
    CHECK_FAILS(fr_hostfile_load(path, &hosts, &err), FR_INPUT, &err);
    CHECK_HAS(err.text, "hosts.txt:1: '-oProxyCommand=true' is no name");
    write_file(path, "# none\n");
    CHECK_FAILS(fr_hostfile_load(path, &hosts, &err), FR_INPUT, &err);
}

/* Messages of OpenSSH 9.2 and of sh. */
static void test_reasons(void)
{
    static const struct {
        fr_host_probe probe;
        const char *reason, *mend;
    } rows[] = {
        {{.is_unknown = true},
         "unknown: the name has no address",
         "/etc/hosts"},
        {{.is_late = true, .code = -1}, "unreachable (no answer)", "firewall"},
        {{.code = 255,
          .err = "ssh: connect to host n7 port 22: Connection refused\n"},
         "no ssh server answers",
         "sshd"},
        {{.code = 255,
          .err = "ssh: connect to host n7 port 22: No route to host\r\n"},
         "unreachable (no route)",
         "is it up"},
        {{.code = 255,
          .err = "ssh: connect to host n7 port 22: Connection timed out\r\n"},
         "unreachable (no answer)",
         "is it up"},
        {{.code = 255,
          .err = "me@n7: Permission denied (publickey,password).\n"},
         "ssh wants a password",
         "ssh-copy-id"},
        {{.code = 255, .err = "Host key verification failed.\n"},
         "ssh does not know its key",
         "ssh-keyscan"},
        {{.code = 127, .is_ssh = true, .agent = "ssh"},
         "ssh is not installed on this host",
         "openssh-client"},
        {{.code = FR_PROBE_NO_MPI},
         "Open MPI is not in the PATH",
         "openmpi-bin"},
        {{.code = FR_PROBE_NO_PROGRAM},
         "no program at /opt/forerun",
         "same path"},
        {{.code = 3, .agent = "krsh", .err = "krsh: ticket expired\n\n"},
         "krsh says: krsh: ticket expired",
         "by hand"},
        {{.code = 4, .agent = "krsh"},
         "krsh ended with exit code 4",
         "by hand"},
    };
    const fr_host_probe good = {.agent = "ssh"};
    char reason[160], mend[200];

    CHECK(!fr_host_reason(&good, "/opt/forerun", reason, mend));
    for (size_t i = 0; i < FR_LENGTH(rows); i++) {
        CHECK(fr_host_reason(&rows[i].probe, "/opt/forerun", reason, mend));
        CHECK_HAS(reason, rows[i].reason);
        CHECK_HAS(mend, rows[i].mend);
    }
}

/* The shell of host a works, that of b refuses, that of c does not answer. */
static void test_probe(void)
{
    char agent[CHECK_PATH_BYTES], path[CHECK_PATH_BYTES];
    fr_err err = {0};
    fr_hosts hosts;
    fr_host_probe probes[4];

    check_tmp_path(agent, "rsh");
    write_file(agent, "#!/bin/sh\nhost=$1\nshift\ncase $host in\n"
                      "a) exec sh -c \"$*\" ;;\n"
                      "b) echo 'port 22: Connection refused' >&2; exit 255 ;;\n"
                      "*) exec sleep 60 ;;\nesac\n");
    CHECK(chmod(agent, 0700) == 0);
    CHECK(setenv("OMPI_MCA_plm_rsh_agent", agent, 1) == 0);
    check_tmp_path(path, "hosts.txt");
    write_file(path, "a\nb\nc\nlocalhost\n");
    CHECK_OK(fr_hostfile_load(path, &hosts, &err), &err);
    CHECK_OK(fr_hosts_probe(&hosts, "echo it is $((6 * 7))", 3, probes, &err),
             &err);
    CHECK_STR(probes[0].out, "it is 42\n");
    CHECK_INT(probes[0].code, 0);
    CHECK(!probes[0].is_local && !probes[0].is_late);
    CHECK_INT(probes[1].code, 255);
    CHECK_HAS(probes[1].err, "refused");
    CHECK(probes[2].is_late);
    CHECK(probes[3].is_local);
    CHECK_STR(probes[3].out, "it is 42\n");
    CHECK_FAILS(fr_hosts_explain(path, "/no/such/program", 3, &err), FR_FAILURE,
                &err);
    CHECK_HAS(err.text, "host a: ");
    write_file(path, "a\nlocalhost\n");
    if (access("/usr/bin/orted", X_OK) == 0)
        CHECK_OK(fr_hosts_explain(path, "forerun", 3, &err), &err);
    CHECK(unsetenv("OMPI_MCA_plm_rsh_agent") == 0);
    fr_vec_release(&hosts);
}

static void test_delay(void)
{
    static const double expected_s[] = {0, 1, 2, 4, 8, 16, 30, 30};

    for (size_t i = 0; i < FR_LENGTH(expected_s); i++)
        CHECK_NEAR(fr_elastic_delay_s((int64_t)i), expected_s[i], 0.0);
    CHECK_NEAR(fr_elastic_delay_s(INT64_MAX), 30, 0.0);
}

CHECK_MAIN({"hostfile", test_hostfile}, {"reasons", test_reasons},
           {"probe", test_probe}, {"delay", test_delay})
