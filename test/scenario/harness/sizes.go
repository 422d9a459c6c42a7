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
	w.UntilPods(fmt.Sprintf("%s has %d pods, which run", value, pods), func(all map[string]corev1.Pod) bool {
		running = map[string]types.UID{}
		there := 0
		for name, pod := range all {
			if !of.Matches(labels.Set(pod.Labels)) {
				continue
			}
			if there++; pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
				running[name] = pod.UID
			}
		}
		return there == pods && len(running) == pods
	})
	return running
}

// Stay checks that as many pods as the smaller of before and after has are the same ones in both, and returns after.
func (w *World) Stay(before, after map[string]types.UID) map[string]types.UID {
	w.Helper()
	same := 0
	for name, uid := range after {
		if before[name] == uid {
			same++
		}
	}
	if least := min(len(before), len(after)); same < least {
		w.Errorf("%d of %d pods stayed: there were %v, and are %v", same, least, before, after)
	}
	return after
}
