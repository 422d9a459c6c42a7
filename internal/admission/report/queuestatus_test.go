package report

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/admission/admissiontest"
	"github.com/musterhq/muster/internal/admission/decisions"
	"github.com/musterhq/muster/internal/admission/translate"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/quota"
)

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
		"an active queue":  {nil, nil, false, "Active=True Ready: Can admit new workloads"},
		"stop policy None": {ptr.To(kueue.None), nil, false, "Active=True Ready: Can admit new workloads"},
		"a stopped queue":  {ptr.To(kueue.Hold), []string{"f"}, false, "Active=False Stopped: Is stopped"},
		"missing flavors": {nil, []string{"f", "g"}, false,
			"Active=False FlavorNotFound: Can't admit new workloads: references missing ResourceFlavor(s): [f g]"},
		"a cycle of cohorts": {nil, nil, true,
			"Active=False CohortCycleDetected: Can't admit new workloads: its cohorts form a cycle; change the parentName of one of them"},
	} {
		t.Run(name, func(t *testing.T) {
			q := admissiontest.NewClusterQueue("cq", "2")
			q.Spec.StopPolicy = tc.policy
			clusterQueueStatus(q, some, dependencies{missing: tc.missing, cyclic: tc.cyclic}, admissiontest.Now)
			if diff := cmp.Diff([]string{tc.want}, admissiontest.Conditions(q.Status.Conditions)); diff != "" {
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
		unshared Unshared
		want     string
	}{
		"both without their sections": {kueue.UsageBasedAdmissionFairSharing, "2", Unshared{ByShare: true, ByUsage: true},
			byUsage + byShare},
		"both with their sections":      {kueue.UsageBasedAdmissionFairSharing, "2", Unshared{}, ""},
		"the weight without its own":    {kueue.UsageBasedAdmissionFairSharing, "2", Unshared{ByShare: true}, byShare},
		"not ordered by usage":          {kueue.NoAdmissionFairSharing, "", Unshared{ByShare: true, ByUsage: true}, ""},
		"neither, without the sections": {"", "", Unshared{ByShare: true, ByUsage: true}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := admissiontest.NewWorld(t, admissiontest.NewFlavor("f"))
			s := NewQueueStatusWriter(w, clocktesting.NewFakeClock(admissiontest.Now),
				decisions.NewWriteBudget(clocktesting.NewFakePassiveClock(admissiontest.Now)), admissiontest.QueueStatusInterval)
			s.Unshared = tc.unshared
			q := admissiontest.NewClusterQueue("cq", "2")
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
			clusterQueueStatus(q, some, around, admissiontest.Now)
			if diff := cmp.Diff([]string{"Active=True Ready: Can admit new workloads" + tc.want},
				admissiontest.Conditions(q.Status.Conditions)); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAClusterQueueWithAnInvalidSelectorIsNotActive: the queue selects no namespace, and its Workloads report the
// reason too.
func TestAClusterQueueWithAnInvalidSelectorIsNotActive(t *testing.T) {
	const why = `Can't admit new workloads: its namespaceSelector is invalid and must be changed: `
	q := admissiontest.NewClusterQueue("cq", "2")
	q.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a b"}}
	clusterQueueStatus(q, some, dependencies{flavors: 1}, admissiontest.Now)
	if got := admissiontest.Conditions(q.Status.Conditions); len(got) != 1 ||
		!strings.HasPrefix(got[0], "Active=False Unknown: "+why) || !strings.Contains(got[0], "a b") {
		t.Errorf("conditions = %q, want Active=False with the reason", got)
	}
	if got := (&translate.Translator{}).ClusterQueue(q).Inactive; !strings.HasPrefix(got, why) {
		t.Errorf("Inactive = %q, want the reason", got)
	}
	q.Spec.NamespaceSelector.MatchLabels["zone"], q.Spec.NamespaceSelector.MatchLabels["app"] = "c d", "fine"
	for range 100 { // map order is random
		if _, got := translate.CannotAdmit(q, nil); !strings.HasPrefix(got, why) || !strings.Contains(got, "a b") {
			t.Fatalf("reason = %q, want always the same of two invalid labels", got)
		}
	}
	q.Spec.NamespaceSelector = nil // selects no namespace, intentionally
	clusterQueueStatus(q, some, dependencies{flavors: 1}, admissiontest.Now)
	if diff := cmp.Diff([]string{"Active=True Ready: Can admit new workloads"},
		admissiontest.Conditions(q.Status.Conditions)); diff != "" {
		t.Errorf("conditions without a selector (-want +got):\n%s", diff)
	}
}

func TestAClusterQueueWithMissingChecksIsNotActive(t *testing.T) {
	q := admissiontest.NewClusterQueue("cq", "2")
	q.Spec.AdmissionChecks = []kueue.AdmissionCheckReference{"budget"}
	clusterQueueStatus(q, some, dependencies{flavors: 1}, admissiontest.Now)
	want := "Active=False AdmissionCheckNotFound: Can't admit new workloads: references missing AdmissionCheck(s): [budget]"
	if diff := cmp.Diff([]string{want}, admissiontest.Conditions(q.Status.Conditions)); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
}

func TestClusterQueueUsage(t *testing.T) {
	q := admissiontest.NewClusterQueue("cq", "2")
	q.Spec.Cohort = "lab"
	q.Spec.ResourceGroups = append(q.Spec.ResourceGroups,
		kueue.ResourceGroup{Flavors: []kueue.FlavorQuotas{{Name: "g", Resources: []kueue.ResourceQuota{{Name: "memory"}}}}})
	clusterQueueStatus(q, some, dependencies{flavors: 1}, admissiontest.Now)
	q.Status.Conditions = nil
	usage := []kueue.FlavorUsage{
		{Name: "f", Resources: []kueue.ResourceUsage{{Name: "cpu", Total: resource.MustParse("3"),
			Borrowed: resource.MustParse("1")}}},
		{Name: "g", Resources: []kueue.ResourceUsage{{Name: "memory", Total: resource.MustParse("0"),
			Borrowed: resource.MustParse("0")}}},
	}
	want := kueue.ClusterQueueStatus{PendingWorkloads: 2, ReservingWorkloads: 1, AdmittedWorkloads: 1,
		FlavorsReservation: usage, FlavorsUsage: usage}
	if diff := cmp.Diff(want, q.Status); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
}

func TestLocalQueueStatus(t *testing.T) {
	stoppedQueue := admissiontest.NewClusterQueue("cq", "1")
	stoppedQueue.Spec.StopPolicy = ptr.To(kueue.HoldAndDrain)
	deletedQueue := admissiontest.NewClusterQueue("cq", "1")
	deletedQueue.DeletionTimestamp = ptr.To(metav1.NewTime(admissiontest.Now))
	checked := admissiontest.NewClusterQueue("cq", "1")
	checked.Spec.AdmissionChecks = []kueue.AdmissionCheckReference{"budget"}
	for name, tc := range map[string]struct {
		policy *kueue.StopPolicy
		behind *kueue.ClusterQueue
		around dependencies
		want   string
	}{
		"an active queue": {nil, admissiontest.NewClusterQueue("cq", "1"), dependencies{flavors: 1},
			"Active=True Ready: Can submit new workloads to localQueue"},
		"a stopped LocalQueue": {ptr.To(kueue.Hold), nil, dependencies{flavors: 1},
			"Active=False Stopped: LocalQueue is stopped"},
		"a missing ClusterQueue": {nil, nil, dependencies{flavors: 1},
			"Active=False ClusterQueueDoesNotExist: ClusterQueue cq doesn't exist: create it, or use a LocalQueue that names another"},
		"a stopped ClusterQueue": {nil, stoppedQueue, dependencies{flavors: 1},
			"Active=False ClusterQueueIsInactive: ClusterQueue cq is stopped"},
		"a terminating ClusterQueue": {nil, deletedQueue, dependencies{flavors: 1},
			"Active=False ClusterQueueIsInactive: ClusterQueue cq is being deleted"},
		"a missing check": {nil, checked, dependencies{flavors: 1},
			"Active=False ClusterQueueIsInactive: ClusterQueue cq is inactive: Can't admit new workloads: references missing AdmissionCheck(s): [budget]"},
		"an inactive check": {nil, checked, dependencies{flavors: 1, checks: map[string]*kueue.AdmissionCheck{"budget": {}}},
			"Active=False ClusterQueueIsInactive: ClusterQueue cq is inactive: Can't admit new workloads: references inactive AdmissionCheck(s): [budget]"},
		"a cycle of cohorts": {nil, admissiontest.NewClusterQueue("cq", "1"), dependencies{flavors: 1, cyclic: true},
			"Active=False ClusterQueueIsInactive: ClusterQueue cq is inactive: Can't admit new workloads: its cohorts form a cycle; change the parentName of one of them"},
		"all flavors missing": {nil, admissiontest.NewClusterQueue("cq", "1"), dependencies{missing: []string{"f"}},
			"Active=False ClusterQueueIsInactive: ClusterQueue cq is inactive: Can't admit new workloads: references missing ResourceFlavor(s): [f]"},
		"one of two flavors missing": {nil, admissiontest.NewClusterQueue("cq", "1"),
			dependencies{flavors: 1, missing: []string{"g"}}, "Active=True Ready: Can submit new workloads to localQueue"},
	} {
		t.Run(name, func(t *testing.T) {
			q := admissiontest.NewLocalQueue("q", "cq")
			q.Spec.StopPolicy = tc.policy
			localQueueStatus(q, tc.behind, tc.around, some, admissiontest.Now)
			if diff := cmp.Diff([]string{tc.want}, admissiontest.Conditions(q.Status.Conditions)); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
		})
	}
}

// TestALocalQueueSaysThatItsWeightHasNoEffect: it counts in a ClusterQueue that is ordered by usage, if that is
// configured.
func TestALocalQueueSaysThatItsWeightHasNoEffect(t *testing.T) {
	const without = "; fairSharing has no effect: "
	for name, tc := range map[string]struct {
		weight   string
		mode     kueue.AdmissionMode
		unshared Unshared
		want     string
	}{
		"not configured": {"2", kueue.UsageBasedAdmissionFairSharing, Unshared{ByUsage: true},
			without + "the operator's configuration has no section admissionFairSharing"},
		"a ClusterQueue by priority": {"2", kueue.NoAdmissionFairSharing, Unshared{},
			without + "the ClusterQueue cq has no admissionScope by usage"},
		"a ClusterQueue by usage": {"2", kueue.UsageBasedAdmissionFairSharing, Unshared{ByShare: true}, ""},
		"no weight":               {"", kueue.NoAdmissionFairSharing, Unshared{ByUsage: true}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			q, behind := admissiontest.NewLocalQueue("q", "cq"), admissiontest.NewClusterQueue("cq", "1")
			behind.Spec.AdmissionScope = &kueue.AdmissionScope{AdmissionMode: tc.mode}
			if tc.weight != "" {
				q.Spec.FairSharing = &kueue.FairSharing{Weight: ptr.To(resource.MustParse(tc.weight))}
			}
			localQueueStatus(q, behind, dependencies{flavors: 1, Unshared: tc.unshared}, some, admissiontest.Now)
			if diff := cmp.Diff([]string{"Active=True Ready: Can submit new workloads to localQueue" + tc.want},
				admissiontest.Conditions(q.Status.Conditions)); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestATerminatingLocalQueueIsNotActive(t *testing.T) {
	q := admissiontest.NewLocalQueue("q", "cq")
	q.DeletionTimestamp = ptr.To(metav1.NewTime(admissiontest.Now))
	localQueueStatus(q, admissiontest.NewClusterQueue("cq", "1"), dependencies{flavors: 1}, some, admissiontest.Now)
	if diff := cmp.Diff([]string{"Active=False Terminating: LocalQueue is being deleted"},
		admissiontest.Conditions(q.Status.Conditions)); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
}

func TestLocalQueueUsageIsSortedByName(t *testing.T) {
	amounts := map[quota.FlavorResource]int64{
		{Flavor: "g", Resource: "memory"}: 1 << 30, {Flavor: "g", Resource: "cpu"}: 500, {Flavor: "f", Resource: "cpu"}: 1000}
	u := engine.Usage{Pending: 1, Reserved: amounts, Used: amounts}
	usage := []kueue.LocalQueueFlavorUsage{
		{Name: "f", Resources: []kueue.LocalQueueResourceUsage{{Name: "cpu", Total: resource.MustParse("1")}}},
		{Name: "g", Resources: []kueue.LocalQueueResourceUsage{{Name: "cpu", Total: resource.MustParse("500m")},
			{Name: "memory", Total: resource.MustParse("1Gi")}}},
	}
	want := kueue.LocalQueueStatus{PendingWorkloads: 1, FlavorsReservation: usage, FlavorUsage: usage}
	for range 20 {
		q := admissiontest.NewLocalQueue("q", "cq")
		localQueueStatus(q, nil, dependencies{}, u, admissiontest.Now)
		q.Status.Conditions = nil
		if diff := cmp.Diff(want, q.Status); diff != "" {
			t.Fatalf("status (-want +got):\n%s", diff)
		}
	}
}

func TestQueueStatusIsWrittenOnlyWhereItChanged(t *testing.T) {
	w := admissiontest.NewWorld(t, admissiontest.NewClusterQueue("cq", "2"), admissiontest.NewLocalQueue("q", "cq"),
		admissiontest.NewFlavor("f"))
	clock := clocktesting.NewFakeClock(admissiontest.Now)
	s := NewQueueStatusWriter(w, clock, decisions.NewWriteBudget(clock), admissiontest.QueueStatusInterval)
	local := engine.Key{Namespace: "ns", Name: "q"}
	observeQueues(s, admissiontest.NewClusterQueue("cq", "2"), admissiontest.NewLocalQueue("q", "cq"))
	for range 3 {
		s.Note(StatusOf{OfClusterQueue, engine.Key{Name: "cq"}}, some)
		s.Note(StatusOf{OfLocalQueue, local}, some)
		s.Note(StatusOf{OfClusterQueue, engine.Key{Name: "gone"}}, some)
		for _, key := range []StatusOf{{OfClusterQueue, engine.Key{Name: "cq"}}, {OfLocalQueue, local},
			{OfClusterQueue, engine.Key{Name: "gone"}}} {
			s.Write(t.Context(), key)
		}
		clock.Step(admissiontest.QueueStatusInterval)
	}
	if diff := cmp.Diff([]string{"status ClusterQueue cq", "status LocalQueue q"}, w.Written()); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	var q kueue.ClusterQueue
	if err := w.Get(t.Context(), client.ObjectKey{Name: "cq"}, &q); err != nil || q.Status.PendingWorkloads != 2 {
		t.Errorf("status = %+v, %v, want 2 pending", q.Status, err)
	}
}

// observeQueues makes the queues known to the engine.
func observeQueues(s *QueueStatusWriter, queues ...client.Object) {
	for _, q := range queues {
		s.Observe(q, nil)
	}
}

// TestTheStatusIsForTheVersionThatTheEngineHas: the cache is ahead of the engine, and clients rely on
// observedGeneration.
func TestTheStatusIsForTheVersionThatTheEngineHas(t *testing.T) {
	for name, queue := range map[string]client.Object{"a ClusterQueue": admissiontest.NewClusterQueue("cq", "2"),
		"a LocalQueue": admissiontest.NewLocalQueue("q", "cq")} {
		t.Run(name, func(t *testing.T) {
			queue.SetUID("one")
			queue.SetGeneration(2) // the cache has this generation
			w := admissiontest.NewWorld(t, queue)
			s := NewQueueStatusWriter(w, clocktesting.NewFakeClock(admissiontest.Now),
				decisions.NewWriteBudget(clocktesting.NewFakePassiveClock(admissiontest.Now)), admissiontest.QueueStatusInterval)
			key := StatusOf{OfLocalQueue, translate.KeyOf(queue)}
			if queue.GetNamespace() == "" {
				key.Kind = OfClusterQueue
			}
			observe := func(uid types.UID, generation int64) {
				observed := queue.DeepCopyObject().(client.Object)
				observed.SetUID(uid)
				observed.SetGeneration(generation)
				s.Observe(observed, nil)
				s.Note(key, engine.Usage{})
				s.Write(t.Context(), key)
			}
			observe("one", 1)
			observe("another", 2)
			s.Observe(nil, queue)
			s.Note(key, engine.Usage{})
			s.Write(t.Context(), key)
			if reported := w.Written(); len(reported) != 0 {
				t.Errorf("writes = %v, want none for a version that the engine does not have", reported)
			}
			observe("one", 2)
			if reported := w.Written(); len(reported) != 1 {
				t.Errorf("writes = %v, want one for the version that the engine has", reported)
			}
		})
	}
}

// TestASpecChangeIsAcknowledgedAtOnce: observedGeneration is written at once even if the status was just written or is
// being written.
func TestASpecChangeIsAcknowledgedAtOnce(t *testing.T) {
	queue := admissiontest.NewClusterQueue("cq", "2")
	w := admissiontest.NewWorld(t, queue, admissiontest.NewFlavor("f"))
	clock := clocktesting.NewFakeClock(admissiontest.Now)
	s := NewQueueStatusWriter(w, clock, decisions.NewWriteBudget(clock), admissiontest.QueueStatusInterval)
	key := StatusOf{OfClusterQueue, translate.KeyOf(queue)}
	change := func() {
		if err := w.Get(t.Context(), client.ObjectKeyFromObject(queue), queue); err != nil {
			t.Fatal(err)
		}
		queue.Generation++
		if err := w.Update(t.Context(), queue); err != nil {
			t.Fatal(err)
		}
		s.Observe(queue.DeepCopy(), nil)
		s.Note(StatusOf{OfClusterQueue, engine.Key{Name: "cq"}}, engine.Usage{})
	}
	observed := func() int64 {
		if err := w.Get(t.Context(), client.ObjectKeyFromObject(queue), queue); err != nil {
			t.Fatal(err)
		}
		return queue.Status.Conditions[0].ObservedGeneration
	}
	change()
	s.Write(t.Context(), key)
	change()
	w.Before = func(write string) error {
		if strings.HasPrefix(write, "status") {
			observeQueues(s, &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: "cq", Generation: 4}})
		}
		return nil
	}
	s.Write(t.Context(), key)
	if got := observed(); got != 3 {
		t.Errorf("observedGeneration = %d, want 3", got)
	}
	change()
	s.Write(t.Context(), key)
	if got := observed(); got != 4 {
		t.Errorf("observedGeneration = %d, want 4", got)
	}
}

func TestMissingFlavorsAreReported(t *testing.T) {
	w := admissiontest.NewWorld(t, admissiontest.NewClusterQueue("cq", "2"))
	s := NewQueueStatusWriter(w, clocktesting.NewFakeClock(admissiontest.Now),
		decisions.NewWriteBudget(clocktesting.NewFakePassiveClock(admissiontest.Now)), admissiontest.QueueStatusInterval)
	observeQueues(s, admissiontest.NewClusterQueue("cq", "2"))
	s.Note(StatusOf{OfClusterQueue, engine.Key{Name: "cq"}}, engine.Usage{})
	s.Write(t.Context(), StatusOf{Key: engine.Key{Name: "cq"}})
	var q kueue.ClusterQueue
	if err := w.Get(t.Context(), client.ObjectKey{Name: "cq"}, &q); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"Active=False FlavorNotFound: Can't admit new workloads: references missing ResourceFlavor(s): [f]"},
		admissiontest.Conditions(q.Status.Conditions)); diff != "" {
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
		"one of two flavors": {[]string{"f", "g"}, []client.Object{admissiontest.NewFlavor("f")}, false,
			"Active=True FlavorNotFound: Admits new workloads through its other flavors only: references missing ResourceFlavor(s): [g]", open},
		"the Topology of the flavor": {[]string{"f"}, []client.Object{admissiontest.PlacedFlavor("f", "t")}, false,
			"Active=False TopologyNotFound: " + noTopology, inactive(noTopology)},
		"nothing": {[]string{"f"},
			[]client.Object{admissiontest.PlacedFlavor("f", "t"), admissiontest.Topology("t", "rack")}, false,
			"Active=True Ready: Can admit new workloads", open},
		"one flavor, and the Topology of another": {[]string{"f", "g", "h"},
			[]client.Object{admissiontest.PlacedFlavor("f", "t"), admissiontest.NewFlavor("h")}, false,
			"Active=True FlavorNotFound: Admits new workloads through its other flavors only: references missing ResourceFlavor(s): [g]; " +
				"references ResourceFlavor(s) of a missing Topology: [f (t)]", open},
		"a cycle of cohorts": {[]string{"f"}, []client.Object{admissiontest.NewFlavor("f")}, true,
			"Active=False CohortCycleDetected: " + cycle, inactive(cycle)},
	} {
		t.Run(name, func(t *testing.T) {
			q := admissiontest.NewClusterQueue("cq", "2")
			for _, more := range tc.flavors[1:] {
				flavor := *q.Spec.ResourceGroups[0].Flavors[0].DeepCopy()
				flavor.Name = kueue.ResourceFlavorReference(more)
				q.Spec.ResourceGroups[0].Flavors = append(q.Spec.ResourceGroups[0].Flavors, flavor)
			}
			w := admissiontest.NewWorld(t, append(tc.objects, q, admissiontest.NewLocalQueue("q", "cq"))...)
			s := NewQueueStatusWriter(w, clocktesting.NewFakeClock(admissiontest.Now),
				decisions.NewWriteBudget(clocktesting.NewFakePassiveClock(admissiontest.Now)), admissiontest.QueueStatusInterval)
			local := engine.Key{Namespace: "ns", Name: "q"}
			observeQueues(s, q, admissiontest.NewLocalQueue("q", "cq"))
			s.Note(StatusOf{OfClusterQueue, engine.Key{Name: "cq"}}, engine.Usage{Cyclic: tc.cyclic})
			s.Note(StatusOf{OfLocalQueue, local}, engine.Usage{})
			s.Write(t.Context(), StatusOf{OfClusterQueue, engine.Key{Name: "cq"}})
			s.Write(t.Context(), StatusOf{OfLocalQueue, local})
			var cluster kueue.ClusterQueue
			var door kueue.LocalQueue
			if err := w.Get(t.Context(), client.ObjectKey{Name: "cq"}, &cluster); err != nil {
				t.Fatal(err)
			}
			if err := w.Get(t.Context(), client.ObjectKey(local), &door); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{tc.cluster, tc.local}, append(admissiontest.Conditions(cluster.Status.Conditions),
				admissiontest.Conditions(door.Status.Conditions)...)); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
		})
	}
}
