package chart

import (
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/testcluster"
	"github.com/musterhq/muster/test/bench/operator"
	"github.com/musterhq/muster/test/scenario/harness"
)

// TestWhoRunsTheJobsOfOneNamespaceMayWriteInThatAlone: and that is enough for jobs to run, or the operator's log would tell.
func TestWhoRunsTheJobsOfOneNamespaceMayWriteInThatAlone(t *testing.T) {
	h, w := newHelm(t), harness.New(t)
	h.install(values{"monitorNamespace": w.Namespace})
	cluster := testcluster.Get(t)
	operator.StartAs(t, "../../bin/muster-operator", cluster, account, "--leader-election-namespace", namespace, "--namespace", w.Namespace).AwaitReady(t)
	w.Queue("q", kueue.ResourceFlavorSpec{}, corev1.ResourceList{corev1.ResourcePods: resource.MustParse("4")})
	w.Create(w.Job("runs", "q", 2))
	w.UntilWorkloadOf("runs", "runs", harness.Runs)

	for _, c := range []struct {
		verb, group, resource string
		here, elsewhere       bool
	}{
		{"create", "", "pods", true, false},
		{"list", "", "pods", true, true}, // they take room of nodes
		{"create", "", "secrets", true, false},
		{"get", "", "secrets", true, false},
		{"patch", "", "serviceaccounts", true, false},
		{"patch", "batch", "jobs", true, false},
		{"patch", "kueue.x-k8s.io", "workloads", true, false},
		{"create", "events.k8s.io", "events", true, true},
	} {
		for in, want := range map[string]bool{w.Namespace: c.here, "default": c.elsewhere} {
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: account, ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: c.verb, Group: c.group, Resource: c.resource, Namespace: in}}}
			if err := cluster.Client.Create(t.Context(), review); err != nil {
				t.Fatal(err)
			}
			if review.Status.Allowed != want {
				t.Errorf("it may %s %s in %s: %t, want %t", c.verb, c.resource, in, review.Status.Allowed, want)
			}
		}
	}
}
