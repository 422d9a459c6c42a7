package latticejob

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
	"github.com/musterhq/muster/api/muster"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/latticejob/compile"
	"github.com/musterhq/muster/internal/jobs/write"
	"github.com/musterhq/muster/internal/pointers"
	"github.com/musterhq/muster/internal/refusal"
	"github.com/musterhq/muster/internal/workload"
)

// missingServiceTimeout is how long a job waits for a service that it calls: users apply both together,
// and they are observed in any order.
const missingServiceTimeout = 10 * time.Second

// hardTopology is the message for a job that asks for a topology which only Volcano's scheduler supports.
const hardTopology = "spec.topology is Hard, and Muster has no HyperNodes: make it Soft, or leave it out and have the annotation " +
	kueue.PodSetRequiredTopologyAnnotation +
	" of the LatticeJob name the label of the domain that must hold all pods of a task. The job then continues"

func isHard(topology *lattice.NetworkTopology) bool {
	return topology != nil && topology.Mode == lattice.HardTopology
}

// submit compiles the job and applies its objects, the VCJob last.
func (p *planner) submit() {
	result, err := compile.Compile(p.job, p.compileFacts())
	var missing *compile.MissingServiceError
	since := p.job.CreationTimestamp.Add(missingServiceTimeout)
	switch {
	case errors.As(err, &missing) && p.seen.Now.Before(since):
		p.plan.Due = since
		p.status.pend(fmt.Sprintf(lattice.RetryCompileMessage, err))
	case awaitsSharedGPUs(p.job, err):
		p.recheckGPUs()
		p.status.pend(fmt.Sprintf(lattice.RetryCompileMessage, err))
	case err != nil:
		p.status.failCompile(fmt.Sprintf(lattice.CompileFailedMessage, err))
	case p.wasTooLarge():
		p.status.failCompile(p.job.Status.Message)
	case len(result.Missing) > 0 || p.waitsForVolcano(p.seen.Facts):
		missing := result.Missing
		if p.waitsForVolcano(p.seen.Facts) {
			missing = append(missing, schema.GroupKind{Group: volcano.GroupVersion.Group, Kind: "Job"})
		}
		message := fmt.Sprintf("The cluster does not serve %s, which the job needs: it continues once that is installed",
			kinds(missing))
		p.status.pend(message, write.Warning(missingKindReason, message))
	case !p.settings.External && isHard(p.job.Spec.Topology):
		p.status.pend(hardTopology, write.Warning(jobs.InvalidJob, hardTopology))
	case p.seen.Mistake != "":
		p.status.pend(p.seen.Mistake)
	case !p.seen.Admission.MayStart():
		p.recheckGPUs()
		p.status.pend(waiting(p.seen.Admission.Why))
	case p.requestChanged():
		p.plan.Progress.Requeue = true
		p.status.pend("The spec was changed after the job was admitted: it gives up its quota, and queues with its current requests")
	case p.refused() != "":
		p.plan.Progress.Refused = p.refused()
	default:
		p.apply(result)
	}
}

// apply adds the writes that apply the objects. The job is reported as running only once its VCJob is
// observed, which exists only if everything else does.
func (p *planner) apply(result *compile.Result) {
	for _, object := range result.Objects {
		p.plan.AddFirst(write.Apply(object.(client.Object), lattice.FieldManager))
	}
	p.plan.AddFirst(p.removeOfEarlierSpecs(result)...)
	if p.seen.Admission.Grant == jobs.Admitted {
		for task := range pointers.To(result.VCJob.Spec.Tasks) {
			if granted, ok := p.seen.Admission.PodSets[task.Name]; ok {
				task.Template = granted.For(granted.All()).Inject(task.Template)
			}
		}
	}
	if p.settings.External {
		p.labelPods(result.VCJob)
		for task := range pointers.To(result.VCJob.Spec.Tasks) { // other VCJobs are completed by their own API
			task.Template = p.seen.Facts.Agent.LetReport(task.Template, p.job.Namespace, p.job.Name)
		}
	} else {
		p.copyQueueLabels(result.VCJob)
	}
	metav1.SetMetaDataAnnotation(&result.VCJob.ObjectMeta, generationAnnotation, fmt.Sprint(p.job.Generation))
	metav1.SetMetaDataAnnotation(&result.VCJob.ObjectMeta, domainsAnnotation, domainsOf(p.job))
	p.recordGPUs(result.VCJob)
	p.plan.Add(write.Apply(result.VCJob, lattice.FieldManager))
	for _, warning := range result.Warnings {
		p.plan.AddEvents(write.Warning(ignoredReason, warning))
	}
	if len(result.Skipped) > 0 {
		p.plan.AddEvents(write.Warning(skippedKindReason,
			fmt.Sprintf("The cluster does not serve %s: the job runs without it", kinds(result.Skipped))))
	}
	retry := p.job.DeepCopy()
	p.plan.StatusOnError = func(err error) (client.Object, write.Event) {
		if refusal.IsTooLarge(err) {
			retry.Status = p.tooLarge(err)
			return retry, write.Warning(applyFailedReason, err.Error())
		}
		// The time of the first refusal, which is read back, must follow.
		message := workload.Cut(fmt.Sprintf(lattice.RetryApplyMessage, err), messageBytes-len(refusedSince)-len(time.RFC3339))
		if p.seen.Admission.Grant == jobs.Admitted && write.IsRefused(err) {
			since, _ := p.refusedSince()
			message += refusedSince + cmp.Or(since, p.seen.Now).UTC().Format(time.RFC3339)
		}
		retry.Status = lattice.LatticeJobStatus{Phase: lattice.Pending, Message: message}
		return retry, write.Warning(applyFailedReason, message)
	}
}

