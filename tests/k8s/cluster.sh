#!/usr/bin/env bash
# A real Kubernetes cluster on one machine, for the tests of the Kubernetes plugin: from Debian packages alone, with no
# container engine, no image registry, and nothing of it installed system-wide.
#
#   cluster.sh build           fetch packages, build the control plane and the kubelet (once; 5 to 15 minutes)
#   cluster.sh up              start it (builds first if that was not done); prints KUBECONFIG=...
#   cluster.sh down            stop every process that it started, undo what it set
#   cluster.sh status          say what runs, nodes and pods
#   cluster.sh healthy         exit 0 if the API answers and the first node is ready
#   cluster.sh built           exit 0 if nothing has to be built
#   cluster.sh image NAME SRC  load a root file system (a directory or a tar) as the image localhost/NAME:1 (up first)
#   cluster.sh kubectl ARGS    kubectl against it, as its administrator
# Faults:
#   cluster.sh stop PART...    kill -9 parts: etcd kube-apiserver kube-controller-manager kube-scheduler kubelet containerd
#                              (kubelet2 containerd2 for the second node); pods run on
#   cluster.sh start PART...   start them again; the kubelet's containerd first
#   cluster.sh node2           start a second node, named 127.0.0.2 (its kubelet and containerd), and wait until it is ready
#   cluster.sh node2-down      remove it with its pods
#
# Environment:
#   K8S_CACHE  built binaries and unpacked packages (keep this between test runs); default /var/tmp/k8s-lab
#   K8S_RUN    state, logs, keys, kubeconfig; default /tmp/k8s-lab
#   K8S_PORT   first of eight loopback ports; default 16440. Clusters with other folders and ports run side by side
#   K8S_KEEP   1 keeps the source tree and the Go build cache after the build
#   K8S_NODE   0 leaves out containerd and the kubelet: the API, the controllers and the scheduler alone, as any user;
#              tests write the pods' status
#   K8S_NODE_TIMEOUT  seconds of silence before a node is NotReady; default 20
#
# `build` needs Debian 12 with its own archive configured; any user, except that missing tools are installed as root.
# `up` needs root, overlayfs, veth, the cgroup v1 controllers cpu, cpuacct, cpuset, memory and pids (v2 is untried).
# Everything listens on loopback addresses only; pods get addresses of their own (no DNS, no way out).
# Images after `up`: localhost/busybox:1 (shell and tools), localhost/python:1 (CPython 3.11 and the same tools).
#
# Each node has a mount namespace of its own: the kubelet has fixed paths for the logs of its pods, and deletes those
# of pods that it does not know, so that two kubelets with one /var/log/pods would delete each other's.
set -euo pipefail

CACHE=${K8S_CACHE:-/var/tmp/k8s-lab}
RUN=${K8S_RUN:-/tmp/k8s-lab}
PORT=${K8S_PORT:-16440}
WITH_NODE=${K8S_NODE:-1}
VERSION=v1.20.2
API=$PORT ETCD=$((PORT + 1)) PEER=$((PORT + 2)) MANAGER=$((PORT + 3))
SCHEDULER=$((PORT + 4)) KUBELET=$((PORT + 5)) HEALTHZ=$((PORT + 6)) STREAM=$((PORT + 7))
ROOT=$CACHE/root                     # unpacked Debian packages
BIN=$CACHE/bin                       # what was built here
PKI=$RUN/pki
export KUBECONFIG=$RUN/kubeconfig

RUN_PACKAGES="etcd-server containerd runc containernetworking-plugins busybox-static
 kubernetes-client"
BUILD_PACKAGES="golang-1.19-go golang-1.19-src"
PYTHON_PACKAGES="python3-minimal python3.11-minimal libpython3.11-minimal libpython3.11-stdlib
 libc6 libc-bin zlib1g libexpat1 libssl3 libffi8 libbz2-1.0 liblzma5 libsqlite3-0 libuuid1
 libcrypt1 libgcc-s1"
TOOLS="make=make patch=patch rsync=rsync openssl=openssl xz=xz-utils ip=iproute2 sysctl=procps"   # program=package
SERVERS="kube-apiserver kube-controller-manager kube-scheduler kubelet"
SYSCTLS="net.ipv4.ip_forward vm.overcommit_memory vm.panic_on_oom kernel.panic
 kernel.panic_on_oops kernel.keys.root_maxkeys kernel.keys.root_maxbytes"  # set by CNI and kubelet

