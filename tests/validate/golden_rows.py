#!/usr/bin/env python3
"""golden_rows.py MEGATRON FILE...: configurations of the rows of Megatron-LM's
golden values, each column from the model_config.yaml beside the values that the
row names (MEGATRON: a clone of github.com/NVIDIA/Megatron-LM).  Rewrites the
files; measured columns, GPUs and everything of other sources stay.

Rows of more than one configuration are named and left as they are.
"""
import csv
import re
import subprocess
import sys

SOURCE = "Megatron-LM golden values"
TEXT_OF_BERT = 30522
# vocab.json of the data that the tests read is GPT-2's.
GPT2_VOCAB = 50257


def config_of(clone, source_ref):
    """The arguments of the training that the values are of; None: several."""
    commit, path = re.match(r".*@(\w+):(\S+)/[^/]+\.json", source_ref).groups()
    text = subprocess.run(
        ["git", "-C", clone, "show", f"{commit}:{path}/model_config.yaml"],
        stdout=subprocess.PIPE, check=True).stdout.decode()
    arguments, section = {}, ""
    if "MODEL_ARGS_2:" in text:
        return None
    for line in text.splitlines():
        if re.match(r"\w", line):
            section = line.split(":")[0]
        found = re.match(r"\s+--([\w-]+):\s*(.*?)(\s+#.*)?$", line)
        if found and section == "MODEL_ARGS":
            arguments[found.group(1)] = found.group(2).strip("\"'")
        found = re.match(r"\s+(\w+):\s*(\S+)", line)
        if found and section == "ENV_VARS":
            arguments[found.group(1)] = found.group(2)
    return arguments


class Config:
    def __init__(self, arguments):
        self.arguments = arguments
        self.is_deterministic = (
            arguments.get("NVTE_ALLOW_NONDETERMINISTIC_ALGO") == "0"
            or self.has("deterministic-mode"))

    def has(self, name):
        return self.arguments.get(name, "false").lower() == "true"

    def text(self, name, other=""):
        return self.arguments.get(name, other)

    def number(self, name, other=0):
        return int(self.arguments.get(name, other))


def layers_of_stages(c):
    """Layers of each virtual stage in the model's order; None: all alike."""
    n, pp = c.number("num-layers"), c.number("pipeline-model-parallel-size", 1)
    layout = c.text("pipeline-model-parallel-layout")
    if layout:
        again = True
        while again:
            layout, again = re.subn(r"(\w|\([^()]*\))\*(\d+)",
                                    lambda m: m[1].strip("()") * int(m[2]),
                                    layout)
        return [stage.count("t") for stage in layout.strip("|").split("|")]
    first = c.text("decoder-first-pipeline-num-layers")
    last = c.text("decoder-last-pipeline-num-layers")
    if not first and not last:
        return None
    ends = [int(x) for x in (first, last) if x]
    each = (n - sum(ends)) // (pp - len(ends))
    return ([int(first)] if first else []) + [each] * (pp - len(ends)) + (
        [int(last)] if last else [])


