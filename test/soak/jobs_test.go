package soak

import (
	"bytes"
	"fmt"
	"strconv"
	"text/template"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

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

// endless is how long pods run that do not end by themselves within a round.
const endless = "24h"

// job is what its template needs to know. Its name is the prefix of the names of its pods, followed by a hyphen, and of
// no other pods.
type job struct {
	Resource, Name, Queue, Class string
	Priority                     int32
	// Least is the minimum of an elastic job, else Pods.
	Pods, Least, Completions, CPUs int
	Lasts                          string
	ExitCode, Retries              int
	Annotations                    map[string]string

	object *unstructured.Unstructured
}

// newJob invents a job.
func (r *round) newJob() *job {
	class := one(r, "low", "normal", "normal", "high")
	j := &job{
		Resource: one(r, jobs, jobSets, genericJobs, latticeJobs, vcJobs, trainingJobs),
		Name:     fmt.Sprintf("j%03d", len(r.jobs)), Queue: one(r, r.queues...).short, Class: r.Namespace + "-" + class, Priority: classes[class],
		Pods: 1 + r.IntN(6), CPUs: 1 + r.IntN(3), Lasts: fmt.Sprintf("%ds", 2+r.IntN(20)), Retries: 100, Annotations: map[string]string{},
	}
	switch {
	case r.chance(35):
		j.Lasts = endless
	case r.chance(15):
		j.ExitCode, j.Retries = 1, 1
	}
	j.Least, j.Completions = j.Pods, j.Pods
	switch {
	case j.Resource == latticeJobs: // its pods have no annotations of the user's
	case r.elastic && r.chance(50):
		j.Least = 1 + r.IntN(j.Pods)
		if j.Resource != trainingJobs {
			j.Annotations[muster.MinReplicasAnnotation] = strconv.Itoa(j.Least)
		}
	case j.Resource == jobs && r.chance(30):
		j.Completions += r.IntN(4)
	}
	if r.chance(50) {
		j.Annotations[one(r, kueue.PodSetRequiredTopologyAnnotation, kueue.PodSetPreferredTopologyAnnotation)] = one(r, rack, rack, "kubernetes.io/hostname")
	}
	return j
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

// sizeFields are where a job says how many pods it has.
var sizeFields = map[string][]string{
	jobs:         {"/spec/parallelism", "/spec/completions"},
	jobSets:      {"/spec/replicatedJobs/0/template/spec/parallelism", "/spec/replicatedJobs/0/template/spec/completions"},
	genericJobs:  {"/spec/replicaSpecs/0/replicas"},
	latticeJobs:  {"/spec/tasks/worker/replicas"},
	vcJobs:       {"/spec/tasks/0/replicas"},
	trainingJobs: {"/spec/maxSize"},
}
