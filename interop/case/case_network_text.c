/*
 * case_network_text.c: what joins the nodes, in people's words.  A cell may
 * describe several networks; what is not said so plainly that one reading is
 * left is an error with the words.
 */
#include "core/base/text.h"
#include "interop/case/case_text.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_letter(char c)
{
    return isalnum((unsigned char)c) != 0;
}

/* "Gb/s", "GBps", "Gbit / Sec", "GbE", "TB/s" at `at`, which ends at *end;
 * 0: something else.  Gb and GB differ by their case alone. */
static double read_unit(const char *at, const char **end)
{
    static const char prefixes[] = "KMGT";
    static const double powers[] = {1e3, 1e6, 1e9, 1e12};
    const char *prefix = strchr(prefixes, toupper((unsigned char)*at));
    if (*at == '\0' || prefix == NULL)
        return 0;
    double Bps = powers[prefix - prefixes];
    bool is_binary = *++at == 'i';
    at += is_binary;
    if (*at != 'b' && *at != 'B')
        return 0;
    if (is_binary)
        Bps = 1073741824.0;
    if (*at++ == 'b') {
        Bps /= 8;
        at += strncmp(at, "it", 2) == 0 ? 2 : 0;
        if (*at == 'E' && !is_letter(at[1])) {
            *end = at + 1;
            return Bps;
        }
    }
    if (*at == 'p' && at[1] == 's') {
        *end = at + 2;
        return Bps;
    }
    at += strspn(at, " ");
    if (*at++ != '/')
        return 0;
    at += strspn(at, " ");
    if (tolower((unsigned char)*at) != 's')
        return 0;
    *end = at + strcspn(at, " ,;:()+");
    return Bps;
}

double fr_case_find_rate_Bps(const char *text, const char **begin,
                             const char **end)
{
    for (const char *at = text; *at != '\0';) {
        if (!isdigit((unsigned char)*at)) {
            at++;
            continue;
        }
        const char *behind = at + strspn(at, "0123456789.");
        const char *unit = behind + strspn(behind, " "), *stop;
        double value = strtod(at, NULL), Bps = read_unit(unit, &stop);
        if (value > 0 && Bps > 0) {
            if (begin != NULL)
                *begin = at;
            if (end != NULL)
                *end = stop;
            return value * Bps;
        }
        at = behind;
    }
    return 0;
}

/* One port of each kind, decimal bits (InfiniBand Trade Association roadmap;
 * Cornelis Omni-Path 100; HPE Slingshot 11). */
static const struct {
    const char *word;
    double gbit;
} ports[] = {
    {"XDR", 800}, {"NDR", 400},       {"HDR", 200},      {"EDR", 100},
    {"FDR", 56},  {"Omni-Path", 100}, {"OmniPath", 100}, {"Slingshot", 200},
};

static double port_Bps(const char *text)
{
    for (size_t i = 0; i < FR_LENGTH(ports); i++)
        if (fr_case_has(text, ports[i].word))
            return ports[i].gbit * 0.125e9;
    return 0;
}

fr_nic_kind fr_case_nic_kind(const char *text)
{
    static const struct {
        const char *word;
        fr_nic_kind kind;
    } words[] = {
        {"infiniband", FR_NIC_INFINIBAND},
        {"roce", FR_NIC_ROCE},
        {"omni", FR_NIC_OMNI_PATH},
        {"opa", FR_NIC_OMNI_PATH},
        {"efa", FR_NIC_EFA},
        {"slingshot", FR_NIC_SLINGSHOT},
        {"tcpx", FR_NIC_TCPX},
        {"rdma", FR_NIC_ROCE},
        {"ethernet", FR_NIC_ETHERNET},
        {"gbe", FR_NIC_ETHERNET},
        {"hdr", FR_NIC_INFINIBAND},
        {"ndr", FR_NIC_INFINIBAND},
        {"edr", FR_NIC_INFINIBAND},
        {"xdr", FR_NIC_INFINIBAND},
    };
    for (size_t i = 0; i < FR_LENGTH(words); i++)
        if (fr_case_has(text, words[i].word))
            return words[i].kind;
    return FR_NIC_UNKNOWN;
}

