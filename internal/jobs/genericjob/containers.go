package genericjob

import (
	"encoding/json"
	"slices"
	"strconv"

	"k8s.io/utils/ptr"

	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	"github.com/musterhq/muster/internal/pointers"
	"github.com/musterhq/muster/internal/replicas"
)

// etcd refuses objects of more than 1.5 MiB, and a job whose status is refused never ends. Names, UIDs
// and phases of all replicas take less than 1 MiB, as there are at most 5,000 of them, and the operator
// reads them back. The containers are for users alone: only as many are listed as there is room for.
const (
	etcdBytes = 1536 << 10
	// reservedBytes are for metadata and conditions.
	reservedBytes = 64 << 10
	// mostTasksBytes bounds status.tasks, as far as it depends on the containers listed.
	mostTasksBytes = 1 << 20
	// specShare is how many times a large spec counts: it may be stored again in the annotation that
	// kubectl apply leaves, and the names of its fields in the managed fields, which the cache does not have.
	specShare = 4
	// alwaysBytes of status.tasks fit beside a spec of any usual size, which is not measured then.
	alwaysBytes = 512 << 10
)

// Lengths of JSON texts.
const (
	uidBytes       = 36
	taskBytes      = len(`{"type":"","restartCount":-9223372036854775808,"replicas":[]},`)
	replicaBytes   = len(`{"name":"","uid":"","phase":"Succeeded"},`) + uidBytes
	restartsBytes  = len(`,"restartCount":,"settledRestarts":`)
	listBytes      = len(`,"containers":[]`)
	containerBytes = len(`{"name":"","state":"Terminated","exitCode":-2147483648},`)
)

// containersOf returns the states of the containers of the replica's pod.
func containersOf(r *replicas.Replica) []tensorstack.ContainerStatus {
	list := replicas.Containers(r.Pod)
	out := make([]tensorstack.ContainerStatus, 0, len(list))
	for _, c := range list {
		status := tensorstack.ContainerStatus{Name: c.Name, State: tensorstack.ContainerState(c.State)}
		if status.State == tensorstack.ContainerTerminated {
			status.ExitCode = ptr.To(c.ExitCode)
		}
		out = append(out, status)
	}
	return out
}

// stopped returns the containers of a pod that is gone: the containers that ran when the pod was last seen run no more,
// and nobody knows how they ended.
func stopped(containers []tensorstack.ContainerStatus) []tensorstack.ContainerStatus {
	runs := func(c tensorstack.ContainerStatus) bool { return c.State == tensorstack.ContainerRunning }
	if !slices.ContainsFunc(containers, runs) {
		return containers
	}
	out := slices.Clone(containers)
	for c := range pointers.To(out) {
		if runs(*c) {
			c.State = tensorstack.ContainerTerminated
		}
	}
	return out
}

// fitContainers removes the containers that the status has no room for: the containers of failed replicas are kept
// first, then the rest, by type and rank. Sizes are upper bounds that depend on names alone, not on states. So a list
// that was kept is kept again as long as its pods are the same, also when other pods are gone and their lists with
// them.
func fitContainers(spec *tensorstack.GenericJobSpec, tasks []tensorstack.Tasks) {
	bare, all := sizeOf(spec, tasks)
	if all <= alwaysBytes {
		return
	}
	most := bytesBeside(spec)
	if all <= most {
		return
	}
	left := most - bare
	for _, failed := range []bool{true, false} {
		for i := range tasks {
			for j := range tasks[i].Replicas {
				r := &tasks[i].Replicas[j]
				if (r.Phase == tensorstack.ReplicaFailed) != failed {
					continue
				}
				if size := listSize(r.Containers); size <= left {
					left -= size
				} else {
					r.Containers = nil
				}
			}
		}
	}
}

// sizeOf returns the size of the tasks without and with containers.
func sizeOf(spec *tensorstack.GenericJobSpec, tasks []tensorstack.Tasks) (bare, all int) {
	for i := range tasks {
		bare += taskBytes + len(tasks[i].Type)
		each := replicaBytes
		if limit := spec.ReplicaSpecs[i].RestartPolicy.Limit; limit > 0 {
			each += restartsBytes + 2*len(strconv.Itoa(int(limit)))
		}
		for j := range tasks[i].Replicas {
			r := &tasks[i].Replicas[j]
			bare += each + len(r.Name)
			all += listSize(r.Containers)
		}
	}
	return bare, bare + all
}

func listSize(containers []tensorstack.ContainerStatus) int {
	if len(containers) == 0 {
		return 0
	}
	size := listBytes
	for i := range containers {
		size += containerBytes + len(containers[i].Name)
	}
	return size
}

// bytesBeside returns how large status.tasks may be beside the spec.
func bytesBeside(spec *tensorstack.GenericJobSpec) int {
	text, err := json.Marshal(spec)
	if err != nil {
		return 0 // the API server has stored it, so it can be encoded
	}
	return min(mostTasksBytes, etcdBytes-reservedBytes-specShare*len(text))
}
