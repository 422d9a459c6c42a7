package workload

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/pointers"
)

// LongestTime is the longest duration that counts as a limit or an estimate: ten years of 365 days. Longer ones are
// mistakes.
const LongestTime = 10 * 365 * 24 * time.Hour

// ParseTime returns the duration of an annotation such as muster.dev/expected-duration: a Go duration above zero, and
// at most LongestTime. It returns zero for every other text, which then says nothing.
func ParseTime(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > LongestTime {
		return 0
	}
	return d
}

// QueueTime returns the duration that an annotation of a ClusterQueue or a LocalQueue says (ParseDuration), zero if
// it is absent, says nothing, or is above LongestTime.
func QueueTime(queue metav1.Object, annotation string) time.Duration {
	d, ok := ParseDuration(queue.GetAnnotations()[annotation])
	if !ok || d > LongestTime {
		return 0
	}
	return d
}

// Seconds returns this number of seconds as a limit: zero, for none, unless it is above zero and at most LongestTime.
func Seconds(n int64) time.Duration {
	if n <= 0 || n > int64(LongestTime/time.Second) {
		return 0
	}
	return time.Duration(n) * time.Second
}

// OwnLimit returns after how long the job's own API, or the kubelets, stop the job of the Workload, counted from each
// start; zero if they do not.
func OwnLimit(w *kueue.Workload) time.Duration {
	limit := ParseTime(w.Annotations[muster.JobLimitAnnotation])
	if limit > 0 || w.Spec.MaximumExecutionTimeSeconds != nil {
		return limit
	}
	return PodsDeadline(w.Spec.PodSets)
}

// PodsDeadline returns the time after which the kubelets stop all pods of the pod sets: the longest
// activeDeadlineSeconds of their templates, zero unless each template has one. Pod sets of no pods do not count.
func PodsDeadline(podSets []kueue.PodSet) time.Duration {
	var longest time.Duration
	for podSet := range pointers.To(podSets) {
		if podSet.Count <= 0 {
			continue
		}
		seconds := podSet.Template.Spec.ActiveDeadlineSeconds
		if seconds == nil || Seconds(*seconds) == 0 {
			return 0
		}
		longest = max(longest, Seconds(*seconds))
	}
	return longest
}
