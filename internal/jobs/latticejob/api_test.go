package latticejob

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
)

// kindsAndNames returns the related objects as "Kind namespace/name".
func kindsAndNames(objects []client.Object) (out []string) {
	for _, o := range objects {
		switch o.(type) {
		case *nodev1.RuntimeClass:
			out = append(out, "RuntimeClass "+o.GetName())
		case *corev1.Service:
			out = append(out, "Service "+o.GetNamespace()+"/"+o.GetName())
		case *lattice.LatticeJob:
			out = append(out, "LatticeJob "+o.GetNamespace()+"/"+o.GetName())
		}
	}
	return out
}

func TestRelatedObjectsAreThoseTheSpecRefersTo(t *testing.T) {
	s := newScene()
	callService(s)
	task := s.seen.Job.Spec.Tasks["t"]
	task.Workload.Resources["g"] = lattice.ResourceSpec{Type: lattice.GPUResource}
	s.seen.Job.Spec.Tasks["t"] = task
	api := New(Settings{})
	if diff := cmp.Diff([]string{"RuntimeClass nvidia", "Service ns/other-x", "LatticeJob ns/other"},
		kindsAndNames(api.Reads.Related(s.seen.Job))); diff != "" {
		t.Error(diff)
	}
	if n := len(api.Reads.NodeFeatures(s.seen.Job)); n != 2 {
		t.Errorf("%d features of nodes are asked for", n)
	}
	if api.Reads.NodeFeatures(newScene().seen.Job) != nil {
		t.Error("nodes are asked for a job without GPUs")
	}
}

// That the VCJob of a job is there follows from its making; where it stands does not.
func TestACreatedVCJobNeedsNoReconcile(t *testing.T) {
	expected := New(Settings{}).Watch.Expected
	for name, test := range map[string]struct {
		child client.Object
		want  bool
	}{
		"of which nobody has said anything": {&volcano.Job{}, true},
		"that waits":                        {newScene().vcjob(volcano.Pending, "", "").seen.Children[0], false},
		"that goes": {
			&volcano.Job{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: ptr.To(metav1.NewTime(now))}}, false},
		"and a run of a schedule": {&lattice.LatticeJob{}, false},
	} {
		if got := expected(test.child); got != test.want {
			t.Errorf("a VCJob %s is expected: %v, want %v", name, got, test.want)
		}
	}
}

// TestOnlyWhatMayBeCalledIsRelated: each related object is read in each reconcile, and a job has room for a thousand
// ids of as many characters.
func TestOnlyWhatMayBeCalledIsRelated(t *testing.T) {
	for id, want := range map[string][]string{
		"a-b-c":                         {"Service ns/a-b-c", "LatticeJob ns/a", "LatticeJob ns/a-b"},
		"a--b":                          {"Service ns/a--b"}, // no job is called a-, and no task -b
		strings.Repeat("a-", 500) + "a": nil,                 // no Service is called that
	} {
		s := newScene().with(task(t, "workload: {resources: {r: {type: service, id: "+id+"}}}"))
		if diff := cmp.Diff(want, kindsAndNames(related(s.seen.Job))); diff != "" {
			t.Errorf("id %.20s (-want +got): %.1000s", id, diff)
		}
	}
}

// TestRelatedObjectsAreFew: a job that calls many services of one other job has that one read once, and one that calls
// more services than it may has none read.
func TestRelatedObjectsAreFew(t *testing.T) {
	calls := func(services int) *lattice.LatticeJob {
		var resources strings.Builder
		for i := range services {
			fmt.Fprintf(&resources, "r%d: {type: service, id: a-x%d}, ", i, i)
		}
		return newScene().with(task(t, "workload: {resources: {"+resources.String()+"}}")).seen.Job
	}
	if got := kindsAndNames(related(calls(100))); len(got) != 101 || !slices.Contains(got, "LatticeJob ns/a") {
		t.Errorf("%d related objects, want 100 Services and the LatticeJob a: %.500v", len(got), got)
	}
	if got := kindsAndNames(related(calls(129))); len(got) > 0 {
		t.Errorf("related to a job with too many calls: %.500v", got)
	}
}

// TestLargeTasksOfOthersCostNothing: of the LatticeJobs that a job calls, and of the job itself, the lists of
// containers are not copied to find out which services there are. A user may have thousands of these jobs, each of a
// megabyte.
func TestLargeTasksOfOthersCostNothing(t *testing.T) {
	withArgs := func(args int) float64 {
		large := otherJob(lattice.Running)
		main := lattice.ContainerSpec{SidecarContainer: lattice.SidecarContainer{Args: slices.Repeat([]string{"a"}, args)}}
		large.Spec.Defaults = &lattice.JobTaskSpec{
			Workload: lattice.WorkloadSpec{Containers: map[string]lattice.ContainerSpec{"main": main}}}
		s := newScene().with(callService)
		s.seen.Job.Spec.Defaults = large.Spec.Defaults
		c := controller{}
		return testing.AllocsPerRun(5, func() {
			if related(s.seen.Job); hasGPUs(s.seen.Job) {
				t.Error("the job has GPUs")
			}
			if facts := c.facts(s.seen.Job, jobs.Facts{}, []client.Object{large}); len(facts.Services) != 1 {
				t.Errorf("services %v, want the one that is called", facts.Services)
			}
		})
	}
	if few, many := withArgs(1), withArgs(1000); many > 2*few {
		t.Errorf("%.0f allocations with 1000 args and %.0f with one, want as many", many, few)
	}
}
