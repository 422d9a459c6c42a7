package podspec

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/musterhq/muster/api/muster"
)

// RanksOf returns the ranks within the pod set of the pods of the pod's Job, from (inclusive) to to
// (exclusive), if the pod has the annotation. For an invalid annotation it returns 0, 0, true.
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
