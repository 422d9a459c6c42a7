package rendezvous

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/rendezvous/protocol"
)

func controlledBy(version, kind, name, uid string) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: name, UID: types.UID(uid),
		Controller: new(true)}}
}

// newPod returns a pod that requests to join the rounds of the job with UID job-uid.
func newPod(name, sizes, index string, owner []metav1.OwnerReference) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: name, UID: types.UID("uid-" + name), OwnerReferences: owner,
		Labels:      map[string]string{"muster.dev/rendezvous": "job-uid"},
		Annotations: map[string]string{"muster.dev/rendezvous-size": sizes, "muster.dev/rendezvous-index": index},
	}}
}

func (r *registry) has(pod *corev1.Pod) bool {
	r.mu.Lock()
	found := r.byPod[string(pod.UID)]
	r.mu.Unlock()
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
		"a worker":               {newPod("job-worker-0", "1:2", "0", own), true},
		"a pod without an owner": {newPod("job-worker-0", "1:2", "0", nil), false},
		"a pod of another job": {newPod("job-worker-0", "1:2", "0",
			controlledBy("breezeml.ai/v1", "TrainingJob", "job", "other")), false},
		"a pod of another name":    {newPod("mine", "1:2", "0", own), false},
		"a pod with another index": {newPod("job-worker-7", "1:2", "0", own), false},
		"a pod of a Job without a JobSet": {newPod("job-x-0-abcde", "1:2", "",
			controlledBy("batch/v1", "Job", "job-x", "x")), false},
	} {
		h := newRegistry(fake.NewClientBuilder().Build())
		h.updatePod(test.pod, false)
		if got := h.has(test.pod); got != test.want {
			t.Errorf("%s: member = %t, want %t", what, got, test.want)
		}
	}
}

func TestJobSetPodJoinsItsJobSet(t *testing.T) {
	job := func(owner string) *batchv1.Job {
		out := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "js-a-0", UID: "x",
			OwnerReferences: controlledBy("jobset.x-k8s.io/v1alpha2", "JobSet", "js", owner)}}
		out.Spec.Template.Labels = map[string]string{"muster.dev/rendezvous": "job-uid"}
		return out
	}
	for owner, want := range map[string]bool{"job-uid": true, "other": false} {
		for _, podFirst := range []bool{true, false} {
			h, pod := newRegistry(fake.NewClientBuilder().Build()),
				newPod("js-a-0-0-abcde", "1:1", "", controlledBy("batch/v1", "Job", "js-a-0", "x"))
			tell := []any{job(owner), pod}
			if podFirst {
				tell = []any{pod, job(owner)}
			}
			for _, object := range tell {
				h.handler().OnAdd(object, false)
			}
			if got := h.has(pod); got != want {
				t.Errorf("a Job of %s, the pod first %t: member = %t, want %t", owner, podFirst, got, want)
			}
			h.handler().OnDelete(pod)
			h.handler().OnDelete(job(owner))
			if h.kept() > 0 {
				t.Errorf("a Job of %s, the pod first %t: state of a deleted pod or Job is kept", owner, podFirst)
			}
		}
	}
}

