package rendezvous

import (
	"context"
	"fmt"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	"github.com/musterhq/muster/api/muster"
)

// location is what the operator knows about the job of a pod. The zero value means that a later event of the pod will
// tell.
type location struct {
	coordinator coordinator
	// refused says why the pod belongs to no job with agents.
	refused string
	// awaits is the UID of the Job or JobSet whose events will tell.
	awaits types.UID
}

// locate returns the coordinator of the pod's job, if it is known.
func (r *registry) locate(ctx context.Context, agent caller) (location, error) {
	r.mu.Lock()
	found := r.byPod[agent.UID]
	r.mu.Unlock()
	if found != nil {
		return location{coordinator: found}, nil
	}
	var pod corev1.Pod
	if err := r.client.Get(ctx, client.ObjectKey{Namespace: agent.Namespace, Name: agent.Name}, &pod); err != nil ||
		string(pod.UID) != agent.UID {
		return location{}, client.IgnoreNotFound(err)
	}
	set := pod.Labels[jobset.JobSetNameKey]
	switch {
	case pod.Labels[muster.RendezvousLabel] != "":
		return location{}, nil
	case set == "":
		return location{refused: fmt.Sprintf("it has neither the label %s nor %s", muster.RendezvousLabel,
			jobset.JobSetNameKey)}, nil
	}
	return r.locateInJobSet(ctx, &pod, set)
}

// locateInJobSet returns the coordinator of the JobSet with the name if a Job of the JobSet controls the pod. Labels
// alone prove nothing: whoever creates a pod sets them, and the pod with rank 0 is the one that all others connect to.
func (r *registry) locateInJobSet(ctx context.Context, pod *corev1.Pod, name string) (location, error) {
	owner := metav1.GetControllerOf(pod)
	if owner == nil || owner.Kind != "Job" || !strings.HasPrefix(owner.APIVersion, batchv1.GroupName+"/") {
		return location{refused: fmt.Sprintf("it has the label %s of JobSet %s, but no Job controls it",
			jobset.JobSetNameKey, name)}, nil
	}
	var job batchv1.Job
	if err := r.client.Get(ctx, client.ObjectKey{Namespace: pod.Namespace, Name: owner.Name}, &job); err != nil ||
		job.UID != owner.UID {
		return location{awaits: owner.UID}, client.IgnoreNotFound(err)
	}
	set := metav1.GetControllerOf(&job)
	if set == nil || set.Kind != "JobSet" || !strings.HasPrefix(set.APIVersion, jobset.GroupVersion.Group+"/") ||
		set.Name != name {
		return location{refused: fmt.Sprintf("it has the label %s of JobSet %s, which does not control its Job %s",
			jobset.JobSetNameKey, name, job.Name)}, nil
	}
	found, err := r.attemptCoordinatorOf(ctx, client.ObjectKey{Namespace: pod.Namespace, Name: name}, set.UID)
	if err != nil || found == nil {
		return location{awaits: set.UID}, err
	}
	return location{coordinator: found}, nil
}

// attemptCoordinatorOf returns the coordinator of the JobSet with this name and UID; nil if there is none,
// or none any more: the pods of a deleted JobSet still ask.
func (r *registry) attemptCoordinatorOf(ctx context.Context, key client.ObjectKey,
	uid types.UID) (*attemptCoordinator, error) {
	r.mu.Lock()
	found := r.attempts[uid]
	r.mu.Unlock()
	if found != nil {
		return found, nil
	}
	if exists, err := r.jobSetExists(ctx, key, uid); err != nil || !exists {
		return nil, err
	}
	r.mu.Lock()
	found = r.attempts[uid]
	if found == nil {
		found = &attemptCoordinator{client: r.client, key: key, uid: uid}
		r.attempts[uid] = found
	}
	r.mu.Unlock()
	// If the event of the JobSet's deletion was handled before the coordinator was entered, nothing else would
	// remove it.
	exists, err := r.jobSetExists(ctx, key, uid)
	if err == nil && exists {
		return found, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.attempts, uid)
	return nil, err
}

func (r *registry) jobSetExists(ctx context.Context, key client.ObjectKey, uid types.UID) (bool, error) {
	var js jobset.JobSet
	err := r.client.Get(ctx, key, &js)
	return err == nil && js.UID == uid, client.IgnoreNotFound(err)
}
