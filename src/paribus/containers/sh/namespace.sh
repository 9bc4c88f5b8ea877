# Part of fabric.sh: makes the bridge and the containers, each a process that waits in host.sh.
# shellcheck shell=sh disable=SC2154,SC2034
mkfifo "$here/ready" || give_up 'the scratch directory takes no fifo'
exec 3<>"$here/ready" 9</proc/self/ns/net
count=0
while read -r address name; do
    case $name in fabric | localhost) continue ;; esac
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
