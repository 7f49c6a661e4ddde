# What the driver does on a machine, as root, in the shell of any Linux with
# shadow's useradd, util-linux, iproute2 and GNU findutils. The first argument
# is the operation. State is in a directory of root's; the file owner says whose
# the machine is, and goes last.
set -u
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export PATH LC_ALL=C
umask 077
state=/var/lib/croft
owner=$state/owner
accounts=$state/accounts
sudoers=/etc/sudoers.d/croft-accounts
steps=/var/lib/croft-steps
first_uid=20000

fail() {
  echo "$*" >&2
  exit 1
}

# put FILE: standard input becomes the file, whole or not at all.
put() {
  mkdir -p "$state" && cat >"$1.new" && sync "$1.new" && mv -f "$1.new" "$1" && sync "$state" || fail "cannot write $1"
}

boot_id() { cat /proc/sys/kernel/random/boot_id; }

# owned SLIVER: nothing is done to a machine that is somebody else's.
owned() {
  read -r holder _ <"$owner" 2>/dev/null || fail "no sliver has this machine"
  [ "$holder" = "$1" ] || fail "the machine is held by $holder"
}

# alone: an operation whose connection broke goes on; the next one waits for it.
alone() {
  exec 9>/run/croft.lock && flock -w 60 9 || fail "another operation on the machine does not end"
}

known() { getent passwd "$1" >/dev/null; }

# living UID: ids of its processes that are not dead already.
living() {
  for pid in $(find /proc -maxdepth 1 -name '[1-9]*' -uid "$1" 2>/dev/null); do
    pid=${pid#/proc/}
    read -r stat 2>/dev/null <"/proc/$pid/stat" || continue
    case ${stat##*) } in [ZX]*) ;; *) echo "$pid" ;; esac
  done
}

# end_processes UID: no process of it is left. What it starts meanwhile is
# stopped by its own hand: kill -1 reaches all that one user has at once.
end_processes() {
  tries=0
  while pids=$(living "$1") && [ -n "$pids" ]; do
    [ $((tries += 1)) -le 200 ] || fail "processes of user $1 do not end"
    setpriv --reuid="$1" --regid="$1" --clear-groups kill -KILL -1 2>/dev/null
    kill -KILL $pids 2>/dev/null
    [ "$tries" -lt 3 ] || sleep 0.05
  done
}

# end_logins UID: its SSH sessions end, what runs in the background goes on.
end_logins() {
  for pid in $(living "$1"); do
    read -r comm 2>/dev/null <"/proc/$pid/comm" || continue
    case $comm in sshd*) kill -KILL "$pid" 2>/dev/null ;; esac
  done
}

# end_steps: the supervisors of start-up steps, which are root's, and what they
# have started. Sudo puts this text into its own environment, so it must not
# contain what is looked for.
end_steps() {
  for round in 1 2 3; do
    grep -lsaF "CROFT_STEP_DIR=$steps/" /proc/[1-9]*/environ | while IFS=/ read -r _ _ pid _; do
      kill -KILL "$pid" 2>/dev/null
    done
  done
}

# close_account NAME UID: nobody logs in, nothing of it runs; its files stay.
close_account() {
  usermod -e 1 "$1" 2>/dev/null
  end_processes "$2"
  crontab -r -u "$1" 2>/dev/null
  return 0
}

drop_account() {
  known "$1" || return 0
  close_account "$1" "$2"
  userdel -f "$1" >/dev/null 2>&1
  ! known "$1" || fail "cannot remove the account $1"
  getent group "$1" >/dev/null && groupdel "$1" 2>/dev/null
  end_processes "$2"
}

# as NAME COMMAND…: with the rights of the account alone, as whoever works in a
# directory that the account can change has to.
as() {
  name=$1
  shift
  setpriv --reuid="$(id -u "$name")" --regid="$(id -g "$name")" --init-groups env -i PATH="$PATH" HOME="/home/$name" "$@"
}

# give_account NAME: makes it, or opens it again, with the keys of the list.
give_account() {
  uid=$(sed -n "s/^$1 //p" "$accounts" 2>/dev/null)
  if [ -z "$uid" ]; then
    ! known "$1" || fail "the machine has an account $1 of its own"
    # What ends with the account was made with it.
    [ ! -e "/home/$1" ] && [ ! -L "/home/$1" ] || fail "the machine has a directory /home/$1 of its own"
    uid=$first_uid
    while getent passwd "$uid" >/dev/null || getent group "$uid" >/dev/null || grep -qs " $uid\$" "$accounts"; do
      uid=$((uid + 1))
    done
    { cat "$accounts" 2>/dev/null; echo "$1 $uid"; } | put "$accounts"
  fi
  shell=/bin/sh
  [ ! -x /bin/bash ] || shell=/bin/bash
  if ! known "$1"; then
    getent group "$1" >/dev/null || groupadd -g "$uid" "$1" || fail "cannot make the group $1"
    # No password fits, and yet it is not locked: that would keep keys out, too.
    useradd -M -N -u "$uid" -g "$uid" -p '*' -d "/home/$1" -s "$shell" -c 'account of an experiment' "$1" || fail "cannot make the account $1"
  else
    usermod -e '' "$1" || fail "cannot open the account $1"
  fi
  if [ ! -d "/home/$1" ]; then
    mkdir -p /home && chmod 755 /home
    cp -rP /etc/skel "/home/$1" 2>/dev/null || mkdir "/home/$1"
    chown -hR "$uid:$uid" "/home/$1" && chmod 755 "/home/$1" || fail "cannot make the home of $1"
  fi
  had=$(sed -n "s/^key $1 //p" "$state/users.old" 2>/dev/null)
  want=$(sed -n "s/^key $1 //p" "$state/users")
  printf '%s\n' "$want" | as "$1" timeout 20 sh -c '
    umask 077; cd || exit
    [ -d .ssh ] && [ ! -L .ssh ] || rm -rf .ssh
    mkdir -p .ssh && chmod 700 . .ssh && chmod 755 . && rm -rf .ssh/authorized_keys .ssh/authorized_keys2 .ssh/new &&
      cat >.ssh/new && mv -f .ssh/new .ssh/authorized_keys' || fail "cannot write the keys of $1"
  # Who came in by a key that went is shown out. Which one was used cannot be
  # told, so all of the account's sessions end.
  printf '%s\n' "$had" | while read -r key; do
    [ -z "$key" ] || printf '%s\n' "$want" | grep -qxF "$key" || { end_logins "$uid"; break; }
  done
}

# users ROOT: the accounts become those of standard input, lines of
# "account NAME" and "key NAME KEY".
users() {
  [ ! -e "$state/users" ] || put "$state/users.old" <"$state/users"
  grep '^account \|^key ' "$state/request" | put "$state/users"
  while read -r name uid <&3; do
    grep -qxF "account $name" "$state/users" || drop_account "$name" "$uid"
  done 3<<LIST
$(cat "$accounts" 2>/dev/null)
LIST
  if [ "$1" = yes ]; then
    # The name of a file with a dot in it is not read by sudo.
    sed -n 's/^account \(.*\)$/\1 ALL=(ALL:ALL) NOPASSWD: ALL/p' "$state/users" >"$sudoers.new" && chmod 440 "$sudoers.new" &&
      mv -f "$sudoers.new" "$sudoers" || fail "cannot give root"
  else
    rm -f "$sudoers"
  fi
  while read -r name <&3; do
    [ -z "$name" ] || give_account "$name"
  done 3<<LIST
$(sed -n 's/^account //p' "$state/users")
LIST
}

# device MAC NAME: the interface by its address, or else by its name.
device() {
  if [ "$1" != - ]; then
    for dir in /sys/class/net/*; do
      if [ "$(cat "$dir/address" 2>/dev/null)" = "$1" ]; then
        echo "${dir##*/}"
        return
      fi
    done
    fail "no interface has the hardware address $1"
  fi
  [ -e "/sys/class/net/$2" ] || fail "there is no interface $2"
  echo "$2"
}

