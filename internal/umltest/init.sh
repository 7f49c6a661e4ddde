#!/bin/sh
# Process 1 of a kernel of User-Mode Linux: runs the tests that its command line
# names and ends. The root is this machine's, read only.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root CROFT_INSIDE_UML=1
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /mnt
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mkdir -p /mnt/modules/lib /mnt/disk
ln -s /usr/lib/uml/modules /mnt/modules/lib/modules
for module in veth bridge sch_netem sch_tbf af_packet overlay loop ext4 ipv6; do
  modprobe -q -d /mnt/modules $module
done
# The tests' own files: on what takes all that nodes need.
truncate -s 600M /mnt/image
mkfs.ext4 -q -F /mnt/image
mount -o loop /mnt/image /mnt/disk
export TMPDIR=/mnt/disk
ip link set lo up
cd /mnt/disk
$(tr ' ' '\n' </proc/cmdline | sed -n 's/^croftrun=//p' | tr , ' ')
echo "croft-status $?"
echo o >/proc/sysrq-trigger
sleep 10
