#!/usr/bin/env bash
# A real Slurm cluster on one machine, for the tests of the Slurm plugin.
#
#   cluster.sh up       install what is missing, make the configuration, start everything, wait until all nodes are idle
#   cluster.sh down     cancel jobs, stop every daemon, remove cgroups and the files put under /etc (data stay)
#   cluster.sh status   say what runs; exit 0 only when the cluster takes jobs
#   cluster.sh reset    down, wipe all data (job ids, accounting), up
#   cluster.sh kill NODE    kill -9 one node's slurmd and everything its jobs run (a node failure: noticed in 15-35 s)
#   cluster.sh revive NODE  start that slurmd again and make the node usable
#                      (wait for the node to be `down` first: until then its lost jobs look RUNNING)
#   cluster.sh stop-controller    stop slurmctld; everything else goes on
#   cluster.sh start-controller   start it again and wait until it answers
#
# Times on 2 cores: up 6-12 s with the packages installed, 45 s with their installation; down 9 s; reset 20 s.
#
# Needs: root, Debian 12 (apt), cgroup v1 under /sys/fs/cgroup (v2 gets its plugin chosen, but was not tried). No systemd.
# Makes: Slurm 22.05.8 from Debian's packages, all on one kernel, bound to 127.0.0.1 only:
#   munged, MariaDB (own data directory, 127.0.0.1:13306), slurmdbd, slurmctld and five slurmd, each in its own
#   UTS namespace (so `hostname` in a step gives the node's name) and on its own port.
#   The network, the file system and the process table are shared by all nodes: a server on 127.0.0.1 is reachable
#   from every step, every node sees the same files, and every node's name resolves to 127.0.0.1 (/etc/hosts).
#
#   node      CPUs  memory MiB  other
#   n1 n2 n3  4     4000        feature cpu
#   small1    2     400         feature small
#   gpu1      4     4000        gres gpu:a100:2   (fake devices; CUDA_VISIBLE_DEVICES is set)
#   (CPUs and memory are declared, not real: the nodes share the machine. Memory limits ARE enforced.)
#
#   partition  nodes         MaxTime     DefaultTime  other
#   debug*     n1,n2         00:10:00    00:05:00     default partition
#   short      n1,n2,n3      04:00:00    00:10:00
#   standard   n1,n2,n3      2-00:00:00  01:00:00
#   small      small1        01:00:00    00:05:00
#   gpu        gpu1          1-00:00:00  00:30:00
#   standby    n1,n2,n3      1-00:00:00  01:00:00     PriorityTier 0, jobs are requeued when preempted
#   urgent     n1,n2,n3      01:00:00    00:10:00     PriorityTier 10, preempts standby
#   (all others have PriorityTier 5: they preempt standby too. DefMemPerCPU 200 MiB everywhere.)
#
#   accounts research (default) and other; QOS normal (default), high (more priority), capped (1 running job per
#   user, 2 submitted); both accounts and all QOS are usable by root and by the unprivileged user.
#   Submitting needs a valid association (AccountingStorageEnforce=associations,limits,qos).
#
# Environment (all optional):
#   SLURM_DEV_DIR       data, logs, state (default /var/tmp/slurm-dev); one cluster a machine: same value for up and down
#   SLURM_DEV_USER      unprivileged user, made if missing (default hpcuser)
#   SLURM_DEV_KILLWAIT  seconds from SIGTERM to SIGKILL  (default 3; Slurm's own default is 30)
#   SLURM_DEV_MINJOBAGE seconds a finished job stays in squeue/scontrol (default 300, Slurm's own default)
#   SLURM_DEV_ACCTFREQ  seconds between memory samples   (default 1; Slurm's own default is 30)
# The clients need no environment: /etc/slurm/slurm.conf is what they read.
set -u
export LC_ALL=C PATH=/usr/sbin:/usr/bin:/sbin:/bin
unset "${!SLURM_JOB@}" "${!SLURM_STEP@}" SLURM_CONF 2>/dev/null || true

