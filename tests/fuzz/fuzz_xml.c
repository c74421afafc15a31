/* fuzz_xml.c: any bytes as XML; every node and attribute is looked at. */
#include "core/document/xml.h"
#include "tests/fuzz/fuzz.h"

static size_t walk(const fr_xml_node *node)
{
    size_t n = strlen(fr_xml_name(node));

    for (; node; node = fr_xml_next(node)) {
        const fr_xml_node *child = fr_xml_first(node);
        const char *text = fr_xml_text(node);
        for (size_t i = 0; i < fr_xml_n_attributes(node); i++)
            n += strlen(fr_xml_find(node, fr_xml_attribute_name(node, i)));
        if (text)
            n += strlen(text);
        if (child)
            n += walk(child);
    }
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    fr_xml *xml;
    fr_err err;
    fr_status status =
        fr_xml_parse("input", (const char *)bytes, n, &xml, &err);

    fuzz_check_error(status, &err);
    if (status != FR_OK)
        return 0;
    if (walk(fr_xml_root(xml)) == 0)
        abort();
    fr_xml_destroy(xml);
    return 0;
}
