package compile

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
)

// maxPodName is the maximum length of a pod name, which is also used as label and host name.
const maxPodName = 63

// kind is the kind LatticeJob.
var kind = lattice.GroupVersion.WithKind("LatticeJob")

// compiler is one compilation of a job.
type compiler struct {
	job   *lattice.LatticeJob
	facts *Facts
	owner metav1.OwnerReference
	// tasks are the job's tasks, merged with what the rest of the spec says about them.
	tasks map[string]lattice.JobTaskSpec
	// training is the configuration that the tasks of a training job share; nil for other jobs.
	training *training
	objects  []Object
	// claims are the claims that tasks create, by name.
	claims map[string]*corev1.PersistentVolumeClaim
	// shared are the claims that have an id.
	shared map[string]bool
	// makers maps each object to the task that made it; clash is the error if two tasks make the same one.
	makers   map[string]string
	clash    error
	skipped  map[schema.GroupResource]bool
	missing  map[schema.GroupResource]bool
	warnings []string
	// values is how many bytes the values of placeholders had so far, and texts how many the variables and files.
	values, texts int
}

// Compile compiles the job to objects. It fails if no cluster with these facts could ever run the job. Of its errors,
// MissingServiceError and UnsharedGPUsError may pass without a change of the job.
func Compile(job *lattice.LatticeJob, facts Facts) (*Result, error) {
	if len(job.Spec.Tasks) == 0 {
		return nil, errors.New("job has no tasks")
	}
	tasks, err := Tasks(job)
	if err != nil {
		return nil, err
	}
	if n := len(servicesOf(job.Namespace, tasks)); n > maxServices {
		return nil, fmt.Errorf("its tasks call %d services, more than %d", n, maxServices)
	}
	c := &compiler{
		job: job, tasks: tasks, facts: &facts, owner: *metav1.NewControllerRef(job, kind),
		claims: map[string]*corev1.PersistentVolumeClaim{}, makers: map[string]string{}, shared: map[string]bool{},
		skipped: map[schema.GroupResource]bool{}, missing: map[schema.GroupResource]bool{},
	}
	if job.Spec.Training != nil {
		if err := c.train(job.Spec.Training); err != nil {
			return nil, err
		}
	}
	vcjob, err := c.vcjob()
	if err != nil {
		return nil, err
	}
	names := slices.Sorted(maps.Keys(c.tasks))
	for i, name := range names {
		template, err := c.task(name)
		if err = cmp.Or(err, c.clash); err != nil {
			return nil, fmt.Errorf("compilation failed for task '%s': %w", name, err)
		}
		vcjob.Spec.Tasks[i].Template = *template
	}
	slices.SortStableFunc(c.objects, func(a, b Object) int { return rank(a) - rank(b) })
	return &Result{
		Objects: c.objects, VCJob: vcjob, Warnings: c.warnings,
		Missing: kindsOf(c.missing), Skipped: kindsOf(c.skipped),
	}, nil
}

// order is the order in which kinds are applied. No object depends on a later one.
var order = map[string]int{"ServiceAccount": 0, "ConfigMap": 1, "Secret": 2, "ExternalSecret": 3,
	"PersistentVolumeClaim": 4, MeshMemberKind: 5, TracingPolicyKind: 6}

func rank(o Object) int { return order[o.GetObjectKind().GroupVersionKind().Kind] }

// MeshMemberKind is the kind of the objects that put a task into the service graph.
const MeshMemberKind = "LatticeMeshMember"

// externalSecretKind is the kind from which Secrets of the same name are made.
const externalSecretKind = "ExternalSecret"

// kindNames are the names of the kinds that a cluster may not serve.
var kindNames = map[schema.GroupResource]string{ExternalSecrets: externalSecretKind, MeshMembers: MeshMemberKind,
	TracingPolicies: TracingPolicyKind}

func kindsOf(of map[schema.GroupResource]bool) []schema.GroupKind {
	var out []schema.GroupKind
	for resource := range of {
		out = append(out, schema.GroupKind{Group: resource.Group, Kind: kindNames[resource]})
	}
	slices.SortFunc(out, func(a, b schema.GroupKind) int {
		return slices.Compare([]string{a.Group, a.Kind}, []string{b.Group, b.Kind})
	})
	return out
}

// meta returns the metadata of an object of the task with the full name.
func (c *compiler) meta(name, full string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: name, Namespace: c.job.Namespace, Labels: labelsOf(full),
		OwnerReferences: []metav1.OwnerReference{c.owner},
	}
}

func labelsOf(name string) map[string]string {
	return map[string]string{lattice.NameLabel: name, lattice.ManagedByLabel: lattice.ManagedBy}
}

// add adds an object of the task. Names are joined with -, so two objects may get the same name, and the second would
// overwrite the first.
func (t *task) add(o Object) {
	kind, name := o.GetObjectKind().GroupVersionKind().Kind, o.GetName()
	made := kind
	if kind == externalSecretKind {
		made = "Secret" // a Secret of the same name
	}
	key := made + "/" + name
	if other, taken := t.makers[key]; taken && t.clash == nil {
		t.clash = fmt.Errorf("%s '%s' of task '%s' would overwrite that of task '%s': give the job's tasks, containers or resources other names",
			made, name, t.name, other)
	}
	t.makers[key] = t.name
	if t.objects = append(t.objects, o); len(t.objects) > maxObjects && t.clash == nil {
		t.clash = fmt.Errorf("the job needs more than %d ConfigMaps, Secrets and other objects: give it fewer files with secrets, or split it", maxObjects)
	}
}

// maxObjects is how many objects a job may have beside its VCJob. Each costs a request, and a file of 40 bytes with a
// secret is one.
const maxObjects = 4096

// made reports whether there is an object of the kind and name; kind is Secret for an ExternalSecret too.
func (c *compiler) made(kind, name string) bool {
	_, made := c.makers[kind+"/"+name]
	return made
}

// addOf adds an object of a kind that the cluster may not serve. A job runs without optional ones.
func (t *task) addOf(kind schema.GroupResource, optional bool, o Object) {
	switch {
	case t.facts.Served[kind]:
		t.add(o)
	case optional:
		t.skipped[kind] = true
	default:
		t.missing[kind] = true
	}
}

// maxWarnings is how many warnings of a job are kept. Each becomes an event.
const maxWarnings = 64

func (c *compiler) warn(format string, arguments ...any) {
	switch len(c.warnings) {
	case maxWarnings:
	case maxWarnings - 1:
		c.warnings = append(c.warnings, "there are further warnings, which are left out: correct the first ones")
	default:
		c.warnings = append(c.warnings, fmt.Sprintf(format, arguments...))
	}
}

// replicas returns the number of pods of the task.
func replicas(spec *lattice.JobTaskSpec) int32 { return ptr.Deref(spec.Replicas, 1) }