DIR=${SLURM_DEV_DIR:-/var/tmp/slurm-dev}
USR=${SLURM_DEV_USER:-hpcuser}
KILLWAIT=${SLURM_DEV_KILLWAIT:-3}
MINJOBAGE=${SLURM_DEV_MINJOBAGE:-300}
ACCTFREQ=${SLURM_DEV_ACCTFREQ:-1}
ETC=/etc/slurm
MARK='made by the slurm test cluster script'
CLUSTER=devcluster
DBPORT=13306
CTLDPORT=16817
DBDPORT=16819
NODES='n1 n2 n3 small1 gpu1'
declare -A NPORT=([n1]=16821 [n2]=16822 [n3]=16823 [small1]=16824 [gpu1]=16825)
HOST=$(hostname -s)

say()  { printf 'slurm: %s\n' "$*"; }
die()  { printf 'slurm: %s\n' "$*" >&2; exit 1; }
port_open() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }
wait_for() { # seconds, what, command...
    local end=$((SECONDS + $1)) what=$2; shift 2
    until "$@" >/dev/null 2>&1; do
        [ $SECONDS -lt $end ] || die "gave up waiting for $what (logs: $DIR/log)"
        sleep 0.2
    done
}
# the pid in a pid file, if that process lives and is the program named
alive() { # pidfile program
    local pid; pid=$(cat "$1" 2>/dev/null) || return 1
    [ -n "$pid" ] && [ -d "/proc/$pid" ] || return 1
    case "$(tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null)" in *"$2"*) echo "$pid" ;; *) return 1 ;; esac
}
stop() { # pidfile program seconds
    local pid end; pid=$(alive "$1" "$2") || { rm -f "$1"; return 0; }
    kill -TERM "$pid" 2>/dev/null
    end=$((SECONDS + $3))
    while [ -d "/proc/$pid" ] && [ $SECONDS -lt $end ]; do sleep 0.1; done
    if [ -d "/proc/$pid" ]; then kill -KILL "$pid" 2>/dev/null; sleep 0.2; fi
    rm -f "$1"
}
detach() { setsid "$@" </dev/null >>"$DIR/log/start.log" 2>&1; }                  # a program that goes to the background itself
detach_bg() { (exec setsid "$@" </dev/null >>"$DIR/log/start.log" 2>&1) & disown; }  # one that does not

