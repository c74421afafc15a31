"""What a framework says of plans that tests/record/random_exports wrote.

judge() gives the folder of each plan to a function that raises what the
framework raises, and compares with what our table says of the plan.
"""
import contextlib
import io
import json
import os
import warnings

N_SHOWN = 10


def verdict(check, folder):
    """None, or why the framework refuses what lies in the folder."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said), \
                contextlib.redirect_stderr(said), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            check(folder)
        return None
    except SystemExit:
        lines = said.getvalue().strip().splitlines()
        return lines[-1] if lines else "exit"
    except Exception as why:  # whatever a framework raises
        return f"{type(why).__name__}: {why}"


def judge(check, folder, report, is_known_later=lambda why, plan: False, **facts):
    """Exit status: 0 where our table and the framework agree on all plans.

    is_known_later(why, plan): a rule of ours that the framework checks later than
    where it looks at its configuration.  facts: what the report holds too.
    """
    with open(os.path.join(folder, "plans.tsv"), encoding="utf-8") as file:
        plans = [line.rstrip("\n").split("\t") for line in file]
    n = {"allowed": 0, "accepted": 0, "refused": 0, "accepted_all_the_same": 0,
         "known_later": 0}
    wrong, lax, said = [], {}, {}
    for number, ours, plan, why in plans:
        theirs = verdict(check, os.path.join(folder, number))
        n[ours] += 1
        why = why.split(" needs ", 1)[-1]
        if ours == "allowed" and theirs is None:
            n["accepted"] += 1
        elif ours == "allowed":
            wrong.append({"plan": plan, "number": number, "they": theirs})
        elif theirs is not None:
            said.setdefault(why, theirs.splitlines()[0][:160])
        elif is_known_later(why, plan):
            n["known_later"] += 1
        else:
            n["accepted_all_the_same"] += 1
            lax[why] = lax.get(why, 0) + 1
    print(f"  {n['accepted']} of {n['allowed']} that our table allows are "
          f"taken, {n['refused'] - n['accepted_all_the_same']} of "
          f"{n['refused']} that it refuses are not, or not later "
          f"({n['known_later']})")
    for they in sorted({row["they"] for row in wrong})[:N_SHOWN]:
        rows = [row for row in wrong if row["they"] == they]
        print(f"  refused {len(rows)} times: {they[:300]}\n"
              f"    number {rows[0]['number']}: {rows[0]['plan']}")
    for why, count in lax.items():
        print(f"  accepted {count} times: {why}")
    with open(report, "w", encoding="utf-8") as file:
        json.dump({**facts, **n, "wrong": wrong, "said_of_refused": said,
                   "accepted_here_refused": lax}, file, indent=1)
    return 1 if wrong or lax else 0
