/*
 * cluster_elements.h: the elements of a cluster file, a table of attributes for
 * each: the member that holds one, its unit, its range.  The reader, the writer
 * and the check of the structure are made from the rows.  Known to the files of
 * this folder only.
 */
#ifndef FR_SPEC_CLUSTER_CLUSTER_ELEMENTS_H
#define FR_SPEC_CLUSTER_CLUSTER_ELEMENTS_H

#include "core/document/fields.h"
#include "core/document/problems.h"
#include "core/document/xml.h"

enum { FR_ELEMENT_NAMES = 12, FR_CLUSTER_MAX_NODES = 1000000 };

/* The form of a text that is neither a number nor one of some names. */
typedef enum fr_attribute_form {
    FR_FORM_ANY,
    FR_FORM_ID,         /* a name of this file's own */
    FR_FORM_GENERATION, /* "hopper" */
    FR_FORM_DIMS,       /* "4x4x4" */
    FR_FORM_INDEX,      /* 0, 1, 2 ... */
    FR_FORM_DURATION    /* "30d" */
} fr_attribute_form;

/*
 * An amount of bytes is a U64, a count an I32 or I64, an enum has names, and a
 * double is a quantity or (FR_QUANTITY_N) a plain number.
 */
typedef struct fr_attribute {
    fr_field field; /* key: the attribute; n_bytes 0: a reference, which the
                       reader and the writer look up themselves */
    fr_attribute_form form;
    fr_quantity quantity;
    bool is_required;
    bool is_always_written; /* else not where it is 0 or `absent` */
    double absent;          /* the default */
    unsigned fabrics;       /* kinds of fabrics (bits) that have it, 0: all */
} fr_attribute;

typedef struct fr_element {
    const char *name;
    fr_attribute attributes[FR_ELEMENT_NAMES];
    const char *children[FR_ELEMENT_NAMES];
} fr_element;

/* Returns the element of that name, which must exist in cluster files. */
const fr_element *fr_element_find(const char *name);

/* Attributes up to the first without a name. */
size_t fr_element_n(const fr_element *element);

/* Does the owner, which is a fabric where that matters, have the attribute? */
bool fr_attribute_is_of(const fr_attribute *attribute, const void *owner);

/*
 * Sets the members of `owner` that the node says something about: a device
 * type, node type, fabric, whatever the rows of its element are members of.
 */
FR_CHECKED fr_status fr_element_read(const fr_xml_node *node, void *owner,
                                     fr_err *err);

/* Is this attribute there where it must, and does it say what it may? */
FR_CHECKED fr_status fr_attribute_check(const fr_xml_node *node,
                                        const fr_attribute *attribute,
                                        fr_err *err);

/*
 * Gathers unknown elements and attributes with the nearest known name, and
 * values that cannot be read; what refers to what is the reader's.  FR_INPUT
 * where the file is none of a cluster.
 */
FR_CHECKED fr_status fr_cluster_check_structure(const fr_xml_node *root,
                                                fr_problems *problems,
                                                fr_err *err);

#endif