# interfaces: sets the addresses of lines "interface MAC NAME ADDRESS…".
interfaces() {
  while read -r word mac name addresses <&3; do
    [ "$word" = interface ] || continue
    dev=$(device "$mac" "$name") || exit 1
    grep -qsxF "$dev" "$state/devices" || { cat "$state/devices" 2>/dev/null; echo "$dev"; } | put "$state/devices"
    ip address flush dev "$dev" scope global && ip link set "$dev" up || fail "cannot set up interface $dev"
    for address in $addresses; do
      nodad=
      case $address in *:*) nodad=nodad ;; esac
      ip address add "$address" dev "$dev" $nodad || fail "cannot give $address to interface $dev"
    done
  done 3<"$state/request"
}

quiet_interfaces() {
  [ -e "$state/devices" ] || return 0
  while read -r dev <&3; do
    [ -z "$dev" ] || [ ! -e "/sys/class/net/$dev" ] || { ip address flush dev "$dev" && ip link set "$dev" down; } || fail "cannot clear interface $dev"
  done 3<"$state/devices"
}

look() {
  echo "boot $(boot_id)"
  if read -r sliver manager 2>/dev/null <"$owner"; then
    echo "owner $sliver $manager"
    [ "$(cat "$state/running" 2>/dev/null)" != "$(boot_id)" ] || echo running
  fi
  getent passwd | cut -d: -f1 | while read -r name; do
    grep -qs "^$name " "$accounts" || echo "account $name"
  done
}

# call_itself [NAME]: the host name, and where it resolves to, as sudo and others
# want to know it; without a name, what it was before.
call_itself() {
  if [ -f /etc/hosts ]; then
    # What start-up has put there ends with the node.
    block='/^# begin croft$/,/^# end croft$/d'
    [ -z "${1-}" ] || block=
    { sed "$block" /etc/hosts | grep -v ' # croft$'; [ -z "${1-}" ] || echo "127.0.1.1 $1 ${1%%.*} # croft"; } | put "$state/hosts"
    cmp -s "$state/hosts" /etc/hosts || cat "$state/hosts" >/etc/hosts || fail "cannot write /etc/hosts"
  fi
  if [ -z "${1-}" ] && [ -s "$state/hostname" ]; then
    set -- "$(cat "$state/hostname")"
  fi
  [ -z "${1-}" ] || hostname "$1" || fail "cannot set the host name"
}

