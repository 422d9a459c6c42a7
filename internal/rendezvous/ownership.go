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

// ownership checks which job a pod belongs to. Labels alone prove nothing, as whoever creates a pod
// sets them: a pod belongs to a job only if the job controls it, or if a Job that the job's JobSet
// controls does.
type ownership struct {
	mu sync.Mutex
	// ids holds the rendezvous IDs of JobSets' Jobs, by Job UID.
	ids map[types.UID]string
	// pending holds pods whose Job has not been observed yet, by the UID of the Job and of the pod.
	pending map[types.UID]map[types.UID]*corev1.Pod
}

func newOwnership() ownership {
	return ownership{ids: map[types.UID]string{}, pending: map[types.UID]map[types.UID]*corev1.Pod{}}
}

// belongs reports whether the pod belongs to the job with the rendezvous ID. A pod whose Job is not
// known yet is kept until the Job is observed.
func (p *ownership) belongs(pod *corev1.Pod, id string, deleted bool) bool {
	owner := metav1.GetControllerOf(pod)
	switch {
	case owner == nil:
		return false
	case string(owner.UID) == id:
		// The name must match the index: if another pod already has the name, the job deletes this one
		// as surplus.
		return pod.Name == owner.Name+"-"+breezeml.WorkerType+"-"+pod.Annotations[muster.RendezvousIndexAnnotation]
	case owner.Kind != "Job" || !strings.HasPrefix(owner.APIVersion, batchv1.GroupName+"/") || !strings.HasPrefix(pod.Name, owner.Name+"-"):
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	known, seen := p.ids[owner.UID]
	if deleted || seen {
		delete(p.pending[owner.UID], pod.UID)
		if len(p.pending[owner.UID]) == 0 {
			delete(p.pending, owner.UID)
		}
		return known == id
	}
	if p.pending[owner.UID] == nil {
		p.pending[owner.UID] = map[types.UID]*corev1.Pod{}
	}
	p.pending[owner.UID][pod.UID] = pod
	return false
}

// updateJob records a Job, and returns the pods that were waiting for it.
func (p *ownership) updateJob(job *batchv1.Job, deleted bool) []*corev1.Pod {
	p.mu.Lock()
	defer p.mu.Unlock()
	if deleted {
		delete(p.ids, job.UID)
		delete(p.pending, job.UID)
		return nil
	}
	id := job.Spec.Template.Labels[muster.RendezvousLabel]
	owner := metav1.GetControllerOf(job)
	if id == "" || owner == nil || string(owner.UID) != id || !strings.HasPrefix(job.Name, owner.Name+"-") {
		return nil
	}
	p.ids[job.UID] = id
	var out []*corev1.Pod
	for _, pod := range p.pending[job.UID] {
		out = append(out, pod)
	}
	delete(p.pending, job.UID)
	return out
}
