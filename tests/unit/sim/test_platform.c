/*
 * test_platform.c: routes worked out by hand, and what a platform file must
 * not contain.
 */
#include "simgrid/platform.h"
#include "tests/check.h"

#include <stdlib.h>

#define BEGIN "<platform version=\"4.1\">\n"
#define FULL BEGIN "<zone id=\"z\" routing=\"Full\">\n"
#define END "</zone>\n</platform>\n"
#define HOST(id) "<host id=\"" id "\" speed=\"1Gf\"/>\n"
#define LINK(id) "<link id=\"" id "\" bandwidth=\"1GBps\" latency=\"2us\"/>\n"

static fr_platform *parse(const char *text)
{
    fr_platform *platform = NULL;
    fr_err err;
    CHECK_OK(fr_platform_parse("p.xml", text, strlen(text), &platform, &err),
             &err);
    return platform;
}

/* "l1 l2" or the error. */
static const char *route(fr_platform *p, const char *src, const char *dst,
                         double *latency_s)
{
    static char text[sizeof(fr_err)];
    fr_platform_path path = {0};
    fr_err err = {0};
    size_t n = 0;

    text[0] = '\0';
    if (fr_platform_route(p, fr_platform_host_find(p, src),
                          fr_platform_host_find(p, dst), &path,
                          &err) != FR_OK) {
        fr_vec_release(&path.links);
        snprintf(text, sizeof text, "%s", err.text);
        return text;
    }
    for (size_t i = 0; i < path.links.n; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", i ? " " : "",
                              fr_platform_link_at(p, path.links.items[i])->id);
    if (latency_s)
        *latency_s = path.latency_s;
    fr_vec_release(&path.links);
    return text;
}

static void test_full(void)
{
    double latency_s = 0.0;
    fr_platform *p = parse(FULL HOST("a") HOST("b") HOST("c") LINK("l") LINK(
        "m") "<link id=\"s\" bandwidth=\"10Gbps\" latency=\"1.5us\" "
             "sharing_policy=\"SPLITDUPLEX\"/>\n"
             "<route src=\"a\" dst=\"b\"><link_ctn id=\"l\"/>"
             "<link_ctn id=\"m\"/><link_ctn id=\"s\" direction=\"UP\"/>"
             "</route>\n"
             "<route src=\"c\" dst=\"c\"><link_ctn id=\"m\"/></route>\n"
             "<route src=\"a\" dst=\"c\" symmetrical=\"NO\">"
             "<link_ctn id=\"l\"/></route>\n" END);
    if (!p)
        return;
    CHECK_STR(route(p, "a", "b", &latency_s), "l m s_UP");
    CHECK_NEAR(latency_s, 5.5e-6, 1e-12);
    CHECK_STR(route(p, "b", "a", NULL), "s_DOWN m l");
    CHECK_STR(route(p, "a", "c", NULL), "l");
    CHECK_STR(route(p, "c", "a", NULL), "no route from 'c' to 'a'");
    CHECK_STR(route(p, "c", "c", NULL), "m");
    CHECK_STR(route(p, "a", "a", NULL), "__loopback__");
    for (uint32_t i = 0; i < fr_platform_n_links(p); i++)
        if (!strcmp(fr_platform_link_at(p, i)->id, "s_UP"))
            CHECK_NEAR(fr_platform_link_at(p, i)->bandwidth_Bps, 1.25e9, 0);
    CHECK_INT(fr_platform_host_find(p, "z"), -1);
    CHECK(fr_platform_host_nearest(p, "quite different") == NULL);
    fr_platform_destroy(p);
}

