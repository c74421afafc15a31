#!/usr/bin/python3
"""Makes family_golden.h and image_golden.h: golden losses and gradients of tiny
models, one of each family that the runtime trains.

    apt-get install python3-torch
    /usr/bin/python3 tests/oracle/make_family_golden.py \
        > tests/oracle/family_golden.h
    /usr/bin/python3 tests/oracle/make_family_golden.py images \
        > tests/oracle/image_golden.h

Written with torch.nn.functional and autograd alone, in float64, from the
papers and Hugging Face's modelling code.  The models themselves are the
Hugging Face files that stand here, as text; weights and tokens follow the
formulas of family_golden_model.h.
"""
import json
import math
import sys

import torch
import torch.nn.functional as F

from numbers_drawn import uniform

torch.set_default_dtype(torch.float64)
STEPS, SAMPLES, SEQ = 4, 3, 24
LR, BETA1, BETA2, EPS, DECAY = 0.0031, 0.87, 0.963, 1.3e-7, 0.071

SIZES = dict(num_hidden_layers=2, hidden_size=32, num_attention_heads=4,
             num_key_value_heads=2, intermediate_size=80, vocab_size=97,
             max_position_embeddings=64, rms_norm_eps=1e-5)


def family(model_type, **more):
    return dict(SIZES, model_type=model_type, **more)


def op(kind, **more):
    return dict(op=kind, **more)


def conv(channels, kernel, stride, padding, **more):
    return op("conv", channels=channels, kernel=kernel, stride=stride,
              padding=padding, **more)


def norm(**more):
    return op("batch_norm", **more)


def cnn(image, channels, *layers):
    return dict(schema="forerun.model/1", name="cnn", kind="layers",
                image_size=image, n_channels=channels, layers=list(layers))


FAMILIES = {
    "qwen2": family("qwen2", tie_word_embeddings=True),
    "qwen3": family("qwen3", head_dim=12, rope_theta=5e5),
    "neox": dict(family("gpt_neox", num_key_value_heads=4, rotary_pct=0.5,
                        layer_norm_eps=1e-5)),
    "gemma": family("gemma", head_dim=12, num_key_value_heads=1),
    "mistral": family("mistral", sliding_window=7),
    "mixtral": family("mixtral", intermediate_size=44, num_local_experts=5,
                      num_experts_per_tok=2),
    "qwen2_moe": family("qwen2_moe", num_experts=6, num_experts_per_tok=3,
                        moe_intermediate_size=28,
                        shared_expert_intermediate_size=36),
    "qwen3_moe": family("qwen3_moe", head_dim=12, num_experts=4,
                        num_experts_per_tok=2, moe_intermediate_size=28,
                        norm_topk_prob=True, decoder_sparse_step=2),
    "llama3": family("llama", rope_scaling=dict(
        rope_type="llama3", factor=8.0, low_freq_factor=1.0,
        high_freq_factor=4.0, original_max_position_embeddings=20)),
    "yarn": family("qwen3", head_dim=12, rope_theta=100.0, rope_scaling=dict(
        rope_type="yarn", factor=4.0, beta_fast=2.0, beta_slow=0.1,
        original_max_position_embeddings=20)),
    "dynamic": family("llama", rope_scaling=dict(
        rope_type="dynamic", factor=3.0,
        original_max_position_embeddings=16)),
    "bert": dict(model_type="bert", architectures=["BertForMaskedLM"],
                 num_hidden_layers=2, hidden_size=32, num_attention_heads=4,
                 num_key_value_heads=4, intermediate_size=80, vocab_size=97,
                 max_position_embeddings=64, layer_norm_eps=1e-12),
    "bert_order": dict(model_type="bert",
                       architectures=["BertForPreTraining"],
                       num_hidden_layers=2, hidden_size=32,
                       num_attention_heads=4, num_key_value_heads=4,
                       intermediate_size=80, vocab_size=97,
                       max_position_embeddings=64, layer_norm_eps=1e-12),
    "mixtral_aux": family("mixtral", intermediate_size=44, num_local_experts=5,
                          num_experts_per_tok=2, output_router_logits=True,
                          router_aux_loss_coef=0.37),
    "qwen3_aux": family("qwen3_moe", head_dim=12, num_experts=4,
                        num_experts_per_tok=2, moe_intermediate_size=28,
                        norm_topk_prob=True, decoder_sparse_step=2,
                        output_router_logits=True, router_aux_loss_coef=0.29),
    "mixtral_capped": family("mixtral", intermediate_size=44,
                             num_local_experts=5, num_experts_per_tok=2,
                             expert_capacity=0.8),
    "mixtral_capped": family("mixtral", intermediate_size=44,
                             num_local_experts=5, num_experts_per_tok=2,
                             expert_capacity=0.8),
    "vit": dict(model_type="vit", num_hidden_layers=2, hidden_size=32,
                num_attention_heads=4, intermediate_size=80, vocab_size=97,
                image_size=23, patch_size=4, num_channels=2, num_labels=5,
                layer_norm_eps=1e-12),
    "deepseek": family("deepseek_v3", q_lora_rank=20, kv_lora_rank=16,
                       qk_nope_head_dim=8, qk_rope_head_dim=6, v_head_dim=10,
                       first_k_dense_replace=1, n_routed_experts=8,
                       n_shared_experts=1, num_experts_per_tok=3,
                       moe_intermediate_size=28, n_group=4, topk_group=2,
                       topk_method="noaux_tc", routed_scaling_factor=2.5),
    "deepseek2": family("deepseek_v3", q_lora_rank=None, kv_lora_rank=16,
                        qk_nope_head_dim=6, qk_rope_head_dim=8, v_head_dim=8,
                        first_k_dense_replace=1, n_routed_experts=6,
                        n_shared_experts=2, num_experts_per_tok=2,
                        moe_intermediate_size=28, n_group=3, topk_group=2,
                        scoring_func="softmax", norm_topk_prob=False,
                        routed_scaling_factor=1.7),
    "deepseek_mtp": family("deepseek_v3", q_lora_rank=20, kv_lora_rank=16,
                           qk_nope_head_dim=8, qk_rope_head_dim=6,
                           v_head_dim=10, first_k_dense_replace=1,
                           n_routed_experts=6, n_shared_experts=1,
                           num_experts_per_tok=2, moe_intermediate_size=28,
                           n_group=1, topk_group=1, routed_scaling_factor=1.3,
                           aux_loss_alpha=0.29, num_nextn_predict_layers=1),
    "deepseek_yarn": family(
        "deepseek_v3", q_lora_rank=20, kv_lora_rank=16, qk_nope_head_dim=6,
        qk_rope_head_dim=8, v_head_dim=8, first_k_dense_replace=2,
        n_routed_experts=6, n_shared_experts=1, num_experts_per_tok=2,
        moe_intermediate_size=28, n_group=3, topk_group=2, rope_theta=100.0,
        rope_scaling=dict(type="yarn", factor=5.0, beta_fast=2, beta_slow=0.1,
                          mscale=0.8, mscale_all_dim=1.3,
                          original_max_position_embeddings=16)),
    "relu2": family("llama", hidden_act="relu2", mlp_bias=True,
                    attention_bias=True),
}

