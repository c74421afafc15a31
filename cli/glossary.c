/* glossary.c: see glossary.h. */
#include "cli/glossary.h"

#include <ctype.h>
#include <stdbool.h>

const fr_term fr_glossary[] = {
    {"1f1b", "one forward one backward,schedule",
     "The default pipeline schedule: after a start-up each stage alternates "
     "one\n"
     "forward and one backward pass, so that it keeps at most as many\n"
     "micro-batches in memory as there are stages behind it.  Its bubble is "
     "that\n"
     "of gpipe: (pp - 1) / (micro-batches + pp - 1) of the step.",
     "--schedule, help bubble, help interleaved"},
    {"activation", "activations",
     "The values that a layer's forward pass keeps for its backward pass.  "
     "They\n"
     "grow with micro-batch x sequence x hidden size; sequence, tensor and\n"
     "context parallelism divide them, recomputation drops most of them.",
     "--recompute, --micro-batch, help recompute"},
    {"algbw", "busbw,bus bandwidth",
     "Bandwidths as nccl-tests print them.  algbw: bytes of the payload over "
     "the\n"
     "time. busbw: the rate of the slowest link, algbw times 2 (n-1)/n for "
     "an\n"
     "all-reduce, (n-1)/n for reduce-scatter, all-gather and all-to-all; "
     "compare\n"
     "it with the link's rate.",
     "forerun collective"},
    {"all-gather", "allgather",
     "Every rank ends with the parts of all ranks.  ZeRO 3 gathers the "
     "parameters\n"
     "of a layer so before it is used; half of an all-reduce.",
     "help all-reduce, help zero"},
    {"all-reduce", "allreduce",
     "Every rank ends with the sum over all ranks.  Data parallelism adds\n"
     "gradients so, tensor parallelism the partial results of a layer.  A "
     "ring\n"
     "moves 2 (n-1)/n payloads through each link, a tree takes fewer steps.",
     "--collective, forerun collective"},
    {"all-to-all", "alltoall",
     "Every rank sends another part to each other one: tokens to their experts "
     "and\n"
     "back, or sequences against heads in context parallelism.",
     "help expert-parallel"},
    {"asynchronous", "async,hogwild,stale-synchronous,ssp",
     "Workers update the parameters without waiting for each other, so a "
     "gradient\n"
     "may come from older parameters (see staleness). forerun predicts and "
     "runs\n"
     "synchronous steps alone: no option makes a run asynchronous, and the "
     "parameter\n"
     "server of --collective is synchronous too.",
     "help staleness, help parameter-server"},
    {"bf16", "bfloat16,fp16,f16,mixed precision",
     "16-bit numbers.  bf16 has the range of fp32 with 8 bits of precision, "
     "fp16\n"
     "less range and 11 bits, and needs loss scaling.  In mixed precision "
     "products\n"
     "run in 16 bits while the optimizer keeps fp32 weights: 16 to 18 bytes "
     "per\n"
     "parameter with Adam.",
     "--precision, --grad-dtype"},
    {"bubble", "pipeline bubble",
     "Time in which a pipeline stage has nothing to do: at the start until "
     "the\n"
     "first micro-batch reaches it, at the end when the last one has passed.  "
     "With\n"
     "1f1b or gpipe (pp - 1) / (micro-batches + pp - 1) of the step, divided "
     "by\n"
     "the chunks of a rank when stages are interleaved; zero-bubble schedules "
     "fill\n"
     "it with gradients of weights.  More micro-batches make it smaller.",
     "--schedule, --vpp, help zero-bubble"},
    {"bucket", "gradient bucket",
     "Gradients that are reduced together.  Small buckets begin early and "
     "overlap\n"
     "with the backward pass but pay more latencies; large ones use the links\n"
     "better. PyTorch DDP's default is 25 MiB.",
     "--bucket, --overlap"},
    {"checkpoint", "checkpointing",
     "Weights and optimizer state on storage, to continue after a failure.\n"
     "(Activation checkpointing is something else: help recompute.)",
     "--checkpoint, --checkpoint-every"},
    {"compression", "gradient compression,powersgd,topk,signsgd",
     "Gradients are sent in fewer bytes: fp16 or bf16, quantised, sparse "
     "(top-k)\n"
     "or of low rank (PowerSGD).  It pays where links are slow against the\n"
     "compute, costs kernels, and changes the result: plans with it enter "
     "only\n"
     "with --allow lossy.",
     "--compress, forerun explain"},
    {"context-parallel", "cp,ring attention,context parallelism",
     "Each rank has a part of every sequence; keys and values go round a ring "
     "(or\n"
     "by all-to-all) while attention is computed.  For sequences whose "
     "activations\n"
     "do not fit.",
     "--cp"},
    {"critical-batch", "critical batch size",
     "The batch beyond which more samples per step hardly save steps: the "
     "tokens\n"
     "needed grow as 1 + batch / critical batch (McCandlish et al. 2018).",
     "--critical-batch, --goal"},
    {"data-parallel", "dp,data parallelism,ddp",
     "Each rank has the whole model (or a share of its state: help zero) and\n"
     "another part of the batch; gradients are added up before every update.",
     "--dp, help zero, help all-reduce"},
    {"energy", "kwh,power,pue",
     "The energy that a run draws: its devices, busy and idle, and the rest "
     "of\n"
     "their nodes, times the power usage effectiveness (pue) of the site: "
     "cooling\n"
     "and losses, 1.1 to 1.5.  Switches count where the cluster file says "
     "their\n"
     "power.",
     "--tokens, --goal, --max-energy"},
    {"expert-parallel", "ep,moe,mixture of experts",
     "The experts of a mixture-of-experts layer are spread over ranks; tokens\n"
     "travel to their experts and back by all-to-all.",
     "--ep, help all-to-all"},
    {"federated", "federated learning,fedavg,fedbuff",
     "Clients train on data of their own and send updates to a server, which\n"
     "averages the updates of some clients in each round. forerun models no\n"
     "clients and no rounds: it neither predicts nor runs federated learning.",
     "help local-sgd"},
    {"flash-attention", "flash,flash attention",
     "Attention in one kernel that never writes its probabilities to memory: "
     "time\n"
     "and memory of long sequences fall.",
     "--flash-attention, --flash-kind"},
    {"fsdp", "fully sharded data parallel",
     "PyTorch's name of ZeRO 3: parameters, gradients and optimizer state are\n"
     "sharded, and each layer's parameters are gathered before use.",
     "--zero, --zero-reshard, help zero"},
    {"global-batch", "batch,batch size,gbs,gradient accumulation",
     "Sequences (or images) of one optimizer step, over all ranks.  Each\n"
     "data-parallel rank takes global batch / dp of them, a micro-batch at a "
     "time,\n"
     "and adds up the gradients (accumulation).",
     "--global-batch, --micro-batch"},
    {"gpipe", NULL,
     "The first pipeline schedule: all forward passes, then all backward "
     "passes.\n"
     "Its bubble is that of 1f1b, but all micro-batches stay in memory.",
     "--schedule, help 1f1b"},
    {"headroom", NULL,
     "Memory of the device that stays free.  Predictions of memory have an "
     "error:\n"
     "a plan of little headroom may run out of memory all the same, which "
     "'fits\n"
     "with probability' says.",
     "--min-headroom"},
    {"interleaved", "vpp,virtual pipeline,chunks",
     "Each rank has several chunks of layers instead of one stage, so that "
     "the\n"
     "bubble is divided by their number; more transfers between stages pay for "
     "it.",
     "--vpp, --schedule, help bubble"},
    {"jitter", "noise",
     "Random spread of compute and communication times.  A synchronous step "
     "waits\n"
     "for the slowest rank, so that the expected step grows with the number "
     "of\n"
     "ranks.",
     "help straggler"},
    {"knee", "scaling efficiency",
     "The point beyond which more devices stop paying: the next ones add less "
     "than\nhalf of the throughput of the first, or less than --knee.",
     "forerun sweep --vary nodes=1..64*2, help weak-scaling"},
    {"lamb", "lars,large batch,warm-up,warmup",
     "Optimizers for large batches: LARS (You et al. 2017) and LAMB (You et "
     "al.\n"
     "2019) scale each layer's update by the norm of its weights over that of "
     "the\n"
     "update; with a warm-up of the learning rate, batches of tens of "
     "thousands\n"
     "converge.",
     "--optimizer"},
    {"local-sgd", "diloco,periodic averaging,gossip",
     "Workers take several steps by themselves and then average their "
     "parameters,\n"
     "which divides the traffic by the number of steps. forerun reduces "
     "gradients in\n"
     "every step: it neither predicts nor runs local SGD.",
     "help data-parallel, help asynchronous"},
    {"lora", "peft,qlora,adapters",
     "Low-rank adapters are trained while the weights of the model stay as "
     "they are,\n"
     "so gradients and optimizer state exist for the adapters alone. forerun "
     "has no\n"
     "input for adapters: it predicts and runs the training of all parameters, "
     "which\n"
     "needs more memory and more time.",
     "help optimizer-state"},
    {"mfu", "hfu,model flops utilization",
     "Model flop/s utilisation: the flop that the model needs (6 per parameter "
     "and\n"
     "token, and attention; nothing that is recomputed) per second over the "
     "peak of\n"
     "the devices.  HFU also counts recomputation.  30 to 50 % is typical for "
     "large\n"
     "models on H100.",
     "forerun simulate"},
    {"micro-batch", "mbs,microbatch",
     "The samples that go through the model at once on one data-parallel "
     "rank.\n"
     "Larger micro-batches make larger, faster products; activations grow "
     "with\n"
     "them, and a pipeline has fewer to fill its bubble.",
     "--micro-batch, help global-batch"},
    {"nvls", "nvlink sharp",
     "The NVLink switch adds the data of its GPUs (Hopper and later): an "
     "all-reduce\n"
     "moves little more than half of the bytes of a ring through each GPU's "
     "port.",
     "--collective, forerun collective"},
    {"offload", NULL,
     "Optimizer state or activations live in the host's memory; the price is "
     "the\n"
     "traffic over PCIe and the update on the host.",
     "--offload-optimizer, --offload-activations"},
    {"optimizer-state", "adam,master weights",
     "The state that the optimizer keeps besides the weights: with Adam in "
     "mixed\n"
     "precision 12 bytes per parameter (fp32 weights and two moments).  ZeRO "
     "1\n"
     "shards it over the data-parallel ranks.",
     "--optimizer, --zero, help zero"},
    {"oversubscription", NULL,
     "Bandwidth below a switch over that above it: 1 does not block; at 4 a\n"
     "quarter of the nodes' rate leaves the switch.",
     "forerun sweep"},
    {"parameter-server", "ps",
     "Servers hold the parameters; workers push gradients and pull the sums.  "
     "With\n"
     "s servers and n workers the busier link carries max(n/s, 1) payloads "
     "each\n"
     "way.",
     "--collective"},
    {"pipeline-parallel", "pp,pipeline parallelism",
     "The layers are divided into stages on different ranks; micro-batches go\n"
     "through them one after the other.  Little is sent, but stages wait: "
     "help\n"
     "bubble.",
     "--pp, --schedule, --layer-split"},
    {"profile", "calibration",
     "The measurements of 'forerun calibrate' on a machine: times of kernels "
     "by\n"
     "shape, of collectives by size, memory, storage.  Predictions with -p "
     "rest\n"
     "on it instead of datasheets.",
     "forerun calibrate, --profile"},
    {"rail", "rails",
     "NICs of the same number in all nodes, on a switch of their own: GPU i "
     "talks\n"
     "through NIC i without crossing another switch.",
     "help oversubscription"},
    {"recompute",
     "activation recomputation,activation checkpointing,gradient checkpointing",
     "The forward pass of a layer is run again before its backward pass, "
     "instead\n"
     "of keeping its activations: 'selective' only parts that are cheap for "
     "their\n"
     "bytes, 'full' whole layers, about a third more compute.",
     "--recompute, --recompute-parts"},
    {"reduce-scatter", "reducescatter",
     "Each rank ends with its part of the sum: gradients under ZeRO.  The "
     "other\n"
     "half of an all-reduce.",
     "help all-reduce, help zero"},
    {"ring", "ring all-reduce",
     "Members in a circle pass slices on: every link carries 2 (n-1)/n "
     "payloads of\n"
     "an all-reduce, in 2 (n-1) steps.  Best bandwidth for large payloads; "
     "the\n"
     "steps hurt small ones.",
     "--collective, help tree"},
    {"sequence-parallel", "sp",
     "In addition to tensor parallelism: norms and dropouts run on a part of "
     "the\n"
     "sequence each, which divides their activations; all-reduces become\n"
     "reduce-scatter and all-gather.",
     "--sequence-parallel, help tensor-parallel"},
    {"sharp", "in-network reduction,collnet",
     "The switches of the network add the data of the nodes (NVIDIA's SHARP; "
     "<fabric\n"
     "sharp=\"yes\">): an all-reduce takes one way up and down, whatever the "
     "number of\n"
     "nodes.  NCCL takes it with NCCL_COLLNET_ENABLE=1.",
     "--collective, forerun collective"},
    {"staleness", "stale gradients",
     "The number of updates between the parameters that a gradient was "
     "computed with\n"
     "and the ones that it is added to. It is 0 in synchronous training, and "
     "forerun\n"
     "predicts and runs no other.",
     "help asynchronous"},
    {"straggler", "stragglers",
     "A rank that is slower than the others.  In synchronous training all wait "
     "for\n"
     "it; the waits are a part of their own in the breakdown of a step.",
     "help jitter"},
    {"tensor-parallel", "tp,tensor parallelism",
     "Each matrix is divided over ranks; the partial results of every layer "
     "are\n"
     "added by all-reduce, in forward and backward.  Best inside a node, "
     "where\n"
     "links are fast.",
     "--tp, help sequence-parallel"},
    {"tree", "double tree,double-tree",
     "Data go up and down a tree: about 2 log2(n) steps, fewer than a ring's.\n"
     "NCCL's are two trees with half of the payload each, so that all links "
     "work.",
     "--collective, help ring"},
    {"weak-scaling", "strong scaling",
     "Weak: the batch grows with the devices.  Strong: the batch stays, each\n"
     "device has less to do, and communication shows.",
     "forerun sweep --weak"},
    {"zero", "zero1,zero2,zero3,sharding",
     "ZeRO (Rajbhandari et al. 2020) shards the state that every data-parallel "
     "rank\n"
     "would hold: 1 the optimizer's state, 2 also gradients, 3 also "
     "parameters,\n"
     "which are gathered before use: 1.5 times the bytes of an all-reduce.",
     "--zero, help fsdp"},
    {"zero-bubble", "zb,zb-h1,zb-v",
     "Pipeline schedules that divide the backward pass into gradients of "
     "inputs,\n"
     "which other stages wait for, and gradients of weights, which fill the "
     "bubble\n"
     "(Qi et al. 2023).",
     "--schedule, help bubble"},
    {NULL, NULL, NULL, NULL}};

static bool is_passed_over(char c)
{
    return c == '-' || c == '_' || c == ' ';
}

/* Does `word` spell what stands at `name` up to its end or a comma? */
static bool is_spelt(const char *name, const char *word)
{
    for (;;) {
        while (is_passed_over(*name))
            name++;
        while (is_passed_over(*word))
            word++;
        bool is_end = *name == '\0' || *name == ',';
        if (is_end || *word == '\0')
            return is_end && *word == '\0';
        if (tolower((unsigned char)*name++) != tolower((unsigned char)*word++))
            return false;
    }
}

static bool has_spelling(const char *list, const char *word)
{
    for (const char *at = list; at != NULL && *at != '\0';) {
        if (is_spelt(at, word))
            return true;
        while (*at != '\0' && *at != ',')
            at++;
        at += *at == ',';
    }
    return false;
}

const fr_term *fr_glossary_find(const char *word)
{
    for (const fr_term *t = fr_glossary; t->name != NULL; t++)
        if (is_spelt(t->name, word) || has_spelling(t->also, word))
            return t;
    return NULL;
}
