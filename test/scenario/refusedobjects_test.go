package scenario

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/test/scenario/harness"
)

// TestAJobWhoseObjectsAreRefusedReleasesItsQuota: an object that a job needs is refused by a quota of the namespace, or
// another owner has its name. The status of the job, `muster jobs` and `muster explain` say so. No pod runs, and the
// next Workload gets the quota. The cases run in parallel because they mostly wait.
func TestAJobWhoseObjectsAreRefusedReleasesItsQuota(t *testing.T) {
	t.Parallel()
	const taken = "is taken by an object that belongs to another owner"
	for name, tc := range map[string]struct {
		// refuses creates what stands in the way of the objects.
		refuses func(w *world)
		job     func(w *world) client.Object
		kind    string
		list    client.ObjectList
		// what cannot be done, and why, as users are told.
		what, why string
	}{
		"Jobs of a JobSet": {func(w *world) { w.allowNo("count/jobs.batch") },
			func(w *world) client.Object { return w.gang("job", "gpu", 2, time.Hour) }, "jobset", &jobset.JobSetList{},
			"Its Jobs cannot be created", "exceeded quota: none"},
		"Job of a JobSet, whose name is taken": {func(w *world) { w.Create(w.foreignJob("job-workers-0")) },
			func(w *world) client.Object { return w.gang("job", "gpu", 2, time.Hour) }, "jobset", &jobset.JobSetList{},
			"Its Jobs cannot be created", taken},
		"Services of a GenericJob": {func(w *world) { w.allowNo("services") }, (*world).servingGenericJob, "genericjob",
			&tensorstack.GenericJobList{}, "Its Services cannot be created", "exceeded quota: none"},
		"Service of a GenericJob, whose name is taken": {func(w *world) { w.Create(w.foreignService("job-worker-1")) },
			(*world).servingGenericJob, "genericjob", &tensorstack.GenericJobList{}, "Its Services cannot be created", taken},
		"Services of a TrainingJob": {func(w *world) { w.allowNo("services") }, (*world).trainingJob, "trainingjob",
			&breezeml.TrainingJobList{}, "Its Services cannot be created", "exceeded quota: none"},
		"pod of a TrainingJob, whose name is taken": {func(w *world) { w.Create(w.pod("job-worker-1", nil)) },
			(*world).trainingJob, "trainingjob", &breezeml.TrainingJobList{}, "Its pods cannot be created", taken},
		"Service of a VCJob": {func(w *world) { w.allowNo("services") }, (*world).vcJob, "vcjob", &volcano.JobList{},
			"Its Services cannot be created", "exceeded quota: none"},
		"ConfigMap of a VCJob, whose name is taken": {func(w *world) {
			w.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "job-svc", Namespace: w.Namespace}})
		}, (*world).vcJob, "vcjob", &volcano.JobList{}, "Its ConfigMaps cannot be created", taken},
		"pods of a LatticeJob": {func(w *world) { w.allowNo(corev1.ResourcePods) }, (*world).latticeJob, "latticejob",
			&lattice.LatticeJobList{}, "Its pods cannot be created", "exceeded quota: none"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.gpuQueue("gpu", 2, func(q *kueue.ClusterQueueSpec) { w.alsoCPU(q) })
			tc.refuses(w)
			w.Create(tc.job(w))
			harness.Until(w.World, tc.list, "the status says why", func(list client.ObjectList) bool {
				said, err := json.Marshal(list)
				return err == nil && strings.Contains(string(said), tc.what+": ") && strings.Contains(string(said), tc.why)
			})
			w.UntilWorkloadOf("job", "says what is refused", func(wl *kueue.Workload) bool {
				for _, c := range wl.Status.Conditions {
					if (c.Type == "muster.dev/Refused" || c.Type == kueue.WorkloadEvicted) &&
						strings.HasPrefix(c.Message, tc.what+": ") {
						return true
					}
				}
				return false
			})
			if said, _ := w.Explain(tc.kind + "/job"); !strings.Contains(said, tc.what) {
				t.Errorf("muster explain does not say %q:\n%s", tc.what, said)
			}
			if said, _ := w.Muster("jobs", "-o", "json"); !strings.Contains(said, tc.what) {
				t.Errorf("muster jobs does not say %q:\n%s", tc.what, said)
			}
			w.Create(w.bare("next", "gpu", 2))
			released := w.UntilWorkloadOf("job", "is evicted", harness.IsEvicted(kueue.WorkloadEvictedByPodsReadyTimeout))
			if c := meta.FindStatusCondition(released.Status.Conditions,
				kueue.WorkloadEvicted); !strings.HasPrefix(c.Message, tc.what+": ") || !strings.Contains(c.Message, tc.why) {
				t.Errorf("condition Evicted has the message %q, want %q because of %q", c.Message, tc.what, tc.why)
			}
			w.UntilWorkload("next", "runs", runs)
		})
	}
}

