package placer

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/musterhq/muster/internal/podspec"
)

// TestTimeOfLargeGangs: all pods of a gang are looked at again whenever some of them change. For 20,000 pods, each on a
// node of its own, that takes a fraction of a second if no pod is compared with every place, and otherwise more than 10 s.
func TestTimeOfLargeGangs(t *testing.T) {
	const size, most = 20000, 6 * time.Second
	var places podspec.Places
	for i := range size {
		places = append(places, on(fmt.Sprint("node-", i), 1))
	}
	for name, of := range map[string]func(i int) podBuilder{
		"pods at their places": func(i int) podBuilder { return pod(fmt.Sprint("p", i)).rank(i).at(fmt.Sprint("node-", i)) },
		"pods with ranks":      func(i int) podBuilder { return pod(fmt.Sprint("p", i)).rank(i) },
		"pods without ranks":   func(i int) podBuilder { return pod(fmt.Sprint("p", i)) },
	} {
		t.Run(name, func(t *testing.T) {
			var pods []*corev1.Pod
			for i := range size {
				pods = append(pods, of(i).Pod)
			}
			begin := time.Now()
			podSetOf(places, nil, pods).assign(pods, sameNames{})
			if took := time.Since(begin); took > most {
				t.Errorf("it took %s, want at most %s", took, most)
			}
		})
	}
}
