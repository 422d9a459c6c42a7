package latticejob

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/jobs/latticejob/compile"
	"github.com/musterhq/muster/internal/jobs/write"
)

// restorePoll is how often the objects of a job are looked for while pods that ran before are pending: the ConfigMaps,
// Secrets and ServiceAccounts of a cluster are not watched, for they are many, and others' secrets are none of Muster's
// business.
const restorePoll = 30 * time.Second

// restore creates the objects of a running job that someone has deleted: without its ConfigMap, for example, a pod that
// is started again would never run. An object that exists stays as it is. It costs some requests, and so is done only
// while pods that ran before are started again.
//
// If the spec was changed since the VCJob was made, the deleted objects are not known any more, and stay deleted.
func (p *planner) restore() {
	if !restarts(&p.vcjob.Status) || p.compiled() != p.job.Generation || !p.seen.Admission.MayRun() {
		return
	}
	result, err := compile.Compile(p.job, p.compileFacts())
	if err != nil {
		return // it could be compiled when it was submitted; a service that it calls may be gone since
	}
	for _, object := range result.Objects {
		if metav1.IsControlledBy(object.(client.Object), p.job) {
			p.plan.AddFirst(write.Create(object.(client.Object)).OrWarn(applyFailedReason))
		}
	}
	p.plan.DueBy(p.seen.Now.Add(restorePoll))
}

// restarts reports whether pods of a VCJob are started though others ran before.
func restarts(status *volcano.JobStatus) bool {
	ran := status.RetryCount > 0 || status.Running+status.Succeeded+status.Failed > 0
	return ran && (status.Pending > 0 || status.State.Phase == volcano.Restarting)
}
