#!/bin/sh
# control_plane.sh DIRECTORY: builds a Kubernetes control plane and an mpi-operator from their Go
# modules, once, into DIRECTORY/bin; the definitions of JobSet and MPIJob into DIRECTORY/definitions.
#
# Needs Go 1.26, about 25 minutes of processor time, 3 GB of memory, and 7 GB of disk, which it frees
# when all is there. What was built before is kept: started again, it goes on where it was ended.
set -eu
there=$1
kubernetes=v1.37.2 libraries=v0.37.2 etcd=v3.7.3 kwok=v0.8.0 jobset=v0.10.1 mpijob=v0.6.0
export GOMODCACHE="$there/build/modules" GOCACHE="$there/build/cache" GOFLAGS="-p=1 -mod=mod" CGO_ENABLED=0
mkdir -p "$there/bin" "$there/definitions" "$there/build/kubernetes" "$there/build/etcd"

module() { # module NAME IMPORT...: a module that imports what is built
    printf 'package %s\n\nimport (\n' "$1" >tools.go
    shift
    printf '\t_ "%s"\n' "$@" >>tools.go
    echo ')' >>tools.go
    go mod tidy
}

about() { # about MODULE KEY: what Go says of a module that it fetches
    go mod download -json "$1" | sed -n "s/^.*\"$2\": \"\(.*\)\".*/\1/p"
}

built() { # built PROGRAM: whether it is there
    [ -x "$there/bin/$1" ] || {
        echo "building $1 ..." >&2
        return 1
    }
}

cd "$there/build/etcd"
built etcd || {
    printf 'module etcdbuild\n' >go.mod
    go get "go.etcd.io/etcd/server/v3@$etcd"
    module etcdbuild go.etcd.io/etcd/server/v3/etcdmain
    go build -ldflags '-s -w' -o "$there/bin/etcd" go.etcd.io/etcd/server/v3
}
cd "$there/build/kubernetes"
programs='kubectl kube-apiserver kube-scheduler kube-controller-manager'
for one in $programs; do [ -x "$there/bin/$one" ] || missing=yes; done
[ -z "${missing:-}" ] || {
    # Its go.mod names its libraries by their places in its own repository.
    own=$(about "k8s.io/kubernetes@$kubernetes" GoMod)
    {
        printf 'module control\n\n'
        grep -E '^(go|godebug) ' "$own"
        echo "require k8s.io/kubernetes $kubernetes"
        sed -n "s#^\s*\(k8s.io/[a-z-]*\) => ./staging.*#replace \1 => \1 $libraries#p" "$own"
    } >go.mod
    module control k8s.io/kubectl/pkg/cmd k8s.io/kubernetes/cmd/kube-apiserver/app \
        k8s.io/kubernetes/cmd/kube-controller-manager/app k8s.io/kubernetes/cmd/kube-scheduler/app
    said="-X k8s.io/component-base/version.gitVersion=$kubernetes"
    said="$said -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=37"
    for one in $programs; do
        built "$one" || go build -ldflags "-s -w $said" -o "$there/bin/$one" "k8s.io/kubernetes/cmd/$one"
    done
}
cd "$there"
copied() { # copied NAME MODULE: a copy of a module's files, to be built there
    rm -rf "$there/build/$1"
    cp -r "$(about "$2" Dir)" "$there/build/$1"
    chmod -R u+w "$there/build/$1"
    cd "$there/build/$1"
}

built kwok || {
    copied kwok "sigs.k8s.io/kwok@$kwok"
    # As a kubelet does it: what is executed learns that its standard input has ended.
    sed -i 's/_, _ = io.Copy(inPipe, opt.In)/&; _ = inPipe.Close()/' pkg/utils/exec/exec.go
    go build -ldflags '-s -w' -o "$there/bin/kwok" ./cmd/kwok
}
built mpi-operator || {
    copied mpijob "github.com/kubeflow/mpi-operator@$mpijob"
    go build -ldflags '-s -w' -o "$there/bin/mpi-operator" ./cmd/mpi-operator
}
cd "$there"
cp -f "$(about "sigs.k8s.io/jobset@$jobset" Dir)/config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml" \
    "$(about "github.com/kubeflow/mpi-operator@$mpijob" Dir)/manifests/base/kubeflow.org_mpijobs.yaml" definitions/
chmod u+w definitions/*
go clean -modcache
rm -rf build
