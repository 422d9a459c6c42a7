package soak

import (
	"bytes"
	"fmt"
	"strconv"
	"text/template"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
)

var templates = template.Must(template.ParseFiles("testdata/jobs.yaml"))

// The resources of the job APIs.
const (
	jobs         = "jobs.batch"
	jobSets      = "jobsets.jobset.x-k8s.io"
	genericJobs  = "genericjobs.batch.tensorstack.dev"
	latticeJobs  = "latticejobs.lattice.dev"
	vcJobs       = "jobs.batch.volcano.sh"
	trainingJobs = "trainingjobs.breezeml.ai"
)

// role is a number of equal pods.
type role struct {
	// Pods is how many there are, in each of the Jobs of a JobSet.
	Pods, CPUs, GPUs  int
	Lasts             string
	ExitCode, Retries int
	Annotations       map[string]string
	// Optional says that a task of a VCJob may have no pods.
	Optional bool
}

// job is what its template needs to know. Its name is the prefix of the names of its pods, followed by a hyphen, and of
// no other pods.
type job struct {
	role // of its workers
	// Drivers is a second role, nil for most jobs.
	Drivers *role

	Resource, Name, Queue, Class string
	Priority                     int32
	// Least is the minimum of an elastic job, else Pods.
	Least int
	// Jobs, of a JobSet, and Completions, of a Job, are of its workers.
	Jobs, Completions int
	// MinAvailable is how many workers a VCJob needs, if not 0, Together how many pods of whichever tasks.
	MinAvailable, Together int
	JobAnnotations         map[string]string
	// Limit is after how many seconds the job is stopped, 0 for never.
	Limit int

	object *unstructured.Unstructured
	// deleted says that the round has deleted it before it deletes all jobs.
	deleted bool
}

// newJob invents a job.
func (r *round) newJob() *job {
	class := one(r, "low", "normal", "normal", "high")
	j := &job{
		Resource: one(r, jobs, jobSets, genericJobs, latticeJobs, vcJobs, vcJobs, trainingJobs),
		Queue:    one(r, r.queues...).short,
		Class:    r.Namespace + "-" + class, Priority: classes[class], JobAnnotations: map[string]string{}, Jobs: 1,
		role: role{Pods: 1 + r.IntN(6), CPUs: 1 + r.IntN(3), Lasts: r.shortTime(), Retries: 100,
			Annotations: map[string]string{}},
	}
	switch {
	case r.chance(35):
		j.Lasts = endless
	case r.chance(15):
		j.ExitCode, j.Retries = 1, 1
	}
	j.Least, j.Completions = j.Pods, j.Pods
	switch {
	case j.Resource == latticeJobs:
	case r.elastic && r.chance(50):
		j.Least = 1 + r.IntN(j.Pods)
		if j.Resource != trainingJobs {
			j.Annotations[muster.MinReplicasAnnotation] = strconv.Itoa(j.Least)
		}
	default:
		r.shape(j)
	}
	r.addDrivers(j)
	if r.gpus && j.Resource != latticeJobs && r.chance(40) {
		j.GPUs = 1 + r.IntN(gpusOfNode)
	}
	r.placeNear(j)
	if j.Resource == vcJobs && j.Annotations[muster.MinReplicasAnnotation] == "" && r.chance(50) {
		j.Together = 1 + r.IntN(j.pods())
	}
	r.annotate(j)
	r.limit(j)
	r.name(j)
	return j
}

// limit says how long some jobs take. Most of them end before their limits, or the round does; some are stopped.
func (r *round) limit(j *job) {
	if !r.plans {
		return
	}
	switch {
	case r.chance(30):
	case j.Lasts != endless:
		j.Limit = 60 + r.IntN(120)
	case r.chance(15):
		j.Limit = 20 + r.IntN(40)
	default:
		j.Limit = 3600 + r.IntN(3600)
	}
	if r.chance(40) {
		j.JobAnnotations[muster.ExpectedDurationAnnotation] = fmt.Sprintf("%ds", 1+r.IntN(90))
	}
}

// addDrivers gives some jobs a second role, VCJobs more often: only they may start without one of their roles.
func (r *round) addDrivers(j *job) {
	often := 30
	if j.Resource == vcJobs {
		often = 60
	}
	if !r.chance(often) || j.Resource == jobs || j.Resource == trainingJobs {
		return
	}
	j.Drivers = &role{Pods: 1 + r.IntN(2), CPUs: 1, Lasts: one(r, j.Lasts, r.shortTime()), Retries: j.Retries,
		Annotations: map[string]string{}, Optional: r.chance(30)}
}

// pods returns how many pods the job has in all.
func (j *job) pods() int {
	pods := j.Pods * j.Jobs
	if j.Drivers != nil {
		pods += j.Drivers.Pods
	}
	return pods
}

// annotate has some jobs run again as a whole after an eviction, and some users write an annotation that is for the
// operator alone.
func (r *round) annotate(j *job) {
	if (j.Resource == jobs || j.Resource == jobSets) && r.chance(50) {
		j.JobAnnotations[muster.RestartWholeAnnotation] = "true"
	}
	if r.chance(10) {
		j.Annotations[muster.MinPodsAnnotation] = "1"
		j.JobAnnotations[muster.MinPodsAnnotation] = "1" // a LatticeJob has no other place for it
	}
}

