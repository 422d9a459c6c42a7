package observe

import (
	"context"
	"slices"
	"testing"
	"time"
)

// TestJobsAreListedWithoutTheRightToListClusterQueues: only time limits are missing then. Where the right is there,
// they are read, once and in a watch.
func TestJobsAreListedWithoutTheRightToListClusterQueues(t *testing.T) {
	const clusterQueues = "/apis/kueue.x-k8s.io/v1beta1/clusterqueues"
	for answer, want := range map[string]int{
		"forbidden": 0,
		`{"apiVersion":"kueue.x-k8s.io/v1beta1","kind":"ClusterQueueList","metadata":{"resourceVersion":"7"},` +
			`"items":[{"apiVersion":"kueue.x-k8s.io/v1beta1","kind":"ClusterQueue","metadata":{"name":"cq","resourceVersion":"7","uid":"cq"},"spec":{}}]}`: 1,
	} {
		answers := withVCJobs(vcJob("good", "5m"))
		answers["/apis/kueue.x-k8s.io/v1beta1"] = `{"kind":"APIResourceList","groupVersion":"kueue.x-k8s.io/v1beta1","resources":[
			{"name":"workloads","kind":"Workload","namespaced":true},{"name":"localqueues","kind":"LocalQueue","namespaced":true},
			{"name":"clusterqueues","kind":"ClusterQueue","namespaced":false}]}`
		answers[clusterQueues] = answer
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		cluster, err := Open(ctx, served(t, answers, nil))
		if err != nil {
			t.Fatal(err)
		}
		once, err := cluster.Snapshot(ctx, Scope{Limits: true})
		if err != nil {
			t.Fatalf("list with the answer %q: %v", answer, err)
		}
		watch, err := cluster.Watch(ctx, Scope{Limits: true})
		if err != nil {
			t.Fatalf("watch with the answer %q: %v", answer, err)
		}
		followed, err := watch.Snapshot(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if len(once.ClusterQueues) != want || len(followed.ClusterQueues) != want {
			t.Errorf("found %d and, in a watch, %d ClusterQueues, want %d", len(once.ClusterQueues),
				len(followed.ClusterQueues), want)
		}
		if len(once.VCJobs) != 1 || slices.Contains(once.Unseen, "clusterqueues") != (want == 0) {
			t.Errorf("found %d jobs, unseen are %v", len(once.VCJobs), once.Unseen)
		}
	}
}