say() { echo "cluster.sh: $*" >&2; }
die() { say "$*"; exit 1; }

# ---------------------------------------------------------------- build

apt_private() {   # apt with its own lists and cache, and deb-src switched on
    local program=$1; shift
    "$program" -q -o Dir::Etc::sourcelist=/dev/null \
        -o Dir::Etc::sourceparts="$CACHE/apt/parts" -o Dir::State::lists="$CACHE/apt/lists" \
        -o Dir::Cache="$CACHE/apt/cache" -o APT::Sandbox::User="$(id -un)" "$@"
}

apt_prepare() {
    local code source out
    code=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
    [ "$code" = bookworm ] || die "build needs Debian 12 (bookworm), this is '${code:-unknown}'"
    rm -rf "$CACHE/apt"
    mkdir -p "$CACHE/apt/parts" "$CACHE/apt/lists/partial" "$CACHE/apt/cache/archives/partial"
    for source in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
        [ -f "$source" ] || continue
        out=$CACHE/apt/parts/$(basename "$source" .list).list
        grep -E "^deb .* $code(-updates|-security)? " "$source" \
            | sed -E 'p; s/^deb /deb-src /' >"$out" || rm -f "$out"
    done
    for source in /etc/apt/sources.list.d/*.sources; do
        [ -f "$source" ] || continue
        grep -qE "^Suites:.*\b$code\b|^Suites: *$code" "$source" || continue
        sed -E 's/^Types:.*/Types: deb deb-src/' "$source" \
            >"$CACHE/apt/parts/$(basename "$source")"
    done
    apt_private apt-get update >"$CACHE/apt/update.log" 2>&1 \
        || say "apt-get update was not clean, see $CACHE/apt/update.log"
}

