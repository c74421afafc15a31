/*
 * test_flows.c: every case of tests/validate/flows against the finish times
 * that SimGrid found for it; what must not change them.
 */
#include "core/base/text.h"
#include "core/document/json.h"
#include "simgrid/flows.h"
#include "tests/check.h"

#include <dirent.h>
#include <stdlib.h>

#define FOLDER "tests/validate/flows/"

static void check_case(const char *name)
{
    char xml[512], csv[512], json[512];
    fr_flows_result result = {0};
    fr_json *expected = NULL;
    const fr_json_value *flows = NULL;
    fr_err err;

    snprintf(xml, sizeof xml, FOLDER "%s.xml", name);
    snprintf(csv, sizeof csv, FOLDER "%s.csv", name);
    snprintf(json, sizeof json, FOLDER "%s.json", name);
    if (!CHECK_OK(fr_json_load(json, &expected, &err), &err))
        return;
    if (CHECK_OK(fr_flows_run(xml, csv, &result, &err), &err) &&
        CHECK_OK(
            fr_json_get_array(fr_json_root(expected), "flows", &flows, &err),
            &err) &&
        CHECK_INT(result.n, fr_json_n(flows))) {
        double makespan_s = 0.0;
        for (size_t i = 0; i < result.n; i++) {
            const char *id = NULL;
            double finish_s = 0.0;
            CHECK_OK(fr_json_get_string(fr_json_at(flows, i), "id", &id, &err),
                     &err);
            CHECK_OK(fr_json_get_double(fr_json_at(flows, i), "finish_s",
                                        &finish_s, &err),
                     &err);
            CHECK_STR(result.rows[i].id, id);
            if (!CHECK_NEAR(result.rows[i].finish_s, finish_s, 1e-6))
                printf("  %s flow %s\n", name, id);
            makespan_s = fmax(makespan_s, finish_s);
        }
        CHECK_NEAR(result.makespan_s, makespan_s, 1e-6);
    }
    fr_flows_result_release(&result);
    fr_json_destroy(expected);
}

static void test_cases(void)
{
    DIR *folder = opendir(FOLDER);
    const struct dirent *entry;
    char name[256];
    int n = 0;

    if (!CHECK(folder != NULL))
        return;
    while ((entry = readdir(folder))) {
        if (!fr_text_ends(entry->d_name, ".json") ||
            !fr_text_copy(name, sizeof name, entry->d_name))
            continue;
        name[strlen(name) - strlen(".json")] = '\0';
        check_case(name);
        n++;
    }
    closedir(folder);
    CHECK(n >= 17);
}

/* ---- made-up networks --------------------------------------------------- */

static fr_platform *parse(const char *inner)
{
    char text[4096];
    fr_platform *platform = NULL;
    fr_err err;
    int n = snprintf(text, sizeof text,
                     "<platform version=\"4.1\"><zone id=\"z\" "
                     "routing=\"Full\">%s</zone></platform>",
                     inner);

    CHECK_OK(fr_platform_parse("p.xml", text, (size_t)n, &platform, &err),
             &err);
    return platform;
}

static fr_flows_result run(const char *inner, const char *csv)
{
    fr_flows_result result = {0};
    fr_platform *platform = parse(inner);
    fr_err err;

    if (platform)
        CHECK_OK(fr_flows_run_text(platform, "f.csv", csv, strlen(csv), &result,
                                   &err),
                 &err);
    fr_platform_destroy(platform);
    return result;
}

#define HOSTS                                                                  \
    "<host id=\"a\" speed=\"1Gf\"/><host id=\"b\" speed=\"1Gf\"/>"             \
    "<host id=\"c\" speed=\"1Gf\"/>"
#define HEAD "id,src,dst,bytes,start_s,delay_s,deps\n"

