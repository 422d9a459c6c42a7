package probe

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// digitProbe is a name that only relaxed rules allow for a Service.
const digitProbe = "0-" + probeName

// HasStrictServiceNames reports whether the cluster refuses Services whose names begin with a digit, as Kubernetes does
// before 1.36, or without its feature gate RelaxedServiceNameValidation. A dry-run create shows it, since the version
// does not tell the gate. An API server that does not answer is asked again for a while. An error says why this could
// not be found out.
func HasStrictServiceNames(ctx context.Context, c client.Client, namespace string) (strict bool, err error) {
	var last error
	err = wait.PollUntilContextTimeout(ctx, probeInterval, ProbeTimeout, true, func(ctx context.Context) (bool, error) {
		strict, last = probeServiceNames(ctx, c, namespace)
		if last != nil && isUnavailable(last) {
			return false, nil
		}
		return true, last
	})
	return strict, cmp.Or(last, err)
}

// probeServiceNames probes once.
func probeServiceNames(ctx context.Context, c client.Client, namespace string) (bool, error) {
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: digitProbe, Namespace: namespace},
		Spec:       corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Selector: map[string]string{"app": probeName}},
	}
	switch err := c.Create(ctx, service, client.DryRunAll); {
	case err == nil:
		return false, nil
	case apierrors.IsInvalid(err):
		return true, nil
	default:
		return false, fmt.Errorf("creating a Service as a dry run in namespace %s: %w", namespace, err)
	}
}
