#!/bin/sh
# Records tests/machines/tcg-guest-{numa,moved}-{root,nobody}.tar.gz: facts.sh inside QEMU guests
# whose machine is dictated by the command line below (tests/test_probes.py holds them to the .json
# beside each). "moved" is "numa" with the differences that are listed under "the machines".
#
#   sh tests/machines/guest.sh [DIRECTORY]     (default: a temporary one, removed afterwards)
#
# Needs Debian or its like: qemu-system-x86_64, apt-get, dpkg-deb, cpio, gzip, and paribus for
# $PYTHON (python3). Needs neither root nor KVM: the guest is emulated, so its times mean nothing.
# Kernel and user land are packages of the release that this machine runs, unpacked, not installed.
# DIRECTORY keeps them, and of the last guest console.log, the answers (shared/root, shared/nobody)
# and what tools print (shared/outputs), for a second look.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
{ python=$(command -v "${PYTHON:-python3}") && "$python" -c 'import paribus'; } || {
    echo "guest.sh: ${PYTHON:-python3} has no paribus: set PYTHON to one that has" >&2
    exit 1
}
if [ $# -gt 0 ]; then
    mkdir -p "$1"
    work=$(cd "$1" && pwd)
else
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
fi
cd "$work"
mkdir -p debs/partial root lists shared/outputs

# --- user land and kernel -------------------------------------------------------------------------
if [ ! -e initramfs.gz ]; then
    : >status # an empty one: apt-get then finds every package that is needed, the C library too
    apt-get -qq -y --no-install-recommends --download-only -o Dir::State::status="$work/status" \
        -o Dir::Cache::archives="$work/debs" -o Debug::NoLocking=1 install \
        linux-image-amd64 dash coreutils grep sed mawk util-linux mount kmod libc-bin findutils \
        iproute2 ethtool dmidecode pciutils systemd base-files \
        rdmacm-utils ibverbs-providers
    for deb in debs/*.deb; do dpkg-deb -x "$deb" root; done
    mv root/boot/vmlinuz-* vmlinuz
    # The drivers of the devices below, and what they are built on.
    (cd root/lib/modules/* && mkdir ../kept && cp modules.builtin* modules.order ../kept &&
        find kernel/lib kernel/crypto kernel/arch/x86/crypto kernel/block kernel/drivers/block \
            kernel/drivers/nvme kernel/drivers/virtio kernel/drivers/infiniband kernel/drivers/pps \
            kernel/drivers/net/ethernet/intel/e1000e kernel/drivers/net/virtio_net.ko \
            kernel/drivers/net/net_failover.ko kernel/drivers/net/bonding kernel/drivers/net/veth.ko \
            kernel/drivers/ptp kernel/net kernel/fs/configfs kernel/fs/9p kernel/fs/netfs kernel/fs/fscache \
            -name '*.ko' -exec cp --parents {} ../kept ';')
    version=$(basename "$(find root/lib/modules -mindepth 1 -maxdepth 1 ! -name kept)")
    rm -rf "root/lib/modules/$version" root/boot root/usr/share root/usr/lib/debug
    mv root/lib/modules/kept "root/lib/modules/$version"
    ln -sf dash root/bin/sh
    ln -sf mawk root/usr/bin/awk
    mkdir -p root/proc root/sys root/dev root/tmp root/run root/shared
    cat >root/init <<'INIT'
#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc && mount -t sysfs sys /sys && mount -t devtmpfs dev /dev
mkdir -p /dev/shm && mount -t tmpfs shm /dev/shm && chmod 1777 /dev/shm /tmp
depmod -a
for module in virtio_pci 9pnet_virtio 9p; do modprobe $module; done
mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144 shared /shared
. /shared/guest >/shared/console 2>&1
sync
echo o >/proc/sysrq-trigger
sleep 1000
INIT
    chmod 755 root/init
    (cd root && find . | cpio -o -H newc -R 0:0 --quiet | gzip -1) >initramfs.gz
fi

# --- what happens in the guest --------------------------------------------------------------------
"$python" -c 'from paribus.probes import script; print(script())' >shared/facts.sh
cat >shared/guest <<'GUEST'
set -x
. /shared/settings
echo 'root:x:0:0::/:/bin/sh
nobody:x:65534:65534::/:/bin/sh' >/etc/passwd
echo recorded >/proc/sys/kernel/hostname
find /sys/devices -name modalias -exec cat {} + | sort -u | while read -r name; do
    modprobe -q "$name"
done
ip link set lo up
for port in /sys/class/net/eth*; do ip link set "${port##*/}" up; done
sleep 3 # e1000e takes its time to find the link
n=0
for port in /sys/class/net/eth*; do
    n=$((n + 1))
    ip address add 192.0.2.$n/32 dev "${port##*/}"
