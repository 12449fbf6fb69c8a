#!/usr/bin/env bash
# Several real SSH hosts on one machine, for the tests of the SSH plugin.
#
#   hosts.sh up [N]            install what is missing, start N hosts (default 4; more may be added by a later `up`), wait for all
#   hosts.sh down              end everything that was started, also what `run` left behind; delete the folder
#   hosts.sh status            say what runs; exit 0 only when every host answers
#   hosts.sh missing           print the Debian packages that are missing, exit 1 if there are any
#   hosts.sh run CMD...        run CMD in the client's network, as root with the client's HOME
#   hosts.sh exec HOST CMD...  run CMD as root on a host, not through SSH     (hosts.sh exec h1 ps ax; ssh exec h1 ss -tn)
#   hosts.sh count HOST        connections opened, log-ins accepted and sessions started on a host since `up`, and those open now
#   hosts.sh log HOST          the sshd's log
# Faults:
#   hosts.sh cut HOST [HOW]    drop (default): packets vanish both ways, no error      in / out: only to / from the host
#                         link: the interface goes down    reset: connections get RST, new ones "refused"
#                         stale: connections that exist now are black holes for ever, new ones work (a NAT that forgot)
#   hosts.sh join HOST         undo every cut (connections made `stale` too go on, if both ends still have them)
#   hosts.sh slow HOST MS [LOSS [MBIT]]   MS more round-trip time (half each way), LOSS % of packets lost in each direction,
#                         MBIT/s each way; `slow HOST 0` ends it. By a user-space relay: needs no netem (see below)
#   hosts.sh kill HOST         power failure: nothing is sent, all its processes are gone. Home, keys and /var/log stay
#   hosts.sh revive HOST       boot it again: new boot_id, empty /tmp and /run, same address and host keys
#   hosts.sh sshd HOST stop|start        the listener only: connections that exist live on
#   hosts.sh hangup HOST       kill -9 the sshd of every open connection (the client sees end of file); jobs in own sessions live
#   hosts.sh option HOST ['Keyword value'...]   put lines before all others in sshd_config and make sshd read it (no lines: undo)
#   hosts.sh rekey HOST        new host keys
#   hosts.sh full HOST [KIB]   home becomes a tmpfs with KIB (default 64) free; `full HOST off` brings the old one back
#   hosts.sh readonly HOST [off]   /home is mounted read-only
#   hosts.sh noise HOST [off]  the shell's rc file prints on stdout and stderr, also for `ssh HOST command`
#   hosts.sh delegate HOST     new sessions are in a control group for memory that their user may divide, as systemd makes them
#                         (version 1; for version 2 there is code, which was not tried)
#   hosts.sh clock HOST +1d    processes of new sessions see another time (libfaketime; `off` ends it)
#
# Times on 2 cores: up 1 s (12 hosts 2 s) with the packages installed, +10-30 s for their installation; down 0.5 s; faults
#   0.02-0.2 s, revive 0.3 s. `up` twice does nothing new, but writes known_hosts again.
#
# Needs: root, Debian 12 (apt), a kernel with namespaces, veth, bridge, nftables. No systemd.
# Makes: nothing outside the folder and its own namespaces. The network is private: no interface, address, route, rule or
#   port of the machine's own is touched, and there is no way from the hosts to the machine's network.
#   Users, names and keys exist only inside (own /etc/passwd, /etc/hosts, /etc/ssh by bind mounts).
#
#   host      addresses                   login shell   other
#   h1        10.77.0.11 fd77::11 (h1v6)  bash          also 10.78.0.11 in the inner network: jump host for h4
#   h2        10.77.0.12 fd77::12         bash          has a host certificate signed by the host CA
#   h3        10.77.0.13 fd77::13         tcsh          sshd banner, and ~/.cshrc prints lines on stdout and stderr
#   h4        10.78.0.14                  bash          inner network only: reached through h1
#   h5...     10.77.0.15 fd77::15 ...     bash
#   client    10.77.0.1  fd77::1          bash          where `run` runs; a server of a test there is reached as `client`.
#                                                       As a host it has the machine's files and processes.
#
#   Each host has its own network, pid, mount, UTS and IPC namespace, hostname, host keys (ed25519, ecdsa), machine-id,
#   boot_id, /home, /tmp, /var/tmp, /var/log, /run, /dev/shm. Shared with the machine: kernel, clock, CPUs, memory, and all
#   other files read-write for root only. The folder `shared` of the set is the same for all hosts and the client, at the same
#   path, and all may write to it. SSH_DEV_SHARE lists folders (colons between) which the hosts' user may read at
#   the same path, whatever folder they are in.
#   The client has the machine's files and processes (also /tmp), only names, users and network are its own; the home of its
#   root is in the folder. `run` keeps the environment and the working folder. A signal or kill -9 reaches CMD itself.
#   Uptime, load, cgroups and process start times (they count from the machine's boot) are the machine's.
#   The user on all hosts is `worker` (uid 52001), password `worker-password` (for PasswordAuthentication or
#   KbdInteractiveAuthentication, both off: `option h1 'KbdInteractiveAuthentication yes' 'AuthenticationMethods
#   publickey,keyboard-interactive'` is a two-factor log-in). Keys of the client's user (in ~/.ssh):
#     id_ed25519   accepted by all hosts        id_cert, id_cert-cert.pub   accepted by its certificate (TrustedUserCAKeys)
#     id_enc       accepted, passphrase `worker-passphrase`                 id_bad   not accepted by any host
#   ~/.ssh/config there knows h1, h2... (h4 by ProxyJump h1; `h1` is IPv4, `h1v6` the same host by IPv6); ~/.ssh/known_hosts has all plain host keys;
#   ~/.ssh/known_hosts_ca has the host CA only.
#
# Environment (all optional): SSH_DEV_DIR (default /var/tmp/ssh-dev; same value for all calls; several sets of hosts do not
#   know of each other), SSH_DEV_SHARE
set -u
CALLER_LC=${LC_ALL:-}
export LC_ALL=C
SELF=$(readlink -f "$0")
CALLER_PATH=$PATH
PATH=/usr/sbin:/usr/bin:/sbin:/bin
umask 022

