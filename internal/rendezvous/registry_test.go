package rendezvous

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/rendezvous/protocol"
)

func controlledBy(version, kind, name, uid string) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: name, UID: types.UID(uid), Controller: new(true)}}
}

// newPod returns a pod that asks for the rounds of the job with UID job-uid.
func newPod(name, sizes, index string, owner []metav1.OwnerReference) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: name, UID: types.UID("uid-" + name), OwnerReferences: owner,
		Labels:      map[string]string{"muster.dev/rendezvous": "job-uid"},
		Annotations: map[string]string{"muster.dev/rendezvous-size": sizes, "muster.dev/rendezvous-index": index},
	}}
}

func (h *registry) has(pod *corev1.Pod) bool {
	h.mu.Lock()
	found := h.byPod[string(pod.UID)]
	h.mu.Unlock()
	if found == nil {
		return false
	}
	found.mu.Lock()
	defer found.mu.Unlock()
	return found.group.Knows(string(pod.UID))
}

func TestPodJoinsOnlyItsOwnJob(t *testing.T) {
	own := controlledBy("breezeml.ai/v1", "TrainingJob", "job", "job-uid")
	for what, test := range map[string]struct {
		pod  *corev1.Pod
		want bool
	}{
		"a worker":                     {newPod("job-worker-0", "1:2", "0", own), true},
		"nobody's":                     {newPod("job-worker-0", "1:2", "0", nil), false},
		"another job's":                {newPod("job-worker-0", "1:2", "0", controlledBy("breezeml.ai/v1", "TrainingJob", "job", "other")), false},
		"of another name":              {newPod("mine", "1:2", "0", own), false},
		"of another's index":           {newPod("job-worker-7", "1:2", "0", own), false},
		"of a Job that is no JobSet's": {newPod("job-x-0-abcde", "1:2", "", controlledBy("batch/v1", "Job", "job-x", "x")), false},
	} {
		h := newRegistry(fake.NewClientBuilder().Build())
		h.updatePod(test.pod, false)
		if got := h.has(test.pod); got != test.want {
			t.Errorf("%s is let in: %t", what, got)
		}
	}
}

func TestJobSetPodJoinsItsJobSet(t *testing.T) {
	job := func(owner string) *batchv1.Job {
		out := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "js-a-0", UID: "x", OwnerReferences: controlledBy("jobset.x-k8s.io/v1alpha2", "JobSet", "js", owner)}}
		out.Spec.Template.Labels = map[string]string{"muster.dev/rendezvous": "job-uid"}
		return out
	}
	for owner, want := range map[string]bool{"job-uid": true, "other": false} {
		for _, podFirst := range []bool{true, false} {
			h, pod := newRegistry(fake.NewClientBuilder().Build()), newPod("js-a-0-0-abcde", "1:1", "", controlledBy("batch/v1", "Job", "js-a-0", "x"))
			tell := []any{job(owner), pod}
			if podFirst {
				tell = []any{pod, job(owner)}
			}
			for _, object := range tell {
				h.handler().OnAdd(object, false)
			}
			if got := h.has(pod); got != want {
				t.Errorf("a Job of %s, the pod first %t: let in %t", owner, podFirst, got)
			}
			h.handler().OnDelete(pod)
			h.handler().OnDelete(job(owner))
			if len(h.byPod)+len(h.byID)+len(h.ownership.ids)+len(h.ownership.pending) > 0 {
				t.Errorf("a Job of %s, the pod first %t: something is remembered", owner, podFirst)
			}
		}
	}
}

// Until its Job is observed, the pod has no coordinator.
func TestPodThatAsksBeforeItsJobIsObservedIsLookedUpAgain(t *testing.T) {
	h := newRegistry(fake.NewClientBuilder().Build())
	news := h.arrivals()
	h.handler().OnAdd(&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "js-a-0", UID: "a", OwnerReferences: controlledBy("jobset.x-k8s.io/v1alpha2", "JobSet", "js", "u")}}, false)
	select {
	case <-news:
	default:
		t.Error("nobody who asked is told")
	}
}

// The labels of a pod do not decide.
func TestPodBelongsToTheJobSetThatControlsItsJob(t *testing.T) {
	job := func(name, uid, set string) *batchv1.Job {
		return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(uid), OwnerReferences: controlledBy("jobset.x-k8s.io/v1alpha2", "JobSet", set, "u")}}
	}
	alone := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "alone", UID: "alone"}}
	for what, test := range map[string]struct {
		owner []metav1.OwnerReference
		want  bool
	}{
		"one of its Jobs":            {controlledBy("batch/v1", "Job", "js-a-0", "a"), true},
		"nobody's":                   {nil, false},
		"a Job of another's":         {controlledBy("batch/v1", "Job", "other-a-0", "b"), false},
		"a Job of no JobSet":         {controlledBy("batch/v1", "Job", "alone", "alone"), false},
		"one that is gone":           {controlledBy("batch/v1", "Job", "js-a-1", "c"), false},
		"one that was made anew":     {controlledBy("batch/v1", "Job", "js-a-0", "earlier"), false},
		"something else of the name": {controlledBy("example.com/v1", "Job", "js-a-0", "a"), false},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "p", OwnerReferences: test.owner,
			Labels: map[string]string{"jobset.sigs.k8s.io/jobset-name": "js"}}}
		h := newRegistry(fake.NewClientBuilder().WithObjects(pod, alone, job("js-a-0", "a", "js"), job("other-a-0", "b", "other")).Build())
		found, err := h.coordinatorOf(t.Context(), caller{Namespace: "ns", Name: "p", UID: "p"})
		if err != nil || (found != nil) != test.want {
			t.Errorf("%s is let in: %t, %v", what, found != nil, err)
		}
		if remembered := len(h.attempts) > 0; remembered != test.want {
			t.Errorf("%s: something is remembered: %t", what, remembered)
		}
	}
}

