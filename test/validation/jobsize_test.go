package validation

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
)

// TestAJobIsPutBackToWhatItWasGranted: users apply their manifest to a running Job, and change its size, and it gets no
// more pods than it has quota for. The Job asked for 9 pods and was granted 2.
func TestAJobIsPutBackToWhatItWasGranted(t *testing.T) {
	const wanted = "muster.dev/wanted-pods"
	server := newServer(t)
	limited := func(parallelism, completions int, more edits) edits {
		return edits{
			"spec>parallelism": parallelism, "spec>completions": completions, "spec>completionMode": "Indexed",
			"metadata>annotations": map[string]any{"muster.dev/asked-pods": "9", "muster.dev/granted-pods": "2"},
		}.with(more)
	}
	elastic := edits{"spec>template>metadata>annotations": map[string]any{"muster.dev/min-replicas": "2",
		"muster.dev/max-replicas": "9"}}
	done := func(indexes string) edits { return edits{"status>completedIndexes": indexes} }
	set := func(parallelism, completions int) edits {
		return edits{"spec>parallelism": parallelism, "spec>completions": completions}
	}
	// The API server hears of each policy by itself.
	probe := server.store(t, server.resource(t, "Job", ""), server.plain(t, "Job"), limited(2, 2, nil))
	set(9, 9).apply(probe.Object)
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute,
		true, func(ctx context.Context) (bool, error) {
			got, err := server.resource(t, "Job", "").Update(ctx, probe.DeepCopy(),
				metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
			if err != nil {
				return false, err
			}
			parallelism, _, _ := unstructured.NestedInt64(got.Object, "spec", "parallelism")
			return parallelism == 2, nil
		})
	if err != nil {
		t.Fatalf("waiting until the policy is enforced: %v", err)
	}
	type size struct {
		Parallelism, Completions int64
		Wanted                   string
	}
	for what, tc := range map[string]struct {
		before, change edits
		user           string
		want           size
	}{
		"its manifest":                      {limited(2, 9, nil), set(9, 9), maker, size{2, 9, ""}},
		"its manifest, by an administrator": {limited(2, 9, nil), set(9, 9), "", size{2, 9, ""}},
		"the operator":                      {limited(2, 9, nil), set(9, 9), operator, size{9, 9, ""}},
		"another size":                      {limited(2, 9, nil), set(5, 5), maker, size{2, 9, ""}},
		"fewer":                             {limited(2, 9, nil), set(1, 9), maker, size{1, 9, ""}},
		"its manifest, after it was paused": {limited(0, 9, nil), set(9, 9), maker, size{2, 9, ""}},
		"completions that follow":           {limited(2, 2, nil), set(9, 9), maker, size{2, 2, ""}},
		"completions that follow, fewer":    {limited(2, 2, nil), set(1, 1), maker, size{1, 1, ""}},
		"completions that follow, paused":   {limited(0, 2, nil), set(9, 9), maker, size{2, 2, ""}},
		"elastic":                           {limited(2, 2, elastic), set(6, 6), maker, size{2, 2, "6"}},
		"elastic, what its user wants already": {limited(2, 2, elastic).with(edits{"metadata>annotations>" + wanted: "6"}),
			set(6, 6), maker, size{2, 2, "6"}},
		"elastic, an index is done":              {limited(2, 2, elastic).with(done("0")), set(6, 6), maker, size{2, 2, ""}},
		"an index is done, fewer":                {limited(2, 3, nil).with(done("0,2")), set(2, 2), maker, size{2, 3, ""}},
		"an index is done, more":                 {limited(1, 1, nil).with(done("0")), set(2, 2), maker, size{2, 1, ""}},
		"an index is done, fewer without a loss": {limited(2, 3, nil).with(done("0-1")), set(2, 2), maker, size{2, 2, ""}},
	} {
		object := server.plain(t, "Job")
		stored := server.store(t, server.resource(t, "Job", ""), object, tc.before)
		tc.change.apply(stored.Object)
		got, err := server.resource(t, "Job", tc.user).Update(t.Context(), stored,
			metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil {
			t.Errorf("%s: refused: %v", what, err)
			continue
		}
		is := size{Wanted: got.GetAnnotations()[wanted]}
		is.Parallelism, _, _ = unstructured.NestedInt64(got.Object, "spec", "parallelism")
		is.Completions, _, _ = unstructured.NestedInt64(got.Object, "spec", "completions")
		if diff := cmp.Diff(tc.want, is); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
}
