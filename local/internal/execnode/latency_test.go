package execnode

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestFourPodsStartAMomentAfterTheyAreBound logs how long it takes from the binding of a pod, as a client sees it, until
// its command runs. The bound is far above it: it is for machines that do much else.
func TestFourPodsStartAMomentAfterTheyAreBound(t *testing.T) {
	onEachKind(t, func(t *testing.T, b *bench) {
		const pods, bound = 4, 2 * time.Second
		watch, err := b.client.CoreV1().Pods(b.namespace).Watch(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer watch.Stop()
		for i := range pods {
			b.pod(fmt.Sprintf("worker-%d", i), `date +%s%N; exec sleep 1000`)
		}
		boundAt := map[string]time.Time{}
		for event := range watch.ResultChan() {
			if pod := event.Object.(*corev1.Pod); pod.Spec.NodeName != "" && boundAt[pod.Name].IsZero() {
				boundAt[pod.Name] = time.Now()
			}
			if len(boundAt) == pods {
				break
			}
		}
		var slowest time.Duration
		for name, since := range boundAt {
			b.said(name, "\n")
			nanoseconds, err := strconv.ParseInt(strings.TrimSpace(b.log(name)), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			slowest = max(slowest, time.Unix(0, nanoseconds).Sub(since))
		}
		t.Logf("the slowest of %d pods ran %v after it was bound", pods, slowest)
		if slowest > bound {
			t.Errorf("the slowest of %d pods ran %v after it was bound", pods, slowest)
		}
	})
}