func TestSizesOfTheNewestPodApply(t *testing.T) {
	own := controlledBy("breezeml.ai/v1", "TrainingJob", "job", "job-uid")
	older, newer := newPod("job-worker-0", "2:2", "0", own), newPod("job-worker-1", "1:2", "1", own)
	newer.CreationTimestamp = metav1.NewTime(time.Now())
	older.CreationTimestamp = metav1.NewTime(newer.CreationTimestamp.Add(-time.Hour))
	h := newRegistry(fake.NewClientBuilder().Build())
	h.timeouts.Gather = 0
	h.updatePod(older, false)
	h.updatePod(newer, false)
	h.updatePod(older, false) // an update of something else
	found := h.byPod[string(older.UID)]
	found.observe(caller{Namespace: "ns", Name: newer.Name, UID: string(newer.UID)}, protocol.Request{State: protocol.Waiting, Join: "a", Address: "10.0.0.1", Port: 1}, 1)
	if answer, says, _ := found.answer(t.Context(), caller{UID: string(newer.UID)}, protocol.Request{State: protocol.Waiting}, 1); !says || answer.Round == nil || answer.Round.Min != 1 {
		t.Errorf("one alone is answered %+v, want a round: the job goes on with one", answer)
	}
}

// A command may save and exit 0 on SIGTERM. A watch that was restarted delivers success and deletion in
// one event. The others begin another round, which grows when a pod takes its place.
func TestDeletedPodThatSucceededStillEndsTheRound(t *testing.T) {
	own := controlledBy("breezeml.ai/v1", "TrainingJob", "job", "job-uid")
	h := newRegistry(fake.NewClientBuilder().Build())
	asks := func(pod *corev1.Pod, said protocol.Request) protocol.Response {
		agent := caller{Namespace: "ns", Name: pod.Name, UID: string(pod.UID)}
		found := h.byPod[agent.UID]
		found.observe(agent, said, 1)
		answer, _, _ := found.answer(t.Context(), agent, said, 1)
		return answer
	}
	waits := func(pod *corev1.Pod, join string) protocol.Response {
		return asks(pod, protocol.Request{State: protocol.Waiting, Join: join, Address: "10.0.0.1", Port: 1})
	}
	stays, goes, comes := newPod("job-worker-0", "1:2", "0", own), newPod("job-worker-1", "1:2", "1", own), newPod("job-worker-1", "1:2", "1", own)
	comes.UID = "anew"
	h.updatePod(stays, false)
	h.updatePod(goes, false)
	waits(stays, "a")
	part := waits(goes, "b").Round
	if part == nil || part.Size != 2 {
		t.Fatalf("both are there, and the second is told %+v", part)
	}
	runs := protocol.Request{State: protocol.Running, Round: part.Number, Size: 2, Join: "a", Master: part.Master()}
	if asks(stays, runs).Over != "" {
		t.Fatal("the round is over before anything happens")
	}
	deleted := goes.DeepCopy()
	deleted.DeletionTimestamp, deleted.Status.Phase = new(metav1.Now()), corev1.PodSucceeded
	h.updatePod(deleted, false)
	if got := asks(stays, runs); got.Over == "" {
		t.Error("who stays trains on with one that is gone")
	}
	waits(stays, "c")
	h.updatePod(comes, false)
	waits(comes, "d")
	if again := waits(stays, "e").Round; again == nil || again.Size != 2 {
		t.Errorf("once another has come the first is told %+v, want a round of both", again)
	}
}