// TestPodBelongsToTheJobSetThatControlsItsJob: the owner references decide, not the labels of the pod.
func TestPodBelongsToTheJobSetThatControlsItsJob(t *testing.T) {
	job := func(name, uid, set string) *batchv1.Job {
		return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(uid),
			OwnerReferences: controlledBy("jobset.x-k8s.io/v1alpha2", "JobSet", set, "u")}}
	}
	set := &jobset.JobSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "js", UID: "u"}}
	alone := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "alone", UID: "alone"}}
	for what, test := range map[string]struct {
		owner  []metav1.OwnerReference
		want   bool
		awaits types.UID
	}{
		"a Job of the JobSet":           {controlledBy("batch/v1", "Job", "js-a-0", "a"), true, ""},
		"no owner":                      {nil, false, ""},
		"a Job of another JobSet":       {controlledBy("batch/v1", "Job", "other-a-0", "b"), false, ""},
		"a Job without a JobSet":        {controlledBy("batch/v1", "Job", "alone", "alone"), false, ""},
		"a deleted Job":                 {controlledBy("batch/v1", "Job", "js-a-1", "c"), false, "c"},
		"a recreated Job":               {controlledBy("batch/v1", "Job", "js-a-0", "earlier"), false, "earlier"},
		"another kind of the same name": {controlledBy("example.com/v1", "Job", "js-a-0", "a"), false, ""},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "p", OwnerReferences: test.owner,
			Labels: map[string]string{"jobset.sigs.k8s.io/jobset-name": "js"}}}
		h := newRegistry(clientOf(t, pod, alone, set, job("js-a-0", "a", "js"), job("other-a-0", "b", "other")))
		found, err := h.locate(t.Context(), caller{Namespace: "ns", Name: "p", UID: "p"})
		if err != nil || (found.coordinator != nil) != test.want || found.awaits != test.awaits ||
			(found.refused == "") != (test.want || test.awaits != "") {
			t.Errorf("%s: location = %+v, error %v", what, found, err)
		}
		if remembered := len(h.attempts) > 0; remembered != test.want {
			t.Errorf("%s: state is kept = %t", what, remembered)
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
	h.updatePod(older, false) // an unrelated update of the older pod
	found := h.byPod[string(older.UID)]
	found.observe(caller{Namespace: "ns", Name: newer.Name, UID: string(newer.UID)},
		protocol.Request{State: protocol.Waiting, Join: "a", Address: "10.0.0.1", Port: 1}, 1)
	if answer, says, _ := found.answer(t.Context(), caller{UID: string(newer.UID)},
		protocol.Request{State: protocol.Waiting}, 1); !says || answer.Round == nil || answer.Round.Min != 1 {
		t.Errorf("answer to a single pod = %+v, want a round: the newest pod has a minimum of one", answer)
	}
}

// TestDeletedPodThatSucceededStillEndsTheRound: a command may save and exit 0 on SIGTERM, and a watch that was
// restarted delivers success and deletion in one event. The other members begin another round, which grows when a new
// pod takes its place.
func TestDeletedPodThatSucceededStillEndsTheRound(t *testing.T) {
	own := controlledBy("breezeml.ai/v1", "TrainingJob", "job", "job-uid")
	h := newRegistry(fake.NewClientBuilder().Build())
	send := func(pod *corev1.Pod, request protocol.Request) protocol.Response {
		agent := caller{Namespace: "ns", Name: pod.Name, UID: string(pod.UID)}
		found := h.byPod[agent.UID]
		found.observe(agent, request, 1)
		answer, _, _ := found.answer(t.Context(), agent, request, 1)
		return answer
	}
	waits := func(pod *corev1.Pod, join string) protocol.Response {
		return send(pod, protocol.Request{State: protocol.Waiting, Join: join, Address: "10.0.0.1", Port: 1})
	}
	stays, leaving, joining := newPod("job-worker-0", "1:2", "0", own), newPod("job-worker-1", "1:2", "1", own),
		newPod("job-worker-1", "1:2", "1", own)
	joining.UID = "recreated"
	h.updatePod(stays, false)
	h.updatePod(leaving, false)
	waits(stays, "a")
	part := waits(leaving, "b").Round
	if part == nil || part.Size != 2 {
		t.Fatalf("answer to the second pod = %+v, want a round of both", part)
	}
	runs := protocol.Request{State: protocol.Running, Round: part.Number, Size: 2, Join: "a", Master: part.Master()}
	if send(stays, runs).Over != "" {
		t.Fatal("the round is over before a pod is deleted")
	}
	deleted := leaving.DeepCopy()
	deleted.DeletionTimestamp, deleted.Status.Phase = new(metav1.Now()), corev1.PodSucceeded
	h.updatePod(deleted, false)
	if got := send(stays, runs); got.Over == "" {
		t.Error("the remaining pod continues in a round with a deleted member")
	}
	waits(stays, "c")
	h.updatePod(joining, false)
	waits(joining, "d")
	if again := waits(stays, "e").Round; again == nil || again.Size != 2 {
		t.Errorf("answer after the new pod joined = %+v, want a round of both", again)
	}
}

