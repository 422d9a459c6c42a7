package admission

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/quota"
)

// queueStatusInterval is the configuration's default.
const queueStatusInterval = 5 * time.Second

// some is a usage of 3 cpu, one of them borrowed.
var some = engine.Usage{
	Reserved: map[quota.FlavorResource]int64{{Flavor: "f", Resource: "cpu"}: 3000},
	Used:     map[quota.FlavorResource]int64{{Flavor: "f", Resource: "cpu"}: 3000},
	Pending:  2, Reserving: 1, Admitted: 1,
}

func TestClusterQueueStatus(t *testing.T) {
	for name, tc := range map[string]struct {
		policy  *kueue.StopPolicy
		missing []string
		cyclic  bool
		want    string
	}{
		"one that admits":           {nil, nil, false, "Active=True Ready: Can admit new workloads"},
		"a policy of None does too": {ptr.To(kueue.None), nil, false, "Active=True Ready: Can admit new workloads"},
		"one that is stopped":       {ptr.To(kueue.Hold), []string{"f"}, false, "Active=False Stopped: Is stopped"},
		"one with missing flavors":  {nil, []string{"f", "g"}, false, "Active=False FlavorNotFound: Can't admit new workloads: references missing ResourceFlavor(s): [f g]"},
		"one in a cycle of cohorts": {nil, nil, true, "Active=False Unknown: Can't admit new workloads: its cohorts form a cycle; change the parentName of one of them"},
	} {
		t.Run(name, func(t *testing.T) {
			q := newClusterQueue("cq", "2")
			q.Spec.StopPolicy = tc.policy
			clusterQueueStatus(q, some, dependencies{missing: tc.missing, cyclic: tc.cyclic}, now)
			if diff := cmp.Diff([]string{tc.want}, conditions(q.Status.Conditions)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestAClusterQueueWithAnInvalidSelectorIsNotActive: it selects no namespace, and the reason is reported to its
// workloads too.
func TestAClusterQueueWithAnInvalidSelectorIsNotActive(t *testing.T) {
	const why = `Can't admit new workloads: its namespaceSelector is invalid and must be changed: `
	q := newClusterQueue("cq", "2")
	q.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a b"}}
	clusterQueueStatus(q, some, dependencies{flavors: 1}, now)
	if got := conditions(q.Status.Conditions); len(got) != 1 || !strings.HasPrefix(got[0], "Active=False Unknown: "+why) || !strings.Contains(got[0], "a b") {
		t.Errorf("its conditions are %q", got)
	}
	if got := (&translator{}).clusterQueue(q).Inactive; !strings.HasPrefix(got, why) {
		t.Errorf("its workloads are told %q", got)
	}
	q.Spec.NamespaceSelector.MatchLabels["zone"], q.Spec.NamespaceSelector.MatchLabels["app"] = "c d", "fine"
	for range 100 { // map order is random
		if _, got := cannotAdmit(q, nil); !strings.HasPrefix(got, why) || !strings.Contains(got, "a b") {
			t.Fatalf("of two labels that cannot be it names another: %q", got)
		}
	}
	q.Spec.NamespaceSelector = nil // selects no namespace, intentionally
	clusterQueueStatus(q, some, dependencies{flavors: 1}, now)
	if diff := cmp.Diff([]string{"Active=True Ready: Can admit new workloads"}, conditions(q.Status.Conditions)); diff != "" {
		t.Errorf("without a selector (-want +got):\n%s", diff)
	}
}

func TestAClusterQueueWithMissingChecksIsNotActive(t *testing.T) {
	q := newClusterQueue("cq", "2")
	q.Spec.AdmissionChecks = []kueue.AdmissionCheckReference{"budget"}
	clusterQueueStatus(q, some, dependencies{flavors: 1}, now)
	want := "Active=False AdmissionCheckNotFound: Can't admit new workloads: references missing AdmissionCheck(s): [budget]"
	if diff := cmp.Diff([]string{want}, conditions(q.Status.Conditions)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestClusterQueueUsage(t *testing.T) {
	q := newClusterQueue("cq", "2")
	q.Spec.Cohort = "lab"
	q.Spec.ResourceGroups = append(q.Spec.ResourceGroups, kueue.ResourceGroup{Flavors: []kueue.FlavorQuotas{{Name: "g", Resources: []kueue.ResourceQuota{{Name: "memory"}}}}})
	clusterQueueStatus(q, some, dependencies{flavors: 1}, now)
	q.Status.Conditions = nil
	usage := []kueue.FlavorUsage{
		{Name: "f", Resources: []kueue.ResourceUsage{{Name: "cpu", Total: resource.MustParse("3"), Borrowed: resource.MustParse("1")}}},
		{Name: "g", Resources: []kueue.ResourceUsage{{Name: "memory", Total: resource.MustParse("0"), Borrowed: resource.MustParse("0")}}},
	}
	want := kueue.ClusterQueueStatus{PendingWorkloads: 2, ReservingWorkloads: 1, AdmittedWorkloads: 1, FlavorsReservation: usage, FlavorsUsage: usage}
	if diff := cmp.Diff(want, q.Status); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLocalQueueStatus(t *testing.T) {
	stoppedQueue := newClusterQueue("cq", "1")
	stoppedQueue.Spec.StopPolicy = ptr.To(kueue.HoldAndDrain)
	deletedQueue := newClusterQueue("cq", "1")
	deletedQueue.DeletionTimestamp = ptr.To(metav1.NewTime(now))
	checked := newClusterQueue("cq", "1")
	checked.Spec.AdmissionChecks = []kueue.AdmissionCheckReference{"budget"}
	for name, tc := range map[string]struct {
		policy *kueue.StopPolicy
		behind *kueue.ClusterQueue
		around dependencies
		want   string
	}{
		"one that admits":                         {nil, newClusterQueue("cq", "1"), dependencies{flavors: 1}, "Active=True Ready: Can submit new workloads to localQueue"},
		"one that is stopped":                     {ptr.To(kueue.Hold), nil, dependencies{flavors: 1}, "Active=False Stopped: LocalQueue is stopped"},
		"one that leads nowhere":                  {nil, nil, dependencies{flavors: 1}, "Active=False ClusterQueueDoesNotExist: ClusterQueue cq doesn't exist: create it, or use a LocalQueue that names another"},
		"one whose ClusterQueue has been stopped": {nil, stoppedQueue, dependencies{flavors: 1}, "Active=False ClusterQueueIsInactive: ClusterQueue cq is stopped"},
		"one whose ClusterQueue is being deleted": {nil, deletedQueue, dependencies{flavors: 1}, "Active=False ClusterQueueIsInactive: ClusterQueue cq is being deleted"},
		"one whose ClusterQueue lacks a check": {nil, checked, dependencies{flavors: 1},
			"Active=False ClusterQueueIsInactive: ClusterQueue cq is inactive: Can't admit new workloads: references missing AdmissionCheck(s): [budget]"},
		"one whose ClusterQueue has a check that is not active": {nil, checked, dependencies{flavors: 1, checks: map[string]*kueue.AdmissionCheck{"budget": {}}},
			"Active=False ClusterQueueIsInactive: ClusterQueue cq is inactive: Can't admit new workloads: references inactive AdmissionCheck(s): [budget]"},
		"one whose ClusterQueue is under a cycle of cohorts": {nil, newClusterQueue("cq", "1"), dependencies{flavors: 1, cyclic: true},
			"Active=False ClusterQueueIsInactive: ClusterQueue cq is inactive: Can't admit new workloads: its cohorts form a cycle; change the parentName of one of them"},
		"one whose ClusterQueue has no flavor left": {nil, newClusterQueue("cq", "1"), dependencies{missing: []string{"f"}},
			"Active=False ClusterQueueIsInactive: ClusterQueue cq is inactive: Can't admit new workloads: references missing ResourceFlavor(s): [f]"},
		"one whose ClusterQueue has one left": {nil, newClusterQueue("cq", "1"), dependencies{flavors: 1, missing: []string{"g"}},
			"Active=True Ready: Can submit new workloads to localQueue"},
	} {
		t.Run(name, func(t *testing.T) {
			q := newLocalQueue("q", "cq")
			q.Spec.StopPolicy = tc.policy
			localQueueStatus(q, tc.behind, tc.around, some, now)
			if diff := cmp.Diff([]string{tc.want}, conditions(q.Status.Conditions)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestATerminatingLocalQueueIsNotActive(t *testing.T) {
	q := newLocalQueue("q", "cq")
	q.DeletionTimestamp = ptr.To(metav1.NewTime(now))
	localQueueStatus(q, newClusterQueue("cq", "1"), dependencies{flavors: 1}, some, now)
	if diff := cmp.Diff([]string{"Active=False Terminating: LocalQueue is being deleted"}, conditions(q.Status.Conditions)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLocalQueueUsageIsSortedByName(t *testing.T) {
	amounts := map[quota.FlavorResource]int64{
		{Flavor: "g", Resource: "memory"}: 1 << 30, {Flavor: "g", Resource: "cpu"}: 500, {Flavor: "f", Resource: "cpu"}: 1000}
	u := engine.Usage{Pending: 1, Reserved: amounts, Used: amounts}
	usage := []kueue.LocalQueueFlavorUsage{
		{Name: "f", Resources: []kueue.LocalQueueResourceUsage{{Name: "cpu", Total: resource.MustParse("1")}}},
		{Name: "g", Resources: []kueue.LocalQueueResourceUsage{{Name: "cpu", Total: resource.MustParse("500m")}, {Name: "memory", Total: resource.MustParse("1Gi")}}},
	}
	want := kueue.LocalQueueStatus{PendingWorkloads: 1, FlavorsReservation: usage, FlavorUsage: usage}
	for range 20 {
		q := newLocalQueue("q", "cq")
		localQueueStatus(q, nil, dependencies{}, u, now)
		q.Status.Conditions = nil
		if diff := cmp.Diff(want, q.Status); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	}
}

func TestQueueStatusIsWrittenOnlyWhereItChanged(t *testing.T) {
	w := newWorld(t, newClusterQueue("cq", "2"), newLocalQueue("q", "cq"), newFlavor("f"))
	clock := clocktesting.NewFakeClock(now)
	s := newQueueStatusWriter(w, clock, newWriteBudget(clock), queueStatusInterval)
	local := engine.Key{Namespace: "ns", Name: "q"}
	hear(s, newClusterQueue("cq", "2"), newLocalQueue("q", "cq"))
	for range 3 {
		s.noteClusterQueue("cq", some)
		s.noteLocalQueue(local, some)
		s.noteClusterQueue("gone", some)
		for _, key := range []statusOf{{ofClusterQueue, engine.Key{Name: "cq"}}, {ofLocalQueue, local}, {ofClusterQueue, engine.Key{Name: "gone"}}} {
			s.write(t.Context(), key)
		}
		clock.Step(queueStatusInterval)
	}
	if diff := cmp.Diff([]string{"status ClusterQueue cq", "status LocalQueue q"}, w.written()); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	var q kueue.ClusterQueue
	if err := w.Get(t.Context(), client.ObjectKey{Name: "cq"}, &q); err != nil || q.Status.PendingWorkloads != 2 {
		t.Errorf("status %+v, %v", q.Status, err)
	}
}

// hear makes the queues known to the engine.
func hear(s *queueStatusWriter, queues ...client.Object) {
	for _, q := range queues {
		s.observe(message{changed: q})
	}
}

// TestTheStatusIsForTheVersionThatTheEngineHas: the cache is ahead of the engine, and clients rely on an
// observedGeneration.
func TestTheStatusIsForTheVersionThatTheEngineHas(t *testing.T) {
	for name, queue := range map[string]client.Object{"a ClusterQueue": newClusterQueue("cq", "2"), "a LocalQueue": newLocalQueue("q", "cq")} {
		t.Run(name, func(t *testing.T) {
			queue.SetUID("one")
			queue.SetGeneration(2) // as in the cache
			w := newWorld(t, queue)
			s := newQueueStatusWriter(w, clocktesting.NewFakeClock(now), newWriteBudget(clocktesting.NewFakePassiveClock(now)), queueStatusInterval)
			key := statusOf{ofLocalQueue, keyOf(queue)}
			if queue.GetNamespace() == "" {
				key.kind = ofClusterQueue
			}
			hear := func(uid types.UID, generation int64) {
				heard := queue.DeepCopyObject().(client.Object)
				heard.SetUID(uid)
				heard.SetGeneration(generation)
				s.observe(message{changed: heard})
				s.note(key, engine.Usage{})
				s.write(t.Context(), key)
			}
			hear("one", 1)
			hear("another", 2)
			s.observe(message{deleted: queue})
			s.note(key, engine.Usage{})
			s.write(t.Context(), key)
			if told := w.written(); len(told) != 0 {
				t.Errorf("of what the engine does not have was written %v", told)
			}
			hear("one", 2)
			if told := w.written(); len(told) != 1 {
				t.Errorf("of what the engine has was written %v", told)
			}
		})
	}
}

// TestASpecChangeIsAcknowledgedAtOnce, even if the status was just written or is being written.
func TestASpecChangeIsAcknowledgedAtOnce(t *testing.T) {
	queue := newClusterQueue("cq", "2")
	w := newWorld(t, queue, newFlavor("f"))
	clock := clocktesting.NewFakeClock(now)
	s := newQueueStatusWriter(w, clock, newWriteBudget(clock), queueStatusInterval)
	key := statusOf{ofClusterQueue, keyOf(queue)}
	change := func() {
		if err := w.Get(t.Context(), client.ObjectKeyFromObject(queue), queue); err != nil {
			t.Fatal(err)
		}
		queue.Generation++
		if err := w.Update(t.Context(), queue); err != nil {
			t.Fatal(err)
		}
		s.observe(message{changed: queue.DeepCopy()})
		s.noteClusterQueue("cq", engine.Usage{})
	}
	observed := func() int64 {
		if err := w.Get(t.Context(), client.ObjectKeyFromObject(queue), queue); err != nil {
			t.Fatal(err)
		}
		return queue.Status.Conditions[0].ObservedGeneration
	}
	change()
	s.write(t.Context(), key)
	change()
	w.before = func(write string) error {
		if strings.HasPrefix(write, "status") {
			hear(s, &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: "cq", Generation: 4}})
		}
		return nil
	}
	s.write(t.Context(), key)
	if got := observed(); got != 3 {
		t.Errorf("it has observed generation %d, want 3", got)
	}
	change()
	s.write(t.Context(), key)
	if got := observed(); got != 4 {
		t.Errorf("it has observed generation %d, want 4", got)
	}
}

func TestMissingFlavorsAreReported(t *testing.T) {
	w := newWorld(t, newClusterQueue("cq", "2"))
	s := newQueueStatusWriter(w, clocktesting.NewFakeClock(now), newWriteBudget(clocktesting.NewFakePassiveClock(now)), queueStatusInterval)
	hear(s, newClusterQueue("cq", "2"))
	s.noteClusterQueue("cq", engine.Usage{})
	s.write(t.Context(), statusOf{Key: engine.Key{Name: "cq"}})
	var q kueue.ClusterQueue
	if err := w.Get(t.Context(), client.ObjectKey{Name: "cq"}, &q); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"Active=False FlavorNotFound: Can't admit new workloads: references missing ResourceFlavor(s): [f]"}, conditions(q.Status.Conditions)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestMissingDependenciesAreReportedOnBothQueues by the writer, from the existing objects.
func TestMissingDependenciesAreReportedOnBothQueues(t *testing.T) {
	const open = "Active=True Ready: Can submit new workloads to localQueue"
	inactive := func(why string) string {
		return "Active=False ClusterQueueIsInactive: ClusterQueue cq is inactive: " + why
	}
	const cycle = "Can't admit new workloads: its cohorts form a cycle; change the parentName of one of them"
	const noTopology = "Can't admit new workloads: references ResourceFlavor(s) of a missing Topology: [f (t)]"
	for name, tc := range map[string]struct {
		flavors        []string
		objects        []client.Object
		cyclic         bool
		cluster, local string
	}{
		"one flavor of two is missing": {[]string{"f", "g"}, []client.Object{newFlavor("f")}, false,
			"Active=True FlavorNotFound: Admits new workloads through its other flavors only: references missing ResourceFlavor(s): [g]", open},
		"the Topology of the flavor is missing": {[]string{"f"}, []client.Object{placedFlavor("f", "t")}, false,
			"Active=False TopologyNotFound: " + noTopology, inactive(noTopology)},
		"the Topology is there": {[]string{"f"}, []client.Object{placedFlavor("f", "t"), topology("t", "rack")}, false,
			"Active=True Ready: Can admit new workloads", open},
		"one flavor is missing, and the Topology of the other": {[]string{"f", "g", "h"}, []client.Object{placedFlavor("f", "t"), newFlavor("h")}, false,
			"Active=True FlavorNotFound: Admits new workloads through its other flavors only: references missing ResourceFlavor(s): [g]; " +
				"references ResourceFlavor(s) of a missing Topology: [f (t)]", open},
		"its cohorts form a cycle": {[]string{"f"}, []client.Object{newFlavor("f")}, true,
			"Active=False Unknown: " + cycle, inactive(cycle)},
	} {
		t.Run(name, func(t *testing.T) {
			q := newClusterQueue("cq", "2")
			for _, more := range tc.flavors[1:] {
				flavor := *q.Spec.ResourceGroups[0].Flavors[0].DeepCopy()
				flavor.Name = kueue.ResourceFlavorReference(more)
				q.Spec.ResourceGroups[0].Flavors = append(q.Spec.ResourceGroups[0].Flavors, flavor)
			}
			w := newWorld(t, append(tc.objects, q, newLocalQueue("q", "cq"))...)
			s := newQueueStatusWriter(w, clocktesting.NewFakeClock(now), newWriteBudget(clocktesting.NewFakePassiveClock(now)), queueStatusInterval)
			local := engine.Key{Namespace: "ns", Name: "q"}
			hear(s, q, newLocalQueue("q", "cq"))
			s.noteClusterQueue("cq", engine.Usage{Cyclic: tc.cyclic})
			s.noteLocalQueue(local, engine.Usage{})
			s.write(t.Context(), statusOf{ofClusterQueue, engine.Key{Name: "cq"}})
			s.write(t.Context(), statusOf{ofLocalQueue, local})
			var cluster kueue.ClusterQueue
			var door kueue.LocalQueue
			if err := w.Get(t.Context(), client.ObjectKey{Name: "cq"}, &cluster); err != nil {
				t.Fatal(err)
			}
			if err := w.Get(t.Context(), objectKey(local), &door); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{tc.cluster, tc.local}, append(conditions(cluster.Status.Conditions), conditions(door.Status.Conditions)...)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
