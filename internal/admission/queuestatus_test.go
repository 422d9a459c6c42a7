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

// queueStatusInterval is the default of the configuration.
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
		"an active queue":    {nil, nil, false, "Active=True Ready: Can admit new workloads"},
		"stop policy None":   {ptr.To(kueue.None), nil, false, "Active=True Ready: Can admit new workloads"},
		"a stopped queue":    {ptr.To(kueue.Hold), []string{"f"}, false, "Active=False Stopped: Is stopped"},
		"missing flavors":    {nil, []string{"f", "g"}, false, "Active=False FlavorNotFound: Can't admit new workloads: references missing ResourceFlavor(s): [f g]"},
		"a cycle of cohorts": {nil, nil, true, "Active=False CohortCycleDetected: Can't admit new workloads: its cohorts form a cycle; change the parentName of one of them"},
	} {
		t.Run(name, func(t *testing.T) {
			q := newClusterQueue("cq", "2")
			q.Spec.StopPolicy = tc.policy
			clusterQueueStatus(q, some, dependencies{missing: tc.missing, cyclic: tc.cyclic}, now)
			if diff := cmp.Diff([]string{tc.want}, conditions(q.Status.Conditions)); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAClusterQueueSaysWhichFieldsHaveNoEffect: both kinds of fair sharing are off until they are configured.
func TestAClusterQueueSaysWhichFieldsHaveNoEffect(t *testing.T) {
	const byUsage = "; admissionScope has no effect: the operator's configuration has no section admissionFairSharing"
	const byShare = "; fairSharing has no effect: the operator's configuration has no section fairSharing"
	for name, tc := range map[string]struct {
		mode     kueue.AdmissionMode
		weight   string
		unshared unshared
		want     string
	}{
		"both without their sections":   {kueue.UsageBasedAdmissionFairSharing, "2", unshared{byShare: true, byUsage: true}, byUsage + byShare},
		"both with their sections":      {kueue.UsageBasedAdmissionFairSharing, "2", unshared{}, ""},
		"the weight without its own":    {kueue.UsageBasedAdmissionFairSharing, "2", unshared{byShare: true}, byShare},
		"not ordered by usage":          {kueue.NoAdmissionFairSharing, "", unshared{byShare: true, byUsage: true}, ""},
		"neither, without the sections": {"", "", unshared{byShare: true, byUsage: true}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newFlavor("f"))
			s := newQueueStatusWriter(w, clocktesting.NewFakeClock(now), newWriteBudget(clocktesting.NewFakePassiveClock(now)), queueStatusInterval)
			s.unshared = tc.unshared
			q := newClusterQueue("cq", "2")
			if tc.mode != "" {
				q.Spec.AdmissionScope = &kueue.AdmissionScope{AdmissionMode: tc.mode}
			}
			if tc.weight != "" {
				q.Spec.FairSharing = &kueue.FairSharing{Weight: ptr.To(resource.MustParse(tc.weight))}
			}
			around, err := s.dependencies(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			clusterQueueStatus(q, some, around, now)
			if diff := cmp.Diff([]string{"Active=True Ready: Can admit new workloads" + tc.want}, conditions(q.Status.Conditions)); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAClusterQueueWithAnInvalidSelectorIsNotActive: the queue selects no namespace, and its Workloads report the
// reason too.
func TestAClusterQueueWithAnInvalidSelectorIsNotActive(t *testing.T) {
	const why = `Can't admit new workloads: its namespaceSelector is invalid and must be changed: `
	q := newClusterQueue("cq", "2")
	q.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a b"}}
	clusterQueueStatus(q, some, dependencies{flavors: 1}, now)
	if got := conditions(q.Status.Conditions); len(got) != 1 || !strings.HasPrefix(got[0], "Active=False Unknown: "+why) || !strings.Contains(got[0], "a b") {
		t.Errorf("conditions = %q, want Active=False with the reason", got)
	}
	if got := (&translator{}).clusterQueue(q).Inactive; !strings.HasPrefix(got, why) {
		t.Errorf("Inactive = %q, want the reason", got)
	}
	q.Spec.NamespaceSelector.MatchLabels["zone"], q.Spec.NamespaceSelector.MatchLabels["app"] = "c d", "fine"
	for range 100 { // map order is random
		if _, got := cannotAdmit(q, nil); !strings.HasPrefix(got, why) || !strings.Contains(got, "a b") {
			t.Fatalf("reason = %q, want always the same of two invalid labels", got)
		}
	}
	q.Spec.NamespaceSelector = nil // selects no namespace, intentionally
	clusterQueueStatus(q, some, dependencies{flavors: 1}, now)
	if diff := cmp.Diff([]string{"Active=True Ready: Can admit new workloads"}, conditions(q.Status.Conditions)); diff != "" {
		t.Errorf("conditions without a selector (-want +got):\n%s", diff)
	}
}

func TestAClusterQueueWithMissingChecksIsNotActive(t *testing.T) {
	q := newClusterQueue("cq", "2")
	q.Spec.AdmissionChecks = []kueue.AdmissionCheckReference{"budget"}
	clusterQueueStatus(q, some, dependencies{flavors: 1}, now)
	want := "Active=False AdmissionCheckNotFound: Can't admit new workloads: references missing AdmissionCheck(s): [budget]"
	if diff := cmp.Diff([]string{want}, conditions(q.Status.Conditions)); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
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
		t.Errorf("status (-want +got):\n%s", diff)
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
		"an active queue":            {nil, newClusterQueue("cq", "1"), dependencies{flavors: 1}, "Active=True Ready: Can submit new workloads to localQueue"},
		"a stopped LocalQueue":       {ptr.To(kueue.Hold), nil, dependencies{flavors: 1}, "Active=False Stopped: LocalQueue is stopped"},
		"a missing ClusterQueue":     {nil, nil, dependencies{flavors: 1}, "Active=False ClusterQueueDoesNotExist: ClusterQueue cq doesn't exist: create it, or use a LocalQueue that names another"},
		"a stopped ClusterQueue":     {nil, stoppedQueue, dependencies{flavors: 1}, "Active=False ClusterQueueIsInactive: ClusterQueue cq is stopped"},
		"a terminating ClusterQueue": {nil, deletedQueue, dependencies{flavors: 1}, "Active=False ClusterQueueIsInactive: ClusterQueue cq is being deleted"},
		"a missing check": {nil, checked, dependencies{flavors: 1},
			"Active=False ClusterQueueIsInactive: ClusterQueue cq is inactive: Can't admit new workloads: references missing AdmissionCheck(s): [budget]"},
		"an inactive check": {nil, checked, dependencies{flavors: 1, checks: map[string]*kueue.AdmissionCheck{"budget": {}}},
			"Active=False ClusterQueueIsInactive: ClusterQueue cq is inactive: Can't admit new workloads: references inactive AdmissionCheck(s): [budget]"},
		"a cycle of cohorts": {nil, newClusterQueue("cq", "1"), dependencies{flavors: 1, cyclic: true},
			"Active=False ClusterQueueIsInactive: ClusterQueue cq is inactive: Can't admit new workloads: its cohorts form a cycle; change the parentName of one of them"},
		"all flavors missing": {nil, newClusterQueue("cq", "1"), dependencies{missing: []string{"f"}},
			"Active=False ClusterQueueIsInactive: ClusterQueue cq is inactive: Can't admit new workloads: references missing ResourceFlavor(s): [f]"},
		"one of two flavors missing": {nil, newClusterQueue("cq", "1"), dependencies{flavors: 1, missing: []string{"g"}},
			"Active=True Ready: Can submit new workloads to localQueue"},
	} {
		t.Run(name, func(t *testing.T) {
			q := newLocalQueue("q", "cq")
			q.Spec.StopPolicy = tc.policy
			localQueueStatus(q, tc.behind, tc.around, some, now)
			if diff := cmp.Diff([]string{tc.want}, conditions(q.Status.Conditions)); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
		})
	}
}

// TestALocalQueueSaysThatItsWeightHasNoEffect: it counts in a ClusterQueue that is ordered by usage, if that is configured.
func TestALocalQueueSaysThatItsWeightHasNoEffect(t *testing.T) {
	const without = "; fairSharing has no effect: "
	for name, tc := range map[string]struct {
		weight   string
		mode     kueue.AdmissionMode
		unshared unshared
		want     string
	}{
		"not configured":             {"2", kueue.UsageBasedAdmissionFairSharing, unshared{byUsage: true}, without + "the operator's configuration has no section admissionFairSharing"},
		"a ClusterQueue by priority": {"2", kueue.NoAdmissionFairSharing, unshared{}, without + "the ClusterQueue cq has no admissionScope by usage"},
		"a ClusterQueue by usage":    {"2", kueue.UsageBasedAdmissionFairSharing, unshared{byShare: true}, ""},
		"no weight":                  {"", kueue.NoAdmissionFairSharing, unshared{byUsage: true}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			q, behind := newLocalQueue("q", "cq"), newClusterQueue("cq", "1")
			behind.Spec.AdmissionScope = &kueue.AdmissionScope{AdmissionMode: tc.mode}
			if tc.weight != "" {
				q.Spec.FairSharing = &kueue.FairSharing{Weight: ptr.To(resource.MustParse(tc.weight))}
			}
			localQueueStatus(q, behind, dependencies{flavors: 1, unshared: tc.unshared}, some, now)
			if diff := cmp.Diff([]string{"Active=True Ready: Can submit new workloads to localQueue" + tc.want}, conditions(q.Status.Conditions)); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestATerminatingLocalQueueIsNotActive(t *testing.T) {
	q := newLocalQueue("q", "cq")
	q.DeletionTimestamp = ptr.To(metav1.NewTime(now))
	localQueueStatus(q, newClusterQueue("cq", "1"), dependencies{flavors: 1}, some, now)
	if diff := cmp.Diff([]string{"Active=False Terminating: LocalQueue is being deleted"}, conditions(q.Status.Conditions)); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
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
			t.Fatalf("status (-want +got):\n%s", diff)
		}
	}
}

func TestQueueStatusIsWrittenOnlyWhereItChanged(t *testing.T) {
	w := newWorld(t, newClusterQueue("cq", "2"), newLocalQueue("q", "cq"), newFlavor("f"))
	clock := clocktesting.NewFakeClock(now)
	s := newQueueStatusWriter(w, clock, newWriteBudget(clock), queueStatusInterval)
	local := engine.Key{Namespace: "ns", Name: "q"}
	observeQueues(s, newClusterQueue("cq", "2"), newLocalQueue("q", "cq"))
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
		t.Errorf("status = %+v, %v, want 2 pending", q.Status, err)
	}
}

// observeQueues makes the queues known to the engine.
func observeQueues(s *queueStatusWriter, queues ...client.Object) {
	for _, q := range queues {
		s.observe(message{changed: q})
	}
}

// TestTheStatusIsForTheVersionThatTheEngineHas: the cache is ahead of the engine, and clients rely on
// observedGeneration.
func TestTheStatusIsForTheVersionThatTheEngineHas(t *testing.T) {
	for name, queue := range map[string]client.Object{"a ClusterQueue": newClusterQueue("cq", "2"), "a LocalQueue": newLocalQueue("q", "cq")} {
		t.Run(name, func(t *testing.T) {
			queue.SetUID("one")
			queue.SetGeneration(2) // the cache has this generation
			w := newWorld(t, queue)
			s := newQueueStatusWriter(w, clocktesting.NewFakeClock(now), newWriteBudget(clocktesting.NewFakePassiveClock(now)), queueStatusInterval)
			key := statusOf{ofLocalQueue, keyOf(queue)}
			if queue.GetNamespace() == "" {
				key.kind = ofClusterQueue
			}
			observe := func(uid types.UID, generation int64) {
				observed := queue.DeepCopyObject().(client.Object)
				observed.SetUID(uid)
				observed.SetGeneration(generation)
				s.observe(message{changed: observed})
				s.note(key, engine.Usage{})
				s.write(t.Context(), key)
			}
			observe("one", 1)
			observe("another", 2)
			s.observe(message{deleted: queue})
			s.note(key, engine.Usage{})
			s.write(t.Context(), key)
			if reported := w.written(); len(reported) != 0 {
				t.Errorf("writes = %v, want none for a version that the engine does not have", reported)
			}
			observe("one", 2)
			if reported := w.written(); len(reported) != 1 {
				t.Errorf("writes = %v, want one for the version that the engine has", reported)
			}
		})
	}
}

// TestASpecChangeIsAcknowledgedAtOnce: observedGeneration is written at once even if the status was just written or is
// being written.
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
			observeQueues(s, &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: "cq", Generation: 4}})
		}
		return nil
	}
	s.write(t.Context(), key)
	if got := observed(); got != 3 {
		t.Errorf("observedGeneration = %d, want 3", got)
	}
	change()
	s.write(t.Context(), key)
	if got := observed(); got != 4 {
		t.Errorf("observedGeneration = %d, want 4", got)
	}
}

