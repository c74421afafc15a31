/*
 * test_fabric_routes.c: ways over each kind of fabric against what can be
 * counted by hand, and where links are narrow.
 */
#include "sim/topology/fabric_routes.h"
#include "spec/cluster/cluster.h"
#include "tests/check.h"

#include <stdlib.h>

static const char cluster_xml[] =
    "<cluster name=\"net\">\n"
    "  <device id=\"gpu\" kind=\"gpu\" memory=\"80GiB\"\n"
    "          memory-bandwidth=\"3350GB/s\">\n"
    "    <peak dtype=\"fp32\" rate=\"67TFLOP/s\"/>\n"
    "  </device>\n"
    "  <node-type id=\"box\" device=\"gpu\" devices=\"8\">\n"
    "    <intra kind=\"nvswitch\" bandwidth=\"450GB/s\" latency=\"2us\"/>\n"
    "    <nic count=\"4\" bandwidth=\"10GB/s\" latency=\"5us\" rails=\"4\"/>\n"
    "    <pcie switches=\"2\" uplink=\"17GB/s\"/>\n"
    "  </node-type>\n"
    "  <group id=\"box\" node-type=\"box\" count=\"%d\"/>\n"
    "%s"
    "</cluster>\n";

typedef struct fixture {
    fr_cluster cluster;
    fr_fabric_routes routes;
    fr_fabric_path route;
} fixture;

static bool setup(fixture *f, int n_nodes, const char *fabric, bool has_pcie)
{
    char xml[2048];
    fr_err err;
    memset(f, 0, sizeof *f);
    snprintf(xml, sizeof xml, cluster_xml, n_nodes, fabric);
    return CHECK_OK(
               fr_cluster_parse("net.xml", xml, strlen(xml), &f->cluster, &err),
               &err) &&
           CHECK_OK(fr_fabric_routes_init(&f->cluster, has_pcie ? n_nodes : 0,
                                          &f->routes, &err),
                    &err);
}

static void teardown(fixture *f)
{
    fr_fabric_routes_release(&f->routes);
    fr_cluster_release(&f->cluster);
    fr_vec_release(&f->route);
}

/* Links on the way; the narrowest in *least_Bps. */
static size_t way(fixture *f, int64_t from, int64_t to, int32_t rail,
                  double *least_Bps)
{
    fr_err err;
    f->route.n = 0;
    *least_Bps = INFINITY;
    CHECK_OK(fr_fabric_routes_list(&f->routes, from, to, rail, &f->route, &err),
             &err);
    for (size_t i = 0; i < f->route.n; i++) {
        int32_t link = f->route.items[i];
        if (CHECK(link >= 0 && link < f->routes.n_links))
            *least_Bps = fmin(*least_Bps, f->routes.link_Bps[link]);
    }
    return f->route.n;
}

static void test_tree(void)
{
    fixture f;
    double Bps;
    if (setup(&f, 8,
              "<fabric kind=\"fat-tree\"><level down=\"2\" "
              "oversubscription=\"2.5\"/><level down=\"2\"/>"
              "<level down=\"2\"/></fabric>",
              false)) {
        CHECK_INT(way(&f, 0, 1, 0, &Bps), 0); /* one leaf */
        CHECK_INT(way(&f, 0, 2, 0, &Bps), 2);
        CHECK_NEAR(Bps, 2 * 40e9 / 2.5, 1e-12);
        /* The second level is as narrow: what comes from below. */
        CHECK_INT(way(&f, 0, 7, 0, &Bps), 4);
        CHECK_NEAR(Bps, 2 * 40e9 / 2.5, 1e-12);
    }
    teardown(&f);
    if (setup(&f, 8,
              "<fabric kind=\"fat-tree\"><level down=\"2\"/>"
              "<level down=\"4\"/></fabric>",
              false))
        CHECK_INT(f.routes.n_links, 0);
    teardown(&f);
}

static void test_rail(void)
{
    fixture f;
    double Bps;
    if (setup(&f, 4,
              "<fabric kind=\"rail\"><level down=\"2\" "
              "oversubscription=\"2\"/><level down=\"2\"/></fabric>",
              false)) {
        CHECK_INT(way(&f, 0, 3, 1, &Bps), 2);
        CHECK_NEAR(Bps, 2 * 10e9 / 2, 1e-12);
        int32_t up = f.route.items[0];
        CHECK_INT(way(&f, 0, 3, 2, &Bps), 2);
        CHECK(f.route.items[0] != up);
    }
    teardown(&f);
}

