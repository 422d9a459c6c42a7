package jobs

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func TestHasNativeGangs(t *testing.T) {
	groups := schedulingv1beta1.SchemeGroupVersion.WithKind("PodGroup")
	const long = int(20 * time.Second / probeInterval)
	for name, tc := range map[string]struct {
		serves    bool
		drops     bool
		refusals  int
		by        error // nil for a policy
		unmapped  int   // how often nobody says what is served
		boots     bool  // it has no ServiceAccount for pods
		want      bool
		wantError bool
	}{
		"both":                                 {serves: true, want: true},
		"no such kind":                         {},
		"the gate of the field is off":         {serves: true, drops: true},
		"pods can be made only after a while":  {serves: true, refusals: 2, want: true},
		"pods cannot be made, so nobody knows": {serves: true, refusals: 1000, wantError: true},
		"it has only just started":             {serves: true, refusals: long, boots: true, want: true},
		"it has more to do than it can":        {serves: true, refusals: long, by: apierrors.NewTooManyRequests("too many", 1), want: true},
		"it takes long to answer":              {serves: true, refusals: long, by: context.DeadlineExceeded, want: true},
		"it does not say at first what it has": {serves: true, unmapped: long, want: true},
		"it never answers, so nobody knows":    {serves: true, refusals: 1000, by: apierrors.NewServiceUnavailable("overloaded"), wantError: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				scheme := runtime.NewScheme()
				if err := clientgoscheme.AddToScheme(scheme); err != nil {
					t.Fatal(err)
				}
				mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{corev1.SchemeGroupVersion})
				mapper.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
				if tc.serves {
					mapper.Add(groups, meta.RESTScopeNamespace)
				}
				var accounts []client.Object
				if !tc.boots {
					accounts = append(accounts, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "default"}})
				}
				refusals := tc.refusals
				c := fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(&lateMapper{mapper, tc.unmapped}).WithInterceptorFuncs(interceptor.Funcs{
					Create: func(_ context.Context, _ client.WithWatch, o client.Object, opts ...client.CreateOption) error {
						if applied := (&client.CreateOptions{}).ApplyOptions(opts); len(applied.DryRun) == 0 {
							t.Error("the pod would be stored")
						}
						if refusals--; refusals >= 0 && tc.by != nil {
							return tc.by
						} else if refusals >= 0 {
							return apierrors.NewForbidden(corev1.Resource("pods"), o.GetName(), nil)
						}
						if tc.drops {
							o.(*corev1.Pod).Spec.SchedulingGroup = nil
						}
						return nil
					},
				}).WithObjects(accounts...).Build()
				began := time.Now()
				got, err := HasNativeGangs(t.Context(), c, "default")
				if got != tc.want || (err != nil) != tc.wantError {
					t.Errorf("got %v, %v", got, err)
				}
				took, most := time.Since(began), probeRefusalPatience
				if tc.boots || tc.by != nil || tc.unmapped > 0 {
					most = probeTimeout
				}
				if took > most {
					t.Errorf("it holds the start up for %s", took)
				}
			})
		})
	}
}

// lateMapper is a RESTMapper that fails a number of times.
type lateMapper struct {
	meta.RESTMapper
	fails int
}

func (m *lateMapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if kind.Kind == "PodGroup" && m.fails > 0 {
		m.fails--
		return nil, apierrors.NewServiceUnavailable("overloaded")
	}
	return m.RESTMapper.RESTMapping(kind, versions...)
}

// TestLeftoverPodGroupsAreRelaxed once jobs create no PodGroups any more, since nothing updates them then.
func TestLeftoverPodGroupsAreRelaxed(t *testing.T) {
	group := func(name string, least int32) *schedulingv1beta1.PodGroup {
		return Gang{Name: name, Pods: least}.podGroup(&corev1.Pod{}, schema.GroupVersionKind{})
	}
	another := group("of-no-gang", 3)
	another.Spec.SchedulingPolicy.Gang = nil
	writes := relaxPodGroups([]client.Object{group("three", 3), group("one", 1), another, &corev1.Pod{}})
	if len(writes) != 1 || writes[0].Object().GetName() != "three" || writes[0].Object().(*schedulingv1beta1.PodGroup).Spec.SchedulingPolicy.Gang.MinCount != 1 {
		t.Errorf("writes %+v", writes)
	}
}

// TestTerminatingPodGroupIsUpdated: it exists as long as its pods do, and kube-scheduler enforces it.
func TestTerminatingPodGroupIsUpdated(t *testing.T) {
	there := Gang{Name: "g", Pods: 3}.podGroup(&corev1.Pod{}, schema.GroupVersionKind{})
	there.DeletionTimestamp = ptr.To(metav1.Now())
	write, differs := Gang{Name: "g", Pods: 2, Waiting: true}.Ensure(&corev1.Pod{}, schema.GroupVersionKind{}, []client.Object{there})
	if !differs || write.Object().(*schedulingv1beta1.PodGroup).Spec.SchedulingPolicy.Gang.MinCount != 2 {
		t.Errorf("differs: %v, writes %+v", differs, write)
	}
}
