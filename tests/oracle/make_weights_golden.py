#!/usr/bin/python3
"""Makes weights/ and weights_golden.h: safetensors of tiny models of each
family that the runtime reads, and their loss.

    apt-get install python3-torch
    cd tests/oracle && /usr/bin/python3 make_weights_golden.py \
        > weights_golden.h

State dicts have the names and layouts of transformers' classes, and the
forward passes below are written on these names as transformers' modelling
files have them, in float64.
"""
import json
import math
import os
import struct

import torch
import torch.nn.functional as F

from numbers_drawn import uniform

torch.set_default_dtype(torch.float64)
SEQ = 12
SIZES = dict(num_hidden_layers=2, hidden_size=16, num_attention_heads=4,
             num_key_value_heads=2, intermediate_size=20, vocab_size=37,
             max_position_embeddings=16, rms_norm_eps=1e-5)


def llama(model_type, **more):
    return dict(SIZES, model_type=model_type, **more)


# name: config, dtype of the file, shards
MODELS = {
    "gpt2": (dict(model_type="gpt2", n_layer=2, n_embd=16, n_head=4,
                  vocab_size=37, n_positions=16), "F32", 1),
    "gpt_neox": (dict(model_type="gpt_neox", num_hidden_layers=2,
                      hidden_size=16, num_attention_heads=2,
                      intermediate_size=20, vocab_size=37, rotary_pct=0.25,
                      max_position_embeddings=16), "F16", 1),
    "llama": (llama("llama"), "F16", 3),
    "mistral": (llama("mistral", sliding_window=5), "BF16", 1),
    "qwen2": (llama("qwen2", tie_word_embeddings=True), "F32", 2),
    "qwen3": (llama("qwen3", head_dim=6), "BF16", 1),
    "gemma": (llama("gemma", head_dim=6), "F32", 1),
    "mixtral": (llama("mixtral", num_local_experts=4, num_experts_per_tok=2),
                "BF16", 2),
    "qwen2_moe": (llama("qwen2_moe", num_experts=4, num_experts_per_tok=2,
                        moe_intermediate_size=6,
                        shared_expert_intermediate_size=10), "F32", 1),
    "qwen3_moe": (llama("qwen3_moe", head_dim=6, num_experts=4,
                        num_experts_per_tok=2, moe_intermediate_size=6,
                        norm_topk_prob=True, decoder_sparse_step=2),
                  "F16", 1),
}
MODELS["deepseek_v3"] = (llama(
    "deepseek_v3", q_lora_rank=10, kv_lora_rank=8, qk_nope_head_dim=6,
    qk_rope_head_dim=4, v_head_dim=5, first_k_dense_replace=1,
    n_routed_experts=4, n_shared_experts=2, num_experts_per_tok=2,
    moe_intermediate_size=6, n_group=2, topk_group=1, topk_method="noaux_tc",
    routed_scaling_factor=2.5, norm_topk_prob=True, scoring_func="sigmoid"),
    "BF16", 2)
MODELS["deepseek_whole"] = (llama(
    "deepseek_v3", q_lora_rank=None, kv_lora_rank=8, qk_nope_head_dim=4,
    qk_rope_head_dim=6, v_head_dim=4, first_k_dense_replace=0,
    n_routed_experts=4, n_shared_experts=1, num_experts_per_tok=2,
    moe_intermediate_size=6, n_group=1, topk_group=1, topk_method="noaux_tc",
    routed_scaling_factor=1.5, norm_topk_prob=False, scoring_func="sigmoid"),
    "F32", 1)
MODELS["deepseek_mtp"] = (dict(MODELS["deepseek_v3"][0],
                               num_nextn_predict_layers=1), "BF16", 1)
MODELS["bert"] = (dict(model_type="bert", architectures=["BertForMaskedLM"],
                       num_hidden_layers=2, hidden_size=16,
                       num_attention_heads=4, intermediate_size=20,
                       vocab_size=37, max_position_embeddings=16), "F32", 1)
MODELS["bert_order"] = (dict(MODELS["bert"][0],
                             architectures=["BertForPreTraining"]), "F32", 2)
MODELS["vit"] = (dict(model_type="vit", num_hidden_layers=2, hidden_size=16,
                      num_attention_heads=4, intermediate_size=20,
                      image_size=16, patch_size=4, num_channels=3,
                      num_labels=7), "BF16", 2)
