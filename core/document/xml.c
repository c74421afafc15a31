/* xml.c: see xml.h.  The only file that knows libxml2. */
#include "core/document/xml.h"

#include "core/base/text.h"
#include "core/document/problems.h"
#include "core/system/fileio.h"

#include <libxml/parser.h>
#include <libxml/tree.h>
#include <libxml/xmlschemas.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fr_xml {
    xmlDocPtr doc; /* doc->_private points back here */
    char *path;
};

/* The state that the parser's callbacks share. */
typedef struct parse_state {
    const char *name;
    fr_err *err;
    bool has_failed;
    fr_problems problems; /* errors of form, one per line */
    int last_line;        /* of these */
    /* Set after a value that has swallowed tags, or an end tag that closed an
     * element of another name: later errors of nesting then follow from it. */
    bool has_swallowed, has_mismatch;
    char closed_by[64]; /* that end tag */
} parse_state;

/* fr_xml_node is never defined: it is libxml2's element under our name. */
static const xmlNode *node_of(const fr_xml_node *node)
{
    return (const xmlNode *)(const void *)node;
}

static const fr_xml_node *element(const xmlNode *node)
{
    while (node != NULL && node->type != XML_ELEMENT_NODE)
        node = node->next;
    return (const fr_xml_node *)(const void *)node;
}

/* The last newline of libxml2's messages goes. */
static void write_parse_error(parse_state *state, int line, const char *message)
{
    char text[512];

    if (state->has_failed)
        return;
    state->has_failed = true;
    snprintf(text, sizeof text, "%s",
             message != NULL ? message : "not well-formed");
    fr_fail(state->err, FR_INPUT, "%s:%d: %s", state->name, line,
            fr_text_trim(text));
}

/* Plain words for the most common errors in XML that people write. */
static const struct {
    int code;
    const char *says;
} plain[] = {
    {XML_ERR_DOCUMENT_EMPTY, "there is no element in it"},
    {XML_ERR_DOCUMENT_END, "more text after the last element; remove it"},
    {XML_ERR_ATTRIBUTE_NOT_STARTED,
     "a value stands in quotes: write name=\"value\""},
    {XML_ERR_ATTRIBUTE_NOT_FINISHED, "a value has no closing quote"},
    {XML_ERR_ATTRIBUTE_WITHOUT_VALUE,
     "an attribute without value: write name=\"value\""},
    {XML_ERR_LT_IN_ATTRIBUTE, "a value has no closing quote, or a '<' in it"},
    {XML_ERR_SPACE_REQUIRED, "a blank is missing between two attributes"},
    {XML_ERR_EQUAL_REQUIRED, "a '=' is missing: write name=\"value\""},
    {XML_ERR_GT_REQUIRED, "a '>' is missing at the end of an element"},
    {XML_ERR_HYPHEN_IN_COMMENT, "'--' in a comment ends it in XML; remove it"},
    {XML_ERR_COMMENT_NOT_FINISHED, "a comment is not closed by '-->'"},
    {XML_ERR_ENTITYREF_SEMICOL_MISSING, "write '&amp;' for '&'"},
};

/* The parser goes on where it can: one mistake of a line is told, the others of
 * that line mostly follow from it. */
static void add_parse_error(parse_state *state, int line, const char *message)
{
    fr_err problem;
    fr_status status;
    char text[512];

    if (state->has_failed || line == state->last_line)
        return;
    state->last_line = line;
    snprintf(text, sizeof text, "%s",
             message != NULL ? message : "not well-formed");
    status = fr_fail(&problem, FR_INPUT, "%s:%d: %s", state->name, line,
                     fr_text_trim(text));
    status =
        fr_problems_take(&state->problems, line, status, &problem, state->err);
    state->has_failed = status != FR_OK;
}

