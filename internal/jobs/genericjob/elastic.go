package genericjob

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/replicas"
)

// bounds are between how many replicas of a type the queue may choose. A type that is
// not elastic has one number. What cannot be read counts as absent: the API refuses it.
type bounds struct {
	least, most int32
	elastic     bool
}

// boundsOf reads the annotations on the template of the type.
func boundsOf(spec *tensorstack.ReplicaSpec) bounds {
	b := bounds{least: count(spec), most: count(spec)}
	least, ok := annotated(spec, muster.MinReplicasAnnotation)
	if !ok {
		return b
	}
	if most, ok := annotated(spec, muster.MaxReplicasAnnotation); ok {
		b.most = most
	}
	b.least, b.elastic = min(least, b.most), true
	return b
}

func annotated(spec *tensorstack.ReplicaSpec, key string) (int32, bool) {
	n, err := strconv.ParseInt(spec.Template.Annotations[key], 10, 32)
	return int32(n), err == nil && n > 0
}

// count is how many replicas of the type its author asks for.
func count(spec *tensorstack.ReplicaSpec) int32 { return ptr.Deref(spec.Replicas, 1) }

// ask has the pod set of an elastic type ask for as many pods as it can use, and say how
// few will do.
func (b bounds) ask(podSet *kueue.PodSet) {
	if !b.elastic {
		return
	}
	podSet.Count, podSet.MinCount = b.most, ptr.To(b.least)
	metav1.SetMetaDataAnnotation(&podSet.Template.ObjectMeta, muster.MaxReplicasAnnotation, strconv.Itoa(int(b.most)))
}

// sizesOf is how many replicas of each type there are to be: as many as were granted, or
// as many as there were last where nobody grants any.
func sizesOf(job *tensorstack.GenericJob, admission jobs.Admission) map[string]int32 {
	out := make(map[string]int32, len(job.Spec.ReplicaSpecs))
	for i := range job.Spec.ReplicaSpecs {
		spec := &job.Spec.ReplicaSpecs[i]
		b := boundsOf(spec)
		size := count(spec)
		switch last := taskOf(&job.Status, spec.Type); {
		case !b.elastic || admission.Grant == jobs.Unqueued:
		case admission.Grant == jobs.Admitted && outcome(job) == nil:
			size = min(max(admission.PodSets[spec.Type].Count, b.least), b.most)
		case last != nil:
			size = int32(len(last.Replicas))
		}
		out[spec.Type] = size
	}
	return out
}

// groups are the types as package replicas knows them.
func groups(job *tensorstack.GenericJob, sizes map[string]int32) []replicas.Group {
	out := make([]replicas.Group, 0, len(job.Spec.ReplicaSpecs))
	for i := range job.Spec.ReplicaSpecs {
		spec := &job.Spec.ReplicaSpecs[i]
		out = append(out, replicas.Group{Name: spec.Type, Count: sizes[spec.Type], Restart: restart(spec.RestartPolicy)})
	}
	return out
}

// elasticProgress tells of elastic types what the queue needs to know to resize them. Of
// such a type the fewest will do to be ready, and quota of replicas that have ended is
// kept: it is the queue's to say how many there are.
func (l *look) elasticProgress(p *jobs.Progress) {
	for i := range l.job.Spec.ReplicaSpecs {
		spec := &l.job.Spec.ReplicaSpecs[i]
		if !boundsOf(spec).elastic {
			continue
		}
		delete(p.Reclaimable, spec.Type)
		if p.Pods == nil {
			p.Pods = map[string]int32{}
		}
		p.Pods[spec.Type] = 0
		for _, pod := range jobs.ChildrenOf[*corev1.Pod](l.seen.Children) {
			if _, its := replicas.IndexOf(l.job.Name, spec.Type, pod.Name); its && !replicas.HasEnded(pod) {
				p.Pods[spec.Type]++
			}
		}
	}
}

// ready reports whether as many replicas of each type are ready, or have ended for good,
// as it needs: a job whose rules let it live on without a replica lacks none.
func (l *look) ready() bool {
	up := map[string]int32{}
	for i := range l.roster.Replicas {
		if r := &l.roster.Replicas[i]; r.Ready || r.Final() {
			up[r.Group]++
		}
	}
	for i := range l.job.Spec.ReplicaSpecs {
		spec := &l.job.Spec.ReplicaSpecs[i]
		need := l.sizes[spec.Type]
		if b := boundsOf(spec); b.elastic {
			need = min(need, b.least)
		}
		if up[spec.Type] < need {
			return false
		}
	}
	return true
}