/* ---- one network of a cell ----------------------------------------------- */

/* The use of a network.  A network that carries no gradients is passed over. */
typedef enum role { ROLE_UNSAID, ROLE_TRAINING, ROLE_OTHER } role;

/* Is `word` there with no letter before or behind it? */
static bool has_word(const char *text, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = text; (at = strcasestr(at, word)) != NULL; at++)
        if ((at == text || !is_letter(at[-1])) && !is_letter(at[n]))
            return true;
    return false;
}

/* North-south traffic leaves the cluster, east-west is between its nodes;
 * PCIe is inside of a node. */
static role role_of(const char *text)
{
    static const struct {
        const char *word;
        role role;
    } words[] = {
        {"storage", ROLE_OTHER},     {"management", ROLE_OTHER},
        {"mgmt", ROLE_OTHER},        {"in-band", ROLE_OTHER},
        {"out-of-band", ROLE_OTHER}, {"frontend", ROLE_OTHER},
        {"front-end", ROLE_OTHER},   {"north-south", ROLE_OTHER},
        {"NS", ROLE_OTHER},          {"PCIe", ROLE_OTHER},
        {"compute", ROLE_TRAINING},  {"training", ROLE_TRAINING},
        {"backend", ROLE_TRAINING},  {"back-end", ROLE_TRAINING},
        {"EW", ROLE_TRAINING},       {"east-west", ROLE_TRAINING},
    };
    for (size_t i = 0; i < FR_LENGTH(words); i++)
        if (has_word(text, words[i].word))
            return words[i].role;
    return ROLE_UNSAID;
}

/* "8x" or "8 x" at the beginning of a word: *out and where it ends, NULL:
 * nowhere behind `text`. */
static const char *find_count(const char *text, int64_t *out)
{
    for (const char *at = text; *at != '\0'; at++) {
        if (!isdigit((unsigned char)*at) ||
            (at > text && (is_letter(at[-1]) || at[-1] == '.')))
            continue;
        const char *behind = at + strspn(at, "0123456789");
        behind += strspn(behind, " ");
        char next = *behind == '\0' ? '\0' : behind[1];
        if (tolower((unsigned char)*behind) == 'x' &&
            (!isalpha((unsigned char)next) || isupper((unsigned char)next))) {
            *out = strtol(at, NULL, 10);
            return behind + 1;
        }
    }
    return NULL;
}

static fr_status fail_words(const char *words, const char *why, fr_err *err)
{
    return fr_fail(err, FR_INPUT,
                   "inter_node: not understood: '%.80s': %s; or say it in the "
                   "columns nics and nic_gbps",
                   words, why);
}

static fr_status read_network(const char *text, fr_case_inter *out, fr_err *err)
{
    fr_case_inter inter = {.kind = fr_case_nic_kind(text)};
    const char *begin = NULL, *end = NULL;
    int64_t n = 0, n_more;
    double rate_Bps = fr_case_find_rate_Bps(text, &begin, &end);
    if (rate_Bps > 0 && fr_case_find_rate_Bps(end, NULL, NULL) > 0)
        return fail_words(text, "two rates of one network", err);
    const char *behind = find_count(text, &n);
    if (behind != NULL && find_count(behind, &n_more) != NULL)
        return fail_words(text, "two numbers of NICs", err);
    if (behind != NULL && (n < 1 || n > 4096))
        return fail_words(text, "a node has 1 to 4096 NICs", err);
    behind = behind != NULL ? behind + strspn(behind, " ") : NULL;
    if (behind != NULL && rate_Bps <= 0 && isdigit((unsigned char)*behind))
        return fail_words(text, "a rate has a unit, 8x200Gb/s", err);
    if (n > 0) {
        inter.n_nics = n;
        inter.nic_Bps = rate_Bps > 0 ? rate_Bps : port_Bps(text);
    } else if (rate_Bps <= 0) {
        inter.nic_Bps = port_Bps(text);
    } else if (fr_case_has(text, "per gpu") || fr_case_has(text, "/gpu") ||
               fr_case_has(text, "per accelerator")) {
        inter.device_Bps = rate_Bps;
    } else if (fr_case_has(text, "per nic") || fr_case_has(text, "per port") ||
               fr_case_has(text, "per link")) {
        inter.nic_Bps = rate_Bps;
    } else {
        inter.host_Bps = rate_Bps;
    }
    *out = inter;
    return FR_OK;
}

