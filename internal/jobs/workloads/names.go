package workloads

import (
	"crypto/sha1"
	"encoding/hex"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

// workloadName returns the name of a job's Workload, <kind>-<name>-<5 hex digits>. It is the same in every reconcile,
// so that a repeated create is harmless, and it differs for a later job of the same name. A name beyond 63 bytes, which
// could not be the value of a label, is cut before the digits, and has 10 of them: many jobs may have names that begin
// alike.
func workloadName(kind schema.GroupVersionKind, name string, uid types.UID) string {
	if whole := longWorkloadName(kind, name, uid); len(whole) <= validation.LabelValueMaxLength {
		return whole
	}
	return cutWorkloadName(kind, name, uid, validation.LabelValueMaxLength, 10)
}

// longWorkloadName returns the name that earlier versions gave to the job's Workload, of up to 253 bytes. Workloads
// that have it keep it.
func longWorkloadName(kind schema.GroupVersionKind, name string, uid types.UID) string {
	return cutWorkloadName(kind, name, uid, validation.DNS1123SubdomainMaxLength, 5)
}

// cutWorkloadName returns the name with so many digits, cut to so many bytes.
func cutWorkloadName(kind schema.GroupVersionKind, name string, uid types.UID, bytes, digits int) string {
	sum := sha1.Sum([]byte(strings.Join([]string{kind.Kind, kind.Group, name, string(uid)}, "\n")))
	suffix := "-" + hex.EncodeToString(sum[:])[:digits]
	prefix := strings.ToLower(kind.Kind) + "-" + name
	return strings.TrimRight(prefix[:min(len(prefix), bytes-len(suffix))], "-.") + suffix
}

// Names returns the names that versions of Muster generate for the job's Workload, each once, the newest first.
func Names(kind schema.GroupVersionKind, job string, uid types.UID) []string {
	return slices.Compact([]string{workloadName(kind, job, uid), longWorkloadName(kind, job, uid)})
}

// IsName reports whether the name is one that a version of Muster generates for the job's Workload.
func IsName(name string, kind schema.GroupVersionKind, job string, uid types.UID) bool {
	return slices.Contains(Names(kind, job, uid), name)
}
