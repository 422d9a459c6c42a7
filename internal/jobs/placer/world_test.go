package placer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/podspec"
)

// world is an API server with the Workload ns/wl, and the placer on top of it.
type world struct {
	t      *testing.T
	api    client.WithWatch
	placer *placer
	// writes are those of the placer as "verb pod". After writesLeft more of them, all fail, as if the operator was
	// killed.
	writes     []string
	writesLeft int
	// stale are pods whose last changes the watch has not reported yet, as the cache has them.
	stale map[string]*corev1.Pod
	// lost are pods for whose writes the response is lost, and whether the write takes effect.
	lost map[string]bool
	// reads are the reads of pods from the API server, as "list labels" or "get pod".
	reads []string
	mu    sync.Mutex
}

func newScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, kueue.AddToScheme, jobset.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return scheme
}

// newWorld returns a world with the Workload and its pods.
func newWorld(t *testing.T, w *kueue.Workload, pods ...podBuilder) *world {
	t.Helper()
	builder := fake.NewClientBuilder().WithScheme(newScheme(t)).WithIndex(&corev1.Pod{}, workloadIndex,
		workloadOf).WithIndex(&corev1.Pod{}, nodeIndex, nodesOf).
		WithIndex(&corev1.Node{}, jobs.HostnameIndex, jobs.HostnameOf).WithStatusSubresource(&corev1.Pod{}, &kueue.Workload{})
	builder.WithObjects(w)
	for _, b := range pods {
		builder.WithObjects(b.of("wl").Pod)
	}
	out := &world{t: t, api: builder.Build(), writesLeft: 1000, stale: map[string]*corev1.Pod{}}
	out.placer = &placer{client: interceptor.NewClient(out.api, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			err := c.List(ctx, list, opts...)
			out.cached(list)
			return err
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch,
			opts ...client.PatchOption) error {
			return out.write("place", o, func() error { return out.patch(ctx, c, o, p, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch,
			opts ...client.SubResourcePatchOption) error {
			return out.write("mark", o, func() error { return c.SubResource(sub).Patch(ctx, o, p, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if applied := (&client.DeleteOptions{}).ApplyOptions(opts); applied.GracePeriodSeconds != nil {
				t.Errorf("%s is deleted with a grace period of %d s, want that of the pod", o.GetName(),
					*applied.GracePeriodSeconds)
			}
			return out.write("delete", o, func() error { return c.Delete(ctx, o, opts...) })
		},
	}), live: out.live(), clock: clocktesting.NewFakePassiveClock(epoch), ranked: newRankedSets()}
	return out
}

// live returns a reader that does not use the cache, and records its reads.
func (w *world) live() client.Reader {
	return interceptor.NewClient(w.api, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			w.reads = append(w.reads, fmt.Sprint("list ", (&client.ListOptions{}).ApplyOptions(opts).LabelSelector))
			return c.List(ctx, list, opts...)
		},
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object,
			opts ...client.GetOption) error {
			if _, pod := o.(*corev1.Pod); pod {
				w.reads = append(w.reads, "get "+key.Name)
			}
			return c.Get(ctx, key, o, opts...)
		},
	})
}

// of puts the pod into the only pod set of the Workload.
func (p podBuilder) of(workload string) podBuilder {
	p.Namespace, p.UID = "ns", types.UID(p.Name)
	p.Labels[kueue.PodSetLabel] = "main"
	if p.Annotations == nil {
		p.Annotations = map[string]string{}
	}
	p.Annotations[kueue.WorkloadAnnotation] = workload
	return p
}

var (
	errKilled = errors.New("the operator was killed")
	errLost   = errors.New("the response was lost")
)

// write records a write and does it, unless the operator was killed or the write is lost without effect.
func (w *world) write(verb string, o client.Object, do func() error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.writesLeft--; w.writesLeft < 0 {
		return errKilled
	}
	w.writes = append(w.writes, verb+" "+o.GetName())
	if took, lost := w.lost[o.GetName()]; lost {
		if took {
			return errors.Join(errLost, do())
		}
		return errLost
	}
	return do()
}

// patch rejects what the API server rejects: another place for a pod that is not gated.
func (w *world) patch(ctx context.Context, c client.Client, o client.Object, p client.Patch,
	opts ...client.PatchOption) error {
	var before, after corev1.Pod
	key := client.ObjectKeyFromObject(o)
	if err := c.Get(ctx, key, &before); err != nil {
		return err
	}
	if err := c.Patch(ctx, o, p, opts...); err != nil {
		return err
	}
	if err := c.Get(ctx, key, &after); err != nil {
		return err
	}
	if len(before.Spec.SchedulingGates) > 0 || maps.Equal(before.Spec.NodeSelector, after.Spec.NodeSelector) {
		return nil
	}
	before.ResourceVersion = after.ResourceVersion
	return errors.Join(apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Pod").GroupKind(), key.Name, nil),
		c.Update(ctx, &before))
}

// reconcile reconciles the Workload, and sorts the writes, which are concurrent.
func (w *world) reconcile() error {
	_, err := w.placer.Reconcile(w.t.Context(),
		ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: "wl"}})
	slices.Sort(w.writes)
	return err
}

// nodes returns the node that each pod selects; "" for gated pods.
func (w *world) nodes() map[string]string {
	w.t.Helper()
	var list corev1.PodList
	if err := w.api.List(w.t.Context(), &list); err != nil {
		w.t.Fatal(err)
	}
	out := map[string]string{}
	for i := range list.Items {
		out[list.Items[i].Name] = list.Items[i].Spec.NodeSelector[corev1.LabelHostname]
		if isGated := gated(&list.Items[i]); isGated != (out[list.Items[i].Name] == "") {
			w.t.Errorf("%s is gated: %v, and selects %v", list.Items[i].Name, isGated, list.Items[i].Spec.NodeSelector)
		}
	}
	return out
}

// admitted returns the admitted Workload with these places.
func admitted(places ...podspec.Place) *kueue.Workload {
	w := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "wl", UID: "wl"}}
	w.Spec.PodSets = []kueue.PodSet{{Name: "main"}}
	assignment := &kueue.TopologyAssignment{Levels: []string{corev1.LabelHostname}}
	for _, place := range places {
		assignment.Domains = append(assignment.Domains,
			kueue.TopologyDomainAssignment{Values: []string{place.Node()}, Count: place.Count})
	}
	w.Status.Admission = &kueue.Admission{ClusterQueue: "q",
		PodSetAssignments: []kueue.PodSetAssignment{{Name: "main", TopologyAssignment: assignment}}}
	w.Status.Conditions = []metav1.Condition{{Type: kueue.WorkloadAdmitted, Status: metav1.ConditionTrue}}
	return w
}

// check fails the test if want and got differ.
func (w *world) check(what string, want, got any) {
	w.t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