unpack() {        # unpack PACKAGE... under $ROOT, installing nothing
    local deb
    mkdir -p "$CACHE/debs" "$ROOT"
    rm -f "$CACHE"/debs/*.deb
    (cd "$CACHE/debs" && apt_private apt-get download "$@" >/dev/null)
    for deb in "$CACHE"/debs/*.deb; do dpkg-deb -x "$deb" "$ROOT"; done
    rm -rf "$CACHE/debs"
}

built() {
    local server
    for server in $SERVERS; do [ -x "$BIN/$server" ] || return 1; done   # each is there whole or not at all
    [ -e "$CACHE/packages.done" ] && [ -s "$CACHE/python.tar" ]
}

python_root() {   # a root file system with a whole Python and a busybox shell
    local work=$CACHE/python dir
    rm -rf "$work"; mkdir -p "$work"/{tmp,etc,root,proc,sys,dev}
    # shellcheck disable=SC2086
    ROOT=$work unpack $PYTHON_PACKAGES
    for dir in bin sbin lib lib64; do
        if [ -e "$work/$dir" ]; then
            mkdir -p "$work/usr/$dir"; cp -a "$work/$dir/." "$work/usr/$dir/"; rm -rf "${work:?}/$dir"
        fi
        ln -s "usr/$dir" "$work/$dir"
    done
    chmod 755 "$work"; chmod 1777 "$work/tmp"
    cp "$ROOT/bin/busybox" "$work/usr/bin/"
    for dir in $("$ROOT/bin/busybox" --list); do
        [ -e "$work/usr/bin/$dir" ] || [ -e "$work/usr/sbin/$dir" ] || ln -s busybox "$work/usr/bin/$dir"
    done
    echo 'root:x:0:0:root:/root:/bin/sh' >"$work/etc/passwd"
    echo 'root:x:0:' >"$work/etc/group"
    tar -C "$work" --numeric-owner --owner=0 --group=0 -cf "$CACHE/python.tar.part" .
    mv "$CACHE/python.tar.part" "$CACHE/python.tar"
    rm -rf "$work"
}

install_tools() {   # what `build` and `up` call, where the machine lacks it
    local pair missing=()
    for pair in $TOOLS; do command -v "${pair%%=*}" >/dev/null || missing+=("${pair#*=}"); done
    [ ${#missing[@]} -eq 0 ] && return
    [ "$(id -u)" = 0 ] || die "these Debian packages are missing: ${missing[*]}"
    say "installing ${missing[*]}"
    (
        flock 9
        export DEBIAN_FRONTEND=noninteractive
        install=(apt-get -o DPkg::Lock::Timeout=300 -y -q install --no-install-recommends "${missing[@]}")
        "${install[@]}" || { apt-get -q update && "${install[@]}"; }
    ) >"$CACHE/tools.log" 2>&1 9>/tmp/apt.lock || die "apt-get failed, see $CACHE/tools.log"
}

build() {
    mkdir -p "$CACHE"
    ( flock 9; build_alone ) 9>"$CACHE/lock"
}

build_alone() {
    local started=$SECONDS program
    if built; then say "already built in $CACHE"; return; fi
    install_tools
    mkdir -p "$BIN"
    apt_prepare
    if [ ! -e "$CACHE/packages.done" ]; then
        # shellcheck disable=SC2086
        unpack $RUN_PACKAGES
        touch "$CACHE/packages.done"
    fi
    [ -s "$CACHE/python.tar" ] || python_root
    say "packages unpacked after $((SECONDS - started)) s"
    for program in $SERVERS; do
        if [ ! -x "$BIN/$program" ]; then build_servers; break; fi
    done
    [ "${K8S_KEEP:-}" = 1 ] || rm -rf "$CACHE/apt"
    say "built in $((SECONDS - started)) s: $(du -sh "$CACHE" | cut -f1) in $CACHE"
}

generate_openapi() {   # the only generated file that the source package lacks; "make" generates all of them again
    local generator=vendor/k8s.io/code-generator package=k8s.io/kubernetes packages
    packages=$(grep -RlE --include='*.go' '^// *\+k8s:openapi-gen=' pkg vendor/k8s.io \
        | grep -vE "^($generator|vendor/k8s.io/sample-apiserver)/" | xargs -n1 dirname | sort -u \
        | sed "s|^|$package/|" | paste -sd,)
    hack/make-rules/build.sh ./vendor/k8s.io/kube-openapi/cmd/openapi-gen &&
        hack/run-in-gopath.sh _output/bin/openapi-gen --input-dirs "$packages" --output-file-base zz_generated.openapi \
            --output-package "$package/pkg/generated/openapi" --go-header-file "$generator/hack/boilerplate.go.txt" \
            --report-filename _output/violations
}

build_servers() {
    local src=$CACHE/src program
    # shellcheck disable=SC2086
    [ -x "$ROOT/usr/lib/go-1.19/bin/go" ] || unpack $BUILD_PACKAGES
    if [ ! -e "$src/.unpacked" ]; then
        rm -rf "$src" "$CACHE/source"
        mkdir -p "$src" "$CACHE/source"
        (cd "$CACHE/source" && apt_private apt-get --download-only source kubernetes >/dev/null)
        tar xzf "$CACHE"/source/kubernetes_*.orig.tar.gz -C "$src" --strip-components=1
        tar xJf "$CACHE"/source/kubernetes_*.debian.tar.xz -C "$src"
        (cd "$src" && while read -r p; do patch -sp1 <"debian/patches/$p"; done <debian/patches/series)
        [ -d "$src/vendor" ] && [ -d "$src/cmd/kubelet" ] \
            || die "this source package has no servers in it: $(ls "$CACHE/source")"
        touch "$src/.unpacked"
    fi
    cat >"$CACHE/version" <<END
KUBE_GIT_COMMIT='debian'
KUBE_GIT_TREE_STATE='archive'
KUBE_GIT_VERSION='$VERSION'
KUBE_GIT_MAJOR='1'
KUBE_GIT_MINOR='20'
END
    say "building $SERVERS (several minutes; log in $CACHE/build.log)"
    (
        cd "$src" || exit 1
        export GOROOT=$ROOT/usr/lib/go-1.19 PATH=$ROOT/usr/lib/go-1.19/bin:$PATH
        export HOME=$CACHE/home GOCACHE=$CACHE/gocache GOPROXY=off GOFLAGS='' CGO_ENABLED=0
        export KUBE_GIT_VERSION_FILE=$CACHE/version KUBE_STATIC_OVERRIDES=kubelet
        mkdir -p "$HOME"
        export GOGCFLAGS=-dwarf=false GOLDFLAGS='-s -w'   # no debugger will be used on them
        export GOGC=400                                   # fewer garbage collections, more memory
        # shellcheck disable=SC2086
        generate_openapi && hack/make-rules/build.sh cmd/${SERVERS// / cmd/}
    ) >"$CACHE/build.log" 2>&1 || { tail -20 "$CACHE/build.log" >&2; die "the build failed"; }
    for program in $SERVERS; do
        cp "$src/_output/bin/$program" "$BIN/$program.part"
        mv "$BIN/$program.part" "$BIN/$program"
    done
    if [ "${K8S_KEEP:-}" != 1 ]; then
        chmod -R u+w "$CACHE/home" 2>/dev/null || :
        rm -rf "$src" "$CACHE/source" "$CACHE/gocache" "${CACHE:?}/home" \
            "$ROOT"/usr/lib/go-1.19 "$ROOT"/usr/share/go-1.19 "$ROOT/usr/share/doc"
    fi
}

# ---------------------------------------------------------------- keys

key_pair() {      # key_pair NAME SUBJECT [SAN]: a key and a certificate of our CA
    local name=$1 subject=$2 san=${3:-}
    [ -s "$PKI/$name.crt" ] && return
    openssl ecparam -name prime256v1 -genkey -noout -out "$PKI/$name.key"
    openssl req -new -key "$PKI/$name.key" -subj "$subject" -out "$PKI/$name.csr"
    printf 'extendedKeyUsage=clientAuth,serverAuth\n%s' "${san:+subjectAltName=$san}" >"$PKI/$name.ext"
    openssl x509 -req -in "$PKI/$name.csr" -CA "$PKI/ca.crt" -CAkey "$PKI/ca.key" \
        -CAcreateserial -days 365 -extfile "$PKI/$name.ext" -out "$PKI/$name.crt" 2>/dev/null
    rm -f "$PKI/$name.csr" "$PKI/$name.ext"
}

kubeconfig() {    # kubeconfig FILE KEYPAIR
    local ca crt key
    ca=$(base64 -w0 "$PKI/ca.crt") crt=$(base64 -w0 "$PKI/$2.crt") key=$(base64 -w0 "$PKI/$2.key")
    (umask 077; cat >"$1" <<END
apiVersion: v1
kind: Config
current-context: lab
clusters: [{name: lab, cluster: {server: "https://127.0.0.1:$API", certificate-authority-data: $ca}}]
contexts: [{name: lab, context: {cluster: lab, user: $2, namespace: default}}]
users: [{name: $2, user: {client-certificate-data: $crt, client-key-data: $key}}]
END
    )
}

keys() {
    mkdir -p "$PKI"; chmod 700 "$PKI"
    if [ ! -s "$PKI/ca.crt" ]; then
        openssl ecparam -name prime256v1 -genkey -noout -out "$PKI/ca.key"
        openssl req -x509 -new -key "$PKI/ca.key" -subj /CN=k8s-lab -days 365 -out "$PKI/ca.crt"
    fi
    [ -s "$PKI/sa.key" ] || openssl genrsa -out "$PKI/sa.key" 2048 2>/dev/null
    key_pair apiserver /CN=kube-apiserver \
        "IP:127.0.0.1,IP:10.96.0.1,DNS:localhost,DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc"
    key_pair kubelet-server /CN=kubelet "IP:127.0.0.1,IP:127.0.0.2,DNS:localhost"
    key_pair admin /O=system:masters/CN=admin
    key_pair to-kubelet /O=system:masters/CN=kube-apiserver-kubelet-client
    key_pair manager /CN=system:kube-controller-manager
    key_pair scheduler /CN=system:kube-scheduler
    key_pair kubelet /O=system:nodes/CN=system:node:127.0.0.1
    key_pair kubelet2 /O=system:nodes/CN=system:node:127.0.0.2
    kubeconfig "$KUBECONFIG" admin
    for who in manager scheduler kubelet kubelet2; do kubeconfig "$PKI/$who.conf" "$who"; done
}

# ---------------------------------------------------------------- images

image() {         # image NAME DIR|TAR [ENTRYPOINT-JSON]: load as localhost/NAME:1
    local name=$1 from=$2 entry=${3:-null} work id
    work=$(mktemp -d "$RUN/image.XXXXXX")
    if [ -d "$from" ]; then tar -C "$from" --numeric-owner -cf "$work/layer.tar" .
    else cp "$from" "$work/layer.tar"; fi
    id=$(sha256sum <"$work/layer.tar" | cut -d' ' -f1)
    cat >"$work/config.json" <<END
{"architecture": "amd64", "os": "linux",
 "config": {"Entrypoint": $entry, "Env": ["PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"]},
 "rootfs": {"type": "layers", "diff_ids": ["sha256:$id"]}}
END
    echo "[{\"Config\": \"config.json\", \"RepoTags\": [\"localhost/$name:1\"], \"Layers\": [\"layer.tar\"]}]" \
        >"$work/manifest.json"
    tar -C "$work" -cf "$work/image.tar" manifest.json config.json layer.tar
    ctr images import "$work/image.tar" >/dev/null
    rm -rf "$work"
    say "image localhost/$name:1 is loaded"
}

busybox_images() {
    local work applet
    work=$(mktemp -d "$RUN/busybox.XXXXXX")
    mkdir -p "$work"/{bin,etc,tmp,root,proc,sys,dev,var}
    chmod 755 "$work"; chmod 1777 "$work/tmp"
    cp "$ROOT/bin/busybox" "$work/bin/"
    for applet in $("$ROOT/bin/busybox" --list); do
        [ "$applet" = busybox ] || ln -s busybox "$work/bin/$applet"
    done
    echo 'root:x:0:0:root:/root:/bin/sh' >"$work/etc/passwd"
    echo 'root:x:0:' >"$work/etc/group"
    image busybox "$work" 2>/dev/null
    image pause "$work" '["/bin/busybox", "sleep", "2147483647"]' 2>/dev/null
    rm -rf "$work"
}

ctr() { "$ROOT/usr/bin/ctr" -a "$RUN/containerd.sock" -n k8s.io "$@"; }

# ---------------------------------------------------------------- nodes

# A node is "" (the first) or "2"; its parts are kubelet$n and containerd$n, its files in $RUN end in $n.
address_of() { echo "127.0.0.${1:-1}"; }              # also the node's name
pods_net() { echo "10.244.$(((PORT - 16000) / 10 % 100 * 2 + ${1:-1}))"; }
cgroup_of() { echo "/k8s-$PORT-${1:-1}"; }

# fixed paths of kubelet, containerd and CNI, of which each node has its own
NODE_PATHS="/var/lib/kubelet /var/log/pods /var/log/containers /var/lib/cni /run/containerd /run/netns"

namespace() {     # namespace NODE: a process that holds the node's mount namespace
    local n=$1 each mounts=
    for each in $NODE_PATHS; do
        mkdir -p "$each" "$RUN/own$n$each"
        mounts+="mount --bind '$RUN/own$n$each' '$each'; "
    done
    start "namespace$n" unshare --mount --propagation slave \
        bash -c "set -e; $mounts touch '$RUN/namespace$n.made'; exec -a '$RUN/namespace' sleep infinity"
    wait_for 10 "the node's namespace" test -e "$RUN/namespace$n.made"
}

in_namespace() { echo nsenter "--mount=/proc/$(pid_of "namespace$1")/ns/mnt" --; }

cgroups() {       # cgroups NODE: the control groups of the node's pods
    local each made
    for each in /sys/fs/cgroup/*/; do
        made=${each%/}$(cgroup_of "$1")
        [ -e "${each}cgroup.procs" ] || continue
        mkdir -p "$made"
        if [ -e "$made/cpuset.cpus" ]; then
            cat "${each}cpuset.cpus" >"$made/cpuset.cpus"
            cat "${each}cpuset.mems" >"$made/cpuset.mems"
        fi
    done
}