/* Two ways round; the one with fewer links counts. */
static void check_shortest(const char *routing)
{
    char text[4096];
    snprintf(text, sizeof text,
             BEGIN "<zone id=\"z\" routing=\"%s\">\n" HOST("a") HOST("b") HOST(
                 "c") "<router id=\"r\"/>\n" LINK("l1") LINK("l2") LINK("l3")
                 LINK("l4") LINK(
                     "l5") "<route src=\"a\" dst=\"r\"><link_ctn "
                           "id=\"l1\"/></route>\n"
                           "<route src=\"r\" dst=\"b\"><link_ctn "
                           "id=\"l2\"/></route>\n"
                           "<route src=\"a\" dst=\"c\"><link_ctn "
                           "id=\"l3\"/></route>\n"
                           "<route src=\"c\" dst=\"b\"><link_ctn id=\"l4\"/>"
                           "<link_ctn id=\"l5\"/></route>\n" END,
             routing);
    fr_platform *p = parse(text);
    if (!p)
        return;
    CHECK_STR(route(p, "a", "b", NULL), "l1 l2");
    CHECK_STR(route(p, "b", "a", NULL), "l2 l1");
    CHECK_STR(route(p, "b", "c", NULL), "l5 l4");
    CHECK_STR(route(p, "c", "c", NULL), "__loopback__");
    fr_platform_destroy(p);
}

static void test_shortest(void)
{
    check_shortest("Floyd");
    check_shortest("Dijkstra");
    check_shortest("DijkstraCache");
}

static void test_clusters(void)
{
    double latency_s = 0.0;
    fr_platform *p = parse(BEGIN "<zone id=\"z\" routing=\"Full\">\n" LINK(
        "wan") "<cluster id=\"c\" prefix=\"n-\" suffix=\".org\" "
               "radical=\"0-2,7\" "
               "speed=\"1Gf\" bw=\"125MBps\" lat=\"50us\" bb_bw=\"2.25GBps\" "
               "bb_lat=\"500us\" limiter_link=\"200MBps\" "
               "loopback_bw=\"9GBps\" "
               "loopback_lat=\"1us\"/>\n"
               "<cluster id=\"t\" prefix=\"t\" suffix=\"\" radical=\"0-5\" "
               "speed=\"1Gf\" bw=\"1GBps\" lat=\"1us\" topology=\"TORUS\" "
               "topo_parameters=\"3,2\" sharing_policy=\"SHARED\"/>\n"
               "<zoneRoute src=\"c\" dst=\"t\" gw_src=\"n-c_router.org\" "
               "gw_dst=\"t1\"><link_ctn id=\"wan\"/></zoneRoute>\n" END);
    if (!p)
        return;
    CHECK_STR(route(p, "n-0.org", "n-7.org", &latency_s),
              "c_link_0_limiter c_link_0_UP c_backbone c_link_7_DOWN "
              "c_link_7_limiter");
    CHECK_NEAR(latency_s, 600e-6, 1e-12);
    CHECK_STR(route(p, "n-1.org", "n-1.org", NULL), "c_link_1_loopback");
    /* 3 x 2: from (0,0) to (2,1) one step left, one up. */
    CHECK_STR(route(p, "t0", "t5", NULL), "t_cable_4 t_cable_5");
    CHECK_STR(fr_platform_host_nearest(p, "n-1.orf"), "n-1.org");
    CHECK_STR(route(p, "n-2.org", "t2", NULL),
              "c_link_2_limiter c_link_2_UP c_backbone wan t_cable_2");
    CHECK_STR(route(p, "t1", "n-2.org", NULL),
              "wan c_backbone c_link_2_DOWN c_link_2_limiter");
    fr_platform_destroy(p);
}

static void check_refused(const char *text, const char *needle)
{
    fr_platform *platform = NULL;
    fr_err err = {0};

    CHECK_FAILS(fr_platform_parse("p.xml", text, strlen(text), &platform, &err),
                FR_INPUT, &err);
    CHECK_HAS(err.text, needle);
    CHECK(platform == NULL);
}

