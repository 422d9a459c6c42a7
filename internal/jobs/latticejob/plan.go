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
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/latticejob/compile"
	"github.com/musterhq/muster/internal/refusal"
	"github.com/musterhq/muster/internal/workload"
)

// Reasons of events.
const (
	submittedReason     = "JobSubmitted"
	succeededReason     = "JobSucceeded"
	failedReason        = "JobFailed"
	compileFailedReason = "CompileFailed"
	applyFailedReason   = "ApplyFailed"
	missingKindReason   = "MissingKind"
	skippedKindReason   = "KindSkipped"
	ignoredReason       = "IgnoredInSpec"
	changeReason        = "SpecChangeIgnored"
	leaveFailedReason   = "LeavingGraphFailed"
	evictedReason       = "Evicted"
	lostReason          = "VCJobGone"
)

// missingServiceTimeout is how long a job waits for a service that it calls: users apply both together,
// and they are observed in any order.
const missingServiceTimeout = 10 * time.Second

const (
	// generationAnnotation, on a VCJob, is the generation of the spec that it was compiled from.
	generationAnnotation = "lattice.dev/generation"
	// queueLabelsAnnotation, on a VCJob, holds the labels that were copied to it, as queueLabels
	// formats them.
	queueLabelsAnnotation = "lattice.dev/queue-labels"
	// gateAnnotation, on a VCJob, holds the job's gate of admission as it was copied to it.
	gateAnnotation = "lattice.dev/admission-gated-by"
	// domainsAnnotation, on a VCJob, holds the topology domains that it was compiled with, as domainsOf
	// formats them.
	domainsAnnotation = "lattice.dev/domains"
)

// planner plans one reconcile of a LatticeJob: it holds what was observed, and the plan so far.
type planner struct {
	controller
	seen jobs.Seen[*lattice.LatticeJob]
	// job is a copy whose status is updated.
	job *lattice.LatticeJob
	// vcjob is the job's VCJob; nil if there is none or it is being deleted.
	vcjob *volcano.Job
	plan  jobs.Plan
}

// plan returns what to do about a LatticeJob.
func (c controller) plan(seen jobs.Seen[*lattice.LatticeJob]) jobs.Plan {
	l := &planner{controller: c, seen: seen, job: seen.Job.DeepCopy()}
	for _, child := range jobs.ChildrenOf[*volcano.Job](seen.Children) {
		l.plan.Progress.Active = true
		if child.Name == seen.Job.Name && child.DeletionTimestamp.IsZero() {
			l.vcjob = child
		}
	}
	switch {
	case ended(l.job):
	case hasSchedule(l.job):
		l.planSchedule()
	case c.settings.External && seen.Admission.Grant == jobs.Stopping && !l.isLost():
		l.evict()
	case c.settings.External && seen.Admission.Grant == jobs.Waiting && l.vcjob != nil && l.job.Status.Phase != lattice.Running && !hasStarted(l.vcjob):
		l.deleteQueuedVCJob()
	case l.vcjob != nil:
		l.syncStatus()
	case l.plan.Progress.Active:
		// The last VCJob is terminating, and the next one has the same name. That the VCJob was deleted
		// is reported once its pods are gone.
	case l.isLost():
		l.endLost()
	case l.job.Status.Phase == lattice.Running:
		// It is not known yet whether the VCJob exists.
	default:
		l.submit()
	}
	l.report()
	return l.plan
}

// report adds the progress for the queue, and the status if it changed.
func (p *planner) report() {
	p.plan.Status = p.job
	// Where VCJobs queue, the job may still hold quota from a time when it queued itself; no VCJob
	// reports on those pods.
	p.plan.Progress.Active = p.plan.Progress.Active && p.settings.External
	if ended(p.job) {
		p.plan.Progress.Active = false
		p.plan.Progress.Outcome = &jobs.Outcome{Succeeded: p.job.Status.Phase == lattice.Succeeded, Message: p.job.Status.Message}
		return
	}
	// That pods run is written at once: if the VCJob is deleted, nothing else shows that they did.
	p.plan.StatusYields = !hasSchedule(p.job) && (p.vcjob == nil || p.vcjob.Status.State.Phase == "" || p.vcjob.Status.State.Phase == volcano.Pending)
	if p.vcjob != nil {
		p.plan.Progress.Ready = p.vcjob.Status.State.Phase == volcano.Running
	}
}

// messageBytes bounds the message of the status: errors quote names of any length, and a status for which
// etcd has no room beside the spec would never be written.
const messageBytes = 4096

// setStatus sets the status, and adds the event if the status is new.
func (p *planner) setStatus(phase lattice.JobPhase, message string, generation *int64, event *jobs.Event) {
	message = workload.Cut(message, messageBytes)
	status := lattice.LatticeJobStatus{Phase: phase, Message: message, ObservedGeneration: generation}
	p.setTimes(&status)
	if event != nil && (p.job.Status.Phase != phase || p.job.Status.Message != message) {
		event.WithStatus = true
		p.plan.Events = append(p.plan.Events, *event)
	}
	p.job.Status = status
}

