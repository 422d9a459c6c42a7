package watching

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// queueLister lists ClusterQueues of these names, and counts how often.
type queueLister struct {
	client.Reader
	names []string
	lists int
}

func (q *queueLister) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	q.lists++
	found := list.(*kueue.ClusterQueueList)
	for _, name := range q.names {
		found.Items = append(found.Items, kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	return nil
}

// TestClusterQueuesAreListedOncePerEvent: each reconcile listed them all.
func TestClusterQueuesAreListedOncePerEvent(t *testing.T) {
	var queues ClusterQueues
	from := &queueLister{names: []string{"a"}}
	read := func(lists int, names ...string) {
		t.Helper()
		known, err := queues.Read(t.Context(), from)
		if err != nil || len(known) != len(names) || from.lists != lists {
			t.Fatalf("read %d ClusterQueues (error %v) with %d lists in all, want %v and %d", len(known), err,
				from.lists, names, lists)
		}
		for _, name := range names {
			if known[name] == nil || known[name].Name != name {
				t.Errorf("ClusterQueue %s is missing", name)
			}
		}
	}
	read(1, "a")
	read(2, "a") // without events it cannot know of changes
	events := queues.Forget()
	read(3, "a")
	read(3, "a")
	from.names = append(from.names, "b")
	if !events.Create(event.CreateEvent{Object: &kueue.ClusterQueue{}}) {
		t.Error("the event of the new ClusterQueue is held back")
	}
	read(4, "a", "b")
	read(4, "a", "b")
}

// TestJobsFollowOnlyWhatAClusterQueueTakes: a change of the quota reconciled all jobs that name the queue.
func TestJobsFollowOnlyWhatAClusterQueueTakes(t *testing.T) {
	of := func(nominal string, selector *metav1.LabelSelector, generation int64) *kueue.ClusterQueue {
		return &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Generation: generation},
			Spec: kueue.ClusterQueueSpec{NamespaceSelector: selector,
				ResourceGroups: []kueue.ResourceGroup{
					{Flavors: []kueue.FlavorQuotas{{Resources: []kueue.ResourceQuota{{NominalQuota: resource.MustParse(nominal)}}}}}}}}
	}
	all, some := &metav1.LabelSelector{}, &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}
	if TakesOtherJobs.Update(event.UpdateEvent{ObjectOld: of("3", some, 1), ObjectNew: of("2", some, 2)}) {
		t.Error("another quota reconciles the jobs")
	}
	for _, other := range []*metav1.LabelSelector{all, nil} {
		if !TakesOtherJobs.Update(event.UpdateEvent{ObjectOld: of("3", some, 1), ObjectNew: of("3", other, 2)}) {
			t.Errorf("the jobs do not follow a change of the selector to %v", other)
		}
	}
	if !TakesOtherJobs.Create(event.CreateEvent{}) || !TakesOtherJobs.Delete(event.DeleteEvent{}) {
		t.Error("the jobs do not follow the creation and the deletion of a queue")
	}
}
