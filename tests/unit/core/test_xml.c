/* test_xml.c: what is read, what is refused, and with which line. */
#include "core/document/xml.h"
#include "tests/check.h"

static fr_status parse(const char *text, fr_xml **out, fr_err *err)
{
    return fr_xml_parse("t.xml", text, strlen(text), out, err);
}

static const char sample[] =
    "<?xml version='1.0'?>\n"
    "<!-- two hosts -->\n"
    "<cluster name=\"a &amp; b &#x41;\">\n"
    "  <host id=\"h0\" memory=\"80GiB\" cores=\"64\" price=\"\"/>\n"
    "  text\n"
    "  <link id=\"l0\"\n"
    "        bandwidth=\"25\" latency=\"3us\" shared=\"yes\"/>\n"
    "  <host id=\"h1\"/>\n"
    "</cluster>\n";

static void test_values(void)
{
    fr_xml *xml;
    const fr_xml_node *root, *host, *link;
    const char *text = NULL;
    uint64_t bytes = 0;
    int64_t n = 0;
    double x = 0;
    bool truth = false;
    fr_err err;

    if (!CHECK_OK(parse(sample, &xml, &err), &err))
        return;
    root = fr_xml_root(xml);
    CHECK_STR(fr_xml_name(root), "cluster");
    CHECK_STR(fr_xml_find(root, "name"), "a & b A");
    host = fr_xml_first(root);
    CHECK_INT(fr_xml_line(host), 4);
    CHECK_STR(fr_xml_find(host, "price"), "");
    CHECK_STR(fr_xml_find(host, "absent"), NULL);
    CHECK_INT(fr_xml_n_attributes(host), 4);
    CHECK_STR(fr_xml_attribute_name(host, 2), "cores");
    CHECK_STR(fr_xml_attribute_name(host, 4), NULL);
    CHECK_OK(fr_xml_maybe_bytes(host, "memory", &bytes, &err), &err);
    CHECK(bytes == 85899345920u);
    CHECK_OK(fr_xml_get_i64(host, "cores", &n, &err), &err);
    CHECK_INT(n, 64);
    link = fr_xml_next(host);
    CHECK(fr_xml_is(link, "link"));
    CHECK_OK(fr_xml_get_quantity(link, "latency", FR_QUANTITY_S, 0, &x, &err),
             &err);
    CHECK(x == 3e-6);
    CHECK_OK(fr_xml_maybe_bool(link, "shared", &truth, &err), &err);
    CHECK(truth);
    x = 2.385;
    CHECK_OK(fr_xml_maybe_quantity(link, "absent", FR_QUANTITY_S, 0, &x, &err),
             &err);
    CHECK(x == 2.385);
    CHECK(fr_xml_first_named(root, "link") == link);
    host = fr_xml_next_named(host, "host");
    CHECK_OK(fr_xml_get_string(host, "id", &text, &err), &err);
    CHECK_STR(text, "h1");
    CHECK(fr_xml_next(host) == NULL && fr_xml_first(host) == NULL);
    CHECK(fr_xml_next_named(host, "host") == NULL);
    CHECK_HAS(fr_xml_text(root), "text");
    CHECK(fr_xml_text(host) == NULL);
    fr_xml_destroy(xml);
}

static void test_attribute_errors(void)
{
    static const char *const known[] = {"id", "bandwith", "latency", "shared"};
    fr_xml *xml;
    const fr_xml_node *link;
    const char *text = NULL;
    double x = 7;
    int64_t n = 7;
    fr_err err;

    if (!CHECK_OK(parse(sample, &xml, &err), &err))
        return;
    link = fr_xml_first_named(fr_xml_root(xml), "link");
    CHECK_FAILS(
        fr_xml_get_quantity(link, "bandwidth", FR_QUANTITY_BPS, 0, &x, &err),
        FR_INPUT, &err);
    CHECK_STR(err.text, "t.xml:7: <link> bandwidth: '25' has no unit: "
                        "expected a rate such as 25GB/s (bytes) or 200Gb/s "
                        "(bits)");
    CHECK_FAILS(fr_xml_get_string(link, "src", &text, &err), FR_INPUT, &err);
    CHECK_STR(err.text, "t.xml:7: <link> needs the attribute 'src'");
    CHECK_FAILS(fr_xml_maybe_i64(link, "latency", &n, &err), FR_INPUT, &err);
    CHECK_STR(err.text, "t.xml:7: <link> latency: '3us' is no whole number");
    CHECK_FAILS(fr_xml_check_attributes(link, known, 4, &err), FR_INPUT, &err);
    CHECK_STR(err.text, "t.xml:7: <link> has the unknown attribute "
                        "'bandwidth': did you mean 'bandwith'?");
    CHECK(x == 7 && n == 7);
    fr_xml_destroy(xml);
}