/* Does an error only follow from one that has been told? */
static bool is_consequence(parse_state *state, const xmlError *error)
{
    bool has_lost = state->has_swallowed || state->has_mismatch;
    bool is_shifted = false;

    state->has_swallowed |= error->code == XML_ERR_LT_IN_ATTRIBUTE ||
                            error->code == XML_ERR_ATTRIBUTE_NOT_FINISHED;
    if (error->code == XML_ERR_TAG_NOT_FINISHED ||
        error->code == XML_ERR_DOCUMENT_END ||
        error->code == XML_ERR_GT_REQUIRED)
        return has_lost;
    if (error->code != XML_ERR_TAG_NAME_MISMATCH || error->str1 == NULL ||
        error->str2 == NULL)
        return false;
    is_shifted = strcmp(error->str1, state->closed_by) == 0;
    fr_text_copy_cut(state->closed_by, sizeof state->closed_by, error->str2);
    state->has_mismatch = true;
    return state->has_swallowed || is_shifted;
}

static void write_plain_error(parse_state *state, const xmlError *error)
{
    const char *says = error->message;
    char text[256];

    if (is_consequence(state, error))
        return;
    for (size_t i = 0; i < FR_LENGTH(plain); i++)
        if (plain[i].code == error->code)
            says = plain[i].says;
    if (error->code == XML_ERR_ATTRIBUTE_REDEFINED && error->str1 != NULL) {
        snprintf(text, sizeof text,
                 "the attribute '%.60s' is redefined: it stands "
                 "there twice",
                 error->str1);
        says = text;
    } else if (error->code == XML_ERR_TAG_NOT_FINISHED && error->str1 != NULL) {
        snprintf(text, sizeof text, "<%.60s> is not closed by </%.60s>",
                 error->str1, error->str1);
        says = text;
    } else if (error->code == XML_ERR_TAG_NAME_MISMATCH &&
               error->str1 != NULL && error->str2 != NULL) {
        snprintf(text, sizeof text,
                 "</%.60s> closes <%.60s> of line %d: close that by '/>' or "
                 "</%.60s>",
                 error->str2, error->str1, error->int1, error->str1);
        says = text;
    }
    add_parse_error(state, error->line, says);
}

static void on_parse_error(void *context, xmlErrorPtr error)
{
    xmlParserCtxtPtr parser = context;

    /* A mere warning where a DTD, which is not read, could declare it. */
    if (error->level >= XML_ERR_ERROR ||
        error->code == XML_WAR_UNDECLARED_ENTITY)
        write_plain_error(parser->_private, error);
}

/*
 * Entities of a document's own can grow without bound and files of people
 * never need them: the first declaration ends the reading.
 */
static void on_entity(void *context, const xmlChar *entity, int type,
                      const xmlChar *public_id, const xmlChar *system_id,
                      xmlChar *content) /* NOLINT: libxml2's signature */
{
    xmlParserCtxtPtr parser = context;
    char text[160];

    (void)type, (void)public_id, (void)system_id, (void)content;
    snprintf(text, sizeof text,
             "entity declarations are not allowed ('%.60s'): write the text "
             "itself",
             (const char *)entity);
    add_parse_error(parser->_private, xmlSAX2GetLineNumber(parser), text);
    xmlStopParser(parser);
}

static fr_status read_doc(const char *name, const char *text, size_t n,
                          xmlDocPtr *out, fr_err *err)
{
    const int options = XML_PARSE_NONET | XML_PARSE_NOCDATA |
                        XML_PARSE_BIG_LINES |
                        XML_PARSE_RECOVER; /* after a mistake, to the next */
    parse_state state = {.name = name, .err = err};
    xmlParserCtxtPtr parser = xmlNewParserCtxt();
    xmlDocPtr doc;

    if (parser == NULL)
        return fr_fail_no_memory(err);
    parser->_private = &state;
    parser->sax->serror = on_parse_error;
    parser->sax->entityDecl = on_entity;
    doc = xmlCtxtReadMemory(parser, text, (int)n, name, NULL, options);
    xmlFreeParserCtxt(parser);
    fr_status status = state.has_failed
                           ? FR_NO_MEMORY
                           : fr_problems_check(&state.problems, name, err);
    fr_problems_release(&state.problems);
    if (status == FR_OK && doc == NULL)
        status = fr_fail_no_memory(err);
    if (status == FR_OK)
        *out = doc;
    else
        xmlFreeDoc(doc);
    return status;
}

