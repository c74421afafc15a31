"""Random plans through `forerun export --to deepspeed` and DeepSpeed's own
DeepSpeedConfig (deepspeed/runtime/config.py), with stand-ins for torch and
for what asks for devices: no GPU and no PyTorch are needed."""
import importlib.abc
import importlib.machinery
import json
import os
import random
import subprocess
import sys
import types

N_PLANS = 200
report, work = sys.argv[1], sys.argv[2]
sys.path.insert(0, os.environ["DEEPSPEED_DIR"])


class Stand(type):
    """Classes that have every attribute, and give themselves when called."""

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Stand(name, (), {})

    def __call__(cls, *args, **kwargs):
        return cls

    def __ge__(cls, other):
        return False

    __gt__ = __le__ = __lt__ = __ge__


class Anything(types.ModuleType):
    """A module with every name."""

    __path__ = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Stand(name, (), {})


class dtype:
    """Of torch."""


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """What is not of the configuration is a stand-in."""

    stand_ins = ("torch", "hjson", "numpy", "deepspeed.comm",
                 "deepspeed.accelerator", "deepspeed.utils.timer",
                 "deepspeed.utils.logging", "deepspeed.ops", "cpuinfo",
                 "deepspeed.inference", "deepspeed.module_inject",
                 "deepspeed.checkpoint", "psutil", "tqdm", "packaging",
                 "einops", "deepspeed.git_version_info")

    def find_spec(self, name, path=None, target=None):
        if any(name == s or name.startswith(s + ".") for s in self.stand_ins):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        module = Anything(spec.name)
        if spec.name == "torch":
            module.dtype = dtype
            module.__version__ = "2.8.0"
            for name in ("float16", "bfloat16", "float32", "int8"):
                setattr(module, name, dtype())
        return module

    def exec_module(self, module):
        pass


sys.meta_path.insert(0, Finder())


def package(name, folder):
    """A package without what its __init__ would import."""
    module = types.ModuleType(name)
    module.__path__ = [os.path.join(os.environ["DEEPSPEED_DIR"], folder)]
    sys.modules[name] = module
    return module


class Logger:
    def __getattr__(self, name):
        return lambda *args, **kwargs: None


package("deepspeed", "deepspeed").comm = sys.modules.get("deepspeed.comm")
package("deepspeed.runtime", "deepspeed/runtime")
package("deepspeed.runtime.zero", "deepspeed/runtime/zero")
package("deepspeed.compile", "deepspeed/compile")
utils = package("deepspeed.utils", "deepspeed/utils")
utils.logger = Logger()
utils.log_dist = utils.logger.info


def random_options(rng):
    options = {"--dp": rng.choice([1, 2, 4, 8]), "--tp": rng.choice([1, 1, 2]),
               "--pp": rng.choice([1, 1, 2, 4]),
               "--zero": rng.choice([0, 1, 2, 3]),
               "--micro-batch": rng.choice([1, 2]),
               "--recompute": rng.choice(["none", "full"]),
               "--precision": rng.choice(["bf16", "f16", "f32"]),
               "--grad-dtype": rng.choice(["bf16", "f16", "f32"])}
    words = [str(w) for pair in options.items() for w in pair]
    words.append("--no-gather-overlap")
    words += rng.choice([[], ["--no-overlap"]])
    words += rng.choice([[], [], ["--offload-optimizer"]])
    return words


def export(words):
    plan = os.path.join(work, "plan.json")
    made = subprocess.run(
        ["forerun", "simulate", "gpt2-1.5b", "dgx-h100:8", *words, "--seq",
         "512", "--global-batch", "64", "-q", "-o", plan], capture_output=True)
    if made.returncode != 0:
        return None, None
    out = subprocess.run(["forerun", "export", plan, "--to", "deepspeed",
                          "-o", os.path.join(work, "ds")], capture_output=True,
                         text=True)
    if out.returncode != 0:
        return False, out.stderr.strip()
    with open(os.path.join(work, "ds", "ds_config.json")) as file:
        return json.load(file), json.load(open(plan))["plan"]


def main():
    from deepspeed.runtime import config as theirs
    rng = random.Random(2385)
    tally = {"accepted": 0, "refused_by_table": 0, "disagree": []}
    while tally["accepted"] + len(tally["disagree"]) < N_PLANS:
        words = random_options(rng)
        exported, more = export(words)
        if exported is None:
            continue
        if exported is False:
            tally["refused_by_table"] += 1
            continue
        theirs.dist.get_rank = lambda: 0
        theirs.dist.get_world_size = lambda *a, **k: (
            more["dp"] * more["cp"])
        try:
            theirs.DeepSpeedConfig(exported)
            tally["accepted"] += 1
        except Exception as why:  # whatever their checks raise
            tally["disagree"].append(f"{' '.join(words)}: {why!r}")
    tally["plans"] = N_PLANS
    with open(os.environ["DEEPSPEED_DIR"] + "/version.txt") as file:
        tally["version"] = file.read().strip()
    with open(report, "w") as file:
        json.dump(tally, file)
    print(f"deepspeed {tally['version']}: {tally['accepted']} of {N_PLANS} "
          f"accepted, {tally['refused_by_table']} were refused by our table")
    for line in tally["disagree"][:5]:
        print("  " + line)
    return 1 if tally["disagree"] else 0


sys.exit(main())
