# Part of host.sh: what a pocket host has that a container has not. Its first process stays a shell,
# which takes leave of the orphans of all launches.
# shellcheck shell=sh disable=SC2154
sshd=
read -r cores <"$here/$name.cores"
taskset -cp "$cores" $$ >/dev/null
[ ! -r "$here/eth0.ip" ] || ip -batch "$here/eth0.ip"
[ ! -r "$here/eth0.tc" ] || tc -batch "$here/eth0.tc"
echo ready >&3
# Opening waits until there is a writer, which is when the links are joined.
: <"$here/go"
link=/sys/class/net/eth0
until read -r _ <$link/carrier && read -r state <$link/operstate && [ "$state" = up ]; do :; done

if [ -r "$here/sshd_config" ]; then
    ssh-keygen -q -t ed25519 -N '' -C '' -f "$here/$name"
    key=$(cat "$here/$name") keys=$(cat "$here/authorized_keys") config=$(cat "$here/sshd_config")
    read -r sshd <"$here/sshd"
fi
# Last, for these places may hide the directory. Entries that are needed stay (hidden.py).
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
if [ -n "$sshd" ]; then
    mkdir -m 700 /run/sshd /run/paribus
    cd /run/paribus || exit 1
    umask 077
    echo "$key" >host_key
    echo "$keys" >authorized_keys
    echo "$config" >sshd_config
    # Without PAM, sshd turns away an account with a locked password, as root's is on Ubuntu.
    sed 's/^root:!/root:*/' /etc/shadow >shadow
    mount --bind shadow /etc/shadow
    umask 022
    cd /
    "$sshd" -D -f /run/paribus/sshd_config -E /run/sshd.log 3>&- 4<&- 9<&- &
    # It writes its pid when it listens.
    until [ -s /run/sshd.pid ]; do
        kill -0 $! 2>/dev/null || { cat /run/sshd.log >&2 && exit 1; }
        sleep 0.005
    done
fi
echo linked >&3
exec 3>&- 4<&- 9<&-
while :; do
    sleep 2147483647 &
    wait $!
done
