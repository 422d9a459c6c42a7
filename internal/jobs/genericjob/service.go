package genericjob

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/replicas"
)

// serviceFailedReason is the reason of the event for a Service that could not be created.
const serviceFailedReason = "FailedCreateService"

// hasServices reports whether each replica has a Service.
func hasServices(job *tensorstack.GenericJob) bool {
	return job.Spec.Service != nil && len(job.Spec.Service.Ports) > 0
}

// createServices creates the missing Services, those of replicas without a pod before any pod: replicas that do not find
// each other run for nothing. Services stay until the job is deleted: they cost nothing, and a replica keeps its name.
func (pl *planner) createServices() {
	if !hasServices(pl.job) {
		return
	}
	there := map[string]bool{}
	for _, service := range jobs.ChildrenOf[*corev1.Service](pl.seen.Children) {
		there[service.Name] = true
	}
	owner := *metav1.NewControllerRef(pl.job, kind)
	for i := range pl.roster.Replicas {
		if r := &pl.roster.Replicas[i]; !there[r.Name] {
			service := replicas.NewService(pl.job.Namespace, owner, r, tensorstack.ReplicaLabel, pl.job.Spec.Service.Ports)
			pl.plan.CreateService(service, serviceFailedReason, r.Pod == nil)
		}
	}
}
