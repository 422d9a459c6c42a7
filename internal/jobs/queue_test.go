package jobs

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
)

// jobWith returns a job with the labels, of any kind.
func jobWith(labels map[string]string) *batchv1.Job {
	return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "j", Namespace: "ns", UID: "job-uid", Labels: labels}}
}

func inQueue(name string) map[string]string { return map[string]string{kueue.QueueLabel: name} }

// facts returns the facts of a namespace labelled team=a with the queues.
func facts(queues ...metav1.Object) QueueFacts {
	f := QueueFacts{
		Local: map[string]*kueue.LocalQueue{}, Cluster: map[string]*kueue.ClusterQueue{},
		Namespace: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", Labels: map[string]string{"team": "a"}}},
	}
	for _, q := range queues {
		switch q := q.(type) {
		case *kueue.LocalQueue:
			f.Local[q.Name] = q
		case *kueue.ClusterQueue:
			f.Cluster[q.Name] = q
		}
	}
	return f
}

// userLocalQueue returns a LocalQueue that a user created.
func userLocalQueue(name string) *kueue.LocalQueue {
	return &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"}}
}

// clusterQueueFor returns a ClusterQueue for namespaces with the labels; nil for none.
func clusterQueueFor(name string, labels map[string]string) *kueue.ClusterQueue {
	q := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if labels != nil {
		q.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: labels}
	}
	return q
}

var anyNamespace = map[string]string{}

