package managedqueues

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	config "github.com/musterhq/muster/api/config/v1alpha1"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/admission/admissiontest"
)

// quotaOf returns a ClusterQueue's quota of each resource, sorted.
func quotaOf(q *kueue.ClusterQueue) []string {
	var out []string
	for _, g := range q.Spec.ResourceGroups {
		for _, f := range g.Flavors {
			for i, r := range f.Resources {
				if g.CoveredResources[i] != r.Name {
					out = append(out, "out of order")
				}
				out = append(out, fmt.Sprintf("%s: %s=%s", f.Name, r.Name, r.NominalQuota.String()))
			}
		}
	}
	return out
}

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// api is an API server that records each write as "verb Kind name", and fails the first one with the given error.
type api struct {
	client.WithWatch
	t      *testing.T
	writes []string
	fail   error
}

func newAPI(t *testing.T, objects ...client.Object) *api {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, kueue.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	a := &api{t: t}
	note := func(verb string, o client.Object, write func() error) error {
		if err := a.fail; err != nil {
			a.fail = nil
			return err
		}
		gvk, err := apiutil.GVKForObject(o, scheme)
		if err != nil {
			return err
		}
		a.writes = append(a.writes, fmt.Sprintf("%s %s %s", verb, gvk.Kind, o.GetName()))
		return write()
	}
	a.WithWatch = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
				return note("create", o, func() error { return c.Create(ctx, o, options...) })
			},
			Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch,
				options ...client.PatchOption) error {
				return note("change", o, func() error { return c.Patch(ctx, o, p, options...) })
			},
		}).Build()
	return a
}

func (a *api) put(o client.Object) {
	a.t.Helper()
	if err := a.Create(a.t.Context(), o); err != nil {
		a.t.Fatal(err)
	}
}

func (a *api) remove(o client.Object) {
	a.t.Helper()
	if err := a.Delete(a.t.Context(), o); err != nil {
		a.t.Fatal(err)
	}
}

// keeper has the controller of the default queue over nodes.
type keeper struct {
	*api
	*defaultQueue
	clock *clocktesting.FakePassiveClock
}

func newKeeper(t *testing.T, objects ...client.Object) *keeper {
	k := &keeper{api: newAPI(t, objects...), clock: clocktesting.NewFakePassiveClock(now)}
	k.defaultQueue = &defaultQueue{client: k.api, signs: k.api, capacity: nodesCapacity, clock: k.clock}
	return k
}

// keep reconciles, and returns the writes since the last call.
func (k *keeper) keep() []string {
	k.t.Helper()
	k.writes = nil
	if _, err := k.Reconcile(k.t.Context(), ctrl.Request{}); err != nil {
		k.t.Fatal(err)
	}
	return k.writes
}

func (k *keeper) queue() *kueue.ClusterQueue {
	k.t.Helper()
	var q kueue.ClusterQueue
	if err := k.Get(k.t.Context(), client.ObjectKey{Name: "default"}, &q); err != nil {
		k.t.Fatal(err)
	}
	return &q
}

func TestTheDefaultQueueIsKeptUpToDate(t *testing.T) {
	k := newKeeper(t, admissiontest.Node("a", "cpu", "4").Node)
	admissiontest.Expect(t, "first writes",
		[]string{"create Topology muster-nodes", "create ResourceFlavor default", "create ClusterQueue default"}, k.keep())
	admissiontest.Expect(t, "writes without a change", nil, k.keep())
	k.put(admissiontest.Node("b", "cpu", "2").Node)
	admissiontest.Expect(t, "writes for a new node", []string{"change ClusterQueue default"}, k.keep())
	admissiontest.Expect(t, "its quota", []string{"default: cpu=6", "default: memory=0", "default: pods=0"},
		quotaOf(k.queue()))

	k.put(admissiontest.Node("c", "cpu", "1").Node)
	admissiontest.Expect(t, "writes for another node at once", nil, k.keep())
	result, err := k.Reconcile(t.Context(), ctrl.Request{})
	if err != nil || result.RequeueAfter != updateInterval {
		t.Errorf("requeue after %v, error %v, want the update interval", result.RequeueAfter, err)
	}
	k.clock.SetTime(now.Add(updateInterval))
	admissiontest.Expect(t, "writes for another node after the interval",
		[]string{"change ClusterQueue default"}, k.keep())
	admissiontest.Expect(t, "its quota", []string{"default: cpu=7", "default: memory=0", "default: pods=0"},
		quotaOf(k.queue()))

	k.clock.SetTime(now.Add(time.Hour))
	k.remove(k.queue())
	admissiontest.Expect(t, "writes after the queue was deleted", []string{"create ClusterQueue default"}, k.keep())
	k.remove(&kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: "default"}})
	admissiontest.Expect(t, "writes after the flavor was deleted", []string{"create ResourceFlavor default"}, k.keep())
	k.remove(&kueue.Topology{ObjectMeta: metav1.ObjectMeta{Name: "muster-nodes"}})
	admissiontest.Expect(t, "writes after the topology was deleted", []string{"create Topology muster-nodes"}, k.keep())
}

