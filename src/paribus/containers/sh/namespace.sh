# Part of fabric.sh: makes the bridge and the containers, each a process that waits in host.sh.
mkfifo "$here/ready" || give_up 'the scratch directory takes no fifo'
exec 3<>"$here/ready" 9</proc/self/ns/net
count=0
while read -r address name; do
    case $name in c*) ;; *) continue ;; esac
    count=$((count + 1))
    (
        unshare --net --uts --ipc --mount --pid --fork --kill-child --propagation private \
            -- /bin/sh "$here/host.sh" "$here" "$name" "$address" "$settings" &
        echo $! >"$here/$name.pid"
        wait $!
        echo failed >&3
    ) &
done <"$here/hosts"

ip -batch "$here/bridge.ip" || give_up 'the bridge could not be made'
while [ "$count" -gt 0 ]; do
    read -r word <&3
    [ "$word" = ready ] || give_up 'a container could not be made'
    count=$((count - 1))
done
ip -batch "$here/ports.ip" || give_up 'the containers could not be joined to the bridge'

# A port forwards, and the bridge sends, only after the kernel has acted on their carriers, which it
# does a moment later; a first packet lost to that costs a second. Reading `carrier` makes recent
# kernels act at once.
for link in /sys/class/net/c* /sys/class/net/br0; do
    until read -r _ <"$link/carrier" && read -r word <"$link/operstate" && [ "$word" = up ]; do :; done
    [ ! -e "$link/brport" ] || until read -r word <"$link/brport/state" && [ "$word" = 3 ]; do :; done
done
