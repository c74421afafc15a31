# Sourced by fidelity.sh and regret.sh: profiles of this machine and of two
# hosts on it with a 1 Gbit/s link between them.
#   in:  forerun, dir      out: $profiles = "SHM [NET HOSTS]"
hosts=
mkdir -p "$dir"

cleanup() {
    bench/two_hosts.sh down "$dir/hosts"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

if bench/two_hosts.sh up 1gbit "$dir/hosts"; then
    hosts=$dir/hosts
fi
# A profile of less than an hour ago is as good as a new one.
is_fresh() {
    [ -n "$(find "$1" -mmin -60 2>/dev/null)" ]
}
shm=$dir/../links-shm.json net=$dir/../links-net.json
if ! is_fresh "$shm"; then
    echo "calibrating this machine ..." >&2
    "$forerun" calibrate gpt2-mini gpt2-demo bench/models/*-mini.json -q -o "$shm"
fi
profiles=$shm
if [ -n "$hosts" ]; then
    if ! is_fresh "$net"; then
        echo "calibrating the 1 Gbit/s link ..." >&2
        bench/two_hosts.sh exec "$hosts" "$forerun" calibrate gpt2-mini \
            gpt2-demo -q --hostfile "$hosts/hostfile" -o "$net"
    fi
    profiles="$profiles $net $hosts"
fi