static void test_latency_is_a_delay(void)
{
    /* 3 ms and 0.25 ms of latency, then 5 MB at 100 MB/s beside a flow that
     * is there from the start: 20 MB done alone in 3.25 ms take part. */
    fr_flows_result r =
        run(HOSTS "<link id=\"l\" bandwidth=\"100MBps\" latency=\"3ms\"/>"
                  "<link id=\"m\" bandwidth=\"1GBps\" latency=\"250us\" "
                  "sharing_policy=\"FATPIPE\"/>"
                  "<route src=\"a\" dst=\"b\"><link_ctn id=\"l\"/></route>"
                  "<route src=\"a\" dst=\"c\"><link_ctn id=\"l\"/>"
                  "<link_ctn id=\"m\"/></route>",
            HEAD "x,a,b,1000000,0,0,\n"
                 "y,a,c,1000000,0,0,\n"
                 "z,b,a,0,0.5,0.25,x;y\n");
    if (CHECK_INT(r.n, 3)) {
        /* x alone for 0.25 ms does 25 kB; then both at 50 MB/s: x ends after
         * 19.5 ms more, y after another 0.25 ms alone. */
        CHECK_NEAR(r.rows[0].finish_s, 3e-3 + 0.25e-3 + 19.5e-3, 1e-9);
        CHECK_NEAR(r.rows[1].finish_s, 3e-3 + 0.25e-3 + 19.75e-3, 1e-9);
        CHECK_NEAR(r.rows[2].finish_s, 0.75 + 3e-3, 1e-12);
        CHECK_NEAR(r.makespan_s, 0.753, 1e-12);
    }
    fr_flows_result_release(&r);
}

static void test_fatpipe_and_split(void)
{
    fr_flows_result r =
        run(HOSTS "<link id=\"f\" bandwidth=\"10MBps\" latency=\"0\" "
                  "sharing_policy=\"FATPIPE\"/>"
                  "<link id=\"s\" bandwidth=\"16MBps\" latency=\"0s\" "
                  "sharing_policy=\"SPLITDUPLEX\"/>"
                  "<route src=\"a\" dst=\"b\"><link_ctn id=\"f\"/></route>"
                  "<route src=\"a\" dst=\"c\"><link_ctn id=\"s\" "
                  "direction=\"UP\"/></route>"
                  "<route src=\"b\" dst=\"c\"><link_ctn id=\"s\" "
                  "direction=\"UP\"/><link_ctn id=\"s\" "
                  "direction=\"UP\"/></route>",
            HEAD "0,a,b,1e7,0,0,\n1,b,a,1e7,0,0,\n2,a,c,1.6e7,0,0,\n"
                 "3,c,a,1.6e7,0,0,\n4,b,c,1.6e7,7,0,\n");
    if (CHECK_INT(r.n, 5)) {
        CHECK_NEAR(r.rows[0].finish_s, 1.0, 1e-12);
        CHECK_NEAR(r.rows[1].finish_s, 1.0, 1e-12);
        CHECK_NEAR(r.rows[2].finish_s, 1.0, 1e-12);
        CHECK_NEAR(r.rows[3].finish_s, 1.0, 1e-12);
        /* It crosses the same link twice. */
        CHECK_NEAR(r.rows[4].finish_s, 9.0, 1e-12);
    }
    fr_flows_result_release(&r);
}

/* Twice the bytes over twice the bandwidth: the same picoseconds. */
static void test_scale(void)
{
    static const char *const nets[2] = {
        HOSTS "<link id=\"l\" bandwidth=\"123456789Bps\" latency=\"1us\"/>"
              "<link id=\"m\" bandwidth=\"98765431Bps\" latency=\"2us\"/>"
              "<route src=\"a\" dst=\"b\"><link_ctn id=\"l\"/></route>"
              "<route src=\"a\" dst=\"c\"><link_ctn id=\"l\"/>"
              "<link_ctn id=\"m\"/></route>"
              "<route src=\"b\" dst=\"c\"><link_ctn id=\"m\"/></route>",
        HOSTS "<link id=\"l\" bandwidth=\"246913578Bps\" latency=\"1us\"/>"
              "<link id=\"m\" bandwidth=\"197530862Bps\" latency=\"2us\"/>"
              "<route src=\"a\" dst=\"b\"><link_ctn id=\"l\"/></route>"
              "<route src=\"a\" dst=\"c\"><link_ctn id=\"l\"/>"
              "<link_ctn id=\"m\"/></route>"
              "<route src=\"b\" dst=\"c\"><link_ctn id=\"m\"/></route>"};
    static const char *const ends[] = {"b", "c", "c"};
    static const char *const begins[] = {"a", "a", "b"};
    char csv[2][4096];
    fr_flows_result r[2];

    for (int k = 0; k < 2; k++) {
        int n = snprintf(csv[k], sizeof csv[k], HEAD);
        for (int i = 0; i < 40; i++)
            n += snprintf(csv[k] + n, sizeof csv[k] - (size_t)n,
                          "f%d,%s,%s,%d,%.4f,0,\n", i, begins[i % 3],
                          ends[i % 3], (k + 1) * (1000003 + i * 77773),
                          0.0131 * (i % 7));
        r[k] = run(nets[k], csv[k]);
    }
    if (CHECK_INT(r[0].n, 40) && CHECK_INT(r[1].n, 40))
        for (int i = 0; i < 40; i++)
            CHECK(r[0].rows[i].finish_s == r[1].rows[i].finish_s);
    fr_flows_result_release(&r[0]);
    fr_flows_result_release(&r[1]);
}

