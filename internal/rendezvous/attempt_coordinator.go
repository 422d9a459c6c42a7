package rendezvous

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/rendezvous/attempt"
	"github.com/musterhq/muster/internal/rendezvous/protocol"
)

// attemptCoordinator serves a JobSet that restarts in place. It remembers only the address of rank 0; everything else
// is in the JobSet's status and in the annotations of its pods.
type attemptCoordinator struct {
	broadcast
	client client.Client
	key    client.ObjectKey
	uid    types.UID

	mu sync.Mutex
	// first is the newest request of rank 0's agent, and firstAt its serial. A pod is assigned an attempt only in
	// answer to a request, so once all pods have one, rank 0 has asked.
	first   protocol.Request
	firstAt uint64
}

func (a *attemptCoordinator) observe(caller, protocol.Request, uint64) bool { return true }

// disconnected does nothing: the attempt of a pod is in its annotations.
func (a *attemptCoordinator) disconnected(caller, uint64) {}

func (a *attemptCoordinator) answer(ctx context.Context, agent caller, request protocol.Request,
	serial uint64) (protocol.Response, bool, error) {
	if request.State == protocol.Done {
		return protocol.Response{}, true, nil
	}
	var js jobset.JobSet
	if err := a.client.Get(ctx, a.key, &js); err != nil || js.UID != a.uid {
		return protocol.Response{}, false, client.IgnoreNotFound(err)
	}
	if js.Spec.FailurePolicy == nil || js.Spec.FailurePolicy.RestartStrategy != jobset.InPlaceRestart {
		return protocol.Response{Refused: fmt.Sprintf(
			"JobSet %s does not restart in place, and the agent was not added to it", js.Name)}, true, nil
	}
	var pod corev1.Pod
	if err := a.client.Get(ctx, client.ObjectKey{Namespace: agent.Namespace, Name: agent.Name}, &pod); err != nil ||
		string(pod.UID) != agent.UID {
		return protocol.Response{}, false, client.IgnoreNotFound(err)
	}
	pods, err := a.podsByJob(ctx, &js)
	if err != nil {
		return protocol.Response{}, false, err
	}
	rank, size, ok := rankOf(&js, pods, &pod)
	if !ok {
		return protocol.Response{Refused: "the pod does not have the labels of a pod of JobSet " + js.Name}, true, nil
	}
	if rank == 0 && pod.DeletionTimestamp.IsZero() {
		a.recordMaster(request, serial)
	}
	decision := attempt.Decide(observed(&js, &pod), request)
	switch {
	case decision.Over != "":
		return protocol.Response{Over: decision.Over}, true, nil
	case decision.Assign != nil:
		return protocol.Response{}, false, a.assign(ctx, &pod, *decision.Assign, request.Join)
	case decision.Go != nil:
		address, port, err := a.masterOf(ctx, &js)
		if err != nil || address == "" {
			return protocol.Response{}, false, err
		}
		return protocol.Response{Round: &protocol.Round{
			Number: attempt.Number(*decision.Go), Rank: rank, Size: size, MasterAddress: address, MasterPort: port,
			Min: size, Max: size,
		}}, true, nil
	}
	return protocol.Response{}, false, nil
}

// recordMaster remembers the address of rank 0, and notifies the agents that wait for it. A held request of an agent
// that is gone is evaluated again with each change; its lower serial keeps it from replacing a newer address.
func (a *attemptCoordinator) recordMaster(request protocol.Request, serial uint64) {
	a.mu.Lock()
	if serial < a.firstAt {
		a.mu.Unlock()
		return
	}
	changed := a.first.Join != request.Join
	a.first, a.firstAt = request, serial
	a.mu.Unlock()
	if changed {
		a.notify()
	}
}

// master returns the address of rank 0; empty if it is not known yet.
func (a *attemptCoordinator) master() (string, int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.first.Address, a.first.Port
}

// masterOf returns the address of rank 0 as master does. If rank 0 has succeeded before this operator started, it never
// asks again: the others are then given its former host name. Nothing listens there any more, as would be so at its
// former address; programs that do not need rank 0 can go on.
func (a *attemptCoordinator) masterOf(ctx context.Context, js *jobset.JobSet) (string, int, error) {
	if address, port := a.master(); address != "" {
		return address, port, nil
	}
	name := firstJob(js)
	var job batchv1.Job
	if err := a.client.Get(ctx, client.ObjectKey{Namespace: js.Namespace, Name: name}, &job); err != nil ||
		!metav1.IsControlledBy(&job, js) {
		return "", 0, client.IgnoreNotFound(err)
	}
	if !completedFirstIndex(&job) {
		return "", 0, nil
	}
	subdomain := js.Name
	if js.Spec.Network != nil {
		subdomain = cmp.Or(js.Spec.Network.Subdomain, subdomain)
	}
	return name + "-0." + subdomain, protocol.DefaultMasterPort, nil
}