fr_status fr_xml_parse(const char *name, const char *text, size_t n,
                       fr_xml **out, fr_err *err)
{
    fr_xml *xml;
    fr_status status;

    if (n > FR_FILE_BYTES_MAX)
        return fr_fail(err, FR_INPUT, "%s: larger than 64 MiB", name);
    if (n == 0)
        return fr_fail(err, FR_INPUT, "%s:1: is empty", name);
    xml = calloc(1, sizeof *xml);
    if (xml == NULL)
        return fr_fail_no_memory(err);
    xml->path = strdup(name);
    if (xml->path == NULL) {
        status = fr_fail_no_memory(err);
        goto out_xml;
    }
    FR_TRY_GOTO(status, read_doc(name, text, n, &xml->doc, err), out_xml);
    xml->doc->_private = xml;
    if (fr_xml_root(xml) == NULL) {
        status = fr_fail(err, FR_INPUT, "%s:1: has no element", name);
        goto out_xml;
    }
    *out = xml;
    return FR_OK;
out_xml:
    fr_xml_destroy(xml);
    return status;
}

fr_status fr_xml_load(const char *path, fr_xml **out, fr_err *err)
{
    char *text;
    size_t n;
    fr_status status;

    FR_TRY(fr_file_read(path, FR_FILE_BYTES_MAX, &text, &n, err));
    status = fr_xml_parse(path, text, n, out, err);
    free(text);
    return status;
}

void fr_xml_destroy(fr_xml *xml)
{
    if (xml == NULL)
        return;
    xmlFreeDoc(xml->doc);
    free(xml->path);
    free(xml);
}

/* ---- schema ------------------------------------------------------------ */

static void on_schema_error(void *context, xmlErrorPtr error)
{
    parse_state *state = context;
    const xmlNode *node = error->node;
    long line = node != NULL ? xmlGetLineNo(node) : error->line;

    if (error->level >= XML_ERR_ERROR)
        write_parse_error(state, (int)line, error->message);
}

/* The schema looks into `doc` as long as it lives. */
static fr_status read_schema(xmlDocPtr doc, xmlSchemaPtr *out, fr_err *err)
{
    parse_state state = {.name = "schema", .err = err};
    xmlSchemaParserCtxtPtr parser = xmlSchemaNewDocParserCtxt(doc);
    xmlSchemaPtr schema;

    if (parser == NULL)
        return fr_fail_no_memory(err);
    xmlSchemaSetParserStructuredErrors(parser, on_schema_error, &state);
    schema = xmlSchemaParse(parser);
    xmlSchemaFreeParserCtxt(parser);
    if (schema == NULL)
        return state.has_failed ? FR_INPUT : fr_fail_no_memory(err);
    *out = schema;
    return FR_OK;
}

static fr_status validate(const fr_xml *xml, xmlSchemaPtr schema, fr_err *err)
{
    parse_state state = {.name = xml->path, .err = err};
    xmlSchemaValidCtxtPtr validator = xmlSchemaNewValidCtxt(schema);
    int result;

    if (validator == NULL)
        return fr_fail_no_memory(err);
    xmlSchemaSetValidStructuredErrors(validator, on_schema_error, &state);
    result = xmlSchemaValidateDoc(validator, xml->doc);
    xmlSchemaFreeValidCtxt(validator);
    if (result == 0)
        return FR_OK;
    if (result < 0)
        return fr_fail_no_memory(err);
    if (!state.has_failed)
        return fr_fail(err, FR_INPUT, "%s:1: does not follow the schema",
                       xml->path);
    return FR_INPUT;
}