// TestAttemptsOfAJobSetShareNoRounds: the first pods of the next attempt may exist before the last of the previous one
// are deleted. What had succeeded in that is done again.
func TestAttemptsOfAJobSetShareNoRounds(t *testing.T) {
	h := newRegistry(fake.NewClientBuilder().Build())
	pod := func(name, attempt string) *corev1.Pod {
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "js-" + name + "-0",
			UID:             types.UID(name + attempt),
			OwnerReferences: controlledBy("jobset.x-k8s.io/v1alpha2", "JobSet", "js", "job-uid")}}
		job.Spec.Template.Labels = map[string]string{"muster.dev/rendezvous": "job-uid"}
		h.handler().OnAdd(job, false)
		out := newPod(job.Name+"-0-"+attempt, "3:3", "", controlledBy("batch/v1", "Job", job.Name, string(job.UID)))
		out.Labels["jobset.sigs.k8s.io/restart-attempt"] = attempt
		h.handler().OnAdd(out, false)
		return out
	}
	waits := func(pod *corev1.Pod) *protocol.Round {
		agent, request := caller{Namespace: "ns", Name: pod.Name, UID: string(pod.UID)},
			protocol.Request{State: protocol.Waiting, Join: pod.Name, Address: "10.0.0.1", Port: 1}
		found := h.byPod[agent.UID]
		found.observe(agent, request, 1)
		answer, _, _ := found.answer(t.Context(), agent, request, 1)
		return answer.Round
	}
	ends := func(pod *corev1.Pod, phase corev1.PodPhase) {
		pod = pod.DeepCopy()
		pod.Status.Phase = phase
		h.handler().OnUpdate(pod, pod)
	}
	a, b, c := pod("a", "0"), pod("b", "0"), pod("c", "0")
	waits(a)
	waits(b)
	if part := waits(c); part == nil || part.Size != 3 {
		t.Fatalf("answer to the last pod = %+v, want a round of all", part)
	}
	ends(a, corev1.PodSucceeded)
	ends(b, corev1.PodFailed)
	again := pod("a", "1")
	h.handler().OnDelete(c)
	waits(again)
	waits(pod("b", "1"))
	if part := waits(pod("c", "1")); part == nil || part.Size != 3 {
		t.Errorf("answer to the last pod of the next attempt = %+v, want a round of all", part)
	}
}

// TestMasterAddressIsFromTheNewestRequest: held requests of an agent that is gone, and of a pod that is being deleted,
// are evaluated again with each change. If they replaced newer requests, each would notify the other without end.
func TestMasterAddressIsFromTheNewestRequest(t *testing.T) {
	js := &jobset.JobSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "js"}}
	js.Spec.FailurePolicy = &jobset.FailurePolicy{RestartStrategy: jobset.InPlaceRestart}
	js.Spec.ReplicatedJobs = []jobset.ReplicatedJob{{Name: "a", Replicas: 1}}
	first := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "first",
		UID: "first", Labels: map[string]string{
			jobset.JobIndexKey: "0", jobset.ReplicatedJobNameKey: "a", "batch.kubernetes.io/job-completion-index": "0"}}}
	leaving := first.DeepCopy()
	leaving.Name, leaving.UID, leaving.DeletionTimestamp, leaving.Finalizers = "leaving", "leaving", new(metav1.Now()),
		[]string{"example.com/stays"}
	h := &attemptCoordinator{client: clientOf(t, js, first, leaving), key: client.ObjectKeyFromObject(js), uid: js.UID}
	says := func(pod *corev1.Pod, join, address string, serial uint64) (notifies bool) {
		t.Helper()
		changed := h.changed()
		request := protocol.Request{State: protocol.Running, Round: 1, Join: join, Address: address, Port: 1}
		if _, _, err := h.answer(t.Context(), caller{Namespace: "ns", Name: pod.Name, UID: string(pod.UID)}, request,
			serial); err != nil {
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
		notifies      bool
		master        string
	}{
		{first, "a", "10.0.0.1", 1, true, "10.0.0.1"},
		{first, "a", "10.0.0.1", 1, false, "10.0.0.1"},
		{first, "b", "10.0.0.2", 2, true, "10.0.0.2"},
		{first, "a", "10.0.0.1", 1, false, "10.0.0.2"},
		{leaving, "c", "10.0.0.3", 3, false, "10.0.0.2"},
		{first, "d", "10.0.0.4", 4, true, "10.0.0.4"},
	} {
		if notifies := says(step.pod, step.join, step.address, step.request); notifies != step.notifies {
			t.Errorf("step %d: notifies = %v, want %v", i, notifies, step.notifies)
		}
		if at, _ := h.master(); at != step.master {
			t.Errorf("step %d: master address = %s, want %s", i, at, step.master)
		}
	}
}

