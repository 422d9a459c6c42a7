package managedqueues

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	scheduling "github.com/musterhq/muster/api/volcano/scheduling/v1beta1"
	"github.com/musterhq/muster/internal/admission/admissiontest"
)

// below returns a Queue below another one.
func below(parent, name string, spec scheduling.QueueSpec) *scheduling.Queue {
	spec.Parent = parent
	q := aQueue(name, spec)
	q.UID = types.UID(name)
	return q
}

// treeOf returns "cohort/queue" with the limits of each ClusterQueue, and "parent/cohort" with those of each Cohort.
func treeOf(queues ...*scheduling.Queue) (out []string) {
	all := map[string]*scheduling.Queue{}
	for _, q := range queues {
		all[q.Name] = q
	}
	tree := nest(all, all)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		made := tree.clusterQueue(all[name], nil)
		out = append(out, fmt.Sprint(made.Spec.Cohort, "/", name, " ", limitsOf(made)))
	}
	cohorts := tree.cohorts(all)
	for _, name := range slices.Sorted(maps.Keys(cohorts)) {
		made := &kueue.ClusterQueue{}
		made.Spec.ResourceGroups = cohorts[name].Spec.ResourceGroups
		out = append(out, fmt.Sprint("cohort ", cohorts[name].Spec.ParentName, "/", name, " ", limitsOf(made)))
	}
	for _, name := range slices.Sorted(maps.Keys(tree.ignored)) {
		out = append(out, name+": "+tree.ignored[name])
	}
	return out
}

// TestParentsAreCohorts: what is below a Queue has its capability at most, and what a Queue deserves does not count
// beside what those below it do.
func TestParentsAreCohorts(t *testing.T) {
	cpu := func(deserved, capability, guarantee string) scheduling.QueueSpec {
		list := func(amount string) corev1.ResourceList {
			if amount == "" {
				return nil
			}
			return admissiontest.Quantities("cpu", amount)
		}
		return scheduling.QueueSpec{Deserved: list(deserved), Capability: list(capability),
			Guarantee: scheduling.Guarantee{Resource: list(guarantee)}}
	}
	for name, test := range map[string]struct {
		queues []*scheduling.Queue
		want   []string
	}{
		"two children of a Queue that deserves what they do": {
			[]*scheduling.Queue{below("root", "lab", cpu("400m", "400m", "")), below("lab", "a", cpu("200m", "400m", "")),
				below("lab", "b", cpu("200m", "400m", ""))},
			[]string{"volcano-lab/a [cpu=200m +200m]", "volcano-lab/b [cpu=200m +200m]", "volcano-lab/lab [cpu=0 +400m]",
				"cohort volcano/volcano-lab [cpu=0 +0]"}},
		"a Queue that deserves more": {
			[]*scheduling.Queue{below("", "lab", cpu("10", "12", "")), below("lab", "a", cpu("4", "", "")),
				below("lab", "b", cpu("", "", ""))},
			[]string{"volcano-lab/a [cpu=4]", "volcano-lab/b []", "volcano-lab/lab [cpu=0 +12]",
				"cohort volcano/volcano-lab [cpu=6 +2]"}},
		"one that deserves nothing": {
			[]*scheduling.Queue{below("", "lab", cpu("", "12", "")), below("lab", "a", cpu("4", "", ""))},
			[]string{"volcano-lab/a [cpu=4]", "volcano-lab/lab [cpu=0 +12]", "cohort volcano/volcano-lab [cpu=0 +8]"}},
		"children that deserve more than their parent may have share it": {
			[]*scheduling.Queue{below("", "lab", cpu("", "6", "")), below("lab", "a", cpu("8", "", "")),
				below("lab", "b", cpu("4", "", ""))},
			[]string{"volcano-lab/a [cpu=4]", "volcano-lab/b [cpu=2]", "volcano-lab/lab [cpu=0 +6]",
				"cohort volcano/volcano-lab [cpu=0 +0]"}},
		"guarantees": {
			[]*scheduling.Queue{below("", "lab", cpu("", "", "6")), below("lab", "a", cpu("4", "", "2")),
				below("lab", "b", cpu("1", "", ""))},
			[]string{"volcano-lab/a [cpu=4 -2]", "volcano-lab/b [cpu=1]", "volcano-lab/lab [cpu=0 -0]",
				"cohort volcano/volcano-lab [cpu=1 -0]"}},
		"three levels": {
			[]*scheduling.Queue{below("", "top", cpu("", "8", "")), below("top", "lab", cpu("6", "6", "")),
				below("lab", "a", cpu("4", "", ""))},
			[]string{"volcano-lab/a [cpu=4]", "volcano-lab/lab [cpu=0 +6]", "volcano-top/top [cpu=0 +8]",
				"cohort volcano-top/volcano-lab [cpu=2 +0]", "cohort volcano/volcano-top [cpu=0 +2]"}},
		"parents without effect": {
			[]*scheduling.Queue{below("gone", "a", cpu("4", "", "")), below("self", "self", cpu("", "", "")),
				below("y", "x", cpu("", "", "")), below("x", "y", cpu("", "", "")), below("x", "under", cpu("1", "", ""))},
			[]string{"volcano/a [cpu=4]", "volcano/self []", "volcano-x/under [cpu=1]", "volcano-x/x []", "volcano/y []",
				"cohort volcano/volcano-x [cpu=0]", "a: parent, because there is no Queue gone",
				"self: parent, because the Queue is below itself then", "x: parent, because the Queue is below itself then",
				"y: parent, because the Queue is below itself then"}},
	} {
		t.Run(name, func(t *testing.T) { admissiontest.Expect(t, "tree", test.want, treeOf(test.queues...)) })
	}
}

