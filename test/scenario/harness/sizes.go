package harness

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// UntilSize waits until exactly that many pods with the label run, and returns their UIDs by name.
func (w *World) UntilSize(label, value string, pods int) (running map[string]types.UID) {
	w.Helper()
	of := labels.SelectorFromSet(labels.Set{label: value})
	w.UntilPods(fmt.Sprintf("%s has %d pods, all running", value, pods), func(all map[string]corev1.Pod) bool {
		running = map[string]types.UID{}
		total := 0
		for name, pod := range all {
			if !of.Matches(labels.Set(pod.Labels)) {
				continue
			}
			if total++; pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
				running[name] = pod.UID
			}
		}
		return total == pods && len(running) == pods
	})
	return running
}

// ExpectSamePods checks that as many pods as the smaller of before and after has are the same ones in both, and returns
// after.
func (w *World) ExpectSamePods(before, after map[string]types.UID) map[string]types.UID {
	w.Helper()
	same := 0
	for name, uid := range after {
		if before[name] == uid {
			same++
		}
	}
	if want := min(len(before), len(after)); same < want {
		w.Errorf("%d pods are the same, want at least %d: before %v, after %v", same, want, before, after)
	}
	return after
}