func TestChooseQueue(t *testing.T) {
	for name, tc := range map[string]struct {
		labels  map[string]string
		field   string
		rule    QueueRule
		facts   QueueFacts
		started bool
		want    queueChoice
	}{
		"a job that names no queue has none": {
			facts: facts(clusterQueueFor("default", anyNamespace)),
		},
		"the label goes before the API's own field": {
			labels: inQueue("by-label"), field: "by-field", facts: facts(userLocalQueue("by-label"), userLocalQueue("by-field")),
			want: queueChoice{Name: "by-label"},
		},
		"without a label the API's own field counts": {
			field: "by-field", facts: facts(userLocalQueue("by-field")),
			want: queueChoice{Name: "by-field"},
		},
		"an empty label is as good as none": {
			labels: inQueue(""), field: "by-field", facts: facts(userLocalQueue("by-field")),
			want: queueChoice{Name: "by-field"},
		},
		"a LocalQueue named default that a person made takes in who names no queue": {
			facts: facts(userLocalQueue("default")),
			want:  queueChoice{Name: "default"},
		},
		"one that Muster made does not, though it is named default": {
			facts: facts(localQueueFor("default", "ns")),
		},
		"nor does a person's of another name": {
			facts: facts(userLocalQueue("main")),
		},
		"a job that runs without a queue is not taken in later": {
			facts: facts(userLocalQueue("default")), started: true,
		},
		"a job that runs and names a queue is": {
			labels: inQueue("q"), facts: facts(userLocalQueue("q")), started: true,
			want: queueChoice{Name: "q"},
		},
		"where a queue is required, who names none goes to the queue default": {
			rule: QueueRequired, facts: facts(clusterQueueFor("default", anyNamespace)),
			want: queueChoice{Name: "default", Make: localQueueFor("default", "ns")},
		},
		"even after it was made by Muster, and though it runs": {
			rule: QueueRequired, facts: facts(localQueueFor("default", "ns")), started: true,
			want: queueChoice{Name: "default"},
		},
		"where a queue is required, a name goes before default": {
			labels: inQueue("q"), rule: QueueRequired, facts: facts(userLocalQueue("default"), userLocalQueue("q")),
			want: queueChoice{Name: "q"},
		},
		"the name of a ClusterQueue that admits the namespace has a LocalQueue made": {
			labels: inQueue("big"), facts: facts(clusterQueueFor("big", map[string]string{"team": "a"})),
			want: queueChoice{Name: "big", Make: localQueueFor("big", "ns")},
		},
		"a LocalQueue goes before the ClusterQueue of its name": {
			labels: inQueue("big"), facts: facts(userLocalQueue("big"), clusterQueueFor("big", anyNamespace)),
			want: queueChoice{Name: "big"},
		},
		"none is made where the ClusterQueue does not admit the namespace": {
			labels: inQueue("big"), facts: facts(clusterQueueFor("big", map[string]string{"team": "b"})),
			want: queueChoice{Name: "big"},
		},
		"nor where it admits no namespace at all": {
			labels: inQueue("big"), facts: facts(clusterQueueFor("big", nil)),
			want: queueChoice{Name: "big"},
		},
		"a name that nobody has is kept, so that the Workload can say so": {
			labels: inQueue("typo"), facts: facts(userLocalQueue("default")),
			want: queueChoice{Name: "typo"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := chooseQueue(jobWith(tc.labels), Description{Queue: tc.field}, tc.rule, tc.facts, tc.started)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("choice (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCreatedLocalQueueLeadsToTheClusterQueueAndIsLabelled(t *testing.T) {
	want := &kueue.LocalQueue{
		ObjectMeta: metav1.ObjectMeta{Name: "big", Namespace: "ns", Labels: map[string]string{"muster.dev/made-for": "big"}},
		Spec:       kueue.LocalQueueSpec{ClusterQueue: "big"},
	}
	if diff := cmp.Diff(want, localQueueFor("big", "ns")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestMadeForLabelIsAValidValue: names of ClusterQueues may be longer than a label value.
func TestMadeForLabelIsAValidValue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a-z0-9][a-z0-9.-]{55,70}[a-z0-9]`).Draw(t, "name of the ClusterQueue")
		value := localQueueFor(name, "ns").Labels[muster.MadeForLabel]
		if errs := validation.IsValidLabelValue(value); len(errs) > 0 || value == "" {
			t.Fatalf("%q: %v", value, errs)
		}
	})
}

func TestOwnedByServed(t *testing.T) {
	served := []schema.GroupKind{{Group: "jobset.x-k8s.io", Kind: "JobSet"}}
	owner := func(apiVersion, kind string, controller bool) []metav1.OwnerReference {
		return []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: "o", UID: "u", Controller: ptr.To(controller)}}
	}
	for name, tc := range map[string]struct {
		owners []metav1.OwnerReference
		want   bool
	}{
		"who has no owner is not":                      {nil, false},
		"the child of a served job is":                 {owner("jobset.x-k8s.io/v1alpha2", "JobSet", true), true},
		"whatever the version":                         {owner("jobset.x-k8s.io/v1", "JobSet", true), true},
		"who is owned but not controlled is not":       {owner("jobset.x-k8s.io/v1alpha2", "JobSet", false), false},
		"the child of another kind of the group isn't": {owner("jobset.x-k8s.io/v1alpha2", "Other", true), false},
		"nor that of the same kind of another group":   {owner("example.com/v1", "JobSet", true), false},
		"nor of an owner whose version makes no sense": {owner("a/b/c", "JobSet", true), false},
	} {
		t.Run(name, func(t *testing.T) {
			job := jobWith(nil)
			job.OwnerReferences = tc.owners
			if got := ownedByServed(job, served); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

// TestJobsCreatedByJobsOfTheirKindAreQueued if their API says so; those created by jobs of other kinds are not.
func TestJobsCreatedByJobsOfTheirKindAreQueued(t *testing.T) {
	own, other := schema.GroupVersionKind{Group: "a.dev", Version: "v1", Kind: "A"}, schema.GroupKind{Group: "b.dev", Kind: "B"}
	served := []schema.GroupKind{own.GroupKind(), other}
	for repeats, want := range map[bool][]schema.GroupKind{false: {own.GroupKind(), other}, true: {other}} {
		if diff := cmp.Diff(want, API[*batchv1.Job]{Kind: own, Repeats: repeats}.queuesFor(served)); diff != "" {
			t.Errorf("repeats %t: %s", repeats, diff)
		}
	}
	if served[0] != own.GroupKind() {
		t.Error("the kinds of others were changed")
	}
}
