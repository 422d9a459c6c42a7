package jobstest

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/podspec"
)

// CheckMissingGetsFreePlace checks that the first of four pods of the pod set worker, if it alone is missing, is
// created for the place that the second to fourth leave free. running returns a running pod of the given index.
func CheckMissingGetsFreePlace(t *testing.T, running func(index int) *corev1.Pod,
	plan func(jobs.Admission, ...client.Object) jobs.Plan) {
	t.Helper()
	at := func(node string, count int32) podspec.Place {
		return podspec.Place{Domain: map[string]string{corev1.LabelHostname: node}, Count: count}
	}
	grant := jobs.Admission{Grant: jobs.Admitted,
		PodSets: map[string]jobs.PodSetAdmission{"worker": {Count: 4, Asked: 4, Left: 4,
			Places: podspec.Places{at("a", 3), at("b", 1)}}}}
	on := func(index int, node string) Pod {
		pod := running(index)
		pod.Spec.NodeName, pod.Spec.NodeSelector = node, map[string]string{corev1.LabelHostname: node}
		return Pod{pod}
	}
	missing := running(0).Name
	first := func(others ...Pod) string {
		for _, w := range plan(grant, Objects(others...)...).Writes {
			if p, ok := w.Object().(*corev1.Pod); ok && w.Verb() == "create" && p.Name == missing {
				return fmt.Sprint(p.Spec.NodeSelector[corev1.LabelHostname], len(p.Spec.SchedulingGates))
			}
		}
		return "none"
	}
	Equal(t, "the others have the places of ranks 0 to 2", "b0", first(on(1, "a"), on(2, "a"), on(3, "a")))
	Equal(t, "its own is free", "a0", first(on(1, "a"), on(2, "a")))
	Equal(t, "one on its way out has a place as yet", "b0", first(on(1, "a"), on(2, "a"), on(3, "a").Terminating()))
	Equal(t, "another has none on its node any more", "a0", first(on(1, "a"), on(2, "a"), on(3, "c")))
}
