package placement

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// TestJobsThatHaveEndedHoldNoPlacesWhenTheRestIsAdmittedAgain: of three Jobs the first has succeeded when the JobSet is
// evicted. There are places for the pods of the others, and each gets that of its rank.
func TestJobsThatHaveEndedHoldNoPlacesWhenTheRestIsAdmittedAgain(t *testing.T) {
	w := newWorld(t)
	w.rackOf("r0", 3)
	w.queue()
	js := w.gang("js", "q", 3, 2, time.Hour) // four pods on a node: the second Job is on two of them
	js.Spec.ReplicatedJobs[0].Replicas = 3
	w.Create(js)
	for name, pod := range w.untilRunning("js", 9) {
		if strings.HasPrefix(name, "js-workers-0-") {
			w.EndPod(pod, 0)
		}
	}
	wl := w.UntilWorkloadOf("js", "gives back what has ended", func(wl *kueue.Workload) bool {
		return len(wl.Status.ReclaimablePods) == 1 && wl.Status.ReclaimablePods[0].Count == 3
	})
	w.Patch(wl.DeepCopy(), `{"spec": {"active": false}}`)
	w.UntilWorkloadOf("js", "has given its quota back", func(wl *kueue.Workload) bool { return wl.Status.Admission == nil })
	w.Patch(wl.DeepCopy(), `{"spec": {"active": true}}`)
	wl = w.UntilWorkloadOf("js", "is admitted again", admitted)
	places := nodesByRank(wl)
	running := w.untilRunning("js", 6)
	for rank, name := range slices.Sorted(maps.Keys(byRank(running))) {
		if pod := byRank(running)[name]; rank >= len(places) || pod.Spec.NodeName != places[rank] {
			t.Errorf("%s is on %s; places in the order of ranks: %v", pod.Name, pod.Spec.NodeName, places)
		}
	}
	if len(places) != 6 {
		t.Errorf("there are %d places: %v", len(places), places)
	}
}

// byRank are the pods by the index of their Job and their own.
func byRank(pods map[string]corev1.Pod) map[string]corev1.Pod {
	out := map[string]corev1.Pod{}
	for _, pod := range pods {
		out[fmt.Sprintf("%s-%s", pod.Labels[jobset.JobIndexKey], pod.Labels["batch.kubernetes.io/job-completion-index"])] = pod
	}
	return out
}