install_packages() {
    local need=() p
    for p in slurmctld slurmd slurm-client slurmdbd slurm-wlm-basic-plugins slurm-wlm-mysql-plugin munge mariadb-server; do
        dpkg-query -W -f '${db:Status-Abbrev}' "$p" 2>/dev/null | grep -q '^ii' || need+=("$p")
    done
    [ ${#need[@]} -eq 0 ] && return 0
    say "installing ${need[*]}"
    (
        flock 9
        policy=
        if [ ! -e /usr/sbin/policy-rc.d ]; then  # keep the packages from starting their own daemons
            policy=/usr/sbin/policy-rc.d; printf '#!/bin/sh\nexit 101\n' >$policy; chmod 755 $policy
        fi
        export DEBIAN_FRONTEND=noninteractive
        install=(apt-get -o DPkg::Lock::Timeout=300 -y install --no-install-recommends "${need[@]}")
        "${install[@]}" >"$DIR/log/apt.log" 2>&1 ||
            { apt-get update >>"$DIR/log/apt.log" 2>&1 && "${install[@]}" >>"$DIR/log/apt.log" 2>&1; }
        rc=$?
        [ -n "$policy" ] && rm -f "$policy"
        exit $rc
    ) 9>/tmp/apt.lock || die "apt failed, see $DIR/log/apt.log"
}

write_config() {
    local f n
    mkdir -p "$ETC" "$DIR"/{log,run,state,dev,mysql}
    chmod 755 "$DIR"
    for f in slurm.conf cgroup.conf gres.conf slurmdbd.conf; do
        if [ -e "$ETC/$f" ] && ! grep -q "$MARK" "$ETC/$f"; then die "$ETC/$f is not mine; move it away first"; fi
    done
    id "$USR" >/dev/null 2>&1 || useradd -m -s /bin/bash "$USR" || die "cannot make user $USR"
    for n in 0 1; do [ -e "$DIR/dev/fakegpu$n" ] || mknod -m 666 "$DIR/dev/fakegpu$n" c 1 3; done
    for n in $NODES; do mkdir -p "$DIR/spool/$n"; done
    chown slurm: "$DIR/state"
    chown mysql: "$DIR/mysql"
    chmod 777 "$DIR/log"  # daemons of several users write here

    # names of the nodes, for srun running inside them
    sed -i "/# $MARK\$/d" /etc/hosts 2>/dev/null || { sed "/# $MARK\$/d" /etc/hosts >"$DIR/run/hosts" && cat "$DIR/run/hosts" >/etc/hosts; }
    for n in $NODES; do printf '127.0.0.1 %s # %s\n' "$n" "$MARK" >>/etc/hosts; done

    cat >"$ETC/slurm.conf" <<CONF
# $MARK
ClusterName=$CLUSTER
SlurmctldHost=$HOST(127.0.0.1)
SlurmctldPort=$CTLDPORT
SlurmUser=slurm
SlurmdUser=root
AuthType=auth/munge
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
StateSaveLocation=$DIR/state
SlurmdSpoolDir=$DIR/spool/%n
SlurmctldPidFile=$DIR/run/slurmctld.pid
SlurmdPidFile=$DIR/run/slurmd.%n.pid
SlurmctldLogFile=$DIR/log/slurmctld.log
SlurmdLogFile=$DIR/log/slurmd.%n.log
SlurmctldDebug=info
SlurmdDebug=info
MailProg=/bin/true
# processes and memory
ProctrackType=proctrack/cgroup
TaskPlugin=task/cgroup
JobAcctGatherType=jobacct_gather/cgroup
JobAcctGatherFrequency=task=$ACCTFREQ
# scheduling
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=5,bf_interval=5,bf_continue
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
PriorityType=priority/multifactor
PriorityWeightQOS=1000
PriorityWeightPartition=1000
GresTypes=gpu
DefMemPerCPU=200
JobRequeue=1
ReturnToService=1
# times
KillWait=$KILLWAIT
MinJobAge=$MINJOBAGE
MessageTimeout=10
SlurmctldTimeout=30
SlurmdTimeout=15
InactiveLimit=0
Waittime=0
TCPTimeout=5
# accounting
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort=$DBDPORT
AccountingStorageEnforce=associations,limits,qos
AccountingStorageTRES=gres/gpu,gres/gpu:a100
AccountingStoreFlags=job_comment
# nodes (declared sizes; the machine's own do not matter)
SlurmdParameters=config_overrides
NodeName=DEFAULT State=UNKNOWN
NodeName=n1 NodeHostname=n1 NodeAddr=127.0.0.1 Port=${NPORT[n1]} CPUs=4 RealMemory=4000 TmpDisk=1000 Feature=cpu
NodeName=n2 NodeHostname=n2 NodeAddr=127.0.0.1 Port=${NPORT[n2]} CPUs=4 RealMemory=4000 TmpDisk=1000 Feature=cpu
NodeName=n3 NodeHostname=n3 NodeAddr=127.0.0.1 Port=${NPORT[n3]} CPUs=4 RealMemory=4000 TmpDisk=1000 Feature=cpu
NodeName=small1 NodeHostname=small1 NodeAddr=127.0.0.1 Port=${NPORT[small1]} CPUs=2 RealMemory=400 TmpDisk=1000 Feature=small
NodeName=gpu1 NodeHostname=gpu1 NodeAddr=127.0.0.1 Port=${NPORT[gpu1]} CPUs=4 RealMemory=4000 TmpDisk=1000 Gres=gpu:a100:2 Feature=gpu
PartitionName=DEFAULT State=UP PriorityTier=5 PreemptMode=OFF
PartitionName=debug Nodes=n1,n2 Default=YES MaxTime=00:10:00 DefaultTime=00:05:00
PartitionName=short Nodes=n1,n2,n3 MaxTime=04:00:00 DefaultTime=00:10:00
PartitionName=standard Nodes=n1,n2,n3 MaxTime=2-00:00:00 DefaultTime=01:00:00
PartitionName=small Nodes=small1 MaxTime=01:00:00 DefaultTime=00:05:00
PartitionName=gpu Nodes=gpu1 MaxTime=1-00:00:00 DefaultTime=00:30:00
PartitionName=standby Nodes=n1,n2,n3 MaxTime=1-00:00:00 DefaultTime=01:00:00 PriorityTier=0 PreemptMode=REQUEUE
PartitionName=urgent Nodes=n1,n2,n3 MaxTime=01:00:00 DefaultTime=00:10:00 PriorityTier=10
CONF
    cat >"$ETC/gres.conf" <<CONF
# $MARK
NodeName=gpu1 Name=gpu Type=a100 File=$DIR/dev/fakegpu[0-1]
CONF
    local plugin=cgroup/v1
    [ "$(stat -fc %T /sys/fs/cgroup)" = cgroup2fs ] && plugin=cgroup/v2
    cat >"$ETC/cgroup.conf" <<CONF
# $MARK
CgroupPlugin=$plugin
CgroupMountpoint=/sys/fs/cgroup
CgroupAutomount=no
ConstrainRAMSpace=yes
ConstrainSwapSpace=no
ConstrainCores=no
ConstrainDevices=no
AllowedRAMSpace=100
MinRAMSpace=10
CONF
    cat >"$ETC/slurmdbd.conf" <<CONF
# $MARK
DbdHost=$HOST
DbdAddr=127.0.0.1
DbdPort=$DBDPORT
CommunicationParameters=NoInAddrAny
SlurmUser=slurm
AuthType=auth/munge
PidFile=$DIR/run/slurmdbd.pid
LogFile=$DIR/log/slurmdbd.log
DebugLevel=info
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort=$DBPORT
StorageUser=slurm
StoragePass=slurm
StorageLoc=slurm_acct_db
CONF
    chown slurm: "$ETC/slurmdbd.conf"; chmod 600 "$ETC/slurmdbd.conf"
    chown root:root "$DIR/run"; chmod 1777 "$DIR/run"
}

db() { mariadb --no-defaults -S "$DIR/run/mysql.sock" -u root "$@"; }

start_munge() {
    alive "$DIR/run/munged.pid" munged >/dev/null && return 0
    if munge -n 2>/dev/null | unmunge >/dev/null 2>&1; then return 0; fi  # one runs already: use it
    if [ ! -s /etc/munge/munge.key ]; then
        mkdir -p /etc/munge; head -c 128 /dev/urandom >/etc/munge/munge.key
        chown -R munge: /etc/munge; chmod 700 /etc/munge; chmod 400 /etc/munge/munge.key
    fi
    install -d -o munge -g munge -m 755 /run/munge "$DIR/munge"
    detach setpriv --reuid munge --regid munge --init-groups munged --force --pid-file="$DIR/munge/munged.pid" \
        --log-file="$DIR/munge/munged.log" --seed-file="$DIR/munge/seed"
    wait_for 20 munged sh -c 'munge -n | unmunge'
    ln -sf "$DIR/munge/munged.pid" "$DIR/run/munged.pid"
}

start_db() {
    if ! alive "$DIR/run/mysqld.pid" mariadbd >/dev/null; then
        if [ ! -d "$DIR/mysql/mysql" ]; then
            mariadb-install-db --no-defaults --user=mysql --datadir="$DIR/mysql" --skip-test-db \
                --auth-root-authentication-method=normal >"$DIR/log/mysql-install.log" 2>&1 ||
                die "mariadb-install-db failed, see $DIR/log/mysql-install.log"
        fi
        detach_bg mariadbd --no-defaults --user=mysql --datadir="$DIR/mysql" --socket="$DIR/run/mysql.sock" \
            --pid-file="$DIR/run/mysqld.pid" --bind-address=127.0.0.1 --port=$DBPORT --skip-name-resolve \
            --innodb-buffer-pool-size=64M --innodb-lock-wait-timeout=900 --innodb-flush-log-at-trx-commit=0 \
            --log-error="$DIR/log/mysql.log"
        wait_for 40 MariaDB db -e 'select 1'
    fi
    db -e "create database if not exists slurm_acct_db;
           create user if not exists 'slurm'@'127.0.0.1' identified by 'slurm';
           grant all on slurm_acct_db.* to 'slurm'@'127.0.0.1';" || die 'cannot prepare the database'
}

start_slurmdbd() {
    alive "$DIR/run/slurmdbd.pid" slurmdbd >/dev/null && return 0
    detach slurmdbd
    wait_for 40 slurmdbd port_open $DBDPORT
    wait_for 40 slurmdbd sacctmgr -n list cluster
}

accounts() {
    local a q
    sacctmgr -nP list cluster format=cluster | grep -qx $CLUSTER || sacctmgr -iQ add cluster $CLUSTER >/dev/null
    for q in high capped; do
        sacctmgr -nP list qos format=name | grep -qx $q || sacctmgr -iQ add qos $q >/dev/null
    done
    sacctmgr -iQ modify qos high set Priority=100 >/dev/null
    sacctmgr -iQ modify qos capped set MaxJobsPerUser=1 MaxSubmitJobsPerUser=2 >/dev/null
    for a in research other; do
        sacctmgr -nP list account format=account | grep -qx $a ||
            sacctmgr -iQ add account $a Cluster=$CLUSTER QOS=normal,high,capped DefaultQOS=normal >/dev/null
    done
    for a in root "$USR"; do
        sacctmgr -iQ add user "$a" Account=research,other DefaultAccount=research Cluster=$CLUSTER >/dev/null
        sacctmgr -iQ modify user "$a" set DefaultAccount=research >/dev/null
    done
    [ "$(sacctmgr -nP list assoc account=research format=user,account | grep -cE "^(root|$USR)\|")" -ge 2 ] ||
        die 'the accounts were not made'
}

start_slurmctld() {
    if alive "$DIR/run/slurmctld.pid" slurmctld >/dev/null; then scontrol reconfigure; return 0; fi
    detach slurmctld
    wait_for 40 slurmctld scontrol ping
    wait_for 40 slurmctld sh -c 'scontrol ping | grep -q "is UP"'
}

start_slurmd() { # node
    alive "$DIR/run/slurmd.$1.pid" slurmd >/dev/null && return 0
    detach unshare --uts sh -c 'hostname "$1" && exec slurmd -N "$1"' sh "$1"
    wait_for 20 "slurmd of $1" alive "$DIR/run/slurmd.$1.pid" slurmd
}

nodes_ready() { [ "$(sinfo -hN -p short,small,gpu -o '%N %t' | sort -u | grep -cE ' (idle|mix|alloc)$')" -eq 5 ]; }

# a one-second job of our own, seen through sacct: right after a start, records can be some seconds late
accounting_works() {
    local j
    j=$(sbatch --parsable -p small --mem=20 --time=1 --job-name=smoke --chdir=/ -o /dev/null --wrap true) || return 1
    for _ in $(seq 50); do
        [ "$(sacct -nPX -j "$j" --format=state)" = COMPLETED ] && return 0
        sleep 0.1
    done
    return 1
}

# end what is left in a node's cgroups, then remove them
clean_cgroups() { # node
    local c p i d
    for c in freezer memory cpuset devices cpuacct cpu systemd ''; do
        d=/sys/fs/cgroup/${c:+$c/}slurm_$1
        [ -d "$d" ] || continue
        for i in 1 2 3 4 5; do
            p=$(find "$d" -name cgroup.procs -exec cat {} + 2>/dev/null | grep -v '^0$')
            [ -z "$p" ] && break
            # shellcheck disable=SC2086
            kill -KILL $p 2>/dev/null; sleep 0.2
        done
        find "$d" -depth -type d -exec rmdir {} \; 2>/dev/null
    done
}

up() {
    local n t0=$SECONDS
    [ "$(id -u)" = 0 ] || die 'must be root'
    mkdir -p "$DIR/log" "$DIR/run"
    exec 8>"$DIR/run/lock"; flock -w 180 8 || die "another run of this script holds $DIR/run/lock"
    install_packages
    write_config
    start_munge 8>&-
    start_db 8>&-
    start_slurmdbd 8>&-
    accounts
    start_slurmctld 8>&-
    for n in $NODES; do start_slurmd "$n" 8>&-; done
    for n in $NODES; do
        case "$(sinfo -hn "$n" -o %t | head -1)" in down*|drain*) scontrol update nodename="$n" state=resume 2>/dev/null ;; esac
    done
    wait_for 60 'all nodes to be idle' nodes_ready
    wait_for 30 'a job to show up in accounting' accounting_works 8>&-
    say "up in $((SECONDS - t0)) s (data and logs in $DIR, user $USR)"
}

down() {
    local n end
    [ "$(id -u)" = 0 ] || die 'must be root'
    [ -d "$DIR/run" ] || { say 'nothing to stop'; return 0; }
    exec 8>"$DIR/run/lock"; flock -w 180 8 || die "another run of this script holds $DIR/run/lock"
    if alive "$DIR/run/slurmctld.pid" slurmctld >/dev/null && timeout 15 scontrol ping 2>/dev/null | grep -q 'is UP'; then
        timeout 20 squeue -ho %A 2>/dev/null | sort -u | xargs -r timeout 20 scancel -f 2>/dev/null
        end=$((SECONDS + KILLWAIT + 5))
        while [ $SECONDS -lt $end ] && [ -n "$(timeout 10 squeue -h 2>/dev/null)" ]; do sleep 0.3; done
    fi
    for n in $NODES; do { stop "$DIR/run/slurmd.$n.pid" slurmd 5; clean_cgroups "$n"; } & done
    stop "$DIR/run/slurmctld.pid" slurmctld 15
    wait
    stop "$DIR/run/slurmdbd.pid" slurmdbd 15
    stop "$DIR/run/mysqld.pid" mariadbd 20
    stop "$DIR/run/munged.pid" munged 5
    for n in slurm.conf cgroup.conf gres.conf slurmdbd.conf; do
        grep -q "$MARK" "$ETC/$n" 2>/dev/null && rm -f "$ETC/$n"
    done
    sed "/# $MARK\$/d" /etc/hosts >"$DIR/run/hosts" && cat "$DIR/run/hosts" >/etc/hosts
    say 'down'
}

status() {
    local n rc=0
    if munge -n 2>/dev/null | unmunge >/dev/null 2>&1; then say 'munged runs'; else say 'munged does not run'; rc=1; fi
    for n in mysqld:mariadbd slurmdbd slurmctld; do
        if alive "$DIR/run/${n%%:*}.pid" "${n##*:}" >/dev/null; then say "${n##*:} runs"; else say "${n##*:} does not run"; rc=1; fi
    done
    for n in $NODES; do
        if alive "$DIR/run/slurmd.$n.pid" slurmd >/dev/null; then say "slurmd $n runs"; else say "slurmd $n does not run"; rc=1; fi
    done
    [ $rc = 0 ] && { timeout 20 sinfo || rc=1; nodes_ready || rc=1; }
    return $rc
}

reset() {
    case "$DIR" in /|/tmp|/var|/var/tmp|/etc|/home|/root|'') die "will not wipe $DIR" ;; esac
    down
    rm -rf "${DIR:?}"/{state,spool,mysql,log,munge,dev}
    up
}

case "${1:-}" in
    up|down|status|reset) "$1" ;;
    kill)
        n=${2:?node}; pid=$(alive "$DIR/run/slurmd.$n.pid" slurmd) || die "slurmd of $n does not run"
        kill -KILL "$pid"; rm -f "$DIR/run/slurmd.$n.pid"; clean_cgroups "$n" ;;
    revive)
        n=${2:?node}; start_slurmd "$n"
        case "$(sinfo -hn "$n" -o %t | head -1)" in down*|drain*) scontrol update nodename="$n" state=resume ;; esac ;;
    stop-controller) stop "$DIR/run/slurmctld.pid" slurmctld 15 ;;
    start-controller) start_slurmctld ;;
    *) sed -n '2,/^set -u/p' "$0" | sed '/^set -u/d; s/^# \{0,1\}//'; exit 2 ;;
esac