DIR=${SSH_DEV_DIR:-/var/tmp/ssh-dev}
SHARE=${SSH_DEV_SHARE:-}
WUSER=worker WUID=52001 WPASS=worker-password
RUN=$DIR/run CL=$DIR/client CHOME=$DIR/client/home

say() { printf 'hosts.sh: %s\n' "$*"; }
die() { printf 'hosts.sh: %s\n' "$*" >&2; exit 1; }

# ---- processes that hold the namespaces: run/NAME.pid has "pid starttime" ----
starttime() { local s; read -r s 2>/dev/null <"/proc/$1/stat" || return 1; s=${s##*) }; set -- $s; echo "${20}"; }
pid_of() { # name: its pid if that very process still lives
    local p t; read -r p t 2>/dev/null <"$RUN/$1.pid" || return 1
    [ "$(starttime "$p" 2>/dev/null)" = "$t" ] && echo "$p"
}
record() { printf '%s %s\n' "$2" "$(starttime "$2")" >"$RUN/$1.tmp"; mv "$RUN/$1.tmp" "$RUN/$1.pid"; }
on() { local p; p=$(pid_of "$1") || die "$1 does not run"; shift; nsenter -t "$p" -a -- "$@"; }         # a host, all of it
net() { local p; p=$(pid_of "$1") || die "$1 does not run"; shift; nsenter -t "$p" -n -- "$@"; }       # its network only
cgroup_of() { echo "${DIR##*/}-$1"; }
hosts() { local f; for f in "$DIR"/hosts/*/; do [ -d "$f" ] && basename "$f"; done | sort -V; }
need_host() { [ -n "${1:-}" ] || die 'which host?'; [ -d "$DIR/hosts/$1" ] || die "no host $1 (there are: $(hosts | xargs))"; }
inner() { [ "$1" = h4 ]; }
number() { echo "${1#h}"; }

missing_packages() {
    [ -x /usr/sbin/sshd ] || echo openssh-server
    [ -x /usr/lib/openssh/sftp-server ] || echo openssh-sftp-server
    [ -x /usr/bin/ssh ] || echo openssh-client
    command -v ip >/dev/null && command -v tc >/dev/null && command -v ss >/dev/null || echo iproute2
    command -v nft >/dev/null || echo nftables
    command -v tcsh >/dev/null || echo tcsh
    command -v pgrep >/dev/null || echo procps
    [ -x /usr/bin/python3 ] || echo python3-minimal
    compgen -G '/usr/lib/*/faketime/libfaketimeMT.so.1' >/dev/null || echo libfaketime
    return 0
}
install_packages() {
    local want
    mapfile -t want < <(missing_packages)
    [ ${#want[@]} -eq 0 ] && return 0
    say "installing ${want[*]}"
    (
        flock 9
        mapfile -t want < <(missing_packages)  # another set of hosts may have installed them meanwhile
        [ ${#want[@]} -eq 0 ] && exit 0
        policy=
        if [ ! -e /usr/sbin/policy-rc.d ]; then  # keep the package from starting a daemon of its own
            policy=/usr/sbin/policy-rc.d; printf '#!/bin/sh\nexit 101\n' >$policy; chmod 755 $policy
        fi
        export DEBIAN_FRONTEND=noninteractive
        install=(apt-get -o DPkg::Lock::Timeout=300 -y install --no-install-recommends "${want[@]}")
        "${install[@]}" >"$RUN/apt.log" 2>&1 ||
            { apt-get update >>"$RUN/apt.log" 2>&1 && "${install[@]}" >>"$RUN/apt.log" 2>&1; }
        rc=$?
        [ -n "$policy" ] && rm -f "$policy"
        exit $rc
    ) 9>/tmp/apt.lock || die "apt failed, see $RUN/apt.log"
}

# passwd, group, shadow of the machine plus one user:  folder name uid home shell password-hash
accounts() {
    local d=$1 u=$2 id=$3 f
    for f in passwd group shadow; do grep -v "^$u:" /etc/$f >"$d/$f"; done
    printf '%s:x:%s:%s::%s:%s\n' "$u" "$id" "$id" "$4" "$5" >>"$d/passwd"
    printf '%s:x:%s:\n' "$u" "$id" >>"$d/group"
    printf '%s:%s:19000:0:99999:7:::\n' "$u" "$6" >>"$d/shadow"
    chmod 600 "$d/shadow"
    sed 's/^hosts:.*/hosts: files/' /etc/nsswitch.conf >"$d/nsswitch.conf"
    : >"$d/resolv.conf"
}

names() { # what every host and the client know, for N up to 99
    local i
    printf '127.0.0.1 localhost\n::1 localhost ip6-localhost\n10.77.0.1 client\nfd77::1 clientv6\n'
    for i in $(seq 1 99); do
        if inner "h$i"; then printf '10.78.0.%d h%d\n' $((10 + i)) "$i"
        else printf '10.77.0.%d h%d\nfd77::%d h%dv6\n' $((10 + i)) "$i" $((10 + i)) "$i"; fi
    done
}

host_keys() { # host
    local d=$DIR/hosts/$1/ssh
    rm -f "$d"/ssh_host_*
    ssh-keygen -q -t ed25519 -N '' -C "$1" -f "$d/ssh_host_ed25519_key"
    ssh-keygen -q -t ecdsa -N '' -C "$1" -f "$d/ssh_host_ecdsa_key"
    if [ "$1" = h2 ]; then ssh-keygen -q -s "$DIR/ca/host_ca" -I "$1" -h -n "$1,10.77.0.12,fd77::12" "$d/ssh_host_ed25519_key.pub" 2>/dev/null; fi
}

sshd_config() { # host
    local d=$DIR/hosts/$1
    {
        cat "$d/options" "$d/clock" 2>/dev/null
        cat <<CONF
Port 22
HostKey /etc/ssh/ssh_host_ed25519_key
HostKey /etc/ssh/ssh_host_ecdsa_key
TrustedUserCAKeys /etc/ssh/user_ca.pub
PidFile /run/sshd.pid
LogLevel VERBOSE
PermitRootLogin no
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM yes
PrintMotd no
AcceptEnv LANG LC_*
Subsystem sftp /usr/lib/openssh/sftp-server
CONF
        if [ -e "$d/ssh/ssh_host_ed25519_key-cert.pub" ]; then echo 'HostCertificate /etc/ssh/ssh_host_ed25519_key-cert.pub'; fi
        if [ "$1" = h3 ]; then echo 'Banner /etc/ssh/banner'; fi
    } >"$d/ssh/sshd_config.new"
    chmod 600 "$d/ssh/sshd_config.new"
    /usr/sbin/sshd -t -f "$d/ssh/sshd_config.new" -h "$d/ssh/ssh_host_ed25519_key" 2>"$d/check" ||
        { grep -vE 'host key|hostkeys|Missing privilege|No such file' "$d/check" | grep -qE 'line [0-9]+|Bad|Unsupported|keyword' &&
          { cat "$d/check" >&2; rm -f "$d/ssh/sshd_config.new"; return 1; }; }
    mv "$d/ssh/sshd_config.new" "$d/ssh/sshd_config"
}

prepare_host() { # host: its files, once
    local h=$1 d=$DIR/hosts/$1 shell=/bin/bash
    [ -e "$d/made" ] && return 0
    [ "$h" = h3 ] && shell=/bin/tcsh
    mkdir -p "$d"/{home,tmp,vartmp,log,ssh,etc,run}
    chmod 1777 "$d/tmp" "$d/vartmp"
    accounts "$d/etc" $WUSER $WUID /home/$WUSER $shell "$(cat "$DIR/ca/hash")"
    names >"$d/etc/hosts"; echo "$h" >"$d/etc/hostname"
    head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \n' >"$d/etc/machine-id"
    cp "$DIR/ca/user_ca.pub" "$d/ssh/"
    printf '%s\n' '*** This machine is for authorized users only. ***' "*** \$HOME; \"quotes\" and 'quotes' ***" >"$d/ssh/banner"
    mkdir -p "$d/home/$WUSER/.ssh"
    cat "$CHOME/.ssh/id_ed25519.pub" "$CHOME/.ssh/id_enc.pub" >"$d/home/$WUSER/.ssh/authorized_keys"
    [ "$shell" = /bin/bash ] && cp /etc/skel/.bashrc /etc/skel/.profile "$d/home/$WUSER/" 2>/dev/null
    [ "$h" = h3 ] && noise_file "$d/home/$WUSER" $shell
    chmod 700 "$d/home/$WUSER" "$d/home/$WUSER/.ssh"; chmod 600 "$d/home/$WUSER/.ssh/authorized_keys"
    chown -R $WUID:$WUID "$d/home/$WUSER"
    host_keys "$h"; sshd_config "$h"
    : >"$d/made"
}

noise_file() { # home shell
    case $2 in
    *csh) printf '%s\n' 'echo "Welcome to this machine. Quota: 3 % used."' 'sh -c "echo rc file on stderr 1>&2"' >"$1/.cshrc" ;;
    *)    sed -i '1i echo "Welcome to this machine. Quota: 3 % used."; echo "rc file on stderr" >&2' "$1/.bashrc" ;;
    esac
}

prepare_client() {
    local s=$CHOME/.ssh
    [ -e "$CL/made" ] && return 0
    mkdir -p "$s" "$CL/etc" "$DIR/ca" "$DIR/hosts" "$DIR/shared"
    chmod 1777 "$DIR/shared"
    ssh-keygen -q -t ed25519 -N '' -C user-ca -f "$DIR/ca/user_ca"
    ssh-keygen -q -t ed25519 -N '' -C host-ca -f "$DIR/ca/host_ca"
    ssh-keygen -q -t ed25519 -N '' -C ok -f "$s/id_ed25519"
    ssh-keygen -q -t ed25519 -N '' -C bad -f "$s/id_bad"
    ssh-keygen -q -t ed25519 -N '' -C cert -f "$s/id_cert"
    ssh-keygen -q -t ed25519 -N worker-passphrase -C encrypted -f "$s/id_enc"
    ssh-keygen -q -s "$DIR/ca/user_ca" -I client -n $WUSER "$s/id_cert.pub" 2>/dev/null
    printf '@cert-authority * %s\n' "$(cat "$DIR/ca/host_ca.pub")" >"$s/known_hosts_ca"
    openssl passwd -6 "$WPASS" >"$DIR/ca/hash" 2>/dev/null || python3 -c 'import crypt,sys;print(crypt.crypt(sys.argv[1]))' "$WPASS" >"$DIR/ca/hash"
    chmod 700 "$DIR/ca"
    accounts "$CL/etc" $WUSER $WUID "$CL/worker" /bin/bash '*'
    mkdir -p "$CL/worker/.ssh" "$CL/ssh"
    cp "$s/id_ed25519.pub" "$CL/worker/.ssh/authorized_keys"
    chmod 700 "$CL/worker" "$CL/worker/.ssh"; chown -R $WUID:$WUID "$CL/worker"
    ssh-keygen -q -t ed25519 -N '' -C client -f "$CL/ssh/key"
    printf '%s\n' 'Port 22' "HostKey $CL/ssh/key" 'PidFile none' 'UsePAM yes' 'PermitRootLogin no' 'PasswordAuthentication no' >"$CL/ssh/sshd_config"
    sed -i "s|^\(root:[^:]*:[^:]*:[^:]*:[^:]*\):[^:]*:|\1:$CHOME:|" "$CL/etc/passwd"  # ssh looks for root's files there
    names >"$CL/etc/hosts"
    printf 'Host h4\n    ProxyJump h1\nHost h* client\n    User %s\n' $WUSER >"$s/config"
    chmod 700 "$s"
    : >"$CL/made"
}

known_hosts() {
    local h k f=$CHOME/.ssh/known_hosts
    for h in $(hosts); do
        for k in ed25519 ecdsa; do
            k=$(cut -d' ' -f1,2 "$DIR/hosts/$h/ssh/ssh_host_${k}_key.pub")
            if inner "$h"; then printf '%s,10.78.0.%d %s\n' "$h" $((10 + $(number "$h"))) "$k"
            else printf '%s,%sv6,10.77.0.%d,fd77::%d %s\n' "$h" "$h" $((10 + $(number "$h"))) $((10 + $(number "$h"))) "$k"; fi
        done
    done >"$f"
    echo "client $(cut -d' ' -f1,2 "$CL/ssh/key.pub")" >>"$f"
    chmod 600 "$f"
}

# ---- namespaces ----
hold() { # name flags... : a process that keeps namespaces and has no other work
    local name=$1; shift
    setsid unshare "$@" --propagation private "$SELF" _hold "$name" </dev/null >>"$RUN/$name.out" 2>&1 8<&- &
    disown
}
share() { # folder-of-shares list: keep each folder of the list in sight
    local f n=0 IFS=:
    for f in $2; do
        n=$((n + 1)); mkdir -p "$1/$n"; echo "$f" >"$1/$n.path"
        mount --rbind "$f" "$1/$n"
        [ "$f" = "$DIR/shared" ] || mount -o remount,bind,ro "$1/$n"
    done
}
show() { # folder-of-shares: put them where they belong, through folders that are closed to others
    local n f part
    for n in "$1"/*.path; do
        [ -e "$n" ] || continue
        read -r f <"$n"; part=$f
        while [ "$part" != / ]; do
            case $(stat -c %A "$part" 2>/dev/null) in *x | *t | '') ;; *) mount -t tmpfs -o mode=755 none "$part" ;; esac
            part=$(dirname "$part")
        done
        mkdir -p "$f"; mount --rbind "${n%.path}" "$f"
    done
}
own_etc() { # folder: its files stand before those of /etc
    # Not a mount for each file: such a mount vanishes when the machine replaces the file, as some do with /etc/hosts.
    mount -t overlay none -o "lowerdir=$1:/etc" /etc || { local f; for f in "$1"/*; do mount --bind "$f" "/etc/${f##*/}"; done; }
}
_hold() { # inside
    local name=$1 pid _ f
    read -r pid _ </proc/self/stat  # /proc is still the machine's: this is the pid seen from outside
    case $name in
    switch) ip link set lo up; ip link add br0 type bridge; ip link add br1 type bridge; ip link set br0 up; ip link set br1 up
            record switch "$pid"; exec -a "ssh-dev switch" sleep infinity ;;
    client) ip link set lo up; hostname client
            own_etc "$CL/etc"
            mount -t tmpfs -o mode=755 none /run; mkdir /run/sshd
            env -i PATH=$PATH LC_ALL= /usr/sbin/sshd -f "$CL/ssh/sshd_config" -E "$CL/ssh/log"
            record client "$pid"; exec -a "ssh-dev client" sleep infinity ;;
    esac
    local d=$DIR/hosts/$name
    hostname "$name"; ip link set lo up
    mount -t tmpfs -o mode=755 none "$d/run"  # first of all: the folders to share may lie where the host's own come
    mkdir -p "$d/run/sshd"
    share "$d/run/share" "$DIR/shared${SHARE:+:$SHARE}"
    own_etc "$d/etc"
    mount --bind "$d/ssh" /etc/ssh; mount --bind "$d/log" /var/log
    mount --bind "$d/home" /home; mount --bind "$d/tmp" /tmp
    cat /proc/sys/kernel/random/uuid >"$d/etc/boot_id"
    exec 5<"$d/vartmp" 6<"$d/etc/boot_id"
    mount --rbind "$d/run" /run; mount -t tmpfs -o mode=1777 none /dev/shm
    case $d/ in /run/* | /home/* | /tmp/* | /var/tmp/*) ;; *) mount -t tmpfs -o mode=755,size=4k none "$DIR" ;; esac
    mount --bind "/proc/self/fd/5" /var/tmp
    show /run/share
    mount -t proc proc /proc; mount --bind "/proc/self/fd/6" /proc/sys/kernel/random/boot_id 2>/dev/null
    exec 5<&- 6<&-
    cd /
    env -i PATH=$PATH LC_ALL= /usr/sbin/sshd -E /var/log/sshd.log
    # /proc is now the host's own and the folder is out of sight: the caller records the pid
    exec -a init bash -c 'trap "exit 0" TERM; trap : HUP INT; while :; do sleep 86400 & wait; done'
}
start_holder() { # name flags... ; waits for its record
    local i
    pid_of "$1" >/dev/null && return 0
    rm -f "$RUN/$1.pid"; hold "$@"
    for i in $(seq 3000); do pid_of "$1" >/dev/null && return 0; sleep 0.01; done
    die "$1 did not start, see $RUN/$1.out"
}

wire() { # host: its cable to the switch
    local h=$1 n pid sw br=br0 v
    n=$((10 + $(number "$h"))); pid=$(pid_of "$h"); sw=$(pid_of switch)
    inner "$h" && br=br1
    v=$(nsenter -t "$sw" -n ip -o link show "p-$h" 2>/dev/null) && [ -n "$v" ] && nsenter -t "$sw" -n ip link del "p-$h"
    nsenter -t "$sw" -n ip -batch - <<B || die "no cable for $h"
link add p-$h type veth peer name eth0 address 02:00:00:00:00:$(printf %02x $n) netns $pid
link set p-$h master $br up
B
    if inner "$h"; then printf 'addr add 10.78.0.%d/24 dev eth0\nlink set eth0 up\n' $n
    else printf 'addr add 10.77.0.%d/24 dev eth0\naddr add fd77::%d/64 dev eth0 nodad\nlink set eth0 up\n' $n $n; fi |
        nsenter -t "$pid" -n ip -batch -
    if [ "$h" = h1 ]; then
        nsenter -t "$sw" -n ip link del "q-$h" 2>/dev/null
        printf 'link add q-%s type veth peer name eth1 address 02:00:00:00:01:0b netns %s\nlink set q-%s master br1 up\n' "$h" "$pid" "$h" | nsenter -t "$sw" -n ip -batch -
        printf 'addr add 10.78.0.%d/24 dev eth1\nlink set eth1 up\n' $n | nsenter -t "$pid" -n ip -batch -
    fi
}

start_host() { # host
    local h=$1 i u=
    pid_of "$h" >/dev/null && return 0
    rm -f "$RUN/$h.pid"
    setsid unshare --mount --uts --ipc --net --pid --fork --kill-child --propagation private "$SELF" _hold "$h" </dev/null >"$RUN/$h.out" 2>&1 8<&- &
    u=$!; disown; record "boot-$h" $u
    for i in $(seq 3000); do  # the child of unshare is the host's pid 1; it is ready when it calls itself init
        [ -d "/proc/$u" ] || { i=; break; }
        i=$(cat "/proc/$u/task/$u/children"); i=${i% }
        case "$i:$(tr '\0' ' ' 2>/dev/null <"/proc/$i/cmdline")" in [0-9]*:"init -c "*) break ;; esac
        i=; sleep 0.01
    done
    [ -n "$i" ] || { cat "$RUN/$h.out" >&2; die "$h did not start"; }
    record "$h" "$i"
    wire "$h"
}

answers() { # host: an SSH greeting
    local a=10.77.0.$((10 + $(number "$1"))) via=client
    inner "$1" && { a=10.78.0.$((10 + $(number "$1"))); via=h1; }
    net "$via" timeout 2 bash -c "exec 3<>/dev/tcp/$a/22 && read -r -t 2 l <&3 && [ \"\${l:0:4}\" = SSH- ]" 2>/dev/null
}

up() {
    local n=${1:-4} i h sw c t0=$EPOCHREALTIME
    [ "$(id -u)" = 0 ] || die 'needs root'
    [[ $n =~ ^[0-9]+$ ]] && [ "$n" -ge 1 ] && [ "$n" -le 89 ] || die 'how many? 1 to 89'
    mkdir -p "$RUN"; chmod 755 "$DIR"
    install_packages
    prepare_client
    start_holder switch --net --mount
    start_holder client --net --mount --uts
    sw=$(pid_of switch); c=$(pid_of client)
    if ! nsenter -t "$sw" -n ip link show p-client >/dev/null 2>&1; then
        printf 'link add p-client type veth peer name eth0 netns %s\nlink set p-client master br0 up\n' "$c" | nsenter -t "$sw" -n ip -batch -
        printf 'addr add 10.77.0.1/24 dev eth0\naddr add fd77::1/64 dev eth0 nodad\nlink set eth0 up\n' | nsenter -t "$c" -n ip -batch -
    fi
    for i in $(seq "$n"); do ( prepare_host "h$i" && start_host "h$i" ) & done; wait
    known_hosts
    for h in $(hosts); do
        until [ $SECONDS -gt 60 ]; do answers "$h" && continue 2; sleep 0.05; done
        die "$h does not answer (was it cut, killed, or its sshd stopped?)"
    done
    say "up: $(hosts | xargs)  ($(echo "$EPOCHREALTIME $t0" | awk '{printf "%.1f", $1 - $2}') s, folder $DIR)"
}

in_net() { # every pid whose network namespace is that of pid $1
    local id; id=$(readlink "/proc/$1/ns/net") || return 0
    find /proc/[0-9]*/ns/net -lname "net:?${id//[^0-9]/}?" 2>/dev/null | cut -d/ -f3
}

down() {
    local h p i mine
    [ -d "$DIR" ] || { say 'nothing to stop'; return 0; }
    mine=$(readlink /proc/self/ns/net)
    for h in client switch; do  # what `run` left there, and relays
        p=$(pid_of "$h") || continue
        [ "$(readlink "/proc/$p/ns/net")" = "$mine" ] && die 'run `down` outside of `run`'
        in_net "$p" | xargs -r kill -9 2>/dev/null
    done
    for h in $(hosts); do for i in "$h" "boot-$h"; do p=$(pid_of "$i") && kill -9 "$p" 2>/dev/null; done; done
    for i in $(seq 200); do
        p=; for h in client switch $(hosts) $(hosts | sed 's/^/boot-/'); do pid_of "$h" >/dev/null && p=1; done
        [ -z "$p" ] && break; sleep 0.02
    done
    [ -z "$p" ] || die 'some processes did not end'
    for h in $(hosts); do
        for i in /sys/fs/cgroup{/memory,}/"$(cgroup_of "$h")"; do [ -d "$i" ] && find "$i" -depth -type d -exec rmdir {} + 2>/dev/null; done
    done
    rm -rf "$DIR" 2>/dev/null || { sleep 0.3; rm -rf "$DIR"; }
    [ -e "$DIR" ] && die "could not delete $DIR"
    rm -f "$DIR.lock"
    say 'down'
}

status() {
    local h rc=0
    for h in switch client; do pid_of "$h" >/dev/null && say "$h runs (pid $(pid_of "$h"))" || { say "$h does not run"; rc=1; }; done
    [ $rc = 0 ] && for h in $(hosts); do
        if ! pid_of "$h" >/dev/null; then say "$h is dead"; rc=1
        elif answers "$h"; then say "$h answers (pid 1 is $(pid_of "$h") outside)$(cat "$RUN/$h.cut" "$RUN/$h.slow" 2>/dev/null | sed 's/^/, /' | tr -d '\n')"
        else say "$h does not answer$(cat "$RUN/$h.cut" "$RUN/$h.slow" 2>/dev/null | sed 's/^/, /' | tr -d '\n')"; rc=1; fi
    done
    return $rc
}

run_in_client() {
    local p; p=$(pid_of client) || die 'not up'
    [ $# -gt 0 ] || set -- bash
    export PATH=$CALLER_PATH HOME=$CHOME; unset LC_ALL SSH_AUTH_SOCK
    [ -n "${CALLER_LC:-}" ] && export LC_ALL=$CALLER_LC
    exec /usr/bin/nsenter -t "$p" -n -m -u -- /bin/sh -c 'cd "$0" 2>/dev/null || cd /; exec "$@"' "$PWD" "$@"
}

# ---- faults ----
ruleset() { # stdin: nft rules for one host, in the switch (bridge family) as table cut_HOST
    { printf 'table bridge cut_%s\ndelete table bridge cut_%s\n' "$1" "$1"; cat; } | net switch nft -f -
}
cut_host() {
    local h=$1 how=${2:-drop} rules=
    pid_of "$h" >/dev/null || die "$h is dead"
    local i="iifname { \"p-$h\", \"q-$h\" } drop" o="oifname { \"p-$h\", \"q-$h\" } drop"
    case $how in
    drop) rules="$i; $o" ;;
    in)   rules="$o" ;;
    out)  rules="$i" ;;
    link) net switch ip link set "p-$h" down; if [ "$h" = h1 ]; then net switch ip link set q-h1 down; fi; echo 'cut (link)' >"$RUN/$h.cut"; return ;;
    reset) net "$h" nft -f - <<R
