#!/usr/bin/env python3
"""Runs the pods of a JobSet one after the other, as Kubernetes would start them.

usage: run_pods.py JOBSET.yaml FOLDER [NAME=VALUE]...

The ConfigMap's files lie in FOLDER/forerun with the mode that the volume gives
them; NAME=VALUE stands for what the user fills in.
"""
import os
import subprocess
import sys

import yaml


def mount(files, volumes, folder):
    mode = next(volume["configMap"].get("defaultMode", 0o644)
                for volume in volumes if "configMap" in volume)
    os.makedirs(folder)
    for name, text in files.items():
        path = os.path.join(folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, mode)


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        files, jobset = yaml.safe_load_all(file)
    job = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]
    pod = job["template"]["spec"]
    container = pod["containers"][0]
    env = {one["name"]: one["value"] for one in container.get("env", [])}
    env.update(word.split("=", 1) for word in sys.argv[3:]
               if word.split("=", 1)[0] in env)
    mounted = os.path.join(os.path.abspath(sys.argv[2]), "forerun")
    mount(files["data"], pod["volumes"], mounted)
    command = [word.replace("/forerun/", mounted + "/")
               for word in container["command"]]
    status = 0
    for node in range(job["completions"]):
        place = os.path.join(sys.argv[2], f"pod{node}")
        os.makedirs(place)
        status |= subprocess.run(
            command, cwd=place, check=False,
            env={**os.environ, **env, "JOB_COMPLETION_INDEX": str(node)}
        ).returncode
    return status


if __name__ == "__main__":
    sys.exit(main())
