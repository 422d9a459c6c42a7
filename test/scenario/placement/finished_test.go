package placement

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// TestJobsThatHaveEndedHoldNoPlacesWhenTheRestIsAdmittedAgain deactivates and reactivates a JobSet of three Jobs, the
// first of which has succeeded. It checks that only the pods of the other two have places, and that each is at that of
// its rank.
func TestJobsThatHaveEndedHoldNoPlacesWhenTheRestIsAdmittedAgain(t *testing.T) {
	w := newWorld(t)
	w.rackOf("r0", 3)
	w.queue()
	js := w.gang("js", "q", 3, 2, time.Hour) // a node holds four pods: the second Job is on two nodes
	js.Spec.ReplicatedJobs[0].Replicas = 3
	w.Create(js)
	for name, pod := range w.untilRunning("js", 9) {
		if strings.HasPrefix(name, "js-workers-0-") {
			w.EndPod(pod, 0)
		}
	}
	wl := w.UntilWorkloadOf("js", "has 3 reclaimable pods", func(wl *kueue.Workload) bool {
		return len(wl.Status.ReclaimablePods) == 1 && wl.Status.ReclaimablePods[0].Count == 3
	})
	w.Patch(wl.DeepCopy(), `{"spec": {"active": false}}`)
	w.UntilWorkloadOf("js", "has released its quota", func(wl *kueue.Workload) bool { return wl.Status.Admission == nil })
	w.Patch(wl.DeepCopy(), `{"spec": {"active": true}}`)
	wl = w.UntilWorkloadOf("js", "is admitted again", admitted)
	w.expectPlacedByRank(byIndexes(w.untilRunning("js", 6)), nodesByRank(wl))
}

// byIndexes returns the pods keyed by the index of their Job and their completion index: the keys sort by rank.
func byIndexes(pods map[string]corev1.Pod) map[string]corev1.Pod {
	out := map[string]corev1.Pod{}
	for _, pod := range pods {
		out[fmt.Sprintf("%s-%s", pod.Labels[jobset.JobIndexKey],
			pod.Labels["batch.kubernetes.io/job-completion-index"])] = pod
	}
	return out
}