func TestTheTopologyOfAFlavorOfAnEarlierVersionIsKept(t *testing.T) {
	flavor := defaultFlavor()
	flavor.Spec.TopologyName = ptr.To(kueue.TopologyReference("default"))
	k := newKeeper(t, flavor)
	admissiontest.Expect(t, "writes while the topology is missing",
		[]string{"create Topology default", "create ClusterQueue default"}, k.keep())
}

func TestTheFlavorOfAnEarlierVersionIsPlacedOnNodes(t *testing.T) {
	q := nodesCapacity.queue(nil, false)
	q.Generation = 1
	k := newKeeper(t, &kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, q)
	admissiontest.Expect(t, "writes", []string{"create Topology muster-nodes", "change ResourceFlavor default"}, k.keep())
	admissiontest.Expect(t, "writes without a change", nil, k.keep())
	var flavor kueue.ResourceFlavor
	if err := k.Get(t.Context(), client.ObjectKey{Name: "default"}, &flavor); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(defaultFlavor().Spec, flavor.Spec); diff != "" {
		t.Errorf("flavor (-want +got):\n%s", diff)
	}
}

func TestAUsersFlavorIsLeftAlone(t *testing.T) {
	own := &kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	own.Spec.NodeLabels = map[string]string{"pool": "batch"}
	k := newKeeper(t, own, admissiontest.Node("a", "cpu", "4").Node,
		admissiontest.Node("b", "cpu", "2").Labeled("pool", "batch").Node)
	admissiontest.Expect(t, "writes", []string{"create ClusterQueue default"}, k.keep())
	admissiontest.Expect(t, "quota of the flavor's nodes",
		[]string{"default: cpu=2", "default: memory=0", "default: pods=0"}, quotaOf(k.queue()))
}

func TestAnAutoscalerIsDetectedWhenItComesAndGoes(t *testing.T) {
	for name, sign := range map[string]client.Object{
		"cluster-autoscaler": &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system",
			Name: "cluster-autoscaler-status"}},
		"Karpenter": &metav1.PartialObjectMetadata{
			TypeMeta:   metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"},
			ObjectMeta: metav1.ObjectMeta{Name: "nodepools.karpenter.sh"}},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKeeper(t, admissiontest.Node("a", "cpu", "4").Node)
			k.keep()
			signs := newAPI(t, sign)
			k.signs = signs
			admissiontest.Expect(t, "writes for a new autoscaler", []string{"change ClusterQueue default"}, k.keep())
			if q := k.queue(); q.Annotations[muster.NodesOnDemandAnnotation] != "true" || quotaOf(q)[0] != "default: cpu=1E" {
				t.Errorf("annotations = %v, quota = %v, want nodes on demand and 1E of cpu", q.Annotations, quotaOf(q))
			}
			k.clock.SetTime(now.Add(time.Hour))
			k.signs = newAPI(t)
			admissiontest.Expect(t, "writes after the autoscaler was deleted", []string{"change ClusterQueue default"}, k.keep())
			if q := k.queue(); len(q.Annotations) != 0 || quotaOf(q)[0] != "default: cpu=4" {
				t.Errorf("annotations = %v, quota = %v, want none and the cpu of the nodes", q.Annotations, quotaOf(q))
			}
		})
	}
}

// TestNoDetectionIfNodesOnDemandIsConfigured: the operator may not be allowed to read what it detects autoscalers by.
func TestNoDetectionIfNodesOnDemandIsConfigured(t *testing.T) {
	for said, annotated := range map[config.NodesOnDemand]string{config.NodesOnDemandAlways: "true",
		config.NodesOnDemandNever: ""} {
		k := newKeeper(t, admissiontest.Node("a", "cpu", "4").Node)
		k.signs, k.capacity.onDemand = nil, said
		k.keep()
		if got := k.queue().Annotations[muster.NodesOnDemandAnnotation]; got != annotated {
			t.Errorf("%s: annotation of nodes on demand = %q", said, got)
		}
	}
}