// completedFirstIndex reports whether the pod of the Job's index 0 has completed.
func completedFirstIndex(job *batchv1.Job) bool {
	lowest, _, _ := strings.Cut(job.Status.CompletedIndexes, ",")
	lowest, _, _ = strings.Cut(lowest, "-")
	return lowest == "0"
}

// firstJob returns the name of the Job to which the pod with rank 0 belongs.
func firstJob(js *jobset.JobSet) string {
	for i := range js.Spec.ReplicatedJobs {
		if rj := &js.Spec.ReplicatedJobs[i]; rj.Replicas > 0 && podsOf(&rj.Template.Spec) > 0 {
			return js.Name + "-" + rj.Name + "-0"
		}
	}
	return ""
}

// assign records the pod's attempt in its annotations.
func (a *attemptCoordinator) assign(ctx context.Context, pod *corev1.Pod, number int32, join string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": pod.UID, // guards against a new pod with the same name
		"annotations": map[string]string{
			jobset.InPlaceRestartAttemptKey: strconv.Itoa(int(number)),
			muster.RendezvousJoinAnnotation: join,
		},
	}})
	if err != nil {
		return err
	}
	target := &corev1.Pod{}
	target.Namespace, target.Name = pod.Namespace, pod.Name
	if err := a.client.Patch(ctx, target, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("saying that pod %s is in attempt %d: %w", client.ObjectKeyFromObject(pod), number, err)
	}
	return nil
}

func observed(js *jobset.JobSet, pod *corev1.Pod) attempt.Observed {
	out := attempt.Observed{
		Current: js.Status.CurrentInPlaceRestartAttempt, Previous: js.Status.PreviousInPlaceRestartAttempt,
		Join: pod.Annotations[muster.RendezvousJoinAnnotation],
	}
	_, out.Disabled = js.Annotations[jobset.DisableInPlaceRestartKey]
	if n, err := strconv.ParseInt(pod.Annotations[jobset.InPlaceRestartAttemptKey], 10, 32); err == nil && n >= 0 {
		out.Attempt = ptr.To(int32(n))
	}
	return out
}

// podsByJob returns how many pods each Job of a replicated job runs at a time, in the order of the spec. Jobs that were
// made larger in the spec may be smaller than that until they get more quota: nobody must wait for pods that do not
// come. All Jobs of a replicated job are of one size.
func (a *attemptCoordinator) podsByJob(ctx context.Context, js *jobset.JobSet) ([]int, error) {
	pods := make([]int, len(js.Spec.ReplicatedJobs))
	for i := range js.Spec.ReplicatedJobs {
		rj := &js.Spec.ReplicatedJobs[i]
		pods[i] = podsOf(&rj.Template.Spec)
		var job batchv1.Job
		if err := a.client.Get(ctx, client.ObjectKey{Namespace: js.Namespace, Name: js.Name + "-" + rj.Name + "-0"},
			&job); client.IgnoreNotFound(err) != nil {
			return nil, err
		} else if err == nil && metav1.IsControlledBy(&job, js) {
			pods[i] = min(pods[i], podsOf(&job.Spec))
		}
	}
	return pods, nil
}

// rankOf returns the rank of a pod among all pods of the JobSet, in the order of its spec, and their number. podsByJob
// is as from podsByJob.
func rankOf(js *jobset.JobSet, podsByJob []int, pod *corev1.Pod) (rank, size int, ok bool) {
	job, err1 := strconv.Atoi(pod.Labels[jobset.JobIndexKey])
	index, err2 := strconv.Atoi(cmp.Or(pod.Labels[batchv1.JobCompletionIndexAnnotation],
		pod.Annotations[batchv1.JobCompletionIndexAnnotation]))
	if err1 != nil || err2 != nil {
		return 0, 0, false
	}
	for i := range js.Spec.ReplicatedJobs {
		rj, pods := &js.Spec.ReplicatedJobs[i], podsByJob[i]
		if rj.Name == pod.Labels[jobset.ReplicatedJobNameKey] {
			rank, ok = size+job*pods+index, true
		}
		size += int(rj.Replicas) * pods
	}
	return rank, size, ok
}

// podsOf returns how many pods a Job runs at a time.
func podsOf(spec *batchv1.JobSpec) int {
	parallelism := ptr.Deref(spec.Parallelism, 1)
	return int(min(parallelism, ptr.Deref(spec.Completions, parallelism)))
}
