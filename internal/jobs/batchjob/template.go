package batchjob

import (
	"encoding/json"
	"maps"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/podspec"
)

// replacedFields holds what a start replaced in a Job. It is kept in an annotation of the Job itself, so that an
// operator that restarts finds it there whatever became of the Workload. An absent field was not replaced; a field that
// was empty is present and empty.
type replacedFields struct {
	// Size is the parallelism that the queue chose for an elastic Job. Another one is what its user has set since.
	Size         *int32                      `json:"size,omitempty"`
	Parallelism  *int32                      `json:"parallelism,omitempty"`
	Completions  *int32                      `json:"completions,omitempty"`
	Labels       *map[string]string          `json:"labels,omitempty"`
	Annotations  *map[string]string          `json:"annotations,omitempty"`
	NodeSelector *map[string]string          `json:"nodeSelector,omitempty"`
	Tolerations  *[]corev1.Toleration        `json:"tolerations,omitempty"`
	Gates        *[]corev1.PodSchedulingGate `json:"schedulingGates,omitempty"`
	Affinity     *replacedAffinity           `json:"affinity,omitempty"`
}

// replacedAffinity is the affinity that a pod template had, nil for none.
type replacedAffinity struct {
	Was *corev1.Affinity `json:"was"`
}

// started returns the Job as it runs with its grant, with annotations that record what the grant replaced and how many
// pods the Job asked for and was granted. Pods that report progress are told where. Nothing of what an earlier start
// added is left.
func started(job *batchv1.Job, granted jobs.PodSetAdmission, agent podspec.Agent) *batchv1.Job {
	original := restored(job)
	out := original.DeepCopy()
	out.Spec.Suspend = ptr.To(false)
	template := func(at podspec.Injection) corev1.PodTemplateSpec {
		return agent.TellReporters(at.Inject(original.Spec.Template), job.Namespace, job.Name)
	}
	recordGrant(out, granted)
	if b := admittedBounds(job, original, granted); b.Elastic {
		if isSettled(job) {
			limit(out, job, original, granted)
		} else {
			setSize(out, b.Size(granted.Count))
		}
		// Pods that are added later go elsewhere, from the same template.
		out.Spec.Template = template(granted.At(nil))
		settled := replacedFields{}
		if isSettled(job) {
			settled = recordedIn(job)
		}
		recordReplaced(out, replaced(original, out).sized(*out.Spec.Parallelism).keeping(settled))
		return out
	}
	out.Spec.Template = template(granted.For(granted.All()))
	limit(out, job, original, granted)
	recordReplaced(out, replaced(original, out))
	return out
}

// recordGrant notes how many pods the Job asked for, and how many it was granted: users cannot give it more than that.
func recordGrant(out *batchv1.Job, granted jobs.PodSetAdmission) {
	jobs.SetNumber(&out.ObjectMeta, muster.AskedPodsAnnotation, granted.Asked)
	jobs.SetNumber(&out.ObjectMeta, muster.GrantedPodsAnnotation, granted.Count)
}

// boundsUsers reports whether the Job notes how many pods it was granted, or fewer.
func boundsUsers(job *batchv1.Job, granted jobs.PodSetAdmission) bool {
	_, noted := job.Annotations[muster.GrantedPodsAnnotation]
	return noted && mayBeGiven(job) <= granted.Count
}

// mayBeGiven returns how many pods users can give the running Job: as many as it says that it was granted. One that an
// earlier version of Muster started says only how many it asked for, or nothing.
func mayBeGiven(job *batchv1.Job) int32 {
	for _, key := range []string{muster.GrantedPodsAnnotation, muster.AskedPodsAnnotation} {
		if pods, err := strconv.ParseInt(job.Annotations[key], 10, 32); err == nil {
			return int32(pods)
		}
	}
	return 0
}

