package workloads

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs"
)

// jobWith returns a job with the labels; its kind does not matter.
func jobWith(labels map[string]string) *batchv1.Job {
	return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "j", Namespace: "ns", UID: "job-uid", Labels: labels}}
}

// inQueue returns the labels of a job in the queue.
func inQueue(name string) map[string]string { return map[string]string{kueue.QueueLabel: name} }

// facts returns the facts of the namespace ns, which has the label team=a, with the queues.
func facts(queues ...metav1.Object) jobs.QueueFacts {
	f := jobs.QueueFacts{
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

// clusterQueueFor returns a ClusterQueue that accepts namespaces with the labels, or no namespace if they are nil.
func clusterQueueFor(name string, labels map[string]string) *kueue.ClusterQueue {
	q := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if labels != nil {
		q.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: labels}
	}
	return q
}

// anyNamespace are the labels for clusterQueueFor that every namespace has.
var anyNamespace = map[string]string{}

func TestChooseQueue(t *testing.T) {
	for name, tc := range map[string]struct {
		labels  map[string]string
		field   string
		rule    jobs.QueueRule
		facts   jobs.QueueFacts
		started bool
		want    Queue
	}{
		"no name": {
			facts: facts(clusterQueueFor("default", anyNamespace)),
		},
		"label before the API's own field": {
			labels: inQueue("by-label"), field: "by-field", facts: facts(userLocalQueue("by-label"), userLocalQueue("by-field")),
			want: Queue{Name: "by-label"},
		},
		"API's own field without a label": {
			field: "by-field", facts: facts(userLocalQueue("by-field")),
			want: Queue{Name: "by-field"},
		},
		"empty label": {
			labels: inQueue(""), field: "by-field", facts: facts(userLocalQueue("by-field")),
			want: Queue{Name: "by-field"},
		},
		"no name, user's LocalQueue default": {
			facts: facts(userLocalQueue("default")),
			want:  Queue{Name: "default"},
		},
		"no name, Muster's LocalQueue default": {
			facts: facts(localQueueFor("default", "ns")),
		},
		"no name, user's LocalQueue of another name": {
			facts: facts(userLocalQueue("main")),
		},
		"no name, user's LocalQueue default, started": {
			facts: facts(userLocalQueue("default")), started: true,
		},
		"name, started": {
			labels: inQueue("q"), facts: facts(userLocalQueue("q")), started: true,
			want: Queue{Name: "q"},
		},
		"required, no name, ClusterQueue default": {
			rule: jobs.QueueRequired, facts: facts(clusterQueueFor("default", anyNamespace)),
			want: Queue{Name: "default", Make: localQueueFor("default", "ns")},
		},
		"required, no name, Muster's LocalQueue default, started": {
			rule: jobs.QueueRequired, facts: facts(localQueueFor("default", "ns")), started: true,
			want: Queue{Name: "default"},
		},
		"required, name": {
			labels: inQueue("q"), rule: jobs.QueueRequired, facts: facts(userLocalQueue("default"), userLocalQueue("q")),
			want: Queue{Name: "q"},
		},
		"name of a ClusterQueue that accepts the namespace": {
			labels: inQueue("big"), facts: facts(clusterQueueFor("big", map[string]string{"team": "a"})),
			want: Queue{Name: "big", Make: localQueueFor("big", "ns")},
		},
		"name of a LocalQueue and a ClusterQueue": {
			labels: inQueue("big"), facts: facts(userLocalQueue("big"), clusterQueueFor("big", anyNamespace)),
			want: Queue{Name: "big"},
		},
		"name of a ClusterQueue for other namespaces": {
			labels: inQueue("big"), facts: facts(clusterQueueFor("big", map[string]string{"team": "b"})),
			want: Queue{Name: "big"},
		},
		"name of a ClusterQueue for no namespaces": {
			labels: inQueue("big"), facts: facts(clusterQueueFor("big", nil)),
			want: Queue{Name: "big"},
		},
		"name of no queue, which the Workload keeps to report it": {
			labels: inQueue("typo"), facts: facts(userLocalQueue("default")),
			want: Queue{Name: "typo"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := chooseQueue(jobWith(tc.labels), jobs.Description{Queue: tc.field}, tc.rule, tc.facts, tc.started)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("choice (-want +got):\n%s", diff)
			}
		})
	}
}