configure() {     # configure NODE
    local n=$1 at
    at=$(address_of "$n")
    mkdir -p "$RUN"/{log,exec} "$RUN/cni$n" "$RUN/kubelet$n" "$RUN/containers$n"
    : >"$RUN/resolv.conf"
    cat >"$RUN/cni$n/10-lab.conflist" <<END
{"cniVersion": "0.4.0", "name": "lab", "plugins": [
  {"type": "ptp", "mtu": 1400,
   "ipam": {"type": "host-local", "dataDir": "$RUN/ipam$n",
            "ranges": [[{"subnet": "$(pods_net "$n").0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}
END
    cat >"$RUN/containerd$n.toml" <<END
version = 2
root = "$RUN/containers$n/root"
state = "$RUN/containers$n/state"
disabled_plugins = ["io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs"]
[grpc]
  address = "$RUN/containerd$n.sock"
[plugins."io.containerd.internal.v1.opt"]
  path = "$RUN/containers$n/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:1"
  stream_server_address = "$at"
  stream_server_port = "$STREAM"
  disable_apparmor = true
  restrict_oom_score_adj = true      # a sandbox may lack CAP_SYS_RESOURCE
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "$ROOT/usr/lib/cni"
    conf_dir = "$RUN/cni$n"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    default_runtime_name = "runc"
    snapshotter = "overlayfs"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        BinaryName = "$ROOT/usr/sbin/runc"
        SystemdCgroup = false
END
    cat >"$RUN/kubelet$n.yaml" <<END
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: $at
port: $KUBELET
readOnlyPort: 0
healthzBindAddress: $at
healthzPort: $HEALTHZ
tlsCertFile: $PKI/kubelet-server.crt
tlsPrivateKeyFile: $PKI/kubelet-server.key
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $PKI/ca.crt}}
authorization: {mode: Webhook}
cgroupDriver: cgroupfs
cgroupRoot: $(cgroup_of "$n")
enforceNodeAllocatable: [pods]
failSwapOn: false
makeIPTablesUtilChains: false
resolvConf: $RUN/resolv.conf
clusterDNS: [127.0.0.1]              # none runs: look-ups in pods fail at once
clusterDomain: cluster.local
maxPods: 200
nodeStatusUpdateFrequency: 2s        # Ready sooner after the start
kubeAPIQPS: 100
kubeAPIBurst: 200
eventRecordQPS: 50
eventBurst: 100
registryPullQPS: 50
registryBurst: 100
serializeImagePulls: false
imageGCHighThresholdPercent: 100
evictionHard: {memory.available: 200Mi, nodefs.available: 1%, nodefs.inodesFree: 1%, imagefs.available: 1%}
END
}

images() {        # images NODE: load what every node has; the second node reads what the first got later, too
    local n=$1
    if [ -z "$n" ]; then
        ctr images ls -q | grep -q localhost/python:1 || { busybox_images; image python "$CACHE/python.tar"; }
        return
    fi
    mapfile -t names < <(ctr images ls -q | grep '^localhost/')
    ctr images export "$RUN/images.tar" "${names[@]}"
    "$ROOT/usr/bin/ctr" -a "$RUN/containerd$n.sock" -n k8s.io images import "$RUN/images.tar" >/dev/null
    rm -f "$RUN/images.tar"
}

node_up() {       # node_up NODE
    local n=$1
    configure "$n"
    namespace "$n"
    cgroups "$n"
    start_part "containerd$n"
    wait_for 60 "containerd$n" "$ROOT/usr/bin/ctr" -a "$RUN/containerd$n.sock" version
    images "$n"
    start_part "kubelet$n"
    wait_for 120 "node $(address_of "$n")" node_ready "$n"
}

node_gone() {     # node_gone NODE: end the processes of a node and of its pods
    local n=$1 entry pid group
    stop "kubelet$n" 0
    stop "containerd$n" 0
    for entry in /proc/[0-9]*; do      # shims outlive containerd; ours name our socket
        pid=${entry#/proc/}
        if { tr '\0' ' ' <"$entry/cmdline"; } 2>/dev/null \
            | grep -qE "containerd-shim.* -address $RUN/containerd$n.sock( |\$)"; then
            kill -9 "$pid" 2>/dev/null || :
        fi
    done
    group=$(cgroup_of "$n")
    for entry in /sys/fs/cgroup/pids/"$group"; do
        [ -d "$entry" ] || continue
        find "$entry" -name cgroup.procs -exec cat {} + 2>/dev/null | xargs -r kill -9 2>/dev/null || :
    done
    stop "namespace$n" 0
    rm -f "$RUN/namespace$n.made"
    for entry in /sys/fs/cgroup/*/"$group"; do
        [ -d "$entry" ] && find "$entry" -depth -type d -exec rmdir {} \; 2>/dev/null || :
    done
    rm -rf "$RUN/own$n" "$RUN/kubelet$n" "$RUN/containers$n" "$RUN/ipam$n" "$RUN/cni$n"
}

# ---------------------------------------------------------------- processes

pid_of() {        # pid_of NAME: its pid, if it is alive and is ours
    local pid
    pid=$(cat "$RUN/$1.pid" 2>/dev/null) || return 1
    { tr '\0' ' ' <"/proc/$pid/cmdline"; } 2>/dev/null | grep -qF -- "$RUN" || return 1
    echo "$pid"
}

start() {         # start NAME COMMAND...
    local name=$1; shift
    pid_of "$name" >/dev/null && return
    setsid "$@" >>"$RUN/log/$name.log" 2>&1 </dev/null &
    echo $! >"$RUN/$name.pid"
}

stop() {          # stop NAME [SECONDS]: TERM, and KILL after so long
    local pid tries=$((${2:-10} * 10))
    if pid=$(pid_of "$1"); then
        [ $tries = 0 ] || kill "$pid" 2>/dev/null || :
        while kill -0 "$pid" 2>/dev/null && [ $((tries--)) -gt 0 ]; do sleep 0.1; done
        kill -9 "$pid" 2>/dev/null || :
    fi
    rm -f "$RUN/$1.pid"
}

wait_for() {      # wait_for SECONDS WHAT COMMAND...
    local end=$((SECONDS + $1)) what=$2; shift 2
    until "$@" >/dev/null 2>&1; do
        [ $SECONDS -lt $end ] || die "$what did not come up; logs are in $RUN/log"
        sleep 0.2
    done
}

kubectl() { "$ROOT/usr/bin/kubectl" "$@"; }
node_ready() {
    [ "$(kubectl get node "$(address_of "${1:-}")" \
        -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status}')" = True ]
}

start_part() {
    local n
    case $1 in
        etcd) start etcd "$ROOT/usr/bin/etcd" --data-dir="$RUN/etcd" --name=lab \
            --listen-client-urls="http://127.0.0.1:$ETCD" --advertise-client-urls="http://127.0.0.1:$ETCD" \
            --listen-peer-urls="http://127.0.0.1:$PEER" --initial-advertise-peer-urls="http://127.0.0.1:$PEER" \
            --initial-cluster="lab=http://127.0.0.1:$PEER" --unsafe-no-fsync ;;
        kube-apiserver) start kube-apiserver "$BIN/kube-apiserver" --bind-address=127.0.0.1 --secure-port=$API \
            --endpoint-reconciler-type=none --etcd-servers="http://127.0.0.1:$ETCD" \
            --service-cluster-ip-range=10.96.0.0/16 --authorization-mode=Node,RBAC \
            --enable-admission-plugins=NodeRestriction --allow-privileged=true --profiling=false \
            --feature-gates=TTLAfterFinished=true --cert-dir="$PKI" --event-ttl=2h \
            --client-ca-file="$PKI/ca.crt" --tls-cert-file="$PKI/apiserver.crt" \
            --tls-private-key-file="$PKI/apiserver.key" --kubelet-certificate-authority="$PKI/ca.crt" \
            --kubelet-client-certificate="$PKI/to-kubelet.crt" --kubelet-client-key="$PKI/to-kubelet.key" \
            --kubelet-preferred-address-types=Hostname,InternalIP \
            --service-account-issuer="https://127.0.0.1:$API" \
            --service-account-key-file="$PKI/sa.key" --service-account-signing-key-file="$PKI/sa.key" ;;
        kube-controller-manager) start "$1" "$BIN/kube-controller-manager" --kubeconfig="$PKI/manager.conf" \
            --bind-address=127.0.0.1 --port=0 --secure-port=$MANAGER --cert-dir="$PKI" \
            --authentication-kubeconfig="$PKI/manager.conf" --authorization-kubeconfig="$PKI/manager.conf" \
            --leader-elect=false --use-service-account-credentials=true --profiling=false \
            --service-account-private-key-file="$PKI/sa.key" --root-ca-file="$PKI/ca.crt" \
            --feature-gates=TTLAfterFinished=true --kube-api-qps=100 --kube-api-burst=200 \
            --node-monitor-grace-period="${K8S_NODE_TIMEOUT:-20}s" ;;
        kube-scheduler) start kube-scheduler "$BIN/kube-scheduler" --kubeconfig="$PKI/scheduler.conf" \
            --bind-address=127.0.0.1 --port=0 --secure-port=$SCHEDULER --cert-dir="$PKI" \
            --authentication-kubeconfig="$PKI/scheduler.conf" \
            --authorization-kubeconfig="$PKI/scheduler.conf" --leader-elect=false --profiling=false ;;
        containerd | containerd2)
            n=${1#containerd}
            # shellcheck disable=SC2046
            start "$1" $(in_namespace "$n") env PATH="$ROOT/usr/bin:$ROOT/usr/sbin:$PATH" \
                "$ROOT/usr/bin/containerd" --config="$RUN/containerd$n.toml" ;;
        kubelet | kubelet2)
            n=${1#kubelet}
            # shellcheck disable=SC2046
            start "$1" $(in_namespace "$n") "$BIN/kubelet" --config="$RUN/kubelet$n.yaml" \
                --kubeconfig="$PKI/kubelet$n.conf" --hostname-override="$(address_of "$n")" \
                --root-dir="$RUN/kubelet$n" --cert-dir="$PKI" \
                --container-runtime=remote --container-runtime-endpoint="unix://$RUN/containerd$n.sock" \
                --volume-plugin-dir="$RUN/exec" --pod-infra-container-image=localhost/pause:1 \
                --containerd="$RUN/containerd$n.sock" ;;        # for its per-container metrics
        *) die "no part $1" ;;
    esac
}

start_parts() {
    local part
    for part; do start_part "$part"; done
    for part; do
        case $part in
            etcd | kube-apiserver) wait_for 120 "$part" kubectl get --raw /readyz ;;
            kubelet*) wait_for 120 "node $(address_of "${part#kubelet}")" node_ready "${part#kubelet}" ;;
        esac
    done
}

stop_parts() { local part; for part; do stop "$part" 0; done; }

node2() { node_up 2; }

node2_down() {
    node_gone 2
    kubectl delete node "$(address_of 2)" --ignore-not-found >/dev/null
}

healthy() {
    [ -s "$KUBECONFIG" ] && kubectl get --raw /readyz >/dev/null 2>&1 || return 1
    [ "$WITH_NODE" = 0 ] || node_ready 2>/dev/null
}

up() {
    local started=$SECONDS name
    if [ "$WITH_NODE" != 0 ]; then
        [ "$(id -u)" = 0 ] || die "up needs root (K8S_NODE=0 does not)"
        if [ -e /sys/fs/cgroup/cgroup.controllers ]; then say "cgroup v2: never tried here"
        else
            for name in cpu cpuacct cpuset memory pids; do
                [ -d "/sys/fs/cgroup/$name" ] || die "no cgroup controller $name here"
            done
        fi
    fi
    built || build
    if healthy; then say "already up"; echo "KUBECONFIG=$KUBECONFIG"; return; fi
    install_tools
    mkdir -p "$RUN/log" "$RUN/etcd"
    chmod 700 "$RUN/etcd"
    # shellcheck disable=SC2086
    [ "$WITH_NODE" = 0 ] || [ -e "$RUN/sysctl.before" ] || sysctl $SYSCTLS >"$RUN/sysctl.before"
    keys
    start_part etcd
    start_part kube-apiserver
    wait_for 120 kube-apiserver kubectl get --raw /readyz
    start_part kube-controller-manager
    start_part kube-scheduler
    [ "$WITH_NODE" = 0 ] || node_up ""
    wait_for 60 "the default service account" kubectl -n default get serviceaccount default
    say "up after $((SECONDS - started)) s"
    echo "KUBECONFIG=$KUBECONFIG"
}

down() {
    local name
    if [ ! -d "$RUN" ]; then say "not up"; return; fi
    for name in kube-scheduler kube-controller-manager kube-apiserver etcd; do stop $name 0; done
    if [ -e "$RUN/sysctl.before" ]; then
        node_gone 2
        node_gone ""
        # another cluster's nodes need the settings as they are
        grep -qsx kubelet /proc/[0-9]*/comm || sysctl -q -p "$RUN/sysctl.before" || :
    fi
    rm -rf "$RUN"
    say "down"
}

status() {
    local name pid
    built && say "built: $("$BIN/kubelet" --version)" || say "not built"
    for name in etcd containerd $SERVERS containerd2 kubelet2; do
        if pid=$(pid_of "$name"); then
            echo "$name pid $pid rss $(awk '/VmRSS/ {print int($2 / 1024)}' "/proc/$pid/status") MiB"
        else echo "$name down"; fi
    done
    pid_of kube-apiserver >/dev/null || return 3
    kubectl get nodes -o wide
    kubectl get pods -A
    echo "KUBECONFIG=$KUBECONFIG"
}

case ${1:-} in
    build | up | down | status | built | healthy | node2) "$1" ;;
    node2-down) node2_down ;;
    stop | start) action=$1; shift; [ $# -ge 1 ] || die "$action which part?"; "${action}_parts" "$@" ;;
    image) shift; [ $# -ge 2 ] || die "image NAME DIR|TAR [ENTRYPOINT-JSON]"; image "$@" ;;
    kubectl) shift; kubectl "$@" ;;
    *) sed -n '2,/^set -/{/^set -/!s/^# \{0,1\}//p}' "$0"; exit 2 ;;
esac
