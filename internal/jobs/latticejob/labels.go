package latticejob

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
	"github.com/musterhq/muster/api/muster"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/jobs/latticejob/compile"
	"github.com/musterhq/muster/internal/jobs/write"
	"github.com/musterhq/muster/internal/pointers"
)

// labelPods labels the VCJob's pods as the LatticeJob's, so that their usage counts as the job's until
// they are gone, even if it is deleted.
func (v *view) labelPods(vcjob *volcano.Job) {
	for task := range pointers.To(vcjob.Spec.Tasks) {
		metav1.SetMetaDataLabel(&task.Template.ObjectMeta, muster.JobUIDLabel, string(v.job.UID))
	}
}

// gateOf returns the controllers that hold back the job's admission, "" if there are none.
func gateOf(job *lattice.LatticeJob) string { return job.Annotations[kueue.AdmissionGatedByAnnotation] }

// estimateOf returns how long the job is expected to take, "" if it does not say.
func estimateOf(job *lattice.LatticeJob) string {
	return job.Annotations[muster.ExpectedDurationAnnotation]
}

// copyQueueLabels copies to the VCJob the labels that control how the job is queued, what holds back its admission, and
// how long it is expected to take.
func (v *view) copyQueueLabels(vcjob *volcano.Job) {
	for key, value := range v.job.Labels {
		if isQueueLabel(key) {
			metav1.SetMetaDataLabel(&vcjob.ObjectMeta, key, value)
		}
	}
	if labels := queueLabels(v.job); labels != "" {
		metav1.SetMetaDataAnnotation(&vcjob.ObjectMeta, queueLabelsAnnotation, labels)
	}
	if gate := gateOf(v.job); gate != "" {
		metav1.SetMetaDataAnnotation(&vcjob.ObjectMeta, kueue.AdmissionGatedByAnnotation, gate)
		metav1.SetMetaDataAnnotation(&vcjob.ObjectMeta, gateAnnotation, gate)
	}
	if estimate := estimateOf(v.job); estimate != "" {
		metav1.SetMetaDataAnnotation(&vcjob.ObjectMeta, muster.ExpectedDurationAnnotation, estimate)
	}
}

// relabel updates the queue labels, the gate and the estimate of the VCJob, and records its domains if it does not have
// that record. Labels and a gate that others have set stay, unless the job has its own. It changes nothing
// else: the job might compile to something else by now, and most of a VCJob is immutable.
func (p *planner) relabel() {
	vcjob := p.vcjob.DeepCopy()
	for label := range strings.SplitSeq(vcjob.Annotations[queueLabelsAnnotation], ",") {
		key, _, _ := strings.Cut(label, "=")
		delete(vcjob.Labels, key)
	}
	delete(vcjob.Annotations, queueLabelsAnnotation)
	if vcjob.Annotations[gateAnnotation] != "" {
		delete(vcjob.Annotations, kueue.AdmissionGatedByAnnotation)
		delete(vcjob.Annotations, gateAnnotation)
	}
	delete(vcjob.Annotations, muster.ExpectedDurationAnnotation)
	p.copyQueueLabels(vcjob)
	if !p.recordsDomains() {
		metav1.SetMetaDataAnnotation(&vcjob.ObjectMeta, domainsAnnotation, domainsOf(p.job))
	}
	p.plan.Add(write.Change(p.vcjob, vcjob).DespiteStatus().OrWarn(applyFailedReason))
}

// relabelIfChanged calls relabel if the VCJob queues and its labels, its gate or its estimate are outdated. The VCJob's
// own controller decides which of them apply at once, and which when it waits again.
func (p *planner) relabelIfChanged() {
	was := p.vcjob.Annotations
	if !p.settings.External && (was[queueLabelsAnnotation] != queueLabels(p.job) || was[gateAnnotation] != gateOf(p.job) ||
		was[muster.ExpectedDurationAnnotation] != estimateOf(p.job)) {
		p.relabel()
	}
}

func isQueueLabel(key string) bool { return strings.HasPrefix(key, kueue.GroupVersion.Group+"/") }

// queueLabels formats the queue labels of the job as one text.
func queueLabels(job *lattice.LatticeJob) string {
	return formatEntries(job.Labels, isQueueLabel)
}

// domainsOf formats the job's annotations for topology domains as one text.
func domainsOf(job *lattice.LatticeJob) string {
	return formatEntries(compile.Domains(job.Annotations), nil)
}

// formatEntries formats the entries of the map for whose keys matches is true; all if it is nil.
func formatEntries(of map[string]string, matches func(string) bool) string {
	var out []string
	for key, value := range of {
		if matches == nil || matches(key) {
			out = append(out, key+"="+value)
		}
	}
	slices.Sort(out)
	return strings.Join(out, ",")
}
