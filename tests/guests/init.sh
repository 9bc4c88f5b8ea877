#!/bin/busybox sh
# The first process of a guest: its modules, links and root, then sshd. The kernel hands on what its
# command line says: NAME, NUMBER and COUNT of the guest, LINK (see controller.py), MODULES and DIR.
/bin/busybox --install -s /bin
export PATH=/bin:/sbin:/usr/bin:/usr/sbin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
while read -r module; do insmod "/modules/$module"; done </modules/first
hostname "$NAME"
ip link set lo up
# eth0 leads to 127.0.0.1 of the machine and nowhere else; eth1 joins the guests.
ip addr add "10.0.$NUMBER.15/24" dev eth0
[ "$LINK" = none ] || ip link set eth0 up
if [ "$LINK" = joined ]; then
    ip addr add "10.79.0.$NUMBER/24" dev eth1
    ip link set eth1 up
fi
mkdir /lower /upper /merged
mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000,ro,cache=loose machine /lower
mount -t tmpfs -o size=60% upper /upper
mkdir /upper/files /upper/work
mount -t overlay -o lowerdir=/lower,upperdir=/upper/files,workdir=/upper/work root /merged
for kind in proc sys dev; do mount --bind /$kind /merged/$kind; done
mkdir -p /merged/dev/pts /merged/dev/shm
mount -t devpts pts /merged/dev/pts
mount -t tmpfs shm /merged/dev/shm
mount -t tmpfs run /merged/run
mkdir /merged/run/sshd
{
    echo 127.0.0.1 localhost
    for i in $(seq "$COUNT"); do echo "10.79.0.$i vm$i"; done
} >/merged/etc/hosts
tr -d - </proc/sys/kernel/random/uuid >/merged/etc/machine-id
echo "$NAME" >/merged/etc/hostname
# What somebody has bash do at each login takes an emulated processor seconds.
rm -f /merged/root/.bashrc /merged/root/.profile /merged/root/.bash_profile /merged/root/.bash_login
if [ "$MODULES" = all ]; then
    while read -r module; do insmod "/modules/$module" 2>/dev/null; done </modules/all
fi
# busybox has it; RDMA needs it
# shellcheck disable=SC3045
ulimit -l unlimited
# The last step: a guest that answers is ready.
chroot /merged /usr/sbin/sshd -e -o PidFile=none -f "$DIR/sshd_config"
while :; do sleep 1000; done