static const struct {
    const char *text;
    const char *says;
} bad[] = {
    {"", "t.xml:1: is empty"},
    {"   ", "t.xml:1: "},
    {"plain", "t.xml:1: "},
    {"<a>\n<b></c>\n</a>", "t.xml:2: "},
    {"<a", "t.xml:1: "},
    {"<a>\n\n", "t.xml:3: "},
    {"<a x='1' x='2'/>", "redefined"},
    {"<a/><b/>", "t.xml:1: "},
    {"<a>\n&undefined;</a>", "t.xml:2: "},
    {"<!DOCTYPE a SYSTEM 'a.dtd'>\n<a>\n<b x='1&u;2'/></a>",
     "t.xml:3: Entity 'u' not defined"},
    {"<!DOCTYPE a SYSTEM 'a.dtd'>\n<a>1&u;2</a>",
     "t.xml:2: Entity 'u' not defined"},
    {"<a>\xff</a>", "t.xml:1: "},
    {"<!DOCTYPE a [\n<!ENTITY x 'y'>\n]>\n<a>&x;</a>",
     "t.xml:2: entity declarations are not allowed ('x')"},
    {"<!DOCTYPE a [\n<!ENTITY x SYSTEM 'file:///etc/passwd'>]>\n<a>&x;</a>",
     "t.xml:2: entity declarations"},
    {"<!DOCTYPE a [<!ENTITY % p '<!ENTITY z \"1\">'> %p;]>\n<a/>",
     "entity declarations"},
    {"<!DOCTYPE lolz [\n <!ENTITY lol \"lol\">\n"
     " <!ENTITY lol1 \"&lol;&lol;&lol;&lol;&lol;&lol;&lol;&lol;\">\n"
     " <!ENTITY lol2 \"&lol1;&lol1;&lol1;&lol1;&lol1;&lol1;&lol1;\">\n"
     "]>\n<lolz a=\"&lol2;\">&lol2;</lolz>",
     "t.xml:2: entity declarations"},
};

static void test_bad(void)
{
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        fr_xml *xml = NULL;
        fr_err err = {FR_OK, ""};
        fr_status status = parse(bad[i].text, &xml, &err);
        check_that(status == FR_INPUT && !xml, __FILE__, __LINE__, "passes: %s",
                   bad[i].text);
        CHECK_HAS(err.text, bad[i].says);
        if (status == FR_OK)
            fr_xml_destroy(xml);
    }
}

/* As SimGrid's files begin; nothing is loaded. */
static void test_doctype(void)
{
    fr_xml *xml;
    fr_err err;

    CHECK_OK(parse("<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM "
                   "\"https://simgrid.org/simgrid.dtd\">\n"
                   "<platform version=\"4.1\"/>\n",
                   &xml, &err),
             &err);
    CHECK_INT(fr_xml_line(fr_xml_root(xml)), 3);
    CHECK_INT(fr_xml_n_attributes(fr_xml_root(xml)), 1);
    fr_xml_destroy(xml);
}

static const char xsd[] =
    "<xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema'>\n"
    " <xs:element name='cluster'><xs:complexType><xs:sequence>\n"
    "  <xs:element name='host' minOccurs='1' maxOccurs='unbounded'>\n"
    "   <xs:complexType><xs:attribute name='id' use='required'/>\n"
    "   </xs:complexType></xs:element>\n"
    " </xs:sequence></xs:complexType></xs:element>\n"
    "</xs:schema>\n";

static void check_valid(const char *text, const char *says)
{
    fr_xml *xml;
    fr_err err;

    if (!CHECK_OK(parse(text, &xml, &err), &err))
        return;
    if (says) {
        CHECK_FAILS(fr_xml_validate(xml, xsd, strlen(xsd), &err), FR_INPUT,
                    &err);
        CHECK_HAS(err.text, says);
    } else {
        CHECK_OK(fr_xml_validate(xml, xsd, strlen(xsd), &err), &err);
    }
    fr_xml_destroy(xml);
}

static void test_schema(void)
{
    fr_xml *xml;
    fr_err err;

    check_valid("<cluster><host id='a'/></cluster>", NULL);
    check_valid("<cluster>\n<host/>\n</cluster>", "t.xml:2: ");
    check_valid("<cluster>\n<host id='a'/>\n\n<hots/>\n</cluster>",
                "t.xml:4: ");
    check_valid("<cluster/>", "t.xml:1: ");
    check_valid("<clutser><host id='a'/></clutser>", "t.xml:1: ");
    CHECK_OK(parse("<a/>", &xml, &err), &err);
    CHECK_FAILS(fr_xml_validate(xml, "<no", 3, &err), FR_FAILURE, &err);
    fr_xml_destroy(xml);
}

static void test_load(void)
{
    fr_xml *xml;
    fr_err err;

    CHECK_FAILS(fr_xml_load("/nonexistent/x.xml", &xml, &err), FR_IO, &err);
    CHECK_STR(err.text, "/nonexistent/x.xml: No such file or directory");
}

/* Every mistake that can be told, in the document's order, each once. */
static void test_all_mistakes(void)
{
    static const char text[] = "<cluster name=\"bad\">\n"
                               "  <device id=gpu like=\"h100\"/>\n"
                               "  <node-type id=\"server\"/>\n"
                               "  <group id=\"a\" count=\"8\" count=\"9\"/>\n"
                               "  <fabric>\n"
                               "    <level down=\"8\">\n"
                               "  </fabric>\n"
                               "</cluster>\n";
    fr_xml *xml;
    fr_err err;

    CHECK(fr_xml_parse("t.xml", text, strlen(text), &xml, &err) == FR_INPUT);
    CHECK_STR(err.text,
              "t.xml: 3 problems:\n"
              "t.xml:2: a value stands in quotes: write name=\"value\"\n"
              "t.xml:4: the attribute 'count' is redefined: it stands there "
              "twice\n"
              "t.xml:7: </fabric> closes <level> of line 6: close that by '/>' "
              "or </level>");
}

CHECK_MAIN({"values", test_values}, {"all_mistakes", test_all_mistakes},
           {"attribute_errors", test_attribute_errors}, {"bad", test_bad},
           {"doctype", test_doctype}, {"schema", test_schema},
           {"load", test_load})
