# Part of host.sh: what a pocket host has that a container has not. Its first process stays a shell,
# which takes leave of the orphans of all launches.
# shellcheck shell=sh disable=SC2154
read -r cores <"$here/$name.cores"
taskset -cp "$cores" $$ >/dev/null
[ ! -r "$here/eth0.ip" ] || ip -batch "$here/eth0.ip"
[ ! -r "$here/eth0.tc" ] || tc -batch "$here/eth0.tc"
echo ready >&3
# Opening waits until there is a writer, which is when the links are joined.
: <"$here/go"
link=/sys/class/net/eth0
until read -r _ <$link/carrier && read -r state <$link/operstate && [ "$state" = up ]; do :; done

# Last, for these places may hide the directory. Entries that are needed stay (pocket.py).
mount -a -T "$here/late.fstab"
read -r temporary <"$here/temporary"
mkdir -p "$here/own$temporary"
while read -r kept; do
    mkdir -p "$here/own${kept%/*}"
    if [ -d "$kept" ]; then mkdir "$here/own$kept"; else : >"$here/own$kept"; fi
    mount --rbind "$kept" "$here/own$kept"
done <"$here/kept"
cd "$here/own" || exit 1
for place in *; do mount -n --no-canonicalize --move "$place" "/$place"; done
cd /
echo linked >&3
exec 3>&- 4<&- 9<&-
while :; do
    sleep 2147483647 &
    wait $!
done
