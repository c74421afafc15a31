#!/bin/bash
# fates.sh: the table of docs/exports.md, targets x fields of a plan, from what
# the program says.  `fates.sh --update` writes it into the page.
set -euo pipefail
cd "$(dirname "$0")/../.."
table() {
    "${FORERUN:-build/forerun}" catalog targets --json | jq -r '
        def mark: {written: "w", implied: "i", predicted: "p",
                   refused: "-"}[.] // "?";
        .targets as $t
        | "| field | \([$t[].name] | join(" | ")) |",
          "|---|\([$t[] | "---"] | join("|"))|",
          (range($t[0].fields | length) as $i
           | "| \($t[0].fields[$i].field) | \([$t[].fields[$i]
              | (.fate | mark) + (if .limit then "*" else "" end)]
              | join(" | ")) |")'
}
if [ "${1:-}" = --update ]; then
    table >docs/exports.table
    awk '/^\| field /{ while ((getline line < "docs/exports.table") > 0)
                           print line; skip = 1 }
         !/^\|/{ skip = 0 }
         !skip' docs/exports.md >docs/exports.new
    mv docs/exports.new docs/exports.md
    rm docs/exports.table
else
    table
fi
