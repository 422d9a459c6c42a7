package rendezvous

import (
	"context"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	"github.com/musterhq/muster/api/muster"
)

// coordinatorOf returns the coordinator of the pod's job; nil if it is not known yet.
func (r *registry) coordinatorOf(ctx context.Context, agent caller) (coordinator, error) {
	r.mu.Lock()
	found := r.byPod[agent.UID]
	r.mu.Unlock()
	if found != nil {
		return found, nil
	}
	var pod corev1.Pod
	if err := r.client.Get(ctx, client.ObjectKey{Namespace: agent.Namespace, Name: agent.Name}, &pod); err != nil || string(pod.UID) != agent.UID {
		return nil, client.IgnoreNotFound(err)
	}
	if name := pod.Labels[jobset.JobSetNameKey]; name != "" && pod.Labels[muster.RendezvousLabel] == "" {
		uid, err := r.jobSetOf(ctx, &pod, name)
		if err != nil || uid == "" {
			return nil, err
		}
		return r.attemptCoordinatorOf(ctx, client.ObjectKey{Namespace: agent.Namespace, Name: name}, uid)
	}
	return nil, nil
}

// jobSetOf returns the UID of the JobSet with the name if a Job of it controls the pod. Labels alone prove
// nothing: whoever creates a pod sets them, and the pod with rank 0 is the one that all others connect to.
func (r *registry) jobSetOf(ctx context.Context, pod *corev1.Pod, name string) (types.UID, error) {
	owner := metav1.GetControllerOf(pod)
	if owner == nil || owner.Kind != "Job" || !strings.HasPrefix(owner.APIVersion, batchv1.GroupName+"/") {
		return "", nil
	}
	var job batchv1.Job
	if err := r.client.Get(ctx, client.ObjectKey{Namespace: pod.Namespace, Name: owner.Name}, &job); err != nil || job.UID != owner.UID {
		return "", client.IgnoreNotFound(err)
	}
	set := metav1.GetControllerOf(&job)
	if set == nil || set.Kind != "JobSet" || !strings.HasPrefix(set.APIVersion, jobset.GroupVersion.Group+"/") || set.Name != name {
		return "", nil
	}
	return set.UID, nil
}

// attemptCoordinatorOf returns the coordinator of the JobSet with this name and UID; nil if there is none,
// or none any more: the pods of a deleted JobSet still ask.
func (r *registry) attemptCoordinatorOf(ctx context.Context, key client.ObjectKey, uid types.UID) (coordinator, error) {
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