# claim SLIVER MANAGER
claim() {
  if read -r sliver manager 2>/dev/null <"$owner"; then
    [ "$sliver $manager" = "$1 $2" ] || fail "the machine is held by $sliver of $manager"
    return
  fi
  hostname | put "$state/hostname"
  echo "$1 $2" | put "$owner"
}

# start SLIVER ROOT HOSTNAME: standard input has the accounts and interfaces.
start() {
  owned "$1"
  put "$state/request"
  call_itself "$3"
  users "$2"
  interfaces
  boot_id | put "$state/running"
}

# change SLIVER ROOT: standard input has the accounts.
change() {
  owned "$1"
  put "$state/request"
  users "$2"
}

# close SLIVER: the machine stays on, the node does not.
close() {
  owned "$1"
  rm -f "$state/running"
  quiet_interfaces
  end_steps
  while read -r name uid <&3; do
    [ -z "$name" ] || ! known "$name" || close_account "$name" "$uid"
  done 3<<LIST
$(cat "$accounts" 2>/dev/null)
LIST
}

# Where accounts without root can leave something.
open_places='/home /tmp /var/tmp /var/crash /var/spool /var/mail /var/lock /run /dev/shm /dev/mqueue /media /mnt /srv'

# of_accounts PLACE… -- ACTION…: find's action on what belongs to the accounts.
of_accounts() {
  who=
  for uid in $(cut -d' ' -f2 "$accounts"); do
    who="$who${who:+ -o }-uid $uid -o -gid $uid"
  done
  [ -n "$who" ] || return 0
  for place in $open_places; do
    [ ! -d "$place" ] || [ -L "$place" ] || find "$place" -xdev -depth \( $who \) "$@" 2>/dev/null
  done
}

# clean SLIVER MANAGER SCRATCH…: nothing of the node is left; at last, nor is
# the mark that the machine is its.
clean() {
  read -r holder manager 2>/dev/null <"$owner" || { [ ! -e "$state" ] || rm -rf "$state"; return 0; }
  [ "$holder $manager" = "$1 $2" ] || fail "the machine is held by $holder of $manager"
  shift 2
  rm -f "$state/running" "$sudoers" "$sudoers.new"
  quiet_interfaces
  end_steps
  rm -rf "$steps"
  if [ -e "$accounts" ]; then
    while read -r name uid <&3; do
      [ -n "$name" ] || continue
      drop_account "$name" "$uid"
      end_processes "$uid"
      rm -rf "/var/lib/systemd/linger/$name" "/var/mail/$name" "/var/spool/cron/crontabs/$name" "/var/spool/cron/$name" "/home/$name"
      for kind in shm:m msg:q sem:s; do
        awk -v uid="$uid" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "uid") at = i; next } $at == uid { print $2 }' \
          "/proc/sysvipc/${kind%:*}" 2>/dev/null | while read -r id; do ipcrm "-${kind#*:}" "$id" 2>/dev/null; done
      done
    done 3<"$accounts"
    of_accounts -exec rm -rf -- {} +
    left=$(of_accounts -print | head -n 3)
    [ -z "$left" ] || fail "files of the accounts cannot be removed: $left"
    while read -r name uid <&3; do
      [ -z "$(living "${uid:-0}")" ] && ! known "$name" || fail "the account $name cannot be removed"
    done 3<"$accounts"
  fi
  for place; do
    [ -d "$place" ] && [ ! -L "$place" ] || continue
    find "$place" -xdev -mindepth 1 -maxdepth 1 -exec rm -rf -- {} +
    [ -z "$(find "$place" -xdev -mindepth 1 | head -n 1)" ] || fail "scratch $place cannot be emptied"
  done
  call_itself
  find "$state" -mindepth 1 ! -name owner -exec rm -rf -- {} + 2>/dev/null
  rm -rf "$state"
}

# stop_execs MARK: ends the command that was begun with that mark.
stop_exec() {
  read -r session 2>/dev/null <"/run/croft/$1" || return 0
  for round in 1 2 3; do
    for dir in /proc/[1-9]*; do
      read -r stat 2>/dev/null <"$dir/stat" || continue
      set -- ${stat##*) }
      [ "${4:-}" != "$session" ] || kill -KILL "${dir#/proc/}" 2>/dev/null
    done
  done
}

operation=$1
shift
case $operation in
look) look ;;
claim | start | change | close | clean) alone; "$operation" "$@" ;;
stop-exec) stop_exec "$1"; rm -f "/run/croft/$1" ;;
reboot | poweroff) (sleep 0.1; "$operation" || systemctl "$operation") >/dev/null 2>&1 </dev/null & ;;
*) fail "no operation $operation" ;;
esac
