package podspec

import (
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	"github.com/musterhq/muster/api/muster"
	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
)

// indexLabels hold the index of a pod in its Job, task or set of replicas, by which the pods of a pod set are ordered.
// The Job controller's is an annotation too.
var indexLabels = []string{batchv1.JobCompletionIndexAnnotation, volcano.TaskIndexKey, breezeml.ReplicaIndexLabel}

// IndexOf returns the index of a pod in its Job, task, type or set of replicas; false if it has none.
func IndexOf(pod *corev1.Pod) (int32, bool) {
	for _, label := range indexLabels {
		if index, ok := Number(pod.Labels[label]); ok {
			return index, true
		}
	}
	if index, ok := Number(pod.Annotations[batchv1.JobCompletionIndexAnnotation]); ok {
		return index, true
	}
	name := pod.Labels[tensorstack.ReplicaLabel]
	return Number(name[strings.LastIndexByte(name, '-')+1:])
}

// Number parses a number that is not negative.
func Number(text string) (int32, bool) {
	n, err := strconv.ParseInt(text, 10, 32)
	return int32(n), err == nil && n >= 0
}

// RanksOf returns the ranks within the pod set of the pods of the pod's Job, from (inclusive) to to (exclusive), if the
// pod has the annotation. For an invalid annotation it returns 0, 0, true.
func RanksOf(pod *corev1.Pod) (from, to int32, ok bool) {
	text, ok := pod.Annotations[muster.RanksAnnotation]
	if !ok {
		return 0, 0, false
	}
	a, b, _ := strings.Cut(text, "-")
	first, err1 := strconv.ParseInt(a, 10, 32)
	last, err2 := strconv.ParseInt(b, 10, 31)
	if err1 != nil || err2 != nil || first < 0 || last < first || last+1 > 1<<30 {
		return 0, 0, true
	}
	return int32(first), int32(last) + 1, true
}