// TestCreatedLocalQueueLeadsToTheClusterQueueAndIsLabelled checks the LocalQueue that Muster creates for a
// ClusterQueue.
func TestCreatedLocalQueueLeadsToTheClusterQueueAndIsLabelled(t *testing.T) {
	want := &kueue.LocalQueue{
		ObjectMeta: metav1.ObjectMeta{Name: "big", Namespace: "ns", Labels: map[string]string{"muster.dev/made-for": "big"}},
		Spec:       kueue.LocalQueueSpec{ClusterQueue: "big"},
	}
	if diff := cmp.Diff(want, localQueueFor("big", "ns")); diff != "" {
		t.Errorf("LocalQueue (-want +got):\n%s", diff)
	}
}

// TestMadeForLabelIsAValidValue: names of ClusterQueues may be longer than a label value.
func TestMadeForLabelIsAValidValue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a-z0-9][a-z0-9.-]{55,70}[a-z0-9]`).Draw(t, "name of the ClusterQueue")
		value := localQueueFor(name, "ns").Labels[muster.MadeForLabel]
		if errs := validation.IsValidLabelValue(value); len(errs) > 0 || value == "" {
			t.Fatalf("the label value %q is invalid: %v", value, errs)
		}
	})
}

// TestOnlyAJobThatIsOlderThanTheQueueRunsOnWithoutIt: a user could make children of a younger one before it is queued,
// by their owner references.
func TestOnlyAJobThatIsOlderThanTheQueueRunsOnWithoutIt(t *testing.T) {
	local := userLocalQueue("default")
	local.CreationTimestamp = metav1.NewTime(now)
	for name, tc := range map[string]struct {
		after    time.Duration // how long after the LocalQueue the job was created
		running  bool
		children int
		want     bool
	}{
		"older, with children":   {-time.Minute, false, 1, true},
		"older, with pods":       {-time.Minute, true, 0, true},
		"older, without either":  {-time.Minute, false, 0, false},
		"younger, with children": {time.Minute, false, 1, false},
		"younger, with pods":     {time.Minute, true, 0, false},
		"of the same second":     {0, false, 1, true},
	} {
		job := jobWith(nil)
		job.CreationTimestamp = metav1.NewTime(now.Add(tc.after))
		if got := runsAlready(job, jobs.Description{Running: tc.running}, facts(local), tc.children); got != tc.want {
			t.Errorf("%s: runs on without the queue: %t, want %t", name, got, tc.want)
		}
	}
}

// TestAMadeLocalQueueCountsOnlyWithItsClusterQueue: a job whose queue was deleted waits like one that names a queue
// which has never been there.
func TestAMadeLocalQueueCountsOnlyWithItsClusterQueue(t *testing.T) {
	made := localQueueFor("team", "ns")
	own := &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "own"},
		Spec: kueue.LocalQueueSpec{ClusterQueue: "gone"}}
	facts := jobs.QueueFacts{Local: map[string]*kueue.LocalQueue{"team": made, "own": own},
		Cluster: map[string]*kueue.ClusterQueue{}}
	const want = "Queue team is neither a LocalQueue of namespace ns nor a ClusterQueue that takes its jobs: there are own"
	if got := facts.NotFound("team", "ns"); got != want {
		t.Errorf("without its ClusterQueue: %q, want %q", got, want)
	}
	if got := facts.NotFound("own", "ns"); got != "" {
		t.Errorf("a user's LocalQueue is said not to be there: %q", got)
	}
	facts.Cluster["team"] = &kueue.ClusterQueue{}
	if got := facts.NotFound("team", "ns"); got != "" || len(facts.Names()) != 2 {
		t.Errorf("with its ClusterQueue: %q, and the queues are %q", got, facts.Names())
	}
}