// limit gives the started Job no more pods than were granted.
func limit(out, job, original *batchv1.Job, granted jobs.PodSetAdmission) {
	follows := syncsCompletions(original)
	if follows && jobs.FinalCompletions(job) > 0 {
		// An index is done: completions must not become fewer than are done, so they stay as they are.
		out.Spec.Completions, follows = job.Spec.Completions, false
		if !ptr.Equal(job.Spec.Completions, original.Spec.Completions) {
			out.Spec.Parallelism = job.Spec.Parallelism
		}
	}
	if jobs.PodsLeft(out) > granted.Count {
		out.Spec.Parallelism = ptr.To(granted.Count)
		if follows {
			out.Spec.Completions = ptr.To(granted.Count)
		}
	}
}

// replaced returns what original has otherwise than now.
func replaced(original, now *batchv1.Job) replacedFields {
	was, is := original.Spec.Template, now.Spec.Template
	var b replacedFields
	if !ptr.Equal(original.Spec.Parallelism, now.Spec.Parallelism) {
		b.Parallelism = ptr.To(ptr.Deref(original.Spec.Parallelism, 1))
	}
	if !ptr.Equal(original.Spec.Completions, now.Spec.Completions) {
		b.Completions = original.Spec.Completions
	}
	b.Labels = copyUnlessEqual(was.Labels, is.Labels)
	b.Annotations = copyUnlessEqual(was.Annotations, is.Annotations)
	b.NodeSelector = copyUnlessEqual(was.Spec.NodeSelector, is.Spec.NodeSelector)
	if !equality.Semantic.DeepEqual(was.Spec.Tolerations, is.Spec.Tolerations) {
		b.Tolerations = ptr.To(append([]corev1.Toleration{}, was.Spec.Tolerations...))
	}
	if !equality.Semantic.DeepEqual(was.Spec.SchedulingGates, is.Spec.SchedulingGates) {
		b.Gates = ptr.To(append([]corev1.PodSchedulingGate{}, was.Spec.SchedulingGates...))
	}
	if !equality.Semantic.DeepEqual(was.Spec.Affinity, is.Spec.Affinity) {
		b.Affinity = &replacedAffinity{Was: was.Spec.Affinity}
	}
	return b
}

// copyUnlessEqual returns nil if the maps are equal, else a copy of was that is not nil, so that an empty map is
// recorded too.
func copyUnlessEqual(was, is map[string]string) *map[string]string {
	if maps.Equal(was, is) {
		return nil
	}
	out := map[string]string{}
	maps.Copy(out, was)
	return &out
}

func recordReplaced(job *batchv1.Job, b replacedFields) {
	text, err := json.Marshal(b)
	if err != nil {
		panic("encoding what was replaced in a Job: " + err.Error()) // plain data cannot fail to encode
	}
	metav1.SetMetaDataAnnotation(&job.ObjectMeta, muster.BeforeAdmissionAnnotation, string(text))
	if b.Size != nil {
		jobs.SetNumber(&job.ObjectMeta, muster.WantedPodsAnnotation, b.wanted())
	}
}

// recordedIn returns what the annotation of the Job records, nothing if it has none or one that cannot be parsed.
func recordedIn(job *batchv1.Job) replacedFields {
	var b replacedFields
	if json.Unmarshal([]byte(job.Annotations[muster.BeforeAdmissionAnnotation]), &b) != nil {
		return replacedFields{}
	}
	return b
}

// hasStarted reports whether the Job carries what an admission added.
func hasStarted(job *batchv1.Job) bool {
	_, noted := job.Annotations[muster.BeforeAdmissionAnnotation]
	return noted
}

// sized returns the fields of an elastic Job to which the queue gives this size.
func (r replacedFields) sized(size int32) replacedFields {
	r.Size = &size
	return r
}

// keeping returns the fields of an elastic Job with the size that it asked for before its size was settled, which was
// replaced as settled says. It gets that size back only if all its indexes are run again.
func (r replacedFields) keeping(settled replacedFields) replacedFields {
	if settled.Size != nil && settled.Completions != nil {
		r.Parallelism, r.Completions = settled.Parallelism, settled.Completions
	}
	return r
}