// TestCohortsFollowTheirQueues: a Queue has a Cohort for as long as others are below it.
func TestCohortsFollowTheirQueues(t *testing.T) {
	lab, a := below("root", "lab", scheduling.QueueSpec{Capability: admissiontest.Quantities("cpu", "4")}),
		below("lab", "a", scheduling.QueueSpec{})
	api := fake.NewClientBuilder().WithScheme(queueScheme(t)).WithStatusSubresource(&scheduling.Queue{}).
		WithObjects(lab, a).Build()
	recorder := events.NewFakeRecorder(10)
	keeper := &volcanoQueues{client: api, recorder: recorder, notKeptReported: map[types.UID]bool{},
		ignoredReported: map[types.UID]string{}}
	cohorts := func(when string, want ...string) {
		t.Helper()
		if _, err := keeper.Reconcile(t.Context(), ctrl.Request{}); err != nil {
			t.Fatal(err)
		}
		var list kueue.CohortList
		if err := api.List(t.Context(), &list); err != nil {
			t.Fatal(err)
		}
		var got []string
		for i := range list.Items {
			got = append(got, string(list.Items[i].Spec.ParentName)+"/"+list.Items[i].Name)
		}
		slices.Sort(got)
		var of kueue.ClusterQueue
		if err := api.Get(t.Context(), client.ObjectKey{Name: "a"}, &of); err != nil {
			t.Fatal(err)
		}
		admissiontest.Expect(t, when, want, append(got, "a is in "+string(of.Spec.Cohort)))
	}
	change := func(q *scheduling.Queue, parent string) {
		t.Helper()
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(q), q); err != nil {
			t.Fatal(err)
		}
		q.Spec.Parent = parent
		if err := api.Update(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	cohorts("a Queue below another one", "/volcano", "volcano/volcano-lab", "a is in volcano-lab")
	change(a, "")
	cohorts("it is no more", "/volcano", "a is in volcano")
	change(a, "lab")
	cohorts("it is again", "/volcano", "volcano/volcano-lab", "a is in volcano-lab")
	if len(recorder.Events) != 0 {
		t.Errorf("%d events were recorded, want none: the parent has an effect", len(recorder.Events))
	}
	if err := api.Delete(t.Context(), lab); err != nil {
		t.Fatal(err)
	}
	// The garbage collector, which is not there, would delete the ClusterQueue of the Queue.
	if err := api.Delete(t.Context(), &kueue.ClusterQueue{ObjectMeta: lab.ObjectMeta}); err != nil {
		t.Fatal(err)
	}
	cohorts("the parent is gone", "/volcano", "a is in volcano")
	if len(recorder.Events) != 1 {
		t.Errorf("%d events were recorded, want one: the parent has no effect any more", len(recorder.Events))
	}
}
