package placer

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/musterhq/muster/internal/jobs/jobstest"
	"github.com/musterhq/muster/internal/podspec"
)

// TestTimeOfLargeGangs: all pods of a gang are looked at again whenever some of them change, and then no pod is
// compared with every place.
func TestTimeOfLargeGangs(t *testing.T) {
	for name, of := range map[string]func(i int) podBuilder{
		"pods at their places": func(i int) podBuilder { return pod(fmt.Sprint("p", i)).rank(i).at(fmt.Sprint("node-", i)) },
		"pods with ranks":      func(i int) podBuilder { return pod(fmt.Sprint("p", i)).rank(i) },
		"pods without ranks":   func(i int) podBuilder { return pod(fmt.Sprint("p", i)) },
	} {
		t.Run(name, func(t *testing.T) {
			jobstest.CheckAboutLinear(t, 2500, func(size int) func() {
				var places podspec.Places
				var pods []*corev1.Pod
				for i := range size {
					places = append(places, on(fmt.Sprint("node-", i), 1))
					pods = append(pods, of(i).Pod)
				}
				return func() { podSetOf(places.Ranking(), nil, pods).assign(pods, sameNames{}) }
			})
		})
	}
}
