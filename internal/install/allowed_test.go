package install

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// TestARefusalIsWaitedFor: an operator that starts with its API server goes on once that has read its roles, and ends
// with an error that says what to do if it has none.
func TestARefusalIsWaitedFor(t *testing.T) {
	refused := apierrors.NewForbidden(kueue.GroupVersion.WithResource("workloads").GroupResource(), "", nil)
	broken := errors.New("broken")
	for name, test := range map[string]struct {
		refusals int
		then     error
		says     string
	}{
		"not refused":          {0, nil, ""},
		"refused for a moment": {5, nil, ""},
		"refused for ever":     {1000, nil, "bind its roles to the user that it runs as: workloads"},
		"then another error":   {5, broken, "broken"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked := 0
				got, err := untilAllowed(t.Context(), func(context.Context) (string, error) {
					if asked++; asked <= test.refusals {
						return "", refused
					}
					return "answer", test.then
				})
				switch {
				case test.says == "" && (err != nil || got != "answer"):
					t.Errorf("got %q, %v; want the answer", got, err)
				case test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says)):
					t.Errorf("error %v, want one that says %q", err, test.says)
				}
			})
		})
	}
}
