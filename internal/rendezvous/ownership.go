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

// parents knows whose pods are whose: labels say what whoever makes a pod wants them to,
// so a pod is a job's only if the job controls it, or a Job of the JobSet that it says.
type ownership struct {
	mu sync.Mutex
	// ids are those of the rounds of JobSets, by the UID of the Job that the JobSet controls.
	ids map[types.UID]string
	// early are pods whose Job was not seen yet, by its UID and their own.
	pending map[types.UID]map[types.UID]*corev1.Pod
}

func newOwnership() ownership {
	return ownership{ids: map[types.UID]string{}, pending: map[types.UID]map[types.UID]*corev1.Pod{}}
}

// bear reports whether the pod belongs to the job whose rounds have the ID. One whose Job
// is not known yet is kept until it is.
func (p *ownership) belongs(pod *corev1.Pod, id string, deleted bool) bool {
	owner := metav1.GetControllerOf(pod)
	switch {
	case owner == nil:
		return false
	case string(owner.UID) == id:
		// A worker of the name is there already, or the job removes it as one too many.
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

// job tells of a Job, and gives the pods that came before it.
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
