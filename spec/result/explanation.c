/* explanation.c: see explanation.h. */
#include "spec/result/explanation.h"

static const struct {
    const char *name, *title;
} resources[FR_RESOURCE_N] = {
    [FR_RESOURCE_FLOPS] = {"flops", "arithmetic"},
    [FR_RESOURCE_MEMORY_RATE] = {"memory_bandwidth", "memory bandwidth"},
    [FR_RESOURCE_NODE_LINKS] = {"node_links", "links inside a node"},
    [FR_RESOURCE_NETWORK] = {"network", "network between nodes"},
    [FR_RESOURCE_SWITCHES] = {"switches", "narrow links behind the NICs"},
    [FR_RESOURCE_HOST] = {"host", "links to the host, its memory"},
    [FR_RESOURCE_INPUT] = {"input", "reading and decoding of samples"},
    [FR_RESOURCE_NODE_LATENCY] = {"node_latency", "latency inside a node"},
    [FR_RESOURCE_NET_LATENCY] = {"network_latency", "latency between nodes"},
};

const char *fr_resource_name(fr_resource resource)
{
    return (unsigned)resource < FR_RESOURCE_N ? resources[resource].name : "?";
}

const char *fr_resource_title(fr_resource resource)
{
    return (unsigned)resource < FR_RESOURCE_N ? resources[resource].title : "?";
}

const char *fr_verdict_name(fr_verdict verdict)
{
    static const char *const names[] = {"pays", "does_not_pay", "too_large",
                                        "illegal"};
    return (unsigned)verdict < FR_LENGTH(names) ? names[verdict] : "?";
}
