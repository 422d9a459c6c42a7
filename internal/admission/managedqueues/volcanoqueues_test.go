package managedqueues

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	scheduling "github.com/musterhq/muster/api/volcano/scheduling/v1beta1"
	"github.com/musterhq/muster/internal/admission/admissiontest"
)

// TestAQueueWhoseNameIsTakenIsReported: it is reported once, since its owner could not see otherwise why its quota does
// not count. When the ClusterQueue in its place is deleted, the Queue gets its own.
func TestAQueueWhoseNameIsTakenIsReported(t *testing.T) {
	scheme := queueScheme(t)
	cpu := admissiontest.Quantities("cpu", "4")
	other := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: "team"}}
	queue, plain := aQueue("team", scheduling.QueueSpec{Capability: cpu}),
		aQueue("default", scheduling.QueueSpec{Weight: 1})
	plain.UID = "other"
	api := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&scheduling.Queue{}).
		WithObjects(other, &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, queue, plain).Build()
	recorder := events.NewFakeRecorder(10)
	keeper := &volcanoQueues{client: api, recorder: recorder, notKeptReported: map[types.UID]bool{},
		ignoredReported: map[types.UID]string{}}
	reconcile := func() {
		t.Helper()
		if _, err := keeper.Reconcile(t.Context(), ctrl.Request{}); err != nil {
			t.Fatal(err)
		}
	}
	reconcile()
	reconcile()
	if len(recorder.Events) != 1 {
		t.Fatalf("recorded %d events, want 1", len(recorder.Events))
	}
	if reported := <-recorder.Events; !strings.HasPrefix(reported, "Warning NotKept A ClusterQueue team existed before") {
		t.Errorf("event = %q, want a warning NotKept", reported)
	}
	if err := api.Delete(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	// A Queue that was deleted and created again leaves its old ClusterQueue for a moment.
	before := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: "gone", OwnerReferences: []metav1.OwnerReference{
		{APIVersion: scheduling.GroupVersion.String(), Kind: "Queue", Name: "gone", UID: "before", Controller: new(true)}}}}
	recreated := aQueue("gone", scheduling.QueueSpec{Capability: cpu})
	recreated.UID = "recreated"
	for _, object := range []client.Object{before, recreated} {
		if err := api.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	reconcile()
	reconcile()
	var created kueue.ClusterQueue
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(other), &created); err != nil ||
		!metav1.IsControlledBy(&created, queue) || len(recorder.Events) != 0 {
		t.Errorf("ClusterQueue has owners %v (%v) and %d more events were recorded, want the Queue as owner and none",
			created.OwnerReferences, err, len(recorder.Events))
	}
}

// TestClusterQueuesAreNotCopiedAtEachChangeOfOne: most clusters have no Queues, and a large one changes the status of
// some ClusterQueue all the time.
func TestClusterQueuesAreNotCopiedAtEachChangeOfOne(t *testing.T) {
	lists, copies := 0, 0
	api := fake.NewClientBuilder().WithScheme(queueScheme(t)).WithStatusSubresource(&scheduling.Queue{}).
		WithObjects(&kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: "a"}}).
		WithInterceptorFuncs(interceptor.Funcs{List: func(ctx context.Context, api client.WithWatch, list client.ObjectList,
			opts ...client.ListOption) error {
			if _, is := list.(*kueue.ClusterQueueList); is {
				lists++
				if shared := (&client.ListOptions{}).ApplyOptions(opts).UnsafeDisableDeepCopy; shared == nil || !*shared {
					copies++
				}
			}
			return api.List(ctx, list, opts...)
		}}).Build()
	keeper := &volcanoQueues{client: api, recorder: events.NewFakeRecorder(10), notKeptReported: map[types.UID]bool{},
		ignoredReported: map[types.UID]string{}}
	if _, err := keeper.Reconcile(t.Context(), ctrl.Request{}); err != nil {
		t.Fatal(err)
	}
	if lists != 0 {
		t.Errorf("without Queues the ClusterQueues were listed %d times", lists)
	}
	if err := api.Create(t.Context(), aQueue("team", scheduling.QueueSpec{})); err != nil {
		t.Fatal(err)
	}
	if _, err := keeper.Reconcile(t.Context(), ctrl.Request{}); err != nil {
		t.Fatal(err)
	}
	if copies != 0 {
		t.Errorf("all ClusterQueues were copied %d times", copies)
	}
}

func queueScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{kueue.AddToScheme, scheduling.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return scheme
}

// TestIgnoredFieldsOfAQueueAreReported: they are reported once, and again when they change. The fields in Volcano's own
// manifests are not reported.
func TestIgnoredFieldsOfAQueueAreReported(t *testing.T) {
	queue := aQueue("team", scheduling.QueueSpec{Parent: "lab", Priority: 5000, Affinity: &scheduling.Affinity{},
		ExtendClusters: []scheduling.Cluster{{}}})
	plain := aQueue("plain", scheduling.QueueSpec{Parent: "root", Priority: 100, Type: "vendor"})
	plain.UID = "plain"
	api := fake.NewClientBuilder().WithScheme(queueScheme(t)).WithStatusSubresource(&scheduling.Queue{}).
		WithObjects(queue, plain).Build()
	recorder := events.NewFakeRecorder(10)
	keeper := &volcanoQueues{client: api, recorder: recorder, notKeptReported: map[types.UID]bool{},
		ignoredReported: map[types.UID]string{}}
	reconcile := func(change func(*scheduling.QueueSpec), want ...string) {
		t.Helper()
		var seen scheduling.Queue
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(queue), &seen); err != nil {
			t.Fatal(err)
		}
		change(&seen.Spec)
		if err := api.Update(t.Context(), &seen); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := keeper.Reconcile(t.Context(), ctrl.Request{}); err != nil {
				t.Fatal(err)
			}
		}
		var got []string
		for len(recorder.Events) > 0 {
			got = append(got, <-recorder.Events)
		}
		admissiontest.Expect(t, "events", want, got)
	}
	reconcile(func(*scheduling.QueueSpec) {},
		"Warning IgnoredInSpec Ignored in the spec: parent, because there is no Queue lab; "+
			"affinity, which only Volcano's scheduler supports; extendClusters, because jobs are not sent to other clusters; priority above 100, which counts as the limit")
	reconcile(func(spec *scheduling.QueueSpec) { spec.Parent, spec.Affinity, spec.ExtendClusters = "", nil, nil },
		"Warning IgnoredInSpec Ignored in the spec: priority above 100, which counts as the limit")
	reconcile(func(spec *scheduling.QueueSpec) { spec.Priority = 0 })
}

