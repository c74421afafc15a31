#!/bin/sh
# make validate: predictions against published measurements, by source, what a
# few rows of each teach, then efficiency of data parallel training by number
# of GPUs (ROWS=1: every row), then runs of weeks (make goodput).  Exit code 4 where a bound no longer holds: they
# are near what is reached, so that nothing gets worse unnoticed, or where a source
# got worse by two points (compare.sh).
# Result: build/validate.json.  VALIDATE="--rows --max-ranks 64": more options.
set -eu
cd "$(dirname "$0")/../.."
build=${BUILD:-build}
bounds="mape<=8%,macro_mape<=10%,macro_bias<=3%,concordance>=0.98"
bounds="$bounds,experts_mape<=17%,large_mape<=7.5%"
bounds="$bounds,coverage_90>=0.85,coverage_90<=0.97,macro_coverage_90>=0.85"
bounds="$bounds,half_width_median<=25%,macro_half_width<=26%"
bounds="$bounds,shots.0.macro_mape<=10%,shots.1.macro_mape<=9.6%"
bounds="$bounds,shots.3.macro_mape<=9.2%,shots.10.macro_mape<=6%"
bounds="$bounds,shots.1.macro_coverage_90>=0.85,shots.3.macro_coverage_90>=0.85"
bounds="$bounds,shots.10.macro_coverage_90>=0.85,shots.1.macro_half_width<=22%"
bounds="$bounds,shots.3.macro_half_width<=17.5%"
bounds="$bounds,memory.mape<=5.8%,memory.fits_balanced>=0.92"
bounds="$bounds,memory.confident_ran_out<=3%"
# shellcheck disable=SC2086
"$build/forerun" validate tests/validate/llm_steps.csv \
    tests/validate/mlperf_llm_steps.csv tests/validate/memory.csv \
    --shots 0,1,3,10 --draws 40 --seed 7 --check "${BOUNDS:-$bounds}" \
    -o "$build/validate.json" ${VALIDATE:-}
if [ -z "${BOUNDS:-}" ]; then
    printf '\nagainst the result committed last (UPDATE=1: replaced by this)\n'
    tests/validate/compare.sh "$build/validate.json"
fi
echo
"$build/tests/contract/sim/test_scaling"
echo
exec tests/validate/runs.py "$build/forerun" tests/golden/fixtures/spot.json
