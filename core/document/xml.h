/*
 * xml.h: XML in, checked.  No network, no external DTD, no entities of the
 * document's own (one line of error instead of a billion laughs), at most
 * 64 MiB; a plain <!DOCTYPE x SYSTEM "..."> is passed over.  Every node knows
 * its line.  A document owns its nodes and strings.
 */
#ifndef FR_CORE_DOCUMENT_XML_H
#define FR_CORE_DOCUMENT_XML_H

#include "core/base/err.h"
#include "core/base/units.h"

typedef struct fr_xml fr_xml;
typedef struct fr_xml_node fr_xml_node;

/* FR_IO when unreadable, FR_INPUT "path:line: what" when not well-formed. */
FR_CHECKED fr_status fr_xml_load(const char *path, fr_xml **out, fr_err *err);
/* The same from text (n bytes); `name` stands in messages. */
FR_CHECKED fr_status fr_xml_parse(const char *name, const char *text, size_t n,
                                  fr_xml **out, fr_err *err);
void fr_xml_destroy(fr_xml *xml); /* takes NULL */

/*
 * FR_INPUT "path:line: ..." with the first violation of the schema, FR_FAILURE
 * when the schema itself (text of an XSD) is wrong.
 */
FR_CHECKED fr_status fr_xml_validate(const fr_xml *xml, const char *xsd,
                                     size_t n_xsd, fr_err *err);

const fr_xml_node *fr_xml_root(const fr_xml *xml);

/* Elements only (text, comments passed over); NULL at the end. */
const fr_xml_node *fr_xml_first(const fr_xml_node *node);  /* first child */
const fr_xml_node *fr_xml_next(const fr_xml_node *node);   /* sibling */
/* First child, next sibling of that name; NULL when there is none. */
const fr_xml_node *fr_xml_first_named(const fr_xml_node *node,
                                      const char *name);
const fr_xml_node *fr_xml_next_named(const fr_xml_node *node, const char *name);
/* A loop over the children of that name: fr_xml_each(at, root, "link") ... */
#define fr_xml_each(at, parent, name)                                          \
    for (const fr_xml_node *at = fr_xml_first_named((parent), (name)); at;     \
         at = fr_xml_next_named(at, (name)))
const char *fr_xml_name(const fr_xml_node *node);
bool fr_xml_is(const fr_xml_node *node, const char *name);
int fr_xml_line(const fr_xml_node *node);
/* Returns the name of the node's document for messages. */
const char *fr_xml_path(const fr_xml_node *node);
/* Text directly inside the element, NULL when there is none; borrowed. */
const char *fr_xml_text(const fr_xml_node *node);

void fr_xml_err_write(const fr_xml_node *node, fr_err *err, const char *format,
                      ...) FR_PRINTF(3, 4);
/*
 * fr_status fr_xml_fail(const fr_xml_node *, fr_err *, const char *format,
 * ...): writes "path:line: ..." and returns FR_INPUT.
 */
#define fr_xml_fail(node, err, ...)                                            \
    (fr_xml_err_write((node), (err), __VA_ARGS__), fr_status_same(FR_INPUT))

/* ---- attributes; strings are borrowed ---------------------------------- */
/* NULL when absent. */
const char *fr_xml_find(const fr_xml_node *node, const char *attribute);
size_t fr_xml_n_attributes(const fr_xml_node *node);
const char *fr_xml_attribute_name(const fr_xml_node *node, size_t i);

/* Required: "path:line: <link> needs the attribute 'bandwidth'". */
FR_CHECKED fr_status fr_xml_get_string(const fr_xml_node *node,
                                       const char *attribute, const char **out,
                                       fr_err *err);
FR_CHECKED fr_status fr_xml_get_i64(const fr_xml_node *node,
                                    const char *attribute, int64_t *out,
                                    fr_err *err);
/* Any quantity of units.h with its flags. */
FR_CHECKED fr_status fr_xml_get_quantity(const fr_xml_node *node,
                                         const char *attribute,
                                         fr_quantity quantity, unsigned flags,
                                         double *out, fr_err *err);

/* Optional: absent leaves *out as it is (set the default before). */
#define FR_XML_READER(X, type)                                                 \
    FR_CHECKED fr_status fr_xml_maybe_##X(const fr_xml_node *node,             \
                                          const char *attribute, type *out,    \
                                          fr_err *err);
FR_XML_READER(i64, int64_t)
FR_XML_READER(double, double)
FR_XML_READER(bool, bool)
FR_XML_READER(bytes, uint64_t)
FR_CHECKED fr_status fr_xml_maybe_quantity(const fr_xml_node *node,
                                           const char *attribute,
                                           fr_quantity quantity, unsigned flags,
                                           double *out, fr_err *err);

/* Refuses attributes that are not known, with the nearest known one: number i,
 * or any. */
FR_CHECKED fr_status fr_xml_check_attribute(const fr_xml_node *node, size_t i,
                                            const char *const *known,
                                            size_t n_known, fr_err *err);
FR_CHECKED fr_status fr_xml_check_attributes(const fr_xml_node *node,
                                             const char *const *known,
                                             size_t n_known, fr_err *err);

#endif