static void test_torus(void)
{
    fixture f;
    double Bps;
    if (setup(&f, 24,
              "<fabric kind=\"torus\" dims=\"4x3x2\" bandwidth=\"7GB/s\" "
              "latency=\"1us\"/>",
              false)) {
        CHECK_INT(way(&f, 0, 1, 0, &Bps), 1);
        CHECK_INT(way(&f, 0, 3, 0, &Bps), 1); /* round the back */
        CHECK_INT(way(&f, 0, 2, 0, &Bps), 2);
        CHECK_INT(way(&f, 0, 4 * 2, 0, &Bps), 1);
        CHECK_INT(way(&f, 0, 2 + 4 + 12, 0, &Bps), 4);
        CHECK_NEAR(Bps, 7e9, 1e-12);
        CHECK_INT(way(&f, 5, 5, 0, &Bps), 0);
    }
    teardown(&f);
}

static void test_dragonfly(void)
{
    fixture f;
    double Bps;
    if (setup(&f, 18,
              "<fabric kind=\"dragonfly\" groups=\"3\" routers=\"3\" "
              "nodes-per-router=\"2\" bandwidth=\"20GB/s\" latency=\"1us\" "
              "global-bandwidth=\"5GB/s\"/>",
              false)) {
        CHECK_INT(way(&f, 0, 1, 0, &Bps), 0); /* one router */
        CHECK_INT(way(&f, 0, 2, 0, &Bps), 1);
        CHECK_NEAR(Bps, 20e9, 1e-12);
        for (int64_t to = 6; to < 18; to++) {
            size_t n = way(&f, 0, to, 0, &Bps);
            CHECK(n >= 1 && n <= 3);
            CHECK_NEAR(Bps, 5e9, 1e-12);
        }
    }
    teardown(&f);
}

static void test_links(void)
{
    static const char list[] =
        "<fabric kind=\"links\"><switch id=\"s\"/>"
        "<link id=\"a\" from=\"box-0\" to=\"s\" bandwidth=\"8GB/s\" "
        "latency=\"1us\"/>"
        "<link id=\"b\" from=\"box-1\" to=\"s\" bandwidth=\"4GB/s\" "
        "latency=\"1us\"/>"
        "<link id=\"c\" from=\"s\" to=\"box-2\" bandwidth=\"2GB/s\" "
        "latency=\"1us\" duplex=\"half\"/></fabric>"
        "<slow link=\"b\" network=\"0.5\"/>";
    fixture f;
    double Bps;
    if (setup(&f, 3, list, false)) {
        CHECK_INT(way(&f, 0, 1, 0, &Bps), 2);
        CHECK_NEAR(Bps, 2e9, 1e-12); /* b is slow */
        int32_t out = f.route.items[0], in;
        CHECK_INT(way(&f, 1, 0, 0, &Bps), 2);
        CHECK(f.route.items[0] != out && f.route.items[1] != out);
        CHECK_INT(way(&f, 0, 2, 0, &Bps), 2);
        in = f.route.items[0];
        CHECK_INT(way(&f, 2, 0, 0, &Bps), 2);
        CHECK(f.route.items[1] == in); /* both ways of c */
    }
    teardown(&f);
}

static void test_pcie(void)
{
    fixture f;
    fr_err err;
    if (setup(&f, 2, "<fabric kind=\"switch\"/>", true)) {
        CHECK_INT(f.routes.n_links, 2 * 2 * 2);
        CHECK_OK(fr_fabric_routes_pcie(&f.routes, 1, 0, 1, &f.route, &err),
                 &err);
        CHECK_INT(f.route.n, 2);
        CHECK_OK(fr_fabric_routes_pcie(&f.routes, 1, 1, 1, &f.route, &err),
                 &err);
        CHECK_INT(f.route.n, 2); /* one switch: nothing */
        CHECK_OK(fr_fabric_routes_pcie(&f.routes, 1, 1, -1, &f.route, &err),
                 &err);
        CHECK_INT(f.route.n, 3);
        CHECK_NEAR(f.routes.link_Bps[f.route.items[2]], 17e9, 1e-12);
    }
    teardown(&f);
}

CHECK_MAIN({"tree", test_tree}, {"rail", test_rail}, {"torus", test_torus},
           {"dragonfly", test_dragonfly}, {"links", test_links},
           {"pcie", test_pcie})
