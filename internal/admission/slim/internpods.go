package slim

import (
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxInternedPerJob bounds the values that the pods of one job have in common: the pods of a job arrive together.
const maxInternedPerJob = maxInterned / 4

var (
	internedMaps     = interner[map[string]string]{max: maxInternedPerJob}
	internedOwners   = interner[[]metav1.OwnerReference]{max: maxInternedPerJob}
	internedStatuses interner[[]corev1.ContainerStatus]
)

// shareMap returns the interned map of labels or annotations, with all of its strings interned.
func shareMap(of map[string]string) map[string]string {
	if len(of) == 0 {
		return nil
	}
	key := make([]byte, 0, 512)
	for _, name := range slices.Sorted(maps.Keys(of)) {
		key = appendText(key, name, of[name])
	}
	return internedMaps.internFunc(key, func() map[string]string {
		out := make(map[string]string, len(of))
		for name, value := range of {
			out[shareText(name)] = shareText(value)
		}
		return out
	})
}

// shareOwners returns the interned owner references.
func shareOwners(owners []metav1.OwnerReference) []metav1.OwnerReference {
	if len(owners) == 0 {
		return nil
	}
	key := make([]byte, 0, 256)
	for i := range owners {
		o := &owners[i]
		key = appendText(key, o.APIVersion, o.Kind, o.Name, string(o.UID))
		key = appendFlag(appendFlag(key, o.Controller), o.BlockOwnerDeletion)
	}
	return internedOwners.intern(key, owners)
}

// shareStatuses returns the interned statuses of containers that run or wait. A time belongs to one pod, so statuses
// with a time are returned as they are.
func shareStatuses(statuses []corev1.ContainerStatus) []corev1.ContainerStatus {
	if len(statuses) == 0 {
		return nil
	}
	key := make([]byte, 0, 64)
	for i := range statuses {
		s := &statuses[i]
		s.Name = shareText(s.Name)
		if s.State.Terminated != nil || s.LastTerminationState.Terminated != nil ||
			s.State.Running != nil && s.State.Running != running ||
			s.Resources != nil || s.AllocatedResources != nil {
			return statuses
		}
		key = strconv.AppendBool(strconv.AppendBool(appendText(key, s.Name), s.State.Running != nil), s.Ready)
		key = append(strconv.AppendInt(key, int64(s.RestartCount), 10), '\n')
	}
	return internedStatuses.intern(key, statuses)
}

// appendFlag appends a flag that may be unset.
func appendFlag(key []byte, flag *bool) []byte {
	switch {
	case flag == nil:
		return append(key, '-')
	case *flag:
		return append(key, 'y')
	}
	return append(key, 'n')
}
