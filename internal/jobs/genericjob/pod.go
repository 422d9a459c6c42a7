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

// newPod returns the pod of a replica: its type's template, changed for the run mode, with variables
// expanded, with what admission assigned, and at its place if it has one. If the template was changed
// to need more, or other nodes, the admitted one is used until the next admission.
func (pl *planner) newPod(r *replicas.Replica, seat podspec.Places) *corev1.Pod {
	granted, isGranted := pl.seen.Admission.PodSets[r.Group]
	template := *granted.HeldTemplate(&pl.specs[r.Group].Template).DeepCopy()
	template.Labels = pl.labels(template.Labels, r)
	applyMode(pl.job, r.Group, &template.Spec)
	variables{job: pl.job, replica: r, sizes: pl.sizes}.expandAll(&template.Spec)
	template.Spec.SchedulerName = schedulerName(pl.job, template.Spec.SchedulerName, pl.seen.Facts)
	if isGranted {
		template = granted.At(seat).Inject(template)
	}
	return replicas.NewPod(pl.job.Namespace, *metav1.NewControllerRef(pl.job, kind), r, template)
}

// labels returns the template's labels, overridden by those that identify the replica.
func (pl *planner) labels(own map[string]string, r *replicas.Replica) map[string]string {
	out := make(map[string]string, len(own)+8)
	maps.Copy(out, own)
	maps.Copy(out, map[string]string{
		tensorstack.GenericJobLabel:    pl.job.Name,
		tensorstack.ReplicaLabel:       r.Name,
		tensorstack.ComponentLabel:     tensorstack.ComponentGenericJob,
		tensorstack.ComponentTypeLabel: tensorstack.ComponentTypeUser,
		tensorstack.OwnerNameLabel:     pl.job.Name,
	})
	maps.Copy(out, schedulerLabels(pl.job, r.Group))
	return out
}

// createPodGroup creates the object by which another gang scheduler knows the gang, before the pods. It
// is created again, if it is missing, while a pod is missing or has no node, as nothing would bind the
// pod without it.
func (pl *planner) createPodGroup() {
	if pl.roster.All(func(r *replicas.Replica) bool { return r.Phase != replicas.Creating }) {
		return
	}
	if group := podGroup(pl.job, pl.seen.Facts); group != nil {
		pl.plan.First = append(pl.plan.First, jobs.Create(group).OrWarn(jobs.FailedCreate))
	}
}
