package latticejob

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/latticejob/compile"
)

// labelPods has the pods of the VCJob be known as the job's: what they use is the job's until they are gone, though it is deleted.
func (l *look) labelPods(vcjob *volcano.Job) {
	for i := range vcjob.Spec.Tasks {
		template := &vcjob.Spec.Tasks[i].Template
		for key, value := range podLabels(l.job.UID) {
			metav1.SetMetaDataLabel(&template.ObjectMeta, key, value)
		}
	}
}

// passOnLabels gives the VCJob the labels by which people say how the job is queued.
func (l *look) passOnLabels(vcjob *volcano.Job) {
	for key, value := range l.job.Labels {
		if isQueueLabel(key) {
			metav1.SetMetaDataLabel(&vcjob.ObjectMeta, key, value)
		}
	}
	if labels := queueLabels(l.job); labels != "" {
		metav1.SetMetaDataAnnotation(&vcjob.ObjectMeta, queueLabelsAnnotation, labels)
	}
}

// relabel has the VCJob be queued as the labels say that the job has come to have. A VCJob that does not say which
// domains it was made to ask for comes to say it. No more of it is changed: what it would be compiled to by
// now may be something else, and most of a VCJob is fixed.
func (l *look) relabel() {
	vcjob := l.vcjob.DeepCopy()
	for label := range strings.SplitSeq(vcjob.Annotations[queueLabelsAnnotation], ",") {
		key, _, _ := strings.Cut(label, "=")
		delete(vcjob.Labels, key)
	}
	delete(vcjob.Annotations, queueLabelsAnnotation)
	l.passOnLabels(vcjob)
	if !l.saysDomains() {
		metav1.SetMetaDataAnnotation(&vcjob.ObjectMeta, domainsAnnotation, domainsOf(l.job))
	}
	l.plan.Writes = append(l.plan.Writes, jobs.Change(l.vcjob, vcjob).DespiteStatus().OrWarn(applyFailedReason))
}

// relabelIfChanged is relabel where the VCJob queues: which of it counts at once, and which when it waits again, is for the VCJob to say.
func (l *look) relabelIfChanged() {
	if !l.settings.External && l.vcjob.Annotations[queueLabelsAnnotation] != queueLabels(l.job) {
		l.relabel()
	}
}

func isQueueLabel(key string) bool { return strings.HasPrefix(key, kueue.GroupVersion.Group+"/") }

// queueLabels are those labels of the job as one text.
func queueLabels(job *lattice.LatticeJob) string {
	return asText(job.Labels, isQueueLabel)
}

// domainsOf are the annotations of the job that say in which domains its pods are to be, as one text.
func domainsOf(job *lattice.LatticeJob) string { return asText(compile.Domains(job.Annotations), nil) }

// asText are the entries of the map whose keys it holds for, all if that is nil.
func asText(of map[string]string, holds func(string) bool) string {
	var out []string
	for key, value := range of {
		if holds == nil || holds(key) {
			out = append(out, key+"="+value)
		}
	}
	slices.Sort(out)
	return strings.Join(out, ",")
}