DTYPES = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}


class StateDict:
    """Tensors are made where the forward pass first asks for them."""

    def __init__(self, dtype):
        self.w, self.dtype = {}, DTYPES[dtype]

    def get(self, name, *shape, base=0.0, amplitude=0.3):
        if name not in self.w:
            n = math.prod(shape)
            i = torch.arange(n).double()
            phase = 0.37 * len(self.w) + 0.1
            w = base + amplitude * torch.sin(phase + 2.39996322973 * i
                                             + 0.00137 * i * i)
            self.w[name] = w.reshape(shape).to(self.dtype)
        return self.w[name].double()

    def linear(self, x, name, n_out, bias=False):
        y = x @ self.get(name + ".weight", n_out, x.shape[-1]).T
        return y + self.get(name + ".bias", n_out) if bias else y

    def conv1d(self, x, name, n_out):
        """transformers.pytorch_utils.Conv1D: the weight is (in, out)."""
        return (x @ self.get(name + ".weight", x.shape[-1], n_out)
                + self.get(name + ".bias", n_out))

    def layer_norm(self, x, name, eps):
        n = x.shape[-1]
        w = self.get(name + ".weight", n, base=1.0, amplitude=0.2)
        return F.layer_norm(x, [n], w, self.get(name + ".bias", n), eps)

    def rms_norm(self, x, name, eps, is_gemma=False):
        base = 0.0 if is_gemma else 1.0
        w = self.get(name + ".weight", x.shape[-1], base=base, amplitude=0.2)
        x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)
        return x * (1.0 + w) if is_gemma else x * w


def attend(q, k, v, window=0):
    """Of (heads, T, d)."""
    t, d = q.shape[-2:]
    i, j = torch.arange(t)[:, None], torch.arange(t)[None, :]
    seen = j <= i
    if window:
        seen = seen & (i - j < window)
    score = (q @ k.transpose(-1, -2) / math.sqrt(d)).masked_fill(
        ~seen, -math.inf)
    return (torch.softmax(score, -1) @ v).transpose(0, 1).reshape(t, -1)


def rotate_half(x):
    a, b = x.chunk(2, -1)
    return torch.cat((-b, a), -1)


def rotary(x, n, theta=10000.0):
    inverse = 1.0 / theta ** (torch.arange(0, n, 2).double() / n)
    angle = torch.arange(x.shape[-2]).double()[:, None] * inverse
    angle = torch.cat((angle, angle), -1)
    turned = x[..., :n] * angle.cos() + rotate_half(x[..., :n]) * angle.sin()
    return torch.cat((turned, x[..., n:]), -1)


def gpt2_logits(s, c, x):
    n, heads, p = c["n_embd"], c["n_head"], ""  # files lack "transformer."
    embed = s.get(p + "wte.weight", c["vocab_size"], n)
    h = embed[x] + s.get(p + "wpe.weight", c["n_positions"], n)[:len(x)]
    for i in range(c["n_layer"]):
        b = f"{p}h.{i}."
        y = s.conv1d(s.layer_norm(h, b + "ln_1", 1e-5), b + "attn.c_attn",
                     3 * n)
        q, k, v = (part.view(len(x), heads, -1).transpose(0, 1)
                   for part in y.split(n, -1))
        h = h + s.conv1d(attend(q, k, v), b + "attn.c_proj", n)
        y = s.conv1d(s.layer_norm(h, b + "ln_2", 1e-5), b + "mlp.c_fc", 4 * n)
        h = h + s.conv1d(F.gelu(y, approximate="tanh"), b + "mlp.c_proj", n)
        mask = torch.tril(torch.ones(16, 16)).view(1, 1, 16, 16)
        s.w[b + "attn.bias"] = mask.to(torch.uint8)
    return s.layer_norm(h, p + "ln_f", 1e-5) @ embed.T