IMAGES = {
    "resnet": cnn(13, 2, dict(name="stem", ops=[
        conv(8, 5, 2, 2), norm(), op("relu"),
        op("max_pool", kernel=3, stride=2, padding=1)]),
        dict(name="block", repeat=2, ops=[
            conv(8, 3, 1, 1, groups=2), norm(), op("relu"),
            conv(8, 3, 1, 1), norm(), op("add"), op("relu")]),
        dict(name="narrow", ops=[
            conv(12, 1, 2, 0, shortcut=True), norm(shortcut=True),
            conv(6, 1, 1, 0), norm(), op("relu"),
            conv(6, 3, 2, 1), norm(), op("relu"),
            conv(12, 1, 1, 0), norm(), op("add"), op("relu")]),
        dict(name="head", ops=[op("avg_pool", kernel=2),
                               op("linear", channels=5, bias=True)])),
    "vgg": cnn(11, 3, dict(name="conv1", ops=[
        conv(6, 3, 1, 1, bias=True), op("relu")]),
        dict(name="conv2", ops=[
            conv(10, 3, 1, 1, bias=True), op("relu"),
            op("max_pool", kernel=2, stride=2)]),
        dict(name="fc1", ops=[
            op("linear", channels=14, bias=True), op("relu")]),
        dict(name="fc2", ops=[op("linear", channels=4, bias=True)])),
}