// Held requests of an agent that is gone, and of a pod that is being deleted, are evaluated again with
// each change. If they replaced newer requests, each would notify the other without end.
func TestMasterAddressIsFromTheNewestRequest(t *testing.T) {
	js := &jobset.JobSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "js"}}
	js.Spec.FailurePolicy = &jobset.FailurePolicy{RestartStrategy: jobset.InPlaceRestart}
	js.Spec.ReplicatedJobs = []jobset.ReplicatedJob{{Name: "a", Replicas: 1}}
	first := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "first", UID: "first", Labels: map[string]string{
		jobset.JobIndexKey: "0", jobset.ReplicatedJobNameKey: "a", "batch.kubernetes.io/job-completion-index": "0"}}}
	goes := first.DeepCopy()
	goes.Name, goes.UID, goes.DeletionTimestamp, goes.Finalizers = "goes", "goes", new(metav1.Now()), []string{"example.com/stays"}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, jobset.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	h := &attemptCoordinator{client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(js, first, goes).Build(), key: client.ObjectKeyFromObject(js)}
	says := func(pod *corev1.Pod, join, address string, request uint64) (news bool) {
		t.Helper()
		changed := h.changed()
		said := protocol.Request{State: protocol.Running, Round: 1, Join: join, Address: address, Port: 1}
		if _, _, err := h.answer(t.Context(), caller{Namespace: "ns", Name: pod.Name, UID: string(pod.UID)}, said, request); err != nil {
			t.Fatal(err)
		}
		select {
		case <-changed:
			return true
		default:
			return false
		}
	}
	for i, step := range []struct {
		pod           *corev1.Pod
		join, address string
		request       uint64
		news          bool
		master        string
	}{
		{first, "a", "10.0.0.1", 1, true, "10.0.0.1"},
		{first, "a", "10.0.0.1", 1, false, "10.0.0.1"},
		{first, "b", "10.0.0.2", 2, true, "10.0.0.2"},
		{first, "a", "10.0.0.1", 1, false, "10.0.0.2"},
		{goes, "c", "10.0.0.3", 3, false, "10.0.0.2"},
		{first, "d", "10.0.0.4", 4, true, "10.0.0.4"},
	} {
		if news := says(step.pod, step.join, step.address, step.request); news != step.news {
			t.Errorf("step %d is news: %v", i, news)
		}
		if at, _ := h.master(); at != step.master {
			t.Errorf("step %d: the master is at %s, want %s", i, at, step.master)
		}
	}
}

// An operator that restarts later never gets a request from it.
func TestFinishedRankZeroIsNotWaitedFor(t *testing.T) {
	one := int32(1)
	js := &jobset.JobSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "js", UID: "js-uid"}}
	js.Spec.FailurePolicy = &jobset.FailurePolicy{RestartStrategy: jobset.InPlaceRestart}
	js.Spec.ReplicatedJobs = []jobset.ReplicatedJob{{Name: "none"}, {Name: "a", Replicas: 2}}
	js.Status.CurrentInPlaceRestartAttempt = &one
	second := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "second", UID: "second",
		Labels:      map[string]string{jobset.JobIndexKey: "1", jobset.ReplicatedJobNameKey: "a", "batch.kubernetes.io/job-completion-index": "0"},
		Annotations: map[string]string{jobset.InPlaceRestartAttemptKey: "1", muster.RendezvousJoinAnnotation: "a"}}}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, batchv1.AddToScheme, jobset.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	for name, tc := range map[string]struct {
		done, owner, subdomain string
		master                 string
	}{
		"it has ended well":                {"0", "js-uid", "", "js-a-0-0.js"},
		"and others of its Job":            {"0-3,5", "js-uid", "ring", "js-a-0-0.ring"},
		"others of its Job have, it lives": {"1,10", "js-uid", "", ""},
		"nobody has":                       {"", "js-uid", "", ""},
		"it is a Job of somebody else":     {"0", "another", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			js := js.DeepCopy()
			js.Spec.Network = &jobset.Network{Subdomain: tc.subdomain}
			job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "js-a-0", OwnerReferences: controlledBy("jobset.x-k8s.io/v1alpha2", "JobSet", "js", tc.owner)}}
			job.Status.CompletedIndexes = tc.done
			h := &attemptCoordinator{client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(js, second, job).Build(), key: client.ObjectKeyFromObject(js)}
			said := protocol.Request{State: protocol.Waiting, Join: "a"}
			got, answered, err := h.answer(t.Context(), caller{Namespace: "ns", Name: "second", UID: "second"}, said, 1)
			if err != nil || answered != (tc.master != "") {
				t.Fatalf("answered %v: %+v, %v", answered, got, err)
			}
			if answered && (got.Round == nil || got.Round.MasterAddress != tc.master || got.Round.Rank != 1 || got.Round.Size != 2) {
				t.Errorf("told %+v", got.Round)
			}
		})
	}
}

// TestWaitingAgentsAreNotifiedWhenTheFirstIndexCompletes: they need not wait for their next request to hear of it. The Job says so later than
// the pod does.
func TestWaitingAgentsAreNotifiedWhenTheFirstIndexCompletes(t *testing.T) {
	h := newRegistry(nil)
	js := h.attemptCoordinatorOf(client.ObjectKey{Namespace: "ns", Name: "js"})
	completed := func(indexes string) *batchv1.Job {
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "js-a-0", Labels: map[string]string{jobset.JobSetNameKey: "js"}}}
		job.Status.CompletedIndexes = indexes
		return job
	}
	for _, tc := range []struct {
		before, after string
		notified      bool
	}{{"", "1", false}, {"1", "0,1", true}, {"", "0-3", true}, {"0", "0,2", false}} {
		changed := js.changed()
		h.handler().OnUpdate(completed(tc.before), completed(tc.after))
		notified := false
		select {
		case <-changed:
			notified = true
		default:
		}
		if notified != tc.notified {
			t.Errorf("completed indexes from %q to %q: notified %v", tc.before, tc.after, notified)
		}
	}
}