done
# Soft-RoCE on the card below the switch, which a rank would use for InfiniBand verbs.
modprobe crc32_generic
modprobe rdma_rxe
for port in /sys/class/net/eth*; do
    case $(readlink "$port/device/driver") in
    */e1000e) rdma link add "rxe_${port##*/}" type rxe netdev "${port##*/}" ;;
    esac
done
# Interfaces of other kinds: a bond, a bridge with one end of a pair, a VLAN.
ip link add bond0 type bond mode balance-xor
ip link add br0 type bridge stp_state 1
ip link add pair0 type veth peer name pair1
ip link set pair0 master br0
ip link add link eth2 name eth2.7 type vlan id 7
# Access control of the port above the switch: source validation, redirects, upstream forwarding.
setpci -s 80:00.0 ECAP_ACS+6.w=$acs
# How its packets are marked (where cma_roce_tos would do it), and some traffic, for the counters.
modprobe rdma_ucm
mount -t configfs config /sys/kernel/config
mkdir /sys/kernel/config/rdma_cm/rxe_eth0
echo $tos >/sys/kernel/config/rdma_cm/rxe_eth0/ports/1/default_roce_tos
timeout 20 rping -s -C 8 -a 192.0.2.1 &
sleep 2
timeout 20 rping -c -C 8 -a 192.0.2.1
wait
echo 32 >/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages
echo 1 >/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages
ulimit -l unlimited # what RDMA needs; nofile stays what the kernel gives

# One hierarchy, version 2: the stricter limit is sometimes above our own group, sometimes ours.
groups=/sys/fs/cgroup
mount -t cgroup2 cgroup2 $groups
echo "+cpu +cpuset +memory +pids +io" >$groups/cgroup.subtree_control
mkdir $groups/study.slice
echo "+cpu +cpuset +memory +pids +io" >$groups/study.slice/cgroup.subtree_control
mkdir $groups/study.slice/launch
echo "$quota 100000" >$groups/study.slice/cpu.max
echo "max 100000" >$groups/study.slice/launch/cpu.max
echo 200 >$groups/study.slice/launch/cpu.weight
echo 8G >$groups/study.slice/memory.max
echo $memory >$groups/study.slice/launch/memory.max
echo 3G >$groups/study.slice/launch/memory.high
echo 0 >$groups/study.slice/launch/memory.swap.max
echo 0-7 >$groups/study.slice/launch/cpuset.cpus
echo 0-3 >$groups/study.slice/launch/cpuset.mems
echo 4096 >$groups/study.slice/pids.max
for disk in /sys/block/nvme*; do
    echo "$(cat "$disk/dev") rbps=104857600 wiops=5000" >$groups/study.slice/launch/io.max
    break
done

# Twice as many busy processors as the quota above gives: it stops them.
sh -c "echo \$\$ >$groups/study.slice/launch/cgroup.procs
    for one in 0 1 2 3 4 5 6 7; do timeout 1 sh -c 'while :; do :; done' & done; wait"