fr_status fr_xml_validate(const fr_xml *xml, const char *xsd, size_t n_xsd,
                          fr_err *err)
{
    xmlDocPtr doc = NULL;
    xmlSchemaPtr schema = NULL;
    fr_status status = FR_INPUT;

    if (n_xsd <= FR_FILE_BYTES_MAX)
        status = read_doc("schema", xsd, n_xsd, &doc, err);
    else
        fr_fail(err, FR_INPUT, "schema: larger than 64 MiB");
    if (status == FR_OK)
        status = read_schema(doc, &schema, err);
    /* A wrong schema is no fault of the file. */
    if (status == FR_INPUT) {
        status = FR_FAILURE;
        if (err != NULL)
            err->status = status;
    }
    if (status == FR_OK)
        status = validate(xml, schema, err);
    xmlSchemaFree(schema);
    xmlFreeDoc(doc);
    return status;
}

/* ---- nodes ------------------------------------------------------------- */

const fr_xml_node *fr_xml_root(const fr_xml *xml)
{
    return element(xmlDocGetRootElement(xml->doc));
}

const fr_xml_node *fr_xml_first(const fr_xml_node *node)
{
    return element(node_of(node)->children);
}

const fr_xml_node *fr_xml_next(const fr_xml_node *node)
{
    return element(node_of(node)->next);
}

const fr_xml_node *fr_xml_first_named(const fr_xml_node *node, const char *name)
{
    const fr_xml_node *child = fr_xml_first(node);

    while (child != NULL && !fr_xml_is(child, name))
        child = fr_xml_next(child);
    return child;
}

const fr_xml_node *fr_xml_next_named(const fr_xml_node *node, const char *name)
{
    const fr_xml_node *sibling = fr_xml_next(node);

    while (sibling != NULL && !fr_xml_is(sibling, name))
        sibling = fr_xml_next(sibling);
    return sibling;
}

const char *fr_xml_name(const fr_xml_node *node)
{
    return (const char *)node_of(node)->name;
}

bool fr_xml_is(const fr_xml_node *node, const char *name)
{
    return strcmp(fr_xml_name(node), name) == 0;
}

int fr_xml_line(const fr_xml_node *node)
{
    return (int)xmlGetLineNo(node_of(node));
}

const char *fr_xml_path(const fr_xml_node *node)
{
    const fr_xml *xml = node_of(node)->doc->_private;
    return xml->path;
}

const char *fr_xml_text(const fr_xml_node *node)
{
    for (const xmlNode *child = node_of(node)->children; child != NULL;
         child = child->next)
        if (child->type == XML_TEXT_NODE && !xmlIsBlankNode(child))
            return (const char *)child->content;
    return NULL;
}

void fr_xml_err_write(const fr_xml_node *node, fr_err *err, const char *format,
                      ...)
{
    const fr_xml *xml = node_of(node)->doc->_private;
    char text[sizeof err->text];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fr_err_write(err, FR_INPUT, "%s:%d: %s", xml->path, fr_xml_line(node),
                 text);
}

/* ---- attributes -------------------------------------------------------- */

/*
 * Without entities an attribute's value is one text node, whose content can
 * be lent.  An empty value has no node at all.
 */
static const char *attribute_text(const xmlAttr *attribute)
{
    const xmlNode *text = attribute->children;

    if (text == NULL || text->content == NULL)
        return "";
    return (const char *)text->content;
}

const char *fr_xml_find(const fr_xml_node *node, const char *attribute)
{
    for (const xmlAttr *a = node_of(node)->properties; a != NULL; a = a->next)
        if (strcmp((const char *)a->name, attribute) == 0)
            return attribute_text(a);
    return NULL;
}

size_t fr_xml_n_attributes(const fr_xml_node *node)
{
    size_t n = 0;

    for (const xmlAttr *a = node_of(node)->properties; a != NULL; a = a->next)
        n++;
    return n;
}

const char *fr_xml_attribute_name(const fr_xml_node *node, size_t i)
{
    const xmlAttr *a = node_of(node)->properties;

    while (a != NULL && i > 0) {
        a = a->next;
        i--;
    }
    return a != NULL ? (const char *)a->name : NULL;
}
