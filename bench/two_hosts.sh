#!/bin/sh
# Two hosts on one machine: two network namespaces, joined by a link whose
# rate `tc tbf` limits.  For tests and benchmarks of plans over a slow network.
#
#   two_hosts.sh up RATE DIR        make them (RATE as tc says it: 1gbit);
#                                   DIR gets hostfile, rsh and env
#   two_hosts.sh exec DIR CMD...    run CMD on the first host
#   two_hosts.sh down DIR           remove them
#
# Needs root, iproute2 and util-linux.  Exit 77 where namespaces are refused.
set -eu

usage() {
    sed -n '2,11p' "$0" | cut -c3- >&2
    exit 2
}

up() {
    rate=$1 dir=$2
    mkdir -p "$dir"
    id=$$
    a=fr${id}a b=fr${id}b
    if ! ip netns add "$a" 2>"$dir/error"; then
        echo "two_hosts: no network namespaces here:" \
            "$(head -n 1 "$dir/error")" >&2
        exit 77
    fi
    ip netns add "$b"
    echo "$a $b" >"$dir/names"
    ip link add "v$a" netns "$a" type veth peer name "v$b" netns "$b"
    i=1
    for host in "$a" "$b"; do
        ip -n "$host" addr add "10.77.0.$i/24" dev "v$host"
        ip -n "$host" link set "v$host" up
        ip -n "$host" link set lo up
        # The bucket must hold one offloaded packet and little more: a deep
        # one would let short messages through at memory speed.
        ip netns exec "$host" tc qdisc add dev "v$host" root tbf \
            rate "$rate" burst 64kb latency 50ms
        i=$((i + 1))
    done
    printf '%s slots=1\n%s slots=1\n' "$a" "$b" >"$dir/hostfile"
    cat >"$dir/rsh" <<'RSH'
#!/bin/sh
# Open MPI's remote shell: the host is a network namespace.
host=$1
shift
exec ip netns exec "$host" unshare -u sh -c "hostname $host; $*"
RSH
    chmod +x "$dir/rsh"
}

# Not one namespace more than were made here.
down() {
    dir=$1
    [ -r "$dir/names" ] || return 0
    for host in $(cat "$dir/names"); do
        ip netns del "$host" 2>/dev/null || true
    done
    rm -f "$dir/names" "$dir/hostfile" "$dir/rsh" "$dir/error"
}

run_on_first() {
    dir=$1
    shift
    first=$(cut -d' ' -f1 "$dir/names")
    export OMPI_MCA_plm_rsh_agent="$dir/rsh"
    export OMPI_MCA_btl=tcp,self OMPI_MCA_pml=ob1
    export OMPI_MCA_btl_tcp_if_include=10.77.0.0/24
    export OMPI_MCA_oob_tcp_if_include=10.77.0.0/24
    exec ip netns exec "$first" unshare -u \
        sh -c 'hostname "$1"; shift; exec "$@"' sh "$first" "$@"
}

[ $# -ge 2 ] || usage
command=$1
shift
case $command in
up) [ $# -eq 2 ] && up "$1" "$2" || usage ;;
down) down "$1" ;;
exec) run_on_first "$@" ;;
*) usage ;;
esac