static void test_bad_files(void)
{
    check_refused("<network/>", "p.xml:1: <network> is no SimGrid <platform>");
    check_refused("<platform version=\"3\"/>", "version '3'");
    check_refused(BEGIN "</platform>", "the platform has no zone");
    check_refused(BEGIN "<zone id=\"z\" routing=\"Vivaldi\"/></platform>",
                  "p.xml:2: routing 'Vivaldi'");
    check_refused(FULL HOST("a") HOST("a") END,
                  "p.xml:4: 'a' is there already");
    check_refused(FULL LINK("l") LINK("l") END,
                  "p.xml:4: link 'l' is there already");
    check_refused(FULL "<host id=\"a\"/>" END,
                  "p.xml:3: <host> needs the attribute 'speed'");
    check_refused(FULL "<link id=\"l\" bandwidth=\"0GBps\"/>" END, "p.xml:3: ");
    check_refused(FULL "<link id=\"l\" bandwidth=\"-1GBps\"/>" END,
                  "p.xml:3: ");
    check_refused(FULL "<link id=\"l\" bandwidth=\"1GBps\" "
                       "latency=\"-2us\"/>" END,
                  "p.xml:3: ");
    check_refused(FULL "<link id=\"l\" bandwidth=\"1GBps\" "
                       "bandwidth_file=\"t\"/>" END,
                  "bandwidth_file");
    check_refused(FULL "<peer id=\"p\"/>" END,
                  "p.xml:3: <peer> is not supported");
    check_refused(FULL HOST("a") HOST("b") "<route src=\"a\" dst=\"b\"/>" END,
                  "p.xml:5: a route needs at least one <link_ctn>");
    check_refused(FULL HOST("a") HOST("b")
                      LINK("link1") "<route src=\"a\" dst=\"b\">"
                                    "<link_ctn id=\"link2\"/></route>" END,
                  "p.xml:6: there is no link 'link2': did you mean 'link1'?");
    check_refused(FULL HOST("a") LINK("l") "<route src=\"a\" dst=\"q\">"
                                           "<link_ctn id=\"l\"/></route>" END,
                  "p.xml:5: there is no host or router 'q'");
    check_refused(
        FULL HOST("a") HOST("b") LINK(
            "l") "<route src=\"a\" dst=\"b\"><link_ctn id=\"l\"/></route>"
                 "<route src=\"b\" dst=\"a\"><link_ctn id=\"l\"/></route>" END,
        "a second route from 'b' to 'a'");
    check_refused(FULL HOST("a") HOST(
                      "b") "<link id=\"s\" bandwidth=\"1GBps\" latency=\"0s\" "
                           "sharing_policy=\"SPLITDUPLEX\"/>\n<route src=\"a\" "
                           "dst=\"b\"><link_ctn id=\"s\"/></route>" END,
                  "p.xml:6: link 's' is SPLITDUPLEX");
    check_refused(BEGIN "<cluster id=\"c\" prefix=\"\" suffix=\"\" "
                        "radical=\"3-1\" speed=\"1f\" bw=\"1Bps\" "
                        "lat=\"0s\"/></platform>",
                  "p.xml:2: radical '3-1'");
    check_refused(BEGIN "<cluster id=\"c\" prefix=\"\" suffix=\"\" "
                        "radical=\"0-9\" speed=\"1f\" bw=\"1Bps\" lat=\"0s\" "
                        "topology=\"TORUS\" topo_parameters=\"3,3\"/>"
                        "</platform>",
                  "ask for 9 hosts, radical names 10");
    check_refused(BEGIN "<cluster id=\"c\" prefix=\"\" suffix=\"\" "
                        "radical=\"0-9\" speed=\"1f\" bw=\"1Bps\" lat=\"0s\" "
                        "topology=\"FAT_TREE\" topo_parameters=\"2;2,5;1\"/>"
                        "</platform>",
                  "topo_parameters '2;2,5;1'");
}

static void test_gateway_circle(void)
{
    fr_platform *p = parse(
        BEGIN "<zone id=\"z\" routing=\"Full\">\n" LINK("l")
            LINK("m") "<zone id=\"x\" routing=\"None\">" HOST("a")
                HOST("g") "</zone>\n"
                          "<zone id=\"y\" routing=\"None\">" HOST(
                              "b") "</zone>\n"
                                   "<zoneRoute src=\"x\" dst=\"y\" "
                                   "gw_src=\"g\" gw_dst=\"b\">"
                                   "<link_ctn id=\"l\"/></zoneRoute>\n" END);
    if (!p)
        return;
    CHECK_STR(route(p, "g", "b", NULL), "l");
    CHECK_STR(route(p, "a", "b", NULL), "no route from 'a' to 'g'");
    fr_platform_destroy(p);
}

CHECK_MAIN({"full", test_full}, {"shortest", test_shortest},
           {"clusters", test_clusters}, {"bad", test_bad_files},
           {"gateways", test_gateway_circle})