// allowNo allows no objects of the resource in the namespace, and waits until that holds.
func (w *world) allowNo(resources corev1.ResourceName) {
	w.Helper()
	w.Create(&corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "none", Namespace: w.Namespace},
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{resources: resource.MustParse("0"),
			corev1.ResourceSecrets: resource.MustParse("0")}}})
}

// alsoCPU lets the queue give as much CPU and memory as is asked for.
func (w *world) alsoCPU(q *kueue.ClusterQueueSpec) {
	group := &q.ResourceGroups[0]
	for _, plenty := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		group.CoveredResources = append(group.CoveredResources, plenty)
		group.Flavors[0].Resources = append(group.Flavors[0].Resources,
			kueue.ResourceQuota{Name: plenty, NominalQuota: resource.MustParse("1000Ti")})
	}
}

// foreignJob returns a Job without a controller that runs no pods.
func (w *world) foreignJob(name string) client.Object {
	job := w.batchJob(name, "", 1, time.Hour)
	job.Spec.Suspend = ptr.To(true)
	return job
}

// foreignService returns a Service without a controller.
func (w *world) foreignService(name string) client.Object {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.Namespace},
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
}

// servingGenericJob returns a GenericJob of two pods, each of which has a Service.
func (w *world) servingGenericJob() client.Object {
	job := w.genericGang().(*tensorstack.GenericJob)
	job.Name, job.Spec.Service = "job", &tensorstack.ServiceOption{Ports: []corev1.ServicePort{{Port: 80}}}
	return job
}

// trainingJob returns a TrainingJob of two workers.
func (w *world) trainingJob() client.Object {
	return &breezeml.TrainingJob{ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: w.Namespace,
		Labels: map[string]string{kueue.QueueLabel: "gpu"}},
		Spec: breezeml.TrainingJobSpec{MinSize: ptr.To[int32](2), MaxSize: ptr.To[int32](2),
			ReplicaSpecs: breezeml.ReplicaSpec{Template: w.template("trainingjob")}}}
}

// vcJob returns a VCJob of two pods with the plugin svc.
func (w *world) vcJob() client.Object {
	return &volcano.Job{ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: w.Namespace},
		Spec: volcano.JobSpec{Queue: "gpu", Plugins: map[string]volcano.PluginArguments{"svc": {}},
			Tasks: []volcano.TaskSpec{{Name: "worker", Replicas: 2, Template: w.template("main")}}}}
}

// latticeJob returns a LatticeJob of two pods of one CPU each.
func (w *world) latticeJob() client.Object {
	cpu := lattice.ResourceQuantity{CPU: ptr.To(resource.MustParse("1")), Memory: ptr.To(resource.MustParse("64Mi"))}
	container := lattice.ContainerSpec{SidecarContainer: lattice.SidecarContainer{Image: "example.com/worker:1",
		Resources: &lattice.ResourceRequirements{Requests: &cpu, Limits: &cpu}}}
	return &lattice.LatticeJob{ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: w.Namespace},
		Spec: lattice.LatticeJobSpec{Queue: "gpu",
			Tasks: map[string]lattice.JobTaskSpec{"worker": {Replicas: ptr.To[int32](2),
				Workload: lattice.WorkloadSpec{Containers: map[string]lattice.ContainerSpec{"main": container}}}}}}
}

// template returns a template of pods of one GPU whose container has the name.
func (w *world) template(container string) corev1.PodTemplateSpec {
	template := w.batchJob("", "", 1, time.Hour).Spec.Template
	template.Spec.Containers[0].Name = container
	return template
}