/* ---- all networks of a cell ---------------------------------------------- */

static bool has_numbers(const fr_case_inter *inter)
{
    return inter->n_nics > 0 || inter->nic_Bps > 0 || inter->host_Bps > 0 ||
           inter->device_Bps > 0;
}

/* Adds one piece of the text to the network that another piece began to
 * describe ("InfiniBand, 8x400Gb/s"); false: they are two networks. */
static bool join(fr_case_inter *inter, const fr_case_inter *more)
{
    bool is_same_kind = inter->kind == more->kind ||
                        inter->kind == FR_NIC_UNKNOWN ||
                        more->kind == FR_NIC_UNKNOWN;
    if (!is_same_kind || (has_numbers(inter) && has_numbers(more)))
        return false;
    fr_nic_kind kind = inter->kind != FR_NIC_UNKNOWN ? inter->kind : more->kind;
    if (has_numbers(more))
        *inter = *more;
    inter->kind = kind;
    return true;
}

/* If the text does not say the use of two networks, plain Ethernet carries no
 * gradients when the other has RDMA. */
static bool is_plain(const fr_case_inter *inter)
{
    return inter->kind == FR_NIC_ETHERNET;
}

static fr_status add_network(const char *text, role said, role *best,
                             fr_case_inter *inter, fr_err *err)
{
    fr_case_inter more;
    FR_TRY(read_network(text, &more, err));
    if (more.kind == FR_NIC_UNKNOWN && !has_numbers(&more))
        return FR_OK;
    if (said > *best || (said == *best && inter->kind == FR_NIC_UNKNOWN &&
                         !has_numbers(inter))) {
        *inter = more;
        *best = said;
    } else if (said == *best && !join(inter, &more)) {
        if (is_plain(inter) == is_plain(&more))
            return fail_words(text, "which of several networks training uses",
                              err);
        if (is_plain(inter))
            *inter = more;
    }
    return FR_OK;
}

fr_status fr_case_parse_inter(const char *text, fr_case_inter *out, fr_err *err)
{
    fr_case_inter inter = {.kind = FR_NIC_UNKNOWN};
    role label = ROLE_UNSAID, best = ROLE_UNSAID;
    int depth = 0;
    while (*text != '\0') {
        char piece[160];
        size_t n = 0;
        for (; text[n] != '\0'; n++) {
            depth += text[n] == '(' ? 1 : text[n] == ')' ? -1 : 0;
            if (depth <= 0 && (text[n] == ',' || text[n] == ';' ||
                               strncasecmp(text + n, " and ", 5) == 0))
                break;
        }
        snprintf(piece, sizeof piece, "%.*s", (int)n, text);
        role said = role_of(piece);
        if (said != ROLE_UNSAID)
            label = strchr(piece, ':') != NULL ? said : label;
        else
            said = label;
        if (said != ROLE_OTHER)
            FR_TRY(add_network(piece, said, &best, &inter, err));
        text += n;
        if (*text == ' ')
            text += strlen(" and ");
        else if (*text != '\0')
            text++;
    }
    *out = inter;
    return FR_OK;
}