def chunks_of(c, stages):
    pp, n = c.number("pipeline-model-parallel-size", 1), c.number("num-layers")
    each = c.number("num-layers-per-virtual-pipeline-stage")
    if stages is not None:
        return max(len(stages) // pp, 1)
    if each > 0:
        return n // pp // each
    return c.number("num-virtual-stages-per-pipeline-rank", 1)


def attention_of(c):
    """Transformer Engine's unless the specification is the local one, whose
    attention is products and a softmax."""
    backend, impl = c.text("attention-backend"), c.text("transformer-impl")
    if backend in ("unfused", "local"):
        return f"unfused (--attention-backend {backend})"
    if impl == "local" and not c.has("use-flash-attn"):
        return "unfused (--transformer-impl local)"
    return "TE/fused"


def recompute_of(c):
    kind = c.text("recompute-granularity")
    if c.has("recompute-activations"):
        kind = "selective"
    modules = c.text("recompute-modules").strip("[]").split()
    if kind == "full":
        return "full ({} {})".format(c.text("recompute-method", "uniform"),
                                     c.number("recompute-num-layers", 1))
    if kind == "selective" and modules:
        return "selective ({})".format(" + ".join(modules))
    return kind or "none"


def precision_of(c):
    if c.text("fp8-format"):
        recipe = c.text("fp8-recipe", "delayed")
        return {"blockwise": "fp8 fine-grained", "tensorwise": "fp8 tensorwise",
                "mxfp8": "mxfp8"}.get(recipe, "fp8")
    return "bf16" if c.has("bf16") else "fp16" if c.has("fp16") else "fp32"


def zero_of(c, row, n_model):
    if c.has("use-megatron-fsdp"):
        return "Megatron FSDP"
    if not c.has("use-distributed-optimizer"):
        return "0"
    parts = c.number("num-distributed-optimizer-instances", 1)
    n_data = int(row["num_gpus"] or 0) // n_model
    if parts > 1 and n_data > parts:
        return f"1 over {n_data // parts} ranks (distributed optimizer)"
    return "1 (distributed optimizer)"


def vocab_of(c, name):
    if c.text("vocab-size"):
        return c.text("vocab-size")
    if c.text("tokenizer-type"):
        return c.text("tokenizer-type")
    unit = c.number("make-vocab-size-divisible-by", 128)
    unit *= c.number("tensor-model-parallel-size", 1)
    vocab = TEXT_OF_BERT if name.startswith("bert") else GPT2_VOCAB
    return str((vocab + unit - 1) // unit * unit)


def arch_of(c, row, n_experts):
    bert = row["model"].startswith("bert")
    words = ["moe" if n_experts else "bert" if bert else "gpt"]
    words.append("rope" if c.text("position-embedding-type") == "rope"
                 else "learned positions")
    words.append("RMSNorm" if c.text("normalization") == "RMSNorm"
                 else "LayerNorm")
    words.append("no biases" if c.has("disable-bias-linear") else "biases")
    words.append("untied" if c.has("untie-embeddings-and-output-weights")
                 else "tied")
    if c.has("squared-relu"):
        words.append("squared relu")
    if c.has("multi-latent-attention"):
        words.append("MLA")
        for option in ("q-lora-rank", "kv-lora-rank", "qk-head-dim",
                       "qk-pos-emb-head-dim", "v-head-dim"):
            if c.text(option):
                words.append(f"{c.text(option)} {option.replace('lora-', '')}")
    else:
        if c.has("qk-layernorm"):
            words.append("qk norm")
        if c.text("kv-channels"):
            words.append(f"{c.text('kv-channels')} kv-channels")
    if n_experts:
        dense = re.match(r"\(\[0\]\*(\d+)", c.text("moe-layer-freq"))
        words.append(f"{dense[1] if dense else 0} dense first")
    words.append(f"{c.number('mtp-num-layers')} MTP")
    return ", ".join(words)


def options_of(c, stages):
    words = [f"overlap_grad_reduce={c.has('overlap-grad-reduce')}",
             f"overlap_param_gather={c.has('overlap-param-gather')}"]
    if c.text("cross-entropy-fusion-impl") == "te":
        words.append("cross_entropy_fusion_impl=te")
    for option in ("tp-comm-overlap", "moe-router-fusion", "moe-permute-fusion",
                   "overlap-moe-expert-parallel-comm", "fp8-param-gather"):
        if c.has(option):
            words.append(option.replace("-", "_") + "=True")
    if c.has("no-gradient-accumulation-fusion"):
        words.append("gradient_accumulation_fusion=False")
    if c.text("hidden-dropout", "0.1") == c.text("attention-dropout",
                                                 "0.1") == "0.0":
        words.append("dropout=0")
    if c.has("fine-grained-activation-offloading"):
        words.append("activation_offload=True")
    if c.text("cuda-graph-impl"):
        modules = c.text("cuda-graph-modules").strip("[]").split()
        words.append("CUDA graphs ({})".format(" + ".join(modules)))
    if stages is not None:
        words.append("layer_split=" + ",".join(str(n) for n in stages))
    if c.text("optimizer"):
        words.append("optimizer=" + c.text("optimizer"))
    if c.text("export-kd-teacher-load"):
        words.append("teacher=True")
    if c.is_deterministic:
        words.append("deterministic=True")
    return " ".join(words)


def apply(c, row):
    hidden, swiglu = c.number("hidden-size"), c.has("swiglu")
    heads, n_experts = c.number("num-attention-heads"), c.number("num-experts")
    latent = c.has("multi-latent-attention")
    grouped = c.has("group-query-attention") and not latent
    usual = 4 * hidden * 2 // 3 // 64 * 64 if swiglu else 4 * hidden
    ffn = c.number("ffn-hidden-size", usual)
    expert_ffn = c.number("moe-ffn-hidden-size", ffn)
    shared = c.number("moe-shared-expert-intermediate-size")
    tp, pp = (c.number(f"{x}-model-parallel-size", 1)
              for x in ("tensor", "pipeline"))
    cp = c.number("context-parallel-size", 1)
    stages = layers_of_stages(c)
    row.update({
        "layers": c.number("num-layers"), "hidden": hidden, "heads": heads,
        "kv_heads": c.number("num-query-groups", heads) if grouped else heads,
        "ffn": ffn, "ffn_matrices": 3 if swiglu else 2,
        "vocab": vocab_of(c, row["model"]),
        "seq": c.number("seq-length", c.number("encoder-seq-length")),
        "experts": n_experts or "",
        "topk": c.number("moe-router-topk", 2) if n_experts else "",
        "moe_ffn": expert_ffn if n_experts else "",
        "shared_experts": f"{shared / expert_ffn:g}" if shared else "",
        "dp": "", "tp": tp, "pp": pp, "cp": cp,
        "vpp": chunks_of(c, stages),
        "ep": c.number("expert-model-parallel-size", 1),
        "etp": c.text("expert-tensor-parallel-size") if n_experts else "",
        "sp": "yes" if c.has("sequence-parallel") else "no",
        "zero_stage": zero_of(c, row, tp * pp),
        "mbs": c.number("micro-batch-size"),
        "recompute": recompute_of(c), "precision": precision_of(c),
        "flash_attn": attention_of(c), "arch": arch_of(c, row, n_experts),
        "other_opts": options_of(c, stages)})
    if row["num_gpus"]:
        row["dp"] = int(row["num_gpus"]) // (tp * pp * cp)
    if not c.text("step-batch-size-schedule"):
        row["gbs"] = c.number("global-batch-size")


def main():
    clone, *files = sys.argv[1:]
    for name in files:
        with open(name, newline="") as file:
            end = "\r\n" if file.readline().endswith("\r\n") else "\n"
            file.seek(0)
            reader = csv.DictReader(file)
            rows, columns = list(reader), list(reader.fieldnames)
        columns += [x for x in ("arch", "other_opts") if x not in columns]
        for row in rows:
            if row["source"] != SOURCE:
                continue
            arguments = config_of(clone, row["source_ref"])
            if arguments is None:
                print(f"{row['row']}: several configurations")
            else:
                apply(Config(arguments), row)
        with open(name, "w", newline="") as file:
            writer = csv.DictWriter(file, columns, lineterminator=end,
                                    restval="", extrasaction="ignore")
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
