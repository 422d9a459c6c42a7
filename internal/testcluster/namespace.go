package testcluster

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Namespace creates a namespace for one test and returns its name once pods can be created in it, that is, when
// kube-controller-manager has created its service account. The namespace is deleted at the end of the test, without
// waiting for its content.
func (c *Cluster) Namespace(t testing.TB) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	if err := c.Client.Create(t.Context(), namespace); err != nil {
		t.Fatalf("making a namespace: %v", err)
	}
	t.Cleanup(func() {
		// The test's context has ended by now.
		if err := c.Client.Delete(context.Background(), namespace); err != nil {
			t.Errorf("deleting namespace %s: %v", namespace.Name, err)
		}
	})
	c.UntilObserved(t, namespace)
	return namespace.Name
}