// setTimes sets in the next status when the job began to run, and when it ended.
func (p *planner) setTimes(status *lattice.LatticeJobStatus) {
	if status.Phase == lattice.Pending {
		return
	}
	before, now := &p.job.Status, metav1.NewTime(p.seen.Now).Rfc3339Copy()
	status.StartTime = before.StartTime
	switch {
	case status.Phase != lattice.Running:
		status.CompletionTime = &now
	case before.Phase != lattice.Running:
		status.StartTime = &now
	}
}

// hardTopology is the message for a job that asks for a topology which only Volcano's scheduler
// supports.
const hardTopology = "spec.topology is Hard, and Muster has no HyperNodes: make it Soft, or leave it out and have the annotation " +
	kueue.PodSetRequiredTopologyAnnotation + " of the LatticeJob name the label of the domain that must hold all pods of a task. The job then continues"

func isHard(topology *lattice.NetworkTopology) bool {
	return topology != nil && topology.Mode == lattice.HardTopology
}

// compileFacts returns the facts with which the job is compiled.
func (p *planner) compileFacts() compile.Facts {
	return p.withQueuedGPUs(p.job, p.seen.Facts.Queued, p.facts(p.job, p.seen.Facts, p.seen.Related))
}

// submit compiles the job and applies its objects, the VCJob last.
func (p *planner) submit() {
	result, err := compile.Compile(p.job, p.compileFacts())
	var missing *compile.MissingServiceError
	since := p.job.CreationTimestamp.Add(missingServiceTimeout)
	switch {
	case errors.As(err, &missing) && p.seen.Now.Before(since):
		p.plan.Due = since
		p.setStatus(lattice.Pending, fmt.Sprintf(lattice.RetryCompileMessage, err), nil, nil)
	case awaitsSharedGPUs(p.job, err):
		p.recheckGPUs()
		p.setStatus(lattice.Pending, fmt.Sprintf(lattice.RetryCompileMessage, err), nil, nil)
	case err != nil:
		p.failCompile(fmt.Sprintf(lattice.CompileFailedMessage, err))
	case p.wasTooLarge():
		p.failCompile(p.job.Status.Message)
	case len(result.Missing) > 0 || p.waitsForVolcano(p.seen.Facts):
		missing := result.Missing
		if p.waitsForVolcano(p.seen.Facts) {
			missing = append(missing, schema.GroupKind{Group: volcano.GroupVersion.Group, Kind: "Job"})
		}
		message := fmt.Sprintf("The cluster does not serve %s, which the job needs: it continues once that is installed", kinds(missing))
		p.setStatus(lattice.Pending, message, nil, ptr.To(jobs.Warning(missingKindReason, message)))
	case !p.settings.External && isHard(p.job.Spec.Topology):
		p.setStatus(lattice.Pending, hardTopology, nil, ptr.To(jobs.Warning(jobs.InvalidJob, hardTopology)))
	case p.seen.Mistake != "":
		p.setStatus(lattice.Pending, p.seen.Mistake, nil, nil)
	case !p.seen.Admission.MayStart():
		p.recheckGPUs()
		p.setStatus(lattice.Pending, waiting(p.seen.Admission.Why), nil, nil)
	case p.requestChanged():
		p.plan.Progress.Requeue = true
		p.setStatus(lattice.Pending, "The spec was changed after the job was admitted: it gives up its quota, and queues with its current requests", nil, nil)
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
		p.plan.First = append(p.plan.First, jobs.Apply(object.(client.Object), lattice.FieldManager))
	}
	p.plan.First = append(p.plan.First, p.removeFormer(result)...)
	if p.seen.Admission.Grant == jobs.Admitted {
		for i := range result.VCJob.Spec.Tasks {
			task := &result.VCJob.Spec.Tasks[i]
			if granted, ok := p.seen.Admission.PodSets[task.Name]; ok {
				task.Template = granted.For(granted.All()).Inject(task.Template)
			}
		}
	}
	if p.settings.External {
		p.labelPods(result.VCJob)
	} else {
		p.copyQueueLabels(result.VCJob)
	}
	metav1.SetMetaDataAnnotation(&result.VCJob.ObjectMeta, generationAnnotation, fmt.Sprint(p.job.Generation))
	metav1.SetMetaDataAnnotation(&result.VCJob.ObjectMeta, domainsAnnotation, domainsOf(p.job))
	p.recordGPUs(result.VCJob)
	p.plan.Writes = append(p.plan.Writes, jobs.Apply(result.VCJob, lattice.FieldManager))
	for _, warning := range result.Warnings {
		p.plan.Events = append(p.plan.Events, jobs.Warning(ignoredReason, warning))
	}
	if len(result.Skipped) > 0 {
		p.plan.Events = append(p.plan.Events, jobs.Warning(skippedKindReason, fmt.Sprintf("The cluster does not serve %s: the job runs without it", kinds(result.Skipped))))
	}
	retry := p.job.DeepCopy()
	p.plan.StatusOnError = func(err error) (client.Object, jobs.Event) {
		if refusal.IsTooLarge(err) {
			retry.Status = p.tooLarge(err)
			return retry, jobs.Warning(applyFailedReason, err.Error())
		}
		// The time of the first refusal, which is read back, must follow.
		message := workload.Cut(fmt.Sprintf(lattice.RetryApplyMessage, err), messageBytes-len(refusedSince)-len(time.RFC3339))
		if p.seen.Admission.Grant == jobs.Admitted && jobs.IsRefused(err) {
			since, _ := p.refusedSince()
			message += refusedSince + cmp.Or(since, p.seen.Now).UTC().Format(time.RFC3339)
		}
		retry.Status = lattice.LatticeJobStatus{Phase: lattice.Pending, Message: message}
		return retry, jobs.Warning(applyFailedReason, message)
	}
}