def neox_logits(s, c, x):
    n, heads = c["hidden_size"], c["num_attention_heads"]
    d, v = n // heads, c["vocab_size"]
    h = s.get("gpt_neox.embed_in.weight", v, n)[x]
    for i in range(c["num_hidden_layers"]):
        b = f"gpt_neox.layers.{i}."
        y = s.linear(s.layer_norm(h, b + "input_layernorm", 1e-5),
                     b + "attention.query_key_value", 3 * n, True)
        q, k, value = y.view(len(x), heads, 3 * d).transpose(0, 1).chunk(3, -1)
        turned = int(d * c["rotary_pct"])
        a = attend(rotary(q, turned), rotary(k, turned), value)
        a = s.linear(a, b + "attention.dense", n, True)
        m = s.linear(s.layer_norm(h, b + "post_attention_layernorm", 1e-5),
                     b + "mlp.dense_h_to_4h", c["intermediate_size"], True)
        h = h + a + s.linear(F.gelu(m), b + "mlp.dense_4h_to_h", n, True)
    h = s.layer_norm(h, "gpt_neox.final_layer_norm", 1e-5)
    return s.linear(h, "embed_out", v)


def gated(s, x, b, names, wide, act=F.silu):
    gate, up, down = (b + name for name in names)
    y = act(s.linear(x, gate, wide)) * s.linear(x, up, wide)
    return s.linear(y, down, x.shape[-1])


MLP = ("gate_proj", "up_proj", "down_proj")


def experts(s, c, x, b):
    is_mixtral = c["model_type"] == "mixtral"
    b += "block_sparse_moe." if is_mixtral else "mlp."
    n = c.get("num_experts", c.get("num_local_experts"))
    wide = c.get("moe_intermediate_size", c["intermediate_size"])
    w = torch.softmax(s.linear(x, b + "gate", n), -1)
    best, who = torch.topk(w, c["num_experts_per_tok"], -1)
    if is_mixtral or c.get("norm_topk_prob"):
        best = best / best.sum(-1, keepdim=True)
    out = 0
    for e in range(n):
        share = (best * (who == e)).sum(-1, keepdim=True)
        out = out + share * gated(s, x, f"{b}experts.{e}.",
                                  ("w1", "w3", "w2") if is_mixtral else MLP,
                                  wide)
    shared = c.get("shared_expert_intermediate_size")
    if shared:
        gate = torch.sigmoid(s.linear(x, b + "shared_expert_gate", 1))
        out = out + gate * gated(s, x, b + "shared_expert.", MLP, shared)
    return out