// setByUser reports whether the user of an elastic Job has set another size since the queue chose one. 0 is no size: it
// lets the Job run no pods for now.
func (r replacedFields) setByUser(job *batchv1.Job) bool {
	_, set := r.userSize(job)
	return set
}

// userSize returns the size that the user of an elastic Job has set since the queue chose one, and false if there is
// none. Where the user set more than was granted, the API server has put that back, and noted it.
func (r replacedFields) userSize(job *batchv1.Job) (size int32, set bool) {
	if r.Size == nil || paused(job) {
		return 0, false
	}
	if size = ptr.Deref(job.Spec.Parallelism, 1); size != *r.Size {
		return size, true
	}
	wanted, ok := jobs.ReplicasIn(job.Annotations, muster.WantedPodsAnnotation)
	asked, _ := jobs.ReplicasIn(job.Annotations, muster.AskedPodsAnnotation)
	return wanted, ok && wanted <= asked && wanted != r.wanted()
}

// wanted returns how many pods the user of an elastic Job wanted when the queue chose its size.
func (r replacedFields) wanted() int32 { return ptr.Deref(r.Parallelism, *r.Size) }

// restored returns the Job as its user made it, except for spec.suspend: without what a start added. An annotation that
// cannot be parsed was not written by Muster, and is removed.
func restored(job *batchv1.Job) *batchv1.Job {
	out := job.DeepCopy()
	if !hasStarted(job) {
		return out
	}
	for _, key := range []string{
		muster.BeforeAdmissionAnnotation, muster.AskedPodsAnnotation, muster.GrantedPodsAnnotation,
		muster.WantedPodsAnnotation,
	} {
		delete(out.Annotations, key)
	}
	out.Annotations = orNil(out.Annotations)
	b := recordedIn(job)
	b.restoreSize(out, job)
	b.restoreTemplate(&out.Spec.Template)
	return out
}

// restoreSize gives out the parallelism and completions that the job asked for. A parallelism of 0 is the user's, who
// lets the Job run no pods, since no Job is started with a grant of none; so is another size of an elastic Job than the
// queue's, which completions follow. A settled elastic Job keeps its completions, and so does one that its user gave a
// parallelism which they cannot follow: the API server changes them only to what parallelism is, and would refuse to
// restore anything.
func (r replacedFields) restoreSize(out, job *batchv1.Job) {
	size, set := r.userSize(job)
	switch {
	case r.Size != nil && isSettled(job):
		if !paused(job) {
			out.Spec.Parallelism = job.Spec.Completions
		}
	case set:
		setSize(out, size)
	default:
		if r.Parallelism != nil && !paused(job) {
			out.Spec.Parallelism = r.Parallelism
		}
		if r.Completions != nil {
			out.Spec.Completions = r.Completions
		}
	}
	if !ptr.Equal(out.Spec.Completions, job.Spec.Completions) && !hasElasticShape(out) {
		out.Spec.Completions = job.Spec.Completions
	}
}

// restoreTemplate gives the template back what a start replaced in it.
func (r replacedFields) restoreTemplate(template *corev1.PodTemplateSpec) {
	if r.Labels != nil {
		template.Labels = orNil(*r.Labels)
	}
	if r.Annotations != nil {
		template.Annotations = orNil(*r.Annotations)
	}
	if r.NodeSelector != nil {
		template.Spec.NodeSelector = orNil(*r.NodeSelector)
	}
	if r.Tolerations != nil {
		template.Spec.Tolerations = nil
		if len(*r.Tolerations) > 0 {
			template.Spec.Tolerations = *r.Tolerations
		}
	}
	if r.Gates != nil {
		template.Spec.SchedulingGates = nil
		if len(*r.Gates) > 0 {
			template.Spec.SchedulingGates = *r.Gates
		}
	}
	if r.Affinity != nil {
		template.Spec.Affinity = r.Affinity.Was
	}
}

// orNil returns nil for an empty map, as the API server does.
func orNil(m map[string]string) map[string]string {
	if len(m) == 0 {
		return nil
	}
	return m
}
