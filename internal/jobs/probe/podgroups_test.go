package probe

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

// TestHasNativeGangs checks the probe by a dry-run create of a pod, on clusters that answer in different ways.
func TestHasNativeGangs(t *testing.T) {
	groups := schedulingv1beta1.SchemeGroupVersion.WithKind("PodGroup")
	const long = int(20 * time.Second / probeInterval)
	for name, tc := range map[string]struct {
		serves    bool  // the kind PodGroup
		drops     bool  // the field schedulingGroup of pods
		refusals  int   // how many creates fail
		by        error // the error of these creates; nil for Forbidden
		unmapped  int   // how many lookups of the kind fail
		boots     bool  // there is no default ServiceAccount yet
		want      bool
		wantError bool
	}{
		"kind and field":                {serves: true, want: true},
		"no kind":                       {},
		"feature gate of the field off": {serves: true, drops: true},
		"creates refused at first":      {serves: true, refusals: 2, want: true},
		"creates always refused":        {serves: true, refusals: 1000, wantError: true},
		"cluster still starting":        {serves: true, refusals: long, boots: true, want: true},
		"too many requests": {serves: true, refusals: long,
			by: apierrors.NewTooManyRequests("too many", 1), want: true},
		"timeouts":                   {serves: true, refusals: long, by: context.DeadlineExceeded, want: true},
		"kind lookup fails at first": {serves: true, unmapped: long, want: true},
		"always unavailable": {serves: true, refusals: 1000, by: apierrors.NewServiceUnavailable("overloaded"),
			wantError: true},
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
					accounts = append(accounts,
						&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "default"}})
				}
				refusals := tc.refusals
				c := fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(&lateMapper{mapper, tc.unmapped}).
					WithInterceptorFuncs(interceptor.Funcs{
						Create: func(_ context.Context, _ client.WithWatch, o client.Object, opts ...client.CreateOption) error {
							if applied := (&client.CreateOptions{}).ApplyOptions(opts); len(applied.DryRun) == 0 {
								t.Error("the create is no dry run: the pod would be stored")
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
				start := time.Now()
				got, err := HasNativeGangs(t.Context(), c, "default")
				if got != tc.want || (err != nil) != tc.wantError {
					t.Errorf("HasNativeGangs = %v, error %v; want %v, an error: %v", got, err, tc.want, tc.wantError)
				}
				took, most := time.Since(start), probeRefusalPatience
				if tc.boots || tc.by != nil || tc.unmapped > 0 {
					most = ProbeTimeout
				}
				if took > most {
					t.Errorf("the probe delays the start by %s, want at most %s", took, most)
				}
			})
		})
	}
}

// lateMapper is a RESTMapper whose first lookups of the kind PodGroup fail.
type lateMapper struct {
	meta.RESTMapper
	fails int
}

func (l *lateMapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if kind.Kind == "PodGroup" && l.fails > 0 {
		l.fails--
		return nil, apierrors.NewServiceUnavailable("overloaded")
	}
	return l.RESTMapper.RESTMapping(kind, versions...)
}
