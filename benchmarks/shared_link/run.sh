#!/usr/bin/env bash
# Times calls of 1 KiB next to a payload of 1 GiB on one connection, over a link of 1 Gbit/s between two
# network namespaces (tbf), as between two machines. Needs root, ip and tc (Debian: iproute2).
#
#   benchmarks/shared_link/run.sh [--rate 1gbit] [options of shared_link, such as --mebibytes 256 --json FILE]
#
#   PROGRAMS=build/release/bin  folder of shared_link
set -euo pipefail
cd "$(dirname "$0")/../.."

rate=1gbit
if [ "${1:-}" = --rate ]; then
  rate=${2:?--rate needs a value, such as 1gbit}
  shift 2
fi
program=${PROGRAMS:-build/release/bin}/shared_link
[ -x "$program" ] || { echo "shared_link: $program is missing; build it with cmake --build build/release --target shared_link" >&2 && exit 2; }
PATH=$PATH:/usr/sbin:/sbin
for tool in ip tc; do
  command -v $tool >/dev/null || { echo "shared_link: $tool is missing (Debian: iproute2)" >&2 && exit 77; }
done

one=shared-link-one-$$ other=shared-link-other-$$
server=
end() {
  [ -z "$server" ] || kill "$server" 2>/dev/null || true
  ip netns del $one 2>/dev/null || true
  ip netns del $other 2>/dev/null || true
}
trap end EXIT
made() {
  ip netns add $one && ip netns add $other &&
    ip link add slink netns $one type veth peer name slink netns $other &&
    ip -n $one address add 10.213.1.1/24 dev slink && ip -n $other address add 10.213.1.2/24 dev slink &&
    ip -n $one link set lo up && ip -n $other link set lo up &&
    ip -n $one link set slink up && ip -n $other link set slink up &&
    ip netns exec $one tc qdisc add dev slink root tbf rate "$rate" burst 128kb latency 2ms &&
    ip netns exec $other tc qdisc add dev slink root tbf rate "$rate" burst 128kb latency 2ms
}
made || { echo "shared_link: cannot create the link; it needs root, and a kernel with veth and tbf" >&2 && exit 77; }

coproc SERVER { exec ip netns exec $one "$program" --serve tcp://10.213.1.1:29600; }
server=$SERVER_PID
read -r _ <&"${SERVER[0]}"
ip netns exec $other "$program" --call tcp://10.213.1.1:29600 "$@"
