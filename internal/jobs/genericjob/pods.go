package genericjob

import (
	corev1 "k8s.io/api/core/v1"

	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/write"
	"github.com/musterhq/muster/internal/podspec"
	"github.com/musterhq/muster/internal/replicas"
)

// view is what a plan is made from: the job, whose status is brought up to date, and its pods.
type view struct {
	seen jobs.Seen[*tensorstack.GenericJob]
	// job is the observed job with a status of its own, parts of which are replaced. Everything below them is shared with
	// the observed job and must not be changed: a deep copy of thousands of replicas would be most of the cost of a
	// reconcile.
	job   *tensorstack.GenericJob
	specs map[string]*tensorstack.ReplicaSpec
	// sizes is the number of replicas of each type.
	sizes  map[string]int32
	roster *replicas.Roster
	// lost are failed pods that do not count, as they failed through a disruption.
	lost []*corev1.Pod
	// failed is the first replica that has failed, as observed; nil if none has.
	failed *replicas.Replica
}

// newPod returns the pod of a replica: its type's template, changed for the run mode, with variables
// expanded, with what admission assigned, and at its place if it has one. If the template was changed
// to need more, or other nodes, the admitted one is used until the next admission.
func (v *view) newPod(r *replicas.Replica, seat podspec.Places) *corev1.Pod {
	granted, isGranted := v.seen.Admission.PodSets[r.Group]
	template := *granted.HeldTemplate(&v.specs[r.Group].Template).DeepCopy()
	template.Labels = v.labels(template.Labels, r)
	applyMode(v.job, r.Group, &template.Spec)
	variables{job: v.job, replica: r, sizes: v.sizes}.expandAll(&template.Spec)
	template = v.seen.Facts.Agent.LetReport(template, v.job.Namespace, v.job.Name)
	template.Spec.SchedulerName = schedulerName(v.job, template.Spec.SchedulerName, v.seen.Facts)
	if isGranted {
		template = granted.At(seat).Inject(template)
	}
	return replicas.NewPod(v.job, kind, r, template)
}

// labels returns the template's labels, overridden by the labels that identify the replica.
func (v *view) labels(own map[string]string, r *replicas.Replica) map[string]string {
	return podspec.Merged(podspec.Merged(own, map[string]string{
		tensorstack.GenericJobLabel:    v.job.Name,
		tensorstack.ReplicaLabel:       r.Name,
		tensorstack.ComponentLabel:     tensorstack.ComponentGenericJob,
		tensorstack.ComponentTypeLabel: tensorstack.ComponentTypeUser,
		tensorstack.OwnerNameLabel:     v.job.Name,
	}), schedulerLabels(v.job, r.Group))
}

// createPodGroup creates the object by which another gang scheduler knows the gang, before the pods. It is created
// again, if it is missing, while a pod is missing or has no node, as nothing would bind the pod without it.
func (p *planner) createPodGroup() {
	if p.roster.First(replicas.In(replicas.Creating)) == nil {
		return
	}
	if group := podGroup(p.job, p.seen.Facts); group != nil {
		p.plan.AddFirst(write.Create(group).OrWarn(jobs.FailedCreate))
	}
}

// kind is the kind GenericJob.
var kind = tensorstack.GroupVersion.WithKind("GenericJob")
