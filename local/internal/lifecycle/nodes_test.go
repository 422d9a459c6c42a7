package lifecycle

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
)

func TestSuperfluousNodesOfAnEarlierStartAreDeleted(t *testing.T) {
	for _, test := range []struct {
		name       string
		keep       int
		have, want []string
	}{
		{"one of three nodes is kept", 1, []string{"local-0", "local-1", "local-2"}, []string{"local-0"}},
		{"no node is kept", 0, []string{"local-0", "local-10"}, nil},
		{"nodes of other owners are kept", 0, []string{"local", "local-x", "localhost", "sim-00000", "worker-3"},
			[]string{"local", "local-x", "localhost", "sim-00000", "worker-3"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var nodes []runtime.Object
			for _, name := range test.have {
				nodes = append(nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
			}
			client := fake.NewClientset(nodes...)
			if err := removeExecNodes(t.Context(), client, test.keep); err != nil {
				t.Fatal(err)
			}
			left, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, node := range left.Items {
				got = append(got, node.Name)
			}
			slices.Sort(got)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("nodes left (-want +got):\n%s", diff)
			}
		})
	}
}

func TestComponentsOutliveTheContextOfTheirStart(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	lifetime, err := startWithin(ctx, func(ctx context.Context) (context.Context, error) { return ctx, nil })
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := lifetime.Err(); err != nil {
		t.Errorf("the component ended with the context of its start: %v", err)
	}
}

func TestStartIsCancelledWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	_, err := startWithin(ctx, func(ctx context.Context) (any, error) {
		cancel()
		<-ctx.Done()
		return nil, ctx.Err()
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("start = %v, want the context's error", err)
	}
}
