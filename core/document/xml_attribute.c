/* xml_attribute.c: attributes as typed values; see xml.h. */
#include "core/base/text.h"
#include "core/document/xml.h"

#include <string.h>

/* Puts "path:line: <link> bandwidth: " before what units.h said. */
static fr_status fail_value(const fr_xml_node *node, const char *attribute,
                            const fr_err *cause, fr_err *err)
{
    return fr_xml_fail(node, err, "<%s> %s: %s", fr_xml_name(node), attribute,
                       cause->text);
}

fr_status fr_xml_get_string(const fr_xml_node *node, const char *attribute,
                            const char **out, fr_err *err)
{
    const char *text = fr_xml_find(node, attribute);

    if (text == NULL)
        return fr_xml_fail(node, err, "<%s> needs the attribute '%s'",
                           fr_xml_name(node), attribute);
    *out = text;
    return FR_OK;
}

fr_status fr_xml_maybe_quantity(const fr_xml_node *node, const char *attribute,
                                fr_quantity quantity, unsigned flags,
                                double *out, fr_err *err)
{
    const char *text = fr_xml_find(node, attribute);
    fr_err cause;

    if (text == NULL)
        return FR_OK;
    if (fr_parse_quantity(quantity, text, flags, out, &cause) != FR_OK)
        return fail_value(node, attribute, &cause, err);
    return FR_OK;
}

fr_status fr_xml_get_quantity(const fr_xml_node *node, const char *attribute,
                              fr_quantity quantity, unsigned flags, double *out,
                              fr_err *err)
{
    const char *text;

    FR_TRY(fr_xml_get_string(node, attribute, &text, err));
    return fr_xml_maybe_quantity(node, attribute, quantity, flags, out, err);
}

fr_status fr_xml_get_i64(const fr_xml_node *node, const char *attribute,
                         int64_t *out, fr_err *err)
{
    const char *text;

    FR_TRY(fr_xml_get_string(node, attribute, &text, err));
    return fr_xml_maybe_i64(node, attribute, out, err);
}

/* The optional reader of one type. */
#define DEFINE_READER(suffix, type, parse)                                     \
    fr_status fr_xml_maybe_##suffix(const fr_xml_node *node,                   \
                                    const char *attribute, type *out,          \
                                    fr_err *err)                               \
    {                                                                          \
        const char *text = fr_xml_find(node, attribute);                       \
        fr_err cause;                                                          \
        if (text && parse(text, out, &cause) != FR_OK)                         \
            return fail_value(node, attribute, &cause, err);                   \
        return FR_OK;                                                          \
    }

DEFINE_READER(i64, int64_t, fr_parse_i64)
DEFINE_READER(double, double, fr_parse_double)
DEFINE_READER(bool, bool, fr_parse_bool)
DEFINE_READER(bytes, uint64_t, fr_parse_bytes)

fr_status fr_xml_check_attribute(const fr_xml_node *node, size_t i,
                                 const char *const *known, size_t n_known,
                                 fr_err *err)
{
    const char *name = fr_xml_attribute_name(node, i);
    const char *nearest;

    if (fr_text_find(name, known, n_known) >= 0)
        return FR_OK;
    nearest = fr_text_nearest(name, known, n_known);
    if (nearest != NULL)
        return fr_xml_fail(
            node, err,
            "<%s> has the unknown attribute '%.60s': did you mean '%s'?",
            fr_xml_name(node), name, nearest);
    return fr_xml_fail(node, err, "<%s> has the unknown attribute '%.60s'",
                       fr_xml_name(node), name);
}

fr_status fr_xml_check_attributes(const fr_xml_node *node,
                                  const char *const *known, size_t n_known,
                                  fr_err *err)
{
    size_t n = fr_xml_n_attributes(node);

    for (size_t i = 0; i < n; i++)
        FR_TRY(fr_xml_check_attribute(node, i, known, n_known, err));
    return FR_OK;
}
