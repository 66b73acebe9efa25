#!/usr/bin/env bash
# A real one-node SLURM on this machine, from Debian's packages: `cluster.sh start STATE_FOLDER`, `cluster.sh stop STATE_FOLDER`.
# Needs root. `start` installs what is missing, keeps a copy of any existing configuration, and notes the pid of everything
# it starts; `stop` ends exactly those and puts the configuration back.
set -euo pipefail
state=$2
conf=/etc/slurm

start() {
  mkdir -p "$state"
  if ! command -v slurmctld >/dev/null || ! command -v munged >/dev/null; then
    apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends slurm-wlm munge
  fi
  mkdir -p "$conf" /var/spool/slurmctld /var/spool/slurmd /run/munge
  [ -f /etc/munge/munge.key ] || /usr/sbin/mungekey --create
  chown -R munge: /run/munge /etc/munge /var/lib/munge /var/log/munge
  for file in slurm.conf gres.conf cgroup.conf; do
    [ ! -f "$conf/$file" ] || cp "$conf/$file" "$state/$file.before"
  done
  node=$(hostname -s)
  memory=$(free -m | awk '/^Mem/ {print int($2 * 0.9)}')
  cat > "$conf/slurm.conf" <<CONF
ClusterName=fujinsplat
SlurmctldHost=$node(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=1
JobAcctGatherParams=OverMemoryKill
AccountingStorageType=accounting_storage/none
ReturnToService=2
StateSaveLocation=/var/spool/slurmctld
SlurmdSpoolDir=/var/spool/slurmd
SlurmctldLogFile=$state/slurmctld.log
SlurmdLogFile=$state/slurmd.log
MinJobAge=300
KillWait=5
OverTimeLimit=0
GresTypes=gpu
NodeName=$node NodeAddr=127.0.0.1 CPUs=$(nproc) RealMemory=$memory Gres=gpu:1 State=UNKNOWN
PartitionName=main Nodes=$node Default=YES MaxTime=INFINITE State=UP
CONF
  echo "NodeName=$node Name=gpu File=/dev/null" > "$conf/gres.conf"
  setpriv --reuid munge --regid munge --clear-groups /usr/sbin/munged --foreground >"$state/munged.log" 2>&1 &
  echo $! > "$state/munged.pid"
  sleep 1
  slurmctld -D -c >/dev/null 2>&1 &
  echo $! > "$state/slurmctld.pid"
  sleep 1
  slurmd -D -c >/dev/null 2>&1 &
  echo $! > "$state/slurmd.pid"
  for _ in $(seq 30); do
    if [ "$(timeout 5 sinfo -h -o %t 2>/dev/null)" = idle ]; then echo "SLURM is up on $node"; return; fi
    sleep 1
  done
  echo "SLURM did not come up; see $state/*.log" >&2
  exit 1
}

stop() {
  timeout 10 scancel --user=root --quiet 2>/dev/null || true
  for daemon in slurmd slurmctld munged; do
    [ ! -f "$state/$daemon.pid" ] || kill "$(cat "$state/$daemon.pid")" 2>/dev/null || true
    rm -f "$state/$daemon.pid"
  done
  for file in slurm.conf gres.conf cgroup.conf; do
    if [ -f "$state/$file.before" ]; then mv "$state/$file.before" "$conf/$file"; else rm -f "$conf/$file"; fi
  done
}

"$1"