class Model:
    """Sizes and features, and the tensors in the order of their phases."""

    def __init__(self, config):
        c = self.config = config
        self.type = c["model_type"]
        self.c, self.f = c["hidden_size"], c["intermediate_size"]
        self.heads = c["num_attention_heads"]
        self.kv = c.get("num_key_value_heads", self.heads)
        self.d = c.get("head_dim", self.c // self.heads)
        self.v, self.layers = c["vocab_size"], c["num_hidden_layers"]
        self.is_neox = self.type in ("gpt_neox", "bert", "vit")
        self.eps = c["layer_norm_eps"] if self.is_neox else c["rms_norm_eps"]
        self.theta = c.get("rope_theta", 10000.0)
        self.rotated = int(self.d * c.get("rotary_pct", 1.0))
        self.window = c.get("sliding_window", 0)
        self.is_tied = c.get("tie_word_embeddings", self.type == "gemma")
        self.has_qk_norm = self.type.startswith("qwen3")
        self.experts = c.get("num_local_experts", c.get("num_experts", 0))
        self.top_k = c.get("num_experts_per_tok", 0)
        self.wide = c.get("moe_intermediate_size", self.f)
        self.shared = c.get("shared_expert_intermediate_size", 0)
        self.routed, self.later = [], 0
        self.specs, self.w = [], {}
        self.layer = "h" if self.is_neox else "layers"
        self.name_tensors()
        for i, (name, rows, cols, base, amplitude) in enumerate(self.specs):
            self.w[name] = weight(0.37 * i + 0.1, rows, cols, base, amplitude)

    def add(self, name, rows, cols, base=0.0, amplitude=0.2):
        self.specs.append((name, rows, cols, base, amplitude))

    def add_norm(self, name, width):
        self.add(name + ".weight", 1, width, 1.0, 0.21)
        if self.is_neox:
            self.add(name + ".bias", 1, width, 0.0, 0.11)

    def add_linear(self, name, rows, cols, has_bias):
        self.add(name + ".weight", rows, cols, 0.0, 1.3 / math.sqrt(cols))
        if has_bias:
            self.add(name + ".bias", 1, rows, 0.0, 0.13)

    def name_tensors(self):
        c, q = self.c, self.heads * self.d
        qkv = q + 2 * self.kv * self.d
        has_bias = self.is_neox or self.config.get("attention_bias", False)
        has_qkv_bias = has_bias or self.type in ("qwen2", "qwen2_moe")
        has_mlp_bias = self.is_neox or self.config.get("mlp_bias", False)
        self.add("wte.weight" if self.is_neox else "embed_tokens.weight",
                 self.v, c, 0.0, 0.31)
        for i in range(self.layers):
            p = f"{self.layer}.{i}."
            n = self.names(p)
            self.add_norm(n["norm1"], c)
            self.add_norm(n["norm2"], c)
            if self.has_qk_norm:
                self.add(p + "q_norm", 1, self.d, 1.0, 0.3)
                self.add(p + "k_norm", 1, self.d, 1.0, 0.3)
            self.add_linear(n["qkv"], qkv, c, has_qkv_bias)
            self.add_linear(n["out"], c, q, has_bias)
            if self.is_moe(i):
                self.name_experts(p)
                continue
            fc1 = self.f if self.is_neox else 2 * self.f
            self.add_linear(n["fc1"], fc1, c, has_mlp_bias)
            self.add_linear(n["fc2"], c, self.f, has_mlp_bias)
        self.add_norm("ln_f" if self.is_neox else "norm", c)
        if not self.is_tied:
            self.add("lm_head.weight", self.v, c, 0.0, 0.29)

    def is_moe(self, i):
        every = self.config.get("decoder_sparse_step", 1)
        return self.experts > 0 and (i + 1) % every == 0

    def name_experts(self, p):
        """Matrices of all experts are stacked: gate, up of the first ..."""
        c, n = self.c, self.experts
        self.add(p + "router", n, c, 0.0, 0.31)
        self.add(p + "experts_up", n * 2 * self.wide, c, 0.0, 0.23)
        self.add(p + "experts_down", n * c, self.wide, 0.0, 0.21)
        if self.shared:
            self.add(p + "shared_gate", 1, c, 0.0, 0.29)
            self.add(p + "shared_up", 2 * self.shared, c, 0.0, 0.22)
            self.add(p + "shared_down", c, self.shared, 0.0, 0.24)

    def names(self, p):
        if self.is_neox:
            return dict(norm1=p + "ln_1", norm2=p + "ln_2",
                        qkv=p + "attn.c_attn", out=p + "attn.c_proj",
                        fc1=p + "mlp.c_fc", fc2=p + "mlp.c_proj")
        return dict(norm1=p + "input_layernorm",
                    norm2=p + "post_attention_layernorm",
                    qkv=p + "self_attn.qkv_proj", out=p + "self_attn.o_proj",
                    fc1=p + "mlp.gate_up_proj", fc2=p + "mlp.down_proj")

    # ---- arithmetic

    def norm(self, x, name):
        w = self.w[name + ".weight"][0]
        if self.is_neox:
            b = self.w[name + ".bias"][0]
            return F.layer_norm(x, [self.c], w, b, self.eps)
        return rms_norm(x, w, self.eps)

    def linear(self, x, name):
        b = self.w.get(name + ".bias")
        return F.linear(x, self.w[name + ".weight"],
                        None if b is None else b[0])

    def act(self, x):
        name = self.config.get("hidden_act")
        if self.type == "gemma":
            return F.gelu(x, approximate="tanh")
        if self.is_neox:
            return F.gelu(x)
        return F.relu(x) ** 2 if name == "relu2" else F.silu(x)

    def rotate(self, x):
        """Rotary positions of x[heads, T, d]: the first `rotated` columns."""
        n = self.rotated
        half = n // 2
        inverse, factor = frequencies(self.theta, n, x.shape[-2], self.config)
        angle = torch.arange(x.shape[-2]).double()[:, None] * inverse[None, :]
        co, si = factor * torch.cos(angle), factor * torch.sin(angle)
        a, b, rest = x[..., :half], x[..., half:n], x[..., n:]
        return torch.cat([a * co - b * si, b * co + a * si, rest], dim=-1)

    def attention(self, x, p):
        t, d = x.shape[0], self.d
        n = self.names(p)
        qkv = self.linear(x, n["qkv"])
        q, k, v = qkv.split([self.heads * d, self.kv * d, self.kv * d], dim=-1)
        q, k, v = (a.view(t, -1, d).transpose(0, 1) for a in (q, k, v))
        if self.has_qk_norm:
            q = rms_norm(q, self.w[p + "q_norm"][0], self.eps)
            k = rms_norm(k, self.w[p + "k_norm"][0], self.eps)
        q, k = self.rotate(q), self.rotate(k)
        k = k.repeat_interleave(self.heads // self.kv, dim=0)
        v = v.repeat_interleave(self.heads // self.kv, dim=0)
        i, j = torch.arange(t)[:, None], torch.arange(t)[None, :]
        seen = j <= i
        if self.window:
            seen = seen & (i - j < self.window)
        score = (q @ k.transpose(-1, -2)) / math.sqrt(d)
        o = torch.softmax(score.masked_fill(~seen, -math.inf), dim=-1) @ v
        return self.linear(o.transpose(0, 1).reshape(t, -1), n["out"])

    def aux_loss(self):
        """What is learned besides the loss that is told: that of Hugging Face
        over the tokens of all layers where a single one has experts, else its
        mean over layers, each by itself."""
        coef = self.config.get("router_aux_loss_coef", 0.0)
        losses = [hugging_face_balance(*layer) for layer in self.routed]
        return coef * sum(losses) / max(len(losses), 1)

    def gated(self, x, up, down):
        gate, up = F.linear(x, up).chunk(2, -1)
        return F.linear(F.silu(gate) * up, down)

    def moe(self, x, p):
        """Hugging Face's sparse blocks, expert by expert."""
        w = torch.softmax(F.linear(x, self.w[p + "router"]), dim=-1)
        best, who = torch.topk(w, self.top_k, dim=-1)
        self.routed.append((w, who))
        if self.type == "mixtral" or self.config.get("norm_topk_prob", False):
            best = best / best.sum(-1, keepdim=True)
        best = self.drop(best, who)
        up = self.w[p + "experts_up"].chunk(self.experts)
        down = self.w[p + "experts_down"].chunk(self.experts)
        out = torch.zeros_like(x)
        for e in range(self.experts):
            share = (best * (who == e)).sum(-1, keepdim=True)
            out = out + share * self.gated(x, up[e], down[e])
        if self.shared:
            own = self.gated(x, self.w[p + "shared_up"],
                             self.w[p + "shared_down"])
            gate = torch.sigmoid(F.linear(x, self.w[p + "shared_gate"]))
            out = out + gate * own
        return out

    def drop(self, best, who):
        """Megatron-LM's apply_router_token_dropping by probabilities; the plan
        of forerun's test has the same factor."""
        if "expert_capacity" not in self.config:
            return best
        t, capacity = len(who), self.config["expert_capacity"]
        capacity = math.ceil(t * self.top_k / self.experts * capacity)
        gates = torch.zeros(t, self.experts).scatter(1, who, best.detach())
        kept = torch.zeros_like(gates).scatter(
            0, gates.topk(capacity, 0)[1], 1.0)
        return best * kept.gather(1, who)

    def mlp(self, x, p):
        if p + "router" in self.w:
            return self.moe(x, p)
        n = self.names(p)
        h = self.linear(x, n["fc1"])
        if self.is_neox:
            return self.linear(self.act(h), n["fc2"])
        gate, up = h.split(self.f, -1)
        return self.linear(self.act(gate) * up, n["fc2"])

    def step_loss(self, step, flat):
        return self.loss(flat[:-1], flat[1:])

    def later_loss(self, h, y):
        return 0

    def block(self, h, p):
        n = self.names(p)
        a = self.attention(self.norm(h, n["norm1"]), p)
        if self.is_neox:
            return h + a + self.mlp(self.norm(h, n["norm2"]), p)
        h = h + a
        return h + self.mlp(self.norm(h, n["norm2"]), p)

    def end_step(self, gradients):
        """What is not trained has moved."""

    def loss(self, x, y):
        first = "wte.weight" if self.is_neox else "embed_tokens.weight"
        h = F.embedding(x, self.w[first])
        if self.type == "gemma":
            h = h * math.sqrt(self.c)
        for i in range(self.layers):
            h = self.block(h, f"{self.layer}.{i}.")
        h = self.norm(h, "ln_f" if self.is_neox else "norm")
        self.later = self.later_loss(h, y)
        head = self.w[first if self.is_tied else "lm_head.weight"]
        return F.cross_entropy(F.linear(h, head), y)


class DeepSeek(Model):
    """Latent attention, experts in groups (modeling_deepseek_v3; scores by
    softmax and groups by their best expert as in DeepSeek-V2)."""

    def name_tensors(self):
        g = self.config
        self.q_rank, self.kv_rank = g["q_lora_rank"] or 0, g["kv_lora_rank"]
        self.nope, self.rope = g["qk_nope_head_dim"], g["qk_rope_head_dim"]
        self.d, self.dv = self.nope + self.rope, g["v_head_dim"]
        self.rotated, self.experts = self.rope, g["n_routed_experts"]
        self.shared = g["n_shared_experts"] * self.wide
        self.has_bias = "topk_method" in g
        self.add("embed_tokens.weight", self.v, self.c, 0.0, 0.31)
        for i in range(self.layers):
            self.name_layer(f"layers.{i}.", i >= g["first_k_dense_replace"])
        if "num_nextn_predict_layers" in g:
            p = f"layers.{self.layers}."
            self.name_layer(p, True)
            for name in ("hnorm", "enorm", "last_norm"):
                self.add(p + name, 1, self.c, 1.0, 0.23)
            self.add(p + "eh_proj", self.c, 2 * self.c, 0.0, 0.19)
        self.add_norm("norm", self.c)
        self.add("lm_head.weight", self.v, self.c, 0.0, 0.29)

    def name_layer(self, p, is_moe):
        c, n = self.c, self.names(p)
        self.add_norm(n["norm1"], c)
        self.add_norm(n["norm2"], c)
        if self.q_rank:
            self.add(p + "q_norm", 1, self.q_rank, 1.0, 0.3)
            self.add(p + "q_a_proj", self.q_rank, c, 0.0, 0.23)
        self.add(p + "q_b_proj", self.heads * self.d, self.q_rank or c, 0.0,
                 0.29)
        self.add(p + "k_norm", 1, self.kv_rank, 1.0, 0.3)
        self.add(p + "kv_a_proj", self.kv_rank + self.rope, c, 0.0, 0.24)
        self.add(p + "kv_b_proj", self.heads * (self.nope + self.dv),
                 self.kv_rank, 0.0, 0.33)
        self.add_linear(n["out"], c, self.heads * self.dv, False)
        if not is_moe:
            self.add_linear(n["fc1"], 2 * self.f, c, False)
            self.add_linear(n["fc2"], c, self.f, False)
            return
        e = self.experts
        self.add(p + "router", e, c, 0.0, 0.31)
        if self.has_bias:
            self.add(p + "router_bias", 1, e, 0.0, 0.2)
        self.add(p + "experts_up", e * 2 * self.wide, c, 0.0, 0.23)
        self.add(p + "experts_down", e * c, self.wide, 0.0, 0.21)
        self.add(p + "shared_up", 2 * self.shared, c, 0.0, 0.22)
        self.add(p + "shared_down", c, self.shared, 0.0, 0.24)

    def aux_loss(self):
        """DeepSeek-V3's balance loss of a sequence, equations 17 to 20."""
        total = 0
        for p, who in self.routed:
            t, n = p.shape
            f = torch.bincount(who.flatten(), minlength=n) * n / (
                self.top_k * t)
            total = total + (f * p.mean(0)).sum()
        return self.config.get("aux_loss_alpha", 0.0) * total

    def later_loss(self, h, y):
        """Multi-token prediction of DeepSeek-V3, section 2.2, with the layout
        of eh_proj in its weights and lambda 0.3; of the last token no target
        is there."""
        if "num_nextn_predict_layers" not in self.config:
            return 0
        p = f"layers.{self.layers}."
        e = F.embedding(y, self.w["embed_tokens.weight"])
        both = torch.cat([rms_norm(e, self.w[p + "enorm"][0], self.eps),
                          rms_norm(h, self.w[p + "hnorm"][0], self.eps)], -1)
        g = self.block(F.linear(both, self.w[p + "eh_proj"]), p)
        g = rms_norm(g, self.w[p + "last_norm"][0], self.eps)
        logits = F.linear(g, self.w["lm_head.weight"])
        lost = F.cross_entropy(logits[:-1], y[1:], reduction="sum")
        return 0.3 * lost / len(y)

    def turn(self, x):
        """Pairs that lie side by side."""
        t, n = x.shape[-2], self.rope
        inverse, factor = frequencies(self.theta, n, t, self.config)
        angle = torch.arange(t).double()[:, None] * inverse[None, :]
        z = torch.view_as_complex(x.contiguous().view(*x.shape[:-1], -1, 2))
        z = z * torch.polar(torch.full_like(angle, factor), angle)
        return torch.view_as_real(z).flatten(-2)

    def attention(self, x, p):
        t, w = x.shape[0], self.w
        q = x
        if self.q_rank:
            q = rms_norm(F.linear(x, w[p + "q_a_proj"]), w[p + "q_norm"][0],
                         self.eps)
        q = F.linear(q, w[p + "q_b_proj"]).view(t, self.heads, -1)
        low = F.linear(x, w[p + "kv_a_proj"])
        low, shared = low.split([self.kv_rank, self.rope], -1)
        low = rms_norm(low, w[p + "k_norm"][0], self.eps)
        kv = F.linear(low, w[p + "kv_b_proj"]).view(t, self.heads, -1)
        k, v = kv.transpose(0, 1).split([self.nope, self.dv], -1)
        own, turned = q.transpose(0, 1).split([self.nope, self.rope], -1)
        shared = self.turn(shared[None]).expand(self.heads, -1, -1)
        q = torch.cat([own, self.turn(turned)], -1)
        k = torch.cat([k, shared], -1)
        seen = torch.ones(t, t).tril().bool()
        score = (q @ k.transpose(-1, -2)) / math.sqrt(self.d)
        scaling = self.config.get("rope_scaling", {})
        if scaling.get("mscale_all_dim"):
            score = score * yarn_mscale(scaling["factor"],
                                        scaling["mscale_all_dim"]) ** 2
        o = torch.softmax(score.masked_fill(~seen, -math.inf), dim=-1) @ v
        return self.linear(o.transpose(0, 1).reshape(t, -1),
                           self.names(p)["out"])

    def moe(self, x, p):
        g = self.config
        logits = F.linear(x, self.w[p + "router"])
        is_sigmoid = g.get("scoring_func", "sigmoid") == "sigmoid"
        scores = (torch.sigmoid(logits) if is_sigmoid
                  else torch.softmax(logits, -1))
        choice = scores.detach()
        if self.has_bias:
            choice = choice + self.w[p + "router_bias"][0].detach()
        grouped = choice.view(len(x), g["n_group"], -1)
        best = grouped.topk(2 if is_sigmoid else 1, -1)[0].sum(-1)
        chosen = torch.zeros_like(best).scatter(
            1, best.topk(g["topk_group"], -1)[1], 1.0)
        choice = grouped.masked_fill(chosen[..., None] == 0, -math.inf)
        who = choice.flatten(1).topk(self.top_k, -1)[1]
        self.routed.append((scores / scores.sum(-1, keepdim=True), who))
        w = scores.gather(1, who)
        if g.get("norm_topk_prob", True):
            w = w / w.sum(-1, keepdim=True)
        w = w * g["routed_scaling_factor"]
        up = self.w[p + "experts_up"].chunk(self.experts)
        down = self.w[p + "experts_down"].chunk(self.experts)
        out = self.gated(x, self.w[p + "shared_up"], self.w[p + "shared_down"])
        for e in range(self.experts):
            share = (w * (who == e)).sum(-1, keepdim=True)
            out = out + share * self.gated(x, up[e], down[e])
        return out


class Bert(Model):
    """BertForMaskedLM; the loss is that of all tokens."""

    def name_tensors(self):
        c = self.c
        self.is_tied = True
        self.add("wte.weight", self.v, c, 0.0, 0.31)
        self.add("wpe.weight", self.config["max_position_embeddings"], c, 0.0,
                 0.23)
        self.add("types", 2, c, 0.0, 0.17)
        self.add_pair("embed_norm", c)
        for i in range(self.layers):
            p = f"h.{i}."
            self.add_norm(p + "ln_1", c)
            self.add_norm(p + "ln_2", c)
            self.add_linear(p + "attn.c_attn", 3 * c, c, True)
            self.add_linear(p + "attn.c_proj", c, c, True)
            self.add_linear(p + "mlp.c_fc", self.f, c, True)
            self.add_linear(p + "mlp.c_proj", c, self.f, True)
        self.add("dense", c, c, 0.0, 0.27)
        self.add("dense_bias", 1, c, 0.0, 0.13)
        self.add_pair("dense_norm", c)
        self.add("vocab_bias", 1, self.v, 0.0, 0.12)
        self.has_order = "BertForPreTraining" in self.config["architectures"]
        if self.has_order:
            self.add("pooler", c, c, 0.0, 0.26)
            self.add("pooler_bias", 1, c, 0.0, 0.14)
            self.add("pair", 2, c, 0.0, 0.33)
            self.add("pair_bias", 1, 2, 0.0, 0.15)

    def add_pair(self, name, width):
        self.add(name, 1, width, 1.0, 0.21)
        self.add(name + "_bias", 1, width, 0.0, 0.11)

    def norm_pair(self, x, name):
        return F.layer_norm(x, [self.c], self.w[name][0],
                            self.w[name + "_bias"][0], self.eps)

    def attention(self, x, p):
        t = x.shape[0]
        q, k, v = (a.view(t, self.heads, -1).transpose(0, 1)
                   for a in self.linear(x, p + "attn.c_attn").chunk(3, -1))
        o = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(self.d), -1) @ v
        return self.linear(o.transpose(0, 1).reshape(t, -1), p + "attn.c_proj")

    def loss(self, x, y, label):
        h = F.embedding(x, self.w["wte.weight"])
        h = h + self.w["wpe.weight"][:len(x)] + self.w["types"][0]
        h = self.norm_pair(h, "embed_norm")
        for i in range(self.layers):
            p = f"h.{i}."
            h = self.norm(h + self.attention(h, p), p + "ln_1")
            wide = F.gelu(self.linear(h, p + "mlp.c_fc"))
            h = self.norm(h + self.linear(wide, p + "mlp.c_proj"), p + "ln_2")
        order = 0
        if self.has_order:
            first = torch.tanh(F.linear(h[:1], self.w["pooler"],
                                        self.w["pooler_bias"][0]))
            order = F.cross_entropy(
                F.linear(first, self.w["pair"], self.w["pair_bias"][0]),
                torch.tensor([label]))
        h = F.linear(h, self.w["dense"], self.w["dense_bias"][0])
        h = self.norm_pair(F.gelu(h), "dense_norm")
        h = F.linear(h, self.w["wte.weight"], self.w["vocab_bias"][0])
        return F.cross_entropy(h, y) + order

    def step_loss(self, step, flat):
        """Of two samples, whose masks and orders are drawn as the runtime
        draws them."""
        losses = []
        for sample in range(2):
            y, label = flat[:-1], int(uniform(1, step, sample, 0) * 2)
            if self.has_order and label:
                y = torch.cat(y.chunk(2)[::-1])
            x = y.clone()
            for i in range(len(x)):
                if uniform(1, step, sample, i + 1) < 0.15:
                    x[i] = self.v - 1
            losses.append(self.loss(x, y, label))
        return sum(losses) / 2


class Vit(Bert):
    """ViTForImageClassification of the runtime's made-up images; a sequence is
    its first patches."""

    def name_tensors(self):
        c, g = self.c, self.config
        self.cols = g["num_channels"] * g["patch_size"] ** 2
        seq = (g["image_size"] // g["patch_size"]) ** 2 + 1
        self.add("wpe.weight", seq, c, 0.0, 0.23)
        self.add("patch", c, self.cols, 0.0, 0.19)
        self.add("patch_bias", 1, c, 0.0, 0.13)
        self.add("first_token", 1, c, 0.0, 0.27)
        for i in range(self.layers):
            p = f"h.{i}."
            self.add_norm(p + "ln_1", c)
            self.add_norm(p + "ln_2", c)
            self.add_linear(p + "attn.c_attn", 3 * c, c, True)
            self.add_linear(p + "attn.c_proj", c, c, True)
            self.add_linear(p + "mlp.c_fc", self.f, c, True)
            self.add_linear(p + "mlp.c_proj", c, self.f, True)
        self.add_norm("ln_f", c)
        self.add("labels", g["num_labels"], c, 0.0, 0.33)
        self.add("labels_bias", 1, g["num_labels"], 0.0, 0.15)

    def image(self, step, sample, label):
        n = SEQ * self.cols
        x = [uniform(1, label, 2**64 - 1, i)
             + uniform(1, step, sample, i) - 1.0 for i in range(n)]
        return torch.tensor(x).float().double().view(SEQ, self.cols)[1:]

    def step_loss(self, step, flat):
        losses = []
        for sample in range(2):
            label = int(uniform(1, step, sample, 0) * self.config["num_labels"])
            x = F.linear(self.image(step, sample, label), self.w["patch"],
                         self.w["patch_bias"][0])
            h = torch.cat((self.w["first_token"], x))
            h = h + self.w["wpe.weight"][:SEQ]
            for i in range(self.layers):
                p = f"h.{i}."
                h = h + self.attention(self.norm(h, p + "ln_1"), p)
                wide = self.linear(self.norm(h, p + "ln_2"), p + "mlp.c_fc")
                h = h + self.linear(F.gelu(wide), p + "mlp.c_proj")
            h = F.linear(self.norm(h, "ln_f")[:1], self.w["labels"],
                         self.w["labels_bias"][0])
            losses.append(F.cross_entropy(h, torch.tensor([label])))
        return sum(losses) / 2


class Cnn(Model):
    """A list of layers that says what they compute, of the runtime's made-up
    images.  The batch norms of both samples are one; what stands in the place of
    a running statistic's gradient is how far PyTorch moves it."""

    def __init__(self, config):
        self.config, self.v = config, 97
        self.specs, self.w, self.moved, self.later = [], {}, {}, 0
        self.routed = []
        self.is_named = False
        self.step_loss(0, None)

    def tensor(self, name, rows, cols, base, amplitude):
        if not self.is_named:
            phase = 0.37 * len(self.specs) + 0.1
            self.add(name, rows, cols, base, amplitude)
            self.w[name] = weight(phase, rows, cols, base, amplitude)
            self.w[name].requires_grad_("running" not in name)
        return self.w[name]

    def product(self, o, p, cols):
        n = o["channels"]
        w = self.tensor(p + ".weight", n, cols, 0.0, 1.3 / math.sqrt(cols))
        b = (self.tensor(p + ".bias", 1, n, 0.0, 0.13)[0] if "bias" in o
             else None)
        return w, b

    def batch_norm(self, x, p):
        n = x.shape[1]
        w = self.tensor(p + ".weight", 1, n, 1.0, 0.21)[0]
        b = self.tensor(p + ".bias", 1, n, 0.0, 0.11)[0]
        names = [p + ".running_mean", p + ".running_var"]
        old = [self.tensor(names[0], 1, n, 0.0, 0.3),
               self.tensor(names[1], 1, n, 1.0, 0.3)]
        new = [t[0].clone() for t in old]
        y = F.batch_norm(x, *new, w, b, training=True, momentum=0.1, eps=1e-5)
        for name, before, after in zip(names, old, new):
            self.moved[name] = (before - after[None]) / 0.1
        return y

    def apply(self, o, x, p):
        kind, k = o["op"], o.get("kernel", 1)
        if kind == "conv":
            groups = o.get("groups", 1)
            w, b = self.product(o, p, x.shape[1] // groups * k * k)
            return F.conv2d(x, w.view(-1, x.shape[1] // groups, k, k), b,
                            o["stride"], o["padding"], 1, groups)
        if kind == "batch_norm":
            return self.batch_norm(x, p)
        if kind == "relu":
            return F.relu(x)
        if kind == "max_pool":
            return F.max_pool2d(x, k, o["stride"], o.get("padding", 0))
        if kind == "avg_pool":
            return F.avg_pool2d(x, k)
        flat = x.permute(0, 2, 3, 1).flatten(1) if x.dim() > 2 else x
        return F.linear(flat, *self.product(o, p, flat.shape[1]))

    def path(self, ops, x, p):
        n = {}
        for o in ops:
            n[o["op"]] = n.get(o["op"], 0) + 1
            x = self.apply(o, x, p + o["op"] + str(n[o["op"]]))
        return x

    def layer(self, ops, x, p):
        """Names count along each path; the shortcut's come first."""
        side = [o for o in ops if o.get("shortcut")]
        kinds = [o["op"] for o in ops]
        main = [o for o in ops if not o.get("shortcut")]
        if "add" not in kinds:
            return self.path(main, x, p)
        other = self.path(side, x, p + "shortcut.")
        at = [o["op"] for o in main].index("add")
        return F.relu(self.path(main[:at], x, p) + other)

    def image(self, step, sample, label):
        size, c = self.config["image_size"], self.config["n_channels"]
        x = [uniform(1, label, 2**64 - 1, i)
             + uniform(1, step, sample, i) - 1.0 for i in range(size**2 * c)]
        x = torch.tensor(x).float().double().view(size, size, c)
        return x.permute(2, 0, 1)

    def step_loss(self, step, flat):
        layers = self.config["layers"]
        n_labels = layers[-1]["ops"][-1]["channels"]
        labels = [int(uniform(1, step, i, 0) * n_labels) for i in range(2)]
        x = torch.stack([self.image(step, i, labels[i]) for i in range(2)])
        i = 0
        for layer in layers:
            for _ in range(layer.get("repeat", 1)):
                x = self.layer(layer["ops"], x, f"h.{i}.")
                i += 1
        self.is_named = True
        return F.cross_entropy(x, torch.tensor(labels))

    def end_step(self, gradients):
        """Statistics go a tenth of the way."""
        for name, gradient in self.moved.items():
            gradients[name] = gradient
            self.w[name] = self.w[name] - 0.1 * gradient


CLASSES = {"bert": Bert, "vit": Vit, "deepseek_v3": DeepSeek, "layers": Cnn}


def frequencies(theta, n, seq, config):
    """Of n columns; and what cosines and sines are multiplied by."""
    scaling = config.get("rope_scaling")
    inverse = theta ** (-torch.arange(n // 2).double() * 2 / n)
    kind = scaling and scaling.get("rope_type", scaling.get("type"))
    if kind == "llama3":
        return rescaled(inverse, scaling), 1.0
    if kind == "dynamic":
        factor = scaling["factor"]
        longer = seq / scaling["original_max_position_embeddings"]
        theta = theta * (factor * longer - (factor - 1)) ** (n / (n - 2))
        return theta ** (-torch.arange(n // 2).double() * 2 / n), 1.0
    if kind == "yarn":
        return yarn(inverse, theta, n, scaling)
    return inverse, 1.0


def yarn_mscale(factor, m):
    return 0.1 * m * math.log(factor) + 1


def yarn(inverse, theta, n, c):
    """arXiv 2309.00071, section 3.2; transformers' _compute_yarn_parameters."""
    def column(turns):
        old = c["original_max_position_embeddings"]
        return n * math.log(old / (turns * 2 * math.pi)) / 2 / math.log(theta)

    first = max(math.floor(column(c["beta_fast"])), 0)
    last = min(math.ceil(column(c["beta_slow"])), n - 1)
    assert first < last
    ramp = ((torch.arange(n // 2).double() - first) / (last - first))
    ramp = ramp.clamp(0, 1)
    factor = yarn_mscale(c["factor"], c.get("mscale", 1))
    if "mscale_all_dim" in c:
        factor /= yarn_mscale(c["factor"], c["mscale_all_dim"])
    return inverse * (1 - ramp) + inverse / c["factor"] * ramp, factor


def rescaled(inverse, c):
    """transformers' _compute_llama3_parameters."""
    old = c["original_max_position_embeddings"]
    low, high = c["low_freq_factor"], c["high_freq_factor"]
    length = 2 * math.pi / inverse
    smooth = (old / length - low) / (high - low)
    mixed = (1 - smooth) * inverse / c["factor"] + smooth * inverse
    out = torch.where(length > old / low, inverse / c["factor"], inverse)
    is_between = (length <= old / low) & (length >= old / high)
    return torch.where(is_between, mixed, out)


def hugging_face_balance(p, who):
    """load_balancing_loss_func of modeling_mixtral, of one layer."""
    mask = F.one_hot(who, p.shape[1]).double()
    tokens_per_expert = mask.mean(0)
    return p.shape[1] * (tokens_per_expert * p.mean(0)[None]).sum()


def weight(phase, rows, cols, base, amplitude):
    row = torch.arange(rows).double()[:, None]
    col = torch.arange(cols).double()[None, :]
    angle = (phase + 1.61803398875 * row + 2.39996322973 * col
             + 0.0137 * (row * row + 3 * col * col))
    w = base + amplitude * torch.sin(angle)
    return w.float().double().requires_grad_(True)


def rms_norm(x, w, eps):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * w


def samples(g):
    """Elements spread over the tensor; where it is largest stands first."""
    rows, cols = g.shape
    i = int(g.abs().argmax())
    at = [(i // cols, i % cols)]
    for k in range(1, SAMPLES):
        at.append(((k * 7919 + 13) % rows, (k * 104729 + 29) % cols))
    return [(r, c, g[r, c].item()) for r, c in at]


def train(m):
    """Losses of all steps, the first step's gradients."""
    i = torch.arange(SEQ + 1)
    flat = (7 * i * i + 3 * i + 11) % m.v
    trained = [p for p in m.w.values() if p.requires_grad]
    groups = [dict(params=[p for p in trained if p.shape[0] > 1],
                   weight_decay=DECAY),
              dict(params=[p for p in trained if p.shape[0] == 1],
                   weight_decay=0.0)]
    optimizer = torch.optim.AdamW(groups, lr=LR, betas=(BETA1, BETA2), eps=EPS)
    losses, first = [], None
    for step in range(STEPS):
        optimizer.zero_grad()
        m.routed = []
        loss = m.step_loss(step, flat)
        (loss + m.aux_loss() + m.later).backward()
        losses.append(loss.item())
        gradients = {n: torch.zeros_like(p) if p.grad is None
                     else p.grad.clone() for n, p in m.w.items()}
        optimizer.step()
        m.end_step(gradients)
        first = first or gradients
    return losses, first


def emit(name, config):
    kind = config.get("model_type", config.get("kind"))
    m = CLASSES.get(kind, Model)(config)
    losses, first = train(m)
    print(f"static const family_tensor family_{name}_tensors[] = {{")
    for i, (tensor, rows, cols, base, amplitude) in enumerate(m.specs):
        g = first[tensor]
        cells = ", ".join(f"{{{r}, {c}, {x:.10g}}}" for r, c, x in samples(g))
        is_last = i % 2 == 1 or i + 1 == len(m.specs)
        print("" if i % 2 else "    ", end="")
        print(f'{{"{tensor}", {rows}, {cols}, {base!r}, {amplitude!r}, '
              f"{0.37 * i + 0.1:.17g}, {g.norm().item():.10g}, "
              f"{{{cells}}}}},", end="\n" if is_last else " ")
    print("};\n")
    text = json.dumps(config).replace('"', '\\"')
    values = ", ".join(f"{x:.12g}" for x in losses)
    return (f'    {{"{name}",\n     "{text}",\n     {{{values}}},\n'
            f"     {len(m.specs)}, family_{name}_tensors}},")


def write(kind, families):
    print(f"/* {kind}_golden.h: written by make_family_golden.py with PyTorch "
          f"{torch.__version__};\n * not to be edited.  See "
          "family_golden_model.h. */\n"
          f"#ifndef FR_TESTS_{kind.upper()}_GOLDEN_H\n"
          f"#define FR_TESTS_{kind.upper()}_GOLDEN_H\n\n"
          "/* clang-format off */\n")
    rows = [emit(name, config) for name, config in families.items()]
    print(f"static const family_golden {kind}_goldens[] = {{")
    print("\n".join(rows))
    print("};\n\n/* clang-format on */\n\n#endif")


if sys.argv[1:] == ["images"]:
    write("image", IMAGES)
else:
    write("family", FAMILIES)
