package latticejob

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
)

func TestRelatedObjectsAreThoseTheSpecRefersTo(t *testing.T) {
	s := newScene()
	callService(s)
	task := s.seen.Job.Spec.Tasks["t"]
	task.Workload.Resources["g"] = lattice.ResourceSpec{Type: lattice.GPUResource}
	s.seen.Job.Spec.Tasks["t"] = task
	api := New(Settings{})
	var got []string
	for _, o := range api.Related(s.seen.Job) {
		switch o.(type) {
		case *nodev1.RuntimeClass:
			got = append(got, "RuntimeClass "+o.GetName())
		case *corev1.Service:
			got = append(got, "Service "+o.GetNamespace()+"/"+o.GetName())
		case *lattice.LatticeJob:
			got = append(got, "LatticeJob "+o.GetNamespace()+"/"+o.GetName())
		}
	}
	if diff := cmp.Diff([]string{"RuntimeClass nvidia", "Service ns/other-x", "LatticeJob ns/other"}, got); diff != "" {
		t.Error(diff)
	}
	if n := len(api.AsksNodes(s.seen.Job)); n != 2 {
		t.Errorf("%d features of nodes are asked for", n)
	}
	if api.AsksNodes(newScene().seen.Job) != nil {
		t.Error("nodes are asked for a job without GPUs")
	}
}

// That the VCJob of a job is there follows from its making; where it stands does not.
func TestACreatedVCJobNeedsNoReconcile(t *testing.T) {
	expected := New(Settings{}).Expected
	for name, test := range map[string]struct {
		child client.Object
		want  bool
	}{
		"of which nobody has said anything": {&volcano.Job{}, true},
		"that waits":                        {newScene().vcjob(volcano.Pending, "", "").seen.Children[0], false},
		"that goes":                         {&volcano.Job{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: ptr.To(metav1.NewTime(now))}}, false},
		"and a run of a schedule":           {&lattice.LatticeJob{}, false},
	} {
		if got := expected(test.child); got != test.want {
			t.Errorf("a VCJob %s is expected: %v, want %v", name, got, test.want)
		}
	}
}