table inet cut
delete table inet cut
table inet cut {
  chain in { type filter hook input priority 0; iif != lo meta l4proto tcp reject with tcp reset; }
  chain out { type filter hook output priority 0; oif != lo tcp flags & rst == 0 meta l4proto tcp reject with tcp reset; }
}
R
        echo 'cut (reset)' >"$RUN/$h.cut"; return ;;
    stale) # the connections that are open now, by their ports at the client's side
        local ports; ports=$(net "$h" ss -Htn state established | awk '$3 ~ /:22$/ {n=split($4,a,":"); print a[n]}' | sort -un | paste -sd,)
        [ -n "$ports" ] || { say "no connection to $h is open"; return 0; }
        net "$h" nft -f - <<R
table inet stale
delete table inet stale
table inet stale {
  chain in { type filter hook input priority 0; tcp dport 22 tcp sport { $ports } drop; }
  chain out { type filter hook output priority 0; tcp sport 22 tcp dport { $ports } drop; }
}
R
        echo 'has stale connections' >"$RUN/$h.cut"; return ;;
    *) die "cut HOST drop|in|out|link|reset|stale" ;;
    esac
    printf 'table bridge cut_%s {\n chain f { type filter hook forward priority 0; %s; }\n}\n' "$h" "$rules" | ruleset "$h" || die 'nft refused'
    echo "cut ($how)" >"$RUN/$h.cut"
}
join_host() {
    net switch nft delete table bridge "cut_$1" 2>/dev/null
    if pid_of "$1" >/dev/null; then
        net "$1" nft delete table inet cut 2>/dev/null; net "$1" nft delete table inet stale 2>/dev/null
        net switch ip link set "p-$1" up; if [ "$1" = h1 ]; then net switch ip link set q-h1 up; fi
    fi
    rm -f "$RUN/$1.cut"; forget_arp; return 0
}
forget_arp() { # "no route to host" would be remembered for some seconds
    local n; for n in client $(hosts); do pid_of "$n" >/dev/null && net "$n" ip neigh flush all nud failed nud incomplete nud stale 2>/dev/null; done; return 0
}