def llama_logits(s, c, x):
    kind, n, eps = c["model_type"], c["hidden_size"], c["rms_norm_eps"]
    heads, kv = c["num_attention_heads"], c["num_key_value_heads"]
    d, v = c.get("head_dim", n // heads), c["vocab_size"]
    is_gemma = kind == "gemma"
    has_bias = kind.startswith("qwen2")
    embed = s.get("model.embed_tokens.weight", v, n)
    h = embed[x] * (math.sqrt(n) if is_gemma else 1.0)
    for i in range(c["num_hidden_layers"]):
        b = f"model.layers.{i}."
        y = s.rms_norm(h, b + "input_layernorm", eps, is_gemma)
        q, k, value = (
            s.linear(y, f"{b}self_attn.{part}_proj", m * d, has_bias)
            .view(len(x), m, d).transpose(0, 1)
            for part, m in (("q", heads), ("k", kv), ("v", kv)))
        if kind.startswith("qwen3"):
            q = s.rms_norm(q, b + "self_attn.q_norm", eps)
            k = s.rms_norm(k, b + "self_attn.k_norm", eps)
        k, value = (part.repeat_interleave(heads // kv, 0)
                    for part in (rotary(k, d), value))
        a = attend(rotary(q, d), k, value, c.get("sliding_window", 0))
        h = h + s.linear(a, b + "self_attn.o_proj", n)
        y = s.rms_norm(h, b + "post_attention_layernorm", eps, is_gemma)
        every = c.get("decoder_sparse_step", 1)
        if ("num_experts_per_tok" in c) and (i + 1) % every == 0:
            h = h + experts(s, c, y, b)
        else:
            act = ((lambda z: F.gelu(z, approximate="tanh")) if is_gemma
                   else F.silu)
            h = h + gated(s, y, b + "mlp.", MLP, c["intermediate_size"], act)
    h = s.rms_norm(h, "model.norm", eps, is_gemma)
    if is_gemma or c.get("tie_word_embeddings"):
        return h @ embed.T
    return s.linear(h, "lm_head", v)


def interleaved(x, n):
    """apply_rotary_pos_emb_interleave of modeling_deepseek_v3."""
    heads, t, d = x.shape
    x = x.view(heads, t, d // 2, 2).transpose(3, 2).reshape(heads, t, d)
    return rotary(x, n)


def latent_attention(s, c, x, b):
    heads, t, eps = c["num_attention_heads"], len(x), c["rms_norm_eps"]
    nope, rope = c["qk_nope_head_dim"], c["qk_rope_head_dim"]
    rank, dv = c["kv_lora_rank"], c["v_head_dim"]
    if c["q_lora_rank"]:
        q = s.rms_norm(s.linear(x, b + "q_a_proj", c["q_lora_rank"]),
                       b + "q_a_layernorm", eps)
        q = s.linear(q, b + "q_b_proj", heads * (nope + rope))
    else:
        q = s.linear(x, b + "q_proj", heads * (nope + rope))
    q_own, q_turned = q.view(t, heads, -1).transpose(0, 1).split([nope, rope],
                                                                 -1)
    low, shared = s.linear(x, b + "kv_a_proj_with_mqa", rank + rope).split(
        [rank, rope], -1)
    kv = s.linear(s.rms_norm(low, b + "kv_a_layernorm", eps), b + "kv_b_proj",
                  heads * (nope + dv)).view(t, heads, -1).transpose(0, 1)
    k_own, v = kv.split([nope, dv], -1)
    k_turned = interleaved(shared[None], rope).expand(heads, -1, -1)
    q = torch.cat((q_own, interleaved(q_turned, rope)), -1)
    o = attend(q, torch.cat((k_own, k_turned), -1), v)
    return s.linear(o, b + "o_proj", c["hidden_size"])


def grouped_experts(s, c, x, b):
    """DeepseekV3TopkRouter and DeepseekV3MoE."""
    n, t = c["n_routed_experts"], len(x)
    scores = torch.sigmoid(x @ s.get(b + "gate.weight", n, x.shape[-1]).T)
    choice = scores + s.get(b + "gate.e_score_correction_bias", n)
    groups = choice.view(t, c["n_group"], -1)
    best = groups.topk(2, -1)[0].sum(-1).topk(c["topk_group"], -1)[1]
    mask = torch.zeros(t, c["n_group"]).scatter(1, best, 1)[..., None]
    choice = choice.masked_fill(~mask.expand_as(groups).reshape(t, n).bool(),
                                0.0)
    who = choice.topk(c["num_experts_per_tok"], -1)[1]
    w = scores.gather(1, who)
    if c["norm_topk_prob"]:
        w = w / (w.sum(-1, keepdim=True) + 1e-20)
    w = w * c["routed_scaling_factor"]
    wide = c["moe_intermediate_size"]
    out = gated(s, x, b + "shared_experts.", MLP,
                wide * c["n_shared_experts"])
    for e in range(n):
        share = (w * (who == e)).sum(-1, keepdim=True)
        out = out + share * gated(s, x, f"{b}experts.{e}.", MLP, wide)
    return out


def deepseek_block(s, c, h, i):
    b, eps = f"model.layers.{i}.", c["rms_norm_eps"]
    y = s.rms_norm(h, b + "input_layernorm", eps)
    h = h + latent_attention(s, c, y, b + "self_attn.")
    y = s.rms_norm(h, b + "post_attention_layernorm", eps)
    if i < c["first_k_dense_replace"]:
        return h + gated(s, y, b + "mlp.", MLP, c["intermediate_size"])
    return h + grouped_experts(s, c, y, b + "mlp.")


def deepseek_logits(s, c, x):
    eps, v, n = c["rms_norm_eps"], c["vocab_size"], c["hidden_size"]
    h = s.get("model.embed_tokens.weight", v, n)[x]
    for i in range(c["num_hidden_layers"]):
        h = deepseek_block(s, c, h, i)
    h = s.rms_norm(h, "model.norm", eps)
    logits = s.linear(h, "lm_head", v)
    if "num_nextn_predict_layers" in c:
        later_layer(s, c, x, h)
    return logits


def later_layer(s, c, x, h):
    """The layer behind the last, with copies of the embedding and of the head;
    its loss is not the one told."""
    eps, i = c["rms_norm_eps"], c["num_hidden_layers"]
    b = f"model.layers.{i}."
    for name, of in (("embed_tokens", "model.embed_tokens"),
                     ("shared_head.head", "lm_head")):
        s.w[f"{b}{name}.weight"] = s.w[of + ".weight"].clone()
    e = s.get(b + "embed_tokens.weight")[x]
    both = torch.cat([s.rms_norm(e, b + "enorm", eps),
                      s.rms_norm(h, b + "hnorm", eps)], -1)
    h = deepseek_block(s, c, s.linear(both, b + "eh_proj", c["hidden_size"]),
                       i)
    s.rms_norm(h, b + "shared_head.norm", eps)


def bert_logits(s, c, x):
    n, heads, e = c["hidden_size"], c["num_attention_heads"], "bert.embeddings."
    embed = s.get(e + "word_embeddings.weight", c["vocab_size"], n)
    h = embed[x] + s.get(e + "token_type_embeddings.weight", 2, n)[0]
    h = h + s.get(e + "position_embeddings.weight",
                  c["max_position_embeddings"], n)[:len(x)]
    h = s.layer_norm(h, e + "LayerNorm", 1e-12)
    for i in range(c["num_hidden_layers"]):
        b = f"bert.encoder.layer.{i}."
        q, k, v = (s.linear(h, f"{b}attention.self.{name}", n, True)
                   .view(len(x), heads, -1).transpose(0, 1)
                   for name in ("query", "key", "value"))
        score = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        a = (torch.softmax(score, -1) @ v).transpose(0, 1).reshape(len(x), n)
        a = s.linear(a, b + "attention.output.dense", n, True)
        h = s.layer_norm(h + a, b + "attention.output.LayerNorm", 1e-12)
        m = F.gelu(s.linear(h, b + "intermediate.dense",
                            c["intermediate_size"], True))
        m = s.linear(m, b + "output.dense", n, True)
        h = s.layer_norm(h + m, b + "output.LayerNorm", 1e-12)
    t = "cls.predictions.transform."
    order = None
    if "BertForPreTraining" in c["architectures"]:
        first = torch.tanh(s.linear(h[:1], "bert.pooler.dense", n, True))
        order = s.linear(first, "cls.seq_relationship", 2, True)
    h = F.gelu(s.linear(h, t + "dense", n, True))
    h = s.layer_norm(h, t + "LayerNorm", 1e-12)
    return (h @ embed.T + s.get("cls.predictions.bias", c["vocab_size"]),
            order)


def bert_loss(s, c, tokens):
    """Of four samples, whose masks and orders are drawn as the runtime draws
    them."""
    losses, has_order = [], "BertForPreTraining" in c["architectures"]
    for sample in range(4):
        y, label = tokens, int(uniform(1, 0, sample, 0) * 2)
        if has_order and label:
            y = torch.cat(y.chunk(2)[::-1])
        x = y.clone()
        for i in range(len(x)):
            if uniform(1, 0, sample, i + 1) < 0.15:
                x[i] = c["vocab_size"] - 1
        logits, order = bert_logits(s, c, x)
        losses.append(F.cross_entropy(logits, y).item())
        if has_order:
            losses[-1] += F.cross_entropy(order, torch.tensor([label])).item()
    # What files of the whole of BERT have besides.
    s.get("bert.pooler.dense.weight", 16, 16)
    s.w["bert.embeddings.position_ids"] = torch.arange(16).to(
        torch.uint8)[None, :]
    return sum(losses) / 4


def vit_logits(s, c, x):
    """x: the pixels of the first patches, channel by channel."""
    n, heads, e = c["hidden_size"], c["num_attention_heads"], "vit.embeddings."
    conv = s.get(e + "patch_embeddings.projection.weight", n,
                 c["num_channels"], c["patch_size"], c["patch_size"])
    x = x @ conv.flatten(1).T + s.get(e + "patch_embeddings.projection.bias", n)
    h = torch.cat((s.get(e + "cls_token", 1, 1, n)[0], x))
    seq = (c["image_size"] // c["patch_size"]) ** 2 + 1
    h = h + s.get(e + "position_embeddings", 1, seq, n)[0, :len(h)]
    for i in range(c["num_hidden_layers"]):
        b = f"vit.encoder.layer.{i}."
        y = s.layer_norm(h, b + "layernorm_before", 1e-12)
        q, k, v = (s.linear(y, f"{b}attention.attention.{name}", n, True)
                   .view(len(h), heads, -1).transpose(0, 1)
                   for name in ("query", "key", "value"))
        score = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        a = (torch.softmax(score, -1) @ v).transpose(0, 1).reshape(len(h), n)
        h = h + s.linear(a, b + "attention.output.dense", n, True)
        y = s.layer_norm(h, b + "layernorm_after", 1e-12)
        y = F.gelu(s.linear(y, b + "intermediate.dense",
                            c["intermediate_size"], True))
        h = h + s.linear(y, b + "output.dense", n, True)
    h = s.layer_norm(h, "vit.layernorm", 1e-12)
    return s.linear(h[:1], "classifier", c["num_labels"], True)


def vit_loss(s, c):
    """Of four of the runtime's made-up images."""
    cols, losses = c["num_channels"] * c["patch_size"] ** 2, []
    for sample in range(4):
        label = int(uniform(1, 0, sample, 0) * c["num_labels"])
        x = torch.tensor([uniform(1, label, 2**64 - 1, i)
                          + uniform(1, 0, sample, i) - 1.0
                          for i in range(SEQ * cols)])
        x = x.float().double().view(SEQ, cols)[1:]
        losses.append(F.cross_entropy(vit_logits(s, c, x),
                                      torch.tensor([label])).item())
    return sum(losses) / 4


# ---- files


def write_file(path, tensors):
    names = {torch.float32: "F32", torch.float16: "F16",
             torch.bfloat16: "BF16", torch.uint8: "U8"}
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, w in tensors.items():
        w = w.contiguous()
        raw = w.view(torch.int16) if w.dtype == torch.bfloat16 else w
        raw = raw.numpy().tobytes()
        header[name] = dict(dtype=names[w.dtype], shape=list(w.shape),
                            data_offsets=[len(data), len(data) + len(raw)])
        data += raw
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def write(folder, config, tensors, shards):
    os.makedirs(folder, exist_ok=True)
    with open(f"{folder}/config.json", "w", encoding="utf-8") as file:
        json.dump(config, file)
    if shards == 1:
        write_file(f"{folder}/model.safetensors", tensors)
        return
    names, where = list(tensors), {}
    each = -(-len(names) // shards)
    for i in range(shards):
        name = f"model-{i + 1:05}-of-{shards:05}.safetensors"
        part = names[i * each:(i + 1) * each]
        write_file(f"{folder}/{name}", {key: tensors[key] for key in part})
        where.update({key: name for key in part})
    with open(f"{folder}/model.safetensors.index.json", "w",
              encoding="utf-8") as file:
        json.dump({"metadata": {}, "weight_map": where}, file)


print("/* weights_golden.h: written by make_weights_golden.py with PyTorch "
      f"{torch.__version__}; not\n * to be edited.  Losses of the models in "
      f"weights/ on tokens\n * (7 i^2 + 3 i + 11) mod vocab, i = 0 .. {SEQ}. "
      "*/\n#ifndef FR_TESTS_WEIGHTS_GOLDEN_H\n"
      f"#define FR_TESTS_WEIGHTS_GOLDEN_H\n\nenum {{ WEIGHTS_SEQ = {SEQ} }};"
      "\n\nstatic const struct {\n    const char *name;\n    double loss;\n"
      "} weights_goldens[] = {")
for model, (config, dtype, shards) in MODELS.items():
    state = StateDict(dtype)
    i = torch.arange(SEQ + 1)
    tokens = (7 * i * i + 3 * i + 11) % config.get("vocab_size", 1)
    if config["model_type"] == "bert":
        loss = bert_loss(state, config, tokens[:-1])
    elif model == "vit":
        loss = vit_loss(state, config)
    else:
        logits = dict(gpt2=gpt2_logits, gpt_neox=neox_logits,
                      deepseek_v3=deepseek_logits).get(
            config["model_type"], llama_logits)(state, config, tokens[:-1])
        loss = F.cross_entropy(logits, tokens[1:]).item()
    write("weights/" + model, config, state.w, shards)
    print(f'    {{"{model}", {loss:.12g}}},')
print("};\n\n#endif")
