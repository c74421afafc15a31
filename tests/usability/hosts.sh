#!/bin/bash
# hosts.sh: several hosts from the terminal: what goes wrong is said in words
# that name the host.  Remote shells are scripts of this test, so no network is
# touched.
. "$(dirname "$0")/expect.sh"

cat >rsh <<'RSH'
#!/bin/sh
host=$1
shift
case $host in
refuses) echo "ssh: connect to host $host port 22: Connection refused" >&2; exit 255 ;;
nompi) PATH=/nowhere exec /bin/sh -c "$*" ;;
silent) exec sleep 77 ;;
*) exec sh -c "$*" ;;
esac
RSH
chmod +x rsh
export OMPI_MCA_plm_rsh_agent=$work/rsh
hosts() { printf '%s slots=1\n' "$@" >hosts.txt; }
ask forerun simulate gpt2-tiny this-machine --dp 2 --global-batch 8 --seq 32 \
    --steps 10 -o plan.json -q
ends_with 0

# Launch failures.
hosts refuses localhost
ask forerun run plan.json --hostfile hosts.txt
ends_with 1
warns 'cannot be started: host refuses: no ssh server answers'
never_warns ORTE 'mpirun:'
hosts nompi localhost
ask forerun run plan.json --hostfile hosts.txt
ends_with 1
warns 'cannot be started: host nompi: Open MPI is not in the PATH'
never_warns ORTE
hosts silent localhost
ask forerun run plan.json --hostfile hosts.txt --timeout 3
ends_with 1
warns 'cannot be started: host silent: unreachable'
! pgrep -f '^sleep 77' >/dev/null
verdict $? "a remote shell stays behind"
(
    unset OMPI_MCA_plm_rsh_agent
    hosts no-such-host.invalid localhost
    ask forerun run plan.json --hostfile hosts.txt
    ends_with 1
    warns 'host no-such-host.invalid: unknown: the name has no address'
    [ "$n_failed" = 0 ]
)
verdict $? "an unknown host is not named"

# Places.
hosts localhost
ask forerun run plan.json --hostfile hosts.txt
ends_with 3
warns '2 ranks do not fit: the 1 host of hosts.txt has 1 place'
ask forerun run plan.json --hostfile hosts.txt --elastic 1:3 --checkpoint ck \
    --checkpoint-every 5
ends_with 0
warns 'has 1 place: the run begins with fewer'
says ' 10 steps on 1 rank'
ask forerun run plan.json --hostfile hosts.txt --elastic 2:3 --checkpoint ck2
ends_with 3
warns 'has 1 place, --elastic wants at least 2'

# Restarts are spaced, and end.
hosts refuses localhost
ask forerun run plan.json --hostfile hosts.txt --elastic 1:2 --checkpoint ck3 \
    --max-restarts 2
ends_with 1
warns 'the next one comes in 1 s' 'the next one comes in 2 s' 'given up after 2 restarts'

# The report of an elastic run is that of all its steps.
ask forerun run plan.json --steps 30 --elastic 1:2 --checkpoint ck4 \
    --checkpoint-every 5 --inject kill:rank=1@17
ends_with 0
says ' 30 steps on 2 ranks' '^15 of the steps came before the last start'

# A plan for several hosts without their names.
ask forerun simulate gpt2-tiny two-hosts-1gbit --dp 2 --ranks-per-node 1 \
    --global-batch 8 --seq 32 --steps 4 -o two.json -q
ask forerun run two.json
ends_with 0
warns 'two.json is a plan for 2 hosts, and all its 2 ranks run on this one'

# A full disk.
mkdir full
if unshare -rm mount -t tmpfs -o size=1m none full 2>/dev/null; then
    asked="forerun run plan.json --checkpoint full"
    timeout 60 unshare -rm sh -c 'mount -t tmpfs -o size=24m none full &&
        forerun run plan.json --steps 20 --checkpoint full --keep 9 \
            --checkpoint-every 5' >.out 2>.err </dev/null
    status=$?
    ends_with 1
    warns 'WARNING: no checkpoint after step 14: .*No space left' \
        'the last state is in no checkpoint: .*--resume'
    says ' 20 steps on 2 ranks'
fi

# The doctor looks at each host.
printf 'good slots=2\nnompi slots=1\nrefuses slots=1\n' >hosts.txt
ask forerun doctor this-machine plan.json --hostfile hosts.txt
ends_with 4
says '^good +reachable +ok +' '^good +program +ok +the same as here' \
    '^good +plan +ok' '^good +MPI +ok' '^good +clock +ok' '^good +/dev/shm +' \
    '^good +memory +ok' '^refuses +reachable +missing +no ssh server'
warns 'host nompi: '
ask forerun doctor this-machine plan.json
ends_with 2

summary