stop_relay() {
    local p; p=$(pid_of "relay-$1") && { kill "$p"; while pid_of "relay-$1" >/dev/null; do sleep 0.01; done; }
    rm -f "$RUN/relay-$1.pid" "$RUN/$1.slow"
    net switch ip link del "s-$1" 2>/dev/null
    if pid_of "$1" >/dev/null; then
        local br=br0; inner "$1" && br=br1
        net switch ip link set "p-$1" master $br
        net "$1" ip link set eth0 gso_max_segs 65535 2>/dev/null
    fi
    return 0
}
slow_host() { # host ms loss mbit: the host's cable leaves the bridge and goes through a process that delays and drops frames
    local h=$1 ms=${2:?'slow HOST MS [LOSS [MBIT]]'} loss=${3:-0} mbit=${4:-0} br=br0 i
    loss=${loss%\%}; inner "$h" && br=br1
    pid_of "$h" >/dev/null || die "$h is dead"
    stop_relay "$h"
    [ "$ms$loss$mbit" = 000 ] && return 0
    printf 'link add s-%s type veth peer name t-%s\nlink set s-%s up\nlink set t-%s gso_max_segs 1\nlink set t-%s master %s up\nlink set p-%s nomaster\n' \
        "$h" "$h" "$h" "$h" "$h" "$br" "$h" | net switch ip -batch - || die 'no second cable'
    net "$h" ip link set eth0 gso_max_segs 1
    (relay_code) >"$RUN/relay.py"
    setsid nsenter -t "$(pid_of switch)" -n /usr/bin/python3 "$RUN/relay.py" "p-$h" "s-$h" "$ms" "$loss" "$mbit" </dev/null >>"$RUN/relay.out" 2>&1 8<&- &
    record "relay-$h" $!; disown
    for i in $(seq 200); do
        [ "$(tr '\0' ' ' <"/proc/$!/cmdline" 2>/dev/null | cut -c1-5)" = /usr/ ] && grep -q "ready p-$h" "$RUN/relay.out" && break
        sleep 0.01
    done
    sed -i "/ready p-$h/d" "$RUN/relay.out"
    record "relay-$h" $!
    echo "slow ($ms ms, $loss % loss$([ "$mbit" = 0 ] || echo ", $mbit Mbit/s"))" >"$RUN/$h.slow"
}
relay_code() { cat <<'PY'
import collections, random, select, socket, sys, time
left, right, ms, loss, mbit = sys.argv[1], sys.argv[2], float(sys.argv[3]), float(sys.argv[4]), float(sys.argv[5])
def port(name):
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    s.setsockopt(263, 23, 1)   # SOL_PACKET, PACKET_IGNORE_OUTGOING
    s.setsockopt(263, 15, 1)   # PACKET_VNET_HDR: checksums not yet made go along
    s.setsockopt(socket.SOL_SOCKET, 33, 16 << 20)  # SO_RCVBUFFORCE
    s.setsockopt(socket.SOL_SOCKET, 32, 16 << 20)
    s.bind((name, 0)); s.setblocking(False)
    return s
a, b = port(left), port(right)
q = {a: collections.deque(), b: collections.deque()}   # frames that came in at this port
out, free = {a: b, b: a}, {a: 0.0, b: 0.0}
LIMIT = 4000   # frames waiting in each direction
print('ready', left, flush=True)
while True:
    now, wait = time.monotonic(), None
    for s in q:
        d = q[s]
        while d and d[0][0] <= now:
            try: out[s].send(d.popleft()[1])
            except OSError as e: print(e, file=sys.stderr, flush=True)
        if d: wait = min(d[0][0] - now, wait if wait is not None else 9)
    r, _, _ = select.select([a, b], [], [], wait)
    now = time.monotonic()
    for s in r:
        for _ in range(64):
            try: f = s.recv(70000)
            except BlockingIOError: break
            except OSError as e: print(e, file=sys.stderr, flush=True); time.sleep(0.05); break
            arp = f[22:24] == b'\x08\x06'
            if (loss and not arp and random.random() * 100 < loss) or len(q[s]) >= LIMIT: continue
            t = now
            if mbit: t = free[s] = max(now, free[s]) + len(f) * 8e-6 / mbit
            q[s].append((t + ms / 2000, f))
PY
}