// TestAClusterQueueFollowsItsQueue, in all that the Queue says; what users have set besides stays.
func TestAClusterQueueFollowsItsQueue(t *testing.T) {
	api := fake.NewClientBuilder().WithScheme(queueScheme(t)).WithStatusSubresource(&scheduling.Queue{}).
		WithObjects(aQueue("team", scheduling.QueueSpec{})).Build()
	keeper := &volcanoQueues{client: api, recorder: events.NewFakeRecorder(10), notKeptReported: map[types.UID]bool{},
		ignoredReported: map[types.UID]string{}}
	var kept kueue.ClusterQueue
	follow := func(spec scheduling.QueueSpec) {
		t.Helper()
		var queue scheduling.Queue
		if err := api.Get(t.Context(), client.ObjectKey{Name: "team"}, &queue); err != nil {
			t.Fatal(err)
		}
		queue.Spec = spec
		if err := api.Update(t.Context(), &queue); err != nil {
			t.Fatal(err)
		}
		if _, err := keeper.Reconcile(t.Context(), ctrl.Request{}); err != nil {
			t.Fatal(err)
		}
		if err := api.Get(t.Context(), client.ObjectKey{Name: "team"}, &kept); err != nil {
			t.Fatal(err)
		}
	}
	follow(scheduling.QueueSpec{})
	kept.Annotations = map[string]string{"own": "x"}
	kept.Spec.StopPolicy = new(kueue.Hold)
	if err := api.Update(t.Context(), &kept); err != nil {
		t.Fatal(err)
	}
	follow(scheduling.QueueSpec{Weight: 3, Priority: 7, Deserved: admissiontest.Quantities("cpu", "4")})
	if w := kept.Spec.FairSharing.Weight; w.Value() != 3 || kept.Annotations[muster.QueuePriorityAnnotation] != "7" ||
		len(kept.Spec.ResourceGroups) != 1 {
		t.Errorf("ClusterQueue = %+v, want the weight, the priority and the quota of its Queue", kept)
	}
	follow(scheduling.QueueSpec{})
	if w := kept.Spec.FairSharing.Weight; w.Value() != 1 || kept.Annotations[muster.QueuePriorityAnnotation] != "" ||
		len(kept.Spec.ResourceGroups) != 0 {
		t.Errorf("ClusterQueue = %+v, want nothing left of what its Queue said", kept)
	}
	if kept.Annotations["own"] != "x" || kept.Spec.StopPolicy == nil {
		t.Errorf("ClusterQueue = %+v, want what a user has set", kept)
	}
}

// fewEvents is a recorder with a budget of that many events.
type fewEvents struct {
	events.FakeRecorder
	left int
}

func (f *fewEvents) TryEventf(regarding, related runtime.Object, kind, reason, action, note string, args ...any) bool {
	if f.left == 0 {
		return false
	}
	f.left--
	f.Eventf(regarding, related, kind, reason, action, note, args...)
	return true
}

// TestEventsBeyondTheBudgetAreRecordedLater: at a start with many Queues the budget does not suffice for all.
func TestEventsBeyondTheBudgetAreRecordedLater(t *testing.T) {
	ignored, other := aQueue("ignored", scheduling.QueueSpec{Parent: "lab"}),
		aQueue("other", scheduling.QueueSpec{Capability: admissiontest.Quantities("cpu", "4")})
	ignored.UID, other.UID = "ignored", "other"
	api := fake.NewClientBuilder().WithScheme(queueScheme(t)).WithStatusSubresource(&scheduling.Queue{}).
		WithObjects(&kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: "other"}}, ignored, other).Build()
	recorder := &fewEvents{FakeRecorder: *events.NewFakeRecorder(10)}
	keeper := &volcanoQueues{client: api, recorder: recorder, notKeptReported: map[types.UID]bool{},
		ignoredReported: map[types.UID]string{}}
	for i, want := range []struct{ time, reported int }{{0, 0}, {1, 1}, {5, 2}, {5, 2}} {
		recorder.left = want.time
		result, err := keeper.Reconcile(t.Context(), ctrl.Request{})
		if reported := len(recorder.Events); err != nil || reported != want.reported ||
			(result.RequeueAfter > 0) != (want.reported < 2) {
			t.Errorf("reconcile %d: %d events, want %d; requeue after %s (%v)", i, reported, want.reported,
				result.RequeueAfter, err)
		}
	}
}