func TestMissingFlavorsAreReported(t *testing.T) {
	w := newWorld(t, newClusterQueue("cq", "2"))
	s := newQueueStatusWriter(w, clocktesting.NewFakeClock(now), newWriteBudget(clocktesting.NewFakePassiveClock(now)), queueStatusInterval)
	observeQueues(s, newClusterQueue("cq", "2"))
	s.noteClusterQueue("cq", engine.Usage{})
	s.write(t.Context(), statusOf{Key: engine.Key{Name: "cq"}})
	var q kueue.ClusterQueue
	if err := w.Get(t.Context(), client.ObjectKey{Name: "cq"}, &q); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"Active=False FlavorNotFound: Can't admit new workloads: references missing ResourceFlavor(s): [f]"}, conditions(q.Status.Conditions)); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
}

// TestMissingDependenciesAreReportedOnBothQueues: the writer reports them on the ClusterQueue and its LocalQueue.
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
		"one of two flavors": {[]string{"f", "g"}, []client.Object{newFlavor("f")}, false,
			"Active=True FlavorNotFound: Admits new workloads through its other flavors only: references missing ResourceFlavor(s): [g]", open},
		"the Topology of the flavor": {[]string{"f"}, []client.Object{placedFlavor("f", "t")}, false,
			"Active=False TopologyNotFound: " + noTopology, inactive(noTopology)},
		"nothing": {[]string{"f"}, []client.Object{placedFlavor("f", "t"), topology("t", "rack")}, false,
			"Active=True Ready: Can admit new workloads", open},
		"one flavor, and the Topology of another": {[]string{"f", "g", "h"}, []client.Object{placedFlavor("f", "t"), newFlavor("h")}, false,
			"Active=True FlavorNotFound: Admits new workloads through its other flavors only: references missing ResourceFlavor(s): [g]; " +
				"references ResourceFlavor(s) of a missing Topology: [f (t)]", open},
		"a cycle of cohorts": {[]string{"f"}, []client.Object{newFlavor("f")}, true,
			"Active=False CohortCycleDetected: " + cycle, inactive(cycle)},
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
			observeQueues(s, q, newLocalQueue("q", "cq"))
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
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
		})
	}
}
