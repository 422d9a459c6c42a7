package probe

import (
	"context"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// TestHasStrictServiceNames checks the probe by a dry-run create of a Service, on clusters that answer in different
// ways.
func TestHasStrictServiceNames(t *testing.T) {
	invalid := apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Service").GroupKind(), digitProbe,
		field.ErrorList{field.Invalid(field.NewPath("metadata", "name"), digitProbe,
			"a DNS-1035 label must consist of lower case")})
	for name, tc := range map[string]struct {
		late            int   // how many creates fail by an error before the answer
		by              error // of these creates
		answer          error
		want, wantError bool
	}{
		"taken":   {},
		"invalid": {answer: invalid, want: true},
		"forbidden": {answer: apierrors.NewForbidden(corev1.Resource("services"), digitProbe, nil),
			wantError: true},
		"timeouts at first": {late: 20, by: context.DeadlineExceeded, answer: invalid, want: true},
		"too many requests at first": {late: 20, by: apierrors.NewTooManyRequests("too many", 1),
			answer: invalid, want: true},
		"always unavailable": {late: 1000, by: apierrors.NewServiceUnavailable("overloaded"), wantError: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				late := tc.late
				c := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
					Create: func(_ context.Context, _ client.WithWatch, o client.Object, opts ...client.CreateOption) error {
						if applied := (&client.CreateOptions{}).ApplyOptions(opts); len(applied.DryRun) == 0 {
							t.Error("the create is no dry run: the Service would be stored")
						}
						if late--; late >= 0 {
							return tc.by
						}
						return tc.answer
					},
				}).Build()
				if got, err := HasStrictServiceNames(t.Context(), c, "default"); got != tc.want || (err != nil) != tc.wantError {
					t.Errorf("HasStrictServiceNames = %v, error %v; want %v, an error: %v", got, err, tc.want, tc.wantError)
				}
			})
		})
	}
}