func TestAQueueWithoutTheLabelIsNotUpdated(t *testing.T) {
	k := newKeeper(t, admissiontest.Node("a", "cpu", "4").Node)
	k.keep()
	q := k.queue()
	q.Labels = nil
	q.Spec.ResourceGroups[0].Flavors[0].Resources[0].NominalQuota = resource.MustParse("1")
	if err := k.Update(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	k.put(admissiontest.Node("b", "cpu", "2").Node)
	k.remove(&kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: "default"}})
	admissiontest.Expect(t, "writes", nil, k.keep())
}

// TestAUsersFlavorIsUsedOnceTheQueueIsManagedAgain removes the queue's label and the flavor, which would otherwise be
// created again, and then restores the label: the controller must react to that although nothing else changes.
func TestAUsersFlavorIsUsedOnceTheQueueIsManagedAgain(t *testing.T) {
	tainted := admissiontest.Node("b", "cpu", "2").Tainted("t", corev1.TaintEffectNoSchedule).Node
	k := newKeeper(t, admissiontest.Node("a", "cpu", "4").Node, tainted)
	k.keep()
	released := k.queue()
	released.Labels, released.Spec.ResourceGroups = nil, nil
	if err := k.Update(t.Context(), released); err != nil {
		t.Fatal(err)
	}
	k.remove(&kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: "default"}})
	admissiontest.Expect(t, "writes while the queue is a user's", nil, k.keep())
	flavor := defaultFlavor()
	flavor.Labels = nil
	flavor.Spec.Tolerations = []corev1.Toleration{{Key: tainted.Spec.Taints[0].Key, Operator: corev1.TolerationOpExists}}
	if err := k.Create(t.Context(), flavor); err != nil {
		t.Fatal(err)
	}
	before, given := k.queue(), k.queue()
	given.Labels = map[string]string{muster.FollowsNodesLabel: "true"}
	if !queueChanged.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: given}) {
		t.Error("the restored label does not trigger a reconcile")
	}
	if err := k.Update(t.Context(), given); err != nil {
		t.Fatal(err)
	}
	k.clock.SetTime(now.Add(updateInterval))
	admissiontest.Expect(t, "writes after the label was restored", []string{"change ClusterQueue default"}, k.keep())
	admissiontest.Expect(t, "quota", []string{"default: cpu=6", "default: memory=0", "default: pods=0"},
		quotaOf(k.queue()))
}

func TestAUsersDefaultQueueIsLeftAlone(t *testing.T) {
	k := newKeeper(t, &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: "default"}},
		admissiontest.Node("a", "cpu", "4").Node)
	admissiontest.Expect(t, "writes", nil, k.keep())
}

func TestAConflictIsLeftToTheWatch(t *testing.T) {
	k := newKeeper(t, admissiontest.Node("a", "cpu", "4").Node)
	k.keep()
	k.put(admissiontest.Node("b", "cpu", "2").Node)
	k.fail = apierrors.NewConflict(kueue.Resource("clusterqueues"), "default", nil)
	admissiontest.Expect(t, "writes", nil, k.keep())
}

func TestNodeHeartbeatsAreIgnored(t *testing.T) {
	ready := func(b admissiontest.NodeBuilder) *corev1.Node {
		b.Node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, LastHeartbeatTime: metav1.Now()}}
		return b.Node
	}
	for name, tc := range map[string]struct {
		after *corev1.Node
		want  bool
	}{
		"a heartbeat":      {ready(admissiontest.Node("a", "cpu", "4")), false},
		"another label":    {admissiontest.Node("a", "cpu", "4").Labeled("pool", "batch").Node, true},
		"less capacity":    {admissiontest.Node("a", "cpu", "3").Node, true},
		"another resource": {admissiontest.Node("a", "cpu", "4", "nvidia.com/gpu", "1").Node, true},
		"cordoned":         {admissiontest.Node("a", "cpu", "4").Cordoned().Node, true},
		"tainted":          {admissiontest.Node("a", "cpu", "4").Tainted("t", corev1.TaintEffectNoSchedule).Node, true},
		"a taint that repels no pods": {admissiontest.Node("a", "cpu",
			"4").Tainted("t", corev1.TaintEffectPreferNoSchedule).Node, false},
	} {
		if got := capacityChanged.Update(event.UpdateEvent{ObjectOld: admissiontest.Node("a", "cpu", "4").Node,
			ObjectNew: tc.after}); got != tc.want {
			t.Errorf("%s: capacity changed = %v, want %v", name, got, tc.want)
		}
	}
}