// TestFinishedRankZeroIsNotWaitedFor: an operator that restarts later never gets a request from the finished rank 0.
func TestFinishedRankZeroIsNotWaitedFor(t *testing.T) {
	one := int32(1)
	js := &jobset.JobSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "js", UID: "js-uid"}}
	js.Spec.FailurePolicy = &jobset.FailurePolicy{RestartStrategy: jobset.InPlaceRestart}
	js.Spec.ReplicatedJobs = []jobset.ReplicatedJob{{Name: "none"}, {Name: "a", Replicas: 2}}
	js.Status.CurrentInPlaceRestartAttempt = &one
	second := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "second", UID: "second",
		Labels: map[string]string{jobset.JobIndexKey: "1", jobset.ReplicatedJobNameKey: "a",
			"batch.kubernetes.io/job-completion-index": "0"},
		Annotations: map[string]string{jobset.InPlaceRestartAttemptKey: "1", muster.RendezvousJoinAnnotation: "a"}}}
	for name, tc := range map[string]struct {
		done, owner, subdomain string
		master                 string
	}{
		"rank 0 has completed":                        {"0", "js-uid", "", "js-a-0-0.js"},
		"rank 0 and others of its Job have completed": {"0-3,5", "js-uid", "ring", "js-a-0-0.ring"},
		"only others of its Job have completed":       {"1,10", "js-uid", "", ""},
		"none has completed":                          {"", "js-uid", "", ""},
		"a Job of another owner":                      {"0", "another", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			js := js.DeepCopy()
			js.Spec.Network = &jobset.Network{Subdomain: tc.subdomain}
			job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "js-a-0",
				OwnerReferences: controlledBy("jobset.x-k8s.io/v1alpha2", "JobSet", "js", tc.owner)}}
			job.Status.CompletedIndexes = tc.done
			h := &attemptCoordinator{client: clientOf(t, js, second, job), key: client.ObjectKeyFromObject(js), uid: js.UID}
			request := protocol.Request{State: protocol.Waiting, Join: "a"}
			got, answered, err := h.answer(t.Context(), caller{Namespace: "ns", Name: "second", UID: "second"}, request, 1)
			if err != nil || answered != (tc.master != "") {
				t.Fatalf("answered = %v: %+v, error %v", answered, got, err)
			}
			if answered && (got.Round == nil || got.Round.MasterAddress != tc.master || got.Round.Rank != 1 ||
				got.Round.Size != 2) {
				t.Errorf("round = %+v, want rank 1 of 2 and the master's address", got.Round)
			}
		})
	}
}

// TestWaitingAgentsAreNotifiedWhenTheFirstIndexCompletes: agents need not wait for their next request to learn of it.
// The Job reports it later than the pod does.
func TestWaitingAgentsAreNotifiedWhenTheFirstIndexCompletes(t *testing.T) {
	h := newRegistry(nil)
	js := &attemptCoordinator{}
	h.attempts["js-uid"] = js
	completed := func(indexes string) *batchv1.Job {
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "js-a-0",
			OwnerReferences: controlledBy("jobset.x-k8s.io/v1alpha2", "JobSet", "js", "js-uid")}}
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
			t.Errorf("completed indexes from %q to %q: notified = %v, want %v", tc.before, tc.after, notified, tc.notified)
		}
	}
}

// TestSucceededPodsAreKnownToANewOperator: otherwise it would take a member that has succeeded for lost, end the round
// of the others, and never begin another for want of members.
func TestSucceededPodsAreKnownToANewOperator(t *testing.T) {
	own := controlledBy("breezeml.ai/v1", "TrainingJob", "job", "job-uid")
	ended, runs := newPod("job-worker-0", "2:2", "0", own), newPod("job-worker-1", "2:2", "1", own)
	ended.Status.Phase = corev1.PodSucceeded
	for _, order := range [][]*corev1.Pod{{ended, runs}, {runs, ended}} {
		r := newRegistry(fake.NewClientBuilder().Build())
		for _, pod := range order {
			r.updatePod(pod, false)
		}
		agent := caller{Namespace: "ns", Name: runs.Name, UID: string(runs.UID)}
		found := r.byPod[agent.UID]
		request := protocol.Request{State: protocol.Running, Round: 1, Rank: 1, Size: 2, Join: "a",
			Master: "10.0.0.1:1", ID: "1-a"}
		found.observe(agent, request, 1)
		if answer, says, _ := found.answer(t.Context(), agent, request, 1); says {
			t.Errorf("pods listed as %s, %s: answer to the member that runs = %+v, want none", order[0].Name,
				order[1].Name, answer)
		}
		for _, pod := range order {
			r.updatePod(pod, true)
		}
		if r.kept() > 0 {
			t.Errorf("%d pods and %d coordinators of deleted pods are kept", len(r.byPod), len(r.byID))
		}
	}
}