reload_sshd() { # host: read the configuration again; listener only, connections live on
    on "$1" sh -c 'p=$(cat /run/sshd.pid 2>/dev/null) && kill -HUP "$p" 2>/dev/null || { /usr/sbin/sshd -E /var/log/sshd.log; }'
    local i; sleep 0.05
    for i in $(seq 100); do on "$1" sh -c 'kill -0 "$(cat /run/sshd.pid)" && ss -Hltn sport = :22 | grep -q .' 2>/dev/null && return 0; sleep 0.02; done
    tail -3 "$DIR/hosts/$1/log/sshd.log" >&2; die "sshd of $1 did not come back"
}

main() {
    local cmd=${1:-help} h; [ $# -gt 0 ] && shift
    case $cmd in
    help | -h | --help) sed -n '2,/^set -u/{/^set -u/d;s/^# \{0,1\}//;p}' "$SELF"; return ;;
    _hold) _hold "$@"; return ;;
    up | down | kill | revive | cut | join | slow | option | rekey | full | readonly | noise | delegate | clock | sshd)
        [ "$(id -u)" = 0 ] || die 'needs root'; exec 8>>"$DIR.lock"; flock -w 60 8 || die 'another run of this script does not end' ;;
    esac
    case $cmd in
    up) up "$@"; return ;;
    down) down; return ;;
    status) status; return ;;
    missing) missing_packages; [ -z "$(missing_packages)" ]; return ;;
    run) run_in_client "$@" ;;
    esac
    h=${1:-}; need_host "$h"; shift
    local d=$DIR/hosts/$h home=$DIR/hosts/$h/home/$WUSER
    case $cmd in
    exec) on "$h" "$@" ;;
    log) cat "$d/log/sshd.log" ;;
    count) printf 'opened=%s accepted=%s sessions=%s open_now=%s\n' "$(grep -c 'Connection from' "$d/log/sshd.log")" "$(grep -cE '^Accepted [a-z/-]+ for ' "$d/log/sshd.log")" \
            "$(grep -c 'Starting session' "$d/log/sshd.log")" "$(net "$h" ss -Htn state established sport = :22 | wc -l)" ;;
    cut) cut_host "$h" "$@" ;;
    join) join_host "$h" ;;
    slow) slow_host "$h" "$@" ;;
    kill) h=$h; local p; p=$(pid_of "$h") || return 0
          net switch ip link set "p-$h" down; if [ "$h" = h1 ]; then net switch ip link set q-h1 down; fi
          stop_relay "$h"; net switch ip link set "p-$h" down
          kill -9 "$p"; while [ -d "/proc/$p" ]; do sleep 0.01; done
          net switch nft delete table bridge "cut_$h" 2>/dev/null; rm -f "$RUN/$h".{pid,cut,slow} ;;
    revive) pid_of "$h" >/dev/null && return 0
          find "$d/tmp" -mindepth 1 -delete; start_host "$h"; forget_arp
          until [ $SECONDS -gt 60 ]; do answers "$h" && return 0; sleep 0.05; done; die "$h does not answer" ;;
    sshd) case ${1:-} in
          stop) on "$h" sh -c 'kill "$(cat /run/sshd.pid)"; rm -f /run/sshd.pid' ;;
          start) on "$h" sh -c 'kill -0 "$(cat /run/sshd.pid 2>/dev/null)" 2>/dev/null || /usr/sbin/sshd -E /var/log/sshd.log' ;;
          *) die 'sshd HOST stop|start' ;; esac ;;
    hangup) on "$h" sh -c 'l=$(cat /run/sshd.pid 2>/dev/null || echo 0); for p in $(pgrep -x sshd); do [ "$p" = "$l" ] || kill -9 "$p"; done; true' ;;
    option) cp "$d/options" "$d/options.old" 2>/dev/null || : >"$d/options.old"
          if [ $# -eq 0 ]; then : >"$d/options"; else printf '%s\n' "$@" "$(cat "$d/options.old")" >"$d/options"; fi
          sshd_config "$h" || { mv "$d/options.old" "$d/options"; die "sshd does not take that"; }
          reload_sshd "$h" ;;
    rekey) host_keys "$h"; sshd_config "$h"; reload_sshd "$h" ;;
    full) if [ "${1:-}" = off ]; then on "$h" umount -l /home/$WUSER
          else on "$h" sh -c 'mountpoint -q /home/'$WUSER' && umount -l /home/'$WUSER'; mkdir -p /run/full && mount -t tmpfs -o mode=700,uid='$WUID',gid='$WUID',size='$((${1:-64} + 64))'k,nr_inodes=500 none /run/full &&
               cp -a /home/'$WUSER'/.ssh /home/'$WUSER'/.[bc]*rc /run/full/ 2>/dev/null; free=$(df -k --output=avail /run/full | tail -1)
               [ "$free" -gt '"${1:-64}"' ] && head -c $(( (free - '"${1:-64}"') * 1024 )) /dev/zero >/run/full/.filler; mount --move /run/full /home/'$WUSER 2>/dev/null ||
               on "$h" mount --bind /run/full /home/$WUSER; on "$h" df -k /home/$WUSER | tail -1; fi ;;
    readonly) [ "${1:-}" = off ] && on "$h" mount -o remount,bind,rw /home || on "$h" mount -o remount,bind,ro /home ;;
    noise) if [ "${1:-}" = off ]; then sed -i '/Welcome to this machine/d;/rc file on stderr/d' "$home/.bashrc" "$home/.cshrc" 2>/dev/null
          else noise_file "$home" "$(awk -F: -v u=$WUSER '$1==u{print $7}' "$d/etc/passwd")"; chown $WUID:$WUID "$home"/.*rc; fi; true ;;
    delegate) on "$h" sh -c '
            p=$(cat /run/sshd.pid) top=/sys/fs/cgroup
            if [ -d $top/memory ]; then g=$top/memory/$1; mkdir -p $g && chown $2 $g && echo $p >$g/cgroup.procs
            else g=$top/$1; mkdir -p $g && echo +memory >$top/cgroup.subtree_control && echo +memory >$g/cgroup.subtree_control &&
                mkdir -p $g/session && chown -R $2 $g && echo $p >$g/session/cgroup.procs; fi' - "$(cgroup_of "$h")" "$WUID" || die 'no control group' ;;
    clock) local lib; lib=$(compgen -G '/usr/lib/*/faketime/libfaketimeMT.so.1' | head -1); [ -n "$lib" ] || die 'libfaketime is not there'
          case ${1:-} in '') die 'clock HOST +1d' ;; off) rm -f "$d/clock" ;; *) echo "SetEnv LD_PRELOAD=$lib FAKETIME=$1 FAKETIME_DONT_FAKE_MONOTONIC=1" >"$d/clock" ;; esac
          sshd_config "$h"; reload_sshd "$h" ;;
    *) die "unknown command $cmd (try: ssh help)" ;;
    esac
}
main "$@"
