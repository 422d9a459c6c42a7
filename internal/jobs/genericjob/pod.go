package genericjob

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/podspec"
	"github.com/musterhq/muster/internal/replicas"
)

// newPod is the pod of a replica as it is made: the template of its type, as the run
// mode has it, with its variables in place, and with what admission gave its pod set,
// at its seat if it has one. A template that was changed to need more, or other nodes, counts from
// the next admission on.
func (l *look) newPod(r *replicas.Replica, seat podspec.Places) *corev1.Pod {
	granted, isGranted := l.seen.Admission.PodSets[r.Group]
	template := *granted.HeldTemplate(&l.specs[r.Group].Template).DeepCopy()
	template.Labels = l.labels(template.Labels, r)
	applyMode(l.job, r.Group, &template.Spec)
	variables{job: l.job, replica: r, sizes: l.sizes}.expandAll(&template.Spec)
	template.Spec.SchedulerName = schedulerName(l.job, template.Spec.SchedulerName, l.seen.Facts)
	if isGranted {
		template = l.place(granted, r, seat).Inject(template)
	}
	return replicas.NewPod(l.job.Namespace, *metav1.NewControllerRef(l.job, kind), r, template)
}

// place is what admission adds to the replica's pod. Where fewer pods were admitted,
// because others had ended by then, each is given one of their places once it is there.
func (l *look) place(granted jobs.PodSetAdmission, r *replicas.Replica, seat podspec.Places) podspec.Injection {
	if granted.Places.Count() < l.sizes[r.Group] {
		seat = nil
	}
	return granted.At(seat)
}

// labels are those of the template and, winning over them, those by which a pod is
// known as the replica's.
func (l *look) labels(own map[string]string, r *replicas.Replica) map[string]string {
	out := make(map[string]string, len(own)+8)
	maps.Copy(out, own)
	maps.Copy(out, map[string]string{
		tensorstack.GenericJobLabel:    l.job.Name,
		tensorstack.ReplicaLabel:       r.Name,
		tensorstack.ComponentLabel:     tensorstack.ComponentGenericJob,
		tensorstack.ComponentTypeLabel: tensorstack.ComponentTypeUser,
		tensorstack.OwnerNameLabel:     l.job.Name,
	})
	maps.Copy(out, schedulerLabels(l.job, r.Group))
	return out
}

// createPodGroup makes what a scheduler that forms gangs by itself knows the gang by,
// before the pods. It is asked for as long as a pod is to be made or has no node: nobody
// would bind it without.
func (l *look) createPodGroup() {
	if l.roster.All(func(r *replicas.Replica) bool { return r.Phase != replicas.Creating }) {
		return
	}
	if group := podGroup(l.job, l.seen.Facts); group != nil {
		l.plan.First = append(l.plan.First, jobs.Create(group).OrWarn(jobs.FailedCreate))
	}
}

// createPods makes the pods that are missing.
func (l *look) createPods() {
	missing := l.roster.Missing()
	if len(missing) == 0 {
		return
	}
	seats := map[string]map[int32]podspec.Places{}
	for group, granted := range l.seen.Admission.PodSets {
		seats[group] = l.roster.AssignPlaces(group, granted.Places)
	}
	for _, r := range missing {
		l.plan.Writes = append(l.plan.Writes, jobs.Create(l.newPod(r, seats[r.Group][r.Index])).OrWarn(jobs.FailedCreate))
	}
}
