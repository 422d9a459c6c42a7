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
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func TestAClusterHasGangsIfItServesThemAndItsPodsKeepThem(t *testing.T) {
	groups := schedulingv1beta1.SchemeGroupVersion.WithKind("PodGroup")
	for name, tc := range map[string]struct {
		serves    bool
		drops     bool
		refusals  int
		boots     bool // it has no ServiceAccount for pods
		want      bool
		wantError bool
	}{
		"both":                                 {serves: true, want: true},
		"no such kind":                         {},
		"the gate of the field is off":         {serves: true, drops: true},
		"pods can be made only after a while":  {serves: true, refusals: 2, want: true},
		"pods cannot be made, so nobody knows": {serves: true, refusals: 1000, wantError: true},
		"it has only just started":             {serves: true, refusals: proofTries + 5, boots: true, want: true},
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
				c := fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).WithInterceptorFuncs(interceptor.Funcs{
					Create: func(_ context.Context, _ client.WithWatch, o client.Object, opts ...client.CreateOption) error {
						if applied := (&client.CreateOptions{}).ApplyOptions(opts); len(applied.DryRun) == 0 {
							t.Error("the pod would be stored")
						}
						if refusals--; refusals >= 0 {
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
				if took := time.Since(began); took > proofTries*proofInterval && !tc.boots {
					t.Errorf("who is refused holds the start up for %s", took)
				}
			})
		})
	}
}