// requestChanged reports whether the job requests other pods than at its admission. Its spec may change until it runs.
func (v *view) requestChanged() bool {
	if v.seen.Admission.Grant != jobs.Admitted {
		return false
	}
	granted, asked := v.seen.Admission.PodSets, v.describe(v.job, v.seen.Facts).PodSets
	return len(asked) != len(granted) || slices.ContainsFunc(asked, func(podSet kueue.PodSet) bool {
		held, known := granted[string(podSet.Name)]
		return !known || held.Asked != podSet.Count
	}) || !v.seen.Admission.IsFor(asked)
}

// running reports that all objects of the job exist.
func (p *planner) running() {
	message := lattice.SubmittedMessage
	switch {
	case p.settings.External && p.seen.Admission.Grant == jobs.Unqueued && !isManagedQueue(p.job, p.seen.Facts.Queues):
		message += ". Its queue is not managed by Muster, so Muster's quota does not cover it"
	case p.settings.External && p.seen.Admission.Grant == jobs.Waiting:
		// Volcano ran it before its queue was Muster's.
		message += ". It waits for Muster's quota, which does not cover it yet"
	case p.settings.External:
		p.noteRefusedPods()
		if why := p.plan.Progress.Obstacle; why != "" {
			message += ". " + why
		}
	case p.vcjob.Status.State.Reason == muster.RefusedReason:
		message += ". " + p.vcjob.Status.State.Message
	}
	if p.job.Status.Phase != lattice.Running {
		p.status.setStatus(lattice.Running, message, ptr.To(p.compiled()), write.Normal(submittedReason, message))
	}
	p.goOnRunning(message)
	p.restore()
}

// goOnRunning reports the message of a job that runs, and which change of its spec is ignored.
func (p *planner) goOnRunning(message string) {
	p.status.setStatus(lattice.Running, message+p.ignoredChange(), p.job.Status.ObservedGeneration, p.changeEvent()...)
	p.relabelIfChanged()
}

// kinds formats a list of kinds for messages.
func kinds(list []schema.GroupKind) string {
	var out []string
	for _, kind := range list {
		out = append(out, fmt.Sprintf("%s (%s)", kind.Kind, kind.Group))
	}
	return strings.Join(out, " and ")
}

// syncStatus sets the job's status from that of its VCJob.
func (p *planner) syncStatus() {
	state := &p.vcjob.Status.State
	switch {
	case state.Phase == volcano.Completed:
		p.status.setOutcome(lattice.Succeeded, lattice.SucceededMessage,
			write.Normal(succeededReason, lattice.SucceededMessage))
	case state.Phase == volcano.Failed, state.Phase == volcano.Terminated, state.Phase == volcano.Aborted,
		// Volcano never leaves this state if it may not restart the job.
		state.Phase == volcano.Restarting && p.vcjob.Spec.MaxRetry == 0:
		p.status.setOutcome(lattice.Failed, lattice.FailedMessage, write.Warning(failedReason, p.whyFailed()))
	case !p.settings.External && state.Phase == "":
		// No controller has observed the VCJob yet, or its status need not be repeated.
		if !p.resubmitIfChanged() {
			p.relabelIfChanged()
		}
	case !p.settings.External && state.Reason == volcano.WaitingForQuota:
		p.wait(waiting(state.Message))
	case !p.settings.External &&
		slices.Contains([]string{volcano.QueueNotFound, volcano.NoPods, jobs.InvalidJob}, state.Reason):
		p.wait(state.Message)
	default:
		p.running()
	}
}