// TestNothingIsKeptOfDeletedQueues: the controller forgets deleted Queues, since a new Queue of the same name has
// another UID.
func TestNothingIsKeptOfDeletedQueues(t *testing.T) {
	ignored := aQueue("ignored", scheduling.QueueSpec{Parent: "lab"})
	other, plain := aQueue("other", scheduling.QueueSpec{Capability: admissiontest.Quantities("cpu", "4")}),
		aQueue("plain", scheduling.QueueSpec{})
	other.UID, plain.UID = "other", "plain"
	api := fake.NewClientBuilder().WithScheme(queueScheme(t)).WithStatusSubresource(&scheduling.Queue{}).
		WithObjects(&kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: "other"}}, ignored, other, plain).Build()
	keeper := &volcanoQueues{client: api, recorder: events.NewFakeRecorder(10), notKeptReported: map[types.UID]bool{},
		ignoredReported: map[types.UID]string{}}
	known := func(reported, ignored int) {
		t.Helper()
		if _, err := keeper.Reconcile(t.Context(), ctrl.Request{}); err != nil {
			t.Fatal(err)
		}
		if len(keeper.notKeptReported) != reported || len(keeper.ignoredReported) != ignored {
			t.Errorf("reported Queues = %v, reported ignored fields = %v", keeper.notKeptReported, keeper.ignoredReported)
		}
	}
	known(1, 1)
	for _, queue := range []*scheduling.Queue{ignored, other, plain} {
		if err := api.Delete(t.Context(), queue); err != nil {
			t.Fatal(err)
		}
	}
	known(0, 0)
}

// TestTheQuotaOfAQueueIsSharedOnlyOnceItsWorkloadsHaveEnded: its ClusterQueue stays for as long as these hold quota of
// it. A Queue that is being deleted gets no other one: a deletion in the foreground, which waits for it, would never
// end.
func TestTheQuotaOfAQueueIsSharedOnlyOnceItsWorkloadsHaveEnded(t *testing.T) {
	cpu := func(n string) corev1.ResourceList { return admissiontest.Quantities("cpu", n) }
	byNodes := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: muster.DefaultQueue,
		Labels: map[string]string{muster.FollowsNodesLabel: "true"}}}
	byNodes.Spec.ResourceGroups = []kueue.ResourceGroup{groupOf(cpu("10"))}
	lends := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: "a-user-s"}} // its quota comes on top of the nodes'
	lends.Spec.Cohort, lends.Spec.ResourceGroups = volcanoCohort, []kueue.ResourceGroup{groupOf(cpu("2"))}
	going, stays := aQueue("going", scheduling.QueueSpec{Deserved: cpu("4")}),
		aQueue("stays", scheduling.QueueSpec{Deserved: cpu("1")})
	going.UID, going.Finalizers = "going", []string{metav1.FinalizerDeleteDependents}
	deletes := 0
	api := fake.NewClientBuilder().WithScheme(queueScheme(t)).WithStatusSubresource(&scheduling.Queue{}).
		WithObjects(byNodes, lends, going, stays).
		WithInterceptorFuncs(interceptor.Funcs{Delete: func(ctx context.Context, api client.WithWatch, o client.Object,
			opts ...client.DeleteOption) error {
			deletes++
			return api.Delete(ctx, o, opts...)
		}}).Build()
	keeper := &volcanoQueues{client: api, recorder: events.NewFakeRecorder(10), notKeptReported: map[types.UID]bool{},
		ignoredReported: map[types.UID]string{}}
	cohort := &kueue.Cohort{}
	reconcile := func() {
		t.Helper()
		if _, err := keeper.Reconcile(t.Context(), ctrl.Request{}); err != nil {
			t.Fatal(err)
		}
		if err := api.Get(t.Context(), client.ObjectKey{Name: volcanoCohort}, cohort); err != nil {
			t.Fatal(err)
		}
	}
	shares := func(when, want string) {
		t.Helper()
		reconcile()
		quota := cohort.Spec.ResourceGroups[0].Flavors[0].Resources[0].NominalQuota
		if quota.String() != want {
			t.Errorf("%s: the cohort has %s cpu, want %s", when, quota.String(), want)
		}
	}
	change := func(write error) {
		t.Helper()
		if write != nil {
			t.Fatal(write)
		}
	}
	shares("with both Queues", "5")
	change(api.Delete(t.Context(), going))
	shares("while one is being deleted", "5")
	used := &kueue.ClusterQueue{}
	change(api.Get(t.Context(), client.ObjectKey{Name: "going"}, used))
	again := used.DeepCopy()
	again.ResourceVersion = ""
	change(api.Delete(t.Context(), used))
	shares("once its ClusterQueue is gone", "9")
	if err := api.Get(t.Context(), client.ObjectKey{Name: "going"}, used); !apierrors.IsNotFound(err) {
		t.Errorf("the Queue that is being deleted has a ClusterQueue again (%v)", err)
	}
	change(api.Create(t.Context(), again)) // as if its workloads still held quota of it
	change(api.Get(t.Context(), client.ObjectKeyFromObject(going), going))
	going.Finalizers = nil
	change(api.Update(t.Context(), going))
	shares("while only its ClusterQueue is left", "5")

	change(api.Delete(t.Context(), stays))
	cohort.Finalizers = []string{"example.com/used"}
	change(api.Update(t.Context(), cohort))
	deletes = 0
	reconcile()
	reconcile()
	if deletes != 1 || cohort.DeletionTimestamp.IsZero() {
		t.Errorf("without Queues the cohort was deleted %d times, want once", deletes)
	}
}

