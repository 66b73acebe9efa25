#!/usr/bin/env bash
# A real SLURM of two nodes on this machine, from Debian's packages: `cluster.sh start STATE_FOLDER`, `cluster.sh stop STATE_FOLDER`.
# The second node is a slurmd with a host name of its own (a UTS namespace); it has no GPU, and is taken when the first is not.
# Needs root. `start` installs what is missing, keeps a copy of any existing configuration, and notes the pid of everything
# it starts; `stop` ends exactly those and puts the configuration back. Exit status 3: this machine does not let SLURM run.
set -euo pipefail
PATH=$PATH:/usr/sbin:/sbin
action=$1
state=$2
conf=/etc/slurm # the job steps' plugin drops SLURM_CONF, so the usual place it must be
files="slurm.conf gres.conf cgroup.conf"
node=$(hostname -s)
other=$node-other

cannot() {
  echo "$1" >&2
  tail -n 5 "$state"/munged.log "$state"/slurmctld.log "$state"/slurmd*.log >&2 2>/dev/null || true
  stop
  exit 3
}

configure() {
  mkdir -p "$conf" "$state/slurmctld"
  for file in $files; do
    [ ! -f "$conf/$file" ] || mv "$conf/$file" "$state/$file.before"
  done
  touch "$state/configured"
  cat > "$conf/slurm.conf" <<CONF
ClusterName=fujinsplat
SlurmctldHost=$node(127.0.0.1)
SlurmUser=root
SlurmdUser=root
SlurmdParameters=config_overrides
AuthType=auth/munge
AuthInfo=cred_expire=10
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=1
JobAcctGatherParams=OverMemoryKill
AccountingStorageType=accounting_storage/none
ReturnToService=2
StateSaveLocation=$state/slurmctld
SlurmdSpoolDir=$state/slurmd-%n
SlurmctldPidFile=$state/slurmctld/own.pid
SlurmdPidFile=$state/slurmd-%n.own.pid
SlurmctldLogFile=$state/slurmctld.log
SlurmdLogFile=$state/slurmd-%n.log
MinJobAge=3600
KillWait=5
OverTimeLimit=0
GresTypes=gpu
NodeName=$node NodeAddr=127.0.0.1 CPUs=8 RealMemory=64000 Gres=gpu:pretend:1 Feature=gpu16gb,first Weight=1 State=UNKNOWN
NodeName=$other NodeAddr=127.0.0.1 Port=6828 CPUs=8 RealMemory=64000 Feature=other Weight=9 State=UNKNOWN
PartitionName=main Nodes=$node,$other Default=YES MaxTime=INFINITE State=UP
CONF
  echo "NodeName=$node Name=gpu Type=pretend File=/dev/null" > "$conf/gres.conf"
  # releases after 22.05 look for cgroups even when nothing here uses them
  case $(slurmd -V) in *" 22."*) ;; *) echo "CgroupPlugin=disabled" > "$conf/cgroup.conf" ;; esac
}

start() {
  mkdir -p "$state"
  if ! command -v slurmctld >/dev/null || ! command -v slurmd >/dev/null || ! command -v munged >/dev/null; then
    { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends slurm-wlm munge; } >&2 \
      || cannot "apt-get could not install slurm-wlm and munge"
  fi
  if timeout 5 sinfo -h >/dev/null 2>&1; then
    echo "a SLURM answers here already; this script starts one only where there is none" >&2
    exit 3
  fi
  configure
  if ! munge -n >/dev/null 2>&1; then # a munged of the machine's own serves as well, and is left alone
    mkdir -p /run/munge
    [ -f /etc/munge/munge.key ] || /usr/sbin/mungekey --create
    chown -R munge: /run/munge /etc/munge /var/lib/munge /var/log/munge
    setpriv --reuid munge --regid munge --clear-groups /usr/sbin/munged --foreground >"$state/munged.log" 2>&1 &
    echo $! > "$state/munged.pid"
    for _ in $(seq 20); do munge -n >/dev/null 2>&1 && break; sleep 0.5; done
    munge -n >/dev/null 2>&1 || cannot "munged did not start"
  fi
  slurmctld -D >"$state/slurmctld.out" 2>&1 &
  echo $! > "$state/slurmctld.pid"
  slurmd -D >"$state/slurmd.out" 2>&1 &
  echo $! > "$state/slurmd.pid"
  unshare --uts sh -c "hostname $other && exec slurmd -D" >"$state/other.out" 2>&1 &
  echo $! > "$state/other.pid"
  SECONDS=0
  while [ $SECONDS -lt 60 ]; do
    if [ "$(timeout 5 sinfo -h -o %t 2>/dev/null)" = idle ]; then echo "SLURM is up on $node and $other"; return; fi
    for daemon in slurmctld slurmd other; do
      kill -0 "$(cat "$state/$daemon.pid")" 2>/dev/null || cannot "$daemon ended at once: $(tail -n 3 "$state/$daemon.out")"
    done
    sleep 0.5
  done
  cannot "slurmctld and slurmd did not come up within a minute"
}

stop() {
  if [ -f "$state/slurmctld.pid" ] && kill -0 "$(cat "$state/slurmctld.pid")" 2>/dev/null; then
    timeout 10 scancel --user=root --quiet 2>/dev/null || true
    # a job's own processes end with its step; slurmd must live until then
    for _ in $(seq 40); do [ -n "$(timeout 5 squeue -h 2>/dev/null)" ] || break; sleep 0.5; done
  fi
  for daemon in slurmd other slurmctld munged; do
    [ -f "$state/$daemon.pid" ] || continue
    pid=$(cat "$state/$daemon.pid")
    kill "$pid" 2>/dev/null || true
    for _ in $(seq 40); do kill -0 "$pid" 2>/dev/null || break; sleep 0.25; done
    kill -KILL "$pid" 2>/dev/null || true
    rm -f "$state/$daemon.pid"
  done
  [ -f "$state/configured" ] || return 0
  for file in $files; do
    rm -f "$conf/$file"
    [ ! -f "$state/$file.before" ] || mv "$state/$file.before" "$conf/$file"
  done
  rm -f "$state/configured"
}

"$action"
