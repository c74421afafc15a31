"""
Stands for `kubectl apply -f FILE` and `sky launch [--workdir FOLDER]
[--env NAME=VALUE] FILE`: runs a manifest on this machine as its first node
would, with bash.

A pod starts in $IMAGE, which stands for its image's working folder, and finds
the ConfigMap as the kubelet mounts it: links to files of a hidden folder.  A
task of SkyPilot starts in ~/sky_workdir, a copy of the working directory.
"""
import os
import shutil
import subprocess
import sys
import tempfile

import yaml

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def find_pod(manifest):
    spec = manifest["spec"]
    if manifest["kind"] == "JobSet":
        return spec["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    return spec["pytorchReplicaSpecs"]["Master"]["template"]["spec"]


def apply(path):
    with open(path, encoding="utf-8") as file:
        files, job = yaml.load_all(file, LOADER)
    pod = find_pod(job)
    container = pod["containers"][0]
    (volume,) = [v for v in pod["volumes"] if "configMap" in v]
    assert volume["configMap"]["name"] == files["metadata"]["name"]
    with tempfile.TemporaryDirectory() as mount:
        os.mkdir(f"{mount}/..data")
        for name, text in files["data"].items():
            with open(f"{mount}/..data/{name}", "w", encoding="utf-8") as file:
                file.write(text)
            os.chmod(f"{mount}/..data/{name}", volume["configMap"]["defaultMode"])
            os.symlink(f"..data/{name}", f"{mount}/{name}")
        (place,) = [m["mountPath"] for m in container["volumeMounts"]
                    if m["name"] == volume["name"]]
        command = [word.replace(place + "/", mount + "/")
                   for word in container["command"]]
        ranks = dict.fromkeys(["JOB_COMPLETION_INDEX", "PET_NODE_RANK"], "0")
        ranks.update(PET_MASTER_ADDR="first", PET_MASTER_PORT="29500")
        values = {item["name"]: item["value"] or os.environ["TO_BE_SET"]
                  for item in container.get("env", [])}
        if "SCRIPT_KIND" in values:
            values["SCRIPT_KIND"] = os.environ.get("SCRIPT_KIND", "deepspeed")
        return subprocess.call(command, cwd=os.environ["IMAGE"],
                               env={**os.environ, **ranks, **values})


def launch(words):
    values, workdir = {}, None
    while words[0].startswith("--"):
        if words[0] == "--env":
            values.update([words[1].split("=", 1)])
        else:
            workdir = words[1]
        words = words[2:]
    with open(words[0], encoding="utf-8") as file:
        task = yaml.load(file, LOADER)
    values = {**task.get("envs", {}), **values}
    assert None not in values.values(), values
    workdir = workdir or task.get("workdir")
    with tempfile.TemporaryDirectory() as home:
        if workdir:
            shutil.copytree(workdir, f"{home}/sky_workdir")
        else:
            os.mkdir(f"{home}/sky_workdir")
        return subprocess.call(
            ["bash", "-c", task["run"]], cwd=f"{home}/sky_workdir",
            env={**os.environ, "SKYPILOT_NODE_RANK": "0",
                 "SKYPILOT_NODE_IPS": "10.0.0.1\n10.0.0.2", **values})


if __name__ == "__main__":
    sys.exit(apply(sys.argv[4]) if sys.argv[1] == "kubectl"
             else launch(sys.argv[3:]))
