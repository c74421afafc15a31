#!/bin/bash
# check_licence.sh: LICENSE names the licence, and NOTICE lists each library that
# the Makefile links and each repository that a table of measurements cites; the
# files that NOTICE names exist.
set -u
cd "$(dirname "$0")/../.." || exit 1
bad=0
complain() {
    echo "$1"
    bad=1
}

for file in LICENSE NOTICE; do
    [ -s $file ] || complain "$file does not exist"
done
[ $bad = 0 ] || exit 1
head -n 1 LICENSE | grep -qx 'SPDX-License-Identifier: GPL-3.0-or-later' ||
    complain "LICENSE:1: it does not begin with the SPDX identifier GPL-3.0-or-later"

# Packages of PKGS and of pkg-config, and -lNAME; cuBLASLt is loaded, and our own
# library and GSL's BLAS, which OpenBLAS stands in for, are none of others.
libraries=$({
    sed -n 's/^PKGS := //p' Makefile | tr ' ' '\n'
    grep -oE 'flags_of,--libs,[a-z0-9.-]+' Makefile | sed 's/.*,//'
    grep -oE '(^|[^A-Za-z0-9-])-l[a-z+]+' Makefile | sed 's/.*-l//'
    grep -oE -- '-fopenmp' Makefile | sed 's/^-//'
    grep -rqs 'LIBRARY "libcublasLt' kernels/cuda && echo cublasLt
} | sort -u | grep -vxE 'forerun|gslcblas|')
listed=$(sed -n '/^link name/,/^A binary/p' NOTICE)
for library in $libraries; do
    grep -qE "^([a-z]+, )?${library//+/\\+}(,| )" <<<"$listed" ||
        complain "NOTICE: the Makefile links $library, which is not listed"
done

for repository in $(git ls-files 'configs/*.csv' 'tests/validate/*.csv' \
    'tests/golden/fixtures/*.csv' | xargs grep -ohE \
    '[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+@([0-9a-f]{7}|HEAD)' | sed 's/@.*//' | sort -u); do
    grep -q "^$repository " NOTICE ||
        complain "NOTICE: a table cites $repository, which is not listed"
done

while IFS=: read -r line path; do
    compgen -G "$path" >/dev/null || complain "NOTICE:$line: there is no $path"
done < <(grep -noE "(^|[^A-Za-z0-9_./-])($(git ls-tree -d --name-only HEAD |
    paste -sd '|'))/[A-Za-z0-9_./*-]+" NOTICE |
    sed -E 's/^([0-9]+:)[^a-z]/\1/; s/[.]$//')
exit $bad