// name names the job. The name may say how long its pods run.
func (r *round) name(j *job) {
	j.Name = fmt.Sprintf("j%03d", len(r.jobs))
	ofIndexes := (j.Resource == jobs || j.Resource == jobSets) && j.Pods > 1 && j.ExitCode == 0
	switch {
	case j.Resource == latticeJobs && j.Lasts == endless:
		j.Name += endlessSuffix
	case ofIndexes && (j.Lasts == endless && r.chance(60) || r.chance(20)):
		j.Name += partlySuffix
		j.Lasts = r.shortTime()
	}
}

// shortTime is less than calm: while nothing changes for that long, no pod runs that will end by itself.
func (r *round) shortTime() string { return fmt.Sprintf("%ds", 2+r.IntN(12)) }

// shape gives a job of fixed size what only its API has.
func (r *round) shape(j *job) {
	switch {
	case j.Resource == jobs && r.chance(30):
		j.Completions += r.IntN(4)
	case j.Resource == jobs && r.chance(30):
		j.JobAnnotations[kueue.JobMinParallelismAnnotation] = strconv.Itoa(1 + r.IntN(j.Pods))
	case j.Resource == jobSets && r.chance(40):
		j.Jobs, j.Pods = 1+r.IntN(3), 1+r.IntN(3)
		j.Least, j.Completions = j.Pods, j.Pods
	case j.Resource == vcJobs && r.chance(40):
		j.MinAvailable = 1 + r.IntN(j.Pods)
	}
}

// placeNear has half of the jobs ask for nodes that are near each other.
func (r *round) placeNear(j *job) {
	level := one(r, rack, rack, corev1.LabelHostname)
	if r.followsNodes { // its topology has no racks
		level = corev1.LabelHostname
	}
	switch {
	case r.chance(50):
	case j.Resource == latticeJobs: // its pods have the annotations of the job
		j.JobAnnotations[one(r, kueue.PodSetRequiredTopologyAnnotation, kueue.PodSetPreferredTopologyAnnotation)] = level
	case j.Resource == jobSets && j.Annotations[muster.MinReplicasAnnotation] == "" && r.chance(25):
		j.JobAnnotations[jobset.ExclusiveKey] = rack
	case j.Least == j.Pods && r.chance(25):
		j.Annotations[kueue.PodSetSliceRequiredTopologyAnnotation] = level
		j.Annotations[kueue.PodSetSliceSizeAnnotation] = strconv.Itoa(1 + r.IntN(j.Pods))
	default:
		near := one(r, kueue.PodSetRequiredTopologyAnnotation, kueue.PodSetPreferredTopologyAnnotation)
		j.Annotations[near] = level
		if d := j.Drivers; d != nil && r.chance(60) {
			d.Pods = 1
			for _, role := range []*role{&j.role, d} {
				role.Annotations[near], role.Annotations[kueue.PodSetGroupNameAnnotation] = level, "near"
			}
		}
	}
}

// title says what is random in the job.
func (j *job) title() string {
	text := fmt.Sprintf("%s in %s of %d to %d pods with %d CPUs and %d GPUs for %s (limit %ds), %s, %v", j.Resource,
		j.Queue, j.Least, j.Pods, j.CPUs, j.GPUs, j.Lasts, j.Limit, j.Class, j.Annotations)
	if j.Jobs > 1 || j.MinAvailable+j.Together > 0 || j.Completions != j.Pods || len(j.JobAnnotations) > 0 {
		text += fmt.Sprintf(", %d Jobs, %d completions, minAvailable %d of the task and %d of the job, %v",
			j.Jobs, j.Completions, j.MinAvailable, j.Together, j.JobAnnotations)
	}
	if d := j.Drivers; d != nil {
		text += fmt.Sprintf(", and %d drivers for %s, optional %t, %v", d.Pods, d.Lasts, d.Optional, d.Annotations)
	}
	return text
}

// render returns the object of the job.
func (r *round) render(j *job) *unstructured.Unstructured {
	var text bytes.Buffer
	if err := templates.ExecuteTemplate(&text, j.Resource, j); err != nil {
		r.Fatal(err)
	}
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(text.Bytes(), &o.Object); err != nil {
		r.Fatalf("%v in\n%s", err, text.String())
	}
	o.SetNamespace(r.Namespace)
	return o
}

// sizeFields are where a job says how many pods it has, but for VCJobs.
var sizeFields = map[string][]string{
	jobs:         {"/spec/parallelism", "/spec/completions"},
	jobSets:      {"/spec/replicatedJobs/0/template/spec/parallelism", "/spec/replicatedJobs/0/template/spec/completions"},
	genericJobs:  {"/spec/replicaSpecs/0/replicas"},
	latticeJobs:  {"/spec/tasks/worker/replicas"},
	trainingJobs: {"/spec/maxSize"},
}