cd /shared/outputs
cp $groups/study.slice/cpu.stat cpu.stat-above; cp $groups/study.slice/launch/cpu.stat cpu.stat-own
for port in /sys/class/net/eth*; do
    port=${port##*/}
    for what in i k g c a l S m "-show-fec" T; do ethtool -$what $port >ethtool-$what-$port 2>&1; echo "status $?" >>ethtool-$what-$port; done
    for what in pfc ets buffer maxrate app dcbx; do
        dcb $what show dev $port >dcb-$what-$port 2>&1; echo "status $?" >>dcb-$what-$port
    done
done
dcb pfc show >dcb-pfc 2>&1; echo "status $?" >>dcb-pfc
rdma link show >rdma-link 2>&1
rdma statistic show >rdma-statistic 2>&1
dmidecode >dmidecode 2>&1
dmidecode -t memory >dmidecode-memory 2>&1
cat /proc/interrupts >interrupts
for one in /proc/irq/*/smp_affinity_list; do echo "$one $(cat $one) $(cat ${one%smp*}effective_affinity_list) $(cat ${one%smp*}node)"; done >irq-affinity
head -v -n 99 /sys/bus/pci/devices/*/msi_irqs/* >msi-irqs 2>&1
grep -r '' /sys/class/infiniband/*/ 2>&1 | grep -v '/gid.*Invalid argument' | sort >infiniband
head -v -n 99 /sys/devices/system/node/node*/[cdm][ipe][usm]* >numa 2>&1
head -v -n 9 /sys/bus/pci/devices/*/[cmdvn][ulaeu][rxsnm]* >pci 2>&1
dmesg >dmesg

cd /tmp
(
    # The shell that reads the facts is in the group, its parent is not.
    exec 5<&0
    sh -c "echo \$\$ >$groups/study.slice/launch/cgroup.procs; exec env -i PATH=$PATH HOME=/ OMP_NUM_THREADS=4 \
        sh /shared/facts.sh nonce deep" >/shared/root
    sh -c "echo \$\$ >$groups/study.slice/launch/cgroup.procs; exec setpriv --reuid=65534 --regid=65534 --clear-groups \
        env -i PATH=/usr/bin:/bin HOME=/ OMP_NUM_THREADS=4 sh /shared/facts.sh nonce deep" >/shared/nobody
)
GUEST

# --- the machines ---------------------------------------------------------------------------------
# Two sockets of four cores with two threads; each core is a NUMA node of its own with 6 GiB
# (nothing touches most of that memory). SMBIOS has a memory device for every 16 GiB. On the second
# socket: root port 16 GT/s x16, switch, below it two NVMe and a NIC. On the first: a root port with
# a NIC, and a virtio NIC without a bridge above it.
for machine in numa moved; do
    case $machine in
    numa) near=12 socket=4 card=down2 speed=4800 acs=1d tos=104 quota=400000 memory=4G ;;
    moved) near=11 socket=5 card=port2 speed=5600 acs=0 tos=96 quota=300000 memory=5G ;;
    esac
    echo "acs=$acs tos=$tos quota=$quota memory=$memory" >shared/settings
    nodes='' distances=''
    for node in 0 1 2 3 4 5 6 7; do
        nodes="$nodes -object memory-backend-ram,id=m$node,size=6G,reserve=off
            -numa node,nodeid=$node,memdev=m$node,cpus=$((2 * node))-$((2 * node + 1))"
        for other in 0 1 2 3 4 5 6 7; do
            [ "$other" -gt "$node" ] || continue
            distance=$((node / 4 == other / 4 ? near : 32))
            distances="$distances -numa dist,src=$node,dst=$other,val=$distance"
        done
    done
    ports="-device pcie-root-port,id=port0,bus=pcie.0,chassis=3,slot=3,x-speed=8,x-width=8"
    [ "$card" = down2 ] ||
        ports="$ports -device pcie-root-port,id=$card,bus=pcie.0,chassis=4,slot=4,x-speed=8,x-width=8"
    rm -f shared/root shared/nobody
    # shellcheck disable=SC2086 # lists of arguments
    timeout "${LIMIT_S:-900}" qemu-system-x86_64 -machine q35,accel=tcg \
        -cpu "max,vendor=GenuineIntel" -smp 16,sockets=2,cores=4,threads=2 \
        -m 48G $nodes $distances \
        -smbios type=0,vendor=Paribus,version=7.2,date=01/02/2026,release=7.2 \
        -smbios "type=1,manufacturer=QEMU,product=NUMA guest,version=2,family=TCG,sku=guest-numa" \
        -smbios "type=2,manufacturer=QEMU,product=Board,version=3" \
        -smbios "type=17,loc_pfx=DIMM_,bank=BANK,manufacturer=Maker,part=PART-16G,speed=$speed" \
        -nodefaults -display none -no-reboot -serial file:console.log \
        -kernel vmlinuz -initrd initramfs.gz \
        -append "console=ttyS0 quiet panic=-1 isolcpus=15 transparent_hugepage=madvise" \
        -virtfs local,path=shared,mount_tag=shared,security_model=none \
        -device pxb-pcie,id=socket1,bus=pcie.0,bus_nr=128,numa_node=$socket \
        -device pcie-root-port,id=port1,bus=socket1,chassis=1,slot=1,x-speed=16,x-width=16 \
        -device x3130-upstream,id=switch,bus=port1 \
        -device xio3130-downstream,id=down0,bus=switch,chassis=2,slot=0 \
        -device xio3130-downstream,id=down1,bus=switch,chassis=2,slot=1 \
        -device xio3130-downstream,id=down2,bus=switch,chassis=2,slot=2 \
        $ports \
        -blockdev null-co,node-name=disk0,size=17179869184,read-zeroes=on \
        -blockdev null-co,node-name=disk1,size=17179869184,read-zeroes=on \
        -device nvme,serial=0,drive=disk0,bus=down0 -device nvme,serial=1,drive=disk1,bus=down1 \
        -netdev user,id=net0,restrict=on -device e1000e,netdev=net0,bus=$card \
        -netdev user,id=net1,restrict=on -device e1000e,netdev=net1,bus=port0 \
        -netdev user,id=net2,restrict=on -device virtio-net-pci,netdev=net2,bus=pcie.0

    for user in root nobody; do
        [ -s "shared/$user" ] || {
            echo "guest.sh: no facts of $user (see $work/console.log and shared/console)" >&2
            exit 1
        }
        "$python" "$here/keep.py" "tcg-guest-$machine-$user" <"shared/$user"
    done
done