// requestChanged reports whether the job requests other pods than those it was admitted with. Its spec
// may change until it runs.
func (p *planner) requestChanged() bool {
	if p.seen.Admission.Grant != jobs.Admitted {
		return false
	}
	granted, asked := p.seen.Admission.PodSets, p.describe(p.job, p.seen.Facts).PodSets
	return len(asked) != len(granted) || slices.ContainsFunc(asked, func(podSet kueue.PodSet) bool {
		held, known := granted[string(podSet.Name)]
		return !known || held.Asked != podSet.Count
	}) || !p.seen.Admission.IsFor(asked)
}

// refusalTimeout is how long a job keeps its quota while the API server refuses one of its objects.
const refusalTimeout = 15 * time.Second

// refusedSince, followed by the time of the first refusal, ends the message of a job that holds quota
// while one of its objects is refused for a reason that users must fix.
const refusedSince = ", refused since "

// refusedSince returns since when, in this admission and without a break, objects of the job have been
// refused, and why; zero if they have not.
func (p *planner) refusedSince() (since time.Time, why string) {
	why, failed := strings.CutPrefix(p.job.Status.Message, fmt.Sprintf(lattice.RetryApplyMessage, ""))
	at := strings.LastIndex(why, refusedSince)
	if !failed || at < 0 {
		return time.Time{}, ""
	}
	since, err := time.Parse(time.RFC3339, why[at+len(refusedSince):])
	if admitted := p.seen.Admission.UnreadySince; err != nil || admitted.IsZero() || since.Before(admitted.Truncate(time.Second)) {
		return time.Time{}, ""
	}
	return since, why[:at]
}

// refused returns why objects of an admitted job have been refused for so long that the job gives up
// its quota, "" if they have not. The job tries again when it is admitted again.
func (p *planner) refused() string {
	since, why := p.refusedSince()
	if since.IsZero() || p.seen.Now.Before(since.Add(refusalTimeout)) {
		return ""
	}
	return why
}

// kinds formats a list of kinds for messages.
func kinds(list []schema.GroupKind) string {
	var out []string
	for _, kind := range list {
		out = append(out, fmt.Sprintf("%s (%s)", kind.Kind, kind.Group))
	}
	return strings.Join(out, " and ")
}

// waiting returns the message that the job waits for quota, with the queue's reason if there is one.
func waiting(why string) string {
	if why == "" {
		return "Waiting for quota"
	}
	return "Waiting for quota: " + why
}

// hasStarted reports whether pods of the VCJob have run, or it has finished.
func hasStarted(vcjob *volcano.Job) bool {
	status := &vcjob.Status
	return status.State.Phase != "" && status.State.Phase != volcano.Pending || status.Running+status.Succeeded+status.Failed+status.Terminating > 0
}

// deleteQueuedVCJob deletes the VCJob of a job that waits for quota and has not run: it was created when VCJobs
// queued themselves, and now Volcano would run it.
func (p *planner) deleteQueuedVCJob() {
	p.deleteVCJob(metav1.DeletePropagationBackground)
	p.setStatus(lattice.Pending, waiting(p.seen.Admission.Why), nil, nil)
}

// evict stops a job that lost its quota. The job is submitted again once it is admitted. The status is
// written first: a running job without a VCJob is otherwise taken for one whose VCJob was deleted by a
// user.
func (p *planner) evict() {
	switch {
	case p.vcjob != nil:
		p.deleteVCJob(metav1.DeletePropagationForeground)
		p.plan.StatusFirst = true
	case p.job.Status.Phase != lattice.Running:
		return // the status is written, and the remaining pods are terminating
	}
	const message = "Evicted: its pods are stopped, and it waits for quota again"
	p.setStatus(lattice.Pending, message, nil, ptr.To(jobs.Normal(evictedReason, message)))
}
