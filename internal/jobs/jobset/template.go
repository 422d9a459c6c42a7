package jobset

import (
	"cmp"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"maps"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/podspec"
	"github.com/musterhq/muster/internal/pointers"
	"github.com/musterhq/muster/internal/replicas"
)

// podTemplate returns the pod template of a replicated job with JobSet's default: pods restart on failure unless the
// template says otherwise.
func podTemplate(rj *jobset.ReplicatedJob) corev1.PodTemplateSpec {
	template := *rj.Template.Spec.Template.DeepCopy()
	if template.Spec.RestartPolicy == "" {
		template.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
	}
	return template
}

// newJob returns the Job of this index, as it is created now. Its pods get what admission granted their pod set.
func (p *planner) newJob(rj *jobset.ReplicatedJob, index int32) *batchv1.Job {
	js := p.js
	keys := identity(js, rj, index)
	template := podTemplate(rj)
	template.Labels = podspec.Merged(template.Labels, keys)
	template.Annotations = podspec.Merged(template.Annotations, keys)
	maps.Copy(template.Labels, p.podLabels(&template.Spec))
	maps.Copy(template.Annotations, placementKeys(js, rj))
	if dnsHostnames(js) {
		template.Spec.Subdomain = subdomain(js)
	}
	mount(js, &template.Spec)
	template = p.layouts.place(rj, index, p.letReport(p.withAgent(rj, template)))
	if p.gangs.joins(rj) {
		group, class := p.gangs.groupOf(rj)
		jobs.InPodGroup(&template.Spec, group)
		template.Spec.PriorityClassName = class
	}
	job := &batchv1.Job{
		ObjectMeta: replicas.Owned(js, kind, jobName(js, rj.Name, index), podspec.Merged(rj.Template.Labels, keys)),
		Spec:       *rj.Template.Spec.DeepCopy(),
	}
	job.Annotations = podspec.Merged(podspec.Merged(rj.Template.Annotations, placementKeys(js, rj)), keys)
	if p.seen.Admission.Grant != jobs.Unqueued {
		metav1.SetMetaDataAnnotation(&job.ObjectMeta, muster.QueuedAnnotation, muster.QueuedByOwner)
	}
	job.Spec.Template = template
	if size := p.sizes.of(rj); elastic(&job.Spec) {
		job.Spec.Parallelism, job.Spec.Completions = ptr.To(size), ptr.To(size)
	}
	// A Job that is deleted before the JobSet has ended would be recreated, so its time to live starts with the end of
	// the JobSet. See removeExpired.
	job.Spec.TTLSecondsAfterFinished = nil
	job.Spec.Suspend = ptr.To(p.held())
	if job.Spec.CompletionMode == nil {
		job.Spec.CompletionMode = ptr.To(batchv1.IndexedCompletion)
	}
	return job
}

// identity returns the labels, which are also annotations, that say where in the JobSet a Job and its pods belong.
func identity(js *jobset.JobSet, rj *jobset.ReplicatedJob, index int32) map[string]string {
	var all, before, inGroup, inGroupBefore int32
	group := groupOf(rj)
	reached := false
	for other := range pointers.To(js.Spec.ReplicatedJobs) {
		reached = reached || other.Name == rj.Name
		all += other.Replicas
		if !reached {
			before += other.Replicas
		}
		if groupOf(other) != group {
			continue
		}
		inGroup += other.Replicas
		if !reached {
			inGroupBefore += other.Replicas
		}
	}
	sum := sha1.Sum([]byte(js.Namespace + "/" + jobName(js, rj.Name, index)))
	keys := map[string]string{
		jobset.JobSetNameKey:         js.Name,
		jobset.JobSetUIDKey:          string(js.UID),
		jobset.ReplicatedJobNameKey:  rj.Name,
		jobset.ReplicatedJobReplicas: decimal(rj.Replicas),
		jobset.GlobalReplicasKey:     decimal(all),
		jobset.JobIndexKey:           decimal(index),
		jobset.JobGlobalIndexKey:     decimal(before + index),
		jobset.GroupNameKey:          group,
		jobset.GroupReplicasKey:      decimal(inGroup),
		jobset.JobGroupIndexKey:      decimal(inGroupBefore + index),
		jobset.JobKey:                hex.EncodeToString(sum[:]),
		jobset.RestartAttemptKey:     decimal(js.Status.Restarts),
		jobset.JobRestartAttemptKey:  decimal(singleRestartsOf(js, rj.Name, index)),
	}
	if c := js.Spec.Coordinator; c != nil {
		keys[jobset.CoordinatorKey] = fmt.Sprintf("%s-%s-%d-%d.%s", js.Name, c.ReplicatedJob, c.JobIndex,
			c.PodIndex, subdomain(js))
	}
	return keys
}

// podLabels returns labels of the pods that their Job does not have.
func (p *planner) podLabels(pod *corev1.PodSpec) map[string]string {
	out := map[string]string{}
	if dnsHostnames(p.js) {
		out[muster.SubdomainLabel] = subdomain(p.js)
	}
	// A label value cannot hold a negative number.
	if priority, known := p.seen.Facts.Priorities.OfPods(pod.PriorityClassName); known && priority >= 0 {
		out[jobset.PriorityKey] = decimal(priority)
	}
	return out
}

func groupOf(rj *jobset.ReplicatedJob) string { return cmp.Or(rj.GroupName, jobset.DefaultGroupName) }
