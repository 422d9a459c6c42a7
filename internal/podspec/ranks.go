package podspec

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/musterhq/muster/api/muster"
)

// RanksOf are the ranks in its pod set of the pods of a pod's Job, where the pod says them:
// from, and up to but not including to. What cannot be is 0 to 0.
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