/* ---- bad input ---------------------------------------------------------- */

static void check_refused(const char *csv, const char *needle)
{
    fr_flows_result result = {0};
    fr_platform *platform =
        parse(HOSTS "<link id=\"l\" bandwidth=\"1GBps\" latency=\"0s\"/>"
                    "<route src=\"a\" dst=\"b\"><link_ctn id=\"l\"/></route>");
    fr_err err = {0};

    CHECK_FAILS(
        fr_flows_run_text(platform, "f.csv", csv, strlen(csv), &result, &err),
        FR_INPUT, &err);
    CHECK_HAS(err.text, needle);
    CHECK(result.rows == NULL);
    fr_platform_destroy(platform);
}

static void test_bad_csv(void)
{
    check_refused("", "f.csv:1: the file is empty");
    check_refused("id,src,dst\n", "f.csv:1: there is no column 'bytes'");
    check_refused("id,src,dst,bytes,color\n",
                  "f.csv:1: unknown column 'color'");
    check_refused("id,src,dst,bytes,src\n",
                  "f.csv:1: column 'src' stands twice");
    check_refused(HEAD "\n0,a,b,1\n", "f.csv:3: 4 fields, the header has 7");
    check_refused(HEAD "0,a,q,1,0,0,\n",
                  "f.csv:2: dst: the platform has no host 'q'");
    check_refused(HEAD "0,a,b,1e999,0,0,\n", "f.csv:2: bytes: ");
    check_refused(HEAD "0,a,b,many,0,0,\n", "f.csv:2: bytes: ");
    check_refused(HEAD "0,a,b,-5,0,0,\n", "f.csv:2: bytes '-5' is negative");
    check_refused(HEAD "0,a,b,5,nan,0,\n", "f.csv:2: start_s: ");
    check_refused(HEAD "0,a,b,5,1e8,0,\n", "more than 106 days");
    check_refused(HEAD "0,a,b,1e30,0,0,\n", "f.csv:2: bytes: the flow lasts");
    check_refused(HEAD "0,a,b,5,0,0,\n1,a,b,5,0,0,\n0,b,a,5,0,0,\n",
                  "f.csv:4: id '0' stands in line 2 already");
    check_refused(HEAD ",a,b,5,0,0,\n", "f.csv:2: the flow has no id");
    check_refused(HEAD "0,a,b,5,0,0,7\n", "f.csv:2: deps: there is no flow "
                                          "'7'");
    check_refused(HEAD "0,a,b,5,0,0,\n1,a,b,5,0,0,0;;0\n",
                  "f.csv:3: deps: an empty id");
    check_refused(HEAD "0,a,c,5,0,0,\n", "f.csv:2: no route from 'a' to 'c'");
    check_refused(HEAD "0,a,b,5,0,0,2\n1,a,b,5,0,0,\n2,a,b,5,0,0,1;3\n"
                       "3,a,b,5,0,0,0\n",
                  "' waits for '");
    check_refused(HEAD "x,a,b,5,0,0,x\n",
                  "f.csv:2: a circle: 'x' waits for 'x'");
    check_refused(HEAD "\"0\",a,b,5,0,0,\n", "f.csv:1: quotes");
}

static void test_nothing_to_do(void)
{
    fr_flows_result r =
        run(HOSTS, HEAD "0,a,a,0,0,0,\n1,b,b,1e9,0.125,0,\r\n\r\n");
    if (CHECK_INT(r.n, 2)) {
        CHECK(r.rows[0].finish_s == 0.0);
        CHECK_NEAR(r.rows[1].finish_s, 0.225, 1e-12);
    }
    fr_flows_result_release(&r);
    r = run(HOSTS, HEAD);
    CHECK_INT(r.n, 0);
    CHECK(r.makespan_s == 0.0);
    fr_flows_result_release(&r);
}

CHECK_MAIN({"cases", test_cases}, {"latency", test_latency_is_a_delay},
           {"policies", test_fatpipe_and_split}, {"scale", test_scale},
           {"bad", test_bad_csv}, {"empty", test_nothing_to_do})
