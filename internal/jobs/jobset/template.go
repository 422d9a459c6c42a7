package jobset

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"maps"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs"
)

// podsOf is how many pods a Job runs at a time.
func podsOf(spec *batchv1.JobSpec) int32 {
	parallelism := ptr.Deref(spec.Parallelism, 1)
	return min(parallelism, ptr.Deref(spec.Completions, parallelism))
}

// podCount is how many pods a replicated job runs at a time, in all its Jobs. The
// API refuses what would not fit an int32.
func podCount(rj *jobset.ReplicatedJob) int32 { return rj.Replicas * podsOf(&rj.Template.Spec) }

// podTemplate is the replicated job's pod template with JobSet's defaults: pods
// restart on failure unless the template says otherwise.
func podTemplate(rj *jobset.ReplicatedJob) corev1.PodTemplateSpec {
	template := *rj.Template.Spec.Template.DeepCopy()
	if template.Spec.RestartPolicy == "" {
		template.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
	}
	return template
}

// jobName is the name of a Job of the JobSet.
func jobName(js *jobset.JobSet, replicatedJob string, index int32) string {
	return js.Name + "-" + replicatedJob + "-" + decimal(index)
}

// subdomain is the name of the Service and the DNS subdomain of the pods.
func subdomain(js *jobset.JobSet) string {
	if js.Spec.Network != nil && js.Spec.Network.Subdomain != "" {
		return js.Spec.Network.Subdomain
	}
	return js.Name
}

func dnsHostnames(js *jobset.JobSet) bool {
	return js.Spec.Network == nil || ptr.Deref(js.Spec.Network.EnableDNSHostnames, true)
}

// newJob is the Job with the index of a replicated job, as it is created. Its pods
// get what admission gave their pod set.
func (a *attempt) newJob(rj *jobset.ReplicatedJob, index int32) *batchv1.Job {
	js := a.js
	keys := identity(js, rj, index)
	template := podTemplate(rj)
	template.Labels = with(template.Labels, keys)
	template.Annotations = with(template.Annotations, keys)
	maps.Copy(template.Labels, a.podLabels(&template.Spec))
	maps.Copy(template.Annotations, placementKeys(js, rj))
	if dnsHostnames(js) {
		template.Spec.Subdomain = subdomain(js)
	}
	mount(js, &template.Spec)
	template = a.placeJob(rj, index, a.withAgent(rj, template))
	if a.joinsGang(rj) {
		group, class := a.gangOf(rj)
		jobs.InPodGroup(&template.Spec, group)
		template.Spec.PriorityClassName = class
	}
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Name:            jobName(js, rj.Name, index),
			Namespace:       js.Namespace,
			Labels:          with(rj.Template.Labels, keys),
			Annotations:     with(with(rj.Template.Annotations, placementKeys(js, rj)), keys),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(js, kind)},
		},
		Spec: *rj.Template.Spec.DeepCopy(),
	}
	job.Spec.Template = template
	if size := a.sizeOf(rj); elastic(&job.Spec) {
		job.Spec.Parallelism, job.Spec.Completions = ptr.To(size), ptr.To(size)
	}
	// A Job that were removed before the JobSet has ended would be missed, and run again;
	// its own time to live begins with the JobSet's end. See removeExpired.
	job.Spec.TTLSecondsAfterFinished = nil
	job.Spec.Suspend = ptr.To(a.held())
	if job.Spec.CompletionMode == nil {
		job.Spec.CompletionMode = ptr.To(batchv1.IndexedCompletion)
	}
	return job
}

// identity are the labels, and annotations too, that tell a Job and its pods where
// in the JobSet they belong.
func identity(js *jobset.JobSet, rj *jobset.ReplicatedJob, index int32) map[string]string {
	var all, before, inGroup, inGroupBefore int32
	group := groupOf(rj)
	reached := false
	for i := range js.Spec.ReplicatedJobs {
		other := &js.Spec.ReplicatedJobs[i]
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
		keys[jobset.CoordinatorKey] = fmt.Sprintf("%s-%s-%d-%d.%s", js.Name, c.ReplicatedJob, c.JobIndex, c.PodIndex, subdomain(js))
	}
	return keys
}

// podLabels are labels that the pods have and their Job has not.
func (a *attempt) podLabels(pod *corev1.PodSpec) map[string]string {
	out := map[string]string{}
	if dnsHostnames(a.js) {
		out[muster.SubdomainLabel] = subdomain(a.js)
	}
	// A label cannot hold a number below zero.
	if priority, known := a.seen.Facts.Priorities.OfPods(pod.PriorityClassName); known && priority >= 0 {
		out[jobset.PriorityKey] = decimal(priority)
	}
	return out
}

// placementKeys are annotations that say how Jobs are kept apart: those of the replicated
// job, or else of the JobSet.
func placementKeys(js *jobset.JobSet, rj *jobset.ReplicatedJob) map[string]string {
	out := map[string]string{}
	for _, key := range []string{jobset.ExclusiveKey, jobset.NodeSelectorStrategyKey} {
		for _, from := range []map[string]string{js.Annotations, rj.Template.Annotations} {
			if value, ok := from[key]; ok {
				out[key] = value
			}
		}
	}
	return out
}

func groupOf(rj *jobset.ReplicatedJob) string {
	if rj.GroupName == "" {
		return jobset.DefaultGroupName
	}
	return rj.GroupName
}

func decimal(n int32) string { return strconv.FormatInt(int64(n), 10) }

// with is base and, winning over it, more.
func with(base, more map[string]string) map[string]string {
	out := make(map[string]string, len(base)+len(more))
	maps.Copy(out, base)
	maps.Copy(out, more)
	return out
}