// TestACohortOfAUserIsLeftAlone, also when there are no Queues any more.
func TestACohortOfAUserIsLeftAlone(t *testing.T) {
	queue, own := aQueue("team", scheduling.QueueSpec{}), &kueue.Cohort{ObjectMeta: metav1.ObjectMeta{Name: volcanoCohort}}
	own.Spec.ResourceGroups = []kueue.ResourceGroup{groupOf(admissiontest.Quantities("cpu", "7"))}
	api := fake.NewClientBuilder().WithScheme(queueScheme(t)).WithStatusSubresource(&scheduling.Queue{}).
		WithObjects(queue, own).Build()
	keeper := &volcanoQueues{client: api, recorder: events.NewFakeRecorder(10), notKeptReported: map[types.UID]bool{},
		ignoredReported: map[types.UID]string{}}
	for range 2 {
		if _, err := keeper.Reconcile(t.Context(), ctrl.Request{}); err != nil {
			t.Fatal(err)
		}
		var seen kueue.Cohort
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(own), &seen); err != nil ||
			len(seen.Spec.ResourceGroups) != 1 {
			t.Errorf("cohort = %+v (%v), want it as its user made it", seen.Spec, err)
		}
		if err := api.Delete(t.Context(), queue); err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
	}
}

// TestExtremeQuantitiesOfAQueueAreCheap: Volcano's definition accepts them, and a sum with one would take practically
// forever.
func TestExtremeQuantitiesOfAQueueAreCheap(t *testing.T) {
	huge := admissiontest.Quantities("cpu", "1e2147483647", "memory", "0e2147483647")
	parent := aQueue("parent", scheduling.QueueSpec{Capability: huge, Deserved: huge})
	a := aQueue("a", scheduling.QueueSpec{Parent: "parent", Deserved: huge,
		Guarantee: scheduling.Guarantee{Resource: huge}})
	b := aQueue("b", scheduling.QueueSpec{Parent: "parent", Deserved: admissiontest.Quantities("cpu", "1", "memory", "1")})
	api := fake.NewClientBuilder().WithScheme(queueScheme(t)).WithStatusSubresource(&scheduling.Queue{}).
		WithObjects(parent, a, b).Build()
	keeper := &volcanoQueues{client: api, recorder: events.NewFakeRecorder(10), notKeptReported: map[types.UID]bool{},
		ignoredReported: map[types.UID]string{}}
	if _, err := keeper.Reconcile(t.Context(), ctrl.Request{}); err != nil {
		t.Fatal(err)
	}
	if err := api.Get(t.Context(), client.ObjectKey{Name: "a"}, &kueue.ClusterQueue{}); err != nil {
		t.Errorf("the ClusterQueue of a Queue: %v", err)
	}
}
