package rendezvous

import (
	"strings"
	"sync"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	"github.com/musterhq/muster/api/muster"
)

// ownership checks which job a pod belongs to. Labels alone prove nothing, as whoever creates a pod sets them: a pod
// belongs to a job only if the job controls it, or if a Job that the job's JobSet controls does.
type ownership struct {
	mu sync.Mutex
	// ids holds the rendezvous IDs of JobSets' Jobs, by Job UID.
	ids map[types.UID]string
	// pending holds pods whose Job has not been observed yet, by the UID of the Job and of the pod.
	pending map[types.UID]map[types.UID]*corev1.Pod
	// pendingFor is the UID of the Job that each of these pods waits for, by pod UID: an edited pod no longer
	// says so.
	pendingFor map[types.UID]types.UID
}

func newOwnership() ownership {
	return ownership{ids: map[types.UID]string{}, pending: map[types.UID]map[types.UID]*corev1.Pod{},
		pendingFor: map[types.UID]types.UID{}}
}

// belongs reports whether the pod belongs to the job with the rendezvous ID. A pod whose Job is not known yet is kept
// until the Job is observed.
func (o *ownership) belongs(pod *corev1.Pod, id string, deleted bool) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.forgetPending(pod.UID)
	owner := metav1.GetControllerOf(pod)
	switch {
	case owner == nil:
		return false
	case string(owner.UID) == id:
		// The name must match the index: if another pod already has the name, the job deletes this one as surplus.
		return pod.Name == owner.Name+"-"+breezeml.WorkerType+"-"+pod.Annotations[muster.RendezvousIndexAnnotation]
	case owner.Kind != "Job" || !strings.HasPrefix(owner.APIVersion, batchv1.GroupName+"/") ||
		!strings.HasPrefix(pod.Name, owner.Name+"-"):
		return false
	}
	known, seen := o.ids[owner.UID]
	if deleted || seen {
		return known == id
	}
	if o.pending[owner.UID] == nil {
		o.pending[owner.UID] = map[types.UID]*corev1.Pod{}
	}
	o.pending[owner.UID][pod.UID], o.pendingFor[pod.UID] = pod, owner.UID
	return false
}

// forget forgets a pod that waits for its Job, if it does: it no longer asks for rounds.
func (o *ownership) forget(pod types.UID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.forgetPending(pod)
}

// forgetPending does the same for a caller that holds p.mu.
func (o *ownership) forgetPending(pod types.UID) {
	job, waits := o.pendingFor[pod]
	if !waits {
		return
	}
	delete(o.pendingFor, pod)
	delete(o.pending[job], pod)
	if len(o.pending[job]) == 0 {
		delete(o.pending, job)
	}
}

// updateJob records a Job, and returns the pods that were waiting for it.
func (o *ownership) updateJob(job *batchv1.Job, deleted bool) []*corev1.Pod {
	o.mu.Lock()
	defer o.mu.Unlock()
	if deleted {
		delete(o.ids, job.UID)
		o.release(job.UID)
		return nil
	}
	id := job.Spec.Template.Labels[muster.RendezvousLabel]
	owner := metav1.GetControllerOf(job)
	if id == "" || owner == nil || string(owner.UID) != id || !strings.HasPrefix(job.Name, owner.Name+"-") {
		return nil
	}
	o.ids[job.UID] = id
	return o.release(job.UID)
}

// idOf returns the rendezvous ID of a Job of a JobSet, "" if the Job has none.
func (o *ownership) idOf(job types.UID) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.ids[job]
}

// release returns the pods that were waiting for the Job, which wait no longer. The caller holds p.mu.
func (o *ownership) release(job types.UID) (out []*corev1.Pod) {
	for uid, pod := range o.pending[job] {
		out = append(out, pod)
		delete(o.pendingFor, uid)
	}
	delete(o.pending, job)
	return out
}
